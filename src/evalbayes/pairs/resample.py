"""Bootstraps of a pair summary: configs, blocks of configs, tasks, clusters of tasks, and both at once.

A config drawn w_i times gives its pairs the weight w_i w_j. Two copies of one config are no pair of configs: they are
left out, or counted as ties on request, which moves the bootstrap's centre by about (1 - U) / M. Tasks drawn c_t times
give scores sum_t c_t p_t / sum_t c_t; clusters are drawn whole, so the number of tasks varies. The joint bootstrap
draws configs and tasks independently (the pigeonhole bootstrap: Owen, Annals of Applied Statistics 1, 2007).
"""

from typing import NamedTuple

import numpy as np

from evalbayes.frequentist.bootstrap import BLOCK, Floats, Integers, task_counts
from evalbayes.pairs.rules import Rule, take, weighted_total

ON_CONFIGS = ("config_bootstrap", "block_bootstrap", "joint_bootstrap")
ON_TASKS = ("task_bootstrap", "cluster_bootstrap", "joint_bootstrap")


class Design(NamedTuple):
    """How configs are grouped and weighted and tasks clustered; None where they are not."""

    blocks: Integers | None = None
    weights: Floats | None = None
    clusters: Integers | None = None
    copies: str = "out"


def draw_means(rule: Rule, method: str, design: Design, *, draws: int, seed: int) -> Floats:
    """The weighted mean of the rule over pairs in each draw, (draw); NaN where a draw has no pair.

    Parameters
    ----------
    rule
        The rule and its panel.
    method
        One of `ON_CONFIGS` and `ON_TASKS`.
    design
        ``blocks`` (config) and ``clusters`` (task): codes from 0; ``weights`` (config): pair weights are products.
    draws, seed
        Tasks and configs are drawn from two streams of the seed: the joint bootstrap's tasks are the task bootstrap's.
    """
    tasks, configs = (np.random.default_rng([seed, part]) for part in (0, 2))
    size, width = rule.panel.size, max(rule.panel.width, rule.panel.size)
    own = _own_weights(size, design)
    means = []
    step = max(1, BLOCK // width)
    for start in range(0, draws, step):
        many = min(step, draws - start)
        counts = _counts(tasks, rule.panel.width, many, design.clusters) if method in ON_TASKS else None
        copies = _counts(configs, size, many, design.blocks) if method in ON_CONFIGS else np.ones((1, size))
        means.append(_means(rule, copies, own, counts, design))
    return np.concatenate(means)


def _counts(rng: np.random.Generator, size: int, draws: int, groups: Integers | None) -> Floats:
    """How often each of ``size`` units is drawn, alone or with its group: (draw, unit)."""
    if groups is None:
        return task_counts(rng.integers(size, size=(draws, size)))
    many = int(groups.max()) + 1
    return task_counts(rng.integers(many, size=(draws, many)))[:, groups]


def _own_weights(size: int, design: Design) -> Floats:
    if design.blocks is not None:
        return 1 / np.bincount(design.blocks)[design.blocks]
    return np.ones(size) if design.weights is None else design.weights


def _means(rule: Rule, copies: Floats, own: Floats, counts: Floats | None, design: Design) -> Floats:
    weights = copies * own
    total = weighted_total(rule, weights, counts)
    weight = weights.sum(axis=1) ** 2
    if design.blocks is None:
        weight = (weight - (weights**2).sum(axis=1)) / 2
    else:
        groups = [np.flatnonzero(design.blocks == block) for block in range(int(design.blocks.max()) + 1)]
        weight = (weight - sum(weights[:, members].sum(axis=1) ** 2 for members in groups)) / 2
        for members in (group for group in groups if len(group) > 1):
            total = total - weighted_total(take(rule, members), weights[:, members], counts)
    if design.copies == "ties":
        # Within a draw a config's copies tie with each other, w (w - 1) / 2 pairs of them.
        among = (copies * (copies - 1)).sum(axis=1) / 2
        total, weight = total + rule.tie * among, weight + among  # type: ignore[operator]
    # Weights such as 1/3 leave rounding error where a draw has one block alone.
    some = weight > 1e-9 * weights.sum(axis=1) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = np.where(some, total / weight, np.nan)
    return means
