"""Coordinates in which a posterior is close to a standard normal, for NUTS to move in.

From the vector x = (h, e) of a model, marginal or as written, scalars h and effects e (task effects among them where
they are not integrated out), to w in two steps.

Element by element, an effect is written as its prior given h and its likelihood would have it, both normal::

    e_i = (P_i(h) m_i(h) + l_i + sqrt(P_i(h) + L_i) v_i) / (P_i(h) + L_i)

with m_i and P_i the mean and precision of its prior given h, L_i the information of the likelihood, and l_i such that
v_i is 0 at the mode. Where the likelihood says all this is the centred form, where it says nothing the non-centred
one, and between them what suits each element: no funnel is left where a scale may be zero (Papaspiliopoulos, Roberts
and Skold 2007, Statistical Science 22, 59-73; Gorinova, Moore and Hoffman 2020, ICML).

Then (h, v) = U w with U U' the covariance of Laplace's approximation, carried into these coordinates. What is sampled
is the model's own density; the approximation decides how fast, not what is found.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg

from evalbayes.density import KEPT, Data, Density, batched, over_draws
from evalbayes.errors import SamplingError
from evalbayes.marginal import Settled
from evalbayes.nodes import conditional

Prior = Callable[[Any, Data], tuple[Any, Any]]

LEAST_PRECISION = 1e-6
MOST_PARAMETERS = 6000
"""Above this the covariance matrix costs more memory and time than it saves."""


class Coordinates(NamedTuple):
    """A point x0 = (h0, e0) of the latent density, and the map from w around it.

    ``information`` L, ``pull`` l and ``root`` U as in the module's formula.
    """

    x: np.ndarray
    information: np.ndarray
    pull: np.ndarray
    root: np.ndarray


def coordinates(settled: Settled, latent: Density, data: Data) -> Coordinates:
    """Return coordinates for ``latent``, the model as written or its marginal density itself, from the expansion.

    Raises
    ------
    KeyError
        If the two forms of the model do not name their variables alike.
    SamplingError
        If there are more than `MOST_PARAMETERS`.
    """
    if latent.size > MOST_PARAMETERS:
        raise SamplingError(f"nuts: {latent.size} parameters, above {MOST_PARAMETERS}; try method='latent'")
    x, precision = _joint(settled, latent)
    compiled = _compiled(latent)
    effect = latent.is_effect
    prior, prior_pull = (np.asarray(part) for part in compiled.prior(x, data))
    # The curvature that is left of an element's own when its prior's is taken off is the likelihood's.
    information = np.maximum(np.diag(precision)[effect] - prior, 0.0)
    pull = (prior + information) * x[effect] - prior_pull
    at = Coordinates(x, information, pull, np.eye(x.size))
    jacobian = np.asarray(compiled.jacobian(np.zeros(x.size), at, data))
    lower = linalg.cholesky(jacobian.T @ precision @ jacobian, lower=True)
    return at._replace(root=linalg.solve_triangular(lower, np.eye(x.size), lower=True, trans=1))


class _Compiled(NamedTuple):
    prior: Prior
    jacobian: Callable[[Any, Coordinates, Data], Any]
    value_and_gradient: Callable[[Any, Coordinates, Data], tuple[Any, Any]]
    positions: Callable[..., Any]


@lru_cache(maxsize=KEPT)
def _compiled(latent: Density) -> _Compiled:
    prior = _prior(latent)
    position = partial(_position, np.flatnonzero(latent.is_effect), prior)

    def logp(w: Any, at: Coordinates, data: Data) -> Any:
        x, log_jacobian = position(w, at, data)
        return latent.logp(x, data) + log_jacobian

    return _Compiled(
        prior=jax.jit(prior),
        jacobian=jax.jit(jax.jacfwd(lambda w, at, data: position(w, at, data)[0])),
        value_and_gradient=jax.jit(jax.value_and_grad(logp)),
        positions=batched(lambda w, both: position(w, *both)[0]),
    )


def value_and_gradient(latent: Density) -> Callable[[Any, Coordinates, Data], tuple[Any, Any]]:
    """Return log p(w) and its gradient, compiled, as a function of (w, coordinates, data)."""
    return _compiled(latent).value_and_gradient


def positions(latent: Density) -> Callable[..., Any]:
    """Return the map from w (draw, size) to x, to be run by `density.over_draws` with (coordinates, data)."""
    return _compiled(latent).positions


def _position(effect: np.ndarray, prior: Prior, w: Any, at: Coordinates, data: Data) -> tuple[Any, Any]:
    """Return x and the log Jacobian of the map up to a constant."""
    hv = at.root @ w
    x = at.x + hv.at[effect].set(0.0)
    precision, prior_pull = prior(x, data)
    total = precision + at.information
    e = (prior_pull + at.pull + jnp.sqrt(total) * hv[effect]) / total
    return x.at[effect].set(e), -0.5 * jnp.log(total).sum()


def _prior(latent: Density) -> Prior:
    """Return P and P m of every effect's prior given the scalars in x.

    Read off the log prior: minus its second derivative along all effects together, and its first at effects of zero.
    For normal priors independent given h this is exact. A task effect's prior is a mixture; a normal of its mean and
    sd stands for it.
    """
    effect = np.flatnonzero(latent.is_effect)
    task = latent.slices.get("task_effect")
    is_task = np.zeros(latent.size, bool)
    if task is not None:
        is_task[task] = True
    scale = latent.quantities(["task_sd"]) if task is not None else None

    def compute(x: Any, data: Data) -> tuple[Any, Any]:
        def gradient(e: Any) -> Any:
            return jax.grad(lambda e: latent.log_prior(x.at[effect].set(e), data))(e)

        zero, one = jnp.zeros(effect.size), jnp.ones(effect.size)
        pull, slope = jax.jvp(gradient, (zero,), (one,))
        precision = jnp.maximum(-slope, LEAST_PRECISION)
        if scale is not None:
            precision = jnp.where(is_task[effect], scale(x, data)["task_sd"] ** -2.0, precision)
            pull = jnp.where(is_task[effect], 0.0, pull)
        return precision, pull

    return compute


def _joint(settled: Settled, latent: Density) -> tuple[np.ndarray, np.ndarray]:
    """Return the mode of the model as written, and the precision of Laplace's approximation there.

    The marginal's mode and precision for all but the task effects; those have their conditional means, which move with
    the rest, and their conditional variances::

        [ A + D' S D    -D' S ]
        [ -S D            S   ]

    with A the marginal's precision, D the derivative of the conditional means and S the inverse conditional variances.
    """
    density, (mode, joint) = settled.density, settled.expansion[:1] + settled.expansion[-1:]
    place = np.concatenate([np.arange(latent.size)[latent.slices[name]] for name in density.slices])
    x, precision = np.zeros(latent.size), np.zeros((latent.size, latent.size))
    x[place] = mode
    precision[np.ix_(place, place)] = joint
    if "task_effect" not in latent.slices:
        return x, precision
    task = np.arange(latent.size)[latent.slices["task_effect"]]
    mean, variance = (np.asarray(part) for part in jax.jit(_moments(density))(mode, settled.data))
    columns = over_draws(_mean_slope(density), (np.eye(density.size),), (jnp.asarray(mode), settled.data))
    slope, inverse = columns.T, 1 / variance
    x[task] = mean
    precision[np.ix_(place, place)] += slope.T @ (inverse[:, None] * slope)
    precision[np.ix_(task, place)] = -inverse[:, None] * slope
    precision[np.ix_(place, task)] = precision[np.ix_(task, place)].T
    precision[task, task] = inverse
    return x, precision


def _moments(density: Density) -> Callable[[Any, Data], tuple[Any, Any]]:
    """Return the conditional mean and variance of every task effect, by the trapezoidal rule."""
    quantities = density.quantities(["task_loglik", "node_logweight", "node_effect"])

    def compute(x: Any, data: Data) -> tuple[Any, Any]:
        values = quantities(x, data)
        probability, t = conditional(values), values["node_effect"]
        mean = probability @ t
        return mean, probability @ t**2 - mean**2

    return compute


@lru_cache(maxsize=KEPT)
def _mean_slope(density: Density) -> Callable[..., Any]:
    moments = _moments(density)

    @batched
    def column(direction: Any, at: Any) -> Any:
        x, data = at
        return jax.jvp(lambda y: moments(y, data)[0], (x,), (direction,))[1]

    return column
