"""Fits by NUTS: in coordinates made by Laplace's approximation, or on the model as written and nothing else."""

import json
from typing import Any

import jax
import numpy as np
import nutpie
import xarray as xr
from nutpie import compiled_pyfunc

from evalbayes import geometry, laplace
from evalbayes.choice import ModelFunction
from evalbayes.density import Data, Density, available_cores, data_of, over_draws
from evalbayes.errors import SamplingError
from evalbayes.marginal import Progress, Settled, compiled_once
from evalbayes.tree import labelled, reported

CHAINS = 4
LEAST_CHAIN_DRAWS = 1000
"""Fewer leave the R-hat of several hundred quantities too noisy to be held to 1.01."""
TUNE, TARGET_ACCEPT = 200, 0.8
"""In whitened coordinates there is only the step size left to find."""
LATENT_TUNE, LATENT_TARGET_ACCEPT = 1000, 0.95


def by_nuts(
    settled: Settled,
    outcomes: xr.Dataset,
    function: ModelFunction,
    *,
    draws: int,
    seed: int,
    say: Progress,
    priors: Any,
) -> xr.DataTree:
    """Fit by NUTS on the model as written, in the coordinates of `geometry`, from its mode."""
    say("compiling the latent model")
    model = function(outcomes, marginal=False, **priors)
    latent, data = compiled_once(function, model, priors, marginal=False), data_of(model)
    try:
        at = jax.tree.map(jax.numpy.asarray, geometry.coordinates(settled, latent, data))
    except KeyError as unknown:
        raise SamplingError(
            f"nuts: the latent form of the model has no {unknown}; name both forms' variables alike, or try "
            "method='latent'"
        ) from None
    say(f"sampling {CHAINS} chains of {_chain_draws(draws)}")
    sampled = _run(
        _compiled(latent, at, data),
        draws=draws,
        seed=seed,
        tune=TUNE,
        target_accept=TARGET_ACCEPT,
        init_mean=np.zeros(latent.size),
    )
    w = sampled["posterior"].to_dataset()["w"].values
    x = over_draws(geometry.positions(latent), (w.reshape(-1, latent.size),), (at, data))
    values = laplace.draws_of(latent, reported(model), x, data)
    return _tree("nuts", labelled(model, values, chains=CHAINS), sampled)


def by_latent(
    outcomes: xr.Dataset, function: ModelFunction, *, draws: int, seed: int, say: Progress, priors: dict[str, Any]
) -> xr.DataTree:
    """Fit by NUTS on the model as written, with nutpie's own adaptation: the reference, slow and sure."""
    say("compiling the latent model")
    model = function(outcomes, marginal=False, **priors)
    compiled = nutpie.compile_pymc_model(model, backend="jax", gradient_backend="jax", var_names=reported(model))
    say(f"sampling {CHAINS} chains of {_chain_draws(draws)}")
    # The intercept and the mean of the task effects trade places: a ridge that a diagonal metric does not see.
    sampled = _run(
        compiled,
        draws=draws,
        seed=seed,
        tune=LATENT_TUNE,
        target_accept=LATENT_TARGET_ACCEPT,
        adaptation="low_rank",
    )
    return _tree("latent", sampled["posterior"].to_dataset(), sampled)


def _chain_draws(draws: int) -> int:
    return max(-(-draws // CHAINS), LEAST_CHAIN_DRAWS)


def _compiled(latent: Density, at: geometry.Coordinates, data: Data) -> Any:
    """Return the density in w as nutpie takes it: a function of w that gives value and gradient."""
    value_and_gradient = geometry.value_and_gradient(latent)

    def logp(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = value_and_gradient(w, at, data)
        return float(value), np.asarray(gradient)

    logp(np.zeros(latent.size))
    return compiled_pyfunc.from_pyfunc(
        latent.size,
        lambda: logp,
        lambda *_: lambda w: {"w": np.asarray(w)},
        [np.dtype("float64")],
        [(latent.size,)],
        ["w"],
    )


def _run(compiled: Any, *, draws: int, seed: int, **settings: Any) -> xr.DataTree:
    """Run the chains; fixed in number, so that the draws do not depend on how many cores there are."""
    sampled: xr.DataTree = nutpie.sample(
        compiled,
        draws=_chain_draws(draws),
        chains=CHAINS,
        cores=min(CHAINS, available_cores()),
        seed=seed,
        save_warmup=False,
        progress_bar=False,
        **settings,
    )
    return sampled


def _tree(method: str, posterior: xr.Dataset, sampled: xr.DataTree) -> xr.DataTree:
    """Return posterior and statistics as a fit, without the object columns that no file format holds.

    The settings in its attrs are those the sampler reports, not those it was asked for.
    """
    stats = sampled["sample_stats"].to_dataset()
    used = json.loads(stats.attrs["inference_library_settings"])["settings"]
    stats = stats.drop_vars([name for name in stats.data_vars if stats[name].dtype == object]).drop_attrs()
    tree = xr.DataTree.from_dict({"posterior": posterior.drop_attrs(), "sample_stats": stats})
    tree.attrs = {
        "method": method,
        "chains": posterior.sizes["chain"],
        "chain_draws": used["num_draws"],
        "tune": used["num_tune"],
        "target_accept": used["adapt_options"]["step_size_settings"]["target_accept"],
        "sampler_seed": used["seed"],
    }
    return tree
