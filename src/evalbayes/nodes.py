"""The grid of a marginal model: how fine it must be, how wide, and the task effects drawn back from it.

Everything here uses `task_loglik`, `node_logweight`, `node_effect` and `node_position` alone (the contract of
`evalbayes.models.effects`), so that a user's own marginal model is served too; and, where configs of one family share a
residual on every task (`evalbayes.models.interaction`), `interaction_loglik` and `interaction_sd`.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy import special

from evalbayes.density import KEPT, Data, Density, batched, over_draws
from evalbayes.errors import SamplingError

REACH = 8.0
"""Half-width of the first grid, in standard deviations of the task effects."""
TOLERANCE = 1e-8
"""Error allowed in the log density at the mode, summed over tasks."""
END_MASS = 1e-9
"""Conditional probability allowed at an end node at the mode: what lies beyond adds about as much to the error."""
SLACK = 1e3
"""Factor on both at the worst of the draws, where an importance weight off by 1e-5 is harmless."""
GRIDS = 4
"""Grids tried before giving up."""
CHECKED_DRAWS = 64
"""Draws at which a grid is checked."""
DRAWN_SPREAD = 1.0
"""As `SPREAD`, for a grid that is refined by what draws say of it."""
SPREAD = 2.0
"""Posterior standard deviations of log task_sd up to which the first grid serves; see `equally_spaced`."""
MOST_NODES = 8192
"""Above this a grid costs more than sampling the task effects does."""
LEAST_INTERVALS = 128
"""A small board's conditionals are wide, but a component of the tasks' density may be narrow."""
OTHERS = 4.0
"""Precision of an effect known but for a residual of sd 1/2; where residuals are smaller the grid's check finds it."""
SEVERAL = 256
"""Draws for which residuals are drawn together: there are three uniform numbers for each family and task."""
TINY = 1e-300
NEEDED = ("task_loglik", "node_logweight", "node_effect")
SHARED = ("interaction_loglik", "interaction_sd")
STRETCH = 32
"""Nodes searched together when one is drawn."""
SHRINKAGE = 16 * np.sqrt(3) / (15 * np.pi)
"""c of E expit(x + s Z) ~ expit(x / sqrt(1 + c^2 s^2)): how much averaging shrinks a logit."""


class GridCheck(NamedTuple):
    """What one point says of a grid: error of the log density, mass at its ends, smallest conditional sd."""

    error: float
    end_mass: float
    smallest_sd: float

    def passed(self, slack: float = 1.0) -> bool:
        """Return whether error and end mass are within ``slack`` times `TOLERANCE` and `END_MASS`."""
        return self.error <= slack * TOLERANCE and self.end_mass <= slack * END_MASS

    def fault(self) -> str:
        """Return the worse of the two in words."""
        if self.error / TOLERANCE >= self.end_mass / END_MASS:
            return f"errs by {self.error:.1g}"
        return f"ends where an effect has {self.end_mass:.1g} of its probability left"


def first_nodes(outcomes: xr.Dataset, *, overdispersed: bool = False, families: np.ndarray | None = None) -> np.ndarray:
    """Return nodes for a board not yet fitted, from the information its configs carry at any effect.

    The conditional precision of a task's effect is at most sum_c n_c p_c (1 - p_c) plus the prior's. Smoothed
    logits of configs and of tasks are near enough, the latter's spread stretched by what averaging over configs
    has shrunk. Where runs of a cell are correlated by rho, n of them tell as much as n / (1 + (n - 1) rho). Of the
    effect that a family of configs sees, ``families`` (config, family), those of the others tell less the more
    residuals vary: with an sd of 1/2, as much as `OTHERS` runs at most.
    """
    k, n = (
        outcomes["successes"].transpose("config", "task").values,
        outcomes["trials"].transpose("config", "task").values,
    )
    ability = special.logit((k.sum(1) + 0.5) / (n.sum(1) + 1.0))
    easiness = special.logit((k.sum(0) + 0.5) / (n.sum(0) + 1.0))
    spread = max(float(easiness.std()) * np.sqrt(1 + SHRINKAGE**2 * ability.var()), 1.0)
    at = np.linspace(-6.0, 6.0, 121)[:, None] - ability.mean()
    p = special.expit(at + ability)
    runs = n.max(axis=1)
    if overdispersed:
        runs = runs / (1 + (runs - 1) * _correlation(k, n, ability[:, None] + easiness - ability.mean()))
    information = float((p * (1 - p) @ runs).max())
    if families is not None:
        information = min(information, float((p * (1 - p) @ (runs[:, None] * families)).max()) + OTHERS)
    smallest_sd = 1 / np.sqrt(1 + spread**2 * information)
    return equally_spaced(REACH, smallest_sd, outcomes.sizes["task"])


def _correlation(k: np.ndarray, n: np.ndarray, logit: np.ndarray) -> float:
    """Return a moment estimate of the correlation of two runs of a cell, about rough fitted logits."""
    p = special.expit(logit)
    variance = p * (1 - p)
    excess = ((k - n * p) ** 2 - n * variance).sum()
    return float(np.clip(excess / max((n * (n - 1) * variance).sum(), 1e-12), 0.0, 1.0))


def equally_spaced(reach: float, smallest_sd: float, tasks: int, spread: float = SPREAD) -> np.ndarray:
    """Return nodes on [-reach, reach] whose trapezoidal error is within `TOLERANCE` for ``tasks`` tasks.

    The error of a task is about 2 exp(-2 pi^2 (sd / h)^2). A conditional's sd in units of task_sd is the smaller the
    larger task_sd is, and log task_sd is known from that many tasks to about 1 / sqrt(2 tasks). The count is rounded
    up to a multiple of 32 plus one: boards of one shape then share one compiled function. ``spread`` is as `SPREAD`.

    Raises
    ------
    SamplingError
        If it takes more than `MOST_NODES`: cells with very many runs.
    """
    ratio = np.sqrt(np.log(2 * tasks / TOLERANCE) / (2 * np.pi**2))
    spacing = smallest_sd / (ratio * np.exp(spread / np.sqrt(2 * tasks)))
    if 2 * reach / spacing > MOST_NODES:
        raise SamplingError(
            f"laplace: a grid of {2 * reach / spacing:.0f} nodes is needed, above {MOST_NODES} (cells with very many "
            "runs); try method='latent'"
        )
    count = max(32 * int(np.ceil(2 * reach / spacing / 32)), LEAST_INTERVALS) + 1
    return np.linspace(-reach, reach, count)


@lru_cache(maxsize=KEPT)
def grid_check(density: Density) -> Callable[[np.ndarray, Data], GridCheck]:
    """Compile a check of the grid in ``data`` at points x (size,) or (draw, size): the worst `GridCheck` over them."""
    quantities = density.quantities([*NEEDED[:2], *((*NEEDED[2:], *SHARED) if has_families(density) else ())])

    @batched
    def one(point: Any, data: Data) -> Any:
        values, z = quantities(point, data), data["node_position"]
        probability = conditional(values)

        def seen(probability: Any) -> Any:
            mean = probability @ z
            sd = jnp.sqrt(jnp.maximum(probability @ z**2 - mean**2, 0.0))
            error = (2 * jnp.exp(-2 * jnp.pi**2 * (sd / (z[1] - z[0])) ** 2)).sum()
            return error, probability[:, jnp.array([0, -1])].max(), sd.min()

        error, end_mass, sd = seen(probability)
        if has_families(density):
            # The grid is one of families' effects too, and those are known better than the task's own.
            of_family = _of_families(values, probability)
            errors, ends, sds = jax.lax.map(lambda own: seen(of_family(own)), values["interaction_loglik"])
            error, end_mass, sd = error + errors.sum(), jnp.maximum(end_mass, ends.max()), jnp.minimum(sd, sds.min())
        return error, end_mass, sd

    def check(x: np.ndarray, data: Data) -> GridCheck:
        error, end_mass, sd = over_draws(one, (np.atleast_2d(x),), data)
        return GridCheck(float(error.max()), float(end_mass.max()), float(sd.min()))

    return check


def _of_families(values: dict[str, Any], probability: Any) -> Callable[[Any], Any]:
    """Return the map from a family's log-likelihood (task, node) to the conditional probability of its effect there."""
    x, omega = values["node_effect"], values["interaction_sd"]
    near = jax.nn.softmax(-0.5 * ((x - x[:, None]) / omega) ** 2, axis=1)

    def of_family(own: Any) -> Any:
        likelihood = jnp.exp(own - own.max(axis=1, keepdims=True))
        mean = jnp.maximum(likelihood @ near.T, TINY)
        return likelihood * ((probability / mean) @ near)

    return of_family


def grid_attrs(nodes: np.ndarray, seen: GridCheck) -> dict[str, float]:
    """Return what a fit says of its grid: how many nodes, their error at the draws, and the error allowed there."""
    return {"grid_nodes": nodes.size, "grid_error": seen.error, "grid_limit": SLACK * TOLERANCE}


def resolved(density: Density, data: Data, x: np.ndarray, say: Callable[[str], None]) -> tuple[Data, GridCheck]:
    """Return the data on a grid that passes at draws x (draw, size), the present one if it does, and its check.

    After `GRIDS` that do not, the check of the last.
    """
    for _ in range(GRIDS):
        seen = grid_check(density)(x, data)
        if seen.passed(SLACK):
            break
        z = refined(np.asarray(data["node_position"]), seen, data["successes"].shape[0], DRAWN_SPREAD)
        data = data | {"node_position": z}
        say(f"refining the grid to {z.size} nodes")
    return data, seen


def refined(nodes: np.ndarray, seen: GridCheck, tasks: int, spread: float = SPREAD) -> np.ndarray:
    """Return a grid that mends what ``seen`` found wrong with ``nodes``: wider, finer, or both."""
    spacing = nodes[1] - nodes[0]
    reach = nodes[-1] * (1.25 if seen.end_mass > END_MASS else 1.0)
    # A conditional narrower than the spacing cannot be measured on it: at least halve the spacing then.
    smallest_sd = seen.smallest_sd if seen.smallest_sd > spacing else spacing / 2
    return equally_spaced(reach, smallest_sd, tasks, spread)


def drawn_back(density: Density, x: np.ndarray, data: Data, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw what the marginal form has integrated out at each draw x (draw, size).

    Returns
    -------
    dict
        ``task_effect`` (draw, task) and, where families share residuals, ``interaction_effect`` (draw,
        interaction_group, task), on the logit scale.
    """
    drawn = {"task_effect": task_effects(density, x, data, rng)}
    if has_families(density):
        drawn["interaction_effect"] = _interaction_effects(density, x, data, drawn["task_effect"], rng)
    return drawn


def has_families(density: Density) -> bool:
    """Whether configs of one family share a residual on every task, which the model has integrated out."""
    return "interaction_loglik" in density.model.named_vars


def task_effects(density: Density, x: np.ndarray, data: Data, rng: np.random.Generator) -> np.ndarray:
    """Draw every task's effect from its conditional distribution at each draw x (draw, size).

    A node is drawn with its conditional probability and spread over its neighbours by a triangular kernel, and the
    result is shrunk towards the conditional mean so that mean and variance are those of the trapezoidal rule:
    without it the kernel would add h^2 / 6 to every variance.

    Returns
    -------
    numpy.ndarray
        (draw, task), on the logit scale.
    """
    tasks = int(density.model.dim_lengths["task"].eval())
    return np.asarray(over_draws(_effect_draw(density), (x, rng.random((len(x), 3, tasks))), data))


@lru_cache(maxsize=KEPT)
def _effect_draw(density: Density) -> Callable[..., Any]:
    """Compile the draw of all tasks' effects at one point from three uniform numbers a task."""
    quantities = density.quantities(NEEDED)

    @batched
    def one(point: Any, uniform: Any, data: Data) -> Any:
        values = quantities(point, data)
        return _drawn(conditional(values), values["node_effect"], uniform)

    return one


def _drawn(probability: Any, t: Any, uniform: Any) -> Any:
    """Draw one value a row from the probabilities of nodes t and three uniform numbers, as `task_effects` says."""
    h = t[1] - t[0]
    mean = probability @ t
    variance = jnp.maximum(probability @ t**2 - mean**2, 0.0)
    spread = t[_pick(probability, uniform[0])] + h * (uniform[1] + uniform[2] - 1.0)
    return mean + (spread - mean) * jnp.sqrt(variance / (variance + h**2 / 6))


def _interaction_effects(
    density: Density, x: np.ndarray, data: Data, task_effect: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw every family's residual on every task given the task's effect: (draw, interaction_group, task)."""
    levels, tasks = (int(density.model.dim_lengths[dim].eval()) for dim in ("interaction_group", "task"))
    run, drawn = _interaction_draw(density), np.empty((len(x), levels, tasks))
    for start in range(0, len(x), SEVERAL):
        some = slice(start, start + SEVERAL)
        uniform = rng.random((len(x[some]), levels, 3, tasks))
        drawn[some] = over_draws(run, (x[some], task_effect[some], uniform), data)
    return drawn


@lru_cache(maxsize=KEPT)
def _interaction_draw(density: Density) -> Callable[..., Any]:
    """Compile the draw of all residuals at one point.

    On as many nodes of w as the grid has of t, a standard normal's times omega: they lie closer, so that a family's
    log-likelihood, a smooth function interpolated at t + w, is resolved there, and so is the normal however narrow.
    """
    quantities = density.quantities(["node_effect", *SHARED])

    @batched
    def one(point: Any, task_effect: Any, uniform: Any, data: Data) -> Any:
        values, z = quantities(point, data), data["node_position"]
        x, w = values["node_effect"], values["interaction_sd"] * z
        place = (task_effect[:, None] + w - x[0]) / (x[1] - x[0])

        def of_family(both: tuple[Any, Any]) -> Any:
            own, uniform = both
            return _drawn(jax.nn.softmax(_interpolated(own, place) - 0.5 * z**2, axis=1), w, uniform)

        return jax.lax.map(of_family, (values["interaction_loglik"], uniform))

    return one


def _interpolated(values: Any, place: Any) -> Any:
    """Return rows of values at fractional indices, by the cubic through four nodes; constant beyond the ends."""
    place = jnp.clip(place, 0.0, values.shape[1] - 1.0)
    first = jnp.clip(jnp.floor(place).astype(int) - 1, 0, values.shape[1] - 4)
    s = place - first - 1.0
    before, at, after, beyond = (jnp.take_along_axis(values, first + step, axis=1) for step in range(4))
    outer = (beyond * (s + 1) - before * (s - 2)) * s * (s - 1) / 6
    return outer + (at * (s - 1) - after * s) * (s + 1) * (s - 2) / 2


def _pick(probability: Any, uniform: Any) -> Any:
    """Return for each row the index at which its cumulative probability passes ``uniform`` times its total.

    First the stretch of nodes, then the node in it: a running sum over all nodes is XLA's slowest operation here.
    """
    rows, count = probability.shape
    stretches = jnp.pad(probability, ((0, 0), (0, -count % STRETCH))).reshape(rows, -1, STRETCH)
    below = jnp.cumsum(stretches.sum(axis=2), axis=1)
    target = uniform * below[:, -1]
    stretch = (below[:, :-1] <= target[:, None]).sum(axis=1)
    within = jnp.take_along_axis(stretches, stretch[:, None, None], axis=1)[:, 0]
    start = jnp.take_along_axis(below, stretch[:, None], axis=1)[:, 0] - within.sum(axis=1)
    node = (jnp.cumsum(within, axis=1)[:, :-1] <= (target - start)[:, None]).sum(axis=1)
    return jnp.minimum(stretch * STRETCH + node, count - 1)


def conditional(values: dict[str, Any]) -> Any:
    """Return the conditional probability of each node for each task, (task, node)."""
    return jax.nn.softmax(values["task_loglik"] + values["node_logweight"], axis=1)
