"""Pairs of configs: which there are, what they share, and their scores on the same bootstrap boards."""

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.errors import NotIdentifiedError
from evalbayes.frequentist import bootstrap
from evalbayes.frequentist.bootstrap import BLOCK, Bools, Cells, Floats, Integers
from evalbayes.frequentist.targets import Texts, position, why_unknown
from evalbayes.links import shares_task
from evalbayes.words import shown

PAIR_BLOCK = BLOCK // 4
"""Fewer numbers at once than a matrix product needs: comparing is fastest within the processor's cache."""

TABLES = 2**22
"""Numbers in the tables for the pairs of one part of the configs with itself; with another part, four times as many."""


def pairs_of(outcomes: xr.Dataset, reference: str | None = None) -> Integers:
    """Positions of pairs, (pair, 2): each pair once, a config with itself too; or every config with the reference.

    Raises
    ------
    OutcomesError
        If the reference is not on the board.
    """
    size = outcomes.sizes["config"]
    if reference is None:
        return np.stack(np.triu_indices(size), axis=1)
    return np.stack([np.arange(size), np.full(size, position(outcomes, reference))], axis=1)


def shared_tasks(board: Cells, pairs: Integers) -> Integers:
    """How many tasks both configs of a pair were scored on."""
    scored = board.scored.astype(float)
    shared: Integers = (scored @ scored.T)[pairs[:, 0], pairs[:, 1]].astype(np.int64)
    return shared


def why_pair_unknown(board: Cells, pairs: Integers, method: str) -> Texts:
    """Say why a pair cannot be compared, or nothing where it can; a config with itself always can."""
    first, second = pairs.T
    shared, many = shared_tasks(board, pairs), (board.trials > 1).astype(float)
    reason = why_unknown(shared, (many @ many.T)[first, second].astype(np.int64), method, shared="shared ")
    reason[(first == second) & (shared > 0)] = ""
    return reason


def why_unranked(outcomes: xr.Dataset) -> Texts:
    """Say which others a config shares no task with, so that it is not ranked among them, or nothing: (config).

    Configs without a run are no part of this.
    """
    board = outcomes["trials"].reset_coords(drop=True)
    ran = (board > 0).any("task")
    ran = ran.values[:, None] & ran.values
    lonely = ran & ~shares_task(board).values
    names = [repr(str(name)) for name in outcomes["config"].values]
    said = [f"no shared task with {shown([names[i] for i in np.flatnonzero(row)], 3)}" for row in lonely]
    return np.where(lonely.any(axis=1), np.array(said, dtype=object), "")


def refuse_apart(quantity: str, outcomes: xr.Dataset) -> None:
    """Raise NotIdentifiedError, naming the two, where configs share no task: their best or first is not known."""
    reason = why_unranked(outcomes)
    if (reason != "").any():
        first = np.flatnonzero(reason != "")[0]
        name = str(outcomes["config"].values[first])
        raise NotIdentifiedError(f"{quantity}: {name!r} has {reason[first]}; leave one of them out")


def pair_draws(
    outcomes: xr.Dataset, pairs: Integers, method: str, *, draws: int, seed: int
) -> Iterator[tuple[Integers, Floats, Floats]]:
    """Bootstrap pairs of configs, each on the tasks that both were scored on, by a method of `score_draws`.

    Yields positions in ``pairs``, and the scores (pair, draw) of their first and second configs; pairs that share
    no task do not come. One table of all configs on the tasks of b holds every config's score against b, so the
    cost is a table for each distinct set of scored tasks (one on a complete board), not one for each pair.
    """
    scored = (outcomes.trials > 0).transpose("config", "task").values
    kinds, kind = np.unique(scored, axis=0, return_inverse=True)
    kind = kind.ravel()
    shared = (scored[pairs[:, 0]] & scored[pairs[:, 1]]).any(axis=1)
    parts = 1 if len(kinds) == 1 else math.ceil(len(kind) / math.isqrt(max(1, TABLES // draws)))
    home = np.empty(len(kind), dtype=np.int64)
    home[np.argsort(kind, kind="stable")] = np.arange(len(kind)) * parts // len(kind)
    for p, q in combinations_with_replacement(range(parts), 2):
        here = np.flatnonzero(shared & (np.sort(home[pairs], axis=1) == (p, q)).all(axis=1))
        if len(here) == 0:
            continue
        configs = np.flatnonzero((home == p) | (home == q))
        used, which = np.unique(kind[configs], return_inverse=True)
        tables = _tables(outcomes.isel(config=configs), kinds[used], method, draws=draws, seed=seed)
        for block in np.array_split(here, math.ceil(len(here) * draws / PAIR_BLOCK)):
            first, second = np.searchsorted(configs, pairs[block].T)
            yield block, tables[which[second], first], tables[which[first], second]


def _tables(outcomes: xr.Dataset, kinds: Bools, method: str, *, draws: int, seed: int) -> Floats:
    """Scores of all configs on each set of tasks: (set, config, draw)."""
    tables = np.empty((len(kinds), outcomes.sizes["config"], draws))
    for table, mask in zip(tables, kinds, strict=True):
        among = xr.DataArray(mask, dims="task", coords={"task": outcomes.task.values})
        if mask.any():
            table[:] = bootstrap.score_draws(outcomes, method, draws=draws, seed=seed, among=among).values.T
    return tables


def square[Kind: np.generic](upper: npt.NDArray[Kind], pairs: Integers) -> npt.NDArray[Kind]:
    """Lay pairs, each once, out over both triangles of a (config, opponent) square, as they are."""
    size = int(pairs.max()) + 1
    result = np.empty((size, size, *upper.shape[1:]), dtype=upper.dtype)
    result[pairs[:, 1], pairs[:, 0]] = upper
    result[pairs[:, 0], pairs[:, 1]] = upper
    return result


def labelled(values: npt.NDArray[Any], dims: tuple[str, ...], outcomes: xr.Dataset) -> xr.DataArray:
    """Name the axes of an array over configs (and opponents, and then perhaps bounds)."""
    coords = dict.fromkeys(dims, outcomes.config.values)
    return xr.DataArray(values, dims=(*dims, "ci_bound")[: values.ndim], coords=coords)
