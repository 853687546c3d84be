"""A model settled for fitting: compiled, expanded at its mode, on a grid that resolves its integrals."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytensor.tensor as pt
import xarray as xr
from scipy import special

from evalbayes import nodes
from evalbayes.choice import ModelFunction, built
from evalbayes.density import KEPT, Data, Density, compile_density, data_of, flatten
from evalbayes.errors import SamplingError
from evalbayes.expansion import Expansion, expand

_COMPILED: dict[tuple[Any, ...], Density] = {}


Progress = Callable[[str], None]


class Settled(NamedTuple):
    """A marginal model with its density, data and expansion point; ``seen`` is the grid's check, None without a grid.

    The density may have been compiled for another board of the same shape; names and data are those of ``model``.
    """

    model: pm.Model
    density: Density
    data: Data
    expansion: Expansion
    seen: nodes.GridCheck | None


def settle(outcomes: xr.Dataset, function: ModelFunction, priors: dict[str, Any], say: Progress) -> Settled:
    """Build and compile the marginal model of a board, and find its expansion point on a grid that passes there.

    Raises
    ------
    SamplingError
        If there is no maximum, or no grid resolves the integrals.
    """
    say("building the marginal model")
    model = built(function, outcomes, priors, marginal=True)
    density = compiled_once(function, model, priors, marginal=True)
    x = flatten(density, _start(model, outcomes))
    z = first_nodes(model, outcomes) if has_grid(density) else None
    return _expanded(model, density, data_of(model), x, z, say)


def first_nodes(model: pm.Model, outcomes: xr.Dataset) -> np.ndarray:
    """Return nodes for a model of a board that is not yet fitted, from what the two say of each other."""
    there, member = model.named_vars, "interaction_group_of_config"
    families = there[member].get_value() if member in there else None
    return nodes.first_nodes(outcomes, overdispersed="log_kappa" in there, families=families)


def on_grid(settled: Settled, change: Callable[[np.ndarray, nodes.GridCheck, int], np.ndarray]) -> Settled:
    """Return the same expansion with the grid that ``change`` makes of the present one and its check."""
    assert settled.seen is not None
    z = change(settled.data["node_position"], settled.seen, settled.data["successes"].shape[0])
    return settled._replace(data=settled.data | {"node_position": z})


def has_grid(density: Density) -> bool:
    """Return whether the model integrates its task effects out; one without any has nothing to integrate."""
    return "node_position" in density.model.named_vars


def _expanded(
    model: pm.Model, density: Density, data: Data, x: np.ndarray, z: np.ndarray | None, say: Progress
) -> Settled:
    for _ in range(nodes.GRIDS):
        grid = "" if z is None else f", {z.size} nodes"
        say(f"finding the mode: {density.size} parameters{grid} (compiling first)")
        data = data if z is None else data | {"node_position": z}
        expansion = expand(density, data, x)
        if z is None:
            return Settled(model, density, data, expansion, None)
        seen = nodes.grid_check(density)(expansion.x, data)
        if seen.passed():
            return Settled(model, density, data, expansion, seen)
        x, z = expansion.x, nodes.refined(z, seen, data["successes"].shape[0])
    nodes_tried = data["node_position"].size
    raise SamplingError(f"laplace: the grid {seen.fault()} at {nodes_tried} nodes; try method='latent'")


def compiled_once(function: ModelFunction, model: pm.Model, priors: dict[str, Any], *, marginal: bool) -> Density:
    """Compile a model's density, or return the one compiled for the last board of its shape.

    Only for the package's own models, whose every datum is a data variable; what a user's model holds as a constant
    cannot be seen.
    """
    if not function.__module__.startswith("evalbayes.models."):
        return compile_density(model)
    shapes = tuple((name, len(values or ())) for name, values in model.coords.items() if name != "node")
    key = (function, marginal, shapes, repr(sorted(priors.items())))
    if key not in _COMPILED:
        while len(_COMPILED) >= KEPT:
            _COMPILED.pop(next(iter(_COMPILED)))
        _COMPILED[key] = compile_density(model)
    return _COMPILED[key]


def _start(model: pm.Model, outcomes: xr.Dataset) -> dict[str, np.ndarray]:
    """Return an initial point with config effects at their smoothed logits, so that no scale starts at zero."""
    k, n = outcomes["successes"].sum("task").values, outcomes["trials"].sum("task").values
    logit = special.logit((k + 0.5) / (n + 1.0))
    guess = {"config_effect": logit - logit.mean(), "config_sd": max(float(logit.std()), 0.3)}
    point: dict[str, np.ndarray] = model.initial_point()
    for name, value in guess.items():
        # One's own model may make its effects of something else.
        if name in model.named_vars and model[name] in model.rvs_to_values:
            point[model.rvs_to_values[model[name]].name] = _unconstrained(model, model[name], value)
    return point


def _unconstrained(model: pm.Model, variable: Any, value: Any) -> np.ndarray:
    """Return a value of a random variable on its unconstrained scale."""
    transform = model.rvs_to_transforms[variable]
    dims = getattr(variable.type, "dims", None)
    constant = pt.as_tensor(np.asarray(value, float)) if dims is None else pmd.as_xtensor(np.asarray(value), dims=dims)
    moved = constant if transform is None else transform.forward(constant, *variable.owner.inputs)
    return np.asarray(moved.eval(mode="FAST_COMPILE"))
