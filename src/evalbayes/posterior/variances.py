"""Draws of configs' variance components, and answers made of them; see `evalbayes.posterior.repeatability`."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import special

from evalbayes import components, links
from evalbayes.answer import TARGETS, Point, from_draws
from evalbayes.cells import BLOCK, ability, concentration, discrimination, families, rates
from evalbayes.errors import NotIdentifiedError
from evalbayes.posterior.draws import (
    NO_RUN,
    POPULATIONS,
    check_on_board,
    clusters_of,
    counts,
    effective,
    flat,
    identity,
    new_tasks,
    one_of,
    population_nodes,
    refuse_failed_population,
    task_weights,
)
from evalbayes.posterior.score import withhold
from evalbayes.schema import Int64
from evalbayes.simulate import Floats


class Asked(NamedTuple):
    """What is asked, and of which target."""

    quantity: str
    tasks: str
    configs: str
    prob: float
    reference: str | None
    pooled: Iterable[str] | None = None
    population: str = "model"
    clusters: str | None = None


class Components(NamedTuple):
    """Draws (draw, config) of between and within variance and, over config, why they are not to be used.

    ``common`` is the part of the between variance that cells do not make, where new tasks are integrated over.
    """

    between: xr.DataArray
    within: xr.DataArray
    reason: xr.DataArray
    common: xr.DataArray | None


class Apart(NamedTuple):
    """Configs of other families than the opponent's, and E p_a p_b with it on a new task (draw, one of them)."""

    others: Int64
    product: Floats


RESIDUAL = np.linspace(-5.0, 5.0, 21)
"""Nodes of a residual: where omega times a discrimination is 3 the trapezoidal rule errs by 2e-6, and less below."""


def answered(
    fit: xr.DataTree, asked: Asked, function: Callable[[Any, Any], Any], *, point: Point = "median"
) -> xr.Dataset:
    """Answer with ``function`` of between and within variance, draw by draw."""
    quantity, tasks, configs, prob, reference, pooled, population, clusters = asked
    target: dict[str, Any] = {"tasks": tasks, "population": population, "clusters": clusters}
    who = identity(fit, quantity, configs=configs, assume=None, prob=prob, **target)
    if configs == "sampled":
        raise NotIdentifiedError(f"{quantity}: configs='sampled': nothing is offered for a future entry; name a config")
    found = component_draws(fit, reference=reference, **target)
    reason = found.reason
    if tasks == "fixed" and quantity not in components.DESCRIBED:
        reason = reason.where(reason != "", components.SAMPLED_ONLY)
    draws = function(found.between, found.within)
    options: dict[str, Any] = {"ess": effective(fit), "point": point, **who}
    if pooled is not None:
        names = components.pooled_names(pooled, reason["config"].values.tolist(), reference)
        result = _pooled(draws, reason, names, options)
    else:
        result = withhold(from_draws(draws.where(reason == "", 0.0), **options), reason)
        if reference is None and bool((reason == components.ONE_RUN).any()):
            result = _bounded(result, found, function)
    return result if reference is None else result.assign_coords(reference=reference)


def _pooled(draws: xr.DataArray, reason: xr.DataArray, names: list[str], options: dict[str, Any]) -> xr.Dataset:
    """Answer with the median, draw by draw, over the configs that have a value, of those named."""
    known = [name for name in names if reason.sel(config=name).item() == ""]
    middle = components.middle(draws.sel(config=known or names))
    why = xr.DataArray(np.array("" if known else reason.sel(config=names[0]).item(), dtype=object))
    result = withhold(from_draws(middle if known else 0.0 * middle, **options), why)
    return result.assign_coords(pooled=components.pooled_label(names), configs_used=len(known))


def _bounded(result: xr.Dataset, found: Components, function: Callable[[Any, Any], Any]) -> xr.Dataset:
    """Add, for configs that ran every task once, what the answer is if their cells are additive or never vary.

    One run tells mean and task effects, and so V and W; kappa may be anything, and with it the answer anything between
    those at kappa = inf and at kappa = 0.
    """
    if found.common is None:
        return result
    total = found.between + found.within
    once = found.reason == components.ONE_RUN
    ends = [function(found.common, total - found.common), function(total, 0.0 * total)]
    first, second = (end.median("draw").where(once) for end in ends)
    return result.assign(lowest=np.minimum(first, second), highest=np.maximum(first, second))


def component_draws(
    fit: xr.DataTree,
    *,
    tasks: str,
    population: str = "model",
    reference: str | None = None,
    clusters: str | None = None,
) -> Components:
    """Return draws of the variance components of every config, or of its difference from the reference."""
    one_of("tasks", tasks, TARGETS)
    one_of("population", population, POPULATIONS)
    clusters = clusters_of(fit, tasks, clusters)
    posterior, (successes, trials) = flat(fit), counts(fit)
    at = ability(posterior)
    labels = at["config"].values.tolist()
    check_on_board(reference, labels)
    opponent = None if reference is None else labels.index(reference)
    reason = _why_unknown(trials, reference, crossed="task_effect" in posterior)
    if tasks == "sampled" and population == "model":
        refuse_failed_population(fit)
        between, within, common = (at.copy(data=part) for part in _over_new_tasks(posterior, opponent, clusters))
        return Components(between, within, reason, common)
    rng = np.random.default_rng(int(fit.attrs["seed"]))
    weight = task_weights(fit, rng, clusters) if tasks == "sampled" else None
    parts = _over_these_tasks(rates(posterior, successes, trials, rng), weight, opponent)
    return Components(at.copy(data=parts[0]), at.copy(data=parts[1]), reason, None)


def _why_unknown(trials: xr.DataArray, reference: str | None, *, crossed: bool) -> xr.DataArray:
    """Return over config why its components are not known, or those of its difference from the reference."""
    most = trials.max("task")
    if reference is not None:
        most = most.clip(max=most.sel(config=reference, drop=True))
    reason: xr.DataArray = xr.where(most == 1, components.ONE_RUN, "")
    reason = reason.where(most > 0, NO_RUN)
    if reference is not None:
        apart, unshared = (
            pairs.sel(opponent=reference, drop=True) for pairs in (links.why_apart(trials), links.unshared(trials))
        )
        only_by_others = f"{links.NOT_SHARED}; run some tasks with both" if crossed else links.EXCHANGEABLE
        reason = xr.where(reason == "", apart.where(~unshared, only_by_others), reason)
        reason = reason.where(reason["config"] != reference, components.ITSELF)
    return reason.astype(object)


def _over_new_tasks(posterior: xr.Dataset, opponent: int | None, clusters: str | None = None) -> Floats:
    """Integrate over the density of task effects: between and within variance, and V, (3, draw, config)."""
    kappa, shape = concentration(posterior), ability(posterior).shape
    parts = np.empty((3, *shape))
    apart = None if opponent is None or "interaction_sd" not in posterior else _apart(posterior, opponent, clusters)
    for block, logit, weight in new_tasks(posterior, clusters):
        p = special.expit(logit)
        mean, square = (np.einsum("dcz,dz->dc", part, weight) for part in (p, p * p))
        noise = mean - square
        share = np.zeros_like(noise) if kappa is None else 1 / (1 + kappa[block])
        common = square - mean**2
        if opponent is not None:
            product = np.einsum("dcz,dz,dz->dc", p, p[:, opponent], weight)
            if apart is not None:
                product[:, apart.others] = apart.product[block]
            covariance = product - mean * mean[:, [opponent]]
            common = common + common[:, [opponent]] - 2 * covariance
        cells, runs = noise * share, noise * (1 - share)
        if opponent is not None:
            cells, runs = cells + cells[:, [opponent]], runs + runs[:, [opponent]]
        common = np.maximum(common, 0.0)
        parts[:, block] = common + cells, runs, common
    return parts


def _apart(posterior: xr.Dataset, opponent: int, clusters: str | None) -> Apart:
    """Return E p_a p_b on a new task for configs a of other families than the opponent's b: E_t [E_w p_a E_w p_b].

    Two of one family see the same effect t + w of a task; two of different families share t alone.
    """
    family = families(posterior)
    others = np.flatnonzero(family != family[opponent])
    who = np.append(others, opponent)
    at, slope = ability(posterior).values, discrimination(posterior)
    at, slope = (np.broadcast_to(part, at.shape)[:, who] for part in (at, slope))
    position, weight = population_nodes(posterior, clusters, residuals=False)
    normal = np.exp(-0.5 * RESIDUAL**2)
    residual, share = posterior["interaction_sd"].values[:, None] * RESIDUAL, normal / normal.sum()
    product = np.empty((len(at), others.size))
    step = max(1, BLOCK // (who.size * position.shape[1] * share.size))
    for block in (slice(start, start + step) for start in range(0, len(at), step)):
        x = position[block, None, :, None] + residual[block, None, None, :]
        p = special.expit(at[block, :, None, None] + slope[block, :, None, None] * x) @ share
        product[block] = np.einsum("dcz,dz,dz->dc", p[:, :-1], p[:, -1], weight[block])
    return Apart(others, product)


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
