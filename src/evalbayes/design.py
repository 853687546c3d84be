"""Planning the next board: what runs and tasks buy, what a board can resolve, and how likely it is to.

A score over N new tasks with R runs each has variance (sigma_b^2 + mu_w / R) / N, with the components of one config or
of the difference of two (`evalbayes.components`; arXiv 2606.00920). Everything here follows from that and from the
normal approximation; the components come with their uncertainty, from a fit's draws or from resampled tasks.
"""

from collections.abc import Callable, Iterable
from statistics import NormalDist
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from evalbayes import components
from evalbayes.answer import check, check_prob, from_draws
from evalbayes.errors import ArgumentError, check_whole
from evalbayes.pilot import pilot as pilot
from evalbayes.schema import require_board
from evalbayes.textbook import quantile

ROUNDING = 1e-9
"""A gap below this is rounding error of none."""
RUNS = (1, 2, 3, 4, 5, 6, 8, 10, 16)


def cost_curve(
    source: xr.DataTree | xr.Dataset,
    *,
    cost_ratio: float,
    runs: int | Iterable[int] = RUNS,
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
) -> xr.Dataset:
    """Return how much wider an interval is with R runs of a task than at the best R, at the same cost.

    With r = mu_w / sigma_b^2 and c = c_p / c_g, the cost of a task over that of a run, the squared width is

        (1 + r / R) (c + R) / (sqrt(c) + sqrt(r))^2,

    which is 1 at R* = sqrt(r c); where R* is below 1 the width is that over one run's. The curve is flat: half or twice
    the best R costs a few percent.

    Parameters
    ----------
    source
        A fit, or a board for the components by moments.
    cost_ratio
        Cost of one more task over that of one more run of a task that is there.
    runs
        The numbers of runs to look at.
    prob
        Coverage of the intervals.
    reference
        A config: the curve is then that of each config's difference from it.
    pooled
        Configs: one curve, the median over them.

    Returns
    -------
    xarray.Dataset
        An answer over ``(runs, config)``: a ratio of widths, 1 or more, by its median. ``tasks="sampled"``.

    Raises
    ------
    ArgumentError
        If the cost ratio or a number of runs is none.

    Examples
    --------
    >>> from evalbayes import datasets
    >>> curve = cost_curve(datasets.load("repeated_runs").isel(config=[0]), cost_ratio=88, runs=[1, 5])
    >>> curve.estimate.dims, bool(curve.estimate[0, 0] > curve.estimate[1, 0])
    (('runs', 'config'), True)
    """
    cost = components.check_cost_ratio(cost_ratio)

    def answer(count: int) -> xr.Dataset:
        def width(between: Any, within: Any) -> Any:
            return components.relative_width(components.ratio(between, within), count, cost)

        return _of_components(source, "cost_curve", width, prob=prob, reference=reference, pooled=pooled)

    return _over_runs(answer, runs).assign_coords(cost_ratio=cost)


def tasks_needed(
    source: xr.DataTree | xr.Dataset,
    *,
    width: float,
    runs: int | Iterable[int] = RUNS,
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
) -> xr.Dataset:
    """Return how many tasks give a score, or a difference of two, an interval of the width wanted.

    (2 z / width)^2 (sigma_b^2 + mu_w / R) tasks with R runs each, z being the normal quantile of ``prob``; not rounded.

    Parameters
    ----------
    source, runs, prob, reference, pooled
        As in `cost_curve`; ``prob`` is also the coverage of the interval that is planned.
    width
        From its lower to its upper end, in proportions: 0.1 is ten points.

    Returns
    -------
    xarray.Dataset
        An answer over ``(runs, config)``.

    Raises
    ------
    ArgumentError
        If the width is not between 0 and 2, or a number of runs is none.

    Examples
    --------
    >>> from evalbayes import datasets
    >>> one = datasets.load("repeated_runs").isel(config=[0])
    >>> tasks_needed(one, width=0.1, runs=[1, 5]).estimate.round(0).values.ravel().tolist()
    [373.0, 306.0]
    """
    check_prob(prob)
    unit = (2 * quantile(prob) / check_width(width)) ** 2

    def answer(count: int) -> xr.Dataset:
        def needed(between: Any, within: Any) -> Any:
            return unit * (between + within / count)

        return _of_components(source, "tasks_needed", needed, prob=prob, reference=reference, pooled=pooled)

    return _over_runs(answer, runs).assign_coords(width=width)


def assurance(
    fit: xr.DataTree,
    *,
    reference: str,
    tasks: int,
    runs: int = 1,
    prob: float = 0.95,
    population: str = "model",
) -> xr.Dataset:
    """Return the probability that a new board of so many tasks and runs resolves each config from the reference.

    Resolved means that the interval of coverage ``prob`` of the difference excludes zero on the side of the truth. At
    every draw, with d the true difference and SE^2 = (sigma_b^2 + mu_w / R) / N of the difference, that has probability
    Phi(|d| / SE - z); its mean over draws is the assurance (O'Hagan, Stevens and Campbell 2005, Pharmaceutical
    Statistics 4, 187-201): power, averaged over what is not known.

    Parameters
    ----------
    fit
        From `evalbayes.fit`.
    reference
        The config to compare with.
    tasks, runs
        Of the new board: N new tasks from the same population, R runs of each.
    prob
        Coverage of the interval on the new board.
    population
        As in `posterior.score`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``. The estimate is the assurance; its interval is that of the power over draws, wide
        where it is not known whether there is a difference to find.

    Raises
    ------
    OutcomesError
        If the reference is not on the board.
    ArgumentError
        If tasks or runs is no whole number from 1.

    Examples
    --------
    >>> import evalbayes as eb                                                              # doctest: +SKIP
    >>> eb.design.assurance(fit, reference="model-a", tasks=500, runs=2)                    # doctest: +SKIP
    """
    from evalbayes.posterior.draws import effective, identity, score_draws
    from evalbayes.posterior.score import withhold
    from evalbayes.posterior.variances import component_draws

    who = identity(fit, "assurance", tasks="sampled", configs="fixed", population=population, assume=None, prob=prob)
    check_prob(prob)
    count, size = components.check_runs(runs), _check_tasks(tasks)
    between, within, reason, _ = component_draws(fit, tasks="sampled", population=population, reference=reference)
    score, _ = score_draws(fit, tasks="sampled", population=population)
    gap = score - score.sel(config=reference, drop=True)
    se = ((between + within / count) / size) ** 0.5
    power = xr.apply_ufunc(lambda x: stats.norm.cdf(x - quantile(prob)), abs(gap) / se.where(reason == "", 1.0))
    result = withhold(from_draws(power, ess=effective(fit), **who), reason)
    return result.assign_coords(reference=reference, n_tasks=size, runs=count)


def resolution(outcomes: xr.Dataset, *, prob: float = 0.95, power: float = 0.8) -> xr.Dataset:
    """Return the smallest gap between two configs that a board like this one resolves.

    (z_prob + z_power) SE of the difference on new tasks: ``paired``, from the standard deviation over the T shared
    tasks of the difference of task means, / sqrt(T); and ``unpaired``, from the two configs' own. Pairing saves what is
    hard for both.

    Parameters
    ----------
    outcomes
        A board.
    prob, power
        Coverage of the interval of the difference, and the probability that it excludes zero.

    Returns
    -------
    xarray.Dataset
        Over ``(config, opponent)``, in proportions: ``paired``, ``unpaired``, ``observed`` (the difference on shared
        tasks), ``shared`` (how many). NaN for a config against itself, with fewer than two shared tasks, and where no
        task moves the difference: a variance of 0 is no certainty.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[1, 1, 0, 0], [1, 0, 1, 0]], [[1] * 4] * 2, configs=["a", "b"], tasks=list("wxyz"))
    >>> found = resolution(board).sel(config="a", opponent="b")
    >>> round(found.paired.item(), 3), round(found.unpaired.item(), 3)
    (1.144, 1.144)
    """
    check_prob(prob)
    z = quantile(prob) + NormalDist().inv_cdf(_check_power(power))
    trials = require_board(outcomes)["trials"].reset_coords(drop=True)
    first = outcomes["successes"].reset_coords(drop=True) / trials.where(trials > 0)
    second = first.rename(config="opponent")
    both = first.notnull() & second.notnull()
    shared = both.sum("task")
    able = (shared > 1) & (shared["config"] != shared["opponent"])
    gap = first - second
    own = [side.where(both).var("task", ddof=1) for side in (first, second)]
    facts: dict[str, xr.DataArray] = {
        "paired": z * (gap.var("task", ddof=1) / shared) ** 0.5,
        "unpaired": z * ((own[0] + own[1]) / shared) ** 0.5,
        "observed": gap.mean("task"),
    }
    seen = {name: able if name == "observed" else able & (fact > ROUNDING) for name, fact in facts.items()}
    result = xr.Dataset({name: fact.where(seen[name]) for name, fact in facts.items()})
    return result.assign(shared=shared).assign_coords(tasks="sampled", configs="fixed", ci_prob=prob, power=power)


def smallest_gap(score: float, tasks: int, *, prob: float = 0.95, power: float = 0.8) -> float:
    """Return the gap that two unpaired scores near ``score``, of one run of as many tasks each, resolve.

    (z_prob + z_power) sqrt(2 p (1 - p) / N), for new tasks (``tasks="sampled"``): before there is a board.

    Examples
    --------
    >>> round(smallest_gap(0.5, 164), 4), round(smallest_gap(0.79, 500), 4)
    (0.1547, 0.0722)
    """
    check_prob(prob)
    if not 0 < score < 1:
        raise ArgumentError(f"score={score}: give a score between 0 and 1, both excluded")
    z = quantile(prob) + NormalDist().inv_cdf(_check_power(power))
    return float(z * np.sqrt(2 * score * (1 - score) / _check_tasks(tasks)))


def smallest_lead(discordant: int, *, level: float = 0.05) -> int | None:
    """Return the smallest net lead that exact McNemar's test resolves among so many discordant tasks.

    The test is the two-sided binomial one of the tasks that exactly one of the two solved; None where no lead among so
    few reaches the level.

    Examples
    --------
    >>> [smallest_lead(n) for n in (5, 6, 20, 40, 80)]
    [None, 6, 10, 14, 20]
    """
    check_prob(level)
    check_whole("discordant", discordant, 0)
    for fewer in range(discordant // 2, -1, -1):
        if stats.binomtest(fewer, discordant, 0.5).pvalue <= level:
            return discordant - 2 * fewer
    return None


def _of_components(
    source: xr.DataTree | xr.Dataset, quantity: str, function: Callable[[Any, Any], Any], **asked: Any
) -> xr.Dataset:
    """Answer with a function of between and within variance, for new tasks, from a fit or by moments."""
    if isinstance(source, xr.DataTree):
        from evalbayes.posterior import variances

        return variances.answered(source, variances.Asked(quantity, "sampled", "fixed", **asked), function)
    from evalbayes.frequentist import variances as resampled

    return resampled.answered(source, resampled.Asked(quantity, "sampled", "fixed", **asked), function)


def _over_runs(answer: Callable[[int], xr.Dataset], runs: int | Iterable[int]) -> xr.Dataset:
    asked = [int(runs)] if isinstance(runs, int | np.integer) else runs
    counts = list(dict.fromkeys(components.check_runs(count) for count in asked))
    if not counts:
        raise ArgumentError("runs=[]: give the numbers of runs to look at")
    return check(xr.concat([answer(count) for count in counts], "runs").assign_coords(runs=counts))


def check_width(width: float) -> float:
    """Refuse what is not the width of an interval of a score or a difference."""
    if not 0 < width < 2:
        raise ArgumentError(f"width={width}: give the interval's width as a proportion, such as 0.1 for ten points")
    return width


def _check_tasks(tasks: Any) -> int:
    check_whole("tasks", tasks, 1, "give how many tasks the board is to have, a whole number from 1")
    return int(tasks)


def _check_power(power: float) -> float:
    if not 0.5 <= power < 1:
        raise ArgumentError(f"power={power}: give a probability from 0.5 to 1, such as 0.8")
    return power
