"""Whether a printed pass rate, stability rate and variance can all come from one table of runs.

With n_k the number of tasks solved k times of R, each figure is a whole number in disguise::

    tasks = sum n_k,   tasks R rate = sum k n_k,   tasks stable = n_R,   tasks R^2 variance = sum k (R - k) n_k

the last with R (R - 1) in place of R^2 if the variance has the factor R / (R - 1) that makes it unbiased. A triple is
possible if some histogram (n_0, ..., n_R) prints as all three.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.board.published import printed, whole_counts
from evalbayes.cells import BLOCK
from evalbayes.errors import ArgumentError, check_whole

FORMS = ("mean p(1-p)", "mean p(1-p) R/(R-1)")
TOO_MANY = "too many histograms to go through: each figure was held against its own whole numbers alone"

Figures = Sequence[str | float]


def impossible_triples(
    rate: Figures, stable: Figures, variance: Figures, *, tasks: int | Sequence[int], runs: int, per: float = 1.0
) -> xr.Dataset:
    """Say which printed triples no table of ``tasks`` x ``runs`` outcomes gives, under both forms of the variance.

    Parameters
    ----------
    rate
        Printed pass rate over runs, (row). Figures as text keep their trailing zeros, and with them their rounding.
    stable
        Printed share of tasks that all runs passed, (row).
    variance
        Printed mean over tasks of the variance p (1 - p) of a run, (row).
    tasks
        Tasks of each row, or of all.
    runs
        Runs of each task, R, at least 2.
    per
        What the figures are multiplied by in print: 100 for percent (and a variance times 100).

    Returns
    -------
    xarray.Dataset
        Over row: ``rate_possible`` and ``stable_possible``, of each figure alone; over (row, form), the form being one
        of `FORMS`: ``variance_possible`` alone and ``possible``, all three together. 1, 0, or NaN where the histograms
        are too many, with the ``reason``. attrs ``runs``.

    Raises
    ------
    ArgumentError
        If the lengths differ, a figure is not a number, or runs or tasks are not whole numbers.

    Examples
    --------
    >>> seen = impossible_triples(["59.6"], ["47.5"], ["4.36"], tasks=[100], runs=5, per=100)
    >>> seen.rate_possible.item(), seen.stable_possible.item()
    (1.0, 0.0)
    >>> impossible_triples(["59.6"], ["47.5"], ["4.36"], tasks=99, runs=5, per=100).possible.values.tolist()
    [[1.0, 0.0]]
    """
    check_whole("runs", runs, 2)
    counts = np.broadcast_to(tasks, len(rate)) if np.ndim(tasks) == 0 else np.asarray(tasks)
    if not len(rate) == len(stable) == len(variance) == len(counts):
        raise ArgumentError("rate, stable, variance, tasks: give as many of each, one for each row")
    rows = [
        _row(a, b, c, check_tasks(count), runs, per)
        for a, b, c, count in zip(rate, stable, variance, counts.tolist(), strict=True)
    ]
    alone, alone_variance, together, reason = (np.array(part) for part in zip(*rows, strict=True))
    data = {
        "rate_possible": ("row", alone[:, 0]),
        "stable_possible": ("row", alone[:, 1]),
        "variance_possible": (("row", "form"), alone_variance),
        "possible": (("row", "form"), together),
        "reason": ("row", reason.astype(object)),
    }
    return xr.Dataset(data, coords={"form": list(FORMS)}, attrs={"runs": runs})


def check_tasks(count: Any) -> Any:
    """Return a number of tasks, or raise ArgumentError."""
    check_whole("tasks", count, 1)
    return count


def _row(
    rate: Any, stable: Any, variance: Any, tasks: int, runs: int, per: float
) -> tuple[list[float], list[float], list[float], str]:
    passes, always = _counts(rate, per, runs * tasks), _counts(stable, per, tasks)
    spreads = [_counts(variance, per, runs * divisor * tasks) for divisor in (runs, runs - 1)]
    alone = [float(len(passes) > 0), float(len(always) > 0)]
    # A task adds R^2 / 4 at most.
    most = min(max(1, *(spread.stop for spread in spreads)), tasks * (runs // 2) * (runs - runs // 2) + 1)
    mixed = [(k, k * (runs - k)) for k in range(1, runs)]
    by_spread = _fewest([(0, spread) for _, spread in mixed], (1, most))
    lone = [float((by_spread[:, s.start : s.stop] <= tasks).any()) for s in spreads]
    if not all(alone):
        return alone, lone, [0.0, 0.0], ""
    left = max(passes.stop - runs * always.start, 1)
    if left * most > BLOCK:
        return alone, lone, [np.nan if one else 0.0 for one in lone], TOO_MANY if any(lone) else ""
    table = _fewest(mixed, (left, most))
    return alone, lone, [float(_fits(table, passes, always, s, tasks, runs)) for s in spreads], ""


def _fewest(steps: list[tuple[int, int]], shape: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Return the fewest tasks whose (passes, k (R - k)) add up to each pair of sums, inf where none do.

    Whatever else there is are tasks that never pass, which add nothing: so fewest is all that matters.
    """
    table = np.full(shape, np.inf)
    table[0, 0] = 0
    for passes, spread in steps:
        times = 1
        # Any number of tasks of a kind is a sum of 1, 2, 4, ...
        while passes * times < shape[0] and spread * times < shape[1]:
            down, right = passes * times, spread * times
            added = table[: shape[0] - down, : shape[1] - right] + times
            table[down:, right:] = np.minimum(table[down:, right:], added)
            times *= 2
    return table


def _fits(table: Any, passes: range, always: range, spread: range, tasks: int, runs: int) -> bool:
    """Say whether n tasks that always pass, and the rest, give these sums for some n in ``always``."""
    for n in always:
        rows = slice(max(passes.start - runs * n, 0), max(passes.stop - runs * n, 0))
        if (table[rows, spread.start : spread.stop] <= tasks - n).any():
            return True
    return False


def _counts(figure: Any, per: float, total: int) -> range:
    try:
        value, half = printed(figure)
    except ValueError:
        value = half = math.nan
    if not math.isfinite(value):
        raise ArgumentError(f"{figure!r} is not a number; give figures as printed, such as '59.6'")
    return whole_counts(value / per, half / per, total)
