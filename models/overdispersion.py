r"""Beta-binomial runs: cells whose success probability varies around its mean.

    k | n, mu, kappa ~ BetaBinomial(n, mu kappa, (1 - mu) kappa)

With psi = 1 / kappa the factors kappa cancel from the rising factorials of the probability mass, and what is left is a
product over the runs of a cell::

    log p(k) = log C(n, k) + sum_{j<k} log(mu + j psi) + sum_{j<n-k} log(1 - mu + j psi) - sum_{j<n} log(1 + j psi)

Differences of log gamma functions, the textbook form, lose every digit at large kappa; here psi = 0 *is* the binomial.
Polya's urn reads off it: each pass makes the next one likelier by psi.

Where a board has very many runs, those between two counts that occur on it are summed at once by Stirling's series.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pymc as pm
import pymc.dims as pmd
import xarray as xr

CELL = ("task", "config")
TINY = 1e-300
"""Floor of a probability: its logarithm stays finite with its derivatives."""
LARGEST_LOG = 500.0
"""Of a kappa in simulation; cells are additive to the last digit long before."""
DENSE = 32
"""Runs of a cell that have a term each; the series for those after them is then good to the last digit."""


class Steps(NamedTuple):
    """Runs by what came before them: ``start`` j over ``step``, ``width`` how many runs from there are summed at once.

    ``wide``: whether any is more than one.
    """

    start: Any
    width: Any
    wide: bool


def earlier_runs(outcomes: xr.Dataset) -> Steps:
    """Register ``earlier_runs`` and ``runs_at_once`` over ``step`` in the open model: j = 0, 1, ... and one run each.

    After the first `DENSE`, steps go from one of the board's counts of passes, fails or runs to the next: no sum over
    runs ends inside one.
    """
    k, n = outcomes["successes"].values, outcomes["trials"].values
    most = int(n.max())
    counts = np.unique(np.concatenate([k, n - k, n], axis=None))
    edges = np.unique(np.concatenate([np.arange(min(most, DENSE) + 1), counts[counts > DENSE]]))
    pm.modelcontext(None).add_coord("step", edges[:-1])
    start = pmd.Data("earlier_runs", edges[:-1].astype(float), dims=("step",))
    return Steps(start, pmd.Data("runs_at_once", np.diff(edges).astype(float), dims=("step",)), most > DENSE)


def log_kappa(outcomes: xr.Dataset, log_kappa_mean: float, log_kappa_sd: float) -> Any:
    """Register ``log_kappa`` (config), hierarchical: mean ``log_kappa_mean`` and sd ``log_kappa_sd`` over configs.

    One config shows no spread: its log kappa has the prior of the mean, and neither of the two is there.
    """
    mean_prior = np.float64(log_kappa_mean)
    if outcomes.sizes["config"] == 1:
        return pmd.Normal("log_kappa", 0.0, mean_prior, dims="config")
    mean = pmd.Normal("log_kappa_mean", 0.0, mean_prior)
    sd = pmd.HalfNormal("log_kappa_sd", np.float64(log_kappa_sd))
    return pmd.Normal("log_kappa", mean, sd, dims="config")


def log_mass_of_tasks(k: Any, n: Any, eta: Any, log_kappa: Any, steps: Steps) -> Any:
    """Return the sum over configs of log p(k) less log C(n, k), over (task, node).

    Sums over configs and runs are matrix products: no array of tasks x configs x nodes is made.

    Parameters
    ----------
    k, n
        Successes and trials (task, config).
    eta
        Logit of mu (config, node).
    log_kappa
        Over config.
    steps
        From `earlier_runs`.
    """
    psi = pmd.math.exp(-log_kappa)

    def total(count: Any, p: Any) -> Any:
        return (count > steps.start).astype("float64").dot(_log_rising(p, psi, steps), dim=("config", "step"))

    return total(k, _probability(eta)) + total(n - k, _probability(-eta)) - total(n, 1.0)


def log_mass_of_cells(k: Any, n: Any, eta: Any, log_kappa: Any, steps: Steps) -> Any:
    """Return log p(k) less log C(n, k) of every cell, for eta over (task, config)."""
    psi, j = pmd.math.exp(-log_kappa), steps.start
    if steps.wide:

        def total(count: Any, p: Any) -> Any:
            return pmd.math.where(j < count, _log_rising(p, psi, steps), 0.0).sum("step")

        return total(k, _probability(eta)) + total(n - k, _probability(-eta)) - total(n, 1.0)
    # The passes of a cell first and its fails after them: one factor a run, half the logarithms.
    passed = j < k
    drawn = pmd.math.where(passed, _probability(eta), _probability(-eta)) + pmd.math.where(passed, j, j - k) * psi
    return pmd.math.log(pmd.math.where(j < n, drawn / (1 + j * psi), 1.0)).sum("step")


def _probability(eta: Any) -> Any:
    return pmd.math.maximum(pmd.math.sigmoid(eta), TINY)


def _log_rising(p: Any, psi: Any, steps: Steps) -> Any:
    """Return, over ``step``, the sum of log(p + i psi) for i from ``start`` to ``start + width - 1``.

    For a width above one it is log Gamma(x + w) - log Gamma(x) + w log psi at x = p / psi + start, by Stirling's
    series with its large terms cancelled beforehand (Abramowitz and Stegun 1964, 6.1.41).
    """
    j, w = steps.start, steps.width
    first = p + j * psi
    if not steps.wide:
        return pmd.math.log(first)
    last = first + w * psi
    x = first / psi
    many = (x - 0.5) * pmd.math.log1p(w / x) + w * (pmd.math.log(last) - 1.0) + _series(last / psi) - _series(x)
    return pmd.math.where(w > 1, many, pmd.math.log(first))


def _series(x: Any) -> Any:
    """Return log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2."""
    square = 1 / (x * x)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / x


def observe(k: Any, n: Any, eta: Any, log_kappa: Any, steps: Steps) -> Any:
    """Register ``successes_observed`` (task, config), a beta-binomial with logit mean ``eta``, observed as ``k``."""

    def logp(value: Any, n: Any, eta: Any, log_kappa: Any, start: Any, width: Any) -> Any:
        k, n, eta = (pmd.as_xtensor(x, dims=CELL) for x in (value, n, eta))
        j, w = (pmd.as_xtensor(x, dims=("step",)) for x in (start, width))
        log_kappa = pmd.as_xtensor(log_kappa, dims=("config",))
        log_gamma = pmd.math.gammaln
        coefficient = log_gamma(n + 1.0) - log_gamma(k + 1.0) - log_gamma(n - k + 1.0)
        return (coefficient + log_mass_of_cells(k, n, eta, log_kappa, Steps(j, w, steps.wide))).transpose(*CELL).values

    return pm.CustomDist(
        "successes_observed",
        n.transpose(*CELL).values,
        (eta + 0.0 * n).transpose(*CELL).values,
        log_kappa.values,
        steps.start.values,
        steps.width.values,
        logp=logp,
        random=_random,
        signature="(t,c),(t,c),(c),(s),(s)->(t,c)",
        observed=k.transpose(*CELL).values,
        dtype="int64",
        dims=CELL,
    )


def _random(
    n: npt.NDArray[np.int64],
    eta: npt.NDArray[np.float64],
    log_kappa: npt.NDArray[np.float64],
    *_: npt.NDArray[np.float64],
    rng: np.random.Generator,
    size: Any = None,
) -> npt.NDArray[np.int64]:
    """Draw every cell's probability, then its runs; Beta's shapes are kept above 0, where its draw is 0 or 1."""
    mu, kappa = np.exp(-np.logaddexp(0.0, -eta)), np.exp(np.minimum(log_kappa, LARGEST_LOG))
    p = rng.beta(np.maximum(mu * kappa, TINY), np.maximum((1 - mu) * kappa, TINY))
    return np.asarray(rng.binomial(n, p))
