"""Which method answers which question, and why a question may have no answer.

``tasks="fixed"`` asks what new runs of these tasks would give; ``tasks="sampled"`` what new tasks from the
same population would. A method covers one of them and is refused for the other: an interval for these tasks
is a third of the width that new tasks need, and nothing in the number shows it.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.answer import TARGETS, check_targets
from evalbayes.errors import ArgumentError, NotIdentifiedError, OutcomesError
from evalbayes.frequentist.bootstrap import Bools, Integers

Texts = npt.NDArray[np.object_]

COVERS = {
    "two_level_bootstrap": ("sampled",),
    "one_level_bootstrap": ("sampled",),
    "clustered_normal": ("sampled",),
    "fixed_normal": ("fixed",),
    "fixed_bootstrap": ("fixed",),
    "pooled_wilson": TARGETS,
    "unbiased": ("fixed",),
}
BOOTSTRAPS = ("two_level_bootstrap", "one_level_bootstrap", "fixed_bootstrap")


def choose(quantity: str, method: str | None, *, tasks: str, configs: str, offered: Iterable[str]) -> str:
    """Return the method to use: the one asked for, or the first of ``offered`` that covers the target.

    >>> choose("score", None, tasks="fixed", configs="fixed", offered=("two_level_bootstrap", "fixed_normal"))
    'fixed_normal'

    Raises
    ------
    ArgumentError
        If a target or a method is not one of the words that exist.
    NotIdentifiedError
        If the method covers another target, or the target is entries that are not on the board.
    """
    check_targets(tasks, configs)
    offered = list(offered)
    able = [name for name in offered if tasks in COVERS[name]]
    if configs == "sampled":
        raise NotIdentifiedError(
            f"{quantity}: configs='sampled' asks about entries that are not on the board; "
            f"use configs='fixed', or a fit and posterior.{quantity}"
        )
    if method is None:
        return able[0]
    if method not in offered:
        raise ArgumentError(f"{quantity}: method={method!r} is not one of {', '.join(offered)}")
    if method not in able:
        raise NotIdentifiedError(
            f"{quantity}: method={method!r} does not cover tasks={tasks!r}; use {' or '.join(able)}"
        )
    return method


def needs_two(quantity: str, outcomes: xr.Dataset) -> None:
    """Raise NotIdentifiedError where there is nothing to compare with."""
    if outcomes.sizes["config"] < 2:
        raise NotIdentifiedError(f"{quantity}: the board has one config; a comparison needs two or more")


def position(outcomes: xr.Dataset, config: str) -> int:
    """Position of a config on the board, or OutcomesError naming those that are there."""
    labels: list[str] = outcomes.config.values.tolist()
    if config not in labels:
        shown = ", ".join(map(str, labels[:5])) + (", ..." if len(labels) > 5 else "")
        raise OutcomesError(f"config {config!r} is not on the board; it has {shown}")
    return labels.index(config)


def why_unknown(scored: Integers, repeated: Integers, method: str, *, shared: str = "") -> Texts:
    """Say why an interval cannot be had, or nothing where it can.

    Parameters
    ----------
    scored
        Number of tasks with a run.
    repeated
        Number of tasks with two or more runs.
    method
        What covers new tasks needs two tasks; what covers new runs needs repeated runs.
    shared
        ``"shared "`` when the tasks are those that two configs share.

    >>> why_unknown(np.array([0, 1, 5]), np.array([0, 0, 0]), "two_level_bootstrap").tolist()
    ['no scored task', 'one scored task: the spread over tasks needs two or more', '']
    """
    few: list[tuple[Bools, str]] = [(scored == 0, f"no {shared or 'scored '}task")]
    if COVERS[method] == ("sampled",):
        few.append((scored == 1, f"one {shared or 'scored '}task: the spread over tasks needs two or more"))
    if COVERS[method] == ("fixed",):
        few.append((repeated == 0, "one run per cell: new runs of these tasks need two or more runs of some task"))
    if method == "fixed_bootstrap":
        once = "some cells have one run, which resampling would repeat: leave those tasks out, or use 'fixed_normal'"
        few.append((repeated < scored, once))
    result = np.full(np.shape(scored), "", dtype=object)
    for where, text in reversed(few):
        result[where] = text
    return result
