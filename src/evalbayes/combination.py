"""Several boards as one, joined by the names of configs, tasks and runs, never by position."""

import itertools
import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.coverage import warn_of_variants
from evalbayes.errors import OutcomesError
from evalbayes.facts import FILE
from evalbayes.schema import ABSENT, COUNTS, apply_error_policy, assemble, scored_trials

DIMS = ("config", "task")


def combine(boards: Sequence[xr.Dataset], *, overlap: Literal["raise", "add"] = "raise") -> xr.Dataset:
    """Combine boards into one, over the union of their configs and tasks.

    Parameters
    ----------
    boards
        One or more boards under the same error policy.
    overlap
        What to do when two boards hold attempts of the same cell that their run names do not tell apart:
        ``"raise"``, or ``"add"`` them as further runs.

    Returns
    -------
    xarray.Dataset
        A board; ``outcome`` is kept if every board has it. A coord on which two boards disagree is dropped
        and listed in the attribute ``ignored_columns``, as a column that varies within one table is.

    Raises
    ------
    OutcomesError
        If there is no board, policies differ, or cells overlap and are not to be added.

    Examples
    --------
    >>> from evalbayes import outcomes
    >>> a = outcomes.from_matrix([[1, 0]], configs=["a"], tasks=["t", "u"])
    >>> b = outcomes.from_matrix([[1]], configs=["b"], tasks=["u"])
    >>> combine([a, b]).trials.values.tolist()
    [[1, 1], [0, 1]]
    """
    policy = _policy(boards)
    if overlap not in ("raise", "add"):
        raise OutcomesError(f"combine: overlap={overlap!r} is unknown; use 'raise' or 'add'")
    names = {dim: _union([board[dim].values.tolist() for board in boards]) for dim in DIMS}
    warn_of_variants(names, "combine")
    plain = [apply_error_policy(board, "missing").reset_coords(drop=True) for board in boards]
    counts = [board[list(COUNTS)].reindex(names, fill_value=0) for board in plain]
    shared = _more_than_one([part["trials"] + part["errors"] > 0 for part in counts])
    outcome = None
    if all("outcome" in board for board in plain):
        states = _states(plain, names, numbered=overlap == "add" and bool(shared.any()))
        shared = _more_than_one([part != ABSENT for part in states]).any("run")
        # Absent is the least of the states, so the maximum is the state of the one board that has the run.
        outcome = xr.concat(states, "board").max("board")
    if overlap == "raise" and bool(shared.any()):
        _refuse(boards, counts, shared)
    coords, dropped = _coords(boards, names)
    return assemble(
        {name: np.sum([part[name].values for part in counts], axis=0) for name in COUNTS},
        configs=names["config"],
        tasks=names["task"],
        runs=[] if outcome is None else outcome["run"].values.tolist(),
        outcome=None if outcome is None else outcome.values,
        policy=policy,
        published=_published(boards, names["config"]),
        coords=coords | _files(boards),
        variables=_variables(boards, names),
        attrs=_attrs(boards, dropped),
    )


def _policy(boards: Sequence[xr.Dataset]) -> str:
    policies = sorted({str(board.attrs.get("error_policy", "missing")) for board in boards})
    if not policies:
        raise OutcomesError("combine: there is no board; give at least one")
    if len(policies) > 1:
        raise OutcomesError(f"combine: error policies {', '.join(policies)} differ; read all boards under one")
    return policies[0]


def _more_than_one(masks: Sequence[xr.DataArray]) -> xr.DataArray:
    return xr.concat(masks, "board").sum("board") > 1


def _union(lists: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(itertools.chain.from_iterable(lists)))


def _states(boards: Sequence[xr.Dataset], names: dict[str, list[str]], *, numbered: bool) -> list[xr.DataArray]:
    """States of each board over the common names; ``numbered`` keeps equal run names of two boards apart."""
    states = [board["outcome"] for board in boards]
    if numbered:
        states = [
            state.assign_coords(run=[f"{i}/{run}" for run in state["run"].values]) for i, state in enumerate(states, 1)
        ]
    runs = _union([state["run"].values.tolist() for state in states])
    return [state.reindex({**names, "run": runs}, fill_value=ABSENT) for state in states]


def _refuse(boards: Sequence[xr.Dataset], counts: Sequence[xr.Dataset], shared: xr.DataArray) -> None:
    c, t = np.argwhere(shared.values)[0]
    config, task = str(shared["config"].values[c]), str(shared["task"].values[t])
    holders = [
        str(board.attrs.get("source", ""))
        for board, part in zip(boards, counts, strict=True)
        if int(part["trials"][c, t] + part["errors"][c, t]) > 0
    ]
    raise OutcomesError(
        f"combine: config {config!r}, task {task!r} is in {' and '.join(holders[:2])}; leave one out, "
        "or add them as further runs with overlap='add'"
    )


def _coords(boards: Sequence[xr.Dataset], names: dict[str, list[str]]) -> tuple[dict[str, tuple[str, Any]], list[str]]:
    """Coords on which the boards agree, by name; and those dropped because they do not."""
    coords: dict[str, tuple[str, Any]] = {}
    dropped = []
    measured = {str(name) for board in boards for name in board.data_vars if _is_measure(board, str(name))}
    for name in _union(
        [[str(coord) for coord in board.coords if coord not in (*board.dims, FILE, *measured)] for board in boards]
    ):
        holders = [board[name] for board in boards if name in board.coords]
        dims = {part.dims for part in holders}
        merged = _merged(holders, names) if len(dims) == 1 and dims <= {("config",), ("task",)} else None
        if merged is None and name == "task_version":
            raise OutcomesError(
                f"combine: boards hold {_differing(holders)}; read their logs in one call, or rename it"
            )
        if merged is None:
            dropped.append(name)
        else:
            coords[name] = (str(holders[0].dims[0]), merged)
    return coords, dropped


def _differing(parts: Sequence[xr.DataArray]) -> str:
    """The first task whose versions differ."""
    found: dict[str, str] = {}
    for part in parts:
        for task, version in zip(
            part["task"].values.tolist() if "task" in part.dims else [], part.values.tolist(), strict=False
        ):
            if version and found.setdefault(task, version) != version:
                return f"task {task!r} in versions {found[task]} and {version}"
    return "tasks in several versions"


def _files(boards: Sequence[xr.Dataset]) -> dict[str, tuple[str, Any]]:
    return {"file": ("file", np.array(_union([_names_of_files(board) for board in boards]), object))}


def _names_of_files(board: xr.Dataset) -> list[str]:
    if "file" in board.dims:
        return [str(name) for name in board["file"].values]
    if FILE in board.coords:
        return list(dict.fromkeys(map(str, board[FILE].values)))
    return [str(board.attrs.get("source") or "outcomes")]


def _variables(boards: Sequence[xr.Dataset], names: dict[str, list[str]]) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Measures of cells, averaged over the attempts of all boards; and the file that each cell is from."""
    attempts = [scored_trials(board) + board["errors"] for board in boards]
    weights = [board.reindex(names, fill_value=0).astype(float) for board in attempts]
    made: dict[str, tuple[tuple[str, ...], Any]] = {}
    for name in _union([[str(v) for v in board.data_vars if _is_measure(board, str(v))] for board in boards]):
        holders = [(board, w) for board, w in zip(boards, weights, strict=True) if name in board.data_vars]
        parts = [(board[name].reindex(names).values, w.values) for board, w in holders]
        count = np.sum([weight * ~np.isnan(value) for value, weight in parts], axis=0)
        total = np.sum([np.nan_to_num(value) * weight for value, weight in parts], axis=0)
        made[name] = (DIMS, np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0))
    files = _union([_names_of_files(board) for board in boards])
    index = np.full([len(names[dim]) for dim in DIMS], -1, np.int32)
    for board, weight in reversed(list(zip(boards, weights, strict=True))):
        number = _file_of_cells(board).reindex(names, fill_value=-1).values
        local = np.array([files.index(name) for name in _names_of_files(board)] + [-1], np.int32)
        index = np.where(weight.values > 0, local[number], index)
    return made | {FILE: (DIMS, index)}


def _is_measure(board: xr.Dataset, name: str) -> bool:
    return board[name].dims == DIMS and board[name].dtype.kind == "f"


def _file_of_cells(board: xr.Dataset) -> xr.DataArray:
    """The number of the file of each cell, among those of its board; of several the last."""
    if FILE in board.data_vars:
        found = board[FILE]
        return found.max("run") if "run" in found.dims else found
    there = xr.zeros_like(board["trials"])
    if FILE in board.coords:
        names = _names_of_files(board)
        return there + xr.DataArray([names.index(str(name)) for name in board[FILE].values], dims=board[FILE].dims)
    return there


def _merged(parts: Sequence[xr.DataArray], names: dict[str, list[str]]) -> npt.NDArray[Any] | None:
    """Values over the union of names, blank where no board has one; None if two boards differ."""
    dim = str(parts[0].dims[0])
    numeric = all(part.dtype.kind in "iuf" for part in parts)
    found: dict[str, Any] = {}
    for part in parts:
        for label, value in zip(part[dim].values.tolist(), part.values.tolist(), strict=True):
            blank = value is None or value == "" or value != value
            if not blank and found.setdefault(label, value) != value:
                return None
    if numeric:
        whole = all(part.dtype.kind in "iu" for part in parts) and len(found) == len(names[dim])
        return np.array([found.get(label, np.nan) for label in names[dim]], int if whole else float)
    return np.array([str(found.get(label, "")) for label in names[dim]], dtype=object)


def _published(boards: Sequence[xr.Dataset], configs: list[str]) -> npt.NDArray[np.float64] | None:
    parts = [board["published"] for board in boards if "published" in board]
    if not parts:
        return None
    merged = _merged(parts, {"config": configs})
    if merged is None:
        raise OutcomesError("combine: two boards publish different rates for one config; drop published from one")
    return merged.astype(float)


def _attrs(boards: Sequence[xr.Dataset], dropped: list[str]) -> dict[str, str | int | float]:
    """Counts are added, equal values kept, and different texts listed."""
    attrs: dict[str, str | int | float] = {}
    for name in _union([[str(key) for key in board.attrs] for board in boards]):
        values = [board.attrs[name] for board in boards if name in board.attrs]
        if name.startswith("n_"):
            attrs[name] = int(sum(values))
        elif name == "header":
            attrs[name] = json.dumps({key: value for text in values for key, value in json.loads(text).items()})
        else:
            between = "\n" if name in ("notes", "skipped") else "; "
            attrs[name] = values[0] if len(set(values)) == 1 else between.join(map(str, dict.fromkeys(values)))
    ignored = [part for board in boards for part in str(board.attrs.get("ignored_columns", "")).split(", ") if part]
    return {**attrs, "ignored_columns": ", ".join(dict.fromkeys([*ignored, *dropped]))}
