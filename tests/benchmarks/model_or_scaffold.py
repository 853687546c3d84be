"""Is it the model or the scaffold? Variance components of Terminal-Bench 2, by a fit and by moments. Run on request.

    python tests/benchmarks/model_or_scaffold.py

On the board of O9 (83 configs of agents and models x 89 tasks; 30 s to a minute) it prints, on both scales:

    of the variance between configs: model 89% [78, 96], config 6% [3, 12], agent 4% [0, 15] (95% intervals, probability
    scale, future configs on new tasks); model is the largest with probability 1.000

and beside every component its estimate by moments, whose shares are 90, 8 and 2%. The board is looked for as the tests
do.
"""

import os
from pathlib import Path

import evalbayes as eb

SHARED = Path(os.environ.get("EVALBAYES_SHARED") or Path(__file__).parents[3] / "shared")
GROUPS = ("agent", "model")


def main() -> None:
    """Fit, and print."""
    board = eb.read(SHARED / "data" / "terminal_bench_2_counts.csv.gz")
    fit = eb.fit(board, config_groups=GROUPS)
    print(", ".join(f"{name} {fit.attrs[name]}" for name in ("method", "k_hat", "weight_ess", "gate", "seconds")))
    moments = eb.frequentist.variance_components(board, config_groups=GROUPS)
    for scale in ("probability", "latent"):
        found = eb.posterior.variance_components(fit, scale=scale)
        print(found.attrs["sentence"])
        table = found[["estimate", "share"]].reset_coords(drop=True).to_dataframe()
        if scale == "probability":
            table["moments"] = moments["estimate"].to_series()
        print(table.round(4).to_string())


if __name__ == "__main__":
    main()
