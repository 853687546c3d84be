"""Boards for tests, from arrays: c0, c1, ... on t000, t001, ..."""

import itertools
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.outcomes import from_counts, from_matrix
from evalbayes.schema import ERROR, FAIL, PASS, assemble

HOSTILE = [
    "<script>alert(1)</script>",
    "quoted \"double\" and 'single' & more",
    "</style><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "模型-α 🚀",
    "نموذج عربي",
    "x" * 300,
]
"""Names that a page has to show as they are."""


def names_of(configs: int, tasks: int) -> dict[str, list[str]]:
    """Return names for so many configs and tasks."""
    return {"configs": [f"c{i}" for i in range(configs)], "tasks": [f"t{i:03}" for i in range(tasks)]}


def counted(successes: Any, trials: Any) -> xr.Dataset:
    """Return a board of counts (config, task); a single row, or a single number of trials, will do."""
    successes, trials = np.broadcast_arrays(np.atleast_2d(successes), np.atleast_2d(trials))
    return from_counts(successes, trials, **names_of(*trials.shape))


def recorded(states: Any) -> xr.Dataset:
    """Return a board of states (config, task, run)."""
    states = np.asarray(states, np.int8)
    counts = {"successes": states == PASS, "trials": states >= FAIL, "errors": states == ERROR}
    runs = [str(i + 1) for i in range(states.shape[2])]
    totals = {name: which.sum(-1) for name, which in counts.items()}
    return assemble(totals, **names_of(*states.shape[:2]), runs=runs, outcome=states, policy="missing")


def orders(states: np.ndarray) -> list[np.ndarray]:
    """Every way to permute the scored outcomes of each task among its scored runs, once each."""
    rows = []
    for row in states:
        scored = np.flatnonzero(row >= FAIL)
        options = []
        for passes in itertools.combinations(scored, int((row == PASS).sum())):
            one = row.copy()
            one[scored] = FAIL
            one[list(passes)] = PASS
            options.append(one)
        rows.append(options)
    return [np.array(choice) for choice in itertools.product(*rows)]


def board_with(names: list[str], tasks: int = 40, seed: int = 1) -> xr.Dataset:
    """Return a board of single runs, the first config the best."""
    rng = np.random.default_rng(seed)
    rates = np.linspace(0.9, 0.1, len(names))[:, None]
    matrix = (rng.random((len(names), tasks)) < rates).astype(float)
    return from_matrix(matrix, configs=names, tasks=[f"t{i}" for i in range(tasks)], source="made.csv")
