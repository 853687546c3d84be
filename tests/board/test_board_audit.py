"""What does not add up: figures from practice, triples against every histogram, nothing where all is well."""

import itertools

import numpy as np
import pytest

from boards import counted, recorded
from evalbayes import outcomes, simulate
from evalbayes.board import audit, honesty_gate, impossible_triples
from evalbayes.board.published import printed, rounding, whole_counts
from evalbayes.board.triples import FORMS, TOO_MANY
from evalbayes.errors import ArgumentError
from evalbayes.schema import ERROR


def singles(*passes, tasks):
    """Entries that solved so many tasks: each its own, so that no two are alike."""
    return counted([np.roll([1] * k + [0] * (tasks - k), 7 * i) for i, k in enumerate(passes)], 1)


def published(board, *rates):
    return board.assign(published=("config", list(rates)))


def found(seen):
    return list(zip(seen.severity.values, seen.kind.values, seen.config.values, strict=True))


def test_case_14_a_published_rate_and_the_rows():
    """396 and 388 of 500 at 79.2%, and 371 wins and 17 draws of 805 at 40.186%."""
    seen = audit(published(singles(396, 388, tasks=500), 0.792, 0.792))
    assert found(seen) == [("error", "published_rate", "c1")]
    assert seen.detail.item() == "published 0.792 implies 396 of 500 tasks, the rows have 388 (0.776, -1.6 points)"
    draws = published(counted([2] * 371 + [1] * 17 + [0] * 417, 2), 40.18633540372671 / 100)
    gate = honesty_gate(draws)
    implied, rows = gate.claimed.item(), gate["count"].item()
    print(f"published implies {implied:.1f} wins, the rows have {rows:.1f}: {100 * gate.observed.item():.4f}%")
    assert (round(implied, 1), rows, round(100 * gate.observed.item(), 4)) == (323.5, 379.5, 47.1429)
    assert audit(draws).kind.values.tolist() == ["published_rate"]
    assert "implies 323.5 of 805 tasks, the rows have 379.5" in audit(draws).detail.item()


def test_case_23_which_denominator_a_header_used():
    """89 trials, one without a score: 0.449438 is 40/89, and 40/88 would be 0.454545."""
    states = np.array([1] * 40 + [0] * 48 + [ERROR])[None, :, None]
    header = {"c0": {"trials": 88, "errors": 16, "successes": 40, "rate": "0.449438202247191"}}
    seen = audit(recorded(states), header=header)
    print(seen.detail.values)
    assert found(seen) == [("error", "header_count", "c0"), ("warning", "denominator", "c0")]
    assert seen.detail[0].item() == "header says 16 errors, the rows have 1 attempts without a score"
    assert "is 40/89 (attempted tasks, errored runs as failures), not 40/88 (scored tasks)" in seen.detail[1].item()
    assert seen.detail[1].item().endswith("= 0.454545")
    total = audit(recorded(states), header={"c0": {"trials": 89, "errors": 1, "tasks": 88, "rate": 40 / 88}})
    assert total.sizes["finding"] == 0


@pytest.mark.parametrize(("passes", "right"), [(263, "0.020031"), (14, "0.011926")])
def test_case_37_a_standard_error_of_0_is_rejected_and_recomputed(passes, right):
    seen = audit(singles(passes, tasks=307), header={"c0": {"se": 0.0}})
    print(seen.detail.item())
    assert found(seen) == [("error", "standard_error", "c0")]
    assert f"tasks_sampled {right}" in seen.detail.item()
    assert audit(singles(passes, tasks=307), header={"c0": {"se": right}}).sizes["finding"] == 0
    assert audit(singles(0, tasks=307), header={"c0": {"se": 0.0}}).sizes["finding"] == 0
    assert "none that the rows give" in audit(singles(passes, tasks=307), header={"c0": {"se": 0.03}}).detail.item()


@pytest.mark.parametrize(
    ("claimed", "decimals", "gate"),
    [
        (0.780, 3, "passed"),
        (0.782, 12, "passed"),
        (0.7825, 4, "failed"),
        (0.783, 3, "failed"),
        (0.7822, 3, "passed"),
        (0.79, 2, "failed"),
    ],
)
def test_the_gate_is_one_task_and_the_rounding(claimed, decimals, gate):
    """390 of 500 are 0.78; one task is 0.002, to which half a unit in the third decimal adds 0.0005."""
    board = published(singles(390, tasks=500), claimed)
    seen = honesty_gate(board, decimals=decimals)
    off = abs(claimed * 500 - 390)
    allowed = 1 + 500 * 0.5 * 10.0**-decimals
    assert seen.allowance.item() == pytest.approx(allowed)
    assert seen.gate.item() == gate == ("passed" if off <= allowed + 1e-9 else "failed")


def test_the_rounding_is_read_off_the_figures():
    rates = np.array([0.5, 0.792, 0.648, np.nan, 0.40186335])
    assert rounding(rates).tolist() == pytest.approx([5e-4, 5e-4, 5e-4, np.nan, 5e-9], nan_ok=True)
    assert rounding(np.array([0.5, 0.4])).tolist() == [5e-3, 5e-3]
    assert rounding(rates, 4)[:2].tolist() == [5e-5, 5e-5]
    assert np.isnan(rounding(np.array([np.nan]))).all()
    # Percentages divided by 100 keep their decimals, whatever the machine makes of them.
    percent = np.arange(1001) / 10
    assert set(np.round(rounding(percent / 100), 12)) == {5e-4}
    assert [printed(figure) for figure in ("49.0", "50", 0.25)] == [(49, 0.05), (50, 0.5), (0.25, 0.005)]


def test_rates_that_no_whole_number_gives():
    """By loops over every count; and 0.555 of 100 tasks is none, of rows or of an entry without any."""
    for total, thousandths in itertools.product((7, 40, 99, 500), range(0, 1001, 7)):
        rate = thousandths / 1000
        brute = [c for c in range(total + 1) if abs(c / total - rate) <= 0.0005 + 1e-12]
        assert list(whole_counts(rate, 0.0005, total)) == brute
    board = counted([[1] * 55 + [0] * 45, [0] * 100, [0] * 100], [[1] * 100, [0] * 100, [0] * 100])
    seen = audit(published(board, 0.555, 0.555, 0.561))
    assert found(seen) == [
        ("warning", "impossible_rate", "c0"),
        ("warning", "impossible_rate", "c1"),
        ("warning", "impossible_rate", "c2"),
        ("note", "no_per_task_results", "c1"),
        ("note", "no_per_task_results", "c2"),
    ]
    assert found(audit(published(board, 0.56, 0.55, 0.1), decimals=2))[0] == ("note", "no_per_task_results", "c1")


def test_repeated_runs_have_other_denominators():
    """Tasks run 1, 2 and 5 times: the mean of task means, and all passes over all runs."""
    board = counted([1, 1, 2], [1, 2, 5])
    assert audit(published(board, 0.633333), decimals=6).sizes["finding"] == 0
    seen = audit(published(board, 0.5), decimals=6)
    assert found(seen) == [("warning", "denominator", "c0")]
    assert "is 4/8 (scored runs)" in seen.detail.item()


def test_missing_tasks_counted_as_failures_are_named():
    board = published(counted([1, 1, 1, 0] * 10, [1, 1, 1, 0] * 10), 0.75)
    assert [kind for _, kind, _ in found(audit(board))] == ["published_rate", "denominator"]
    assert "30/40 (tasks of the board, those not scored as failures)" in audit(board).detail[1].item()


def test_near_duplicate_names():
    states = [[1, 0, 1], [1, 1, 0], [0, 1, 1]]
    board = outcomes.from_matrix(states, configs=["model-a", "vendor/model-a", "b"], tasks=["task-1", "Task-1", "t"])
    seen = audit(board)
    assert found(seen) == [("warning", "near_duplicate_names", ""), ("warning", "near_duplicate_names", "model-a")]
    assert "'model-a', 'vendor/model-a'" in seen.detail[1].item()


def test_identical_entries_are_those_of_the_check_of_copies():
    board = simulate.board(6, 50, 3, seed=8).drop_dims("run")
    k, n = board["successes"].values, board["trials"].values
    seen = audit(counted(np.vstack([k, k[4]]), np.vstack([n, n[4]])))
    assert found(seen) == [("warning", "identical_entries", "c4"), ("warning", "identical_entries", "c6")]
    by_chance = audit(counted([[1, 0], [1, 0], [0, 1]], 1))
    assert found(by_chance) == [("note", "identical_entries", "c0"), ("note", "identical_entries", "c1")]


def test_nothing_where_all_is_well():
    board = simulate.board(8, 100, 1, seed=1)
    observed = outcomes.observed_score(board)
    seen = audit(board.assign(published=observed.round(3)), header={board.config.values[0]: {"tasks": 100}})
    assert seen.sizes["finding"] == 0
    assert (seen.attrs["errors"], seen.attrs["warnings"], seen.attrs["notes"]) == (0, 0, 0)
    assert seen.attrs["checked"].startswith("8 published rates, 1 headers")


def test_findings_are_sorted_whatever_the_order_of_entries():
    board = published(singles(30, 40, 50, tasks=60), 0.9, 0.8, 0.833)
    seen, other = audit(board), audit(board.isel(config=[2, 0, 1], task=slice(None, None, -1)))
    assert found(seen) == found(other)
    assert seen.detail.values.tolist() == other.detail.values.tolist()
    assert seen.attrs["errors"] == 2


def test_headers_are_checked():
    board = singles(3, 4, tasks=9)
    for header, match in (
        ({"c7": {"rate": 0.5}}, "'c7' is not on the board"),
        ({"c0": {"score": 0.5}}, "'score' is not one of successes"),
        ({"c0": {"rate": "half"}}, "rate 'half' is not a number"),
    ):
        with pytest.raises(ArgumentError, match=match):
            audit(board, header=header)
    seen = audit(board, header={"c0": {"rate": 0.9}})
    assert ("error", "header_rate", "c0") in found(seen)


def possible(rate, stable, variance, tasks, runs, divisor):
    """Every histogram, by hand: does one print as all three?"""
    halves = [0.5 * 10.0 ** -len(text.partition(".")[2]) + 1e-9 for text in (rate, stable, variance)]
    for cut in itertools.combinations(range(tasks + runs), runs):
        ends = (-1, *cut, tasks + runs)
        n = np.diff(ends) - 1
        k = np.arange(runs + 1)
        figures = (n @ k / tasks / runs, n[-1] / tasks, n @ (k * (runs - k)) / tasks / runs / divisor)
        if all(abs(a - float(b)) <= half for a, b, half in zip(figures, (rate, stable, variance), halves, strict=True)):
            return True
    return False


@pytest.mark.parametrize(("tasks", "runs"), [(4, 2), (5, 3), (6, 4)])
def test_triples_against_every_histogram(tasks, runs):
    """Half the triples are printed from tables, under either form; the others have one figure moved."""
    rng = np.random.default_rng(tasks)
    rows = []
    for i in range(60):
        k = rng.integers(runs + 1, size=tasks)
        divisor = runs - i % 2
        figures = [k.mean() / runs, (k == runs).mean(), (k * (runs - k)).mean() / runs / divisor]
        figures[i % 3] += 0.05 * (i % 4 > 1)
        rows.append([f"{figure:.{2 + i % 2}f}" for figure in figures])
    seen = impossible_triples(*zip(*rows, strict=True), tasks=tasks, runs=runs)
    right = [[possible(*row, tasks, runs, divisor) for divisor in (runs, runs - 1)] for row in rows]
    np.testing.assert_array_equal(seen.possible.values.astype(bool), right)
    print(f"{tasks} tasks x {runs} runs: {np.sum(right, axis=0).tolist()} of 60 are possible, by form")
    assert 20 <= np.any(right, axis=1).sum() <= 55
    assert seen.form.values.tolist() == list(FORMS)


def test_figures_that_fit_one_by_one_and_need_a_task_too_many():
    """Two tasks, two runs: one always passes and both are mixed, by the figures."""
    seen = impossible_triples(["1.00"], ["0.50"], ["0.25"], tasks=2, runs=2).isel(row=0)
    assert (seen.rate_possible, seen.stable_possible, seen.variance_possible[0]) == (1, 1, 1)
    assert seen.possible.values.tolist() == [0, 0]


def test_an_impossible_triple_in_a_header():
    board = simulate.board(2, 100, 5, seed=1)
    config = board.config.values[0]
    figures = {"rate": "0.596", "stable": "0.475", "variance": "0.0436", "runs": 5}
    seen = audit(board, header={config: figures})
    assert ("error", "impossible_triple", config) in found(seen)
    assert "not even stable and variance alone" in seen.detail.values[seen.kind.values == "impossible_triple"].item()
    fine = audit(board, header={config: figures | {"tasks": 99}})
    assert "impossible_triple" not in fine.kind.values


def test_triples_that_are_too_many_to_go_through():
    seen = impossible_triples(["0.5", "0.5"], ["0.1", "0.1"], ["0.2", "0.9"], tasks=2000, runs=20)
    assert seen.possible.isnull().values.tolist() == [[True, True], [False, False]]
    assert seen.reason.values.tolist() == [TOO_MANY, ""]
    assert seen.variance_possible[1].values.tolist() == [0, 0]


def test_arguments_of_triples_are_checked():
    for wrong, match in (
        ({"tasks": 100, "runs": 1}, "runs"),
        ({"tasks": 0, "runs": 5}, "tasks"),
        ({"tasks": [1, 2], "runs": 5}, "as many of each"),
    ):
        with pytest.raises(ArgumentError, match=match):
            impossible_triples(["0.5"], ["0.5"], ["0.1"], **wrong)
    with pytest.raises(ArgumentError, match="'nan' is not a number"):
        impossible_triples(["nan"], ["0.5"], ["0.1"], tasks=10, runs=5)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"c0": {"rate": float("nan")}}, "finite"),
        ({"c0": {"rate": 64}}, "divide percentages by 100"),
        ({"c0": {"runs": 4.5}}, "whole number"),
        ({"c0": 5}, "give a mapping"),
    ],
)
def test_headers_that_are_none(header, said):
    with pytest.raises(ArgumentError, match=said):
        audit(counted([1, 0, 1], 1), header=header)


def test_copied_runs_are_a_question_that_the_audit_asks():
    """One entry of five never varies in 40 tasks of 3 runs, where the others do on half of theirs."""
    rng = np.random.default_rng(0)
    successes = rng.binomial(3, 0.5, (5, 40))
    successes[2] = np.tile([0, 3], 20)
    found = audit(counted(successes, 3))
    rows = found.isel(finding=np.flatnonzero(found.kind == "copied_runs"))
    assert rows.config.values.tolist() == ["c2"]
    assert "not a charge" in rows.detail.item()
