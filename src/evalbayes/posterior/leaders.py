"""Who leads, from draws: which neighbours in the order of scores are unresolved, and who may be best."""

from typing import Any

import xarray as xr

from evalbayes import links
from evalbayes.answer import from_draws
from evalbayes.errors import NotIdentifiedError
from evalbayes.leaders import POSTERIOR_SET, SIDES, judged, neighbours, said_of_set, smallest_set
from evalbayes.posterior.draws import counts, effective, identity, score_draws
from evalbayes.posterior.ranking import needs_two_configs, of_pairs, top_k
from evalbayes.posterior.score import score, withhold

ALONE = "no shared task"


def adjacent(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    population: str = "model",
    assume: str | None = None,
    clusters: str | None = None,
) -> xr.Dataset:
    """Set each entry against the next one down, and say which of these neighbours the data do not put in order.

    Entries stand in the order of their estimates, the posterior mean scores of `evalbayes.posterior.score` for the same
    target, so the pairs come from the data and not from a list. With s the score of the upper entry and o that of the
    lower, P = P(s > o) + P(s = o) / 2, and the pair is unresolved where (1 - prob) / 2 < P < (1 + prob) / 2. That is a
    statement about each pair by itself: of many pairs, some are resolved by chance.

    Parameters
    ----------
    fit, tasks, prob, population, assume, clusters
        As in `evalbayes.posterior.score`.
    configs
        ``"fixed"``: a future entry has no neighbours.

    Returns
    -------
    xarray.Dataset
        An answer over ``pair``, best first: the estimate is the difference of the two scores, with its interval. Coords
        of the pair: ``config`` (the upper), ``opponent`` (the lower), ``rank`` and ``opponent_rank``. Equal estimates
        share a rank (1, 1, 3) and stand in the order of their names; an entry that is not compared with some other
        (`evalbayes.posterior.win_probability`) has the rank NaN. Variables: ``win_probability`` (P),
        ``win_probability_se`` (its Monte Carlo error), ``tie`` (P(s = o)), ``unresolved`` (bool, by the rule above;
        False too where P is NaN), ``verdict`` (``"resolved"``, ``"unresolved"``, ``"withheld"``), ``shared_tasks``. A
        pair that shares no task is withheld, unless others link it and ``assume="no_interaction"``.
        attrs: ``pairs`` (compared), ``unresolved`` and ``withheld`` (how many), ``unranked`` (entries without a run)
        and ``sentence``.

    Raises
    ------
    NotIdentifiedError
        If fewer than two entries have runs, or configs are sampled.
    SamplingError, ValueError
        As in `evalbayes.posterior.score`.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.adjacent(eb.fit(board)).attrs["sentence"]                       # doctest: +SKIP
    '1 of 3 adjacent pairs are unresolved at 95%: b (2) and c (3)'
    """
    how: dict[str, Any] = {"tasks": tasks, "population": population, "assume": assume, "clusters": clusters}
    who = identity(fit, "adjacent", configs=configs, prob=prob, **how)
    needs_two_configs("adjacent", fit, configs)
    at, (draws, reason), (_, trials) = score(fit, prob=prob, **how).estimate, score_draws(fit, **how), counts(fit)
    why, assumed = of_pairs(fit, reason, assume)
    pair = neighbours(at, (why.sel(opponent=at["config"].values[at.notnull()]) == "").all("opponent"))
    sides = {side: xr.DataArray(pair[side][1], dims="pair") for side in SIDES}
    (upper, one), (lower, other) = (
        [table.sel(config=side).drop_vars("config") for table in (draws, trials > 0)] for side in sides.values()
    )
    shared, why = (one & other).sum("task"), why.sel(sides).drop_vars(list(sides))
    why = why.where((why == "") | (shared > 0) | why.str.startswith(ALONE), f"{ALONE}: " + why)
    result = withhold(from_draws(upper - lower, ess=effective(fit), **who | assumed).assign_coords(pair), why)
    chances = _chances(upper, lower, effective(fit))
    return judged(
        result, {name: part.where(why == "") for name, part in chances.items()} | {"shared_tasks": shared}, at
    )


def _chances(upper: xr.DataArray, lower: xr.DataArray, ess: float) -> dict[str, xr.DataArray]:
    tie = (upper == lower).mean("draw")
    win = (upper > lower).mean("draw") + tie / 2
    error = (win * (1 - win) - tie / 4).clip(min=0) / ess
    return {"win_probability": win, "win_probability_se": error**0.5, "tie": tie}


def best_set(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    population: str = "model",
    assume: str | None = None,
    clusters: str | None = None,
) -> xr.Dataset:
    """Return the fewest entries of which one is the best with a posterior probability of at least ``prob``.

    P(best) is `top_k` with k = 1, ties split, and sums to 1. Taken from the most probable down, entries of equal
    probability in the order of their names, the set ends where the sum reaches ``prob``. It is a statement given the
    model and these data, and no confidence set: that one, `evalbayes.frequentist.best_set`, holds the best entry in a
    share of repeated boards, and is larger as a rule.

    Parameters
    ----------
    fit, tasks, population, assume, clusters
        As in `evalbayes.posterior.score`.
    configs
        ``"fixed"``: the best of these entries.
    prob
        The probability that the set has to reach, and the coverage of the Monte Carlo intervals.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``: the estimate is P(best), with its Monte Carlo error; ``p_best``, the same;
        ``cumulative``, the sum of it over this entry and all that are more probable; ``in_set`` (bool). Scalar coords
        ``set_kind`` ("posterior set") and ``set_meaning``; attrs ``size``, ``configs_ranked``, ``sentence``. An entry
        without a run is never in the set, and NaN.

    Raises
    ------
    NotIdentifiedError
        If there is one config, configs are sampled, no chain of shared tasks links some entries with others, or tasks
        are fixed and a config has one run per cell.
    SamplingError, ValueError
        As in `evalbayes.posterior.score`.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> found = eb.posterior.best_set(eb.fit(board))                                 # doctest: +SKIP
    >>> found.config[found.in_set].values.tolist()                                   # doctest: +SKIP
    ['a', 'b']
    """
    how: dict[str, Any] = {"tasks": tasks, "population": population, "assume": assume, "clusters": clusters}
    who = identity(fit, "best_set", configs=configs, prob=prob, **how)
    needs_two_configs("best_set", fit, configs)
    links.refuse_apart("best_set", counts(fit)[1])
    best = top_k(fit, k=1, prob=prob, **how)
    if best.estimate.isnull().all():
        raise NotIdentifiedError(f"best_set: {best.reason.values[0]}")
    cumulative, in_set = smallest_set(best.estimate, prob)
    result = best.assign(p_best=best.estimate, in_set=in_set, cumulative=cumulative)
    return said_of_set(result.drop_vars("k").assign_coords(quantity=who["quantity"], **POSTERIOR_SET))
