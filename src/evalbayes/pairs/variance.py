"""Variances of U, the mean of a symmetric rule over all pairs of M sampled configs.

With N = M (M - 1) / 2, the sums a, b, d_i, Q3 of `evalbayes.pairs.sums`, (M)_k the falling factorial and
D = (4 a^2 - 4 Q3 - 4 b) / (M)_4 the mean product of two pairs without a common config:

    zeta_1    = Q3 / (M)_3 - D              covariance of two pairs that share one config
    zeta_2    = b / N - D                   variance of one pair
    hoeffding = 4 zeta_1 / M                the first-order projection (Hoeffding, Annals of Mathematical Statistics
                                            19, 1948)
    dyadic    = (sum_i r_i^2 - sum_{i<j} e_ij^2) / N^2,   e_ij = h_ij - U,  r_i = sum_j e_ij    (Aronow, Samii and
                                            Assenova, Political Analysis 23, 2015)
    jackknife = (M - 1) / M sum_i (U_(-i) - mean)^2       (Arvesen, Annals of Mathematical Statistics 40, 1969)
    pair_iid  = (b / N - U^2) / (N - 1)     as if the N pairs were independent, which they are not: for reference

All are as in arXiv 2609.33012. Integers in, Fractions out.
"""

from collections.abc import Callable
from math import perm
from typing import Any

import numpy as np

from evalbayes.frequentist.bootstrap import Floats
from evalbayes.pairs.sums import Sums, mean, pairs_in, ratio, square_sum

FEWEST = {"pair_iid": 3, "hoeffding": 4, "dyadic": 3, "jackknife": 3}
"""Configs without which a method has no variance."""


def zetas(sums: Sums) -> tuple[Any, Any]:
    """Return zeta_1 and zeta_2, of a rule over four or more configs.

    >>> from evalbayes.pairs.sums import tied_sums
    >>> [str(zeta) for zeta in zetas(tied_sums(np.array([0, 0, 0, 1, 1]), 0))]
    ['-1/10', '1/5']
    """
    m, unit = sums.size, sums.scale**2
    q3 = square_sum(sums.degrees) - 2 * sums.squares
    disjoint = ratio(4 * sums.total**2 - 4 * q3 - 4 * sums.squares, perm(m, 4) * unit)
    return ratio(q3, perm(m, 3) * unit) - disjoint, ratio(sums.squares, pairs_in(m) * unit) - disjoint


def hoeffding(sums: Sums) -> Any:
    """4 zeta_1 / M; negative where the estimate of zeta_1 is."""
    return 4 * zetas(sums)[0] / sums.size


def dyadic(sums: Sums) -> Any:
    """Dyadic sandwich: every product of two residuals whose pairs share a config, over N^2."""
    m, n, u = sums.size, pairs_in(sums.size), mean(sums)
    unit = sums.scale**2
    shared = ratio(square_sum(sums.degrees), unit) - m * ((m - 1) * u) ** 2
    return (shared - (ratio(sums.squares, unit) - n * u**2)) / n**2


def jackknife(sums: Sums) -> Any:
    """(M - 1) / M sum (U_(-i) - mean)^2, with U_(-i) = (a - d_i) / ((M - 1) (M - 2) / 2)."""
    m, smaller = sums.size, pairs_in(sums.size - 1) * sums.scale
    spread = square_sum(sums.degrees) - ratio(4 * sums.total**2, m)
    return (m - 1) * spread / (m * smaller**2)


def pair_iid(sums: Sums) -> Any:
    """Sample variance over pairs / N; U (1 - U) / (N - 1) where the rule is 0 or 1."""
    n = pairs_in(sums.size)
    return (ratio(sums.squares, n * sums.scale**2) - mean(sums) ** 2) / (n - 1)


VARIANCES: dict[str, Callable[[Sums], Any]] = {
    "hoeffding": hoeffding,
    "dyadic": dyadic,
    "jackknife": jackknife,
    "pair_iid": pair_iid,
}


def weighted_dyadic(values: Floats, weights: Floats) -> tuple[float, float]:
    """Mean of a rule under pair weights, and its dyadic sandwich variance.

    With e_ij = w_ij (h_ij - U) and r_i = sum_j e_ij, V = (sum_i r_i^2 - sum_{i<j} e_ij^2) / (sum_{i<j} w_ij)^2.

    Parameters
    ----------
    values, weights
        h and w, (config, config), symmetric; diagonals are not looked at.

    >>> h = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0.0]])
    >>> [round(float(part), 4) for part in weighted_dyadic(h, np.ones((3, 3)))]
    [0.3333, 0.0]
    """
    w = weights.astype(float)
    np.fill_diagonal(w, 0)
    total = w.sum() / 2
    estimate = (w * values).sum() / 2 / total
    residual = w * (values - estimate)
    variance = ((residual.sum(axis=1) ** 2).sum() - (residual**2).sum() / 2) / total**2
    return float(estimate), float(variance)
