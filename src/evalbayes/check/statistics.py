"""Statistics of repeated runs and of agreement between configs, from counts alone, and how unlike drawn ones they are.

Each statistic takes successes k (board, config, task) of any number of boards and the trials n (config, task) that they
have in common, and returns its values per config (..., board, config) and pooled (..., board), NaN where no cell tells.
p is a cell's observed rate k / n.
"""

from typing import NamedTuple

import numpy as np

from evalbayes.schema import Int64
from evalbayes.simulate import Floats

BARS = 20
"""A histogram of more runs than this has classes of several counts."""
PROB = 0.95
"""Of the predictive intervals."""
TIE = 1e-9
"""Values closer than this are equal: sums in another order round differently."""
AGAIN = "no cell was run twice or more"
NO_DENSITY = "the fit has no task_weight, task_mean and task_scale to draw new tasks from"


class Statistic(NamedTuple):
    """What a statistic is about, what it is, and why it is NaN where it is."""

    about: str
    meaning: str
    reason: str


JUDGED = {
    "always_pass": Statistic("cells", "share of cells whose runs all pass", AGAIN),
    "never_pass": Statistic("cells", "share of cells whose runs all fail", AGAIN),
    "mixed": Statistic("cells", "share of cells with passes and failures", AGAIN),
    "within_variance": Statistic("cells", "mean over cells of n/(n-1) p (1-p)", AGAIN),
    "flip_rate": Statistic("cells", "chance that two runs of a cell differ", AGAIN),
    "histogram": Statistic("cells", "distance of the histogram of successes from the predicted one", AGAIN),
    "discordance": Statistic(
        "configs", "chance that runs of two configs on a task differ", "no task shared with another config"
    ),
    "item_rest_slope": Statistic(
        "configs",
        "slope of a config's rates on the mean of the others'; pooled, the sd of slopes",
        "fewer than two tasks shared with another config",
    ),
    "task_spread": Statistic("tasks", "sd over tasks of the mean rate over configs", "fewer than two tasks with runs"),
    "population_gap": Statistic("tasks", "population score minus observed mean", "no scored run"),
}
"""The statistics that a verdict rests on."""
WITHIN = ("always_pass", "never_pass", "mixed", "within_variance", "flip_rate")


def bars(runs: int) -> list[str]:
    """Return the names of the histogram's bars."""
    return [f"passes_{name}_of_{runs}" for name in classes(runs)[1]] if runs else []


def rows(runs: int, *, density: bool) -> dict[str, Statistic]:
    """Return all statistics, the bars of the histogram last, each with the reason that holds on this board."""
    unlike = f"no cell was run {runs} times" if runs else AGAIN
    rows = JUDGED | {"histogram": JUDGED["histogram"]._replace(reason=unlike)}
    if not density:
        rows |= {name: rows[name]._replace(reason=NO_DENSITY) for name in ("task_spread", "population_gap")}
    return rows | dict.fromkeys(bars(runs), Statistic("bars", "share of cells with so many passes", unlike))


def within(k: Int64, n: Int64) -> tuple[Floats, Floats]:
    """Return what runs of one cell say of each other, means over the cells with two runs or more.

    In this order: whether all runs pass, whether none does, whether some do; n/(n-1) p (1-p), unbiased for the variance
    of a run; and the chance that two runs differ, 2 k (n-k) / (n (n-1)), which is twice that.

    >>> within(np.array([[[2, 0, 1]]]), np.array([[2, 4, 2]]))[0].round(3).ravel().tolist()
    [0.333, 0.333, 0.333, 0.167, 0.333]
    """
    again = n > 1
    always, never = (((k == count) & again).sum(axis=2) for count in (n, 0))
    variance = np.einsum("bct,ct->bc", k * (n - k), np.where(again, 1.0 / np.maximum(n * (n - 1), 1), 0.0))
    cells = again.sum(axis=1)
    totals = np.stack([always, never, cells - always - never, variance, 2 * variance])
    with np.errstate(invalid="ignore"):
        return totals / cells, totals.sum(axis=2) / cells.sum()


def commonest(n: Int64) -> int:
    """Return the commonest number of runs among cells with two or more, the smaller of two as common; 0 if none."""
    return int(np.bincount(n[n > 1]).argmax()) if (n > 1).any() else 0


def classes(runs: int) -> tuple[Int64, list[str]]:
    """Return the class of every count from 0 to ``runs``, and the classes' names: none of them, all, and between.

    >>> classes(2)
    (array([0, 1, 2]), ['0', '1', '2'])
    >>> classes(100)[1][:3], classes(100)[1][-2:]
    (['0', '1-10', '11-20'], ['91-99', '100'])
    """
    count = np.arange(runs + 1)
    of = count
    if runs > BARS:
        of = np.where(count == 0, 0, np.where(count == runs, 11, 1 + (count - 1) * 10 // (runs - 1)))
    ends = [count[of == one][[0, -1]] for one in np.unique(of)]
    return of, [str(low) if low == high else f"{low}-{high}" for low, high in ends]


def histogram(k: Int64, n: Int64, runs: int) -> tuple[Floats, Floats]:
    """Return the shares of cells with ``runs`` runs that have each (class of a) number of successes."""
    of, names = classes(runs)
    config, task = np.nonzero(n == runs)
    board = np.arange(len(k))[:, None]
    slot = (board * len(n) + config) * len(names) + of[k[:, config, task]]
    count = np.bincount(slot.ravel(), minlength=len(k) * len(n) * len(names)).reshape(len(k), len(n), len(names))
    total = np.moveaxis(count, 2, 0)
    with np.errstate(invalid="ignore"):
        return total / (n == runs).sum(axis=1), total.sum(axis=2) / config.size


def distance(shares: Floats, cells: Floats | int) -> Floats:
    """Return Pearson's distance of each board's histogram (class, board, ...) from the mean over all boards.

    sum over classes of cells (share - mean)^2 / mean. A class that no board has is at no distance.
    """
    mean = shares.mean(axis=1, keepdims=True)
    return np.asarray(cells * ((shares - mean) ** 2 / np.where(mean > 0, mean, 1.0)).sum(axis=0))


def rates(k: Int64, n: Int64) -> Floats:
    """Return every cell's rate, 0 where it has no run."""
    return np.asarray(k / np.maximum(n, 1))


def discordance(k: Int64, n: Int64) -> tuple[Floats, Floats]:
    """Return the chance that runs of two configs on one task differ, p_a (1-p_b) + p_b (1-p_a).

    A mean over all tasks and pairs of configs that both have runs there; of a config, over its own pairs.
    """
    p, scored = rates(k, n), n > 0
    others = scored.sum(axis=0) - 1
    # Over b other than a: sum of p_a + p_b - 2 p_a p_b, with the sum of the p_b from the task's total.
    rest = p.sum(axis=1, keepdims=True) - p
    total = ((others * p + rest * (1 - 2 * p)) * scored).sum(axis=2)
    pairs = (scored * others).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return total / pairs, total.sum(axis=1) / pairs.sum()


def item_rest_slopes(k: Int64, n: Int64) -> tuple[Floats, Floats]:
    """Return the slope of a config's rates on the mean rate of the other configs, over the tasks they share.

    Least squares; 0 where the others' mean does not vary. Pooled: the standard deviation of the slopes over configs.
    """
    p, scored = rates(k, n), n > 0
    others = scored.sum(axis=0) - 1
    shared = scored & (others > 0)
    tasks = shared.sum(axis=1)
    rest = (p.sum(axis=1, keepdims=True) - p) / np.maximum(others, 1) * shared
    rest -= rest.sum(axis=2, keepdims=True) / np.maximum(tasks, 1)[:, None]
    rest *= shared
    with np.errstate(invalid="ignore", divide="ignore"):
        square = np.einsum("bct,bct->bc", rest, rest)
        slope = np.where(square > 1e-12, np.einsum("bct,bct->bc", rest, p) / square, 0.0)
    slope = np.where(tasks > 1, slope, np.nan)
    many = (tasks > 1).sum() > 1
    return slope, slope[:, tasks > 1].std(axis=1, ddof=1) if many else np.full(len(k), np.nan)


def task_spread(k: Int64, n: Int64) -> Floats:
    """Return the standard deviation over tasks of their mean rate over the configs that have runs there, (board)."""
    configs = (n > 0).sum(axis=0)
    means = rates(k, n).sum(axis=1)[:, configs > 0] / configs[configs > 0]
    return np.asarray(means.std(axis=1, ddof=1)) if means.shape[1] > 1 else np.full(len(k), np.nan)


def summary(values: Floats, *, large: bool) -> dict[str, Floats]:
    """Set the first of ``values`` (board, ...), the board's own, beside those of the drawn ones.

    ``large``: only a large value is odd. The p-value counts the board among the drawn ones, and ties on both sides.
    """
    seen, drawn = values[0], values[1:]
    low, high = _range(drawn, large=large)
    above, below = ((1 + side.sum(axis=0)) / len(values) for side in (drawn >= seen - TIE, drawn <= seen + TIE))
    p = above if large else np.minimum(2 * np.minimum(above, below), 1.0)
    columns = {"observed": seen, "predicted": drawn.mean(axis=0), "lower": low, "upper": high}
    return columns | {"p_value": np.where(np.isnan(seen), np.nan, p)}


def by_config(values: Floats, *, large: bool) -> dict[str, Floats]:
    """Say of values (board, config) how many configs are outside their interval, and how far off all of them are."""
    low, high = _range(values[1:], large=large)
    outside = ((values < low - TIE) | (values > high + TIE)).sum(axis=1)
    far = summary(scatter(values), large=True)
    return {
        "outside": outside[0],
        "expected_outside": outside[1:].mean(),
        "scatter": far["observed"],
        "scatter_p_value": far["p_value"],
    }


def scatter(values: Floats) -> Floats:
    """Return how far configs are from where boards have them, from values (board, config): a mean square, (board).

    In standard deviations over boards of each config's value; configs that no board moves are at no distance. NaN for
    fewer than two configs, whose values are the pooled ones.
    """
    known = values[:, ~np.isnan(values[0])]
    if known.shape[1] < 2:
        return np.full(len(values), np.nan)
    variance = known.var(axis=0)
    return np.asarray(((known - known.mean(axis=0)) ** 2 / np.where(variance > TIE**2, variance, 1.0)).mean(axis=1))


def _range(drawn: Floats, *, large: bool) -> Floats:
    """Return the ends (2, ...) of the predictive interval of values of drawn boards (board, ...)."""
    return np.asarray(np.quantile(drawn, [0.0, PROB] if large else [(1 - PROB) / 2, (1 + PROB) / 2], axis=0))
