"""What repeated running can buy, from moments: variance components of each config and what follows from them.

For a config with n_t runs of task t, p_t = k_t / n_t and v_t = n_t p_t (1 - p_t) / (n_t - 1) over T scored tasks::

    mu_w      = mean of v_t over the tasks with two runs or more
    sigma_b^2 = s^2(p) - mean of v_t / n_t            s^2 over T - 1; mu_w stands in for v_t where n_t = 1

These are unbiased whatever the n_t, also where they go with difficulty, as the analysis-of-variance form is not. For
the difference of two configs p_t becomes p_at - p_bt on the tasks that both were scored on, and mu_w and the noise are
sums over the two. sigma_b^2 is cut at 0, its ``raw`` value kept. The rest are functions of r = mu_w / sigma_b^2
(`evalbayes.components`; arXiv 2606.00920).

``method="beta_binomial_ml"`` takes them from a Beta distribution of task rates, fitted by maximum likelihood, instead:
m (1 - m) rho and m (1 - m) (1 - rho).

Intervals, for ``tasks="sampled"``, are quantiles over resampled tasks with their runs as they are. For
``tasks="fixed"`` the components and the ICC describe these tasks and have no interval; the rest has no meaning there
and is NaN.
"""

from collections.abc import Iterable

import xarray as xr

from evalbayes import components
from evalbayes.components import function_of
from evalbayes.frequentist.variances import Asked, answered


def between_variance(
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Variance over tasks of the success probability, sigma_b^2.

    In squared proportions, at most 1/4 (of a difference, 1).

    Parameters
    ----------
    outcomes
        Over ``config`` and ``task``.
    tasks
        ``"sampled"``: new tasks from the same population. ``"fixed"``: a description of these.
    configs
        ``"fixed"``: the configs on the board.
    prob
        Coverage of the equal-tailed interval.
    reference
        A config: the answers are then of each config's difference from it, where what tasks have in common cancels.
    pooled
        Configs: the answer is then one, the median over those of them that have a value; ``configs_used`` is how many.
    method
        ``"moments"`` (default), or ``"beta_binomial_ml"``: task rates are taken to be Beta distributed
        (`evalbayes.frequentist.beta_binomial`). That is fragile where ``alpha`` and ``beta``, which come with the
        answer, are well below 1, as on most boards: the Beta then has its mass at 0 and 1, the few tasks that are
        neither decide, and its shape between them is an assumption.
    seed, draws
        Of the bootstrap over tasks.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``, with ``raw``, the value before it is cut at 0.
        NaN with its reason for a config that ran no task twice.

    Raises
    ------
    NotIdentifiedError
        If future configs are asked for.
    OutcomesError
        If the reference is not on the board.
    ArgumentError
        If a word is not one of those above.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[4, 2, 0, 3]], [[4] * 4], configs=["a"], tasks=list("wxyz"))
    >>> round(between_variance(board).estimate.item(), 4)
    0.1458
    """
    asked = Asked("between_variance", tasks, configs, prob, reference, pooled, method, seed, draws)
    return answered(outcomes, asked, function_of("between_variance"))


def within_variance(
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Variance of a run about its task's success probability, mu_w: the mean over tasks of p (1 - p).

    In squared proportions, at most 1/4 (of a difference, 1/2). With R runs of each task the average variance of arXiv
    2606.00920, the mean of k (R - k) / R^2, is (R - 1) / R of it; half the `flip_rate`.

    Parameters
    ----------
    outcomes, tasks, configs, prob, reference, pooled, method, seed, draws
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[4, 2, 0, 3]], [[4] * 4], configs=["a"], tasks=list("wxyz"))
    >>> round(within_variance(board).estimate.item(), 4)
    0.1458
    """
    asked = Asked("within_variance", tasks, configs, prob, reference, pooled, method, seed, draws)
    return answered(outcomes, asked, function_of("within_variance"))


def icc(
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Intraclass correlation, sigma_b^2 / (sigma_b^2 + mu_w), on the probability scale.

    How alike two runs of a task are: from 0 (one tells nothing of the other) to 1 (one run says all). ``raw``, by
    moments, is that of a sigma_b^2 not cut at 0, and may be negative.

    Parameters
    ----------
    outcomes, tasks, configs, prob, reference, pooled, method, seed, draws
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[4, 2, 0, 3]], [[4] * 4], configs=["a"], tasks=list("wxyz"))
    >>> round(icc(board).estimate.item(), 4)
    0.5
    """
    asked = Asked("icc", tasks, configs, prob, reference, pooled, method, seed, draws)
    return answered(outcomes, asked, function_of("icc"))


def ceiling(
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """All that repetition can ever buy, 1 + mu_w / sigma_b^2.

    The variance of a score at one run a task over that at infinitely many: intervals narrow by its square root at most.
    At least 1; inf where tasks do not differ.

    Parameters
    ----------
    tasks
        ``"sampled"``; for ``"fixed"`` ones NaN, as more runs of these lower the variance without end.
    outcomes, configs, prob, reference, pooled, method, seed, draws
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[4, 2, 0, 3]], [[4] * 4], configs=["a"], tasks=list("wxyz"))
    >>> round(ceiling(board).estimate.item(), 4)
    2.0
    """
    asked = Asked("ceiling", tasks, configs, prob, reference, pooled, method, seed, draws)
    return answered(outcomes, asked, function_of("ceiling"))


def aleatoric_share(
    outcomes: xr.Dataset,
    *,
    runs: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Share of a score's variance that runs make, (mu_w / R) / (sigma_b^2 + mu_w / R).

    From 0 to 1; what is left is which tasks were drawn, and no run removes it.

    Parameters
    ----------
    runs
        R, the runs that each task gets.
    tasks
        ``"sampled"``; for ``"fixed"`` ones NaN, as more runs of these lower the variance without end.
    outcomes, configs, prob, reference, pooled, method, seed, draws
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[4, 2, 0, 3]], [[4] * 4], configs=["a"], tasks=list("wxyz"))
    >>> round(aleatoric_share(board, runs=5).estimate.item(), 4)
    0.1667
    """
    asked = Asked("aleatoric_share", tasks, configs, prob, reference, pooled, method, seed, draws)
    return answered(outcomes, asked, function_of("aleatoric_share", runs=runs)).assign_coords(runs=runs)


def design_effect(
    outcomes: xr.Dataset,
    *,
    runs: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Variance of a score over what it would be were all runs independent, 1 + (R - 1) ICC.

    From 1 to R.

    Parameters
    ----------
    runs
        R, the runs that each task gets.
    tasks
        ``"sampled"``; for ``"fixed"`` ones NaN, as more runs of these lower the variance without end.
    outcomes, configs, prob, reference, pooled, method, seed, draws
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[4, 2, 0, 3]], [[4] * 4], configs=["a"], tasks=list("wxyz"))
    >>> round(design_effect(board, runs=5).estimate.item(), 4)
    3.0
    """
    asked = Asked("design_effect", tasks, configs, prob, reference, pooled, method, seed, draws)
    return answered(outcomes, asked, function_of("design_effect", runs=runs)).assign_coords(runs=runs)


def design_factor(
    outcomes: xr.Dataset,
    *,
    runs: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Square root of the design effect.

    How many times too narrow an interval is that takes all runs for independent: from 1 to the square root of R.

    Parameters
    ----------
    runs
        R, the runs that each task gets.
    tasks
        ``"sampled"``; for ``"fixed"`` ones NaN, as more runs of these lower the variance without end.
    outcomes, configs, prob, reference, pooled, method, seed, draws
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[4, 2, 0, 3]], [[4] * 4], configs=["a"], tasks=list("wxyz"))
    >>> round(design_factor(board, runs=5).estimate.item(), 4)
    1.7321
    """
    asked = Asked("design_factor", tasks, configs, prob, reference, pooled, method, seed, draws)
    return answered(outcomes, asked, function_of("design_factor", runs=runs)).assign_coords(runs=runs)


def optimal_runs(
    outcomes: xr.Dataset,
    *,
    cost_ratio: float,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Runs a task that make the variance least at a fixed cost, R* = sqrt(mu_w c_p / (sigma_b^2 c_g)).

    A real number. ``whole`` is the best whole one: R + 1 are better than R while
    c_p / c_g > R (R + 1) sigma_b^2 / mu_w.

    Parameters
    ----------
    cost_ratio
        c_p / c_g: the cost of one more task over that of one more run of a task; 0 where only runs cost.
    tasks
        ``"sampled"``; for ``"fixed"`` ones NaN, as more runs of these lower the variance without end.
    outcomes, configs, prob, reference, pooled, method, seed, draws
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``, with ``whole``.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[4, 2, 0, 3]], [[4] * 4], configs=["a"], tasks=list("wxyz"))
    >>> round(optimal_runs(board, cost_ratio=10).estimate.item(), 4)
    3.1623
    """
    asked = Asked("optimal_runs", tasks, configs, prob, reference, pooled, method, seed, draws)
    result = answered(outcomes, asked, function_of("optimal_runs", cost_ratio=cost_ratio))
    # R*^2 = r c_p / c_g is all that the whole number depends on.
    whole = components.whole_runs(result.estimate**2, 1.0)
    return result.assign(whole=whole).assign_coords(cost_ratio=cost_ratio)
