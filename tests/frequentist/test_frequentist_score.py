"""Scores and their intervals against closed forms, statsmodels and the cases from practice."""

import numpy as np
import pytest
import xarray as xr
from statsmodels.stats.proportion import proportion_confint

from evalbayes.errors import NotIdentifiedError
from evalbayes.frequentist import score
from evalbayes.frequentist.bootstrap import cells
from evalbayes.frequentist.normal import run_noise
from evalbayes.outcomes import from_counts, from_matrix, observed_score
from evalbayes.textbook import wilson

SAMPLED = ("two_level_bootstrap", "one_level_bootstrap", "clustered_normal")
FIXED = ("fixed_normal", "fixed_bootstrap")


def one(successes, trials):
    return from_counts([successes], [trials], configs=["a"], tasks=[f"t{i:03}" for i in range(len(trials))])


def ends(result):
    return result.interval.values[0].tolist()


def test_three_standard_errors_for_three_targets():
    """Case 29: rows 1111 / 1100 / 0000."""
    board = one([4, 2, 0], [4, 4, 4])
    assert score(board, method="clustered_normal").se.item() == pytest.approx(0.2887, abs=5e-5)
    assert score(board, tasks="fixed", method="fixed_normal").se.item() == pytest.approx(0.0962, abs=5e-5)
    assert score(board, method="pooled_wilson").se.item() == pytest.approx(0.1443, abs=5e-5)


def cr1_double_loop(outcomes):
    """CR1 variance of a pooled mean by a double loop over runs, a run being correlated with its own task's only."""
    runs = [
        (task, value)
        for task, (k, n) in enumerate(zip(outcomes.successes.values[0], outcomes.trials.values[0], strict=True))
        for value in [1] * k + [0] * (n - k)
    ]
    mean = sum(value for _, value in runs) / len(runs)
    total = sum((x - mean) * (y - mean) for s, x in runs for t, y in runs if s == t)
    tasks = outcomes.sizes["task"]
    return np.sqrt(tasks / (tasks - 1) * total) / len(runs)


@pytest.mark.parametrize("seed", range(3))
def test_clustered_se_is_cr1_by_task(seed):
    solved = np.random.default_rng(seed).binomial(4, 0.4, size=12)
    board = one(solved, [4] * 12)
    assert score(board, method="clustered_normal").se.item() == pytest.approx(cr1_double_loop(board), abs=1e-12)


def test_fixed_normal_is_the_published_formula():
    """O9: the board's +- is 1.96 sqrt(sum p (1-p) / (n-1)) / T."""
    k, n = np.array([5, 3, 0, 2]), np.array([5, 5, 4, 3])
    p = k / n
    expected = np.sqrt((p * (1 - p) / (n - 1)).sum()) / 4
    result = score(one(k, n), tasks="fixed", method="fixed_normal")
    assert result.se.item() == pytest.approx(expected, abs=1e-15)
    assert ends(result) == pytest.approx([p.mean() - 1.959964 * expected, p.mean() + 1.959964 * expected], abs=1e-6)


def test_a_cell_of_one_run_borrows_the_mean_run_variance():
    board = one([2, 1, 1], [4, 2, 1])
    within = [4 * 0.25 / 3, 2 * 0.25 / 1]
    assert run_noise(cells(board))[0].tolist() == pytest.approx([within[0] / 4, within[1] / 2, np.mean(within)])
    assert score(board, tasks="fixed").imputed.item() == 1


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [
        (0, 10, (0, 0.2775)),
        (10, 10, (0.7225, 1)),
        (0, 50, (0, 0.0713)),
        (1, 1, (0.2065, 1)),
        (19, 20, (0.7639, 0.9911)),
    ],
)
def test_wilson_at_the_boundary(k, n, expected):
    """Case 33."""
    found = wilson(np.array([k / n]), np.array([float(n)]), 0.95)[0]
    assert found.round(4).tolist() == list(expected)
    assert score(one([k], [n]), method="pooled_wilson").interval.values[0].tolist() == found.tolist()


def test_wilson_bounds_are_exact_at_the_boundary():
    """Case 33: exactly 0.0 for 0/77 and 1.0 for 38/38."""
    assert wilson(np.array([0.0, 1.0]), np.array([77.0, 38.0]), 0.95)[[0, 1], [0, 1]].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("prob", [0.5, 0.89, 0.95, 0.999])
def test_wilson_against_statsmodels(prob):
    k, n = np.array([1, 7, 250, 3]), np.array([3, 19, 500, 1000])
    theirs = np.stack(proportion_confint(k, n, alpha=1 - prob, method="wilson"), axis=1)
    np.testing.assert_allclose(wilson(k / n, n.astype(float), prob), theirs, rtol=0, atol=1e-12)


def test_wald_stays_on_the_scale():
    """Case 33: at 19/20 the plain normal interval passes 1."""
    board = from_matrix([[1] * 19 + [0]], configs=["a"], tasks=[f"t{i:02}" for i in range(20)])
    assert ends(score(board, method="clustered_normal"))[1] == 1.0


@pytest.mark.parametrize("method", SAMPLED)
@pytest.mark.parametrize(("passed", "expected"), [(0, [0, 0.2775]), (1, [0.7225, 1])])
def test_a_config_at_the_boundary_gets_wilson_by_tasks(method, passed, expected):
    """Ten tasks of five runs are ten trials, not fifty: the runs of a task may be copies of one another."""
    result = score(one([5 * passed] * 10, [5] * 10), method=method)
    assert result.interval.values[0].round(4).tolist() == expected
    assert result.interval_kind.item() == "wilson_tasks"
    assert np.isnan(result.se.item())
    assert "Wilson" in result.reason.item()


@pytest.mark.parametrize("method", FIXED)
def test_no_run_variance_is_no_certainty(method):
    result = score(one([5, 0, 5], [5] * 3), tasks="fixed", method=method)
    assert np.isnan(result.interval).all()
    assert "pooled_wilson" in result.reason.item()
    assert result.estimate.item() == 2 / 3


@pytest.mark.parametrize("method", ["one_level_bootstrap", "clustered_normal"])
def test_no_task_variance_is_no_certainty(method):
    result = score(one([1, 1, 1], [2] * 3), method=method)
    assert np.isnan(result.interval).all()
    assert "two_level_bootstrap" in result.reason.item()
    assert score(one([1, 1, 1], [2] * 3)).se.item() > 0


def test_copied_runs_change_nothing():
    """Case 31: 4 tasks, 2 solved, 1 or 10 identical runs: sd 0.25 both times (a row bootstrap gives 0.0791)."""
    single, copied = (score(one([n, n, 0, 0], [n] * 4)) for n in (1, 10))
    assert single.se.item() == copied.se.item() == pytest.approx(0.25, abs=4 * 0.25 / np.sqrt(4000))
    assert ends(single) == ends(copied)


@pytest.mark.parametrize("method", SAMPLED)
def test_one_task_has_no_spread(method):
    """Cases 32 and 34: NaN with a reason, not 0."""
    result = score(one([3], [5]), method=method)
    assert result.estimate.item() == 0.6
    assert np.isnan(result.se.item())
    assert np.isnan(result.interval).all()
    assert result.reason.item().startswith("one scored task")


@pytest.mark.parametrize("method", FIXED)
def test_one_run_per_cell_cannot_show_repeatability(method):
    result = score(from_matrix([[1, 0, 0, 1]], configs=["a"], tasks=list("wxyz")), tasks="fixed", method=method)
    assert result.estimate.item() == 0.5
    assert np.isnan(result.interval).all()
    assert result.reason.item().startswith("one run per cell")


def test_fixed_bootstrap_needs_repeats_everywhere():
    result = score(one([2, 1], [4, 1]), tasks="fixed", method="fixed_bootstrap")
    assert np.isnan(result.interval).all()
    assert "fixed_normal" in result.reason.item()


def test_a_config_without_a_run_is_unknown_and_disturbs_nobody():
    board = from_counts([[1, 0, 1], [0, 0, 0]], [[1, 1, 1], [0, 0, 0]], configs=["a", "b"], tasks=list("xyz"))
    for method in (*SAMPLED, "pooled_wilson"):
        result = score(board, method=method)
        assert result.estimate.values[0] == 2 / 3
        assert np.isnan(result.estimate.values[1])
        assert result.reason.values.tolist() == ["", "no scored task"]
        assert result.coverage.values.tolist() == [1, 0]


def test_partial_coverage_is_no_failure():
    """Case 13: 2/5 with coverage 5/5, and 3/3 with coverage 3/5."""
    nan = float("nan")
    board = from_matrix(
        [[1, 1, 0, 0, 0], [1, 1, 1, nan, nan]], configs=["model-a", "model-b"], tasks=[f"task-{i}" for i in range(1, 6)]
    )
    result = score(board)
    assert result.estimate.values.tolist() == [0.4, 1.0]
    assert result.coverage.values.tolist() == [1.0, 0.6]


def test_estimate_is_the_observed_score_for_every_method_seed_and_number_of_draws():
    """Case 67: the point estimate comes from the full data and lies in its interval."""
    rng = np.random.default_rng(0)
    trials = rng.integers(2, 6, size=(5, 30))
    names = {"configs": list("abcde"), "tasks": [f"t{i:02}" for i in range(30)]}
    board = from_counts(rng.binomial(trials, 0.3), trials, **names)
    observed = observed_score(board)
    for tasks, methods in (("sampled", SAMPLED), ("fixed", FIXED)):
        for method in methods:
            for seed, draws in ((0, 100), (1, 101)):
                result = score(board, tasks=tasks, method=method, seed=seed, draws=draws)
                np.testing.assert_allclose(result.estimate, observed, atol=1e-14)
                assert (result.interval.sel(ci_bound="lower") <= result.estimate).all()
                assert (result.interval.sel(ci_bound="upper") >= result.estimate).all()


def test_targets_and_weights_that_differ_give_answers_that_differ():
    """Ten runs of an easy task and two of each hard one: the pooled rate is another quantity than the score."""
    board = one([9, 1, 0, 1], [10, 2, 2, 2])
    assert observed_score(board, weights="micro").item() == 11 / 16
    sampled, fixed = score(board), score(board, tasks="fixed")
    assert sampled.estimate.item() == fixed.estimate.item() == pytest.approx((0.9 + 0.5 + 0 + 0.5) / 4)
    assert sampled.tasks.item() == "sampled"
    assert fixed.tasks.item() == "fixed"
    p = np.array([0.9, 0.5, 0, 0.5])
    assert score(board, method="clustered_normal").se.item() == pytest.approx(p.std(ddof=1) / 2)
    assert fixed.se.item() == pytest.approx(np.sqrt(0.09 / 9 + 0.25 + 0.25) / 4)


def test_pooled_wilson_says_what_it_is():
    assert "counted as independent" in score(one([3, 1], [5, 5]), method="pooled_wilson").attrs["label"]
    assert "one run per cell" in score(one([1, 0], [1, 1]), method="pooled_wilson").attrs["label"]


@pytest.mark.parametrize("method", SAMPLED)
def test_sampled_methods_are_refused_for_fixed_tasks(method):
    with pytest.raises(NotIdentifiedError, match=r"does not cover tasks='fixed'; use fixed_normal or"):
        score(one([3, 1], [5, 5]), tasks="fixed", method=method)


@pytest.mark.parametrize("method", FIXED)
def test_fixed_methods_are_refused_for_sampled_tasks(method):
    with pytest.raises(NotIdentifiedError, match=r"does not cover tasks='sampled'; use two_level_bootstrap or"):
        score(one([3, 1], [5, 5]), method=method)


def test_future_entries_and_unknown_words_are_refused():
    board = one([3, 1], [5, 5])
    with pytest.raises(NotIdentifiedError, match=r"use configs='fixed', or a fit and posterior\.score"):
        score(board, configs="sampled")
    with pytest.raises(ValueError, match="tasks='new' is not 'fixed' or 'sampled'"):
        score(board, tasks="new")
    with pytest.raises(ValueError, match="method='magic' is not one of two_level_bootstrap, one_level"):
        score(board, method="magic")


def test_interval_moves_with_the_level():
    board = one([5, 3, 0, 2, 4, 1], [5] * 6)
    for tasks in ("sampled", "fixed"):
        narrow, wide = (score(board, tasks=tasks, prob=prob).interval.diff("ci_bound").item() for prob in (0.5, 0.95))
        assert narrow < wide


def test_result_is_a_plain_dataset_that_concatenates():
    board = one([5, 3, 0, 2], [5] * 4)
    answers = [score(board, method=method)[["estimate", "interval"]] for method in SAMPLED]
    joined = xr.concat(answers, "method", join="exact", coords="different", compat="equals")
    assert joined.method.values.tolist() == list(SAMPLED)
