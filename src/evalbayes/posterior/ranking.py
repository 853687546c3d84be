"""Who leads: ranks, the probability of the top k, and of one config beating another, draw by draw."""

from typing import Any

import numpy as np
import xarray as xr

from evalbayes.answer import from_draws, from_shares
from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.posterior.draws import effective, identity, score_draws
from evalbayes.posterior.score import withhold
from evalbayes.textbook import standing


def rank(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    population: str = "model",
    assume: str | None = None,
) -> xr.Dataset:
    """Rank of each config among those on the board by its score: 1 is best, ties share the better rank.

    For sampled tasks these are ranks by the population scores, as endlessly many new tasks would give them; the ranks
    on a new board of N tasks are noisier, and another quantity.

    Parameters
    ----------
    fit, tasks, prob, population, assume
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
        If there is one config, configs are sampled, or tasks are fixed and a config has one run per cell.
    SamplingError, ValueError
        As in `evalbayes.posterior.score`.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.rank(eb.fit(board)).interval                                    # doctest: +SKIP
    """
    who, draws, reason = _asked("rank", fit, tasks, configs, prob, population, assume)
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
    assume: str | None = None,
) -> xr.Dataset:
    """Probability that each config is among the best k.

    m configs tied for places r to r + m - 1 each get min(max(k - r + 1, 0), m) / m of a place, so the probabilities of
    all configs sum to k.

    Parameters
    ----------
    k
        Number of places, from 1 to the number of configs.
    fit, tasks, configs, prob, population, assume
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
    who, draws, reason = _asked("top_k", fit, tasks, configs, prob, population, assume)
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
    assume: str | None = None,
) -> xr.Dataset:
    """Probability that a config scores higher than an opponent; half a tie counts as half a win.

    Parameters
    ----------
    fit, tasks, configs, prob, population, assume
        As in `rank`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config`` (the row, which beats) and ``opponent``, with ``tie``, the share of draws in which the
        two tie; se and interval are Monte Carlo error. A config against itself has 0.5.

    Raises
    ------
    NotIdentifiedError, SamplingError, ValueError
        As in `rank`.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.win_probability(eb.fit(board)).sel(config="a", opponent="b")    # doctest: +SKIP
    """
    who, draws, reason = _asked("win_probability", fit, tasks, configs, prob, population, assume)
    values = draws.values
    above = np.stack([(column[:, None] > values).mean(axis=0) for column in values.T])
    tie = np.stack([(column[:, None] == values).mean(axis=0) for column in values.T])
    win, ess = above + tie / 2, effective(fit)
    labels = draws["config"].values
    pairs = xr.DataArray(win, dims=("config", "opponent"), coords={"config": labels, "opponent": labels})
    se = pairs.copy(data=np.sqrt(np.maximum(win * (1 - win) - tie / 4, 0.0) / ess))
    result = from_shares(pairs, se, ess, tie=pairs.copy(data=tie), **who)
    return withhold(result, _either(reason))


def _either(reason: xr.DataArray) -> xr.DataArray:
    """Return over pairs why one of the two is unknown; a config against itself always is known."""
    other = reason.rename(config="opponent")
    pairs: xr.DataArray = xr.where(reason == "", other, reason).transpose("config", "opponent")
    return pairs.where(pairs["config"] != pairs["opponent"], "").astype(object)


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
    quantity: str, fit: xr.DataTree, tasks: str, configs: str, prob: float, population: str, assume: str | None
) -> tuple[dict[str, Any], xr.DataArray, xr.DataArray]:
    """Return the identity of a comparison of all configs, the draws behind it, and why a config is unknown."""
    who = identity(fit, quantity, tasks=tasks, configs=configs, population=population, assume=assume, prob=prob)
    needs_two_configs(quantity, fit, configs)
    draws, reason = score_draws(fit, tasks=tasks, population=population, assume=assume)
    unscored = (fit["constant_data"].to_dataset()["trials"].reset_coords(drop=True) == 0).all("task")
    if quantity in ("rank", "top_k"):
        # A config without a run is below all others and moves nobody's rank.
        draws = draws.where(~unscored, -np.inf)
        once = reason.where(~unscored, "")
        if bool((once != "").any()):
            # One config whose new runs are unknown leaves every rank without its noise.
            reason = xr.full_like(reason, next(text for text in once.values if text))
    return who, draws, reason
