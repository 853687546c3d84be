"""Paired differences against closed forms, loops over pairs, and the cases from practice."""

import numpy as np
import pytest
import xarray as xr

from evalbayes.errors import NotIdentifiedError, OutcomesError
from evalbayes.frequentist import bootstrap, difference, paired, score, win_probability
from evalbayes.outcomes import from_counts, from_matrix

NAN = float("nan")
SAMPLED = ("two_level_bootstrap", "one_level_bootstrap", "clustered_normal")


def random_board(seed=0, configs=5, tasks=20, low=1):
    rng = np.random.default_rng(seed)
    trials = rng.integers(low, 6, size=(configs, tasks))
    names = {"configs": [f"c{i}" for i in range(configs)], "tasks": [f"t{i:02}" for i in range(tasks)]}
    return from_counts(rng.binomial(trials, rng.uniform(size=(1, tasks))), trials, **names)


def pair(result, config, opponent):
    return result.sel(config=config, opponent=opponent)


def test_paired_standard_error():
    """Case 39: 70 both, 12 only a, 3 only b, 15 none: difference 0.09, se 0.0379 (unpaired it would be 0.058)."""
    a, b = [1] * 70 + [1] * 12 + [0] * 3 + [0] * 15, [1] * 70 + [0] * 12 + [1] * 3 + [0] * 15
    board = from_matrix([a, b], configs=["a", "b"], tasks=[f"t{i:03}" for i in range(100)])
    normal = difference(board, method="clustered_normal", reference="b").sel(config="a")
    assert normal.estimate.item() == pytest.approx(0.09)
    assert normal.se.item() == pytest.approx(0.0379, abs=5e-5)
    drawn = difference(board, reference="b").sel(config="a")
    # The bootstrap's variance has n where the formula has n - 1; the sd of 2,000 draws is good to 1.6%.
    assert drawn.se.item() == pytest.approx(0.0379 * np.sqrt(0.99), rel=4 * 0.016)


def test_only_shared_tasks_count():
    """Case 13: on the three shared tasks 2/3 against 3/3."""
    matrix = [[1, 1, 0, 0, 0], [1, 1, 1, NAN, NAN]]
    board = from_matrix(matrix, configs=["model-a", "model-b"], tasks=[f"task-{i}" for i in range(1, 6)])
    for method in SAMPLED:
        result = pair(difference(board, method=method), "model-b", "model-a")
        assert result.estimate.item() == pytest.approx(1 / 3)
        assert result.shared_tasks.item() == 3


def test_tasks_are_paired_by_name():
    """Case 17: the second file is in another order; by id b = 1, c = 0, so the difference is 1/4."""
    first = from_matrix([[1, 0, 1, 1]], configs=["model-a"], tasks=["task-1", "task-2", "task-3", "task-4"])
    second = from_matrix([[1, 0, 0, 1]], configs=["model-b"], tasks=["task-4", "task-3", "task-2", "task-1"])
    board = xr.concat([first, second.sel(task=first.task)], "config", join="exact", coords="minimal", compat="equals")
    result = pair(difference(board, method="clustered_normal"), "model-a", "model-b")
    assert result.estimate.item() == 0.25
    assert result.se.item() == pytest.approx(0.25)


@pytest.mark.parametrize("low", [0, 1])
def test_clustered_se_against_a_loop_over_pairs(low):
    board = random_board(1, low=low)
    result = difference(board, method="clustered_normal")
    for a in board.config.values:
        for b in board.config.values:
            both = board.isel(task=((board.trials.sel(config=[a, b]) > 0).all("config").values))
            rates = both.successes / both.trials
            gaps = (rates.sel(config=a) - rates.sel(config=b)).values
            found = pair(result, a, b)
            assert found.estimate.item() == pytest.approx(gaps.mean(), abs=1e-12)
            assert found.se.item() == pytest.approx(gaps.std(ddof=1) / np.sqrt(len(gaps)), abs=1e-12)
            assert found.shared_tasks.item() == len(gaps)


def test_fixed_normal_adds_the_run_noise_of_both():
    board = random_board(2, low=2)
    single, both = score(board, tasks="fixed"), difference(board, tasks="fixed")
    for a, b in [("c0", "c1"), ("c3", "c2")]:
        expected = np.hypot(single.se.sel(config=a), single.se.sel(config=b)).item()
        assert pair(both, a, b).se.item() == pytest.approx(expected, abs=1e-12)


def test_fixed_bootstrap_approaches_fixed_normal():
    """Resampling n runs has (n - 1) / n of the unbiased variance; an sd from 4,000 draws is good to 1.1%."""
    board = from_counts(
        [[5] * 30, [3] * 30], [[10] * 30] * 2, configs=["a", "b"], tasks=[f"t{i:02}" for i in range(30)]
    )
    normal, drawn = (
        difference(board, tasks="fixed", method=method, reference="b", draws=4000).sel(config="a").se.item()
        for method in ("fixed_normal", "fixed_bootstrap")
    )
    assert drawn == pytest.approx(normal * np.sqrt(0.9), rel=0.045)


@pytest.mark.parametrize("low", [0, 1])
@pytest.mark.parametrize("method", SAMPLED)
def test_the_other_way_round_is_the_same_with_the_sign_changed(method, low):
    result = difference(random_board(3, low=low), method=method)
    turned = result.rename(config="opponent", opponent="config").transpose(*result.estimate.dims, ...)
    assert (result.estimate == -turned.estimate).all()
    assert (result.se == turned.se).all()
    assert (result.interval.sel(ci_bound="lower") == -turned.interval.sel(ci_bound="upper")).all()


@pytest.mark.parametrize("method", SAMPLED)
def test_a_reference_gives_the_same_numbers_as_all_pairs(method):
    board = random_board(4)
    every, against = difference(board, method=method), difference(board, method=method, reference="c2")
    column = every.sel(opponent="c2")
    np.testing.assert_array_equal(against.estimate, column.estimate)
    np.testing.assert_allclose(against.se, column.se, rtol=0, atol=1e-14)
    np.testing.assert_allclose(against.interval, column.interval, rtol=0, atol=1e-14)


def test_differences_do_not_depend_on_the_reference():
    """Case 67: an anchor moves no contrast."""
    board = random_board(5)
    by_anchor = [difference(board, reference=anchor).estimate for anchor in ("c0", "c3")]
    moved = by_anchor[0] - by_anchor[1]
    assert float(moved.max() - moved.min()) < 1e-14


def test_a_config_minus_itself_is_nothing_by_definition():
    result = difference(random_board(6))
    diagonal = result.isel(config=range(5), opponent=range(5)).interval.values[range(5), range(5)]
    assert (diagonal == 0).all()
    assert (result.reason.values[range(5), range(5)] == "").all()


def test_configs_that_share_no_task_cannot_be_compared():
    board = from_matrix([[1, 0, NAN, NAN], [NAN, NAN, 1, 0]], configs=["a", "b"], tasks=list("wxyz"))
    for method in SAMPLED:
        result = pair(difference(board, method=method), "a", "b")
        assert np.isnan(result.estimate)
        assert result.reason.item() == "no shared task"


def test_one_shared_task_has_an_estimate_and_no_interval():
    board = from_matrix([[1, 0, NAN], [NAN, 1, 0]], configs=["a", "b"], tasks=list("xyz"))
    result = pair(difference(board), "a", "b")
    assert result.estimate.item() == -1
    assert np.isnan(result.interval).all()
    assert result.reason.item().startswith("one shared task")


@pytest.mark.parametrize("method", SAMPLED)
@pytest.mark.parametrize("other", [[1, 0, 1, 0], [0, 1, 0, 1]])
def test_no_discordant_task_is_no_certainty(method, other):
    """Identical entries, and opposite ones tasks apart: an interval [0, 0] would claim that they are equal."""
    board = from_matrix([[1, 0, 1, 0], other], configs=["a", "b"], tasks=list("wxyz"))
    result = pair(difference(board, method=method), "a", "b")
    assert result.estimate.item() == 0
    assert np.isnan(result.interval).all() == (other == [1, 0, 1, 0])


def test_one_run_per_cell_cannot_show_repeatability():
    board = from_matrix([[1, 0, 1, 0], [1, 1, 1, 0]], configs=["a", "b"], tasks=list("wxyz"))
    result = pair(difference(board, tasks="fixed"), "a", "b")
    assert result.estimate.item() == -0.25
    assert result.reason.item().startswith("one run per cell")


def test_errors_name_what_is_missing():
    board = random_board(7)
    with pytest.raises(NotIdentifiedError, match="the board has one config"):
        difference(board.isel(config=[0]))
    with pytest.raises(OutcomesError, match="config 'c9' is not on the board; it has c0, c1, c2, c3, c4"):
        difference(board, reference="c9")
    with pytest.raises(NotIdentifiedError, match="method='fixed_normal' does not cover tasks='sampled'"):
        difference(board, method="fixed_normal")


@pytest.mark.parametrize("quantity", [difference, win_probability])
def test_working_through_the_pairs_in_parts_changes_nothing(quantity, monkeypatch):
    board = random_board(8, configs=9, low=0)
    whole = quantity(board, draws=60)
    monkeypatch.setattr(paired, "TABLES", 4 * 60)
    monkeypatch.setattr(paired, "PAIR_BLOCK", 3 * 60)
    assert quantity(board, draws=60).identical(whole)


def test_bootstrap_pairs_against_a_loop_over_explicit_boards():
    """One run per cell and gaps: every resampled pair is built for real, on the same task draws."""
    rng = np.random.default_rng(9)
    matrix = np.where(rng.uniform(size=(4, 12)) < 0.3, NAN, rng.integers(0, 2, size=(4, 12)))
    board = from_matrix(matrix, configs=list("abcd"), tasks=[f"t{i:02}" for i in range(12)])
    result = difference(board, draws=80, seed=2)
    drawn = next(bootstrap.task_draws(12, 80, 2))
    for i in range(4):
        for j in range(i):
            gaps = matrix[i] - matrix[j]
            known = [gaps[row][np.isfinite(gaps[row])] for row in drawn]
            means = [values.mean() for values in known if values.size]
            assert result.se.values[i, j] == pytest.approx(np.std(means, ddof=1), abs=1e-12)
            lower, upper = np.quantile(means, [0.025, 0.975])
            ends = [min(lower, np.nanmean(gaps)), max(upper, np.nanmean(gaps))]
            assert result.interval.values[i, j].tolist() == pytest.approx(ends, abs=1e-12)
