"""Whether ranks are uniform: the simultaneous test of their ECDF, exactly, and the band that goes with it.

N ranks among L draws are whole numbers from 0 to L. Where they are uniform and independent, C_k, how many are below k,
is Binomial(N, k / (L + 1)). The test looks at the least probable tail over all k = 1, ..., L,

    g = min_k min(P(C_k <= c_k), P(C_k >= c_k)),

and its p-value is the probability of a g no larger, from the Markov chain that C_1, C_2, ... are: C_k - C_(k-1) given
C_(k-1) is Binomial(N - C_(k-1), 1 / (L + 2 - k)) (Saeilynoja, Buerkner and Vehtari 2022, "Graphical test for discrete
uniformity and its applications in goodness-of-fit evaluation and multiple sample comparison", Statistics and Computing
32:32, sections 2.1 and 2.3). It sees ranks that are too low, too high, too spread out or too narrow alike, and no bins
have to be chosen.
"""

from functools import lru_cache

import numpy as np
from scipy import special, stats

from evalbayes.simulate import Floats

HALVINGS = 30
"""Of the interval in which the band's pointwise level is looked for."""
ROUNDING = 1e-9
"""Two tail probabilities that differ by less, relatively, are the same one."""


def p_value(ranks: Floats, draws: int) -> float:
    """Return the probability of an ECDF as far from uniform as this one, anywhere; NaN without ranks.

    Parameters
    ----------
    ranks
        (fit,) whole numbers from 0 to ``draws``; those that are NaN are left out.
    draws
        L, the number of draws that each is a rank among.

    Examples
    --------
    >>> round(p_value(np.arange(20.0), 19), 3), round(p_value(np.arange(20.0) // 2, 19), 3)
    (1.0, 0.0)
    """
    known = ranks[~np.isnan(ranks)]
    if not known.size:
        return np.nan
    below = (known < np.arange(1, draws + 1)[:, None]).sum(axis=1)
    at_most, at_least = _tails(known.size, draws)
    rows = np.arange(draws)
    least = min(at_most[rows, below].min(), at_least[rows, below].min())
    return float(np.clip(1.0 - _stays(known.size, draws, least * (1 + ROUNDING)), 0.0, 1.0))


@lru_cache(maxsize=64)
def band(fits: int, draws: int, prob: float) -> tuple[Floats, Floats]:
    """Return the least and the greatest ECDF, at k / (L + 1) for k = 1, ..., L, that no test at 1 - prob refuses.

    Parameters
    ----------
    fits
        N, the number of ranks.
    draws
        L.
    prob
        Probability that the whole ECDF of uniform ranks stays inside, edges included; it is at least that, as counts
        are whole.

    Examples
    --------
    >>> low, high = band(100, 19, 0.95)
    >>> float(low[9]), float(high[9])
    (0.37, 0.63)
    """
    inside, outside = 0.0, 1.0 - prob
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        if _stays(fits, draws, middle) >= prob:
            inside = middle
        else:
            outside = middle
    low, high = _limits(fits, draws, inside)
    return low / fits, high / fits


@lru_cache(maxsize=64)
def _tails(fits: int, draws: int) -> tuple[Floats, Floats]:
    """Return P(C_k <= c) and P(C_k >= c), (k, c)."""
    at, count = np.arange(1, draws + 1)[:, None] / (draws + 1), np.arange(fits + 1)
    return np.asarray(stats.binom.cdf(count, fits, at)), np.asarray(stats.binom.sf(count - 1, fits, at))


def _limits(fits: int, draws: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest count at each k with both tails above ``level``."""
    at_most, at_least = _tails(fits, draws)
    return (at_most <= level).sum(axis=1), (at_least > level).sum(axis=1) - 1


def _stays(fits: int, draws: int, level: float) -> float:
    """Return the probability that no tail is ``level`` or less."""
    log_factorial = special.gammaln(np.arange(fits + 1) + 1.0)
    reached, before = np.ones(1), np.zeros(1, int)
    for k, (low, high) in enumerate(zip(*_limits(fits, draws, level), strict=True)):
        count = np.arange(low, high + 1)
        more, left = count - before[:, None], (fits - before)[:, None]
        p, some = 1.0 / (draws + 1 - k), np.clip(more, 0, left)
        log_step = log_factorial[left] - log_factorial[some] - log_factorial[left - some]
        step = np.exp(log_step + some * np.log(p) + (left - some) * np.log1p(-p))
        reached, before = reached @ np.where(more >= 0, step, 0.0), count
    return float(reached.sum())
