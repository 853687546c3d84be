"""Groups of configs and of tasks: random effects named by coords of the board, crossed or nested, any number of them.

    ability_c = b + a_c + sum over g of u_g[g(c)]      u_g ~ ZeroSumNormal(sigma_g)     config_groups
    t_t       = sum over h of v_h[h(t)] + residual_t   v_h ~ Normal(0, sigma_h)         task_groups

Which agent and which model make up a config, which repository a task comes from: ``GROUP_sd`` says how much of the
spread each accounts for, and a_c and the residual are what is left of it. Groups of configs sum to zero as a_c does;
groups of tasks do not, as a new task may come from a new group.

A group effect is sampled like any other parameter. Of a task's effect the residual alone is integrated out: the grid is
one of whole effects t, shared by all tasks, and only the weights of its nodes are a task's own.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pymc.dims as pmd
import xarray as xr

from evalbayes.models.labels import labels, named


def of_configs(outcomes: xr.Dataset, config_groups: str | Sequence[str], sd: float) -> Any:
    """Register ``GROUP_sd`` and ``GROUP_effect`` of every group of configs; return the sum of effects (config), or 0.

    A group of one level has nothing to differ from, and no effect.
    """
    total: Any = 0.0
    for name in _present(config_groups):
        sigma = pmd.HalfNormal(f"{name}_sd", np.float64(sd))
        effect = pmd.ZeroSumNormal(f"{name}_effect", sigma=sigma, core_dims=name)
        total = total + effect.dot(_membership(outcomes, name, "config"), dim=name)
    return total


def of_tasks(outcomes: xr.Dataset, task_groups: str | Sequence[str], sd: float) -> tuple[Any, Any]:
    """Register ``GROUP_sd`` and ``GROUP_effect`` of every group of tasks.

    Returns
    -------
    tuple
        The sum of effects, registered as ``task_group_effect`` (task), and its variance over new groups, registered by
        its root as ``task_group_sd``; 0 and 0 without groups.
    """
    total: Any = 0.0
    variance: Any = 0.0
    for name in _present(task_groups):
        sigma = pmd.HalfNormal(f"{name}_sd", np.float64(sd))
        effect = pmd.Normal(f"{name}_effect", 0.0, sigma, dims=name)
        total = total + effect.dot(_membership(outcomes, name, "task"), dim=name)
        variance = variance + sigma**2
    if _present(task_groups):
        total = pmd.Deterministic("task_group_effect", total)
        pmd.Deterministic("task_group_sd", pmd.math.sqrt(variance))
    return total, variance


def _present(groups: str | Sequence[str]) -> list[str]:
    """Return the groups that the open model has: those of more than one level."""
    return [name for name in named(groups) if name in pm.modelcontext(None).coords]


def _membership(outcomes: xr.Dataset, name: str, dim: str) -> Any:
    """Register ``GROUP_of_DIM``: 1 where a config (task) is of a level and 0 elsewhere."""
    levels = np.asarray(pm.modelcontext(None).coords[name])
    member = labels(outcomes, name, dim)[:, None] == levels
    return pmd.Data(f"{name}_of_{dim}", member.astype(float), dims=(dim, name))
