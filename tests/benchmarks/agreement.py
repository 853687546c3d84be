"""Long runs of laplace and NUTS on one board, compared moment by moment: run on request, a few minutes.

    python tests/benchmarks/agreement.py [configs tasks runs]

Prints, for every variable of the posterior, how far means and standard deviations of the two are apart, in Monte Carlo
standard errors and in posterior standard deviations.
"""

import sys

import arviz_stats as azs
import numpy as np
import xarray as xr

import evalbayes as eb

LAPLACE_DRAWS, NUTS_DRAWS = 16_000, 24_000


def moments(fit: xr.DataTree, name: str) -> list[tuple[str, xr.DataArray, xr.DataArray]]:
    """Mean and sd of a variable with their Monte Carlo standard errors."""
    x = fit["posterior"][name]
    mean, sd = x.mean(("chain", "draw")), x.std(("chain", "draw"))
    if "ess_bulk" in fit.attrs:
        return [("mean", mean, azs.mcse(x, method="mean")), ("sd", sd, azs.mcse(x, method="sd"))]
    n = 1 / (1 / fit.attrs["weight_ess"] + 1 / fit.attrs["draws"])
    kurtosis = ((x - mean) ** 4).mean(("chain", "draw")) / sd**4
    return [("mean", mean, sd / np.sqrt(n)), ("sd", sd, sd * np.sqrt((kurtosis - 1) / (4 * n)))]


def main(configs: int = 6, tasks: int = 40, runs: int = 3) -> None:
    """Fit twice and print a row a moment."""
    board = eb.simulate.board(configs, tasks, runs, seed=11)
    mine = eb.fit(board, method="laplace", draws=LAPLACE_DRAWS, seed=1)
    theirs = eb.fit(board, method="latent", draws=NUTS_DRAWS, seed=1)
    print({key: mine.attrs[key] for key in ("k_hat", "weight_ess", "proposals", "seconds")})
    print({key: theirs.attrs[key] for key in ("r_hat", "ess_bulk", "divergences", "seconds")})
    for name in theirs["posterior"].data_vars:
        pairs = zip(moments(mine, str(name)), moments(theirs, str(name)), strict=True)
        for (moment, a, a_mcse), (_, b, b_mcse) in pairs:
            z = abs(a - b) / np.sqrt(a_mcse**2 + b_mcse**2)
            share = abs(a - b) / theirs["posterior"][name].std(("chain", "draw"))
            print(
                f"{name:16} {moment:4} of {z.size:3}: at most {float(z.max()):5.2f} MCSE, {float(share.max()):.4f} sd"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
