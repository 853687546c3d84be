"""Packaged example boards, each with its provenance in ``attrs["provenance"]``."""

from importlib import resources

import numpy as np
import pandas as pd
import xarray as xr

from evalbayes import simulate
from evalbayes.errors import OutcomesError
from evalbayes.schema import assemble

_MARGINS_PUBLISHED = (
    "margins of each config (rate of passes, share of tasks solved in all 5 runs, mean of p (1 - p)) as published in "
    "arXiv 2606.00920v1, table of models; how many tasks were solved 0 to 4 times is inferred within these margins; "
    "which task got which count is simulated and no measurement; which run passed was not published and is not given"
)


def names() -> list[str]:
    """Names of the packaged boards.

    Examples
    --------
    >>> names()
    ['simulated', 'repeated_runs']
    """
    return ["simulated", "repeated_runs"]


def load(name: str) -> xr.Dataset:
    """Load a packaged board by name.

    ``simulated``: 12 configs x 100 tasks x 5 runs drawn by `simulate.board` from the crossed beta-binomial
    model with two humps of tasks, so that every truth is known (see there); nothing is missing.

    ``repeated_runs``: 32 configs (16 models, each under a detailed and a minimal prompt: coords ``model`` and
    ``prompt``) x 100 tasks with 5 runs a cell; GPT-4.1 under the detailed prompt has no run of task-100. The rate of
    passes, the share of tasks solved in all runs and the mean of p (1 - p) of every config are those published in
    arXiv 2606.00920v1. How many tasks were solved 0 to 4 times is inferred within these margins, and which task got
    which count is simulated: use it for questions about repeated runs, not to learn which model is better at what, or
    whether two models differ on the same tasks. Which run passed is not known, so there is no ``outcome``.

    Raises
    ------
    OutcomesError
        If there is no board of that name; lists those there are.

    Examples
    --------
    >>> dict(load("simulated").sizes)
    {'config': 12, 'task': 100, 'run': 5}
    >>> load("repeated_runs").successes.sel(config="o4-mini (minimal)").sum().item()
    428
    """
    if name not in names():
        raise OutcomesError(f"no packaged board {name!r}; those there are: {', '.join(names())}")
    board = _simulated() if name == "simulated" else _repeated_runs()
    return board.assign_attrs(source=f"datasets:{name}")


def _simulated() -> xr.Dataset:
    board = simulate.board(
        12, 100, 5, seed=20, intercept=-0.3, config_sd=0.8, task_sd=2.2, kappa=8.0, task_density="mixture"
    )
    provenance = "drawn by evalbayes.simulate.board, seed 20; no measurement of any real system; public domain"
    return board.assign_attrs(provenance=provenance)


def _repeated_runs() -> xr.Dataset:
    with (resources.files("evalbayes") / "data" / "repeated_runs.csv").open(encoding="utf-8") as file:
        solved = pd.read_csv(file, index_col=["config", "model", "prompt"])
    along = {level: solved.index.get_level_values(level).to_numpy(object) for level in ("config", "model", "prompt")}
    return assemble(
        {
            "successes": solved.fillna(0).to_numpy(np.int64),
            "trials": 5 * solved.notna().to_numpy(np.int64),
            "errors": np.zeros(solved.shape, np.int64),
        },
        configs=list(along["config"]),
        tasks=list(solved.columns),
        policy="missing",
        coords={level: ("config", along[level]) for level in ("model", "prompt")},
        attrs={
            "reader": "datasets",
            "score_rule": "runs that passed, of 5; margins published, cells simulated",
            "provenance": _MARGINS_PUBLISHED,
        },
    )
