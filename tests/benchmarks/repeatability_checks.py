"""Which statistics of repeated runs the crossed models pass and fail. Run on request, a minute or two.

    python tests/benchmarks/repeatability_checks.py [BOARD]
    python tests/benchmarks/repeatability_checks.py true [BOARDS]

BOARD is a log or the name of a packaged board; Terminal-Bench 2, looked for as the tests do, without it. Prints, for
the binomial and the beta-binomial model, the table of pooled statistics, the verdict, and what the check took; then
which statistics neither passes. With ``true``, fits of the beta-binomial model to BOARDS boards (40) drawn from it,
8 x 60 x 5 with kappa 4: how many fail each statistic, which is the rule's false alarm rate, and the least p-values.
"""

import os
import sys
import time
from pathlib import Path

import xarray as xr
from scipy.stats import binomtest

from evalbayes import SamplingError, fit, simulate
from evalbayes.check import repeatability
from evalbayes.report import open_board

SHARED = Path(os.environ.get("EVALBAYES_SHARED") or Path(__file__).parents[3] / "shared")
MODELS = ("crossed", "crossed_beta_binomial")
COLUMNS = ("pooled_observed", "pooled_predicted", "pooled_lower", "pooled_upper", "pooled_p_value")
BY_CONFIG = ("outside", "expected_outside", "scatter", "scatter_p_value", "result")


def judged(result: xr.Dataset) -> xr.Dataset:
    """Leave the bars of the histogram out."""
    return result.isel(statistic=(result["about"] != "bars").values)


def compare(source: str) -> None:
    """Fit both models to one board and print what the checks say of each."""
    board, failed = open_board(source), []
    for model in MODELS:
        fitted = fit(board, model, method="laplace")
        started = time.perf_counter()
        result = repeatability(fitted)
        print(f"\n{model}: {result.attrs['boards']} boards in {time.perf_counter() - started:.1f} s")
        table = result[[*COLUMNS, *BY_CONFIG]].to_dataframe().drop(columns=["about", "meaning"])
        print(table.rename(columns=lambda name: name.removeprefix("pooled_")).round(4).to_string())
        print(result.attrs["verdict"])
        names = judged(result)["statistic"].values[(judged(result)["result"] == "failed").values]
        failed.append({str(name) for name in names})
    print(f"\nneither passes: {', '.join(sorted(set.intersection(*failed))) or 'none'}")


def false_alarms(boards: int) -> None:
    """Fit the true model to boards drawn from it and print how often it fails."""
    results = []
    for seed in range(boards):
        board = simulate.board(8, 60, 5, seed=100 + seed, kappa=4.0)
        try:
            fitted = fit(board, "crossed_beta_binomial", method="laplace", draws=1000)
        except SamplingError as refused:
            print(f"seed {100 + seed} left out: {refused}", file=sys.stderr)
            continue
        results.append(judged(repeatability(fitted)))
    every = xr.concat(results, "board", coords="minimal", compat="override", combine_attrs="drop", join="override")
    failed = every["result"] == "failed"
    table = every[["pooled_p_value", "scatter_p_value"]].min("board").assign(failed=failed.sum("board"))
    print(table.to_dataframe().drop(columns=["about", "meaning"]).to_string())
    alarms, fits = int(failed.any("statistic").sum()), len(results)
    most = binomtest(alarms, fits, alternative="less").proportion_ci().high
    print(f"{alarms} of {fits} fits of a true model fail any statistic: at most {most:.1%} do, at 95% confidence")


def main(source: str = str(SHARED / "data" / "terminal_bench_2_counts.csv.gz"), boards: str = "40") -> None:
    """Compare on one board, or count false alarms."""
    false_alarms(int(boards)) if source == "true" else compare(source)


if __name__ == "__main__":
    main(*sys.argv[1:])
