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
one from a mixture of t densities fitted to the earlier draws (`evalbayes.proposal`), weighted against all passes
together (adaptive multiple importance sampling: Cornuet, Marin, Mira and Robert 2012, Scandinavian Journal of
Statistics 39, 798-812). Then it is frozen, and only draws made after that are used: plain importance sampling, exact in
the limit. Weights are Pareto-smoothed (Vehtari, Simpson, Gelman, Yao and Gabry 2024, Journal of Machine Learning
Research 25, 1-58), and k-hat and the effective number of draws say whether to believe them.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg as jlinalg
from scipy import linalg, special
from scipy.optimize import minimize

from evalbayes import proposal
from evalbayes.density import KEPT, Data, Density, batched, data_of, derivatives, hessian, over_draws
from evalbayes.errors import SamplingError

PILOT_DRAWS, PILOT_PASSES, PILOT_ESS = 512, 8, 500
"""Draws of a pass that adapts the proposal, such passes at most, and the effective draws that are enough of them."""
PASS_DRAWS, PASSES, ADAPTATIONS = 1024, 8, 3
"""Draws of a pass from the adapted proposal, such passes at most, and how often to adapt further before giving up."""
HOPELESS_K_HAT, HOPELESS_PASSES = 0.6, 3
"""k-hat after so many passes at which to adapt again rather than go on."""
GOOD_K_HAT = 0.45
"""At which to stop drawing: k-hat is noisy, and one that has just dipped below its limit is no better than it."""
LEAST_DEGREES_OF_FREEDOM = 5.0
"""Of the effects' t density, however few they are."""
DIFFERENCE = 1e-4
"""Step of central differences in hyperparameters (unconstrained, so of order one)."""
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


class Pass(NamedTuple):
    """Draws x (draw, size) from a proposal, with log p(h, e) - log q(e | h) of each."""

    mixture: proposal.Mixture
    x: np.ndarray
    log_ratio: np.ndarray


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

    def log_width(self, x: Any, curvature: Any, data: Data) -> Any:
        """Return -log det(L + P(h)) / 2."""
        precision = curvature + self.prior_precision(x[self.hyper], x[self.effect], data)
        return -jnp.log(jnp.diag(jnp.linalg.cholesky(precision))).sum()

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
    weighed_draw: Callable[..., Any]


@lru_cache(maxsize=KEPT)
def compiled(density: Density) -> Compiled:
    """Compile, or return what was compiled before for this density."""
    split = Split(density)
    return Compiled(
        split=split,
        along=derivatives(density.logp),
        prior_derivatives=jax.jit(split.prior_derivatives),
        log_width=jax.jit(jax.value_and_grad(split.log_width)),
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
    split, along, prior_derivatives, _, _ = compiled(density)
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
            return Expansion(x, at_mode, slope, curvature, _schur(marginal, split), -marginal)
        x = x + unit @ step
    raise SamplingError("laplace: no maximum found (the density is flat or has a ridge); try method='latent'")


def _log_marginal(density: Density, curvature: np.ndarray, data: Data) -> Callable[[np.ndarray], Any]:
    """Return a function of x giving log p(h, e) - log det(L + P(h)) / 2, and its gradient.

    At the conditional mode of e this is Laplace's log p(h). `derivatives` is used although its direction is wasted:
    another derivative of the density would take as long to compile as all these evaluations.
    """
    _, along, _, log_width, _ = compiled(density)
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
    resolved: Callable[[Weighted], Data] | None = None,
    progress: Callable[[str], None],
) -> Weighted:
    """Adapt the proposal in a few passes, then draw from it until the weights' effective number is ``target_ess``.

    The passes that shaped the proposal are left out of the result. Its kernels stand where weights were high, so those
    very draws would be weighted against kernels of their own: less than they should be, and most so in the tails.

    Parameters
    ----------
    density, data, expansion
        From `compile_density`, `data_of` and `expand`.
    rng
        Draws everything.
    target_ess
        The effective draws to stop at, if k-hat is good by then.
    resolved
        Given the draws that adapted the proposal, returns the data with a grid fine enough for them.
    progress
        Is told of every pass.

    Returns
    -------
    Weighted
        The draws from the last proposal. Whether k-hat is good enough is the caller's question.
    """
    split, run = compiled(density).split, compiled(density).weighed_draw
    at = jax.tree.map(jnp.asarray, expansion)

    def drawn(mixture: proposal.Mixture, count: int) -> Pass:
        hyper = proposal.draw(mixture, count, rng)
        return Pass(mixture, *over_draws(run, (hyper, *_standard_t(count, split.effect.size, rng)), (at, data)))

    mixture = proposal.single(expansion.x[split.hyper], linalg.inv(expansion.precision))
    pilots: list[Pass] = []
    for _ in range(ADAPTATIONS):
        for _ in range(PILOT_PASSES):
            pilots.append(drawn(mixture, PILOT_DRAWS))
            weighted = _weighed(pilots, split)
            mixture = proposal.fitted(weighted.x[:, split.hyper], weighted.weight, weighted.ess, rng)
            progress(f"adapting the proposal: {len(weighted.x)} draws, {weighted.ess:.0f} effective")
            if weighted.ess >= PILOT_ESS:
                break
        if resolved is not None:
            data = resolved(weighted)
        passes: list[Pass] = []
        for _ in range(PASSES):
            passes.append(drawn(mixture, PASS_DRAWS))
            weighted = _weighed(passes, split)
            progress(f"weights: {len(weighted.x)} draws, k-hat {weighted.k_hat:.2f}, {weighted.ess:.0f} effective")
            if len(passes) > 1 and weighted.ess >= target_ess and weighted.k_hat < GOOD_K_HAT:
                return weighted
            if len(passes) >= HOPELESS_PASSES and weighted.k_hat > HOPELESS_K_HAT:
                break
        pilots += passes
    return weighted


def _weighed(passes: list[Pass], split: Split) -> Weighted:
    """Weigh the draws of all passes against the mixture of their proposals."""
    x = np.vstack([one.x for one in passes])
    log_q = proposal.log_density(x[:, split.hyper], [one.mixture for one in passes], [len(one.x) for one in passes])
    log_ratio = np.concatenate([one.log_ratio for one in passes]) - log_q
    weight, k_hat = smooth(np.where(np.isfinite(log_ratio), log_ratio, -np.inf))
    return Weighted(x, weight, k_hat, 1.0 / float(weight @ weight))


def _effect_degrees_of_freedom(effects: int) -> float:
    """Return twice the number of effects: tails heavier than normal at a cost that does not grow with them.

    The squared radius of a normal in d dimensions varies by sqrt(2 / d) of itself; a t's scale varies by
    sqrt(2 / nu), here always the smaller.
    """
    return max(LEAST_DEGREES_OF_FREEDOM, 2.0 * effects)


def _standard_t(count: int, effects: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return standard t draws (draw, effect) and their log density up to a constant."""
    nu = _effect_degrees_of_freedom(effects)
    z = rng.standard_normal((count, effects)) / np.sqrt(rng.chisquare(nu, (count, 1)) / nu)
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


def smooth(log_ratio: np.ndarray) -> tuple[np.ndarray, float]:
    """Return normalised Pareto-smoothed weights and k-hat of log importance ratios."""
    from arviz_stats.base import array_stats

    log_weight, k_hat = array_stats.psislw(-log_ratio)
    weight = np.exp(log_weight - special.logsumexp(log_weight))
    return weight, float(k_hat)


def draws_of(density: Density, names: Sequence[str], x: np.ndarray, data: Data) -> dict[str, Any]:
    """Return the named quantities of the model at draws x (draw, size), each with draws along the first axis."""
    return dict(over_draws(_quantities(density, tuple(names)), (x,), data))


@lru_cache(maxsize=KEPT)
def _quantities(density: Density, names: tuple[str, ...]) -> Callable[..., Any]:
    return batched(density.quantities(names))
