"""Pairs of configs: which there are, what they share, and their scores on the same bootstrap boards."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.frequentist import bootstrap
from evalbayes.frequentist.bootstrap import BLOCK, Cells, Floats, Integers
from evalbayes.frequentist.targets import Texts, position, why_unknown

PAIR_BLOCK = BLOCK // 4
"""Fewer numbers at once than a matrix product needs: comparing is fastest within the processor's cache."""


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


def pair_draws(
    outcomes: xr.Dataset, pairs: Integers, method: str, *, draws: int, seed: int
) -> Iterator[tuple[Integers, Floats, Floats]]:
    """Bootstrap pairs of configs, each on the tasks that both were scored on, by a method of `score_draws`.

    Yields positions in ``pairs``, and the scores (pair, draw) of their first and second configs. Pairs that
    share the same tasks come together; pairs that share none do not come at all.
    """
    scored = (outcomes.trials > 0).transpose("config", "task").values
    rows, row = np.unique(scored, axis=0, return_inverse=True)
    both = np.sort(row.ravel()[pairs], axis=1)
    patterns, which = np.unique(both[:, 0] * len(rows) + both[:, 1], return_inverse=True)
    for number, pattern in enumerate(patterns):
        mask = rows[pattern // len(rows)] & rows[pattern % len(rows)]
        if not mask.any():
            continue
        among = xr.DataArray(mask, dims="task", coords={"task": outcomes.task.values})
        here = np.flatnonzero(which == number)
        configs = np.unique(pairs[here])
        table = bootstrap.score_draws(outcomes.isel(config=configs), method, draws=draws, seed=seed, among=among)
        by_config = np.ascontiguousarray(table.values.T)
        for block in np.array_split(here, max(1, math.ceil(len(here) * draws / PAIR_BLOCK))):
            first, second = np.searchsorted(configs, pairs[block].T)
            yield block, by_config[first], by_config[second]


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
