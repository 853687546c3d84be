"""How wide the interval of the share of near ties is by each method, over margins."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.answer import BOUNDS
from evalbayes.errors import ArgumentError
from evalbayes.pairs.panel import as_fraction
from evalbayes.pairs.questions import near_tie
from evalbayes.pairs.targets import METHODS, SERVES

COMPARED = ("pair_iid", "hoeffding", "dyadic", "jackknife", "config_bootstrap", "task_bootstrap", "joint_bootstrap")
ABLE = tuple(method for method in METHODS if method != "exact")


def widths(
    outcomes: xr.Dataset | xr.DataArray,
    margins: Sequence[str | float | Fraction],
    *,
    methods: Sequence[str] = COMPARED,
    **design: Any,
) -> xr.Dataset:
    """Width of the interval of `evalbayes.pairs.near_tie` at each margin by each method.

    The methods have different targets, which the coords say: the four variances and the config bootstrap are about
    other configs on these tasks, the task bootstrap about these configs on other tasks, the joint bootstrap about both.

    Parameters
    ----------
    outcomes, design
        As in `evalbayes.pairs.near_tie`, but for the targets, which are those that each method serves.
    margins
        One or more, different from each other, in any order.
    methods
        Names of methods that give an interval, different from each other.

    Returns
    -------
    xarray.Dataset
        ``estimate`` (margin); ``width`` (margin, method), NaN where there is no interval; ``interval`` (margin, method,
        ci_bound); ``reason`` (margin, method); coords ``configs`` and ``tasks`` over method, and scalar ``ci_prob``.
        Margins are sorted.

    Raises
    ------
    ArgumentError
        If there is no margin or no method, one is given twice, or a method has no interval.
    NotIdentifiedError
        As in `evalbayes.pairs.near_tie`.

    Examples
    --------
    >>> scores = xr.DataArray([51, 52, 55, 70, 71, 90], dims="config")
    >>> found = widths(scores, [0.05, 0.2], methods=["pair_iid", "hoeffding"], out_of=100)
    >>> found.width.round(2).values.tolist()
    [[0.46, nan], [0.42, 0.72]]
    """
    exact = sorted(_checked(margins, methods))
    targets = [_target(method) for method in methods]
    answers = [
        [
            near_tie(outcomes, margin, configs=configs, tasks=tasks, method=method, **design)
            for method, (configs, tasks) in zip(methods, targets, strict=True)
        ]
        for margin in exact
    ]
    ends = np.array([[one.interval.values for one in row] for row in answers])
    return xr.Dataset(
        {
            "estimate": ("margin", [row[0].estimate.item() for row in answers]),
            "width": (("margin", "method"), ends[..., 1] - ends[..., 0]),
            "interval": (("margin", "method", "ci_bound"), ends),
            "reason": (("margin", "method"), np.array([[one.reason.item() for one in row] for row in answers], object)),
        },
        coords={
            "margin": [float(margin) for margin in exact],
            "method": list(methods),
            "ci_bound": list(BOUNDS),
            "configs": ("method", [configs for configs, _ in targets]),
            "tasks": ("method", [tasks for _, tasks in targets]),
            "ci_prob": answers[0][0].ci_prob.item(),
        },
    )


def _checked(margins: Sequence[str | float | Fraction], methods: Sequence[str]) -> list[Fraction]:
    if isinstance(margins, str) or isinstance(methods, str):
        raise ArgumentError("widths: give a sequence of margins and a sequence of methods")
    exact = [as_fraction(margin) for margin in margins]
    for name, given in (("margins", exact), ("methods", methods)):
        if not given or len(set(given)) < len(given):
            raise ArgumentError(f"widths: {name}: give one or more, each once")
    unknown = [method for method in methods if method not in ABLE]
    if unknown:
        raise ArgumentError(f"widths: method {unknown[0]!r} gives no interval; choose from {', '.join(ABLE)}")
    return exact


def _target(method: str) -> tuple[str, str]:
    """Return the target, configs and tasks, that a method serves."""
    return next((target for target, served in SERVES.items() if method in served), ("sampled", "fixed"))
