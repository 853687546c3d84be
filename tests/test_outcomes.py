"""Boards from counts, matrices and tables; validation, coverage, observed scores, clusters."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from evalbayes import OutcomesError, outcomes

COUNTS = ("successes", "trials", "errors")
quick = settings(max_examples=40, deadline=None)


def rows(text: str) -> pd.DataFrame:
    """Text of ``config task run outcome``, one row a line, '-' for a blank."""
    table = [line.split() for line in text.strip().splitlines()]
    return pd.DataFrame(table, columns=["config", "task", "run", "outcome"]).replace("-", "")


def from_runs(text: str, **options: object) -> xr.Dataset:
    return outcomes.from_table(rows(text), run="run", outcome="outcome", **options)


@st.composite
def counts(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, 5)))
    trials, errors = (draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 6))) for _ in range(2))
    share = draw(hnp.arrays(float, shape, elements=st.floats(0, 1)))
    return np.rint(share * trials).astype(np.int64), trials, errors


def board_of(k: np.ndarray, n: np.ndarray, e: np.ndarray, policy: str = "missing") -> xr.Dataset:
    configs, tasks = ([f"{role}{i}" for i in range(size)] for role, size in zip("ct", k.shape, strict=True))
    return outcomes.from_counts(k, n, configs=configs, tasks=tasks, errors=e, error_policy=policy)


# -- construction


def test_a_board_has_the_schema():
    board = from_runs("a t 1 1\na t 2 0\na u 1 -")
    assert list(board.successes.dims) == ["config", "task"]
    assert {name: board[name].dtype for name in COUNTS} == dict.fromkeys(COUNTS, np.dtype(np.int64))
    assert board.outcome.dtype == np.int8
    assert board.outcome.attrs["flag_values"].tolist() == [-2, -1, 0, 1]
    assert board.outcome.values.tolist() == [[[1, 0], [-1, -2]]]
    assert all(isinstance(value, str | int | float) for value in board.attrs.values())
    for name in ("source", "score_rule", "error_policy", "reader", "evalbayes_version", "n_duplicates_dropped"):
        assert name in board.attrs


@pytest.mark.parametrize(
    ("successes", "trials", "fault"),
    [
        ([[6]], [[5]], "more successes than trials"),
        ([[-1]], [[5]], "negative successes"),
        ([[0.5]], [[5]], "whole number"),
        ([[np.nan]], [[5]], "whole number"),  # case 58: a NaN count would become a free variable of the model
        ([[np.inf]], [[5]], "whole number"),
        ([[2**60]], [[2**60]], "whole number"),
        ([["1"]], [[5]], "type"),
        ([1], [5], "shape"),
    ],
)
def test_counts_that_are_wrong_are_refused(successes, trials, fault):
    with pytest.raises(OutcomesError, match=fault):
        outcomes.from_counts(successes, trials, configs=["a"], tasks=["t"])


def test_case_58_an_empty_cell_is_not_a_fault():
    board = outcomes.from_counts([[2, 0]], [[5, 0]], configs=["model-a"], tasks=["task-1", "task-2"])
    assert outcomes.observed_score(board).item() == 2 / 5


@pytest.mark.parametrize("matrix", [[[0.5, 1]], [[2, 0]], [["x", 1]], [[1]], [1, 0]])
def test_a_matrix_that_is_wrong_is_refused(matrix):
    with pytest.raises(OutcomesError):
        outcomes.from_matrix(matrix, configs=["a"], tasks=["t", "u"])


def test_a_matrix_holds_pass_fail_and_absent():
    board = outcomes.from_matrix([[1, 0, None], [True, False, np.nan]], configs=["a", "b"], tasks=list("tuv"))
    assert board.successes.values.tolist() == [[1, 0, 0], [1, 0, 0]]
    assert board.trials.values.tolist() == [[1, 1, 0], [1, 1, 0]]


@pytest.mark.parametrize("names", [["a", "a"], ["a", ""], ["a", "  "], ["a", "x\0y"], ["a", 1], ["a", "\ud800"]])
def test_names_that_cannot_be_used_are_refused(names):
    with pytest.raises(OutcomesError, match=r"task .*; "):
        outcomes.from_matrix([[1, 0]], configs=["c"], tasks=names)
    with pytest.raises(OutcomesError, match=r"config .*; "):
        outcomes.from_matrix([[1], [0]], configs=names, tasks=["t"])


def test_a_board_without_config_or_task_is_refused():
    for shape, configs, tasks in (((0, 1), [], ["t"]), ((1, 0), ["c"], [])):
        with pytest.raises(OutcomesError, match=r"no (config|task)"):
            outcomes.from_counts(np.zeros(shape, int), np.zeros(shape, int), configs=configs, tasks=tasks)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda b: b.drop_vars("errors"), "errors missing"),
        (lambda b: b.transpose("task", "config", "run"), "transpose"),
        (lambda b: b.assign(trials=b.trials.astype(float)), "not int64"),
        (lambda b: b.assign(successes=b.successes + 9), "more successes"),
        (lambda b: b.assign(successes=b.successes * 0), "reduction of outcome"),
        (lambda b: b.assign(outcome=b.outcome * 0 + np.int8(5)), "not one of"),
        (lambda b: b.drop_vars("config"), "no names"),
        (lambda b: b.assign(published=("config", [60.0])), "divide % by 100"),
        (lambda b: b.assign_attrs(x=True), "only text and numbers"),
        (lambda b: b.assign_attrs(x=None), "only text and numbers"),
        (lambda b: b.assign_attrs(error_policy="drop"), "not a policy"),
        (lambda b: b.assign_coords(repo=("task", ["x", "y\0z"])), "NUL"),
    ],
)
def test_validate_names_what_breaks_the_schema(change, fault):
    board = from_runs("a t 1 1\na u 1 0")
    assert outcomes.validate(board) is board
    with pytest.raises(OutcomesError, match=fault):
        outcomes.validate(change(board))


# -- the four states, coverage and the error policy


ERRORED = "\n".join([*(f"a t{i} 1 1" for i in range(2)), *(f"a t{i} 1 0" for i in range(2, 6)), "a t6 1 -", "a t7 1 -"])


def test_case_1_errored_samples_stay_visible_under_every_policy():
    described = outcomes.describe(from_runs(ERRORED))
    assert described.observed.item() == 2 / 6
    assert (described.observed_lower.item(), described.observed_upper.item()) == (0.25, 0.5)
    assert (described.tasks_scored.item(), described.errors.item(), described.tasks_total.item()) == (6, 2, 8)
    failing = outcomes.describe(from_runs(ERRORED, errors="failure"))
    assert failing.observed.item() == 2 / 8
    assert (failing.observed_lower.item(), failing.observed_upper.item()) == (0.25, 0.5)
    assert failing.attrs["error_policy"] == "failure"
    with pytest.raises(OutcomesError, match=r"config 'a', task 't6'.*errors='missing'"):
        from_runs(ERRORED, errors="raise")
    with pytest.raises(OutcomesError, match="not a policy"):
        from_runs(ERRORED, errors="ignore")


def test_case_2_a_task_whose_every_run_errored_is_still_a_task():
    text = "a t1 1 1\na t2 1 -\na t3 1 -\na t4 1 -"
    described = outcomes.describe(from_runs(text))
    assert described.observed.item() == 1.0
    assert (described.tasks_scored.item(), described.tasks_total.item(), described.coverage.item()) == (1, 4, 0.25)
    assert (described.observed_lower.item(), described.observed_upper.item()) == (0.25, 1.0)
    assert described.attrs["n_tasks_unscored"] == 3
    assert outcomes.observed_score(from_runs(text, errors="failure")).item() == 0.25


def test_case_13_a_subset_keeps_its_coverage():
    text = "\n".join([f"a t{i} 1 {int(i < 2)}" for i in range(5)] + [f"b t{i} 1 1" for i in range(3)])
    described = outcomes.describe(from_runs(text))
    assert described.observed.values.tolist() == [2 / 5, 1.0]
    assert described.coverage.values.tolist() == [1.0, 3 / 5]
    assert described.attrs["n_cells_empty"] == 2


def test_case_20_blank_is_not_absent_is_not_zero():
    table = pd.DataFrame(
        {
            "config": ["a", "a", "b", "b", "b"],
            "task": ["t1", "t2", "t1", "t2", "t3"],
            "outcome": [1, np.nan, 1, 0, 1],
        }
    )
    board = outcomes.from_table(table, outcome="outcome")
    assert board.trials.values.tolist() == [[1, 0, 0], [1, 1, 1]]
    assert board.errors.values.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert outcomes.observed_score(board).values.tolist() == [1.0, 2 / 3]
    assert outcomes.describe(board).coverage.values.tolist() == [1 / 3, 1.0]


@quick
@given(counts())
def test_the_error_policy_is_reversible_and_bounded(kne):
    board = board_of(*kne)
    failing = outcomes.apply_error_policy(board, "failure")
    assert failing.trials.values.tolist() == (kne[1] + kne[2]).tolist()
    assert outcomes.apply_error_policy(failing, "missing").identical(board)
    assert outcomes.apply_error_policy(failing, "failure").identical(failing)
    for one in (board, failing):
        d = outcomes.describe(one)
        inside = (d.observed_lower <= d.observed + 1e-12) & (d.observed <= d.observed_upper + 1e-12)
        assert bool((inside | np.isnan(d.observed)).all())


@quick
@given(counts(), st.randoms())
def test_permuting_names_permutes_what_is_described(kne, random):
    board = board_of(*kne)
    order = {dim: random.sample(range(size), size) for dim, size in board.sizes.items()}
    direct = outcomes.describe(board.isel(order))
    permuted = outcomes.describe(board).isel(config=order["config"])
    xr.testing.assert_allclose(direct, permuted, rtol=1e-12)
    assert direct.attrs == permuted.attrs


@quick
@given(counts())
def test_observed_scores_equal_a_double_loop(kne):
    k, n, e = kne
    task, micro = (outcomes.observed_score(board_of(k, n, e), weights=w).values for w in ("task", "micro"))
    for c in range(len(k)):
        scored = [(k[c, t], n[c, t]) for t in range(k.shape[1]) if n[c, t]]
        if not scored:
            assert np.isnan([task[c], micro[c]]).all()
        else:
            np.testing.assert_allclose(task[c], np.mean([a / b for a, b in scored]), rtol=1e-13)
            assert micro[c] == sum(a for a, _ in scored) / sum(b for _, b in scored)


def test_task_weights_are_checked():
    with pytest.raises(OutcomesError, match="weights"):
        outcomes.observed_score(from_runs("a t 1 1"), weights="macro")  # type: ignore[arg-type]


def test_describe_counts_the_board():
    matrix = [[1, 0, 1, np.nan, np.nan], [1, 0, 0, 1, np.nan]]
    facts = outcomes.describe(outcomes.from_matrix(matrix, configs=["a", "b"], tasks=list("tuvwx"))).attrs
    expected = {
        "n_configs": 2,
        "n_tasks": 5,
        "n_cells": 10,
        "n_cells_empty": 3,
        "n_cells_single_run": 7,
        "n_cells_repeated": 0,
        "max_trials": 1,
        "n_tasks_all_pass": 2,
        "n_tasks_all_fail": 1,
        "n_tasks_mixed": 1,
        "n_tasks_unscored": 1,
    }
    assert {name: facts[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["model-a", "vendor/model-a", "model-a "], 1),  # case 16
        (["task-1", "Task-1"], 1),
        (["x/main", "y/main"], 0),  # the same ending is not a bare name here
        (["lab/team/m", "team/m"], 1),
        (["ﬁx", "fix"], 1),
        (["a b", "a  b", "a\u00a0b"], 1),
        (["a", "b"], 0),
    ],
)
def test_case_16_near_duplicate_names_are_reported_not_merged(names, groups):
    board = outcomes.from_matrix(np.ones((len(names), 1)), configs=names, tasks=["t"])
    assert board.sizes["config"] == len(names)
    assert len(outcomes.near_duplicates(board)) == groups
    assert bool(outcomes.describe(board).attrs["near_duplicate_names"]) == bool(groups)


# -- clusters


def test_cases_33_and_34_blank_clusters_need_a_decision():
    cluster = ["a", "a", "b", "b", "", "", "", ""]
    board = outcomes.from_matrix([[1, 1, 0, 0, 1, 0, 1, 0]], configs=["m"], tasks=[f"t{i}" for i in range(8)])
    board = board.assign_coords(cluster=("task", cluster))
    with pytest.raises(OutcomesError, match=r"4 of 8 tasks have no cluster \(first 't4'\).*blank='own'"):
        outcomes.clusters(board, "cluster")
    assert len(set(outcomes.clusters(board, "cluster", blank="own").values)) == 2 + 4
    assert len(set(outcomes.clusters(board, "cluster", blank="one").values)) == 2 + 1
    with pytest.raises(OutcomesError, match="those there are: cluster"):
        outcomes.clusters(board, "repo")
