"""Variance components of configs by moments, and answers made of them; see `evalbayes.frequentist.repeatability`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from evalbayes import components
from evalbayes.answer import TARGETS, answer, from_draws
from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.frequentist import bootstrap
from evalbayes.frequentist.bootstrap import Bools, Cells, Floats
from evalbayes.frequentist.normal import run_noise, run_variance, task_means
from evalbayes.frequentist.targets import position

METHOD = "moments"
NO_INTERVAL = "a description of these tasks: moments have no interval for it"
ALIKE = "every task has the same rate and no run differs: there is no variance to share out"


class Asked(NamedTuple):
    """What is asked, of which target, and how."""

    quantity: str
    tasks: str
    configs: str
    prob: float
    reference: str | None
    method: str | None
    seed: int
    draws: int


class Moments(NamedTuple):
    """What every task adds to the sums behind the components, each (config, task), 0 where a config lacks the task."""

    scored: Floats
    mean: Floats
    within: Floats
    repeated: Floats
    noise: Floats


def answered(
    outcomes: xr.Dataset, asked: Asked, function: Callable[[Any, Any], Any], *, sampled_only: bool = False
) -> xr.Dataset:
    """Answer with ``function`` of between and within variance, at the data and over resampled tasks."""
    _check(asked)
    opponent = None if asked.reference is None else position(outcomes, asked.reference)
    moments, twice = _moments(bootstrap.cells(outcomes), opponent)
    raw, within = _components(moments, np.ones((1, outcomes.sizes["task"])))
    value = function(np.maximum(raw, 0.0), within)[0]
    reason = _why_unknown(moments, twice, value, opponent)
    if sampled_only and asked.tasks == "fixed":
        reason[reason == ""] = components.SAMPLED_ONLY
    spread = _resampled(outcomes, moments, function, asked) if asked.tasks == "sampled" else None
    result = _summary(asked, bootstrap.along(outcomes, value), spread, bootstrap.along(outcomes, reason))
    if asked.quantity == "between_variance":
        result = result.assign(raw=bootstrap.along(outcomes, np.where(twice, raw[0], np.nan)))
    return result if asked.reference is None else result.assign_coords(reference=asked.reference)


def _summary(asked: Asked, value: xr.DataArray, spread: Floats | None, reason: xr.DataArray) -> xr.Dataset:
    who: dict[str, Any] = {"quantity": asked.quantity, "tasks": asked.tasks, "configs": asked.configs}
    who |= {"method": METHOD, "prob": asked.prob}
    known = reason == ""
    if spread is None:
        ends = (value * np.nan).expand_dims(ci_bound=2, axis=1)
        return answer(value.where(known), np.nan, ends, reason=reason.where(~known, NO_INTERVAL), **who)
    # Zeros keep the quantiles quiet until they are blanked.
    draws = xr.DataArray(spread, dims=("draw", "config"), coords=value.coords).where(known, 0.0)
    result = bootstrap.hold(from_draws(draws, estimate=value.where(known, 0.0), **who))
    return bootstrap.withhold(result, reason, estimate=True)


def _check(asked: Asked) -> None:
    for name, target in (("tasks", asked.tasks), ("configs", asked.configs)):
        if target not in TARGETS:
            raise ArgumentError(f"{name}={target!r} is not 'fixed' or 'sampled'")
    if asked.configs == "sampled":
        raise NotIdentifiedError(f"{asked.quantity}: configs='sampled' asks about entries that are not on the board")
    if asked.method not in (None, METHOD):
        raise ArgumentError(f"{asked.quantity}: method={asked.method!r} is not one of {METHOD}")


def _moments(board: Cells, opponent: int | None) -> tuple[Moments, Bools]:
    """Return every task's part in the sums, and which configs ran a task twice."""
    scored, repeated = board.scored, board.trials > 1
    p, noise = (np.nan_to_num(part) for part in (task_means(board), run_noise(board)))
    within = run_variance(board)
    twice = repeated.any(axis=1)
    if opponent is not None:
        scored, repeated = scored & scored[opponent], repeated & repeated[opponent]
        # A cell of one run has the config's own mean noise, so it is enough that each ran some task twice.
        twice = twice & twice[opponent] & repeated.any(axis=1)
        within = np.where(repeated, within + within[opponent], 0.0)
        p, noise = (np.where(scored, part, 0.0) for part in (p - p[opponent], noise + noise[opponent]))
    return Moments(scored.astype(float), p, within, repeated.astype(float), noise), twice


def _components(moments: Moments, counts: Floats) -> tuple[Floats, Floats]:
    """Return between variance, not cut at 0, and within variance where task t counts ``counts[:, t]`` times."""
    totals = Moments(*(counts @ part.T for part in moments))
    squares = counts @ (moments.mean**2).T
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = totals.mean / totals.scored
        spread = (squares - totals.scored * mean**2) / (totals.scored - 1)
        return spread - totals.noise / totals.scored, totals.within / totals.repeated


def _resampled(outcomes: xr.Dataset, moments: Moments, function: Callable[[Any, Any], Any], asked: Asked) -> Floats:
    blocks = []
    for drawn in bootstrap.task_draws(outcomes.sizes["task"], asked.draws, asked.seed):
        raw, within = _components(moments, bootstrap.task_counts(drawn))
        blocks.append(function(np.maximum(raw, 0.0), within))
    return np.concatenate(blocks)


def _why_unknown(moments: Moments, twice: Bools, value: Floats, opponent: int | None) -> Any:
    scored = moments.scored.sum(axis=1)
    reason = np.where(np.isnan(value), ALIKE, "").astype(object)
    reason[~twice] = components.ONE_RUN
    reason[scored == 1] = "one scored task: the spread over tasks needs two or more"
    reason[scored == 0] = "no scored task" if opponent is None else "no task that both were scored on"
    if opponent is not None:
        reason[opponent] = components.ITSELF
    return reason
