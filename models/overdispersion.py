r"""Beta-binomial runs: cells whose success probability varies around its mean.

    k | n, mu, kappa ~ BetaBinomial(n, mu kappa, (1 - mu) kappa)

With psi = 1 / kappa the factors kappa cancel from the rising factorials of the probability mass, and what is left is a
product over the runs of a cell::

    log p(k) = log C(n, k) + sum_{j<k} log(mu + j psi) + sum_{j<n-k} log(1 - mu + j psi) - sum_{j<n} log(1 + j psi)

Differences of log gamma functions, the textbook form, lose every digit at large kappa; here psi = 0 *is* the binomial.
Polya's urn reads off it: each pass makes the next one likelier by psi.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pymc.dims as pmd
import xarray as xr

CELL = ("task", "config")
TINY = 1e-300
"""Floor of a probability: its logarithm stays finite with its derivatives."""


def earlier_runs(outcomes: xr.Dataset) -> Any:
    """Register ``earlier_runs`` over ``step`` in the open model: j = 0, 1, ... below the largest number of runs."""
    count = int(outcomes["trials"].max())
    pm.modelcontext(None).add_coord("step", np.arange(count))
    return pmd.Data("earlier_runs", np.arange(float(count)), dims=("step",))


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


def log_mass_of_tasks(k: Any, n: Any, eta: Any, log_kappa: Any, j: Any) -> Any:
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
    j
        `earlier_runs`.
    """
    added = j * pmd.math.exp(-log_kappa)
    passes = _sum_taken(k > j, pmd.math.log(_probability(eta) + added))
    fails = _sum_taken(n - k > j, pmd.math.log(_probability(-eta) + added))
    return passes + fails - _sum_taken(n > j, pmd.math.log1p(added))


def _sum_taken(taken: Any, logs: Any) -> Any:
    return taken.astype("float64").dot(logs, dim=("config", "step"))


def log_mass_of_cells(k: Any, n: Any, eta: Any, log_kappa: Any, j: Any) -> Any:
    """Return log p(k) less log C(n, k), for eta over (task, config).

    The passes of a cell are put first and its fails after them, so that each run has one factor.
    """
    psi, passed = pmd.math.exp(-log_kappa), j < k
    drawn = pmd.math.where(passed, _probability(eta), _probability(-eta)) + pmd.math.where(passed, j, j - k) * psi
    return pmd.math.log(pmd.math.where(j < n, drawn / (1 + j * psi), 1.0)).sum("step")


def _probability(eta: Any) -> Any:
    return pmd.math.maximum(pmd.math.sigmoid(eta), TINY)


def observe(k: Any, n: Any, eta: Any, log_kappa: Any, j: Any) -> Any:
    """Register ``successes_observed`` (task, config), a beta-binomial with logit mean ``eta``, observed as ``k``."""

    def logp(value: Any, n: Any, eta: Any, log_kappa: Any, j: Any) -> Any:
        k, n, eta = (pmd.as_xtensor(x, dims=CELL) for x in (value, n, eta))
        log_kappa, j = pmd.as_xtensor(log_kappa, dims=("config",)), pmd.as_xtensor(j, dims=("step",))
        log_gamma = pmd.math.gammaln
        coefficient = log_gamma(n + 1.0) - log_gamma(k + 1.0) - log_gamma(n - k + 1.0)
        return (coefficient + log_mass_of_cells(k, n, eta, log_kappa, j)).transpose(*CELL).values

    return pm.CustomDist(
        "successes_observed",
        n.transpose(*CELL).values,
        (eta + 0.0 * n).transpose(*CELL).values,
        log_kappa.values,
        j.values,
        logp=logp,
        random=_random,
        signature="(t,c),(t,c),(c),(s)->(t,c)",
        observed=k.transpose(*CELL).values,
        dtype="int64",
        dims=CELL,
    )


def _random(
    n: npt.NDArray[np.int64],
    eta: npt.NDArray[np.float64],
    log_kappa: npt.NDArray[np.float64],
    _: npt.NDArray[np.float64],
    rng: np.random.Generator,
    size: Any = None,
) -> npt.NDArray[np.int64]:
    """Draw every cell's probability, then its runs; Beta's shapes are kept above 0, where its draw is 0 or 1."""
    mu, kappa = 1 / (1 + np.exp(-eta)), np.exp(log_kappa)
    p = rng.beta(np.maximum(mu * kappa, TINY), np.maximum((1 - mu) * kappa, TINY))
    return rng.binomial(n, p)
