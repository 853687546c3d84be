"""Answers made of configs' variance components; see `evalbayes.frequentist.repeatability`."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from evalbayes import components
from evalbayes.answer import answer, check_prob, check_targets, from_draws
from evalbayes.errors import ArgumentError, NotIdentifiedError, check_whole
from evalbayes.frequentist import beta_binomial, bootstrap, moments
from evalbayes.frequentist.bootstrap import Floats
from evalbayes.frequentist.moments import Estimator
from evalbayes.frequentist.targets import position

ESTIMATORS = {"moments": moments.estimator, "beta_binomial_ml": beta_binomial.estimator}
NO_INTERVAL = "a description of these tasks: moments have no interval for it"
NO_DRAW = "no resampled set of tasks gives a value; ask for more draws"
ALIKE = "every task has the same rate and no run differs: there is no variance to share out"


class Asked(NamedTuple):
    """What is asked, of which target, and how."""

    quantity: str
    tasks: str
    configs: str
    prob: float
    reference: str | None
    pooled: Iterable[str] | None = None
    method: str | None = None
    seed: int = 0
    draws: int = 2000


def answered(outcomes: xr.Dataset, asked: Asked, function: Callable[[Any, Any], Any]) -> xr.Dataset:
    """Answer with ``function`` of between and within variance, at the data and over resampled tasks."""
    asked = asked._replace(method=asked.method or "moments")
    _check(asked)
    check_whole("draws", asked.draws, 2)
    check_whole("seed", asked.seed, 0)
    check_prob(asked.prob)
    opponent = None if asked.reference is None else position(outcomes, asked.reference)
    estimator = ESTIMATORS[str(asked.method)](bootstrap.cells(outcomes), opponent)
    raw, within = estimator.at(np.ones((1, outcomes.sizes["task"])))
    value = function(np.maximum(raw, 0.0), within)[0]
    reason = _why_unknown(estimator, value, opponent)
    if asked.tasks == "fixed" and asked.quantity not in components.DESCRIBED:
        reason[reason == ""] = components.SAMPLED_ONLY
    spread = _resampled(outcomes, estimator, function, asked) if asked.tasks == "sampled" else None
    if spread is not None:
        reason[(reason == "") & np.isnan(spread.values).all(axis=0)] = NO_DRAW
    point, why = (bootstrap.along(outcomes, part) for part in (value, reason))
    if asked.pooled is not None:
        return _pooled(outcomes, asked, point, why, spread)
    result = _summary(asked, point, why, spread)
    extra = dict(estimator.extra)
    if asked.quantity in ("between_variance", "icc") and asked.method == "moments":
        extra["raw"] = np.where(estimator.twice, function(raw, within)[0], np.nan)
    known = why == ""
    labelled = {name: bootstrap.along(outcomes, part) for name, part in extra.items()}
    result = result.assign({name: part if name == "raw" else part.where(known) for name, part in labelled.items()})
    return result if asked.reference is None else result.assign_coords(reference=asked.reference)


def _check(asked: Asked) -> None:
    check_targets(asked.tasks, asked.configs)
    if asked.configs == "sampled":
        raise NotIdentifiedError(f"{asked.quantity}: configs='sampled' asks about entries that are not on the board")
    if asked.method not in ESTIMATORS:
        raise ArgumentError(f"{asked.quantity}: method={asked.method!r} is not one of {', '.join(ESTIMATORS)}")
    if asked.method == "beta_binomial_ml" and asked.tasks == "fixed":
        raise NotIdentifiedError(
            f"{asked.quantity}: method='beta_binomial_ml' is about a population of tasks; ask with tasks='sampled'"
        )


def _why_unknown(estimator: Estimator, value: Floats, opponent: int | None) -> Any:
    reason = np.where(np.isnan(value), ALIKE, "").astype(object)
    reason[~estimator.twice] = components.ONE_RUN
    reason[estimator.scored == 1] = "one scored task: the spread over tasks needs two or more"
    reason[estimator.scored == 0] = "no scored task" if opponent is None else "no task that both were scored on"
    if opponent is not None:
        reason[opponent] = components.ITSELF
    return reason


def _resampled(
    outcomes: xr.Dataset, estimator: Estimator, function: Callable[[Any, Any], Any], asked: Asked
) -> xr.DataArray:
    blocks = []
    for drawn in bootstrap.task_draws(outcomes.sizes["task"], asked.draws, asked.seed):
        raw, within = estimator.at(bootstrap.task_counts(drawn))
        blocks.append(function(np.maximum(raw, 0.0), within))
    return xr.DataArray(np.concatenate(blocks), dims=("draw", "config"), coords={"config": outcomes["config"].values})


def _summary(asked: Asked, value: xr.DataArray, reason: xr.DataArray, spread: xr.DataArray | None) -> xr.Dataset:
    who: dict[str, Any] = {"quantity": asked.quantity, "tasks": asked.tasks, "configs": asked.configs}
    who |= {"method": asked.method, "prob": asked.prob}
    known = reason == ""
    if spread is None:
        ends = (value * np.nan).expand_dims(ci_bound=2, axis=-1)
        return answer(value.where(known), np.nan, ends, reason=reason.where(~known, NO_INTERVAL), **who)
    # Zeros keep the quantiles quiet until they are blanked.
    result = bootstrap.hold(from_draws(spread.where(known, 0.0), estimate=value.where(known, 0.0), **who))
    return bootstrap.withhold(result, reason, estimate=True)


def _pooled(
    outcomes: xr.Dataset, asked: Asked, value: xr.DataArray, reason: xr.DataArray, spread: xr.DataArray | None
) -> xr.Dataset:
    """Answer with the median over the configs that have a value, of those named."""
    names = components.pooled_names(asked.pooled, outcomes["config"].values.tolist(), asked.reference)
    known = [name for name in names if reason.sel(config=name).item() in ("", NO_INTERVAL)]
    some, why = (known, "") if known else (names, str(reason.sel(config=names[0]).item()))
    middle = components.middle(value.sel(config=some))
    of_draws = None if spread is None else components.middle(spread.sel(config=some))
    result = _summary(asked, middle, xr.DataArray(np.array(why, dtype=object)), of_draws)
    result = result.assign_coords(pooled=components.pooled_label(names), configs_used=len(known))
    return result if asked.reference is None else result.assign_coords(reference=asked.reference)
