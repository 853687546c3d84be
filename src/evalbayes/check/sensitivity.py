"""How much what a fit says depends on its priors, and how much on its data: power-scaling.

A component of the posterior, one prior or all of them or the likelihood, is raised to a power alpha near 1, and draws
are weighted anew by that component to the power alpha - 1, without another fit. Sensitivity is how far a quantity's
distribution function moves per doubling of alpha, as the cumulative Jensen-Shannon distance of the two::

    D = d CJS(p(q | y), p_alpha(q | y)) / d log2 alpha      at alpha = 1, from alpha = 0.99 and 1.01

(Kallioinen, Paananen, Buerkner and Vehtari 2024, Statistics and Computing 34, 57). A normal whose mean moves by a
quarter of its standard deviation has 0.05.

Priors that are scaled have no parameters that are themselves uncertain. What config effects are drawn from, given
config_sd, is a part of the model: to its power it would be another model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.errors import ArgumentError
from evalbayes.models import NAMES

THRESHOLD = 0.05
ALPHAS = (0.99, 1.01)
CONFLICT, WEAK, NEITHER = "prior-data conflict", "weak likelihood", "-"
ALL = "all"
"""Label of the priors taken together."""


def sensitivity(
    fit: xr.DataTree,
    model: Any = None,
    *,
    quantities: str | Sequence[str] | None = None,
    threshold: float = THRESHOLD,
) -> xr.Dataset:
    """Say which reported quantities move with the priors, with which of them, and how far.

    Parameters
    ----------
    fit
        From `evalbayes.fit`, by any method.
    model
        The function the fit was made with, where it is neither in the package nor in a file.
    quantities
        Names in the posterior, or ``"icc"``. When not given: ``score``, ``icc`` (for new tasks, of configs that ran one
        twice), ``log_kappa``, and standard deviations of effects, ``config_sd`` and the like.
    threshold
        Sensitivity from which a quantity counts as one that moves.

    Returns
    -------
    xarray.Dataset
        Over ``quantity`` (``"score[config]"``, with coords ``name`` and ``element``) and ``prior`` (``"all"`` first,
        then one for each variable whose prior has no parameters of its own): ``prior_sensitivity`` (prior, quantity);
        ``shift`` (prior, quantity), how many posterior standard deviations the mean moves where that prior counts
        twice, to first order: log 2 cov(q, log prior) / sd(q); ``likelihood_sensitivity`` (quantity); ``diagnosis``
        (quantity), of all priors together: ``"prior-data conflict"`` (moves with both), ``"weak likelihood"`` (moves
        with the prior, not with the data: a strong prior or few data) or ``"-"``; ``from_prior`` (quantity), the prior
        that moves it most, "" where none does. A quantity that is the same in all draws is left out. Attrs:
        ``threshold``, ``flagged`` (how many quantities) and ``verdict``.

    Raises
    ------
    ArgumentError
        If there is no such quantity, the threshold is not positive, or the model is not found or not the fit's.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.check.sensitivity(eb.fit(board)).verdict                                  # doctest: +SKIP
    'no quantity moves with the priors'
    """
    from evalbayes import pointwise
    from evalbayes.predictive import origin

    if not 0 < threshold < np.inf:
        raise ArgumentError(f"threshold={threshold!r}: give a positive number, such as {THRESHOLD}")
    board, function, priors = origin(fit, model)
    posterior = fit["posterior"].to_dataset()
    values = _quantities(fit, posterior, quantities)
    terms = pointwise.log_densities(pointwise.form_of(board, function, priors), posterior)
    scaled = terms["prior"].isel(variable=(~terms["hierarchical"]).values)
    components = {ALL: scaled.sum("variable")}
    components |= {str(name): scaled.sel(variable=name, drop=True) for name in scaled["variable"].values}
    moved = xr.concat([_moved(values, one) for one in components.values()], "prior").assign_coords(
        prior=list(components)
    )
    result = moved.rename(sensitivity="prior_sensitivity")
    result["likelihood_sensitivity"] = _moved(values, terms["likelihood"].sum("task"))["sensitivity"]
    return _judged(result.transpose("prior", "quantity"), threshold)


def _quantities(fit: xr.DataTree, posterior: xr.Dataset, names: str | Sequence[str] | None) -> xr.DataArray:
    """Return draws (chain, draw, quantity) of every element of what is asked for, those that vary."""
    if names is None:
        of_effects = [str(name) for name in posterior.data_vars if str(name).endswith("_sd") and name != "log_kappa_sd"]
        there = [name for name in ("score", "log_kappa") if name in posterior]
        names = [*there, *of_effects, *(["icc"] if _has_icc(fit, posterior) else [])]
    parts = []
    for name in [names] if isinstance(names, str) else names:
        if name not in posterior and not (name == "icc" and _has_icc(fit, posterior)):
            raise ArgumentError(
                f"quantities: no {name!r} in this fit; it has {', '.join(map(str, posterior.data_vars))}"
            )
        parts.append(_elements(_icc(fit) if name == "icc" else posterior[name], name))
    if not parts:
        raise ArgumentError("quantities: none is named; leave it out for those that are reported")
    values = xr.concat(parts, "quantity")
    varies = np.ptp(values.values, axis=(0, 1)) > 0
    return values.isel(quantity=varies)


def _elements(values: xr.DataArray, name: str) -> xr.DataArray:
    """Lay the elements of a variable along ``quantity``, each under its label."""
    values = values.reset_coords(drop=True).transpose("chain", "draw", ...)
    dims = values.dims[2:]
    index = np.indices(values.shape[2:]).reshape(len(dims), -1).T if dims else [()]
    labels = [", ".join(str(values[dim].values[i]) for dim, i in zip(dims, at, strict=True)) for at in index]
    return xr.DataArray(
        values.values.reshape(*values.shape[:2], -1),
        dims=("chain", "draw", "quantity"),
        coords={
            "quantity": [f"{name}[{label}]" if label else name for label in labels],
            "name": ("quantity", [name] * len(labels)),
            "element": ("quantity", labels),
        },
    )


def _has_icc(fit: xr.DataTree, posterior: xr.Dataset) -> bool:
    """Whether the fit says what the ICC on new tasks is: a packaged model's, its population believed."""
    runs = fit["constant_data"]["trials"].max()
    return fit.attrs["model"] in NAMES and fit.attrs.get("gate") != "failed" and "score" in posterior and bool(runs > 1)


def _icc(fit: xr.DataTree) -> xr.DataArray:
    """Return draws (chain, draw, config) of the ICC on new tasks, of configs that show it."""
    from evalbayes.posterior.variances import component_draws

    found = component_draws(fit, tasks="sampled")
    icc = (found.between / (found.between + found.within)).transpose("draw", "config")
    icc = icc.isel(config=(found.reason == "").values)
    chains = fit["posterior"].sizes["chain"]
    return xr.DataArray(
        icc.values.reshape(chains, -1, icc.sizes["config"]),
        dims=("chain", "draw", "config"),
        coords={"config": icc["config"].values},
    )


def _moved(values: xr.DataArray, log_density: xr.DataArray) -> xr.Dataset:
    """Scale one component: over quantity, how far each distribution moves, and its mean in standard deviations."""
    from arviz_stats.base import array_stats

    log_p = log_density.transpose("chain", "draw").values
    draws = values.transpose("quantity", "chain", "draw")
    if np.ptp(log_p) == 0:
        # A flat prior has nothing to scale.
        return xr.Dataset(
            {"sensitivity": 0.0 * draws.mean(("chain", "draw")), "shift": 0.0 * draws.mean(("chain", "draw"))}
        )
    weights = [np.exp(array_stats.power_scale_lw(log_p, alpha=alpha, axis=(0, 1))) for alpha in ALPHAS]
    lower, upper = (np.broadcast_to(one / one.sum(), draws.shape) for one in weights)
    moved = array_stats.power_scale_sense(draws.values, lower, upper, *ALPHAS, chain_axis=-2, draw_axis=-1)
    centred = draws - draws.mean(("chain", "draw"))
    shift = np.log(2) * (centred * (log_p - log_p.mean())).mean(("chain", "draw")) / draws.std(("chain", "draw"))
    return xr.Dataset({"sensitivity": shift.copy(data=moved), "shift": shift})


def _judged(result: xr.Dataset, threshold: float) -> xr.Dataset:
    """Say of every quantity whether it moves with the priors, and in a sentence which do."""
    of_prior, of_data = result["prior_sensitivity"], result["likelihood_sensitivity"]
    moves = of_prior.sel(prior=ALL, drop=True) >= threshold
    result["diagnosis"] = xr.where(moves, xr.where(of_data >= threshold, CONFLICT, WEAK), NEITHER).astype(object)
    strongest = of_prior.drop_sel(prior=ALL).idxmax("prior")
    result["from_prior"] = xr.where(moves, strongest, "").astype(object)
    result.attrs = {"threshold": threshold, "flagged": int(moves.sum())}
    result.attrs["verdict"] = _verdict(result)
    return result


def _verdict(result: xr.Dataset) -> str:
    """Return what moves with which prior."""
    flagged = result.isel(quantity=(result["diagnosis"] != NEITHER).values)
    if not flagged.sizes["quantity"]:
        return "no quantity moves with the priors"
    said = []
    for prior in dict.fromkeys(flagged["from_prior"].values):
        of_it = flagged.isel(quantity=(flagged["from_prior"] == prior).values)
        for word in (CONFLICT, WEAK):
            named = of_it["quantity"].values[(of_it["diagnosis"] == word).values]
            if named.size:
                more = f" and {named.size - 3} more" * (named.size > 3)
                said.append(f"{', '.join(named[:3])}{more} with the prior of {prior} ({word})")
    return f"{result.attrs['flagged']} of {result.sizes['quantity']} quantities move with the priors: {'; '.join(said)}"
