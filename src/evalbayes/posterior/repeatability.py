"""What repeated running can buy, from a fit: variance components of each config and what follows from them.

With z a new task, m = E mu, V = Var mu and W = E mu (1 - mu) over the fitted density of z, integrated at every draw::

    sigma_b^2 = V + W / (1 + kappa)        mu_w = W kappa / (1 + kappa)        kappa = inf where cells are additive

For the difference of two configs V becomes Var(mu_a - mu_b), in which what tasks have in common cancels, and the terms
of the cells, which are independent given mu, are added up. For ``tasks="fixed"`` both are moments over these tasks of
draws of the cells' own probabilities, with T - 1 under the sum of squares. The rest are functions of
r = mu_w / sigma_b^2 (`evalbayes.components`; arXiv 2606.00920); ratios are summarised by their median.
"""

from collections.abc import Iterable

import xarray as xr

from evalbayes import components
from evalbayes.components import function_of
from evalbayes.posterior.variances import Asked, answered


def between_variance(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    population: str = "model",
    clusters: str | None = None,
) -> xr.Dataset:
    """Variance over tasks of the success probability, sigma_b^2.

    In squared proportions, at most 1/4 (of a difference, 1).

    Parameters
    ----------
    fit
        From `evalbayes.fit`.
    tasks
        ``"sampled"``: new tasks from the same population. ``"fixed"``: a description of these.
    configs
        ``"fixed"``: the configs on the board.
    prob
        Coverage of the equal-tailed interval.
    reference
        A config: the answers are then of each config's difference from it, where what tasks have in common cancels.
    pooled
        Configs: the answer is then one, the median over those of them that have a value, draw by draw;
        ``configs_used`` says how many.
    population, clusters
        For sampled tasks, as in `score`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.
        NaN with its reason for a config that ran no task twice.

    Raises
    ------
    SamplingError
        If tasks are sampled and the fit's population failed its gate.
    NotIdentifiedError
        If future configs are asked for.
    OutcomesError
        If the reference is not on the board.
    ArgumentError
        If a word is not one of those above.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.between_variance(eb.fit(board)).estimate                            # doctest: +SKIP
    """
    asked = Asked("between_variance", tasks, configs, prob, reference, pooled, population, clusters)
    return answered(fit, asked, function_of("between_variance"), point="mean")


def within_variance(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    population: str = "model",
    clusters: str | None = None,
) -> xr.Dataset:
    """Variance of a run about its task's success probability, mu_w: the mean over tasks of p (1 - p).

    In squared proportions, at most 1/4 (of a difference, 1/2).

    Parameters
    ----------
    fit, tasks, configs, prob, reference, pooled, population, clusters
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.within_variance(eb.fit(board)).estimate                             # doctest: +SKIP
    """
    asked = Asked("within_variance", tasks, configs, prob, reference, pooled, population, clusters)
    return answered(fit, asked, function_of("within_variance"), point="mean")


def icc(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    population: str = "model",
    clusters: str | None = None,
) -> xr.Dataset:
    """Intraclass correlation, sigma_b^2 / (sigma_b^2 + mu_w), on the probability scale.

    How alike two runs of a task are: from 0 (one tells nothing of the other) to 1 (one run says all).

    Parameters
    ----------
    fit, tasks, configs, prob, reference, pooled, population, clusters
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.icc(eb.fit(board)).estimate                                         # doctest: +SKIP
    """
    asked = Asked("icc", tasks, configs, prob, reference, pooled, population, clusters)
    return answered(fit, asked, function_of("icc"))


def ceiling(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    population: str = "model",
    clusters: str | None = None,
) -> xr.Dataset:
    """All that repetition can ever buy, 1 + mu_w / sigma_b^2.

    The variance of a score at one run a task over that at infinitely many: intervals narrow by its square root at most.
    At least 1; inf where tasks do not differ.

    Parameters
    ----------
    tasks
        ``"sampled"``; for ``"fixed"`` ones NaN, as more runs of these lower the variance without end.
    fit, configs, prob, reference, pooled, population, clusters
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.ceiling(eb.fit(board)).estimate                                     # doctest: +SKIP
    """
    asked = Asked("ceiling", tasks, configs, prob, reference, pooled, population, clusters)
    return answered(fit, asked, function_of("ceiling"))


def aleatoric_share(
    fit: xr.DataTree,
    *,
    runs: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    population: str = "model",
    clusters: str | None = None,
) -> xr.Dataset:
    """Share of a score's variance that runs make, (mu_w / R) / (sigma_b^2 + mu_w / R).

    From 0 to 1; what is left is which tasks were drawn, and no run removes it.

    Parameters
    ----------
    runs
        R, the runs that each task gets.
    tasks
        ``"sampled"``; for ``"fixed"`` ones NaN, as more runs of these lower the variance without end.
    fit, configs, prob, reference, pooled, population, clusters
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.aleatoric_share(eb.fit(board), runs=5).estimate                     # doctest: +SKIP
    """
    asked = Asked("aleatoric_share", tasks, configs, prob, reference, pooled, population, clusters)
    return answered(fit, asked, function_of("aleatoric_share", runs=runs)).assign_coords(runs=runs)


def design_effect(
    fit: xr.DataTree,
    *,
    runs: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    population: str = "model",
    clusters: str | None = None,
) -> xr.Dataset:
    """Variance of a score over what it would be were all runs independent, 1 + (R - 1) ICC.

    From 1 to R.

    Parameters
    ----------
    runs
        R, the runs that each task gets.
    tasks
        ``"sampled"``; for ``"fixed"`` ones NaN, as more runs of these lower the variance without end.
    fit, configs, prob, reference, pooled, population, clusters
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.design_effect(eb.fit(board), runs=5).estimate                       # doctest: +SKIP
    """
    asked = Asked("design_effect", tasks, configs, prob, reference, pooled, population, clusters)
    return answered(fit, asked, function_of("design_effect", runs=runs)).assign_coords(runs=runs)


def design_factor(
    fit: xr.DataTree,
    *,
    runs: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    population: str = "model",
    clusters: str | None = None,
) -> xr.Dataset:
    """Square root of the design effect.

    How many times too narrow an interval is that takes all runs for independent: from 1 to the square root of R.

    Parameters
    ----------
    runs
        R, the runs that each task gets.
    tasks
        ``"sampled"``; for ``"fixed"`` ones NaN, as more runs of these lower the variance without end.
    fit, configs, prob, reference, pooled, population, clusters
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.design_factor(eb.fit(board), runs=5).estimate                       # doctest: +SKIP
    """
    asked = Asked("design_factor", tasks, configs, prob, reference, pooled, population, clusters)
    return answered(fit, asked, function_of("design_factor", runs=runs)).assign_coords(runs=runs)


def optimal_runs(
    fit: xr.DataTree,
    *,
    cost_ratio: float,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    pooled: Iterable[str] | None = None,
    population: str = "model",
    clusters: str | None = None,
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
    fit, configs, prob, reference, pooled, population, clusters
        As in `between_variance`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``, with ``whole``.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.optimal_runs(eb.fit(board), cost_ratio=10).estimate                 # doctest: +SKIP
    """
    asked = Asked("optimal_runs", tasks, configs, prob, reference, pooled, population, clusters)
    result = answered(fit, asked, function_of("optimal_runs", cost_ratio=cost_ratio))
    # R*^2 = r c_p / c_g is all that the whole number depends on.
    whole = components.whole_runs(result.estimate**2, 1.0)
    return result.assign(whole=whole).assign_coords(cost_ratio=cost_ratio)
