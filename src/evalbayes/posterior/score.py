"""The score: mean over tasks of each task's success probability, with equal task weights."""

from typing import Any

import xarray as xr

from evalbayes.answer import BOUNDS, from_draws
from evalbayes.posterior.draws import counts, effective, future_score_draws, identity, score_draws


def score(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    population: str = "model",
    assume: str | None = None,
    clusters: str | None = None,
) -> xr.Dataset:
    """Success probability of each config, on new tasks or on new runs of these.

    Parameters
    ----------
    fit
        From `evalbayes.fit`.
    tasks
        ``"sampled"``: new tasks from the same population. ``"fixed"``: new runs of these tasks.
    configs
        ``"fixed"``: the configs on the board. ``"sampled"``: one future entry from the same population of configs.
    prob
        Coverage of the equal-tailed interval.
    population
        For sampled tasks, ``"model"`` (the fitted density of task effects) or ``"reweighted"`` (the run tasks under
        Dirichlet weights).
    assume
        For fixed tasks, ``"no_interaction"`` takes the additive model's interval for configs with one run per cell.
    clusters
        For sampled tasks of a fit with ``task_groups``: ``"sampled"`` (the default there), new tasks of new groups, or
        ``"fixed"``, new tasks of the groups on the board, as many of each.

    Returns
    -------
    xarray.Dataset
        An answer over ``config`` (none for a future entry), with ``observed``, the observed mean of task means, which
        is exact; ``imputed``, how many tasks of each config are filled in by the model; and ``interval_mcse``. For
        fixed tasks with one run per cell the estimate is the observed mean, and its interval NaN with the reason.

    Raises
    ------
    SamplingError
        If tasks are sampled and the fit's population failed its gate.
    NotIdentifiedError
        If a future entry is asked for on these very tasks.
    ValueError
        If a word is not one of those above.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> answer = eb.posterior.score(eb.fit(eb.datasets.load("simulated")))           # doctest: +SKIP
    >>> answer.tasks.item(), answer.estimate.dims                                    # doctest: +SKIP
    ('sampled', ('config',))
    """
    target: dict[str, Any] = {"tasks": tasks, "population": population, "clusters": clusters}
    who = identity(fit, "score", configs=configs, assume=assume, prob=prob, **target)
    if configs == "sampled":
        return from_draws(future_score_draws(fit, **target), ess=effective(fit), **who)
    draws, reason = score_draws(fit, assume=assume, **target)
    successes, trials = counts(fit)
    observed = (successes / trials.where(trials > 0)).mean("task")
    result = from_draws(draws, ess=effective(fit), observed=observed, imputed=(trials == 0).sum("task"), **who)
    return withhold(result, reason, estimate=observed if tasks == "fixed" else None)


def withhold(result: xr.Dataset, reason: xr.DataArray, *, estimate: xr.DataArray | None = None) -> xr.Dataset:
    """Make an answer NaN with its reason wherever there is one; ``estimate`` stands in for the point."""
    known = reason == ""
    result = result.copy()
    result["estimate"] = result.estimate.where(known, estimate if estimate is not None else float("nan"))
    for name in ("se", "interval", "interval_mcse"):
        if name in result:
            result[name] = result[name].where(known)
    result["reason"] = xr.where(known, result.reason, reason).astype(object)
    result["interval"] = result.interval.transpose(*result.estimate.dims, "ci_bound").sel(ci_bound=list(BOUNDS))
    return result
