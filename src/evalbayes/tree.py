"""Draws under a model's own names, dims and coords."""

from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

NODE_QUANTITIES = ("task_loglik", "node_logweight", "node_effect", "interaction_loglik")
"""Of a marginal model, for computing with: an array of tasks x nodes a draw is of no use to a reader."""
DRAWN_BACK = {"task_effect": ("task",), "interaction_effect": ("interaction_group", "task")}
"""Dims of what a marginal model has integrated out."""


def reported(model: pm.Model) -> list[str]:
    """Return the names of what a fit reports: free variables and deterministics."""
    return [variable.name for variable in model.unobserved_RVs if variable.name not in NODE_QUANTITIES]


def labelled(model: pm.Model, values: dict[str, Any], *, chains: int = 1) -> xr.Dataset:
    """Label arrays of draws, laid end to end over chains, with the model's dims and coords."""
    dims = {name: tuple(model.named_vars_to_dims.get(name) or ()) for name in values}
    dims |= {name: DRAWN_BACK[name] for name in values if name in DRAWN_BACK}
    coords = {dim: np.asarray(model.coords[dim]) for name in values for dim in dims[name]}
    draws = len(next(iter(values.values()))) // chains
    variables = {
        name: (("chain", "draw", *dims[name]), value.reshape(chains, draws, *value.shape[1:]))
        for name, value in values.items()
    }
    return with_families(model, xr.Dataset(variables, coords | {"chain": np.arange(chains), "draw": np.arange(draws)}))


def with_families(model: pm.Model, posterior: xr.Dataset) -> xr.Dataset:
    """Add which configs share their residuals on tasks, the coord ``interaction_group_of_config``, if any do."""
    name = "interaction_group_of_config"
    if name not in model.named_vars:
        return posterior
    return posterior.assign_coords({name: (model.named_vars_to_dims[name], model[name].get_value())})
