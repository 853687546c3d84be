"""Draws of configs' variance components, and answers made of them; see `evalbayes.posterior.repeatability`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import special

from evalbayes import components
from evalbayes.answer import TARGETS, Point, from_draws, unknown
from evalbayes.cells import ability, concentration, rates
from evalbayes.errors import NotIdentifiedError
from evalbayes.posterior.draws import (
    POPULATIONS,
    check_on_board,
    counts,
    dirichlet,
    effective,
    flat,
    identity,
    new_tasks,
    one_of,
    refuse_failed_population,
)
from evalbayes.posterior.score import withhold
from evalbayes.simulate import Floats


class Asked(NamedTuple):
    """What is asked, and of which target."""

    quantity: str
    tasks: str
    configs: str
    prob: float
    reference: str | None
    population: str


def answered(
    fit: xr.DataTree,
    asked: Asked,
    function: Callable[[Any, Any], Any],
    *,
    sampled_only: bool = False,
    point: Point = "median",
) -> xr.Dataset:
    """Answer with ``function`` of between and within variance, draw by draw."""
    quantity, tasks, configs, prob, reference, population = asked
    who = identity(fit, quantity, tasks=tasks, configs=configs, population=population, assume=None, prob=prob)
    if configs == "sampled":
        raise NotIdentifiedError(f"{quantity}: configs='sampled': nothing is offered for a future entry; name a config")
    between, within, reason = component_draws(fit, tasks=tasks, population=population, reference=reference)
    if sampled_only and tasks == "fixed":
        result = unknown({"config": reason["config"].values}, components.SAMPLED_ONLY, **who)
    else:
        draws = function(between, within).where(reason == "", 0.0)
        result = withhold(from_draws(draws, ess=effective(fit), point=point, **who), reason)
    return result if reference is None else result.assign_coords(reference=reference)


def component_draws(
    fit: xr.DataTree, *, tasks: str, population: str = "model", reference: str | None = None
) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Return draws (draw, config) of between and within variance and, over config, why they are not to be used."""
    one_of("tasks", tasks, TARGETS)
    one_of("population", population, POPULATIONS)
    posterior, (successes, trials) = flat(fit), counts(fit)
    at = ability(posterior)
    labels = at["config"].values.tolist()
    check_on_board(reference, labels)
    opponent = None if reference is None else labels.index(reference)
    if tasks == "sampled" and population == "model":
        refuse_failed_population(fit)
        parts = _over_new_tasks(posterior, opponent)
    else:
        rng = np.random.default_rng(int(fit.attrs["seed"]))
        shape = (posterior.sizes["draw"], trials.sizes["task"])
        weight = dirichlet(rng, *shape) if tasks == "sampled" else None
        parts = _over_these_tasks(rates(posterior, successes, trials, rng), weight, opponent)
    between, within = (at.copy(data=part) for part in parts)
    return between, within, _why_unknown(trials, reference)


def _why_unknown(trials: xr.DataArray, reference: str | None) -> xr.DataArray:
    once = trials.max("task") <= 1
    if reference is not None:
        once = once | once.sel(config=reference, drop=True)
    reason: xr.DataArray = xr.where(once, components.ONE_RUN, "")
    if reference is not None:
        reason = reason.where(reason["config"] != reference, components.ITSELF)
    return reason.astype(object)


def _over_new_tasks(posterior: xr.Dataset, opponent: int | None) -> tuple[Floats, Floats]:
    """Integrate over the density of task effects: between and within variance, (draw, config)."""
    kappa, shape = concentration(posterior), ability(posterior).shape
    between, within = np.empty(shape), np.empty(shape)
    for block, logit, weight in new_tasks(posterior):
        p = special.expit(logit)
        mean, square = (np.einsum("dcz,dz->dc", part, weight) for part in (p, p * p))
        noise = mean - square
        share = np.zeros_like(noise) if kappa is None else 1 / (1 + kappa[block])
        common = square - mean**2
        if opponent is not None:
            product = np.einsum("dcz,dz,dz->dc", p, p[:, opponent], weight)
            covariance = product - mean * mean[:, [opponent]]
            common = common + common[:, [opponent]] - 2 * covariance
        cells, runs = noise * share, noise * (1 - share)
        if opponent is not None:
            cells, runs = cells + cells[:, [opponent]], runs + runs[:, [opponent]]
        between[block], within[block] = np.maximum(common, 0.0) + cells, runs
    return between, within


def _over_these_tasks(blocks: Any, weight: Floats | None, opponent: int | None) -> tuple[Floats, Floats]:
    """Return moments over the board's tasks, weighted ones as of a population and equal ones with T - 1."""
    parts = []
    for block, p in blocks:
        tasks = p.shape[2]
        share = np.full((len(p), tasks), 1 / tasks) if weight is None else weight[block]
        noise = np.einsum("dct,dt->dc", p * (1 - p), share)
        if opponent is not None:
            noise, p = noise + noise[:, [opponent]], p - p[:, [opponent]]
        mean, square = (np.einsum("dct,dt->dc", part, share) for part in (p, p * p))
        scale = tasks / (tasks - 1) if weight is None else 1.0
        parts.append((scale * np.maximum(square - mean**2, 0.0), noise))
    between, within = (np.concatenate(part) for part in zip(*parts, strict=True))
    return between, within
