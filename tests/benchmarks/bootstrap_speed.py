"""Time the frequentist answers on boards of growing size: python tests/benchmarks/bootstrap_speed.py.

Case 72: ranks, win matrix and top-k of 134 x 500 with 2,000 resamples were 0.36 s elsewhere, by count weights.
Run with OPENBLAS_NUM_THREADS=1 for figures that do not depend on how busy the other cores are.
"""

import resource
import time

import numpy as np

from evalbayes import frequentist
from evalbayes.outcomes import from_counts

QUANTITIES = ("score", "rank", "top_k", "win_probability", "difference")


def board(configs: int, tasks: int, runs: int, missing: float = 0.0):
    """A board of random difficulty with a share of cells left out."""
    rng = np.random.default_rng(0)
    trials = np.where(rng.uniform(size=(configs, tasks)) < missing, 0, runs)
    rates = 1 / (1 + np.exp(-rng.normal(size=(configs, 1)) - 2 * rng.normal(size=(1, tasks))))
    names = {"configs": [f"c{i:05}" for i in range(configs)], "tasks": [f"t{i:05}" for i in range(tasks)]}
    return from_counts(rng.binomial(trials, rates), trials, **names)


def main() -> None:
    """Print seconds for each quantity, and the peak memory so far."""
    small = board(3, 5, 2)
    for quantity in QUANTITIES:  # pays for the imports
        getattr(frequentist, quantity)(small, draws=10)
    print("configs x tasks x runs  " + "  ".join(f"{name:>15}" for name in QUANTITIES) + "     peak MB")
    for size in [
        (134, 500, 1),
        (134, 500, 5),
        (500, 500, 1),
        (30, 10_000, 3),
        (12, 90, 4, 0.1),
        (134, 500, 1, 0.01),
        (134, 500, 3, 0.01),
    ]:
        outcomes, seconds = board(*size), []
        for quantity in QUANTITIES:
            start = time.perf_counter()
            getattr(frequentist, quantity)(outcomes, draws=2000)
            seconds.append(time.perf_counter() - start)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{size!s:22}  " + "  ".join(f"{taken:15.3f}" for taken in seconds) + f"  {peak:10.0f}")


if __name__ == "__main__":
    main()
