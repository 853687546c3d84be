"""What `evalbayes calibrate` prints, and the table it keeps: a row a fit, written as it comes.

A run that was stopped goes on where its table ends. The first line of the table is the command that makes its rows; a
table made by another is refused.
"""

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import xarray as xr

from evalbayes.check.calibration import said_of, summary
from evalbayes.check.ranks import FACTS, Design, design, grid, ranked
from evalbayes.choice import chosen
from evalbayes.errors import ArgumentError
from evalbayes.executors import executor_of
from evalbayes.report.numbers import plain, rows_of


class Calibrated(NamedTuple):
    """The lines that say what was found, a table of quantities or of the rows asked for, and all of it for JSON."""

    lines: list[str]
    table: dict[str, list[Any]]
    numbers: dict[str, Any]
    verdict: str


def calibrated(
    model: str,
    which: Sequence[int],
    *,
    sizes: tuple[int, int, int],
    seed: int,
    method: str,
    draws: int,
    prob: float,
    output: Path | None,
    show_rows: bool,
    workers: int,
    dask: str | None,
    progress: Any,
) -> Calibrated:
    """Make the rows that the table does not have yet, and judge all that it has then."""
    plan = design(model, grid(*sizes), seed=seed, method=method, draws=draws)
    command, kept = command_of(plan), pd.DataFrame({"row": []})
    if output is not None:
        kept = kept_rows(output, command)
    missing = [row for row in dict.fromkeys(which) if row not in set(kept["row"])]
    made = []
    with executor_of(workers, dask) as executor:
        for row in ranked(plan, missing, executor=executor):
            made.append(row)
            progress(said_of(row))
            if output is not None:
                append(output, row)
    table = pd.concat([kept, pd.DataFrame(made)]) if made and len(kept) else pd.DataFrame(made) if made else kept
    return _said(summary(table, draws=draws, prob=prob), command, list(which) if show_rows else [])


def command_of(plan: Design) -> str:
    """Return the command that makes the rows of a design, but for how many."""
    cells = plan.outcomes
    name, runs = chosen(cells, plan.model)[0], int(cells["trials"].max())
    sizes = f"--configs {cells.sizes['config']} --tasks {cells.sizes['task']} --runs {runs}"
    return f"evalbayes calibrate {name} {sizes} --seed {plan.seed} --method {plan.method} --draws {plan.draws}"


def kept_rows(path: Path, command: str | None = None) -> pd.DataFrame:
    """Return the rows that a table has; a last line that was not written whole is cut off.

    Parameters
    ----------
    path
        A table of `append`. With ``command`` it is started if it is not there yet.
    command
        From `command_of`; what made the table is not checked when it is not given.

    Raises
    ------
    ArgumentError
        If the table was made by another command.
    """
    if command is not None:
        if not path.is_file() or not path.stat().st_size:
            path.write_text(f"# {command}\n", encoding="utf-8")
        _check_same(path, command)
        # Only now: what another command made is not touched.
        _whole_lines(path)
    with path.open(encoding="utf-8") as file:
        file.readline()
        rows = list(csv.DictReader(file))
    if not rows:
        return pd.DataFrame({"row": []})
    table = pd.DataFrame(rows)
    words = ("method", "reason")
    numbers = {name: pd.to_numeric(table[name]) for name in table.columns if name not in words}
    return table.assign(**numbers)


def append(path: Path, row: dict[str, Any]) -> None:
    """Write one row to a table, after its column names if it is the first; what is NaN is left empty."""
    with path.open("r+", encoding="utf-8", newline="") as file:
        file.readline()
        names = file.readline().rstrip("\n").split(",")
        file.seek(0, os.SEEK_END)
        writer = csv.writer(file, lineterminator="\n")
        if names == [""]:
            names = list(row)
            writer.writerow(names)
        writer.writerow([_written(row[name]) for name in names])


def _written(value: Any) -> Any:
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    return value


def _check_same(path: Path, command: str) -> None:
    """Refuse a file that this command did not begin."""
    with path.open("rb") as file:
        first = file.readline(1000)
    if first != f"# {command}\n".encode():
        made = first.decode(errors="replace").strip("# \n")
        what = f"made by {made!r}, not by {command!r}" if made.startswith("evalbayes ") else "no table of calibrate"
        raise ArgumentError(f"{path}: {what}; give another -o")


def _whole_lines(path: Path) -> None:
    """Cut off the end of a table after its last line end: a row whose writing was interrupted."""
    data = path.read_bytes()
    if not data.endswith(b"\n"):
        path.write_bytes(data[: data.rfind(b"\n") + 1])


def _said(result: xr.Dataset, command: str, shown: list[int]) -> Calibrated:
    names = ("quantity", "mean", "spread", "p_value", "p_adjusted", "uniform", "shape")
    table = {name: plain(result[name].values) for name in names}
    fits = result.drop_dims("quantity").to_dataframe().reset_index().rename(columns={"fit": "row", "fit_seed": "seed"})
    ranks = result["ranks"].to_pandas()
    numbers = {
        "command": command,
        **{str(name): value for name, value in result.attrs.items()},
        "quantities": rows_of(table),
        "rows": [
            {name: plain(one[name]) for name in FACTS} | {"ranks": plain(ranks.loc[one["row"]].to_dict())}
            for one in fits.to_dict("records")
        ],
    }
    lines = [str(result.attrs["sentence"]), f"{command}; ranks are from 0 to {result.attrs['draws']}"]
    if shown:
        table = {"quantity": table["quantity"]} | {f"row {row}": plain(ranks.loc[row].to_numpy()) for row in shown}
    else:
        lines.append("mean of u = (rank + 1/2) / (draws + 1), 1/2 expected; spread: that of 12 (u - 1/2)^2, 1 expected")
    return Calibrated(lines, table, numbers, str(result.attrs["verdict"]))
