"""The coverage study of six intervals: published figures, and the simulation that has to give them again.

Source: arXiv 2606.00920, table 6 (which gives the ICCs), with the means of its per-model table; figures computed
independently of this package with 1,000 data sets. N = 99 tasks, R = 5 runs, task rates Beta with mean mu and
ICC 1 / (alpha + beta + 1). For each interval: coverage of mu and of the realised mean of the task rates, in %,
and the mean width in points.
"""

import numpy as np
import xarray as xr

from evalbayes import frequentist
from evalbayes.frequentist.targets import COVERS
from evalbayes.outcomes import from_counts

TASKS, RUNS, DATA_SETS = 99, 5, 1000
PUBLISHED = {
    (0.634, 0.76): {
        "pooled_wilson": (66.6, 100.0, 8.4),
        "two_level_bootstrap": (95.6, 100.0, 17.3),
        "one_level_bootstrap": (94.7, 100.0, 16.9),
        "clustered_normal": (94.7, 100.0, 17.1),
        "fixed_normal": (34.7, 93.6, 4.1),
        "fixed_bootstrap": (31.8, 89.7, 3.6),
    },
    (0.808, 0.59): {
        "pooled_wilson": (71.5, 99.6, 6.8),
        "two_level_bootstrap": (94.9, 100.0, 13.0),
        "one_level_bootstrap": (93.5, 100.0, 12.4),
        "clustered_normal": (92.7, 100.0, 12.5),
        "fixed_normal": (48.4, 94.5, 4.4),
        "fixed_bootstrap": (45.5, 90.5, 3.9),
    },
    (0.344, 0.96): {
        "pooled_wilson": (60.2, 100.0, 8.3),
        "two_level_bootstrap": (95.2, 100.0, 18.4),
        "one_level_bootstrap": (94.8, 100.0, 18.3),
        "clustered_normal": (94.9, 100.0, 18.5),
        "fixed_normal": (11.7, 91.3, 1.6),
        "fixed_bootstrap": (10.8, 86.3, 1.4),
    },
}


def simulate(mean: float, icc: float, data_sets: int, seed: int) -> tuple[xr.Dataset, xr.DataArray]:
    """Boards with one config per data set, each with its own tasks, and the realised mean rate of each."""
    rng = np.random.default_rng(seed)
    size = 1 / icc - 1
    rates = rng.beta(mean * size, (1 - mean) * size, size=(data_sets, TASKS))
    names = {"configs": [f"set{i:04}" for i in range(data_sets)], "tasks": [f"t{i:02}" for i in range(TASKS)]}
    board = from_counts(rng.binomial(RUNS, rates), np.full(rates.shape, RUNS), **names)
    return board, xr.DataArray(rates.mean(axis=1), dims="config", coords={"config": board.config.values})


def study(mean: float, icc: float, method: str, data_sets: int = DATA_SETS, seed: int = 0, draws: int = 1000):
    """Coverage of mu and of the realised mean (%), mean width and its sd over data sets (points), of one interval."""
    board, realised = simulate(mean, icc, data_sets, seed)
    tasks = COVERS[method][-1]
    interval = frequentist.score(board, tasks=tasks, method=method, draws=draws, prob=0.95).interval
    lower, upper = interval.sel(ci_bound="lower"), interval.sel(ci_bound="upper")
    covered = [100 * ((lower <= truth) & (truth <= upper)).mean().item() for truth in (mean, realised)]
    width = 100 * (upper - lower)
    return (*covered, width.mean().item(), width.std(ddof=1).item())
