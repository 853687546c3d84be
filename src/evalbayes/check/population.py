"""The population gate: whether the scores a fit predicts for new tasks agree with the tasks that were run.

A density of task effects that does not fit biases every score for new tasks, and more tasks do not help. So a fit
carries, for each config, its population score minus its observed mean of task means, beside what the fit itself
says such an observed mean may be (posterior predictive, on as many new tasks). Partial pooling moves the configs
of a small board by design; what is refused is a mean gap beyond half a standard error or a config outside its own
predictive range.

Where tasks have groups, the population is that of new tasks of the groups on the board.

A config run on some of the tasks alone, the easy ones perhaps, says nothing against the density: its other tasks are
filled in with what the fit expects of them, in the observed mean as in its predictive range.
"""

import numpy as np
import xarray as xr
from scipy import special

from evalbayes.cells import (
    ability,
    concentration,
    discrimination,
    expected_rates,
    flattened,
    new_effects,
    new_family_effects,
    thinned,
)
from evalbayes.posterior.draws import population_scores
from evalbayes.simulate import Floats, scattered

MEAN_GAP = 0.5
"""Largest mean signed gap, in standard errors of an observed mean over tasks."""
PULL = 1.0
"""The pull of the priors, in tasks: a mean gap smaller than one task's share of a score is partial pooling."""
PREDICTIVE_RANGE = 0.99
REPLICATES = 400
CELLS = 4_000_000
"""Simulated cells in all, at most: the check must not outlast the fit it checks."""


def population(posterior: xr.Dataset, outcomes: xr.Dataset, *, seed: int = 0) -> xr.Dataset:
    """Compare population scores with observed means of task means.

    Parameters
    ----------
    posterior
        Draws over (chain, draw) of a packaged model, or of one with the same names.
    outcomes
        The board that was fitted.
    seed
        Of the posterior predictive draws.

    Returns
    -------
    xarray.Dataset
        Over config: ``observed`` (mean over all tasks, those not run filled in), ``gap`` (posterior mean of the
        score minus ``observed``; NaN for a config without a run), ``predictive`` (lower, upper: the
        99% posterior predictive range of the observed mean) and ``inside``; attrs ``mean_gap``, ``worst_gap``,
        ``mean_gap_se`` (in standard errors) and ``gate``, ``"passed"`` or ``"failed"``.

    Examples
    --------
    >>> from evalbayes import fit, simulate                                          # doctest: +SKIP
    >>> population(fit(board := simulate.board())["posterior"].to_dataset(), board).attrs["gate"]  # doctest: +SKIP
    'passed'
    """
    cells = outcomes[["successes", "trials"]].reset_coords(drop=True).transpose("config", "task")
    trials = cells["trials"].values
    flat = thinned(posterior, min(REPLICATES, max(50, CELLS // trials.size)))
    rate = cells["successes"] / cells["trials"].where(trials > 0)
    if not trials.all():
        rate = rate.where(trials > 0, expected_rates(flat, trials.shape[1]))
    rate = rate.where(cells["trials"].sum("task") > 0)
    observed = rate.mean("task")
    gap = population_scores(flattened(posterior), "fixed" if "task_group_effect" in posterior else None).mean("draw")
    gap = gap - observed
    replicated = _replicates(flat, trials, np.random.default_rng(seed))
    # On a handful of tasks the observed spread can be nil by chance; the model's own spread then measures the gap.
    observed_se = (rate.std("task", ddof=1) / np.sqrt(rate.sizes["task"])).mean()
    se = max(float(observed_se.fillna(0.0)), float(replicated.mean("config").std()))
    tail = (1 - PREDICTIVE_RANGE) / 2
    predictive = replicated.quantile([tail, 1 - tail], "replicate").rename(quantile="ci_bound")
    lower, upper = predictive.transpose("ci_bound", "config")
    # A rounding error must not put a config that always passes outside a range that ends at 1.
    inside = (observed >= lower - 1e-12) & (observed <= upper + 1e-12) | observed.isnull()
    size = abs(float(gap.mean()))
    # Where nothing varies in the data or in the fit, no gap is none, and any other is without end.
    mean_gap_se = size / se if se > 0 else np.inf if size > 1e-12 else 0.0
    mean_fits = mean_gap_se <= MEAN_GAP or size <= PULL / rate.sizes["task"]
    result = xr.Dataset(
        {"gap": gap, "predictive": predictive.drop_vars("ci_bound"), "inside": inside, "observed": observed}
    ).assign_coords(ci_bound=["lower", "upper"])
    result.attrs = {
        "mean_gap": float(gap.mean()),
        "worst_gap": float(gap[np.argmax(abs(gap).fillna(0).values)]),
        "mean_gap_se": mean_gap_se,
        "gate": "passed" if mean_fits and bool(inside.all()) else "failed",
    }
    return result


def _replicates(flat: xr.Dataset, trials: np.ndarray, rng: np.random.Generator) -> xr.DataArray:
    """Simulate observed means of task means on new tasks, one a replicate, with the board's own trials."""
    at, slope, kappa = ability(flat), discrimination(flat), concentration(flat)
    means = np.empty(at.shape)
    for i, eta in enumerate(at.values):
        new = new_effects(flat, i, trials.shape[1], rng)
        new = new + new_family_effects(flat, slice(i, i + 1), trials.shape[1], rng)[0]
        p = np.broadcast_to(special.expit(eta[:, None] + slope[i][:, None] * new), trials.shape)
        cell = p if kappa is None else scattered(rng, p, kappa[i][:, None])
        means[i] = _simulated_means(rng, cell, trials)
    return at.rename(draw="replicate").copy(data=means)


def _simulated_means(rng: np.random.Generator, p: Floats, trials: np.ndarray) -> Floats:
    """Return the mean over tasks of simulated rates, of p itself in cells without a run."""
    passes = rng.random(p.shape) < p if trials.max(initial=0) <= 1 else rng.binomial(trials, p)
    return np.asarray(np.where(trials > 0, passes / np.maximum(trials, 1), p).mean(axis=1))
