"""What a log says beside outcomes: facts of configs and tasks as coords; costs, tokens and times as means of cells.

And the file that every attempt came from.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalbayes.errors import OutcomesError
from evalbayes.schema import COUNTS, Int64
from evalbayes.words import Bools, factor, shown

Axis = tuple[Int64, list[str]]
Variables = dict[str, tuple[tuple[str, ...], np.ndarray]]

MEASURES = frozenset(
    {"cost", "cost_usd", "total_cost", "tokens", "total_tokens", "input_tokens", "output_tokens", "n_tokens"}
    | {"time", "total_time", "working_time", "duration", "latency", "seconds", "steps", "n_steps", "turns", "n_turns"}
    | {"api_calls", "messages", "user_cost"}
)
"""Columns of numbers that are averaged over the attempts of a cell, where they are no fact of a config or task."""
FILE = "source_file"
TASK_FACTS = frozenset(
    {
        "cluster",
        "suite",
        "repository",
        "repo",
        "domain",
        "category",
        "subject",
        "difficulty",
        "task_family",
        "task_version",
    }
)
"""Columns that are facts of tasks, also where every config is alike in them."""


def facts(
    df: pd.DataFrame, columns: list[str], axes: Mapping[str, Axis], keep: Bools, asked: Sequence[str], *, runs: bool
) -> tuple[dict[str, tuple[str, Any]], Variables, list[str]]:
    """Columns with no role: coords where constant for each config, else for each task; means of cells; what is left."""
    coords: dict[str, tuple[str, Any]] = {}
    measured = list(asked)
    ignored = []
    for column in [name for name in columns if name not in asked]:
        name = "_".join(column.split())  # netCDF cannot mark a coord whose name has a space
        if column.strip().lower() in MEASURES and _is_coord_name(name) and numeric(df[column]) is not None:
            measured.append(column)  # also where it is alike for all: other boards, joined to this one, may vary
            continue
        dim, first = _constant_along(df[column], axes)
        if dim and _is_coord_name(name) and name not in coords:
            coords[name] = (dim, first)
        elif column != FILE:
            ignored.append(column)
    shape = len(axes["config"][1]), len(axes["task"][1])
    cell = axes["config"][0] * shape[1] + axes["task"][0]
    variables = measures(df, measured, cell, shape, keep)
    if FILE in columns and FILE not in coords:
        variables |= source_files(df[FILE], axes, keep, runs)
        coords |= files(df[FILE])
    return coords, variables, ignored


def _constant_along(column: pd.Series, axes: Mapping[str, Axis]) -> tuple[str, npt.NDArray[Any]]:
    """Dim along which a column is constant, and its values there; "" if there is none.

    Config comes first, but for what is a fact of tasks whatever the rows are: one config makes every column constant.
    """
    codes, found = factor(column)
    first_dim, other = ("task", "config") if str(column.name).strip().lower() in TASK_FACTS else ("config", "task")
    for dim in (first_dim, other):
        of, names = axes[dim]
        first = np.full(len(names), -1, np.int64)  # a task that no row names has no facts
        first[of[::-1]] = codes[::-1]
        if (first[of] == codes).all():
            return dim, _values(found, first)
    return "", np.empty(0)


def _is_coord_name(name: str) -> bool:
    reserved = {*COUNTS, "config", "task", "run", "outcome", "published"}
    return bool(name.strip(". ")) and name.isprintable() and name not in reserved and "/" not in name


def _values(found: list[Any], codes: Int64) -> npt.NDArray[Any]:
    """Numbers stay numbers with NaN for a blank; everything else is text with '' for a blank."""
    plain = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in found)
    numbers = np.array(found) if plain else np.array([], object)
    if numbers.size and numbers.dtype.kind in "iuf":
        return np.append(numbers, np.nan)[codes] if (codes < 0).any() else numbers[codes]
    return np.array([*map(str, found), ""], dtype=object)[codes]


def measures(df: pd.DataFrame, names: Sequence[str], cell: Int64, shape: tuple[int, int], keep: Bools) -> Variables:
    """Return the mean of each measure over the attempts of a cell, (config, task), NaN where none has it.

    Parameters
    ----------
    df
        The rows.
    names
        Columns of numbers.
    cell
        Of each row, config x tasks + task.
    shape
        Configs and tasks.
    keep
        Rows that count.

    Raises
    ------
    OutcomesError
        If a column is not there or not numeric.
    """
    made: Variables = {}
    for name in names:
        values = _numbers(df, name)
        there = keep & ~np.isnan(values)
        size = shape[0] * shape[1]
        count = np.bincount(cell[there], minlength=size)
        total = np.bincount(cell[there], values[there], minlength=size)
        mean = np.divide(total, count, out=np.full(size, np.nan), where=count > 0)
        made["_".join(name.split())] = (("config", "task"), mean.reshape(shape))
    return made


def _numbers(df: pd.DataFrame, name: str) -> np.ndarray:
    if name not in df:
        raise OutcomesError(f"measures: there is no column {name!r}; the columns are {shown(map(str, df.columns))}")
    if not _is_coord_name("_".join(name.split())) or name in (FILE, "file"):
        raise OutcomesError(f"measures: {name!r} is no name that a variable of a board can have; rename the column")
    values = numeric(df[name])
    if values is None:
        raise OutcomesError(f"measures: column {name!r} is not numeric")
    return values


def numeric(column: pd.Series) -> np.ndarray | None:
    """Return a column as numbers, NaN for a blank; None if a value is not one.

    >>> numeric(pd.Series(["1.5", "", None])).tolist(), numeric(pd.Series(["x"]))
    ([1.5, nan, nan], None)
    """
    codes, found = factor(column)
    try:
        values = [float(value) if str(value).strip() else np.nan for value in found]
    except (TypeError, ValueError):
        return None
    return np.array([*values, np.nan])[codes]


def source_files(column: pd.Series, axes: Mapping[str, Axis], keep: Bools, runs: bool) -> Variables:
    """Return the number of the file that each cell, or each run, was read from; -1 where there is none.

    Parameters
    ----------
    column
        The file of each row.
    axes
        Codes and names of config, task and run.
    keep
        Rows that count.
    runs
        Whether runs have a dim: then (config, task, run), else (config, task), where a cell whose attempts come from
        several files has the first.
    """
    dims = ("config", "task", "run") if runs else ("config", "task")
    codes, _ = factor(column)
    index = np.full([len(axes[dim][1]) for dim in dims], -1, np.int32)
    at = tuple(axes[dim][0][keep][::-1] for dim in dims)
    index[at] = codes[keep][::-1]
    return {FILE: (dims, index)}


def files(column: pd.Series) -> dict[str, tuple[str, Any]]:
    """Return the names behind the numbers of `source_files`, as a coord."""
    return {"file": ("file", np.array(list(map(str, factor(column)[1])), object))}
