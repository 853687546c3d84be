"""Half-task thinning: how often a board of half the tasks reverses a pair that the whole board orders."""

import numpy as np
import xarray as xr

from evalbayes.answer import check_prob
from evalbayes.errors import ArgumentError, check_whole
from evalbayes.frequentist.bootstrap import BLOCK, Floats, Integers, task_counts
from evalbayes.pairs import panel as panels
from evalbayes.pairs.panel import Panel, as_fraction, panel_of
from evalbayes.pairs.rules import check_size


def thinning(
    outcomes: xr.Dataset, *, share: float = 0.5, prob: float = 0.95, draws: int = 2000, seed: int = 0
) -> xr.Dataset:
    """How often a random half of the tasks turns the order of two configs round.

    Each draw takes floor(share T) of the panel's T tasks without replacement and compares every pair's order there
    with its order on all T. A pair is strictly reversed where both orders are strict and opposite, and unresolved where
    the two tie on the whole panel or on the half. Both are shares of all pairs (arXiv 2609.33012). This is sensitivity
    to the choice among these tasks, not an interval for new ones. The joint draw resamples configs as well, pairs of
    copies left out.

    Parameters
    ----------
    outcomes
        Over ``config`` and ``task``; the tasks that every config was scored on are used.
    share
        Of the tasks, above 0 and below 1.
    prob
        Central share of the draws between the bounds.
    draws, seed
        How many, and from where.

    Returns
    -------
    xarray.Dataset
        Over ``ci_bound``: ``reversal_interval`` (task draws) and ``joint_interval`` (tasks and configs); scalars
        ``reversal`` and ``unresolved`` (means over the draws), ``tied`` (pairs tied on the whole panel),
        ``panel_tasks`` and ``kept`` (how many tasks, and how many of them a half holds).

    Raises
    ------
    NotIdentifiedError
        If there is no common panel.

    Examples
    --------
    >>> from evalbayes.outcomes import from_matrix
    >>> board = from_matrix([[1, 1, 1, 1], [0, 0, 0, 0]], configs=list("ab"), tasks=list("wxyz"))
    >>> float(thinning(board, draws=50).reversal)
    0.0
    """
    check_prob(prob)
    check_whole("draws", draws, 1)
    check_whole("seed", seed, 0)
    panel = panel_of(outcomes)
    check_size(panel.size)
    tasks = len(panel.tasks)
    kept = int(as_fraction(share) * tasks)
    if not 0 < kept < tasks:
        raise ArgumentError(f"share={share!r} keeps {kept} of {tasks} tasks; keep at least one and leave one out")
    reversal, unresolved, joint = _drawn(panel, kept, draws=draws, seed=seed)
    levels = [(1 - prob) / 2, (1 + prob) / 2]
    return xr.Dataset(
        {
            "reversal": reversal.mean(),
            "reversal_interval": ("ci_bound", np.quantile(reversal, levels)),
            "unresolved": unresolved.mean(),
            "joint_interval": ("ci_bound", np.nanquantile(joint, levels)),
            "tied": (_orders(panels.keys(panel, as_fraction(0))[0], *_pairs(panel.size)) == 0).mean(),
        },
        coords={"ci_bound": ["lower", "upper"], "ci_prob": prob, "panel_tasks": tasks, "kept": kept, "draws": draws},
    )


def _pairs(size: int) -> tuple[Integers, Integers]:
    first, second = np.triu_indices(size, 1)
    return first, second


def _orders(keys: Integers, first: Integers, second: Integers) -> Integers:
    signs: Integers = np.sign(keys[:, first] - keys[:, second])
    return signs


def _drawn(panel: Panel, kept: int, *, draws: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Shares of pairs reversed, unresolved, and reversed among resampled configs, (draw) each."""
    half, configs = (np.random.default_rng([seed, part]) for part in (3, 4))
    first, second = _pairs(panel.size)
    whole = _orders(panels.keys(panel, as_fraction(0))[0], first, second)
    found = []
    step = max(1, BLOCK // max(len(first), len(panel.tasks)))
    for start in range(0, draws, step):
        many = min(step, draws - start)
        places = half.random((many, len(panel.tasks))).argsort(axis=1).argsort(axis=1)
        signs = whole * _orders(panels.keys(panel, as_fraction(0), (places < kept).astype(float))[0], first, second)
        copies = task_counts(configs.integers(panel.size, size=(many, panel.size)))
        weight = copies[:, first] * copies[:, second]
        with np.errstate(invalid="ignore"):
            joint = (weight * (signs < 0)).sum(axis=1) / weight.sum(axis=1)
        found.append(((signs < 0).mean(axis=1), (signs == 0).mean(axis=1), joint))
    reversal, unresolved, joint = (np.concatenate(part) for part in zip(*found, strict=True))
    return reversal, unresolved, joint
