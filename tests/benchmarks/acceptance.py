"""How often the fast method is accepted: 20 named boards, real and simulated, each fitted by laplace.

    python tests/benchmarks/acceptance.py > tests/benchmarks/acceptance.csv

One row a board, with the model that the board gets. The real boards are looked for as the tests do.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import xarray as xr

from evalbayes import SamplingError, datasets, fit, read, simulate
from evalbayes.outcomes import from_counts

SHARED = Path(os.environ.get("EVALBAYES_SHARED") or Path(__file__).parents[3] / "shared")
FILES = {
    "SWE-bench Verified, 134 x 500": "swebench_verified_134.csv.gz",
    "Terminal-Bench 2, 83 x 89": "terminal_bench_2_counts.csv.gz",
    "METR runs, 11 x 83": "metr_all_runs.csv.gz",
    "tau-bench airline": "tau_bench_airline.csv",
}


def boards() -> Iterator[tuple[str, Callable[[], xr.Dataset]]]:
    """Name every board, with the function that makes it."""
    for name, file in FILES.items():
        yield name, lambda file=file: read(SHARED / "data" / file)
    swe = SHARED / "data" / "swebench_verified_134.csv.gz"
    yield "SWE-bench Verified, ten best", lambda: _ten_best(read(swe))
    yield "SWE-bench Verified, every tenth", lambda: read(swe).isel(config=slice(None, None, 10))
    for name in datasets.names():
        yield f"packaged: {name}", lambda name=name: datasets.load(name)
    yield "one config of repeated_runs", lambda: datasets.load("repeated_runs").isel(config=[4])
    board = simulate.board
    yield "additive cells, 20 x 100 x 5", lambda: board(20, 100, 5, seed=1)
    yield "kappa 4, 20 x 100 x 5", lambda: board(20, 100, 5, seed=1, kappa=4.0)
    yield "kappa 1, 6 x 40 x 10", lambda: board(6, 40, 10, seed=1, kappa=1.0)
    yield "kappa from 1 to 32, 6 x 200 x 4", lambda: board(6, 200, 4, seed=2, kappa=list(2.0 ** np.arange(6)))
    yield "small, 3 x 12 x 2", lambda: board(3, 12, 2, seed=1)
    yield "equal configs, 8 x 60 x 3", lambda: board(8, 60, 3, seed=3, config_sd=0.0, kappa=6.0)
    yield "equal tasks, 8 x 60 x 3", lambda: board(8, 60, 3, seed=4, task_sd=0.0, kappa=6.0)
    yield "ragged with holes, 15 x 80", lambda: board(15, 80, 6, seed=5, kappa=5.0, ragged=True, missing=0.2)
    yield "two humps, 30 x 300 x 1", lambda: board(30, 300, 1, seed=6, task_density="mixture")
    yield "two humps, 30 x 300 x 3", lambda: board(30, 300, 3, seed=7, kappa=3.0, task_density="mixture")
    yield "one passes and one fails all, 3 x 5 x 5", _separated


def _ten_best(board: xr.Dataset) -> xr.Dataset:
    order = np.argsort(-board["successes"].sum("task").values)
    return board.isel(config=order[:10])


def _separated() -> xr.Dataset:
    """Case 52: 0 of 25, 12 of 25 and 25 of 25, five runs a task."""
    return from_counts(
        [[0] * 5, [2, 3, 2, 3, 2], [5] * 5], np.full((3, 5), 5), configs=["a", "b", "c"], tasks=list("12345")
    )


def main() -> None:
    """Fit every board and print the table, with the share accepted last."""
    print("board,model,accepted,k_hat,weight_ess,seconds,why")
    accepted = []
    for name, make in boards():
        board, started = make(), time.perf_counter()
        try:
            attrs = fit(board, method="laplace").attrs
            row = [attrs["model"], "yes", f"{attrs['k_hat']:.2f}", f"{attrs['weight_ess']:.0f}"]
            why = ""
        except SamplingError as error:
            row, why = ["", "no", "", ""], str(error).replace(",", ";")
        accepted.append(not why)
        print(f'"{name}",{",".join(row)},{time.perf_counter() - started:.1f},{why}', flush=True)
    print(f"accepted {sum(accepted)} of {len(accepted)}", file=sys.stderr)


if __name__ == "__main__":
    main()
