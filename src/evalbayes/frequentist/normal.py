"""Intervals from a standard error, and the noise that repeated runs leave in a score."""

import numpy as np

from evalbayes.frequentist.bootstrap import Cells, Floats
from evalbayes.textbook import quantile


def wald(estimate: Floats, se: Floats, prob: float, limits: tuple[float, float]) -> Floats:
    """Estimate -+ z se, cut at the limits of the scale: (...) -> (..., 2).

    >>> wald(np.array([0.95]), np.array([0.04873]), 0.95, (0, 1)).round(4).tolist()
    [[0.8545, 1.0]]
    """
    half = quantile(prob) * se
    ends: Floats = np.stack([estimate - half, estimate + half], axis=-1)
    return np.clip(ends, *limits)


def task_means(board: Cells) -> Floats:
    """Success rate k / n of each cell, NaN where it has no run: (config, task)."""
    return np.where(board.scored, board.successes / np.maximum(board.trials, 1), np.nan)


def run_variance(board: Cells) -> Floats:
    """Unbiased variance of a run of each task, p (1-p) n / (n-1); 0 where a cell has fewer than two: (config, task)."""
    n, p = board.trials, np.nan_to_num(task_means(board))
    return np.where(n > 1, p * (1 - p) * n / np.maximum(n - 1, 1), 0.0)


def run_noise(board: Cells) -> Floats:
    """Unbiased variance of each task's mean over new runs, p (1-p) / (n-1); 0 where a cell has no run: (config, task).

    A cell with one run shows no spread: it gets the config's mean of p (1-p) n / (n-1) over its other
    cells, NaN where there is none.
    """
    n, within = board.trials, run_variance(board)
    repeated = (n > 1).sum(axis=1)
    mean = within.sum(axis=1) / np.where(repeated > 0, repeated, np.nan)
    return np.where(n == 1, mean[:, None], within) / np.maximum(n, 1)
