"""Mixtures of t densities as importance proposals: drawn from, evaluated, and fitted to weighted draws by EM.

The fit is that of Cappe, Douc, Guillin, Marin and Robert (2008), "Adaptive importance sampling in general mixture
classes", Statistics and Computing 18, 447-459.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg, special

DEGREES_OF_FREEDOM = 4.0
"""Of the t densities: a log scale that the data leave open has an exponential tail towards zero."""
WIDENING = 1.1
"""Factor on the draws' covariance: a proposal wider than its target costs little, a narrower one ruins weights."""
COMPONENTS, DRAWS_A_COMPONENT = 8, 100
"""Components at most, and the effective draws that each needs."""
EM_STEPS = 20
RIDGE = 0.1
"""The covariance of all draws counts in that of each component like draws with this share of the weight."""
WIDE, WIDE_SHARE = 2.5, 0.1
"""A tenth of the draws are this many times wider, so that no weight in the tails can be large."""


class Mixture(NamedTuple):
    """A mixture of t densities: ``share`` (component,), ``centre`` (component, dimension), and a scale root each."""

    share: np.ndarray
    centre: np.ndarray
    root: np.ndarray


def single(centre: np.ndarray, covariance: np.ndarray) -> Mixture:
    """Return a mixture of one component."""
    return Mixture(np.ones(1), centre[None], _root(covariance)[None])


def draw(mixture: Mixture, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return draws (draw, dimension), the wide ones first."""
    components, d = mixture.centre.shape
    component = rng.choice(components, size=count, p=mixture.share)
    radius = np.sqrt(rng.chisquare(DEGREES_OF_FREEDOM, (count, 1)) / DEGREES_OF_FREEDOM)
    radius[: int(WIDE_SHARE * count)] /= WIDE
    step = rng.standard_normal((count, d)) / radius
    return np.asarray(mixture.centre[component] + np.einsum("nij,nj->ni", mixture.root[component], step))


def log_density(x: np.ndarray, mixtures: list[Mixture], draws: list[int]) -> np.ndarray:
    """Return, up to a constant, the log density at x (draw, dimension) of mixtures weighted by their ``draws``."""
    d = x.shape[1]
    parts = []
    for mixture, drawn in zip(mixtures, draws, strict=True):
        squared = _squared_radius(x, mixture)
        for share, width in ((1 - WIDE_SHARE, 1.0), (WIDE_SHARE, WIDE)):
            parts.append(np.log(share * drawn) - d * np.log(width) + _log_components(squared / width**2, mixture, d))
    return np.asarray(special.logsumexp(np.vstack(parts), axis=0) - np.log(sum(draws)))


def fitted(x: np.ndarray, weight: np.ndarray, ess: float, rng: np.random.Generator) -> Mixture:
    """Return the mixture that EM fits to weighted draws: one component while few draws carry the weight, then more.

    Of no more effective draws than dimensions a covariance would be all but singular: there all draws count alike.
    """
    centre = weight @ x
    spread = weight if ess > x.shape[1] else np.full(len(x), 1 / len(x))
    covariance = WIDENING * ((x - centre) * spread[:, None]).T @ (x - centre)
    count = int(np.clip(ess / DRAWS_A_COMPONENT, 1, COMPONENTS))
    if count == 1:
        return single(centre, covariance)
    centres = x[resample(weight, count, rng)]
    mixture = Mixture(np.full(count, 1 / count), centres, np.repeat(_root(covariance)[None], count, axis=0))
    for _ in range(EM_STEPS):
        mixture = _em_step(mixture, x, weight, covariance)
    return mixture


def _em_step(mixture: Mixture, x: np.ndarray, weight: np.ndarray, covariance: np.ndarray) -> Mixture:
    """Return the mixture after one step of EM; ``covariance`` is the prior of every component's."""
    d = x.shape[1]
    squared = _squared_radius(x, mixture)
    belongs = weight * special.softmax(_log_components(squared, mixture, d), axis=0)
    pull = belongs * (DEGREES_OF_FREEDOM + d) / (DEGREES_OF_FREEDOM + squared)
    centre = pull @ x / pull.sum(axis=1, keepdims=True)
    share = belongs.sum(axis=1) + RIDGE
    roots = []
    for at, size, drawn in zip(centre, share, pull, strict=True):
        scatter = ((x - at) * drawn[:, None]).T @ (x - at)
        roots.append(_root((scatter + RIDGE * covariance) / size))
    return Mixture(share / share.sum(), centre, np.stack(roots))


def _squared_radius(x: np.ndarray, mixture: Mixture) -> np.ndarray:
    """Return how far draws are from every centre, in units of its scale, squared: (component, draw)."""
    whitened = (
        linalg.solve_triangular(root, (x - centre).T, lower=True)
        for centre, root in zip(mixture.centre, mixture.root, strict=True)
    )
    return np.stack([(z**2).sum(axis=0) for z in whitened])


def _log_components(squared: np.ndarray, mixture: Mixture, d: int) -> np.ndarray:
    """Return log of share times density, up to a constant, of every component: (component, draw)."""
    scale = np.log(mixture.share) - np.log(np.diagonal(mixture.root, axis1=1, axis2=2)).sum(axis=1)
    return np.asarray(scale[:, None] - (DEGREES_OF_FREEDOM + d) / 2 * np.log1p(squared / DEGREES_OF_FREEDOM))


def _root(covariance: np.ndarray) -> np.ndarray:
    return np.asarray(linalg.cholesky(covariance, lower=True))


def resample(weight: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``count`` indices by systematic resampling, in random order.

    Each draw appears floor or ceil of count x weight times: less noise than independent picks (Douc, Cappe and
    Moulines 2005, "Comparison of resampling schemes for particle filtering").
    """
    positions = (rng.random() + np.arange(count)) / count
    chosen = np.searchsorted(np.cumsum(weight), positions * weight.sum(), side="right")
    return rng.permutation(np.minimum(chosen, weight.size - 1))
