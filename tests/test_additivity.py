"""Dispersion of repeated cells: one where cells are additive, the beta-binomial's own factor where they are not."""

import numpy as np
import pytest
import xarray as xr

from evalbayes import simulate
from evalbayes.check import additivity


def truth(board: xr.Dataset) -> xr.Dataset:
    """A posterior that knows the truth a simulated board carries."""
    both = ("chain", "draw")
    return xr.Dataset(
        {
            "intercept": (both, np.full((1, 2), board.attrs["true_intercept"])),
            "config_effect": ((*both, "config"), np.tile(board["true_config_effect"].values, (1, 2, 1))),
            "task_effect": ((*both, "task"), np.tile(board["true_task_effect"].values, (1, 2, 1))),
        },
        coords={"config": board["config"].values, "task": board["task"].values},
    )


def test_additive_cells_have_a_dispersion_of_one():
    board = simulate.board(20, 200, 5, seed=4)
    seen = additivity(truth(board), board)
    print(f"additive: dispersion {seen['dispersion']:.3f}, limit {seen['dispersion_limit']:.2f}")
    # 4,000 cells, a standard error of about 0.03: four of them.
    assert seen["dispersion"] == pytest.approx(1, abs=0.12)
    assert seen["dispersion"] <= seen["dispersion_limit"]


def test_interaction_shows_as_the_beta_binomials_variance_factor():
    kappa, runs = 4.0, 5
    board = simulate.board(20, 200, runs, seed=5, kappa=kappa)
    seen = additivity(truth(board), board)
    expected = 1 + (runs - 1) / (kappa + 1)
    print(f"kappa {kappa}: dispersion {seen['dispersion']:.3f}, expected {expected:.3f}")
    assert seen["dispersion"] == pytest.approx(expected, abs=0.25)
    assert seen["dispersion"] > seen["dispersion_limit"]


def test_one_run_per_cell_cannot_tell():
    board = simulate.board(5, 20, 1, seed=6)
    assert additivity(truth(board), board) == {}
