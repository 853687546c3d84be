"""Where a density is expanded, and the third order of it: the point, curvature and skewness of `evalbayes.laplace`.

The expansion point maximises Laplace's approximation of the marginal posterior of the hyperparameters h, effects e
integrated out (Tierney and Kadane 1986, Journal of the American Statistical Association 81, 82-86; Rue, Martino and
Chopin 2009, Journal of the Royal Statistical Society B 71, 319-392): the joint mode is no use, as it runs to a scale of
zero wherever effects are small.

A normal expansion of skewed effects is off in its mean and in its tails. With v_k the axes of their posterior, of unit
variance, and T the third derivatives of the log density, the mean is that of a gradient larger by the sum over k of
T(v_k, v_k, .) / 2, and the effects have skewness T(v_k, v_k, v_k) along v_k: the correction of Rue, Martino and
Chopin's simplified Laplace approximation, made for all effects at once.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg
from scipy.optimize import minimize

from evalbayes.density import KEPT, Data, Density, data_of, derivatives, hessian, third_derivatives
from evalbayes.errors import SamplingError

DIFFERENCE = 1e-4
"""Step of central differences in hyperparameters (unconstrained, so of order one)."""
STEP_TOLERANCE = 0.5
"""The expansion point is found when a round would move it by less, in posterior standard deviations: the gradient left
over is part of the expansion, and the pilot draws move the hyperparameters."""

FLAT = 1e-6
"""A precision this small is that of a density without an end; one that is negative is an error of the approximation."""
LEAST_PRECISION = 0.1
"""Of hyperparameters along any axis: they are of order one, and where the approximation bends the wrong way the pilot
draws, weighted by the density itself, find how far they reach."""


class Expansion(NamedTuple):
    """A point x = (h0, e0) and the log-likelihood's derivatives there.

    ``gradient`` is g with what skewness adds to it, ``slope`` G and ``curvature`` L of `evalbayes.laplace`;
    ``skewness`` is that of the effects along the axes of their posterior, ``precision`` that of h with the effects
    integrated out, and ``joint_precision`` that of the whole vector.
    """

    x: np.ndarray
    gradient: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    skewness: np.ndarray
    precision: np.ndarray
    joint_precision: np.ndarray


class Split:
    """A density seen as a function of hyperparameters and effects.

    ``independent``: effects are so given h in the prior, and its precision is its product with a vector of ones.
    """

    def __init__(self, density: Density) -> None:
        self.density = density
        self.hyper, self.effect = np.flatnonzero(~density.is_effect), np.flatnonzero(density.is_effect)
        self.independent = False
        self.independent = self._is_independent()

    def _is_independent(self) -> bool:
        """Look at the prior precision at one point; were it misjudged, the weights would still be right."""
        h, e = 0.1 * np.arange(1.0, self.hyper.size + 1), np.linspace(-1.0, 1.0, self.effect.size)
        data = data_of(self.density.model)

        @jax.jit
        def times(v: Any) -> Any:
            return jax.jvp(lambda e: self.prior_gradient(h, e, data), (e,), (v,))[1]

        # Were it diagonal, its product with any vector would be that with ones, times the vector.
        v = np.cos(np.arange(e.size))
        expected, found = v * np.asarray(times(np.ones_like(v))), np.asarray(times(v))
        return bool(np.allclose(found, expected, rtol=0, atol=1e-9 * np.abs(found).max(initial=0)))

    def join(self, h: Any, e: Any) -> Any:
        """Lay h and e back into one vector."""
        return jnp.zeros(self.density.size).at[self.hyper].set(h).at[self.effect].set(e)

    def prior_gradient(self, h: Any, e: Any, data: Data) -> Any:
        """Return the gradient of the log prior in e."""
        return jax.grad(lambda e: self.density.log_prior(self.join(h, e), data))(e)

    def prior_precision(self, h: Any, e: Any, data: Data) -> Any:
        """Return minus the Hessian of the log prior in e."""
        if self.independent:
            return jnp.diag(-jax.jvp(lambda e: self.prior_gradient(h, e, data), (e,), (jnp.ones_like(e),))[1])
        return -jax.jacfwd(lambda e: self.prior_gradient(h, e, data))(e)

    def log_width(self, x: Any, curvature: Any, data: Data) -> tuple[Any, Any]:
        """Return -log det(L + P(h)) / 2 and its gradient in x, by d log det A = tr(A^-1 dA)."""

        def precision(x: Any) -> Any:
            return curvature + self.prior_precision(x[self.hyper], x[self.effect], data)

        here = precision(x)
        inverse = jnp.linalg.inv(here)
        narrowing = jax.grad(lambda x: -(inverse * precision(x)).sum() / 2)(x)
        return -jnp.linalg.slogdet(here)[1] / 2, narrowing

    def prior_derivatives(self, x: Any, data: Data) -> tuple[Any, Any, Any]:
        """Return the log prior's gradient in e, its precision of e, and its mixed second derivatives (e, h)."""
        h, e = x[self.hyper], x[self.effect]
        mixed = jax.jacfwd(lambda h: self.prior_gradient(h, e, data))(h)
        return self.prior_gradient(h, e, data), self.prior_precision(h, e, data), mixed


class Compiled(NamedTuple):
    """What is compiled once for a density and serves every board of its shape."""

    split: Split
    along: Callable[[Any, Any, Data], Any]
    prior_derivatives: Callable[[Any, Data], Any]
    log_width: Callable[..., Any]


@lru_cache(maxsize=KEPT)
def compiled(density: Density) -> Compiled:
    """Compile, or return what was compiled before for this density."""
    split = Split(density)
    return Compiled(
        split=split,
        along=derivatives(density.logp),
        prior_derivatives=jax.jit(split.prior_derivatives),
        log_width=jax.jit(split.log_width),
    )


def expand(density: Density, data: Data, start: np.ndarray, *, rounds: int = 8) -> Expansion:
    """Find the expansion point from ``start``, by L-BFGS in coordinates scaled by the Hessian.

    Each round fixes L at the current point and takes |H|^(-1/2) there as its unit of length, so that a first step is
    about one standard deviation whatever the parameters' scales are, and a last round is all but a Newton step.

    Raises
    ------
    SamplingError
        If the rounds do not settle, or the density is flat.
    """
    split, along, prior_derivatives, _ = compiled(density)
    x = np.asarray(start, float)
    for _ in range(rounds):
        second = hessian(along, x, data)
        gradient, prior, mixed = map(np.asarray, prior_derivatives(x, data))
        curvature = _nonnegative(-second[np.ix_(split.effect, split.effect)] - prior)

        log_marginal = _log_marginal(density, curvature, data)
        marginal = _with_hyper_columns(second, split.hyper, x, log_marginal)
        step = _climb(log_marginal, x, unit := _unit_of_length(marginal))
        if np.abs(step).max() < STEP_TOLERANCE:
            slope = second[np.ix_(split.effect, split.hyper)] - mixed
            at_mode = log_marginal(x)[1][split.effect] - gradient
            shift, skewness = _third_order(density, x, second, curvature + prior, data)
            return Expansion(x, at_mode + shift, slope, curvature, skewness, *_precisions(marginal, split))
        x = x + unit @ step
    raise SamplingError("laplace: no maximum found (the density is flat or has a ridge); try method='latent'")


def _third_order(
    density: Density, x: np.ndarray, second: np.ndarray, precision: np.ndarray, data: Data
) -> tuple[np.ndarray, np.ndarray]:
    """Return what skewness adds to the effects' gradient, and the skewness along each axis of their posterior.

    The axes v_k are the columns of the transposed inverse of the Cholesky factor of ``precision``.
    """
    split, along, *_ = compiled(density)
    if not split.effect.size:
        return np.zeros(0), np.zeros(0)
    root = linalg.cholesky(precision, lower=True)
    directions = np.zeros((split.effect.size, x.size))
    directions[:, split.effect] = linalg.solve_triangular(root, np.eye(len(root)), lower=True)
    third = third_derivatives(along, x, second, directions, data)
    return third[:, split.effect].sum(axis=0) / 2, (third * directions).sum(axis=1)


def _log_marginal(density: Density, curvature: np.ndarray, data: Data) -> Callable[[np.ndarray], Any]:
    """Return a function of x giving log p(h, e) - log det(L + P(h)) / 2, and its gradient.

    At the conditional mode of e this is Laplace's log p(h). `derivatives` is used although its direction is wasted:
    another derivative of the density would take as long to compile as all these evaluations.
    """
    _, along, _, log_width = compiled(density)
    flat, fixed = np.zeros(density.size), jnp.asarray(curvature)

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        (value, gradient), (width, narrowing) = along(x, flat, data)[0], log_width(x, fixed, data)
        return float(value + width), np.asarray(gradient + narrowing)

    return value_and_gradient


def _with_hyper_columns(
    second: np.ndarray, hyper: np.ndarray, x: np.ndarray, value_and_gradient: Callable[[Any], Any]
) -> np.ndarray:
    """Return the Hessian of the log marginal: that of log p with the hyperparameters' rows by central differences.

    The determinant depends on the hyperparameters alone; differentiating it twice more in JAX would take longer to
    compile than everything else.
    """
    result = second.copy()
    for i in hyper:
        shift = DIFFERENCE * np.eye(x.size)[i]
        up, down = (value_and_gradient(x + side)[1] for side in (shift, -shift))
        result[i] = result[:, i] = (up - down) / (2 * DIFFERENCE)
    return result


def _climb(value_and_gradient: Callable[[Any], Any], x: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return the step, in units of length, from x to the maximum."""

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = value_and_gradient(x + unit @ u)
        slope = unit.T @ gradient
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return 1e100, np.zeros_like(u)
        return -value, -slope

    options: Any = {"maxcor": 30, "maxiter": 60, "gtol": 1e-6}
    return np.asarray(minimize(objective, np.zeros_like(x), jac=True, method="L-BFGS-B", options=options).x)


def _precisions(marginal: np.ndarray, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Return the precision of the hyperparameters with the effects integrated out, and that of the whole vector.

    The first is the Schur complement of the second in it, raised to `LEAST_PRECISION` in both where it falls short.
    """
    h, e = split.hyper, split.effect
    joint = -marginal
    found = joint[np.ix_(h, h)] - joint[np.ix_(h, e)] @ np.linalg.solve(joint[np.ix_(e, e)], joint[np.ix_(e, h)])
    values, vectors = np.linalg.eigh(found)
    if np.abs(values).min() < FLAT:
        raise SamplingError("laplace: the density is flat along some hyperparameter; try method='latent'")
    precision = (vectors * np.maximum(values, LEAST_PRECISION)) @ vectors.T
    joint[np.ix_(h, h)] += precision - found
    return precision, joint


def _unit_of_length(second: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(second)
    curvature = np.maximum(np.abs(values), 1e-8 * np.abs(values).max())
    return np.asarray(vectors / np.sqrt(curvature))


def _nonnegative(matrix: np.ndarray) -> np.ndarray:
    """Return the nearest matrix without negative eigenvalues: a likelihood never makes effects less certain."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
