"""Situations from practice about repeated runs, each with the value that is right."""

import numpy as np
import pytest

from boards import counted
from evalbayes import components, design, frequentist, posterior, simulate
from evalbayes.textbook import quantile


def test_three_standard_errors_for_three_targets():
    """Case 29, beyond the score's: ICC 2/3; what is left as runs grow, 0.2722; two runs differ by 0.5334 at most."""
    board = counted([4, 2, 0], 4)
    assert frequentist.icc(board, draws=50).estimate.item() == pytest.approx(2 / 3, abs=1e-12)
    between = frequentist.between_variance(board, draws=50).estimate.item()
    assert round(float(np.sqrt(between / 3)), 4) == 0.2722
    within = frequentist.within_variance(board, draws=50).estimate.item()
    assert round(quantile(0.95) * float(np.sqrt(2 * within / 3)), 4) == 0.5334


def test_a_mean_of_standard_errors_is_no_standard_error_of_a_mean():
    """Case 30: thirty tasks with a standard error of 0.1 each: 0.01826 for these tasks, not 0.1."""
    board = counted([13] * 30, 26)
    result = frequentist.score(board, tasks="fixed", method="fixed_normal")
    assert round(result.se.item(), 5) == 0.01826
    assert result.tasks.item() == "fixed"


def test_icc_at_its_edges():
    """Case 43: -1 raw and 0 cut; 1 where tasks differ and runs never do; unknown, not 0, where nothing varies."""
    board = counted(np.array([[1, 1, 1], [0, 2, 2], [2, 2, 2]]), 2)
    result = frequentist.icc(board, draws=200)
    assert result.raw.values[:2].tolist() == [-1.0, 1.0]
    assert result.estimate.values[:2].tolist() == [0.0, 1.0]
    assert np.isnan(result.estimate[2])
    assert "no variance to share out" in result.reason.values[2]


@pytest.mark.parametrize(
    ("mu", "sigma", "latent", "probability"),
    [(0, 1, 0.2331, 0.1735), (-4, 1, 0.2331, 0.0372), (-6, 1, 0.2331, 0.0066), (0, 10, 0.9681, 0.8430)],
)
def test_the_icc_is_that_of_the_probability_scale(fabricate, mu, sigma, latent, probability):
    """Case 45: sigma^2 / (sigma^2 + pi^2 / 3) is another number; this one is by integration, and within 0 and 1."""
    assert sigma**2 / (sigma**2 + np.pi**2 / 3) == pytest.approx(latent, abs=5e-5)
    fit = fabricate(np.ones((2, 8), int), np.full((2, 8), 2))
    draws = fit["posterior"].to_dataset()
    set_to = {"intercept": mu, "config_effect": 0.0, "task_weight": 1.0, "task_mean": 0.0, "task_scale": sigma}
    draws = draws.assign({name: draws[name] * 0 + value for name, value in set_to.items()})
    fit["posterior"] = draws.isel(component=[0])
    assert posterior.icc(fit).estimate.values == pytest.approx(probability, abs=5e-5)
    board = simulate.board(configs=1, tasks=2, intercept=mu, config_sd=0, task_sd=sigma)
    truth = board.true_between_variance / (board.true_between_variance + board.true_within_variance)
    assert truth.item() == pytest.approx(probability, abs=5e-5)


@pytest.mark.parametrize(("icc", "runs", "ratio", "floor"), [(0.7061, 3, 0.8967, 0.8403), (0.405, 4, 0.7441, 0.6364)])
def test_what_repeats_can_buy(icc, runs, ratio, floor):
    """Case 46: the standard error over that of one run, and its limit, the root of the ICC."""
    r = 1 / icc - 1
    assert np.sqrt(components.design_effect(r, runs) / runs) == pytest.approx(ratio, abs=5e-5)
    assert np.sqrt(1 / components.ceiling(r)) == pytest.approx(floor, abs=5e-5)


def test_equal_costs_want_one_run():
    """Case 46 with case 29: R* = 0.707, so one run."""
    best = frequentist.optimal_runs(counted([4, 2, 0], 4), cost_ratio=1, draws=50)
    assert round(best.estimate.item(), 3) == 0.707
    assert best.whole.item() == 1


def test_where_only_runs_cost_one_run_is_best():
    """The generation-only case: R runs for the price of R tasks widen an interval by the design factor."""
    board = counted(np.random.default_rng(0).binomial(5, np.linspace(0.1, 0.9, 30)), 5)
    assert frequentist.optimal_runs(board, cost_ratio=0, draws=50).whole.item() == 1
    curve = design.cost_curve(board, cost_ratio=0, runs=[1, 2, 5])
    for runs in (1, 2, 5):
        factor = frequentist.design_factor(board, runs=runs).estimate.item()
        assert curve.estimate.sel(runs=runs).item() == pytest.approx(factor)
