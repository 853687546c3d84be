"""Exact posterior draws from a Laplace proposal: skewed conditional normals and adaptive importance sampling.

The unconstrained vector has a few hyperparameters h (scalars) and many effects e (vectors). The log-likelihood is close
to quadratic in both; the prior of the effects is not, since its scale is among the hyperparameters. So the
likelihood alone is expanded, at a point (h0, e0) (`evalbayes.expansion`), and the prior is kept as it is:

    q(e | h) = t(e; e0 + S(h) (g + G (h - h0) + prior gradient at (h, e0)), S(h)),    S(h) = (L + P(h))^-1,

with g, G and -L the likelihood's gradient in e and its second derivatives, and P(h) the prior precision of e. What is
skewed about the effects is in g, which moves their mean, and in the draws, which have the skewness of the expansion
along the axes of S(h): one and a half to two times the effective draws on the boards this was made for.

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

from evalbayes import proposal
from evalbayes.density import KEPT, Data, Density, batched, over_draws
from evalbayes.expansion import Expansion, Split, compiled

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
MEAN_LENGTH, SKEWNESS_OF_SHIFT, LARGEST_SHIFT = 1.3545, 1.6947, 0.5
"""E sqrt(1 + z^2) of a standard normal z, 3 E (z^2 - 1) sqrt(1 + z^2), and the most that a draw is skewed."""


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
    split, run = compiled(density).split, _weighed_draw(density)
    at = jax.tree.map(jnp.asarray, expansion)

    def drawn(mixture: proposal.Mixture, count: int) -> Pass:
        hyper = proposal.draw(mixture, count, rng)
        z, log_q = _skewed(*_standard_t(count, split.effect.size, rng), expansion.skewness)
        return Pass(mixture, *over_draws(run, (hyper, z, log_q), (at, data)))

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


def _skewed(z: np.ndarray, log_q: np.ndarray, skewness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return draws (draw, effect) skewed by that much each, and their log density; their means stay zero.

    By sinh(asinh(z) + epsilon), whose skewness is near `SKEWNESS_OF_SHIFT` epsilon and whose support is all numbers
    (Jones and Pewsey 2009, "Sinh-arcsinh distributions", Biometrika 96, 761-780).
    """
    epsilon = np.clip(skewness / SKEWNESS_OF_SHIFT, -LARGEST_SHIFT, LARGEST_SHIFT)
    sinh, cosh, length = np.sinh(epsilon), np.cosh(epsilon), np.sqrt(1 + z**2)
    stretch = np.log(cosh + sinh * z / length).sum(axis=1)
    return cosh * z + sinh * (length - MEAN_LENGTH), log_q - stretch


@lru_cache(maxsize=KEPT)
def _weighed_draw(density: Density) -> Callable[..., Any]:
    """Compile a function of (h, z, log density of z) giving the draw and log p(h, e) - log q(e | h)."""
    split = compiled(density).split

    @batched
    def draw(h: Any, z: Any, log_q: Any, at: tuple[Expansion, Data]) -> tuple[Any, Any]:
        expansion, data = at
        h0, e0 = expansion.x[split.hyper], expansion.x[split.effect]
        root = jnp.linalg.cholesky(expansion.curvature + split.prior_precision(h, e0, data))
        pull = expansion.gradient + expansion.slope @ (h - h0) + split.prior_gradient(h, e0, data)
        step = jlinalg.solve_triangular(root, pull, lower=True)
        e = e0 + jlinalg.solve_triangular(root, step + z, lower=True, trans=1)
        x = split.join(h, e)
        return x, density.logp(x, data) - log_q - jnp.log(jnp.diag(root)).sum()

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
