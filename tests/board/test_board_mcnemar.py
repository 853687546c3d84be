"""McNemar's tests and the groups made of them: statsmodels, direct formulas, and a sweep written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from boards import counted, recorded
from evalbayes import frequentist, simulate
from evalbayes.board import mcnemar_groups, mcnemar_p
from evalbayes.board.mcnemar import LOWER_BOUND
from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.schema import ABSENT, ERROR

SAME = ("group", "rank", "verdict", "anchor", "p_anchor", "silent_above", "anchor_tied")


def table(both: int, first: int, second: int, neither: int):
    """A board of two entries with so many tasks of each kind."""
    rows = [[1, 1, 0, 0], [1, 0, 1, 0]]
    return counted(np.repeat(rows, [both, first, second, neither], axis=1), 1)


def by_direct_sums(b: int, c: int) -> float:
    """Mid-p: twice the tail of the smaller count, the observed table counted half on each side."""
    if b + c == 0:
        return 1.0
    pmf = stats.binom(b + c, 0.5).pmf
    tail = sum(pmf(i) for i in range(min(b, c))) + pmf(min(b, c)) / 2
    return 2 * tail if b != c else 1 - pmf(b) / 2


def test_exact_p_is_that_of_statsmodels_and_mid_p_that_of_its_sums():
    b, c = np.meshgrid([0, 1, 2, 3, 5, 8, 13, 40, 200], np.arange(0, 60, 3))
    exact, mid = mcnemar_p(b, c), mcnemar_p(b, c, mid_p=True)
    for x, y, seen, half in zip(b.ravel(), c.ravel(), exact.ravel(), mid.ravel(), strict=True):
        right = mcnemar([[0, x], [y, 0]], exact=True).pvalue if x + y else 1.0
        assert seen == pytest.approx(min(right, 1.0), rel=1e-10)
        assert half == pytest.approx(by_direct_sums(int(x), int(y)), rel=1e-10)


@pytest.mark.parametrize(
    ("b", "c", "exact", "mid"), [(0, 0, 1, 1), (10, 3, 0.0923, 0.0574), (12, 3, 0.0352, 0.0213), (4, 4, 1, 0.8633)]
)
def test_case_38_which_p(b, c, exact, mid):
    seen = [round(float(mcnemar_p(b, c, mid_p=half)), 4) for half in (False, True)]
    print(f"b={b}, c={c}: exact {seen[0]}, mid-p {seen[1]}")
    assert seen == [exact, mid]
    group = mcnemar_groups(table(3, b, c, 2), mid_p=True)
    assert group.p[0, 1] == pytest.approx(float(mcnemar_p(b, c, mid_p=True)))
    assert group.attrs["test"] == "McNemar, two-sided, mid-p"


def test_case_39_paired_data():
    """70 both, 12 and 3, 15 neither: exact 0.0352 and a paired SE of 0.0379, where the unpaired test has 0.125."""
    board = table(70, 12, 3, 15)
    seen = mcnemar_groups(board)
    assert f"{seen.p[0, 1].item():.4f}" == "0.0352"
    assert (seen.wins[0, 1], seen.wins[1, 0]) == (12, 3)
    assert seen.group.values.tolist() == [1, 2]
    paired = frequentist.difference(board, method="clustered_normal").sel(config="c0", opponent="c1")
    assert (round(paired.estimate.item(), 4), round(paired.se.item(), 4)) == (0.09, 0.0379)
    unpaired = 2 * stats.norm.sf(0.09 / np.sqrt((0.82 * 0.18 + 0.73 * 0.27) / 100))
    print(f"exact {seen.p[0, 1].item():.4f}, unpaired {unpaired:.3f}")
    assert round(unpaired, 3) == 0.125
    assert seen.attrs["object"].startswith("paired comparison")


@pytest.mark.parametrize(
    ("b", "p", "testable", "verdict", "groups"),
    [
        (0, 1, False, "no discordant task", [1, 1]),
        (5, 0.0625, False, "not testable", [1, 1]),
        (6, 0.03125, True, "anchor", [1, 2]),
    ],
)
def test_case_40_a_test_that_cannot_reach_the_level_is_no_tie(b, p, testable, verdict, groups):
    seen = mcnemar_groups(table(4, b, 0, 3))
    assert seen.p[0, 1] == p
    assert bool(seen.testable[0, 1]) is testable
    assert seen.verdict[1].item() == verdict
    assert seen.group.values.tolist() == groups


def test_mid_p_reaches_the_level_with_one_task_fewer():
    seen = mcnemar_groups(table(4, 5, 0, 3), mid_p=True)
    assert seen.p[0, 1] == 0.03125
    assert bool(seen.testable[0, 1])
    assert not mcnemar_groups(table(4, 4, 0, 3), mid_p=True).testable[0, 1]


@pytest.mark.parametrize("dead", [0, 4, 94])
def test_case_42_dead_tasks_change_no_p_value(dead):
    assert mcnemar_groups(table(dead // 2, 6, 0, dead - dead // 2)).p[0, 1] == 0.03125


def test_case_13_only_shared_tasks_count():
    states = np.array([[[1], [1], [0], [0], [0]], [[1], [1], [1], [ABSENT], [ABSENT]]])
    seen = mcnemar_groups(recorded(states))
    assert (seen.shared[0, 1], seen.wins[0, 1], seen.wins[1, 0], seen.p[0, 1]) == (3, 0, 1, 1)
    assert seen["rank"].values.tolist() == [2, 1]


def test_entries_that_share_no_task_are_not_compared():
    """c1 has the rate of c0 and no task of its own kind: it anchors; c2 shares tasks with both and joins the first."""
    k = [[1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0], [1, 0, 0, 0, 0, 1]]
    n = [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1]]
    seen = mcnemar_groups(counted(k, n))
    assert np.isnan(seen.p[0, 1])
    assert not seen.testable[0, 1]
    assert seen.group.values.tolist() == [1, 2, 1]
    assert seen.anchor.values.tolist() == ["c0", "c1", "c0"]
    assert seen.attrs["pairs"] == 2
    alone = mcnemar_groups(counted(k[:2], n[:2]), correction="holm")
    assert alone.p.values[~np.eye(2, dtype=bool)].tolist() == pytest.approx([np.nan] * 2, nan_ok=True)
    assert alone.group.values.tolist() == [1, 2]
    assert alone.attrs["pairs"] == 0


def swept(k, n, names, level=0.05):
    """The groups by the words of the rule, a pair at a time."""
    rate = {name: row[m > 0].mean() for name, row, m in zip(names, k, n, strict=True) if m.any()}
    rows = {name: (row, m) for name, row, m in zip(names, k, n, strict=True)}
    waiting = sorted(rate, key=lambda name: (-rate[name], name))
    groups, number = {}, 0
    while waiting:
        number += 1
        anchor, (k1, n1) = waiting[0], rows[waiting[0]]
        for name in list(waiting):
            k2, n2 = rows[name]
            both = (n1 > 0) & (n2 > 0)
            b, c = int((both & (k1 > k2)).sum()), int((both & (k1 < k2)).sum())
            p = stats.binomtest(b, b + c).pvalue if b + c else 1.0
            if name == anchor or (both.any() and p > level):
                groups[name] = (number, anchor)
                waiting.remove(name)
    return groups


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(1, 40), st.floats(0, 0.7))
def test_groups_are_those_of_the_rule_in_words(seed, configs, tasks, missing):
    rng = np.random.default_rng(seed)
    n = (rng.random((configs, tasks)) >= missing).astype(int)
    n[0, 0] = 1
    k = (rng.random((configs, tasks)) < rng.random((configs, 1))).astype(int) * n
    board = counted(k, n)
    seen = mcnemar_groups(board)
    right = swept(k, n, board.config.values.tolist())
    named = zip(seen.config.values, seen.group.values, seen.anchor.values, strict=True)
    assert {name: (group, anchor) for name, group, anchor in named if group} == right
    order = rng.permutation(configs)
    shuffled = mcnemar_groups(board.isel(config=order, task=rng.permutation(tasks))).sel(config=board.config)
    for name in SAME:
        np.testing.assert_array_equal(shuffled[name], seen[name])


@pytest.mark.parametrize("method", ["holm", "fdr_bh"])
def test_corrections_are_those_of_statsmodels_over_all_pairs(method):
    board = simulate.board(9, 60, 1, seed=3, config_sd=1.5)
    seen, plain = mcnemar_groups(board, correction=method), mcnemar_groups(board)
    upper = np.triu_indices(9, 1)
    np.testing.assert_allclose(seen.p_adjusted.values[upper], multipletests(seen.p.values[upper], method=method)[1])
    np.testing.assert_array_equal(seen.p, plain.p)
    np.testing.assert_array_equal(seen.p_adjusted, seen.p_adjusted.values.T)
    assert (seen.attrs["pairs"], plain.attrs["note"]) == (36, LOWER_BOUND)
    assert "over all 36 pairs" in seen.attrs["correction"]
    first = [int((one.group == 1).sum()) for one in (plain, seen)]
    print(f"{method}: {plain.attrs['groups']} groups uncorrected, {seen.attrs['groups']} corrected; first {first}")
    assert first[0] <= first[1]
    apart = (seen.p_anchor_adjusted <= 0.05) & (seen.verdict != "anchor")
    assert not apart.any()


def test_case_68_raw_and_adjusted_stand_side_by_side():
    """Three pairs: Holm multiplies the least by 3, the next by 2."""
    board = counted([[1] * 14 + [0] * 6, [1] * 5 + [0] * 15, [0] * 20], 1)
    seen = mcnemar_groups(board, correction="holm")
    raw = sorted(seen.p.values[np.triu_indices(3, 1)])
    adjusted = sorted(seen.p_adjusted.values[np.triu_indices(3, 1)])
    assert adjusted == pytest.approx([3 * raw[0], max(3 * raw[0], 2 * raw[1]), raw[2]])
    assert seen.attrs["pairs"] == 3


def test_a_failed_gate_withholds_group_and_anchor_and_silent_entries_are_counted():
    k = np.array([[1] * 18 + [0] * 2, [1] * 15 + [0] * 5, [0] * 15 + [1] * 5, [0] * 20, [0] * 20])
    n = np.array([[1] * 20] * 3 + [[0] * 20] * 2)
    board = counted(k, n).assign(published=("config", [0.6, 0.75, 0.25, 0.95, 0.5]))
    seen = mcnemar_groups(board, correction="fdr_bh")
    assert seen.gate.values.tolist() == ["failed", "passed", "passed", "no per-task results", "no per-task results"]
    assert seen.group.values.tolist() == [0, 1, 2, 0, 0]
    assert seen.anchor.values.tolist() == ["", "c1", "c2", "", ""]
    assert seen.verdict.values.tolist() == ["withheld", "anchor", "anchor", "withheld", "withheld"]
    assert seen.silent_above.values.tolist() == [1, 1, 2, 0, 1]
    assert seen["rank"].values.tolist() == [1, 2, 3, 0, 0]
    assert seen.p[0].isnull().all()
    assert (seen.wins[0, 2], seen.p[1, 2]) == (15, mcnemar_p(15, 5))
    assert "implies 12 of 20 tasks, the rows have 18" in seen.reason[0].item()
    assert seen.reason[3].item() == "no per-task results"
    assert seen.attrs["pairs"] == 1


def test_an_anchor_that_shares_its_rate_is_said_to():
    seen = mcnemar_groups(counted([[1, 0, 1], [1, 1, 0], [0, 0, 0]], 1))
    assert seen.anchor.values.tolist() == ["c0"] * 3
    assert seen.anchor_tied.all()
    assert not mcnemar_groups(counted([[1, 1, 1], [1, 1, 0], [1, 0, 1]], 1)).anchor_tied.any()
    board = counted([[1, 0, 1], [1, 1, 0]], 1).assign(published=("config", [0.5, 0.667]))
    assert mcnemar_groups(board).anchor.values.tolist() == ["c1"] * 2


def test_repeated_runs_are_refused_or_reduced():
    """Rows of states; half is no majority, an error is no run, and the first run is the first with a score."""
    states = np.array([[[1, 1, 0], [1, 0, ABSENT], [ERROR, 1, 0]], [[0, 1, 1], [0, 0, 1], [1, 0, 0]]])
    board = recorded(states)
    with pytest.raises(NotIdentifiedError, match=r"reduce='majority' or 'first', or test task means with board.sign_"):
        mcnemar_groups(board)
    majority, first = (mcnemar_groups(board, reduce=how) for how in ("majority", "first"))
    np.testing.assert_allclose(majority.rate, [1 / 3, 1 / 3])
    np.testing.assert_allclose(first.rate, [1, 1 / 3])
    assert (majority.wins[0, 1], majority.wins[1, 0], first.wins[0, 1], first.wins[1, 0]) == (0, 0, 2, 0)
    assert first.attrs["reduce"] == "first"
    with pytest.raises(NotIdentifiedError, match="board of counts"):
        mcnemar_groups(board.drop_dims("run"), reduce="first")
    single = simulate.board(3, 20, 1, seed=2)
    for how in ("majority", "first"):
        np.testing.assert_array_equal(mcnemar_groups(single, reduce=how).p, mcnemar_groups(single).p)


def test_arguments_are_checked():
    board = table(1, 2, 3, 4)
    for wrong in ({"level": 0}, {"level": 1.5}, {"correction": "bonferroni"}, {"reduce": "mean"}, {"decimals": -1}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            mcnemar_groups(board, **wrong)
    with pytest.raises(ArgumentError, match="counts of tasks"):
        mcnemar_p(-1, 2)
    with pytest.raises(NotIdentifiedError, match="one config"):
        mcnemar_groups(board.isel(config=[0]))
    with pytest.raises(NotIdentifiedError, match="per-task"):
        mcnemar_groups(counted(np.zeros((2, 3), int), 0))


def test_what_is_withheld_has_no_counts_against_an_anchor():
    """A failed gate: NaN and not 0, which would be a count; and the answer names its target."""
    board = table(10, 8, 3, 4).assign(published=("config", [0.99, 11 / 25]))
    seen = mcnemar_groups(board, decimals=2)
    withheld = seen.isel(config=int(np.flatnonzero(seen.verdict == "withheld")[0]))
    assert np.isnan([withheld[name].item() for name in ("wins_anchor", "losses_anchor", "shared_anchor")]).all()
    assert (seen.attrs["tasks"], seen.attrs["configs"]) == ("sampled", "fixed")
