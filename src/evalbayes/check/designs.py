"""Simulated boards for `check.coverage`: task rates of one mean and ICC in three shapes, each config on its own tasks.

A population of rates is a mixture of Betas: components with weight w, mean mu and concentration s, the rates of one
having variance mu (1 - mu) / (s + 1). With m the mean, the ICC on the probability scale, and B = 0.99 ICC:

===========  ========================================================================================================
shape        components
===========  ========================================================================================================
beta         one: mu = m, 1 / (s + 1) = ICC
skewed       a share of tasks that is never solved, and the living ones: a Beta with a quarter of the ICC and what
             mean is left to them
two_humped   mu = m (1 - sqrt B) with weight 1 - m and mu = m + (1 - m) sqrt B with weight m, which have the variance
             B m (1 - m) between them; both with 1 / (s + 1) = (ICC - B) / (1 - B)
===========  ========================================================================================================

Any board will do as a design that has its truth in coords, such as ``functools.partial(simulate.board, 8, 60, 3)``.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import xarray as xr

from evalbayes.errors import ArgumentError, check_whole
from evalbayes.outcomes import from_counts
from evalbayes.simulate import Floats, scattered

SHAPES = ("beta", "skewed", "two_humped")
LIVING = 0.25
"""ICC of the living tasks of a skewed population, as a share of the whole's."""
BETWEEN = 0.99
"""Share of a two-humped population's variance that lies between humps; near an ICC of 1 they lie against 0 and 1."""


class Population(NamedTuple):
    """A mixture of Betas: ``weight``, ``mean`` and ``concentration`` of each component; a mean of 0 is always 0."""

    weight: Floats
    mean: Floats
    concentration: Floats


def rates(
    mean: float, icc: float, *, tasks: int = 99, runs: int = 5, shape: str = "beta", configs: int = 1
) -> Callable[..., xr.Dataset]:
    """Return a design: seed -> board, with task rates drawn from a population of this mean and ICC.

    Parameters
    ----------
    mean
        Of the rates, in (0, 1): the score on new tasks.
    icc
        The share of a run's variance that lies between tasks, in (0, 1), on the probability scale.
    tasks, runs
        Tasks of every config, and runs of each.
    shape
        ``"beta"``, ``"skewed"`` (a share of tasks is never solved) or ``"two_humped"``.
    configs
        Configs of a board, each with its own tasks: one data set each. With many, a procedure that takes configs one by
        one, as the frequentist ones do, is asked once for all.

    Returns
    -------
    callable
        Of ``seed``; can be pickled. Its boards have the truth in coords over config as `simulate.board`:
        ``true_score``, ``true_between_variance``, ``true_within_variance`` of the population and ``true_fixed_score``,
        the mean rate of these tasks; attr ``true_tasks`` is ``"own"``.

    Raises
    ------
    ArgumentError
        If mean or ICC is not between 0 and 1, a size is not a whole number, or the shape is unknown.

    Examples
    --------
    >>> board = rates(0.8, 0.3, tasks=20, shape="two_humped", configs=3)(seed=1)
    >>> dict(board.sizes), board.true_score.values.tolist()
    ({'config': 3, 'task': 20}, [0.8, 0.8, 0.8])
    """
    for name, size in (("tasks", tasks), ("runs", runs), ("configs", configs)):
        check_whole(name, size, 1)
    between = icc * mean * (1 - mean)
    truth = {
        "true_score": mean,
        "true_between_variance": between,
        "true_within_variance": mean * (1 - mean) - between,
    }
    return partial(_board, population(mean, icc, shape), truth, (configs, tasks), runs)


def population(mean: float, icc: float, shape: str = "beta") -> Population:
    """Return the mixture of Betas with this mean and ICC, as described above.

    Examples
    --------
    >>> skewed = population(0.8, 0.3, "skewed")
    >>> skewed.weight.round(3).tolist(), skewed.mean.round(3).tolist()
    ([0.057, 0.943], [0.0, 0.849])
    """
    for name, value in (("mean", mean), ("icc", icc)):
        if not 0 < value < 1:
            raise ArgumentError(f"{name}={value}: give a number between 0 and 1, the ends excluded")
    if shape == "beta":
        return Population(np.ones(1), np.array([mean]), np.array([1 / icc - 1]))
    if shape == "skewed":
        part = LIVING * icc
        dead = (1 - mean) * (icc - part) / (1 - part - (1 - mean) * (1 - icc))
        return Population(np.array([dead, 1 - dead]), np.array([0, mean / (1 - dead)]), np.full(2, 1 / part - 1))
    if shape == "two_humped":
        apart = np.sqrt(BETWEEN * icc)
        humps = np.array([mean * (1 - apart), mean + (1 - mean) * apart])
        within = (1 - BETWEEN) * icc / (1 - BETWEEN * icc)
        return Population(np.array([1 - mean, mean]), humps, np.full(2, 1 / within - 1))
    raise ArgumentError(f"shape={shape!r}: choose one of {', '.join(map(repr, SHAPES))}")


def _board(shape: Population, truth: dict[str, float], size: tuple[int, int], runs: int, seed: int) -> xr.Dataset:
    rng = np.random.default_rng(seed)
    component = rng.choice(shape.weight.size, size, p=shape.weight)
    p = scattered(rng, shape.mean[component], shape.concentration[component])
    board = from_counts(
        rng.binomial(runs, p),
        np.full(size, runs),
        configs=[f"config-{i:04}" for i in range(1, size[0] + 1)],
        tasks=[f"task-{i:04}" for i in range(1, size[1] + 1)],
        source="check.designs.rates",
    )
    coords = {name: ("config", np.full(size[0], value)) for name, value in truth.items()}
    return board.assign_coords(coords | {"true_fixed_score": ("config", p.mean(axis=1))}).assign_attrs(true_tasks="own")
