"""How often the best of the 134 disagree, and what models predict of it with families and without. Run on request.

    python tests/benchmarks/discordance.py [FIT ...]

FIT is any of `FITS`, all of them without: the crossed model, that with normal task effects, and with residuals shared
by configs of one half-year (five levels) or of one model family by the entry's name (five). Of each fit it prints how
it went, omega, and for the ten, twenty and forty best the observed and the predicted discordance on these tasks, the
95% range of drawn boards and the p-value (`evalbayes.check.discordance`); for the ten also the chance on new tasks,
with its posterior interval, where no residuals are shared. The board is looked for as the tests do.

It printed, on two cores that had much else to do::

    crossed: k-hat 0.18, 1122 effective of 2048 draws, 289 nodes, 73 s (19 s of processor)
      10 best: 0.1185 observed, 0.1305 predicted (0.1204 to 0.1407), p 0.035
        on new tasks 0.1307 (0.1160 to 0.1455)
      20 best: 0.1233 observed, 0.1397 predicted (0.1321 to 0.1463), p 0.005
      40 best: 0.1386 observed, 0.1586 predicted (0.1523 to 0.1647), p 0.010
    normal: k-hat 0.19, 1543 effective of 2048 draws, 289 nodes, 42 s (16 s of processor)
      10 best: 0.1185 observed, 0.1337 predicted (0.1235 to 0.1433), p 0.010
        on new tasks 0.1711 (0.1598 to 0.1820)
      20 best: 0.1233 observed, 0.1427 predicted (0.1353 to 0.1495), p 0.005
      40 best: 0.1386 observed, 0.1608 predicted (0.1535 to 0.1661), p 0.010
    half-years: k-hat 0.37, 1882 effective of 4096 draws, 225 nodes, 611 s (192 s of processor)
      omega 0.694, sd 0.028
      10 best: 0.1185 observed, 0.1280 predicted (0.1178 to 0.1383), p 0.080
      20 best: 0.1233 observed, 0.1373 predicted (0.1299 to 0.1444), p 0.005
      40 best: 0.1386 observed, 0.1559 predicted (0.1501 to 0.1610), p 0.010
    families: k-hat 0.41, 1404 effective of 3072 draws, 257 nodes, 393 s (199 s of processor)
      omega 0.432, sd 0.033
      10 best: 0.1185 observed, 0.1306 predicted (0.1214 to 0.1411), p 0.015
      20 best: 0.1233 observed, 0.1399 predicted (0.1322 to 0.1473), p 0.005
      40 best: 0.1386 observed, 0.1588 predicted (0.1527 to 0.1635), p 0.010

Omega is far from 0 either way, and the best disagree less than is predicted either way: half-years account for a fifth
of the excess among the ten best, model families for nothing of it. 0.168, which the design has for the crossed model,
is the chance on new tasks under normal task effects.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy import special

import evalbayes as eb
from evalbayes.cells import ability, thinned
from evalbayes.posterior.draws import population_nodes

SHARED = Path(os.environ.get("EVALBAYES_SHARED") or Path(__file__).parents[3] / "shared")
FITS: dict[str, dict[str, Any]] = {
    "crossed": {},
    "normal": {"task_density": "normal"},
    "half-years": {"interaction_group": "half_year"},
    "families": {"interaction_group": "family"},
}
FAMILIES = ("claude", "gpt", "qwen", "gemini")


def grouped(board: xr.Dataset) -> xr.Dataset:
    """Add each config's half-year, from its date, and the first model family that its name has."""
    half = [date[:4] + ("H1" if date[4:6] < "07" else "H2") for date in board["date"].values]
    family = [next((one for one in FAMILIES if one in name.lower()), "other") for name in board["config"].values]
    return board.assign_coords(half_year=("config", half), family=("config", family))


def on_new_tasks(fit: xr.DataTree, configs: Any) -> tuple[float, Any]:
    """Return the mean chance over pairs that two configs differ on a new task, and its 95% interval."""
    flat = thinned(fit["posterior"].to_dataset(), 400)
    position, weight = population_nodes(flat)
    at = ability(flat).sel(config=configs).values
    p = special.expit(at[:, :, None] + position[:, None])
    total, count = p.sum(axis=1), p.shape[1]
    # Over pairs of p_a + p_b - 2 p_a p_b, from the sums of p and of its square.
    pairs = ((count - 1) * total - (total**2 - (p**2).sum(axis=1))) / (count * (count - 1) / 2)
    chance = (pairs * weight).sum(axis=1)
    return float(chance.mean()), np.quantile(chance, [0.025, 0.975])


def report(name: str, board: xr.Dataset) -> None:
    """Fit one model and print what the check says."""
    started, cpu = time.perf_counter(), time.process_time()
    fit = eb.fit(board, "crossed", method="laplace", **FITS[name])
    seen, took, used = fit.attrs, time.perf_counter() - started, time.process_time() - cpu
    weights = f"k-hat {seen['k_hat']:.2f}, {seen['weight_ess']:.0f} effective of {seen['proposals']} draws"
    print(f"{name}: {weights}, {seen['grid_nodes']} nodes, {took:.0f} s ({used:.0f} s of processor)", flush=True)
    if "interaction_sd" in fit["posterior"]:
        omega = fit["posterior"]["interaction_sd"]
        print(f"  omega {float(omega.mean()):.3f}, sd {float(omega.std()):.3f}")
    for top in (10, 20, 40):
        found = eb.check.discordance(fit, top=top)
        low, high = found["predictive"].values
        print(f"  {top} best: {found['observed']:.4f} observed, {found['predicted']:.4f} predicted ", end="")
        print(f"({low:.4f} to {high:.4f}), p {found['p_value']:.3f}", flush=True)
        if top == 10 and "interaction_sd" not in fit["posterior"]:
            chance, ends = on_new_tasks(fit, found["config"].values)
            print(f"    on new tasks {chance:.4f} ({ends[0]:.4f} to {ends[1]:.4f})", flush=True)


if __name__ == "__main__":
    the_board = grouped(eb.read(SHARED / "data" / "swebench_verified_134.csv.gz"))
    for which in sys.argv[1:] or FITS:
        report(which, the_board)
