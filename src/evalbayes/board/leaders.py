"""Who may be first, and what the winner is worth: simultaneous rank sets, and the winner's score without its luck.

Both are for new tasks (``tasks="sampled"``) and for the entries on the board, on the tasks that every entry was scored
on.

Rank sets. With d_ij the difference of two scores and se_ij its standard deviation over two-level bootstrap draws, c is
the quantile over draws of max_ij |d*_ij - d_ij| / se_ij. Entry i is above j where d_ij > c se_ij; the rank set of i
runs from 1 + (entries above i) to M - (entries below i). All M sets hold the true ranks together with probability
``prob`` (Mogstad, Romano, Shaikh and Wilhelm 2024, Review of Economic Studies 91, 476-518); those that reach 1 are the
confidence set of the best. Marginal intervals (`frequentist.rank`) are narrower, and hold one by one.

The winner. The highest of many scores is high by luck too. With S the covariance of the scores (of task means, / T), w
the winner and b_j = S_jw / S_ww, z_j = s_j - b_j s_w is independent of s_w, and w wins where (1 - b_j) s_w >= z_j for
every j: where s_w is between L = max z_j / (1 - b_j) over b_j < 1 and U = min z_j / (1 - b_j) over b_j > 1. Given that
it won, s_w is a normal cut off there: the estimate is the mean for which the observed s_w is the median of that, the
interval's ends those for which it is the (1 -+ prob) / 2 quantiles (Andrews, Kitagawa and McCloskey 2024, Quarterly
Journal of Economics 139, 305-358).
"""

from typing import Any

import numpy as np
import xarray as xr
from scipy import optimize, stats

from evalbayes.answer import answer, check_prob
from evalbayes.errors import NotIdentifiedError
from evalbayes.frequentist import bootstrap
from evalbayes.frequentist.bootstrap import BLOCK, Floats
from evalbayes.frequentist.normal import task_means
from evalbayes.frequentist.targets import needs_two

FEWEST_TASKS = 5
REACH = 30.0
"""Standard errors from the winner's score beyond which no mean is looked for."""
SAME = 1e-9
"""Slopes this close to 1 say nothing of the winner's own score."""


def rank_sets(outcomes: xr.Dataset, *, prob: float = 0.95, seed: int = 0, draws: int = 2000) -> xr.Dataset:
    """Return, for each entry, the ranks it may have on new tasks, all entries' sets holding together.

    Parameters
    ----------
    outcomes
        A board of two entries or more.
    prob
        Probability that all sets hold the true ranks.
    seed, draws
        Of the bootstrap.

    Returns
    -------
    xarray.Dataset
        Over config: ``observed`` (on the shared tasks), ``lowest`` and ``highest`` (rank, 1 is best), ``may_be_best``
        (bool); over (config, opponent): ``above`` (bool: config is above its opponent). Attrs ``critical`` (c),
        ``shared_tasks``, ``tasks``, ``configs``, ``prob``.

    Raises
    ------
    NotIdentifiedError
        If there is one entry, or fewer than 5 tasks that all were scored on.

    Examples
    --------
    >>> from evalbayes import datasets
    >>> found = rank_sets(datasets.load("simulated"), draws=500)
    >>> int(found.may_be_best.sum()), int(found.lowest.min())
    (6, 1)
    """
    check_prob(prob)
    board = _shared(outcomes, "rank_sets")
    scores = bootstrap.score_draws(board, "two_level_bootstrap", draws=draws, seed=seed).values
    at = bootstrap.observed(bootstrap.cells(board))
    gap = at[:, None] - at
    # A difference that resampling does not move is known to one task at best.
    se = np.maximum(_pair_sd(scores), 1 / board.sizes["task"])
    critical = float(np.quantile(_largest(scores, gap, se), prob))
    above = gap > critical * se
    names = board["config"].values
    lowest, highest = 1 + above.sum(axis=0), len(names) - above.sum(axis=1)
    facts = {"observed": at, "lowest": lowest, "highest": highest, "may_be_best": lowest == 1}
    data: dict[str, Any] = {name: ("config", value) for name, value in facts.items()}
    result = xr.Dataset(data | {"above": (("config", "opponent"), above)}, coords={"config": names, "opponent": names})
    said = {"critical": critical, "shared_tasks": board.sizes["task"], "prob": prob}
    return result.assign_attrs(said | {"tasks": "sampled", "configs": "fixed", "method": "two_level_bootstrap"})


def winner(outcomes: xr.Dataset, *, prob: float = 0.95) -> xr.Dataset:
    """Return the score of the entry that came first, corrected for that it came first.

    Parameters
    ----------
    outcomes
        A board of two entries or more.
    prob
        Coverage of the interval, given that this entry won.

    Returns
    -------
    xarray.Dataset
        An answer over config, of one: the winner. The estimate is median-unbiased given the win; with it come the
        ``observed`` score, ``cutoff`` (L, the score below which it would not have won) and ``shared_tasks``. Where the
        runner-up is close the correction is large and the interval long on its lower side.

    Raises
    ------
    NotIdentifiedError
        If there is one entry, fewer than 5 tasks that all were scored on, or two entries lead with the same score.

    Examples
    --------
    >>> from evalbayes import datasets
    >>> found = winner(datasets.load("simulated"))
    >>> found.config.item(), bool(found.estimate < found.observed)
    ('config-06', True)
    """
    check_prob(prob)
    board = _shared(outcomes, "winner")
    means = task_means(bootstrap.cells(board))
    score, tasks = means.mean(axis=1), means.shape[1]
    first = int(np.argmax(score))
    tied = board["config"].values[score >= score[first] - bootstrap.NO_SPREAD]
    if tied.size > 1:
        raise NotIdentifiedError(f"winner: {', '.join(map(str, tied[:3]))} lead with the same score; none has won")
    covariance = np.cov(means) / tasks
    se = float(np.sqrt(covariance[first, first]))
    if se < bootstrap.NO_SPREAD:
        raise NotIdentifiedError("winner: every task has the winner's mean: a task variance of 0 is no certainty")
    limits = _limits(score, covariance, first)
    # The greater the mean, the lower the level at which the observed score lies.
    levels = (0.5, (1 + prob) / 2, (1 - prob) / 2)
    middle, low, high = (np.clip(_mean_at(score[first], se, limits, level), 0.0, 1.0) for level in levels)
    one = {"config": board["config"].values[[first]]}
    of: dict[str, Any] = {"dims": "config", "coords": one}
    ends = xr.DataArray([[low, high]], dims=("config", "ci_bound"), coords=one)
    return answer(
        xr.DataArray([middle], **of),
        xr.DataArray([se], **of),
        ends,
        quantity="winner",
        tasks="sampled",
        configs="fixed",
        method="conditional_normal",
        prob=prob,
        ci_kind="conditional",
        observed=xr.DataArray([score[first]], **of),
        cutoff=xr.DataArray([limits[0]], **of),
        shared_tasks=xr.DataArray([tasks], **of),
    )


def _shared(outcomes: xr.Dataset, name: str) -> xr.Dataset:
    """Return the board of the entries that have runs, on the tasks that all of them were scored on."""
    scored = outcomes["trials"] > 0
    board = outcomes.isel(config=scored.any("task").values)
    needs_two(name, board)
    board = board.isel(task=scored.sel(config=board["config"].values).all("config").values)
    if board.sizes["task"] < FEWEST_TASKS:
        raise NotIdentifiedError(
            f"{name}: {board.sizes['task']} tasks that every entry was scored on, {FEWEST_TASKS} needed; leave out "
            "entries that were scored on few"
        )
    return board


def _pair_sd(scores: Floats) -> Floats:
    """Return the standard deviation over draws of every difference, (config, config)."""
    covariance = np.cov(scores.T)
    spread = np.diag(covariance)
    return np.asarray(np.sqrt(np.maximum(spread[:, None] + spread - 2 * covariance, 0.0)))


def _largest(scores: Floats, gap: Floats, se: Floats) -> Floats:
    """Return, for each draw, how far the farthest difference is from the observed one, in standard errors."""
    step = max(1, BLOCK // gap.size)
    blocks = (scores[start : start + step] for start in range(0, len(scores), step))
    return np.concatenate(
        [np.abs((part[:, :, None] - part[:, None, :] - gap) / se).max(axis=(1, 2)) for part in blocks]
    )


def _limits(score: Floats, covariance: Floats, first: int) -> tuple[float, float]:
    """Return the scores between which the winner wins, all that is independent of its score held."""
    slope = covariance[first] / covariance[first, first]
    free, others = score - slope * score[first], np.arange(len(score)) != first
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = free / (1 - slope)
    below, above = others & (slope < 1 - SAME), others & (slope > 1 + SAME)
    return float(bound[below].max(initial=-np.inf)), float(bound[above].min(initial=np.inf))


def _mean_at(score: float, se: float, limits: tuple[float, float], level: float) -> float:
    """Return the mean of the normal, cut off at the limits, whose distribution function at ``score`` is ``level``."""

    def off(mean: float) -> float:
        low, high = ((limit - mean) / se for limit in limits)
        return float(stats.truncnorm.cdf((score - mean) / se, low, high) - level)

    ends = score - REACH * se, score + REACH * se
    if off(ends[0]) < 0 or off(ends[1]) > 0:
        return -np.inf if off(ends[0]) < 0 else np.inf
    return float(optimize.brentq(off, *ends))
