"""How much a summary of repeatability owes to the tasks that happen to be on the board."""

from collections.abc import Iterable

import numpy as np
import xarray as xr

from evalbayes import components
from evalbayes.answer import check_prob
from evalbayes.errors import ArgumentError, NotIdentifiedError, check_whole
from evalbayes.frequentist import bootstrap, moments
from evalbayes.schema import require_board

BLOCK = 2**20
"""Tasks x subsets at once, at most."""


def task_subsets(
    outcomes: xr.Dataset,
    *,
    size: int | Iterable[int],
    quantity: str = "ceiling",
    pooled: Iterable[str] | None = None,
    runs: int | None = None,
    cost_ratio: float | None = None,
    prob: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> xr.Dataset:
    """Return how the median over configs of a quantity varies over random subsets of the tasks.

    Subsets are drawn without replacement and components come by moments from the tasks in them. That is sensitivity to
    the choice among these tasks, not an interval for new ones: it shrinks to nothing as the size nears the board's.
    `frequentist.ceiling` with ``pooled`` gives such an interval.

    Parameters
    ----------
    outcomes
        A board of T tasks.
    size
        Tasks in a subset, from 2 to T; one number or several.
    quantity, runs, cost_ratio
        Which function of the variance components, and what it needs besides; see `evalbayes.components`.
    pooled
        The configs whose median it is; all when none are named.
    prob
        Share of the subsets between ``lower`` and ``upper``.
    draws, seed
        How many subsets of each size, and from where.

    Returns
    -------
    xarray.Dataset
        Over ``size``: ``middle`` (median over the subsets), ``lower`` and ``upper`` (the central share ``prob`` of
        them), ``least`` and ``most``, and ``known`` (the share of the subsets that give a value); ``whole``, that of
        the whole board; scalar coords ``quantity``, ``tasks`` and ``configs``, the target of the quantity; attrs
        ``configs``, those pooled.

    Raises
    ------
    NotIdentifiedError
        If no config named has a task that was run twice.
    ArgumentError
        If a size is not between 2 and T, or the quantity is none or lacks what it needs.
    OutcomesError
        If a config is not on the board.

    Examples
    --------
    >>> from evalbayes import datasets
    >>> found = task_subsets(datasets.load("repeated_runs"), size=[50, 100], draws=200)
    >>> bool(found.lower[0] < found.whole < found.upper[0]), bool(np.isclose(found.lower[1], found.whole))
    (True, True)
    """
    check_prob(prob)
    check_whole("draws", draws, 1)
    check_whole("seed", seed, 0)
    function = components.function_of(quantity, runs=runs, cost_ratio=cost_ratio)
    tasks, labels = require_board(outcomes).sizes["task"], outcomes["config"].values.tolist()
    names = components.pooled_names(labels if pooled is None else pooled, labels, None)
    sizes = [size] if isinstance(size, int | np.integer) else list(size)
    if not sizes or not all(isinstance(one, int | np.integer) and 2 <= one <= tasks for one in sizes):
        raise ArgumentError(f"size={size}: give how many of the {tasks} tasks are in a subset, from 2 to {tasks}")
    estimator = moments.estimator(bootstrap.cells(outcomes.sel(config=names)), None)
    if not estimator.twice.any():
        raise NotIdentifiedError(f"task_subsets: {components.ONE_RUN}")

    def medians(counts: np.ndarray) -> np.ndarray:
        raw, within = estimator.at(counts)
        values = function(np.maximum(raw, 0.0), within)[:, estimator.twice]
        return np.asarray(components.middle(xr.DataArray(values, dims=("draw", "config"))).values)

    rng = np.random.default_rng(seed)
    found = [np.concatenate([medians(block) for block in _subsets(one, tasks, draws, rng)]) for one in sizes]
    return _summary(found, sizes, float(medians(np.ones((1, tasks)))[0]), prob, quantity, names)


def _subsets(size: int, tasks: int, draws: int, rng: np.random.Generator) -> Iterable[np.ndarray]:
    """Yield which tasks are in each subset, 0 or 1, (draw, task), in blocks."""
    step = max(1, BLOCK // tasks)
    for start in range(0, draws, step):
        order = rng.random((min(step, draws - start), tasks)).argsort(axis=1)
        yield (order < size).astype(float)


def _summary(
    found: list[np.ndarray], sizes: list[int], whole: float, prob: float, quantity: str, names: list[str]
) -> xr.Dataset:
    levels = {"lower": (1 - prob) / 2, "middle": 0.5, "upper": (1 + prob) / 2, "least": 0.0, "most": 1.0}
    known = [values[~np.isnan(values)] for values in found]
    # Values that occur: between two infinities there is nothing to interpolate.
    facts = {
        name: (
            "size",
            [np.quantile(values, level, method="inverted_cdf") if values.size else np.nan for values in known],
        )
        for name, level in levels.items()
    }
    share = [values.size / every.size for values, every in zip(known, found, strict=True)]
    return xr.Dataset(
        {**facts, "known": ("size", share), "whole": whole},
        coords={"size": sizes, "quantity": quantity, "tasks": "sampled", "configs": "fixed", "ci_prob": prob},
        attrs={"configs": components.pooled_label(names)},
    )
