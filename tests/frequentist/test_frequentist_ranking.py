"""Ranks, top-k and win probabilities: ties, exact enumeration, and invariance."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalbayes.errors import NotIdentifiedError
from evalbayes.frequentist import bootstrap, rank, score, top_k, win_probability
from evalbayes.outcomes import from_counts, from_matrix
from evalbayes.textbook import standing

NAN = float("nan")
CASE_64 = [[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 0, 0]]


def board_of(matrix, configs=None):
    return from_matrix(
        matrix, configs=configs or list("abcdefgh"[: len(matrix)]), tasks=list("stuvwxyz"[: len(matrix[0])])
    )


def exact_top_k(matrix, k):
    """Top-k probabilities over every equally likely draw of tasks, ties split."""
    tasks = len(matrix[0])
    counts = bootstrap.task_counts(np.array(list(product(range(tasks), repeat=tasks))))
    first, tied = standing(bootstrap.scores(bootstrap.cells(board_of(matrix)), counts))
    return (np.clip(k - first + 1, 0, tied) / tied).mean(axis=0)


@pytest.mark.parametrize(("k", "expected"), [(1, [0.4993, 0.4993, 0.0013]), (2, [0.9694, 0.9694, 0.0612])])
def test_top_k_enumerated_and_drawn(k, expected):
    """Case 64: exact over 256 draws; 20,000 draws are within 4 standard errors, 1 in 16,000 for each config."""
    exact = exact_top_k(CASE_64, k)
    assert exact.round(4).tolist() == expected
    drawn = top_k(board_of(CASE_64), k=k, draws=20_000)
    assert drawn.estimate.sum().item() == pytest.approx(k, abs=1e-9)
    assert (abs(drawn.estimate.values - exact) <= 4 * np.sqrt(exact * (1 - exact) / 20_000)).all()


def test_shared_rank_split_top_and_half_a_win():
    """Case 62: 396, 396, 394 of 500: ranks 1, 1, 3, mid-ranks 1.5, 1.5, 3, and half of the first place each."""
    solved = np.zeros((3, 500), int)
    for row, count in enumerate((396, 396, 394)):
        solved[row, :count] = 1
    board = from_matrix(solved, configs=["a", "b", "c"], tasks=[f"t{i:03}" for i in range(500)])
    ranks = rank(board)
    assert ranks.estimate.values.tolist() == [1, 1, 3]
    assert ranks.mid_rank.values.tolist() == [1.5, 1.5, 3]
    first = top_k(board).estimate.values
    assert first[0] == first[1] == pytest.approx(0.5, abs=0.05)
    assert win_probability(board).estimate.values[0, 1] == 0.5


def test_win_rates_with_ties():
    """Case 62: two level and one above them: mean win rates .25, .25, 1."""
    board = board_of([[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]])
    one_draw = bootstrap.observed(bootstrap.cells(board))
    wins = (one_draw[:, None] > one_draw) + 0.5 * (one_draw[:, None] == one_draw)
    assert ((wins.sum(axis=1) - 0.5) / 2).tolist() == [0.25, 0.25, 1.0]


def test_standing_against_scipy():
    from scipy.stats import rankdata

    scores = np.random.default_rng(0).integers(0, 4, size=(200, 7)) / 4
    first, tied = standing(scores)
    np.testing.assert_array_equal(first, rankdata(-scores, method="min", axis=1))
    np.testing.assert_array_equal(first + (tied - 1) / 2, rankdata(-scores, method="average", axis=1))


matrices = st.integers(2, 5).flatmap(
    lambda configs: st.lists(st.lists(st.integers(0, 1), min_size=6, max_size=6), min_size=configs, max_size=configs)
)


@settings(deadline=None, max_examples=20)
@given(matrices, st.integers(0, 5))
def test_probabilities_add_up(matrix, seed):
    board, configs = board_of(matrix), len(matrix)
    for k in range(1, configs + 1):
        assert top_k(board, k=k, seed=seed, draws=50).estimate.sum().item() == pytest.approx(k, abs=1e-9)
    wins = win_probability(board, seed=seed, draws=50)
    turned = wins.rename(config="opponent", opponent="config")
    assert float(abs(wins.estimate + turned.estimate - 1).max()) < 1e-12
    assert (wins.tie == turned.tie).all()
    assert (np.diag(wins.estimate) == 0.5).all()
    assert (np.diag(wins.tie) == 1).all()


@settings(deadline=None, max_examples=15)
@given(matrices, st.randoms(use_true_random=False), st.sampled_from([1, 3]))
def test_the_order_of_the_board_changes_no_digit(matrix, random, runs):
    solved = np.array(matrix) * (runs - 1) + (runs > 1)
    names = {"configs": list("abcde"[: len(matrix)]), "tasks": list("uvwxyz")}
    board = from_counts(solved, np.full_like(solved, runs), **names)
    configs, tasks = list(board.config.values), list(board.task.values)
    random.shuffle(configs)
    random.shuffle(tasks)
    shuffled = board.sel(config=configs, task=tasks)
    for quantity in (score, rank, top_k, win_probability):
        plain, moved = quantity(board, draws=40), quantity(shuffled, draws=40)
        dims = dict.fromkeys(plain.estimate.dims, board.config.values)
        assert moved.sel(dims).identical(plain)


def test_simulation_error_of_split_ties_is_not_that_of_whole_wins():
    board = board_of([*CASE_64, CASE_64[0]])
    wins = win_probability(board)
    # Copies tie on every board: 0.5 without error. Others have the plain error of their halves and wholes.
    assert wins.interval.sel(config="a", opponent="d").values.tolist() == [0.5, 0.5]
    assert wins.interval.sel(config="a", opponent="a").values.tolist() == [0.5, 0.5]
    plain = wins.sel(config="a", opponent="b")
    halves = plain.estimate * (1 - plain.estimate) - plain.tie / 4
    assert plain.se.item() == pytest.approx(np.sqrt(halves / 2000).item())
    width = plain.interval.diff("ci_bound").item()
    assert width == pytest.approx(2 * 1.96 * plain.se.item(), rel=0.01)
    certain = win_probability(board_of([[1] * 6, [0] * 6])).sel(config="a", opponent="b")
    assert certain.estimate.item() == 1
    assert 0.99 < certain.interval.values[0] < 1


def test_renaming_configs_renames_answers():
    """One run per cell: task draws are all there is, and they do not look at the configs."""
    board = board_of(CASE_64)
    renamed = board.assign_coords(config=["z", "y", "x"])
    for quantity in (score, rank, top_k):
        np.testing.assert_array_equal(quantity(board).estimate, quantity(renamed).estimate)
        np.testing.assert_array_equal(quantity(board).interval, quantity(renamed).interval)
    np.testing.assert_array_equal(win_probability(board).estimate, win_probability(renamed).estimate)


def test_renaming_tasks_moves_answers_by_simulation_error_only():
    board = board_of(CASE_64)
    renamed = board.assign_coords(task=list("dcba"))
    before, after = top_k(board), top_k(renamed)
    assert (abs(before.estimate - after.estimate) <= 5 * np.hypot(before.se, after.se) + 0.002).all()


def test_a_duplicate_gets_the_same_answer():
    board = board_of([*CASE_64, CASE_64[0]])
    for result in (score(board), rank(board), top_k(board)):
        assert result.isel(config=0, drop=True).identical(result.isel(config=3, drop=True))
    assert win_probability(board).tie.sel(config="a", opponent="d").item() == 1


def test_rank_estimate_is_of_the_full_data_and_in_its_interval():
    """Case 67: a hundred level entries all have rank 1, though a resample puts most of them far below."""
    rng = np.random.default_rng(0)
    solved = np.stack([rng.permutation([1] * 10 + [0] * 10) for _ in range(100)])
    board = from_matrix(solved, configs=[f"c{i:02}" for i in range(100)], tasks=[f"t{i:02}" for i in range(20)])
    for seed in (0, 1):
        result = rank(board, seed=seed, draws=200)
        assert (result.estimate == 1).all()
        assert (result.interval.sel(ci_bound="lower") == 1).all()
        assert (result.interval.sel(ci_bound="upper") > 50).all()


def test_rank_intervals_hold_ranks_that_occur():
    interval = rank(board_of(CASE_64)).interval.values
    assert (interval == np.round(interval)).all()
    assert interval.min() >= 1
    assert interval.max() <= 3


def test_an_unscored_config_has_no_rank_and_moves_nobody():
    board = board_of([*CASE_64, [NAN] * 4])
    ranks, best, wins = rank(board), top_k(board), win_probability(board)
    assert ranks.estimate.values[:3].tolist() == [1, 1, 3]
    for result in (ranks, best):
        assert np.isnan(result.estimate.values[3])
        assert result.reason.values.tolist() == ["", "", "", "no scored task"]
    assert best.estimate.sum().item() == pytest.approx(1)
    assert wins.reason.sel(config="a", opponent="d").item() == "no shared task"
    with pytest.raises(NotIdentifiedError, match="k=4, but 3 configs have a scored run"):
        top_k(board, k=4)


def test_wins_are_counted_on_shared_tasks():
    """Config b ran the easy tasks only: its own mean is higher, and on what both ran it loses."""
    board = board_of([[1, 1, 1, 0, 0, 0], [1, 1, 0, NAN, NAN, NAN]])
    assert score(board).estimate.values.tolist() == [0.5, 2 / 3]
    wins = win_probability(board).sel(config="a", opponent="b")
    assert wins.estimate.item() > 0.5
    assert wins.shared_tasks.item() == 3


def test_fixed_tasks_need_repeated_runs():
    board = board_of(CASE_64)
    ranks = rank(board, tasks="fixed")
    assert ranks.estimate.values.tolist() == [1, 1, 3]
    assert np.isnan(ranks.interval).all()
    for result in (top_k(board, tasks="fixed"), win_probability(board, tasks="fixed")):
        off_diagonal = result.reason.where(result.estimate.isnull(), drop=True).values
        assert np.isnan(result.estimate).sum() == (3 if result.quantity == "top_k" else 6)
        assert all(str(text).startswith("one run per cell") for text in off_diagonal.ravel() if isinstance(text, str))


def test_fixed_tasks_against_the_exact_probability():
    """Two configs, one task of two runs each, 1/2 against 1/2: P(win) = 1/2, P(tie) = 3/8."""
    board = from_counts([[1], [1]], [[2], [2]], configs=["a", "b"], tasks=["t"])
    result = win_probability(board, tasks="fixed", draws=20_000).sel(config="a", opponent="b")
    assert result.method.item() == "fixed_bootstrap"
    assert abs(result.estimate.item() - 0.5) < 4 * result.se.item()
    assert abs(result.tie.item() - 3 / 8) < 4 * np.sqrt(3 / 8 * 5 / 8 / 20_000)


def test_one_task_has_an_observed_rank_and_no_interval():
    board = from_counts([[3], [1]], [[4], [4]], configs=["a", "b"], tasks=["t"])
    ranks = rank(board)
    assert ranks.estimate.values.tolist() == [1, 2]
    assert np.isnan(ranks.interval).all()
    assert top_k(board).reason.values.tolist() == ["one scored task: the spread over tasks needs two or more"] * 2
    assert win_probability(board).reason.values[0, 1].startswith("one shared task")


@pytest.mark.parametrize("quantity", [rank, top_k, win_probability])
def test_one_config_has_no_rank(quantity):
    with pytest.raises(NotIdentifiedError, match="the board has one config"):
        quantity(board_of([[1, 0, 1]]))


def test_impossible_k_and_hopeless_coverage_are_refused():
    with pytest.raises(ValueError, match="k=0 is below 1"):
        top_k(board_of(CASE_64), k=0)
    sparse = [[NAN] * 6 for _ in range(6)]
    for i in range(6):
        sparse[i][i] = 1
    with pytest.raises(NotIdentifiedError, match=r"no scored task of config '.'; leave it out"):
        rank(board_of(sparse))
