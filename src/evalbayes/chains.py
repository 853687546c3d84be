"""Fits by NUTS: in coordinates made by Laplace's approximation, or on the model as written with nothing of it."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import nutpie
import pymc as pm
import xarray as xr
from nutpie import compiled_pyfunc

from evalbayes import geometry, laplace, nodes
from evalbayes.choice import ModelFunction, built
from evalbayes.density import Data, Density, available_cores, data_of, over_draws
from evalbayes.errors import SamplingError
from evalbayes.marginal import Progress, Settled, compiled_once, on_grid
from evalbayes.tree import labelled, reported, with_families

CHAINS = 4
MARGINAL_WORK = 5_000_000
"""Terms of one marginal density up to which a gradient of it costs about what one of the latent density does."""
LEAST_CHAIN_DRAWS = 1000
"""Fewer leave the R-hat of several hundred quantities too noisy to be held to 1.01."""
TUNE, TARGET_ACCEPT = 200, 0.8
"""In whitened coordinates there is only the step size left to find."""
CAREFUL_ACCEPT = 0.95
"""For a second try where the first had divergences: boards so small that Laplace's approximation is a poor guide."""
LATENT_TUNE, LATENT_TARGET_ACCEPT = 1000, 0.95


class Target(NamedTuple):
    """What NUTS samples: a form of the model, its density and data, and the coordinates to move in."""

    model: pm.Model
    density: Density
    data: Data
    at: geometry.Coordinates
    marginal: bool


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
    """Fit by NUTS in the coordinates of `geometry`, from the mode.

    The marginal density where a gradient of it is cheap. On large boards one of the latent density costs a fifth of
    it, and is tried first; its task effects can be hard to follow into a narrow component of their density, and then
    it is the marginal one after all. Where the grid proves too coarse for some of the draws, all are drawn again on
    a finer one.
    """

    def latent(settled: Settled) -> Target:
        return _latent(settled, built(function, outcomes, priors), function, priors, say)

    tree, seen = _on_present_grid(settled, latent, draws=draws, seed=seed, say=say)
    if seen is None or seen.error <= nodes.SLACK * nodes.TOLERANCE:
        return tree
    finer = on_grid(settled._replace(seen=seen), nodes.refined)
    say(f"refining the grid to {finer.data['node_position'].size} nodes")
    return _on_present_grid(finer, latent, draws=draws, seed=seed, say=say)[0]


def _on_present_grid(
    settled: Settled, latent: Callable[[Settled], Target], *, draws: int, seed: int, say: Progress
) -> tuple[xr.DataTree, nodes.GridCheck | None]:
    """Sample once, and once more with care if there are divergences."""
    second = settled.seen is not None
    # Coordinates have no place for residuals that families share: those are always integrated out.
    first = second and (_work(settled.data) <= MARGINAL_WORK or nodes.has_families(settled.density))
    for marginal, tune, target_accept in ((first, TUNE, TARGET_ACCEPT), (second, 2 * TUNE, CAREFUL_ACCEPT)):
        target = _marginal(settled) if marginal else latent(settled)
        what = "task effects integrated out" if marginal else "the model as written"
        say(f"sampling {CHAINS} chains of {_chain_draws(draws)}: {what}")
        compiled, start = _compiled(target), np.zeros(target.density.size)
        sampled = _run(compiled, draws, seed, tune=tune, target_accept=target_accept, init_mean=start)
        if not sampled["sample_stats"]["diverging"].any():
            break
    return _labelled(target, sampled, np.random.default_rng(seed), say)


def _work(data: Data) -> int:
    """Return how many terms one marginal density has."""
    steps = data["earlier_runs"].size if "earlier_runs" in data else 1
    return int(data["successes"].size * data["node_position"].size * steps)


def _marginal(settled: Settled) -> Target:
    density, data = settled.density, settled.data
    return Target(settled.model, density, data, _coordinates(settled, density, data), marginal=True)


def _latent(settled: Settled, model: pm.Model, function: ModelFunction, priors: Any, say: Progress) -> Target:
    say("compiling the latent model")
    density, data = compiled_once(function, model, priors, marginal=False), data_of(model)
    return Target(model, density, data, _coordinates(settled, density, data), marginal=False)


def _coordinates(settled: Settled, density: Density, data: Data) -> geometry.Coordinates:
    try:
        at = geometry.coordinates(settled, density, data)
    except KeyError as unknown:
        raise SamplingError(
            f"nuts: the latent form of the model has no {unknown}; name both forms' variables alike, or try "
            "method='latent'"
        ) from None
    moved: geometry.Coordinates = jax.tree.map(jax.numpy.asarray, at)
    return moved


def _labelled(
    target: Target, sampled: xr.DataTree, rng: np.random.Generator, say: Progress
) -> tuple[xr.DataTree, nodes.GridCheck | None]:
    """Carry draws of w back to the model's quantities, task effects included, and check the grid where there is one."""
    density, data = target.density, target.data
    w = sampled["posterior"].to_dataset()["w"].values.reshape(-1, density.size)
    x = over_draws(geometry.positions(density), (w,), (target.at, data))
    values = laplace.draws_of(density, reported(target.model), x, data)
    seen = None
    if target.marginal:
        say("drawing task effects")
        values |= nodes.drawn_back(density, x, data, rng)
        seen = nodes.grid_check(density)(x[:: max(1, len(x) // nodes.CHECKED_DRAWS)], data)
    tree = _tree("nuts", labelled(target.model, values, chains=CHAINS), sampled)
    tree.attrs |= {} if seen is None else nodes.grid_attrs(data["node_position"], seen)
    return tree, seen


def by_latent(
    outcomes: xr.Dataset, function: ModelFunction, *, draws: int, seed: int, say: Progress, priors: dict[str, Any]
) -> xr.DataTree:
    """Fit by NUTS on the model as written, with nutpie's own adaptation: the reference, slow and sure."""
    say("compiling the latent model")
    model = built(function, outcomes, priors)
    compiled = nutpie.compile_pymc_model(model, backend="jax", gradient_backend="jax", var_names=reported(model))
    say(f"sampling {CHAINS} chains of {_chain_draws(draws)}")
    # The intercept and the mean of the task effects trade places: a ridge that a diagonal metric does not see.
    sampled = _run(
        compiled,
        draws,
        seed,
        tune=LATENT_TUNE,
        target_accept=LATENT_TARGET_ACCEPT,
        adaptation="low_rank",
    )
    return _tree("latent", with_families(model, sampled["posterior"].to_dataset()), sampled)


def _chain_draws(draws: int) -> int:
    return max(-(-draws // CHAINS), LEAST_CHAIN_DRAWS)


def _compiled(target: Target) -> Any:
    """Return the density in w as nutpie takes it: a function of w that gives value and gradient."""
    value_and_gradient, size = geometry.value_and_gradient(target.density), target.density.size

    def logp(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = value_and_gradient(w, target.at, target.data)
        return float(value), np.asarray(gradient)

    logp(np.zeros(size))
    return compiled_pyfunc.from_pyfunc(
        size,
        lambda: logp,
        lambda *_: lambda w: {"w": np.asarray(w)},
        [np.dtype("float64")],
        [(size,)],
        ["w"],
    )


def _run(compiled: Any, draws: int, seed: int, **settings: Any) -> xr.DataTree:
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
