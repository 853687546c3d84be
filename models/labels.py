"""Names of groups of configs and of tasks, and the labels that a board has for them; what is refused needs no PyMC."""

from collections.abc import Sequence
from typing import Any

import numpy as np
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
