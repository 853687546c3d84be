"""Two methods on one board, compared moment by moment: run on request, a few minutes.

    python tests/benchmarks/agreement.py [BOARD [METHOD METHOD [DRAWS DRAWS]]]

BOARD is a log or the name of a packaged board; a simulated one of 6 x 40 x 3 without it. Prints, for every variable of
the posterior, how far means and standard deviations of the two are apart, in Monte Carlo standard errors and in
posterior standard deviations, and how many of them are further apart than four.
"""

import sys

import arviz_stats as azs
import numpy as np
import xarray as xr

import evalbayes as eb
from evalbayes.report import open_board

FAR = 4.0


def moments(fit: xr.DataTree, name: str) -> list[tuple[str, xr.DataArray, xr.DataArray]]:
    """Mean and sd of a variable with their Monte Carlo standard errors."""
    x = fit["posterior"][name]
    mean, sd = x.mean(("chain", "draw")), x.std(("chain", "draw"))
    if "ess_bulk" in fit.attrs:
        return [("mean", mean, azs.mcse(x, method="mean")), ("sd", sd, azs.mcse(x, method="sd"))]
    n = 1 / (1 / fit.attrs["weight_ess"] + 1 / fit.attrs["draws"])
    kurtosis = ((x - mean) ** 4).mean(("chain", "draw")) / sd**4
    return [("mean", mean, sd / np.sqrt(n)), ("sd", sd, sd * np.sqrt((kurtosis - 1) / (4 * n)))]


def compared(mine: xr.DataTree, theirs: xr.DataTree) -> int:
    """Print a row a moment and return how many elements are further apart than `FAR` Monte Carlo standard errors."""
    far = count = 0
    for name in theirs["posterior"].data_vars:
        pairs = zip(moments(mine, str(name)), moments(theirs, str(name)), strict=True)
        for (moment, a, a_mcse), (_, b, b_mcse) in pairs:
            z = (abs(a - b) / np.sqrt(a_mcse**2 + b_mcse**2)).fillna(0)
            share = (abs(a - b) / theirs["posterior"][name].std(("chain", "draw"))).fillna(0)
            far, count = far + int((z > FAR).sum()), count + z.size
            largest = f"at most {float(z.max()):5.2f} MCSE, {float(share.max()):.4f} sd"
            print(f"{name:16} {moment:4} of {z.size:3}: {largest}")
    print(f"{far} of {count} moments are further apart than {FAR:g} MCSE")
    return far


def main(source: str = "", first: str = "laplace", second: str = "latent", *draws: str) -> None:
    """Fit twice, say how each went, and compare."""
    board = open_board(source) if source else eb.simulate.board(6, 40, 3, seed=11)
    fits = []
    for method, count in zip((first, second), map(int, draws or ("16000", "24000")), strict=True):
        made = eb.fit(board, method=method, draws=count, seed=1)
        shown = ("model", "method", "seconds", "k_hat", "weight_ess", "proposals", "r_hat", "ess_bulk", "divergences")
        print({name: made.attrs[name] for name in shown if name in made.attrs}, flush=True)
        fits.append(made)
    sys.exit(compared(*fits) > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
