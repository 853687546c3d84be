"""Intervals from a standard error: normal, Wilson, and the noise that repeated runs leave in a score."""

from statistics import NormalDist

import numpy as np

from evalbayes.frequentist.bootstrap import Cells, Floats


def quantile(prob: float) -> float:
    """Two-sided standard normal quantile.

    >>> round(quantile(0.95), 4)
    1.96
    """
    return NormalDist().inv_cdf((1 + prob) / 2)


def wald(estimate: Floats, se: Floats, prob: float, limits: tuple[float, float]) -> Floats:
    """Estimate -+ z se, cut at the limits of the scale: (...) -> (..., 2).

    >>> wald(np.array([0.95]), np.array([0.04873]), 0.95, (0, 1)).round(4).tolist()
    [[0.8545, 1.0]]
    """
    half = quantile(prob) * se
    ends: Floats = np.stack([estimate - half, estimate + half], axis=-1)
    return np.clip(ends, *limits)


def wilson(rate: Floats, trials: Floats, prob: float) -> Floats:
    """Wilson's score interval of a binomial rate, exactly 0 or 1 at the boundary: (...) -> (..., 2).

    With z the normal quantile, (rate + z^2/2n -+ z sqrt(rate (1-rate)/n + z^2/4n^2)) / (1 + z^2/n)
    (Wilson, JASA 22, 1927; Brown, Cai and DasGupta, Statistical Science 16, 2001, equation 4).

    >>> wilson(np.array([0.0, 0.95]), np.array([10.0, 20.0]), 0.95).round(4).tolist()
    [[0.0, 0.2775], [0.7639, 0.9911]]
    """
    z2n = quantile(prob) ** 2 / np.where(trials > 0, trials, np.nan)
    half = np.sqrt(z2n * rate * (1 - rate) + z2n**2 / 4)
    ends = np.stack([rate + z2n / 2 - half, rate + z2n / 2 + half], axis=-1) / (1 + z2n)[..., None]
    ends[..., 0] = np.where(rate == 0, 0.0, ends[..., 0])
    ends[..., 1] = np.where(rate == 1, 1.0, ends[..., 1])
    result: Floats = ends
    return result


def task_means(board: Cells) -> Floats:
    """Success rate k / n of each cell, NaN where it has no run: (config, task)."""
    return np.where(board.scored, board.successes / np.maximum(board.trials, 1), np.nan)


def run_noise(board: Cells) -> Floats:
    """Unbiased variance of each task's mean over new runs, p (1-p) / (n-1); 0 where a cell has no run: (config, task).

    A cell with one run shows no spread: it gets the config's mean of p (1-p) n / (n-1) over its other
    cells, NaN where there is none.
    """
    n, p = board.trials, task_means(board)
    within = np.where(n > 1, p * (1 - p) * n / np.maximum(n - 1, 1), 0.0)
    repeated = (n > 1).sum(axis=1)
    mean = within.sum(axis=1) / np.where(repeated > 0, repeated, np.nan)
    return np.where(n == 1, mean[:, None], within) / np.maximum(n, 1)
