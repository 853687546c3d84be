"""Whether a fit may be believed: each check by name, with its value, its limit and what to do where it fails."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from evalbayes.cells import flattened
from evalbayes.errors import SamplingError
from evalbayes.posterior.draws import population_remedy

K_HAT = 0.5
"""Pareto k-hat below which importance weights have a usable variance (Vehtari et al. 2024)."""
LEAST_ESS = 400
"""Effective draws: the 2.5% point of a posterior then has a standard error of a seventh of its sd."""
R_HAT, LEAST_BFMI = 1.01, 0.3
"""Of Vehtari et al. (2021, Bayesian Analysis 16, 667-718) and of Betancourt (2016, arXiv 1604.00695)."""


class Check(NamedTuple):
    """One check: ``side`` says on which side of ``limit`` its value must lie; ``about`` the sampler or the model."""

    value: float
    side: str
    limit: float
    about: str
    meaning: str
    remedy: str

    @property
    def passed(self) -> bool:
        """Whether the value is on the right side; NaN never is."""
        return {"below": self.value < self.limit, "at least": self.value >= self.limit}.get(
            self.side, self.value <= self.limit
        )


def sampler(fit: xr.DataTree) -> xr.Dataset:
    """Return every check that applies to a fit.

    Chains have R-hat, bulk and tail ESS, divergences and BFMI, over every element of every reported quantity. What is
    the same in all draws (the one weight of a normal density, a score of exactly 1) has no R-hat: it is counted apart,
    in attr ``constant``; a quantity that varies between chains and not within them is ``stuck``, and a failure.
    Importance draws are not a chain: they have Pareto k-hat, weight ESS and the grid's error. Then come the checks of
    the model: the population gate and the dispersion of repeated cells.

    Parameters
    ----------
    fit
        From `evalbayes.fit`.

    Returns
    -------
    xarray.Dataset
        Over ``check``: ``value``, ``limit``, ``passed`` (bool), ``side`` (how value and limit must compare), ``about``
        (``"sampler"`` or ``"model"``), ``meaning``, ``remedy``; attrs ``quantities`` and ``constant``, how many there
        are.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.check.sampler(eb.fit(board)).passed.to_series()                           # doctest: +SKIP
    k_hat           True
    weight_ess      True
    """
    posterior = fit["posterior"].to_dataset()
    # One flag for every element of every variable, in the order in which ArviZ returns its diagnostics.
    same = np.concatenate([np.ravel(np.ptp(v.values, axis=0) == 0) for v in flattened(posterior).data_vars.values()])
    found = _weights(fit)
    if "sample_stats" in fit.children:
        found = _chains(posterior, fit["sample_stats"].to_dataset(), same, str(fit.attrs.get("method"))) | found
    found |= _model(fit.attrs)
    columns = {name: ("check", [getattr(check, name) for check in found.values()]) for name in Check._fields}
    columns["passed"] = ("check", [check.passed for check in found.values()])
    return xr.Dataset(columns, {"check": list(found)}, {"quantities": same.size, "constant": int(same.sum())})


def refuse_failed(checks: xr.Dataset, method: str) -> None:
    """Raise SamplingError, naming each failed check of the sampler, by how much, and what to try."""
    wrong = checks.isel(check=((checks["about"] == "sampler") & ~checks["passed"]).values)
    if not wrong.sizes["check"]:
        return
    said = [
        f"{name} {float(row.value):.4g} ({row.side.item()} {float(row.limit):g} needed)"
        for name, row in ((name, wrong.sel(check=name)) for name in wrong["check"].values)
    ]
    raise SamplingError(f"{method}: {', '.join(said)}; {wrong['remedy'].values[0]}")


def _chains(posterior: xr.Dataset, stats: xr.Dataset, same: np.ndarray, method: str) -> dict[str, Check]:
    """Return the checks of chains; ``same`` says which elements are constant over all draws."""
    import arviz_stats as azs

    r_hat, bulk, tail = (
        np.concatenate([np.ravel(result[name]) for name in posterior.data_vars])
        for result in (azs.rhat(posterior), azs.ess(posterior, method="bulk"), azs.ess(posterior, method="tail"))
    )
    stuck = ~same & ~np.isfinite(r_hat)
    telling = ~same & ~stuck
    other = "try method='latent'" if method == "nuts" else "try method='laplace'"
    more = f"try more draws, or {other.removeprefix('try ')}"
    worst = {
        "r_hat": (float(r_hat[telling].max(initial=1.0)), "below", R_HAT, "agreement of the chains, worst quantity"),
        "ess_bulk": (
            float(bulk[telling].min(initial=np.inf)),
            "at least",
            LEAST_ESS,
            "draws the chains are worth, least",
        ),
        "ess_tail": (float(tail[telling].min(initial=np.inf)), "at least", LEAST_ESS, "the same for interval ends"),
        "divergences": (int(stats["diverging"].sum()), "at most", 0, "places the sampler could not follow"),
        "bfmi": (
            float(azs.bfmi(stats["energy"]).min()),
            "at least",
            LEAST_BFMI,
            "how well chains change energy, worst",
        ),
        "stuck": (int(stuck.sum()), "at most", 0, "quantities that never moved within a chain"),
    }
    return {
        name: Check(*seen[:3], "sampler", seen[3], more if name in ("r_hat", "ess_bulk", "ess_tail") else other)
        for name, seen in worst.items()
    }


def _weights(fit: xr.DataTree) -> dict[str, Check]:
    attrs = fit.attrs
    remedy = f"try method='{'nuts' if attrs.get('method') == 'laplace' else 'latent'}'"
    found = {}
    for name, side, limit, meaning in (
        ("k_hat", "below", K_HAT, "how heavy the tail of the importance weights is"),
        ("weight_ess", "at least", LEAST_ESS, "independent draws the weights are worth"),
        ("grid_error", "at most", attrs.get("grid_limit", np.nan), "error of the log density, worst of the draws"),
    ):
        if name in attrs:
            found[name] = Check(float(attrs[name]), side, float(limit), "sampler", meaning, remedy)
    return found


def _model(attrs: Any) -> dict[str, Check]:
    found = {}
    if "gate" in attrs:
        found["population"] = Check(
            0.0 if attrs["gate"] == "passed" else 1.0,
            "at most",
            0.0,
            "model",
            "1 where scores for new tasks disagree with the observed means: a wrong distribution of task effects",
            population_remedy(attrs),
        )
    if "dispersion" in attrs:
        found["dispersion"] = Check(
            float(attrs["dispersion"]),
            "at most",
            float(attrs["dispersion_limit"]),
            "model",
            "runs of a cell about the fit, 1 expected; above the limit differences and ranks are too narrow",
            "fit model='crossed_beta_binomial'"
            if attrs.get("model") == "crossed"
            else "look for duplicated runs or a task that changed between them: no model here fits such cells",
        )
    return found
