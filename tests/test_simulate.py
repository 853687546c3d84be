"""Simulated boards have the moments that their truth says.

Random checks share one false-alarm rate: each compares a z score with 5, which a right simulator exceeds
once in 1.7 million tries; seeds are fixed, so a pass stays a pass.
"""

import numpy as np
import pytest
from scipy import integrate, stats

from evalbayes import OutcomesError, outcomes, simulate

Z = 5


def z(sample: np.ndarray, expected: float) -> float:
    return float(abs(sample.mean() - expected) / (sample.std(ddof=1) / np.sqrt(sample.size)))


@pytest.mark.parametrize("density", ["normal", "mixture"])
def test_task_effects_have_mean_0_and_the_sd_asked_for(density):
    effects = simulate.board(1, 200_000, task_sd=2.0, task_density=density).true_task_effect.values
    assert z(effects, 0) < Z
    assert z(effects**2, 4.0) < Z


def test_the_mixture_has_two_humps_and_the_normal_one():
    def humps(density: str) -> int:
        weight = simulate._quadrature(density)[1]
        return int(((np.diff(weight)[:-1] > 0) & (np.diff(weight)[1:] <= 0)).sum())

    assert (humps("normal"), humps("mixture")) == (1, 2)


def test_drawn_mixture_effects_follow_the_density_that_is_integrated():
    effects = simulate.board(1, 50_000, task_sd=1.0, task_density="mixture").true_task_effect.values
    grid, weight = simulate._quadrature("mixture")
    test = stats.kstest(effects, lambda x: np.interp(x, grid, np.cumsum(weight)))
    assert test.pvalue > 2 * stats.norm.sf(Z)


def test_config_effects_sum_to_zero_with_the_sd_of_a_zero_sum_normal():
    effects = np.array([simulate.board(4, 1, config_sd=1.5, seed=s).true_config_effect.values for s in range(500)])
    np.testing.assert_allclose(effects.sum(axis=1), 0, atol=1e-12)
    assert z((effects**2).mean(axis=1), 1.5**2 * (1 - 1 / 4)) < Z


@pytest.mark.parametrize("kappa", [np.inf, 4.0])
def test_the_population_truth_is_the_integral_it_says(kappa):
    board = simulate.board(3, 2, intercept=0.5, task_sd=1.7, kappa=kappa)
    for c, effect in enumerate(board.true_config_effect.values):

        def mean(power: int, effect: float = effect) -> float:
            return integrate.quad(
                lambda t: (1 / (1 + np.exp(-(0.5 + effect + t)))) ** power * stats.norm.pdf(t, scale=1.7), -17, 17
            )[0]

        m, second = mean(1), mean(2)
        v, w, share = second - m**2, m - second, 1 / (1 + kappa)
        np.testing.assert_allclose(board.true_score[c], m, rtol=1e-8)
        np.testing.assert_allclose(board.true_between_variance[c], v + w * share, rtol=1e-7)
        np.testing.assert_allclose(board.true_within_variance[c], w * (1 - share), rtol=1e-7)


@pytest.mark.parametrize(("density", "kappa"), [("normal", np.inf), ("mixture", np.inf), ("mixture", 3.0)])
def test_drawn_scores_and_variances_match_the_population_truth(density, kappa):
    board = simulate.board(3, 40_000, 2, intercept=-0.5, kappa=kappa, task_density=density)
    first, second = np.moveaxis((board.outcome.values == 1).astype(float), -1, 0)
    for c in range(3):
        m = float(board.true_score[c])
        between = float(board.true_between_variance[c])
        assert z((first[c] + second[c]) / 2, m) < Z
        assert z((first[c] - m) * (second[c] - m), between) < Z  # two runs of a cell share its probability only
        np.testing.assert_allclose(between + board.true_within_variance[c], m * (1 - m))


def test_fixed_scores_are_what_more_runs_of_these_tasks_would_give():
    board = simulate.board(2, 50, 20_000, kappa=3.0, seed=4)
    share = (board.successes / board.trials).values
    sd = np.sqrt((share * (1 - share)).sum(axis=1) / 20_000) / 50
    assert (abs(outcomes.observed_score(board) - board.true_fixed_score).values < Z * sd).all()


def test_shares_of_missing_cells_errors_and_ragged_runs():
    board = simulate.board(10, 2000, 4, missing=0.3, errors=0.1, ragged=True)
    states = board.outcome.values
    attempted = (states != -2).any(-1)
    assert z(attempted.astype(float), 0.7) < Z
    assert z((states[states != -2] == -1).astype(float), 0.1) < Z
    attempts = (states != -2).sum(-1)[attempted]
    assert z(attempts.astype(float), 2.5) < Z
    assert set(attempts) == {1, 2, 3, 4}


def test_a_seed_is_a_board_and_more_runs_keep_its_effects():
    board = simulate.board(3, 20, 2, seed=3)
    assert board.identical(simulate.board(3, 20, 2, seed=3))
    assert not board.equals(simulate.board(3, 20, 2, seed=4))
    more = simulate.board(3, 20, 7, seed=3, missing=0.5)
    for name in ("true_config_effect", "true_task_effect", "true_score", "true_fixed_score"):
        assert more[name].equals(board[name])


@pytest.mark.parametrize(("configs", "tasks", "runs"), [(1, 1, 1), (1, 5, 2), (2, 1, 1), (1000, 3, 1)])
def test_every_size_is_a_valid_board(configs, tasks, runs):
    board = simulate.board(configs, tasks, runs, kappa=0.01, config_sd=30, task_sd=30)
    assert outcomes.validate(board) is board
    assert board.config.values.tolist() == sorted(board.config.values.tolist())


def test_every_cell_missing_is_a_board_without_a_score():
    assert np.isnan(outcomes.observed_score(simulate.board(2, 3, missing=1.0))).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"configs": 0},
        {"runs": 0},
        {"missing": 1.5},
        {"errors": -0.1},
        {"task_sd": -1},
        {"config_sd": np.inf},
        {"kappa": 0},
        {"kappa": [1.0, 2.0]},
        {"kappa": np.nan},
        {"task_density": "cauchy"},
        {"intercept": np.nan},
    ],
)
def test_arguments_that_make_no_board_are_refused(wrong):
    with pytest.raises(OutcomesError, match=r"simulate\.board"):
        simulate.board(**wrong)
