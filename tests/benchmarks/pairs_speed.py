"""Time near_tie with all four variances on boards of growing size: python tests/benchmarks/pairs_speed.py.

Scores of 500 tasks, for up to 100,000 configs: under 2 s for all four, with memory in proportion to the configs. The
last line is a whole board of 100,000 x 500 (1.2 GB), scored anew for each of the four: under 2 s as well.
"""

import time
import tracemalloc

import numpy as np
import xarray as xr

from evalbayes import pairs

METHODS = ("pair_iid", "hoeffding", "dyadic", "jackknife")


def scores(configs: int) -> xr.DataArray:
    """Solved tasks of 500, with labels."""
    rng = np.random.default_rng(0)
    names = [f"c{i:06}" for i in range(configs)]
    return xr.DataArray(rng.binomial(500, rng.beta(2, 2, configs)), dims="config", coords={"config": names})


def board(configs: int, tasks: int = 500) -> xr.Dataset:
    """Single runs, made without the checks of `evalbayes.outcomes`, which take longer than what is timed."""
    rng = np.random.default_rng(0)
    rate = rng.beta(2, 2, (configs, 1)).astype(np.float32)
    passed = (rng.random((configs, tasks), dtype=np.float32) < rate).astype(np.int64)
    names = {"config": [f"c{i:06}" for i in range(configs)], "task": [f"t{i:03}" for i in range(tasks)]}
    cell = ("config", "task")
    counts = {"successes": passed, "trials": np.ones_like(passed), "errors": np.zeros_like(passed)}
    return xr.Dataset({name: (cell, count) for name, count in counts.items()}, coords=names)


def main() -> None:
    """Print seconds for the four variances together, the peak memory of one, and a config bootstrap's seconds."""
    pairs.near_tie(scores(10), 0.05, configs="sampled", out_of=500)  # pays for the imports
    print(" configs  four variances, s  peak, MB  bytes a config  1 bootstrap of 200 draws, s")
    for configs in (1_000, 10_000, 25_000, 50_000, 100_000):
        solved = scores(configs)
        start = time.perf_counter()
        for method in METHODS:
            pairs.near_tie(solved, 0.05, configs="sampled", method=method, out_of=500)
        four = time.perf_counter() - start
        tracemalloc.start()
        pairs.near_tie(solved, 0.05, configs="sampled", out_of=500)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        start = time.perf_counter()
        pairs.near_tie(solved, 0.05, configs="sampled", method="config_bootstrap", out_of=500, draws=200)
        drawn = time.perf_counter() - start
        print(f"{configs:8,}  {four:17.2f}  {peak / 2**20:8.1f}  {peak / configs:14.0f}  {drawn:27.2f}")
    outcomes = board(100_000)
    start, used = time.perf_counter(), time.process_time()
    for method in METHODS:
        pairs.near_tie(outcomes, 0.05, configs="sampled", method=method)
    four, used = time.perf_counter() - start, time.process_time() - used
    tracemalloc.start()
    pairs.near_tie(outcomes, 0.05, configs="sampled")
    peak = tracemalloc.get_traced_memory()[1]
    print(
        f"board of 100,000 x 500: four variances {four:.2f} s ({used:.2f} s of a processor), "
        f"peak beyond the board {peak / 2**20:.1f} MB"
    )


if __name__ == "__main__":
    main()
