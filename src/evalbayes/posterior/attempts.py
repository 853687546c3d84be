"""Several runs of one task, from a fit: pass@k, pass^k, agreement and flip rate; formulas in `evalbayes.attempts`.

For new tasks the chances that all runs pass, or fail, are integrated over the fitted density of task effects at every
draw; for these tasks they are those of the cells' own probabilities. Unlike estimates from counts they exist for any
number of runs: a fit says what its model says of runs that nobody made, and its interval how well that is known.
"""

from typing import Any

import numpy as np
import xarray as xr
from scipy import special

from evalbayes import attempts, components
from evalbayes.answer import TARGETS, from_draws
from evalbayes.cells import ability, concentration, rates
from evalbayes.errors import NotIdentifiedError
from evalbayes.posterior.draws import (
    NO_RUN,
    POPULATIONS,
    counts,
    effective,
    flat,
    identity,
    new_tasks,
    one_of,
    refuse_failed_population,
    task_weights,
)
from evalbayes.posterior.score import withhold
from evalbayes.simulate import Floats


def pass_at_k(
    fit: xr.DataTree,
    *,
    k: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    population: str = "model",
    clusters: str | None = None,
) -> xr.Dataset:
    """Chance that at least one of k runs of a task passes (pass@k): mean over tasks of 1 - E (1 - p)^k.

    Parameters
    ----------
    fit
        From `evalbayes.fit`.
    k
        Runs of a task, as many as you like.
    tasks
        ``"sampled"``: new tasks from the same population. ``"fixed"``: new runs of these.
    configs
        ``"fixed"``: the configs on the board.
    prob
        Coverage of the equal-tailed interval.
    population, clusters
        For sampled tasks, as in `score`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``, in [0, 1]. NaN with its reason for a config that ran no task twice, unless k is 1.

    Raises
    ------
    SamplingError
        If tasks are sampled and the fit's population failed its gate.
    NotIdentifiedError
        If future configs are asked for.
    ArgumentError
        If k is no whole number from 1, or a word is not one of those above.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.pass_at_k(eb.fit(eb.datasets.load("simulated")), k=5)           # doctest: +SKIP
    """
    return _answered(fit, "pass_at_k", attempts.check_count("k", k), tasks, configs, prob, population, clusters)


def pass_all_k(
    fit: xr.DataTree,
    *,
    k: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    population: str = "model",
    clusters: str | None = None,
) -> xr.Dataset:
    """Chance that all of k runs of a task pass (pass^k): mean over tasks of E p^k.

    Parameters
    ----------
    fit, k, tasks, configs, prob, population, clusters
        As in `pass_at_k`.

    Returns
    -------
    xarray.Dataset
        As `pass_at_k`.
    """
    return _answered(fit, "pass_all_k", attempts.check_count("k", k), tasks, configs, prob, population, clusters)


def agreement_rate(
    fit: xr.DataTree,
    *,
    runs: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    population: str = "model",
    clusters: str | None = None,
) -> xr.Dataset:
    """Chance that so many runs of a task all agree, passed or failed.

    Parameters
    ----------
    fit, tasks, configs, prob, population, clusters
        As in `pass_at_k`.
    runs
        Runs of a task.

    Returns
    -------
    xarray.Dataset
        As `pass_at_k`.
    """
    return _answered(
        fit, "agreement_rate", attempts.check_count("runs", runs), tasks, configs, prob, population, clusters
    )


def flip_rate(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    population: str = "model",
    clusters: str | None = None,
) -> xr.Dataset:
    """Chance that two runs of a task differ: mean over tasks of E 2 p (1 - p), twice the within variance.

    Parameters
    ----------
    fit, tasks, configs, prob, population, clusters
        As in `pass_at_k`.

    Returns
    -------
    xarray.Dataset
        As `pass_at_k`.
    """
    return _answered(fit, "flip_rate", 2, tasks, configs, prob, population, clusters)


def _answered(
    fit: xr.DataTree,
    quantity: str,
    runs: int,
    tasks: str,
    configs: str,
    prob: float,
    population: str,
    clusters: str | None,
) -> xr.Dataset:
    target: dict[str, Any] = {"tasks": tasks, "population": population, "clusters": clusters}
    who = identity(fit, quantity, configs=configs, assume=None, prob=prob, **target)
    one_of("tasks", tasks, TARGETS)
    one_of("population", population, POPULATIONS)
    if configs == "sampled":
        raise NotIdentifiedError(f"{quantity}: configs='sampled': nothing is offered for a future entry; name a config")
    posterior, (successes, trials) = flat(fit), counts(fit)
    at = ability(posterior)
    if tasks == "sampled" and population == "model":
        refuse_failed_population(fit)
        chances = _over_new_tasks(posterior, quantity, runs, who.get("clusters"))
    else:
        rng = np.random.default_rng(int(fit.attrs["seed"]))
        shape = (posterior.sizes["draw"], trials.sizes["task"])
        sampled = tasks == "sampled"
        weight = task_weights(fit, rng, who.get("clusters")) if sampled else np.full(shape, 1 / shape[1])
        chances = np.empty(at.shape)
        for block, p in rates(posterior, successes, trials, rng):
            chances[block] = np.einsum("dct,dt->dc", attempts.value(quantity, p**runs, (1 - p) ** runs), weight[block])
    most = trials.max("task")
    reason = xr.where(most <= 1, components.ONE_RUN if runs > 1 else "", "")
    reason = xr.where(most == 0, NO_RUN, reason).astype(object)
    return withhold(from_draws(at.copy(data=chances), ess=effective(fit), runs=runs, **who), reason)


def _over_new_tasks(posterior: xr.Dataset, quantity: str, runs: int, clusters: str | None = None) -> Floats:
    """Integrate over the density of task effects, (draw, config)."""
    kappa, result = concentration(posterior), np.empty(ability(posterior).shape)
    for block, logit, weight in new_tasks(posterior, clusters):
        psi: Any = 0.0 if kappa is None else 1 / kappa[block, :, None]
        alike = (attempts.chance_of_all(special.expit(side * logit), psi, runs) for side in (1, -1))
        result[block] = np.einsum("dcz,dz->dc", attempts.value(quantity, *alike), weight)
    return result
