"""Who leads: ranks, the probability of the top k, and of one config beating another, draw by draw.

Only what shared tasks link is compared (`evalbayes.links`). Between groups of configs that no chain of shared tasks
links there is no answer: there a fit takes every difference from its prior of task effects. Two configs linked only
through others are compared on ``assume="no_interaction"``, the same word as for cells run once: that config and task
effects add up where nothing on the board shows it. Here it is from one set of tasks to another that it is assumed; how
single cells depart from the sum (kappa) is still allowed for. Ranks are given on every linked board. The
beta-binomial model has no task effects to link by: comparing configs that share no task would rest on their tasks being
draws from one population alone, and is refused whatever is assumed.
"""

from typing import Any

import numpy as np
import xarray as xr

from evalbayes import links
from evalbayes.answer import from_draws, from_shares
from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.posterior.draws import NO_INTERACTION, counts, effective, identity, score_draws
from evalbayes.posterior.score import withhold
from evalbayes.textbook import standing


def rank(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    population: str = "model",
    clusters: str | None = None,
    assume: str | None = None,
) -> xr.Dataset:
    """Rank of each config among those on the board by its score: 1 is best, ties share the better rank.

    For sampled tasks these are ranks by the population scores, as endlessly many new tasks would give them; the ranks
    on a new board of N tasks are noisier, and another quantity.

    Parameters
    ----------
    fit, tasks, prob, population, assume, clusters
        As in `evalbayes.posterior.score`.
    configs
        ``"fixed"``: a rank is among these configs.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``: the estimate is the median rank, the interval holds ranks that occur in draws;
        ``expected_rank`` is their mean.

    Raises
    ------
    NotIdentifiedError
        If there is one config, configs are sampled, or no chain of shared tasks links some configs with others.
    SamplingError, ValueError
        As in `evalbayes.posterior.score`.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.rank(eb.fit(board)).interval                                    # doctest: +SKIP
    """
    who, draws, reason = _asked("rank", fit, tasks, configs, prob, population, assume, clusters)
    ranks = draws.copy(data=standing(draws.values)[0].astype(float))
    middle = ranks.quantile(0.5, "draw", method="inverted_cdf").drop_vars("quantile")
    result = from_draws(
        ranks, discrete=True, estimate=middle, ess=effective(fit), expected_rank=ranks.mean("draw"), **who
    )
    return withhold(result, reason)


def top_k(
    fit: xr.DataTree,
    *,
    k: int = 1,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    population: str = "model",
    clusters: str | None = None,
    assume: str | None = None,
) -> xr.Dataset:
    """Probability that each config is among the best k.

    m configs tied for places r to r + m - 1 each get min(max(k - r + 1, 0), m) / m of a place, so the probabilities of
    all configs sum to k.

    Parameters
    ----------
    k
        Number of places, from 1 to the number of configs.
    fit, tasks, configs, prob, population, assume, clusters
        As in `rank`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``, with scalar coord ``k``; se and interval are Monte Carlo error.

    Raises
    ------
    ValueError
        If k is below 1 or above the number of configs.
    NotIdentifiedError, SamplingError
        As in `rank`.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> float(eb.posterior.top_k(eb.fit(board), k=3).estimate.sum())                 # doctest: +SKIP
    3.0
    """
    who, draws, reason = _asked("top_k", fit, tasks, configs, prob, population, assume, clusters)
    places = int(np.isfinite(draws.isel(draw=0)).sum())
    if not 1 <= k <= places:
        raise ArgumentError(f"top_k: k={k}; the board has {places} configs with a scored run, so give 1 to that many")
    first, tied = standing(draws.values)
    share = draws.copy(data=np.clip(k - first + 1, 0, tied) / tied)
    ess = effective(fit)
    result = from_shares(share.mean("draw"), share.std("draw") / np.sqrt(ess), ess, **who)
    return withhold(result.assign_coords(k=k), reason)


def win_probability(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    population: str = "model",
    clusters: str | None = None,
    assume: str | None = None,
) -> xr.Dataset:
    """Probability that a config scores higher than an opponent; half a tie counts as half a win.

    Parameters
    ----------
    fit, tasks, configs, prob, population, clusters
        As in `rank`.
    assume
        ``"no_interaction"`` for pairs that share no task but are linked through others, whatever the tasks, and for
        fixed tasks as in `evalbayes.posterior.score`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config`` (the row, which beats) and ``opponent``, with ``tie``, the share of draws in which the
        two tie; se and interval are Monte Carlo error. A config against itself has 0.5. NaN with its reason for a pair
        that nothing links, or that is linked through others and nothing is assumed.

    Raises
    ------
    NotIdentifiedError
        If there is one config, or configs are sampled.
    SamplingError, ValueError
        As in `evalbayes.posterior.score`.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.win_probability(eb.fit(board)).sel(config="a", opponent="b")    # doctest: +SKIP
    """
    who, draws, reason = _asked("win_probability", fit, tasks, configs, prob, population, assume, clusters)
    values = draws.values
    above = np.stack([(column[:, None] > values).mean(axis=0) for column in values.T])
    tie = np.stack([(column[:, None] == values).mean(axis=0) for column in values.T])
    win, ess = above + tie / 2, effective(fit)
    labels = draws["config"].values
    pairs = xr.DataArray(win, dims=("config", "opponent"), coords={"config": labels, "opponent": labels})
    se = pairs.copy(data=np.sqrt(np.maximum(win * (1 - win) - tie / 4, 0.0) / ess))
    why, assumed = of_pairs(fit, reason, assume)
    result = from_shares(pairs, se, ess, tie=pairs.copy(data=tie).where(why == ""), **who | assumed)
    return withhold(result, why)


def of_pairs(fit: xr.DataTree, reason: xr.DataArray, assume: str | None) -> tuple[xr.DataArray, dict[str, str]]:
    """Return over (config, opponent) why a pair is not compared, and what the pairs that are compared assume.

    Either because one of the two is unknown, for ``reason`` over config, or because nothing links them but additivity
    or the prior; a config against itself always is known.
    """
    other = reason.rename(config="opponent")
    pairs: xr.DataArray = xr.where(reason == "", other, reason).transpose("config", "opponent")
    _, trials = counts(fit)
    why, unshared = links.why_apart(trials), links.unshared(trials)
    assumed = {"assume": assume} if assume == NO_INTERACTION and bool(unshared.any()) else {}
    if "task_effect" not in fit["posterior"]:
        why, assumed = why.where(~unshared, links.EXCHANGEABLE), {}
    elif not assumed:
        why = why.where(~unshared, f"{links.NOT_SHARED}; give assume='{NO_INTERACTION}'")
    pairs = xr.where(pairs == "", why, pairs)
    return pairs.where(pairs["config"] != pairs["opponent"], "").astype(object), assumed


def needs_two_configs(quantity: str, fit: xr.DataTree, configs: str) -> None:
    """Raise NotIdentifiedError where there is nothing to compare, or the other side has no name."""
    if configs == "sampled":
        raise NotIdentifiedError(
            f"{quantity}: configs='sampled' asks about an entry that is not on the board; "
            "use configs='fixed', or posterior.score for a future entry"
        )
    if fit["posterior"].sizes["config"] < 2:
        raise NotIdentifiedError(f"{quantity}: the board has one config; a comparison needs two or more")


def _asked(
    quantity: str,
    fit: xr.DataTree,
    tasks: str,
    configs: str,
    prob: float,
    population: str,
    assume: str | None,
    clusters: str | None,
) -> tuple[dict[str, Any], xr.DataArray, xr.DataArray]:
    """Return the identity of a comparison of all configs, the draws behind it, and why a config is unknown."""
    target: dict[str, Any] = {"tasks": tasks, "population": population, "assume": assume, "clusters": clusters}
    who = identity(fit, quantity, configs=configs, prob=prob, **target)
    needs_two_configs(quantity, fit, configs)
    if quantity in ("rank", "top_k"):
        links.refuse_apart(quantity, counts(fit)[1])
    draws, reason = score_draws(fit, **target)
    unscored = (fit["constant_data"].to_dataset()["trials"].reset_coords(drop=True) == 0).all("task")
    if quantity in ("rank", "top_k"):
        # A config without a run is below all others and moves nobody's rank.
        draws = draws.where(~unscored, -np.inf)
        once = reason.where(~unscored, "")
        if bool((once != "").any()):
            # One config whose new runs are unknown leaves every rank without its noise.
            reason = xr.full_like(reason, next(text for text in once.values if text))
    return who, draws, reason
