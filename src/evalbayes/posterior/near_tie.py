"""Near ties from a fit: how often two entries come out within a margin of each other, and how well that is known."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.answer import TARGETS, answer, check_prob, from_draws
from evalbayes.errors import NotIdentifiedError, check_whole
from evalbayes.frequentist.bootstrap import Integers
from evalbayes.pairs.panel import as_fraction
from evalbayes.pairs.sums import pairs_in, tied_weight
from evalbayes.posterior.draws import (
    NO_INTERACTION,
    NO_RUN,
    POPULATIONS,
    clusters_of,
    counts,
    effective,
    identity,
    one_of,
    refuse_failed_population,
    score_draws,
)
from evalbayes.posterior.panels import Setting, of_board, of_future_entries, panel_of, rounded
from evalbayes.posterior.ranking import of_pairs
from evalbayes.simulate import Floats

SCORES = ("observed", "latent")
ONCE = "one run per cell: nothing shows how runs of a cell agree; give assume='no_interaction'"


def near_tie(
    fit: xr.DataTree,
    margin: str | float | Fraction,
    *,
    configs: str = "sampled",
    tasks: str = "sampled",
    scores: str = "observed",
    panel_tasks: int | None = None,
    panel_runs: int | None = None,
    prob: float = 0.95,
    population: str = "model",
    assume: str | None = None,
    clusters: str | None = None,
    draws: int = 1000,
    entries: int = 256,
) -> xr.Dataset:
    """Probability that two entries score within a margin of each other, as the posterior has it.

    The quantity is a rate given the parameters, theta = P(|X - Y| <= margin | parameters), and the interval is what the
    posterior leaves open about it; it is not the range of shares that one board might show.

    =======  =======  =============================================================================================
    configs  tasks    X and Y
    =======  =======  =============================================================================================
    sampled  sampled  scores of two future entries on one new panel, which both run
    sampled  fixed    scores of two future entries on the tasks of the board
    fixed    sampled  scores of two of the board's configs on one new panel; theta is the mean over all pairs of them
    fixed    fixed    scores of two of the board's configs in new runs of its tasks; theta likewise
    =======  =======  =============================================================================================

    A future entry has logit ability b + d + a with d ~ N(0, sigma^2 / M), the same for both, as the M zero-sum effects
    leave their mean out, and a ~ N(0, sigma^2) of its own; likewise the groups that it is of, each a new one, and its
    discrimination; log kappa ~ N(m, s^2). On the board's tasks it is taken at the model's word: nothing was run there.
    And abilities are normal, whatever those on the board look like: where many of them crowd together there are more
    near ties on the board than this says of future ones, which ``configs="fixed"`` shows.

    With ``scores="observed"`` a score is the mean over the panel's tasks of the share of runs that pass, and scores and
    margin are compared in whole numbers, as `evalbayes.pairs.near_tie` does. ``"latent"`` is another quantity, of the
    scores that endless runs would show (on endless tasks, where these are sampled): no panel, and rounding to parts of
    a trillion.

    Simulation is no part of the interval. For each of ``draws`` posterior draws theta is estimated twice, without bias
    and independently, from simulated panels with ``entries`` entries in all: future entries come in two stratified sets
    (abilities one from each of equally probable slices), and every one of the first is compared with every one of the
    second on its panel, a U-statistic of two samples. The covariance of the two estimates over draws is the variance of
    theta alone, and their means are drawn in towards their own mean until they vary as much; ``simulation_share`` says
    what share of their variance was simulation. More ``entries`` make it smaller and leave the interval where it is.

    Parameters
    ----------
    fit
        From `evalbayes.fit`.
    margin
        From 0 to 1, taken as the decimal that is written.
    configs, tasks
        As in the table.
    scores
        ``"observed"`` or ``"latent"``.
    panel_tasks
        Tasks of a new panel; as many as on the board when not given.
    panel_runs
        Runs of each task; the board's own number when not given, or where that varies the rounded mean of scored cells,
        and the coord ``runs`` then says so.
    prob
        Coverage of the equal-tailed interval.
    population, assume, clusters
        As in `evalbayes.posterior.score`. New panels have as many clusters as the board, of the same sizes.
    draws, entries
        Posterior draws that are used, evenly spread, and simulated entries for each. Rows of a panel count as entries,
        so boards of many configs get fewer panels, two at least.

    Returns
    -------
    xarray.Dataset
        An answer without dims, with ``simulation_share``, ``interval_mcse``, and scalar coords for the rest of what was
        asked: ``margin, scores, new_runs, inclusion, weights, panel, panel_tasks, runs, cluster``, named as those of
        `evalbayes.pairs.near_tie`. NaN, with the reason, where cells were run once and more runs of a cell matter:
        the data do not say how they would agree.

    Raises
    ------
    NotIdentifiedError
        If the board has one config, or the fit no population of configs, or residuals that families share.
    SamplingError
        If tasks are sampled and the fit's population failed its gate.
    ArgumentError
        If an argument is not one of the words or numbers above, or a panel is described where there is none.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> fit = eb.fit(eb.datasets.load("simulated"))                                  # doctest: +SKIP
    >>> eb.posterior.near_tie(fit, 0.05).interval                                    # doctest: +SKIP
    >>> eb.posterior.near_tie(fit, 0.05, panel_tasks=1000).estimate                  # doctest: +SKIP
    """
    target: dict[str, Any] = {
        "tasks": tasks,
        "configs": configs,
        "population": population,
        "assume": assume,
        "clusters": clusters,
    }
    who = identity(fit, "near_tie", prob=prob, **target)
    limit = as_fraction(margin)
    _check(fit, tasks, scores, population, assume, prob, draws, entries)
    if tasks == "sampled" and population == "model":
        refuse_failed_population(fit)
    trials = counts(fit)[1]
    panel = panel_of(trials, tasks, scores, panel_tasks, panel_runs)
    setting = Setting(fit, configs, tasks, population, clusters_of(fit, tasks, clusters), panel, entries)
    reason, assumed = _unknown(setting, trials, assume)
    who |= _said(setting, limit) | assumed
    if reason:
        nothing = xr.DataArray([np.nan, np.nan], dims="ci_bound")
        return answer(xr.DataArray(np.nan), np.nan, nothing, reason=reason, **who)
    theta, share = _without_noise(_rates(setting, limit, draws, assume))
    ess = 1 / (1 / effective(fit) + 1 / len(theta) - 1 / float(fit.attrs["draws"]))
    return from_draws(xr.DataArray(theta, dims="draw"), ess=ess, simulation_share=xr.DataArray(share), **who)


def _check(
    fit: xr.DataTree,
    tasks: str,
    scores: str,
    population: str,
    assume: str | None,
    prob: float,
    draws: int,
    entries: int,
) -> None:
    one_of("tasks", tasks, TARGETS)
    one_of("scores", scores, SCORES)
    one_of("population", population, POPULATIONS)
    one_of("assume", assume, (None, NO_INTERACTION))
    check_prob(prob)
    check_whole("draws", draws, 100)
    check_whole("entries", entries, 64)
    if fit["posterior"].sizes["config"] == 1:
        raise NotIdentifiedError("near_tie: the board has one config, which shows nothing of how another would differ")
    if "interaction_effect" in fit["posterior"]:
        raise NotIdentifiedError("near_tie: its panels have no residuals of families; fit without interaction_group=")


def _said(setting: Setting, limit: Fraction) -> dict[str, Any]:
    """Scalar coords that say what was asked, under the names that `evalbayes.pairs.near_tie` gives them."""
    panel, latent = setting.panel, setting.panel.kind == "none"
    return {
        "margin": float(limit),
        "scores": "latent" if latent else "observed",
        "new_runs": not latent,
        "inclusion": "all pairs",
        "weights": "equal",
        "panel": panel.kind,
        "panel_tasks": panel.tasks,
        "runs": panel.said,
        "cluster": str(setting.fit.attrs.get("prior_task_groups", "")) if setting.clusters == "sampled" else "",
    }


def _unknown(setting: Setting, trials: xr.DataArray, assume: str | None) -> tuple[str, dict[str, str]]:
    """Say why there is no answer, or nothing, and what the answer assumes.

    How runs of one cell agree matters to a score of several of them, and to the rates of the very cells of the board;
    cells that were run again show it, of a config its own.
    """
    own_cells = setting.tasks == "fixed" and (setting.panel.kind == "none" or setting.configs == "fixed")
    again = (trials > 1).any("task")
    hidden = ~(again if setting.configs == "fixed" else again.any())
    if setting.panel.runs <= 1 and not own_cells:
        hidden = xr.zeros_like(hidden)
    assumed = {"assume": NO_INTERACTION} if assume and bool(hidden.any()) else {}
    why = xr.where(hidden, "" if assume else ONCE if own_cells else f"{ONCE} or panel_runs=1", "")
    if setting.configs == "sampled":
        return str(why.item()), assumed
    why = xr.where(trials.sum("task") == 0, NO_RUN, why).astype(object)
    pairs, linked = of_pairs(setting.fit, why, assume)
    return next((text for text in pairs.values.ravel() if text), ""), assumed | linked


def _rates(setting: Setting, limit: Fraction, draws: int, assume: str | None) -> Floats:
    """Estimate the rate of near ties at each posterior draw twice, independently: (draw, 2)."""
    most = math.floor(limit * setting.panel.out_of)
    rng = np.random.default_rng(int(setting.fit.attrs["seed"]))
    if setting.configs == "sampled":
        return np.array([[_across(half, most) for half in both] for both in of_future_entries(setting, draws, rng)])
    if setting.panel.kind == "none":
        given: dict[str, Any] = {"tasks": setting.tasks, "population": setting.population, "clusters": setting.clusters}
        scores = score_draws(setting.fit, assume=assume, **given)[0]
        return np.repeat(_among(rounded(scores.values), most)[:, None], 2, axis=1)
    return np.array([[_among(half, most).mean() for half in both] for both in of_board(setting, draws, rng)])


def _across(keys: Integers, most: int) -> float:
    """Share of pairs of an entry of one side and one of the other, (panel, side, entry), that are near ties."""
    return float((np.abs(keys[:, 0, :, None] - keys[:, 1, None]) <= most).mean())


def _among(keys: Integers, most: int) -> Floats:
    """Share of pairs of configs that are near ties, for each row (row, config)."""
    rows, size = keys.shape
    return tied_weight(keys, np.full(rows, most), np.ones((1, size))) / pairs_in(size)


def _without_noise(estimates: Floats) -> tuple[Floats, float]:
    """Means of two independent estimates, drawn in until they vary as what both estimate does; and by how much.

    Parameters
    ----------
    estimates
        (draw, 2).

    Returns
    -------
    tuple
        (draw), and the share of the variance of the plain means that was simulation.
    """
    means = estimates.mean(axis=1)
    plain = means.var(ddof=1)
    if plain == 0:
        return means, 0.0
    # A covariance that is lost in noise is not taken for none: its own standard error is the least that is kept.
    kept = np.clip(np.cov(estimates.T)[0, 1] / plain, 1 / np.sqrt(len(means)), 1)
    return means.mean() + np.sqrt(kept) * (means - means.mean()), float(1 - kept)
