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

RESERVED = (
    *("config", "task", "task_group", "interaction", "interaction_group", "run", "node", "there", "component", "step"),
    *("quadrature", "chain", "draw", "intercept", "score", "ability", "successes", "trials", "separation"),
)
"""Names whose ``_effect`` and ``_sd``, or whose dim, a model has already."""


def named(groups: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of groups, from a sequence of them or from a text with commas between."""
    if not isinstance(groups, str | Sequence):
        raise ValueError(f"groups={groups!r}: give the names of coords, such as ('agent', 'model')")
    names = groups.split(",") if isinstance(groups, str) else groups
    return tuple(name for name in (str(name).strip() for name in names) if name)


def coords(
    outcomes: xr.Dataset, config_groups: str | Sequence[str], task_groups: str | Sequence[str]
) -> dict[str, Any]:
    """Return the levels of every group that has two or more, by the group's name.

    Raises
    ------
    ValueError
        If a group is not a coord along configs (tasks), has blank labels, tells every config (task) from every other,
        splits them as another group does, or has a name that a model needs for itself.
    """
    by_dim = {"config": named(config_groups), "task": named(task_groups)}
    every = [*by_dim["config"], *by_dim["task"]]
    if len(set(every)) < len(every):
        raise ValueError(f"groups {', '.join(every)}: one is named twice")
    named_labels = {name: labels(outcomes, name, dim) for dim, names in by_dim.items() for name in names}
    for names in by_dim.values():
        _check_apart({name: named_labels[name] for name in names})
    found = {name: np.unique(values) for name, values in named_labels.items()}
    return {name: levels for name, levels in found.items() if levels.size > 1}


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


def labels(outcomes: xr.Dataset, name: str, dim: str, option: str = "") -> Any:
    """Return the label of every config (task) as text; ``option`` is what errors call the argument that names it.

    Raises
    ------
    ValueError
        As `coords` for one group.
    """
    option = option or f"{dim}_groups"
    known = [str(key) for key, coord in outcomes.coords.items() if coord.dims == (dim,) and key != dim]
    if name not in known:
        there = f"it has {', '.join(known)}" if known else "it has none"
        raise ValueError(f"{option}: {name!r} is not a coord of the board's {dim}s; {there}")
    if name in RESERVED or name.endswith(("_of_config", "_of_task", "_effect", "_sd")) or name.startswith("log_"):
        raise ValueError(f"{option}: a model has its own {name!r}; rename the coord")
    values = outcomes[name].values
    found = np.array(["" if value is None or value != value else str(value).strip() for value in values])
    if (found == "").any():
        first = outcomes[dim].values[found == ""][0]
        raise ValueError(f"{option}: {name!r} is blank for {(found == '').sum()} {dim}s, {str(first)!r} the first")
    if np.unique(found).size == found.size > 1:
        raise ValueError(f"{option}: every {dim} has a {name!r} of its own, not to be told from the {dim} effect")
    return found


def _check_apart(labels: dict[str, Any]) -> None:
    """Refuse two groups that split configs (tasks) alike: nothing tells their effects apart."""
    seen: dict[tuple[int, ...], str] = {}
    for name, values in labels.items():
        levels, first, which = np.unique(values, return_index=True, return_inverse=True)
        split = tuple(first[which].tolist())
        if split in seen and levels.size > 1:
            raise ValueError(f"groups {seen[split]!r} and {name!r} are one: they split the board alike")
        seen[split] = name
