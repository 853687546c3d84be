"""How often the best of the 134 disagree, and what models predict of it with families and without. Run on request.

    python tests/benchmarks/discordance.py [FIT ...]

FIT is any of `FITS`, all of them without: the crossed model, that with normal task effects, with discrimination, with
residuals shared by configs of one half-year (five levels) or of one model family by the entry's name (five). Of each
fit it prints how it went, omega, and for the ten, twenty and forty best the observed and the predicted discordance on
these tasks, the 95% range of drawn boards and the p-value (`evalbayes.check.discordance`); for the ten also the chance
on new tasks, with its posterior interval, where no residuals are shared. The board is looked for as the tests do.
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
from evalbayes.cells import ability, discrimination, thinned
from evalbayes.posterior.draws import population_nodes

SHARED = Path(os.environ.get("EVALBAYES_SHARED") or Path(__file__).parents[3] / "shared")
FITS: dict[str, dict[str, Any]] = {
    "crossed": {},
    "normal": {"task_density": "normal"},
    "discrimination": {"model": "crossed_discrimination"},
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
    slope = np.broadcast_to(discrimination(flat), (len(at), flat.sizes["config"]))
    slope = slope[:, flat.get_index("config").get_indexer(configs)]
    p = special.expit(at[:, :, None] + slope[:, :, None] * position[:, None])
    total, count = p.sum(axis=1), p.shape[1]
    # Over pairs of p_a + p_b - 2 p_a p_b, from the sums of p and of its square.
    pairs = ((count - 1) * total - (total**2 - (p**2).sum(axis=1))) / (count * (count - 1) / 2)
    chance = (pairs * weight).sum(axis=1)
    return float(chance.mean()), np.quantile(chance, [0.025, 0.975])


def report(name: str, board: xr.Dataset) -> None:
    """Fit one model and print what the check says."""
    started, cpu = time.perf_counter(), time.process_time()
    fit = eb.fit(board, method="laplace", **{"model": "crossed"} | FITS[name])
    seen, took, used = fit.attrs, time.perf_counter() - started, time.process_time() - cpu
    print(f"{name}: k-hat {seen['k_hat']:.2f}, {seen['weight_ess']:.0f} effective of {seen['proposals']}, ", end="")
    print(f"{seen['grid_nodes']} nodes, {took:.0f} s ({used:.0f} s of processor)", flush=True)
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
