"""Variance components of configs by moments; see `evalbayes.frequentist.repeatability` for the formulas."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from evalbayes.frequentist.bootstrap import Bools, Cells, Floats, Integers
from evalbayes.frequentist.normal import run_noise, run_variance, task_means

ROUNDING = 1e-12
"""Of a variance of proportions."""


class Estimator(NamedTuple):
    """A way to estimate components.

    ``at``, of counts (draw, task), returns between variance (draw, config), not cut at 0, and within variance, where
    each task counts so often. Over config: on how many tasks a config was ``scored``, whether any was run ``twice``,
    and what else there is to say at the data (``extra``).
    """

    at: Callable[[Floats], tuple[Floats, Floats]]
    scored: Integers
    twice: Bools
    extra: dict[str, Floats]


class Moments(NamedTuple):
    """What every task adds to the sums behind the components, each (config, task), 0 where a config lacks the task."""

    scored: Floats
    mean: Floats
    within: Floats
    repeated: Floats
    noise: Floats


def estimator(board: Cells, opponent: int | None) -> Estimator:
    """Return the estimator of every config's components, or of its difference from the one at ``opponent``."""
    moments, twice = _moments(board, opponent)
    return Estimator(partial(_components, moments), moments.scored.sum(axis=1).astype(int), twice, {})


def _moments(board: Cells, opponent: int | None) -> tuple[Moments, Bools]:
    """Return every task's part in the sums, and which configs ran a task twice."""
    scored, repeated = board.scored, board.trials > 1
    p, noise = (np.nan_to_num(part) for part in (task_means(board), run_noise(board)))
    within = run_variance(board)
    twice = repeated.any(axis=1)
    if opponent is not None:
        scored, repeated = scored & scored[opponent], repeated & repeated[opponent]
        # A cell of one run has the config's own mean noise, so it is enough that each ran some task twice.
        twice = twice & twice[opponent] & repeated.any(axis=1)
        within = np.where(repeated, within + within[opponent], 0.0)
        p, noise = (np.where(scored, part, 0.0) for part in (p - p[opponent], noise + noise[opponent]))
    return Moments(scored.astype(float), p, within, repeated.astype(float), noise), twice


def _components(moments: Moments, counts: Floats) -> tuple[Floats, Floats]:
    """Return between variance, not cut at 0, and within variance where task t counts ``counts[:, t]`` times."""
    totals = Moments(*(counts @ part.T for part in moments))
    squares = counts @ (moments.mean**2).T
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = totals.mean / totals.scored
        spread = (squares - totals.scored * mean**2) / (totals.scored - 1)
        between, within = spread - totals.noise / totals.scored, totals.within / totals.repeated
    # What is left of a difference that rounding alone makes is none.
    return np.where(np.abs(between) < ROUNDING, 0.0, between), within
