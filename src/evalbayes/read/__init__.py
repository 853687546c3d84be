"""Read an evaluation log into a board: `read` finds out the format, and one module for each family reads it."""

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import xarray as xr

from evalbayes.errors import OutcomesError
from evalbayes.read import rows, table
from evalbayes.schema import apply_error_policy, check_policy
from evalbayes.storage import load
from evalbayes.tallies import Rules

__all__ = ["read"]

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".nc": "board",
}


def read(
    source: str | PathLike[str],
    *,
    format: str | None = None,
    errors: str = "missing",
    config: str | Sequence[str] | None = None,
    task: str | None = None,
    run: str | Sequence[str] | None = None,
    shard: str | None = None,
    outcome: str | None = None,
    successes: str | None = None,
    trials: str | None = None,
    error_count: str | None = None,
    status: str | None = None,
    reducer: str | None = None,
    published: str | None = None,
    threshold: float | None = None,
    outcome_map: Mapping[Any, float | None] | None = None,
    config_map: Mapping[str, str] | None = None,
    task_map: Mapping[str, str] | None = None,
) -> xr.Dataset:
    r"""Read a log, or a board saved by `outcomes.save`.

    Parameters
    ----------
    source
        A file: csv, tsv, jsonl or parquet (each also gzipped), or a saved board (.nc).
    format
        ``"csv"``, ``"tsv"``, ``"jsonl"``, ``"parquet"`` or ``"board"``; by default from the name, else the content.
    errors
        What an attempt without a score counts as: ``"missing"``, ``"failure"`` or ``"raise"``. A saved board
        keeps its own policy under the default.
    config, task, run, shard, outcome, successes, trials, error_count, status, reducer, published
        The column of each role. None: look for it by the usual names. ``""``: there is none.
    threshold, outcome_map, config_map, task_map
        As in `outcomes.from_table`, which says what each column may hold.

    Returns
    -------
    xarray.Dataset
        A board; see `evalbayes.outcomes`.

    Raises
    ------
    OutcomesError
        In one line that names the file, the line and the remedy.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Path(folder) / "runs.csv"
    ...     _ = log.write_text("model,task_id,passed\na,001,yes\na,1,no\n")
    ...     board = read(log)
    >>> board.task.values.tolist(), board.successes.values.tolist()
    (['001', '1'], [[1, 0]])
    """
    path = Path(fspath(source))
    check_policy(errors)
    format = _known(path, format)
    if format == "board":
        board = load(path)
        return board if errors == "missing" else apply_error_policy(board, errors)
    columns: table.Named = {
        "config": config,
        "task": task,
        "run": run,
        "shard": shard,
        "outcome": outcome,
        "successes": successes,
        "trials": trials,
        "error_count": error_count,
        "status": status,
        "reducer": reducer,
        "published": published,
    }
    rules: Rules = {
        "threshold": threshold,
        "outcome_map": outcome_map,
        "config_map": config_map,
        "task_map": task_map,
        "errors": errors,
    }
    return table.read(path, format, columns, rules)


def _known(path: Path, format: str | None) -> str:
    """The format asked for, or found out; OutcomesError if there is no such file or format."""
    if not path.exists():
        raise OutcomesError(f"{path}: there is no such file; check the path")
    if not path.is_file():
        raise OutcomesError(f"{path}: not a file; name one log")
    known = (*table.FORMATS, "board")
    if format is not None and format not in known:
        raise OutcomesError(f"{path}: format {format!r} is unknown; use one of {', '.join(known)}")
    return format or _sniff(path)


def _sniff(path: Path) -> str:
    """Format from the name, else from the content: a magic number, a brace, or the header's delimiter."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _SUFFIXES[suffixes[-1]]
    with path.open("rb") as file:
        magic = file.read(4)
    if magic == b"PAR1":
        return "parquet"
    if magic == b"\x89HDF":
        return "board"
    header = rows.first_line(path)
    if header.lstrip().startswith(("{", "[")):
        return "jsonl"
    return "tsv" if "\t" in header else "csv"
