"""Exact posterior draws from a Laplace proposal: expansion point, conditional normals, adaptive importance sampling.

The unconstrained vector has a few hyperparameters h (scalars) and many effects e (vectors). The log-likelihood is close
to quadratic in both; the prior of the effects is not, since its scale is among the hyperparameters. So the
likelihood alone is expanded, at a point (h0, e0), and the prior is kept as it is:

    q(e | h) = t(e; e0 + S(h) (g + G (h - h0) + prior gradient at (h, e0)), S(h)),    S(h) = (L + P(h))^-1,

with g, G and -L the likelihood's gradient in e and its second derivatives, and P(h) the prior precision of e. The
expansion point maximises Laplace's approximation of the marginal posterior of h (Tierney and Kadane 1986, Journal of
the American Statistical Association 81, 82-86; Rue, Martino and Chopin 2009, Journal of the Royal Statistical Society B
71, 319-392): the joint mode is no use, as it runs to a scale of zero wherever effects are small.

q(h) is adapted in a few pilot passes: the first draws from one t with the curvature at the expansion point, each later
one from a mixture of t kernels at resampled earlier draws (West 1993, Journal of the Royal Statistical Society B 55,
409-422), weighted against all passes together (adaptive multiple importance sampling: Cornuet, Marin, Mira and Robert
2012, Scandinavian Journal of Statistics 39, 798-812). Then it is frozen, and only draws made after that are used: plain
importance sampling, exact in the limit. Weights are Pareto-smoothed (Vehtari, Simpson, Gelman, Yao and Gabry 2024,
Journal of Machine Learning Research 25, 1-58), and k-hat and the effective number of draws say whether to believe them.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg as jlinalg
from scipy import linalg, special
from scipy.optimize import minimize

from evalbayes.density import KEPT, Data, Density, batched, data_of, hessian, over_draws
from evalbayes.errors import SamplingError

PASS_DRAWS = 1000
PILOT_PASSES, PASSES, ADAPTATIONS = 3, 8, 3
"""Passes that adapt the proposal, passes drawn from it at most, and how often to adapt further before giving up."""
GOOD_K_HAT = 0.45
"""At which to stop drawing: k-hat is noisy, and one that has just dipped below its limit is no better than it."""
DEGREES_OF_FREEDOM = 5.0
"""Of the t kernels: a log scale that the data leave open has an exponential tail towards zero."""
WIDENING = 1.1
"""Factor on the adapted covariance: a proposal wider than its target costs little, a narrower one ruins weights."""
DIFFERENCE = 1e-4
"""Step of central differences in hyperparameters (unconstrained, so of order one)."""
KERNELS, BANDWIDTH = 1000, 0.7
"""Kernels of an adapted proposal, and their width in posterior standard deviations."""
FEW_EFFECTIVE = 200
"""Below this an adapted proposal is one kernel, with the mean and covariance of the draws."""
WIDE, WIDE_SHARE = 3.0, 0.2
"""A fifth of every pass is drawn this many times wider, so that no weight in the tails can be large."""
STEP_TOLERANCE = 0.05
"""The expansion point is found when a round moves it by less, in posterior standard deviations."""


class Expansion(NamedTuple):
    """A point x = (h0, e0) and the log-likelihood's derivatives there.

    ``gradient`` is g, ``slope`` G and ``curvature`` L; ``precision`` is that of h with the effects integrated out, and
    ``joint_precision`` that of the whole vector.
    """

    x: np.ndarray
    gradient: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    precision: np.ndarray
    joint_precision: np.ndarray


class Weighted(NamedTuple):
    """Importance draws with normalised, Pareto-smoothed weights."""

    x: np.ndarray
    weight: np.ndarray
    k_hat: float
    ess: float


class Kernels(NamedTuple):
    """An equal mixture of t densities at ``centres`` (kernel, hyperparameter) with one scale root."""

    centres: np.ndarray
    root: np.ndarray


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
        precision = np.asarray(jax.jit(self.prior_precision)(h, e, data_of(self.density.model)))
        return bool(np.allclose(precision, np.diag(np.diag(precision)), atol=1e-9 * np.abs(precision).max(initial=0)))

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

    def log_marginal(self, x: Any, curvature: Any, data: Data) -> Any:
        """Return log p(h, e) - log det(L + P(h)) / 2: at the conditional mode of e, Laplace's log p(h)."""
        precision = curvature + self.prior_precision(x[self.hyper], x[self.effect], data)
        return self.density.logp(x, data) - jnp.log(jnp.diag(jnp.linalg.cholesky(precision))).sum()

    def prior_derivatives(self, x: Any, data: Data) -> tuple[Any, Any, Any]:
        """Return the log prior's gradient in e, its precision of e, and its mixed second derivatives (e, h)."""
        h, e = x[self.hyper], x[self.effect]
        mixed = jax.jacfwd(lambda h: self.prior_gradient(h, e, data))(h)
        return self.prior_gradient(h, e, data), self.prior_precision(h, e, data), mixed


class Compiled(NamedTuple):
    """What is compiled once for a density and serves every board of its shape."""

    split: Split
    second_derivatives: Callable[[Any, Data], np.ndarray]
    prior_derivatives: Callable[[Any, Data], Any]
    climb: Callable[..., Any]
    weighed_draw: Callable[..., Any]


@lru_cache(maxsize=KEPT)
def compiled(density: Density) -> Compiled:
    """Compile, or return what was compiled before for this density."""
    split = Split(density)
    return Compiled(
        split=split,
        second_derivatives=hessian(density.logp),
        prior_derivatives=jax.jit(split.prior_derivatives),
        climb=jax.jit(jax.value_and_grad(split.log_marginal)),
        weighed_draw=batched(_weighed_draw(split)),
    )


def expand(density: Density, data: Data, start: np.ndarray, *, rounds: int = 8) -> Expansion:
    """Find the expansion point from ``start``, by L-BFGS in coordinates scaled by the Hessian.

    Each round fixes L at the current point and takes |H|^(-1/2) there as its unit of length, so that a first step is
    about one standard deviation whatever the parameters' scales are, and a last round is all but a Newton step.

    Raises
    ------
    SamplingError
        If the rounds do not settle or the curvature there is not that of a maximum.
    """
    split, second_derivatives, prior_derivatives, climb, _ = compiled(density)
    x, step = np.asarray(start, float), np.array([np.inf])
    for _ in range(rounds):
        second = second_derivatives(x, data)
        gradient, prior, mixed = map(np.asarray, prior_derivatives(x, data))
        curvature = _nonnegative(-second[np.ix_(split.effect, split.effect)] - prior)
        climb_here = partial(climb, curvature=jnp.asarray(curvature), data=data)
        marginal = _with_hyper_columns(second, split.hyper, x, climb_here)
        if np.abs(step).max() < STEP_TOLERANCE:
            slope = second[np.ix_(split.effect, split.hyper)] - mixed
            at_mode = np.asarray(climb_here(x)[1])[split.effect] - gradient
            return Expansion(x, at_mode, slope, curvature, _schur(marginal, split), -marginal)
        unit = _unit_of_length(marginal)
        step = _climb(climb_here, x, unit)
        x = x + unit @ step
    raise SamplingError("laplace: no maximum found (the density is flat or has a ridge); try method='latent'")


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
        up, down = (np.asarray(value_and_gradient(x + side)[1]) for side in (shift, -shift))
        result[i] = result[:, i] = (up - down) / (2 * DIFFERENCE)
    return result


def _climb(value_and_gradient: Callable[[Any], Any], x: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return the step, in units of length, from x to the maximum."""

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = value_and_gradient(x + unit @ u)
        slope = unit.T @ np.asarray(gradient)
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return 1e100, np.zeros_like(u)
        return -float(value), -slope

    options: Any = {"maxcor": 30, "maxiter": 60, "gtol": 1e-6}
    return np.asarray(minimize(objective, np.zeros_like(x), jac=True, method="L-BFGS-B", options=options).x)


def _schur(marginal: np.ndarray, split: Split) -> np.ndarray:
    """Return the precision of the hyperparameters with the effects integrated out."""
    h, e = split.hyper, split.effect
    cross = marginal[np.ix_(e, h)]
    precision = -marginal[np.ix_(h, h)] - cross.T @ np.linalg.solve(-marginal[np.ix_(e, e)], cross)
    if not np.linalg.eigvalsh(precision)[0] > 0:
        raise SamplingError("laplace: the hyperparameters' curvature is not that of a maximum; try method='latent'")
    return np.asarray(precision)


def _unit_of_length(second: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(second)
    curvature = np.maximum(np.abs(values), 1e-8 * np.abs(values).max())
    return np.asarray(vectors / np.sqrt(curvature))


def _nonnegative(matrix: np.ndarray) -> np.ndarray:
    """Return the nearest matrix without negative eigenvalues: a likelihood never makes effects less certain."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def sample(
    density: Density,
    data: Data,
    expansion: Expansion,
    rng: np.random.Generator,
    *,
    target_ess: float,
    progress: Callable[[str], None],
) -> Weighted:
    """Adapt the proposal in a few passes, then draw from it until the weights' effective number is ``target_ess``.

    The passes that shaped the proposal are left out of the result. Its kernels stand where weights were high, so those
    very draws would be weighted against kernels of their own: less than they should be, and most so in the tails.

    Returns
    -------
    Weighted
        The draws from the last proposal. Whether k-hat is good enough is the caller's question.
    """
    split, run = compiled(density).split, compiled(density).weighed_draw
    at = (jax.tree.map(jnp.asarray, expansion), data)

    def draw(proposal: Kernels) -> tuple[np.ndarray, np.ndarray]:
        hyper = _propose(proposal, rng)
        x, ratio = over_draws(run, (hyper, *_standard_t(split.effect.size, rng)), at)
        return x, ratio

    proposals = [Kernels(expansion.x[None, split.hyper], _root(linalg.inv(expansion.precision)))]
    pilot, pilot_ratio = np.empty((0, density.size)), np.empty(0)
    for _ in range(ADAPTATIONS):
        for _ in range(PILOT_PASSES):
            x, ratio = draw(proposals[-1])
            pilot, pilot_ratio = np.vstack([pilot, x]), np.append(pilot_ratio, ratio)
            # Against the equal mixture of all proposals so far.
            weighted = _weighted(pilot, pilot_ratio - _log_mixture(pilot[:, split.hyper], proposals))
            progress(f"adapting the proposal: {len(pilot)} draws, {weighted.ess:.0f} effective")
            proposals.append(_adapted(pilot[:, split.hyper], weighted.weight, weighted.ess, rng))
        draws, total = np.empty((0, density.size)), np.empty(0)
        for _ in range(PASSES):
            x, ratio = draw(proposals[-1])
            draws = np.vstack([draws, x])
            total = np.append(total, ratio - _log_mixture(x[:, split.hyper], proposals[-1:]))
            weighted = _weighted(draws, total)
            progress(f"weights: {len(draws)} draws, k-hat {weighted.k_hat:.2f}, {weighted.ess:.0f} effective")
            if len(draws) > PASS_DRAWS and weighted.ess >= target_ess and weighted.k_hat < GOOD_K_HAT:
                return weighted
    return weighted


def _weighted(draws: np.ndarray, log_ratio: np.ndarray) -> Weighted:
    weight, k_hat = smooth(np.where(np.isfinite(log_ratio), log_ratio, -np.inf))
    return Weighted(draws, weight, k_hat, 1.0 / float(weight @ weight))


def _effect_degrees_of_freedom(effects: int) -> float:
    """Return twice the number of effects: tails heavier than normal at a cost that does not grow with them.

    The squared radius of a normal in d dimensions varies by sqrt(2 / d) of itself; a t's scale varies by
    sqrt(2 / nu), here always the smaller.
    """
    return max(DEGREES_OF_FREEDOM, 2.0 * effects)


def _standard_t(effects: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return standard t draws (draw, effect) and their log density up to a constant."""
    nu = _effect_degrees_of_freedom(effects)
    z = rng.standard_normal((PASS_DRAWS, effects)) / np.sqrt(rng.chisquare(nu, (PASS_DRAWS, 1)) / nu)
    return z, -(nu + effects) / 2 * np.log1p((z**2).sum(axis=1) / nu)


def _weighed_draw(split: Split) -> Callable[..., Any]:
    """Return a function of (h, z, log density of z) giving the draw and log p(h, e) - log q(e | h)."""

    def draw(h: Any, z: Any, log_q: Any, at: tuple[Expansion, Data]) -> tuple[Any, Any]:
        expansion, data = at
        h0, e0 = expansion.x[split.hyper], expansion.x[split.effect]
        root = jnp.linalg.cholesky(expansion.curvature + split.prior_precision(h, e0, data))
        pull = expansion.gradient + expansion.slope @ (h - h0) + split.prior_gradient(h, e0, data)
        step = jlinalg.solve_triangular(root, pull, lower=True)
        e = e0 + jlinalg.solve_triangular(root, step + z, lower=True, trans=1)
        x = split.join(h, e)
        return x, split.density.logp(x, data) - log_q - jnp.log(jnp.diag(root)).sum()

    return draw


def _propose(proposal: Kernels, rng: np.random.Generator) -> np.ndarray:
    count, d = proposal.centres.shape
    radius = np.sqrt(rng.chisquare(DEGREES_OF_FREEDOM, (PASS_DRAWS, 1)) / DEGREES_OF_FREEDOM)
    radius[: int(WIDE_SHARE * PASS_DRAWS)] /= WIDE
    around = proposal.centres[rng.integers(count, size=PASS_DRAWS)]
    return np.asarray(around + (rng.standard_normal((PASS_DRAWS, d)) / radius) @ proposal.root.T)


def _log_mixture(hyper: np.ndarray, proposals: list[Kernels]) -> np.ndarray:
    """Return the log density, up to a constant, of the equal mixture of the passes' proposals."""
    nu, d = DEGREES_OF_FREEDOM, hyper.shape[1]
    parts = []
    for centres, root in proposals:
        at, around = (linalg.solve_triangular(root, points.T, lower=True) for points in (hyper, centres))
        squared = np.maximum((at**2).sum(0)[:, None] + (around**2).sum(0) - 2 * at.T @ around, 0.0)
        for share, width in ((1 - WIDE_SHARE, 1.0), (WIDE_SHARE, WIDE)):
            kernel = (1 + squared / (width**2 * nu)) ** (-(nu + d) / 2)
            parts.append(np.log(share * kernel.mean(axis=1)) - np.log(np.diag(root)).sum() - d * np.log(width))
    return np.asarray(special.logsumexp(parts, axis=0) - np.log(len(proposals)))


def _adapted(hyper: np.ndarray, weight: np.ndarray, ess: float, rng: np.random.Generator) -> Kernels:
    """Return kernels at resampled draws, shrunk so that the mixture keeps their covariance (West 1993).

    While few draws carry the weight, one kernel with their mean and covariance.
    """
    centre = weight @ hyper
    spread = hyper - centre
    root = _root(WIDENING * (spread * weight[:, None]).T @ spread)
    if ess < FEW_EFFECTIVE:
        return Kernels(centre[None], root)
    at = spread[resample(weight, KERNELS, rng)]
    return Kernels(centre + np.sqrt(1 - BANDWIDTH**2) * at, BANDWIDTH * root)


def _root(covariance: np.ndarray) -> np.ndarray:
    return np.asarray(linalg.cholesky(covariance, lower=True))


def smooth(log_ratio: np.ndarray) -> tuple[np.ndarray, float]:
    """Return normalised Pareto-smoothed weights and k-hat of log importance ratios."""
    from arviz_stats.base import array_stats

    log_weight, k_hat = array_stats.psislw(-log_ratio)
    weight = np.exp(log_weight - special.logsumexp(log_weight))
    return weight, float(k_hat)


def resample(weight: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``count`` indices by systematic resampling, in random order.

    Each draw appears floor or ceil of count x weight times: less noise than independent picks (Douc, Cappe and
    Moulines 2005, "Comparison of resampling schemes for particle filtering").
    """
    positions = (rng.random() + np.arange(count)) / count
    chosen = np.searchsorted(np.cumsum(weight), positions * weight.sum(), side="right")
    return rng.permutation(np.minimum(chosen, weight.size - 1))


def draws_of(density: Density, names: Sequence[str], x: np.ndarray, data: Data) -> dict[str, Any]:
    """Return the named quantities of the model at draws x (draw, size), each with draws along the first axis."""
    return dict(over_draws(_quantities(density, tuple(names)), (x,), data))


@lru_cache(maxsize=KEPT)
def _quantities(density: Density, names: tuple[str, ...]) -> Callable[..., Any]:
    return batched(density.quantities(names))
