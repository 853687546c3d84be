"""The shared bootstrap: count weights are explicit resampling, exactly or in distribution."""

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from evalbayes.frequentist import bootstrap
from evalbayes.outcomes import from_counts, from_matrix


def ragged_board(seed=0, configs=6, tasks=11):
    rng = np.random.default_rng(seed)
    trials = rng.integers(0, 5, size=(configs, tasks))
    names = {"configs": [f"c{i}" for i in range(configs)], "tasks": [f"t{i:02}" for i in range(tasks)]}
    return from_counts(rng.binomial(trials, 0.6), trials, **names)


def explicit_scores(outcomes, drawn):
    """Mean of task means on a board that is really built from the drawn tasks."""
    resampled = outcomes.isel(task=drawn)
    means = (resampled.successes / resampled.trials).values
    return np.array([np.nanmean(row) if np.isfinite(row).any() else np.nan for row in means])


@pytest.mark.parametrize("seed", range(3))
def test_count_weights_equal_explicit_resampling_on_the_same_task_draws(seed):
    board = ragged_board(seed)
    drawn = next(bootstrap.task_draws(board.sizes["task"], 50, seed))
    weighted = bootstrap.scores(bootstrap.cells(board), bootstrap.task_counts(drawn))
    explicit = np.stack([explicit_scores(board, row) for row in drawn])
    np.testing.assert_allclose(weighted, explicit, rtol=0, atol=1e-12)


def test_score_draws_use_those_task_draws():
    board = ragged_board(4)
    drawn = next(bootstrap.task_draws(board.sizes["task"], 20, 7))
    table = bootstrap.score_draws(board, "one_level_bootstrap", draws=20, seed=7)
    explicit = np.stack([explicit_scores(board, row) for row in drawn])
    np.testing.assert_allclose(table.values, explicit, rtol=0, atol=1e-12)


def exact_two_level(runs):
    """Distribution of the score over every equally likely two-level resample of one config's runs."""
    tasks, size = len(runs), len(runs[0])
    found = {}
    for drawn in product(range(tasks), repeat=tasks):
        for picks in product(product(range(size), repeat=size), repeat=tasks):
            solved = sum(runs[task][run] for task, pick in zip(drawn, picks, strict=True) for run in pick)
            found[solved / (tasks * size)] = found.get(solved / (tasks * size), 0) + 1
    total = sum(found.values())
    return {value: count / total for value, count in found.items()}


@pytest.mark.parametrize("runs", [[(1, 0), (1, 1)], [(1, 0), (1, 0)], [(1, 0, 0), (1, 1, 0)]])
def test_two_level_draws_have_the_distribution_of_explicit_two_level_resampling(runs):
    """Every resample is enumerated; with 40,000 draws a frequency is off by 4.5 standard errors once in 10^5."""
    exact = exact_two_level(runs)
    board = from_counts([[sum(r) for r in runs]], [[len(r) for r in runs]], configs=["a"], tasks=["t", "u"])
    table = bootstrap.score_draws(board, "two_level_bootstrap", draws=40_000, seed=1).values[:, 0]
    values, counts = np.unique(table, return_counts=True)
    assert set(values) <= set(exact)
    for value, share in zip(values, counts / 40_000, strict=True):
        assert abs(share - exact[value]) < 4.5 * np.sqrt(exact[value] * (1 - exact[value]) / 40_000)


def test_fixed_bootstrap_resamples_runs_only():
    board = from_counts([[5, 0, 2]], [[5, 5, 5]], configs=["a"], tasks=["t", "u", "v"])
    table = bootstrap.score_draws(board, "fixed_bootstrap", draws=20_000, seed=0).values[:, 0]
    # Only the third task varies: Binomial(5, 0.4) / 15 above 1/3. The sd of an sd is about sd / sqrt(2 n).
    sd = np.sqrt(5 * 0.4 * 0.6) / 15
    assert table.min() >= 1 / 3
    assert abs(table.std() - sd) < 4 * sd / np.sqrt(40_000)


def test_multiplicity_counts():
    """Case 32: means 1, 0, 0 and the draw task-1, task-1, task-2 give 2/3; a set of tasks would give 1/2."""
    board = bootstrap.cells(from_matrix([[1, 0, 0]], configs=["a"], tasks=["task-1", "task-2", "task-3"]))
    counts = bootstrap.task_counts(np.array([[0, 0, 1]]))
    assert bootstrap.scores(board, counts).tolist() == [[2 / 3]]


def test_equal_fractions_are_equal_floats_whatever_the_number_of_runs():
    names = {"configs": ["a", "b", "c"], "tasks": ["t", "u", "v"]}
    board = from_counts([[1, 2, 0], [2, 6, 0], [3, 0, 10]], [[2, 3, 7], [4, 9, 1], [6, 11, 15]], **names)
    assert len(set(bootstrap.observed(bootstrap.cells(board)).tolist())) == 1


def test_ties_survive_denominators_too_large_for_integers():
    """The least common denominator of 1 to 96 runs is above 2^53: scores are then rounded to 12 digits."""
    rng = np.random.default_rng(0)
    trials = np.tile(np.arange(1, 97), (2, 1))
    solved = np.tile(rng.binomial(trials[0], 0.5), (2, 1))
    order = rng.permutation(96)
    board = from_counts(solved, trials, configs=["a", "b"], tasks=[f"t{i:02}" for i in range(96)])
    cells = bootstrap.cells(board)
    assert not cells.exact
    shuffled = bootstrap.cells(board.isel(task=order).assign_coords(task=board.task.values))
    assert bootstrap.observed(cells).tolist() == bootstrap.observed(shuffled).tolist()


@pytest.mark.parametrize("method", bootstrap.TASK_NOISE + bootstrap.RUN_NOISE)
def test_blocks_do_not_change_the_draws(method, monkeypatch):
    board = ragged_board(5)
    whole = bootstrap.score_draws(board, method, draws=60, seed=3)
    monkeypatch.setattr(bootstrap, "BLOCK", 7 * board.sizes["task"])
    assert bootstrap.score_draws(board, method, draws=60, seed=3).identical(whole)


def test_a_config_draws_the_same_in_any_company():
    board = ragged_board(6)
    both = bootstrap.score_draws(board, "two_level_bootstrap", draws=30, seed=0)
    alone = bootstrap.score_draws(board.isel(config=[2]), "two_level_bootstrap", draws=30, seed=0)
    np.testing.assert_array_equal(both.values[:, 2], alone.values[:, 0])


def test_runs_of_copies_are_drawn_apart():
    """Two configs with the same counts ran apart: their run noise must not be shared, or they would always tie."""
    board = from_counts([[2] * 20] * 2, [[4] * 20] * 2, configs=["a", "b"], tasks=[f"t{i:02}" for i in range(20)])
    a, b = bootstrap.score_draws(board, "two_level_bootstrap", draws=2000, seed=0).values.T
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(2000)


def test_the_number_of_threads_changes_no_digit():
    """Sums are of integers, exact in any order; one and two BLAS threads would sum in different orders."""
    program = (
        "import numpy as np; from evalbayes import frequentist, outcomes; rng = np.random.default_rng(0)\n"
        "n = rng.integers(1, 6, size=(40, 300)); k = rng.binomial(n, 0.5)\n"
        "b = outcomes.from_counts(k, n, configs=[f'c{i}' for i in range(40)], tasks=[f't{i}' for i in range(300)])\n"
        "print([getattr(frequentist, q)(b).to_dict() for q in ('score', 'rank', 'win_probability')])"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert len(found[0]) > 10_000
    assert found[0] == found[1]
