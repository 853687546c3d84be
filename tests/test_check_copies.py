"""Copies: p-values against enumeration, bounds against scipy, false alarms, and planted copies found and no others."""

import itertools

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from statsmodels.stats.multitest import multipletests

from boards import counted, orders, recorded
from evalbayes import datasets, read, simulate
from evalbayes.check import copies
from evalbayes.check.copies import CAUTION, NOT_REPEATED, STILL
from evalbayes.check.runs import NO_OUTCOME
from evalbayes.errors import ArgumentError
from evalbayes.outcomes import apply_error_policy
from evalbayes.schema import ABSENT, ERROR, FAIL, PASS
from evalbayes.textbook import holm

GAPS = np.array(
    [[1, 0, 1, 0], [0, 0, 1, ABSENT], [1, ERROR, 0, 0], [1, 1, 1, 1], [ABSENT, ABSENT, 1, 0], [0, 0, 0, 1]], np.int8
)


def disagreements(states, a, b):
    return sum({row[a], row[b]} == {FAIL, PASS} for row in states)


def test_pairs_of_runs_are_those_of_full_enumeration():
    seen = copies(recorded([GAPS]))
    every = orders(GAPS)
    assert len(every) == 6 * 3 * 3 * 2 * 4
    for i, (a, b) in enumerate(itertools.combinations(range(4), 2)):
        own = disagreements(GAPS, a, b)
        exact = np.mean([disagreements(states, a, b) <= own for states in every])
        assert seen.disagreements[0, i] == own
        assert seen.shared[0, i] == ((GAPS[:, a] >= FAIL) & (GAPS[:, b] >= FAIL)).sum()
        assert seen.p[0, i] == pytest.approx(exact)
        assert (seen.run_a[i], seen.run_b[i]) == (str(a + 1), str(b + 1))
    np.testing.assert_allclose(seen.p_holm[0], holm(seen.p.values[0]))


def test_holm_is_that_of_statsmodels():
    p = np.random.default_rng(0).uniform(size=20) ** 3
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1])
    assert np.isnan(holm(np.array([np.nan]))).all()


def test_what_is_expected_of_a_pair_is_what_its_other_pairs_did():
    """The mean over a task's other scored pairs, by loops; tasks with no other pair count as the rest on average."""
    seen = copies(recorded([GAPS]))
    for i, pair in enumerate(itertools.combinations(range(4), 2)):
        rates, shared = [], 0
        for row in GAPS:
            scored = np.flatnonzero(row >= FAIL)
            if set(pair) <= set(scored):
                shared += 1
                others = [p for p in itertools.combinations(scored, 2) if p != pair]
                rates += [np.mean([row[a] != row[b] for a, b in others])] if others else []
        assert seen.expected[0, i] == pytest.approx(np.mean(rates) * shared)


def test_the_bound_on_the_share_that_varies_is_clopper_and_pearsons():
    board = simulate.board(12, 20, 3, seed=2, config_sd=3)
    seen = copies(board, prob=0.9)
    for varied, bound in zip(seen.varied.values, seen.share_upper.values, strict=True):
        exact = stats.binomtest(int(varied), 20, alternative="less").proportion_ci(0.9, "exact").high
        assert bound == pytest.approx(exact)
    assert copies(counted([[1, 1]], 2)).share_upper.item() == 1


def test_case_47_no_flips_seen_is_not_no_noise():
    """Eight cells of two runs: at most 1 - 0.05^(1/8) = 0.312 of cells vary, and nothing to hold that against."""
    passes = [1, 1, 0, 0, 1, 0, 1, 0]
    seen = copies(recorded([np.stack([passes, passes], axis=1)]))
    assert seen.share_upper.item() == pytest.approx(1 - 0.05 ** (1 / 8))
    assert round(seen.share_upper.item(), 3) == 0.312
    assert (seen.repeated.item(), seen.varied.item(), bool(seen.suspicious.item())) == (8, 0, False)
    assert seen.steady_p.isnull().all()
    assert seen.p.isnull().all()
    assert seen.attrs["pairs"].startswith("fewer than three runs")
    assert seen.attrs["verdict"] == f"{STILL}; no cell varies in 'c0' (at most 31.2% of its cells would)"


@pytest.mark.parametrize("errors", [0.0, 0.1])
def test_no_alarm_on_fresh_runs(errors):
    """60 boards. Pairs of runs: a familywise rate of 5% at most, so more than 10 boards have a chance of 4e-4. The
    other two have none to speak of, as every config flips often."""
    boards = [copies(simulate.board(5, 40, 4, seed=seed, errors=errors)) for seed in range(200, 260)]
    alarms = np.array([seen.suspicious.any().item() for seen in boards])
    p = np.concatenate([seen.p.values.ravel() for seen in boards])
    print(f"errors {errors}: {alarms.sum()} of 60 boards; p <= 0.05 in {(p <= 0.05).mean():.3f} of pairs")
    assert alarms.sum() <= 10
    assert stats.binom.sf(10, 60, 0.05) < 4e-4
    # Pairs of one config depend on each other: six of them count as one at worst, 300 configs, 4.5 standard errors.
    assert (p <= 0.05).mean() <= 0.05 + 4.5 * np.sqrt(0.05 * 0.95 / 300)


@pytest.fixture(scope="module")
def copied():
    """Six configs of 60 tasks and 3 runs, where run 2 of config 3 is run 1 again."""
    board = simulate.board(6, 60, 3, seed=4, errors=0.05)
    states = board["outcome"].values.copy()
    states[3, :, 1] = states[3, :, 0]
    return recorded(states)


def test_a_copied_run_is_found_and_no_other(copied):
    seen = copies(copied)
    print(seen.attrs["verdict"])
    assert seen.suspicious.values.tolist() == [False, False, False, True, False, False]
    found = (seen.p_holm <= 0.05).values
    assert found.sum() == 1
    assert found[3, 0]
    assert seen.disagreements[3, 0] == 0
    assert seen.expected[3, 0] > 10
    assert seen.expected_elsewhere[3, 0] > 5
    assert "runs '1' and '2' disagree on 0 of " in seen.why[3].item()
    assert seen.attrs["verdict"].endswith(CAUTION)
    # Every task where run 3 differs agrees in one of three ways to place it: a chance of 1 in 3 each.
    state = copied["outcome"].values[3]
    differ = ((state >= FAIL).all(1) & (state.min(1) != state.max(1))).sum()
    assert seen.p[3, 0] == pytest.approx(3.0**-differ)


def test_a_partly_copied_run_is_found():
    board = simulate.board(4, 150, 4, seed=5)
    states = board["outcome"].values.copy()
    states[1, :110, 3] = states[1, :110, 0]
    seen = copies(recorded(states))
    assert seen.suspicious.values.tolist() == [False, True, False, False]
    assert seen.disagreements[1, 2] > 0
    assert np.argmin(seen.p_holm.values[1]) == 2


@pytest.mark.parametrize("identity", [True, False])
def test_a_config_that_never_flips_is_asked_about(identity):
    """All runs of one config are its first: a cache and a deterministic system look the same, with run names or not."""
    board = simulate.board(5, 60, 2, seed=6)
    states = board["outcome"].values.copy()
    states[2] = states[2, :, :1]
    board = recorded(states)
    seen = copies(board if identity else board.drop_dims("run"))
    assert seen.suspicious.values.tolist() == [False, False, True, False, False]
    assert seen.varied[2] == 0
    assert seen.share_upper[2] == pytest.approx(1 - 0.05 ** (1 / 60))
    assert "none of 60 cells varies" in seen.why[2].item()
    assert "deterministic system" in seen.attrs["verdict"]
    assert seen.steady_p.notnull().sum() == 1


def test_the_chance_never_to_flip_is_that_of_the_others_at_ones_own_score():
    board = simulate.board(5, 60, 3, seed=6)
    states = board["outcome"].values.copy()
    states[2] = states[2, :, :1]
    seen = copies(recorded(states))
    flips, unrelated = 0.0, 0.0
    for c in (0, 1, 3, 4):
        score = states[c].mean()
        flips += np.mean([row[a] != row[b] for row in states[c] for a, b in itertools.combinations(range(3), 2)])
        unrelated += 2 * score * (1 - score)
    own = states[2].mean()
    rate = 2 * own * (1 - own) * flips / unrelated
    assert seen.flip_rate_elsewhere[2] == pytest.approx(rate)
    assert seen.steady_p[2] == pytest.approx((1 - rate) ** 60)
    np.testing.assert_allclose(seen.steady_p_holm[2], min(1, 5 * (1 - rate) ** 60))


def test_a_config_that_always_fails_is_not_asked_about():
    board = simulate.board(5, 60, 3, seed=7)
    states = board["outcome"].values.copy()
    states[0], states[1] = FAIL, PASS
    seen = copies(recorded(states))
    assert not seen.suspicious.any()
    assert seen.steady_p.values[:2].tolist() == [1.0, 1.0]
    assert "no cell varies in 'c0' (at most 4.9%" in seen.attrs["verdict"]


def test_an_entry_under_two_names_is_found():
    board = simulate.board(6, 50, 3, seed=8).drop_dims("run")
    k, n = board["successes"].values, board["trials"].values
    seen = copies(counted(np.vstack([k, k[4]]), np.vstack([n, n[4]])))
    assert seen.twin.values.tolist() == ["", "", "", "", "c6", "", "c4"]
    assert seen.suspicious.values.tolist() == [False] * 4 + [True, False, True]
    assert "the counts of 'c6' on every task" in seen.why[4].item()
    rerun = stats.hypergeom.pmf(k[4], 6, 2 * k[4], 3).prod()
    assert seen.twin_rerun_p[4] == pytest.approx(rerun)
    assert seen.twin_p_adjusted[4] == pytest.approx(21 * seen.twin_p[4])
    assert seen.twin_expected[4] < 50


def test_the_chance_of_a_twin_is_that_of_permuted_tasks():
    """Two configs alone are one stratum: all orders of the six tasks run twice; the one run once stays in its place."""
    k, n = np.array([2, 2, 0, 1, 0, 2, 1]), np.array([2, 2, 2, 2, 2, 2, 1])
    seen = copies(counted([k, k], n))
    agree = [sum(k[list(order)] == k[:6]) + 1 for order in itertools.permutations(range(6))]
    assert seen.twin_expected[0] == pytest.approx(np.mean(agree))
    assert seen.twin_p[0] == pytest.approx(np.mean(np.array(agree) == 7))
    np.testing.assert_allclose(seen.twin_p, seen.twin_p_adjusted)


def test_tasks_change_places_among_those_as_hard_for_others():
    """Ten tasks that others find easy and ten that they find hard: the chance is the product over the two."""
    twin = np.repeat([1, 1, 1, 1, 0, 1, 0, 0, 0, 0], 2)
    other = np.repeat([1, 0], 10)
    seen = copies(counted([twin, twin, other, other], 1))
    assert seen.twin_p[0] == pytest.approx(1 / 45 / 45)
    assert seen.twin_expected[0] == pytest.approx(2 * (64 + 4) / 10)
    assert seen.twin_rerun_p[0] == 1


def test_entries_that_agree_because_tasks_are_easy_or_hard_are_not_asked_about():
    """Two strong entries that fail the very tasks all others fail, and two that fail them all."""
    rng = np.random.default_rng(0)
    rest = (rng.random((8, 40)) < 0.5) & (np.arange(40) >= 6)
    strong = np.tile(np.arange(40) >= 6, (2, 1))
    seen = copies(counted(np.vstack([rest, strong, np.zeros((2, 40))]).astype(int), 1))
    assert seen.twin.values[8:].tolist() == ["c9", "c8", "c11", "c10"]
    assert not seen.suspicious.any()
    assert seen.twin_p[8] == pytest.approx(1)
    assert seen.twin_p[10] == pytest.approx(1)


def test_entries_alike_by_chance_are_seldom_asked_about():
    """60 boards of 20 configs on 12 tasks, where many have a twin: alarms on 5% at most, more than 10 have a chance of
    4e-4."""
    boards = [copies(simulate.board(20, 12, 1, seed=seed)) for seed in range(60)]
    twins = sum((seen.twin != "").any().item() for seen in boards)
    alarms = sum(seen.suspicious.any().item() for seen in boards)
    print(f"60 boards: twins on {twins}, alarms on {alarms}")
    assert twins >= 20
    assert alarms <= 10


def test_a_single_run_of_each_task():
    """Repeats say nothing; an entry under two names is found all the same."""
    board = simulate.board(5, 60, 1, seed=9)
    states = board["outcome"].values
    seen = copies(recorded(np.concatenate([states, states[:1]])))
    assert seen.reason.values.tolist() == [NOT_REPEATED] * 6
    assert seen.sizes["pair"] == 0
    assert seen.share_upper.isnull().all()
    assert seen.flip_rate.isnull().all()
    assert seen.suspicious.values.tolist() == [True, False, False, False, False, True]


def test_a_board_of_counts_alone():
    seen = copies(datasets.load("repeated_runs"))
    assert seen.sizes["pair"] == 0
    assert seen.attrs["pairs"] == NO_OUTCOME
    assert not seen.suspicious.any()
    assert (seen.reason == "").all()


def test_configs_with_nothing_scored(copied):
    """An absent config has a reason and changes nothing about the others."""
    states = np.concatenate([copied["outcome"].values, np.full((2, 60, 3), ABSENT)])
    states[7] = ERROR
    seen, plain = copies(recorded(states)), copies(copied)
    assert seen.reason.values.tolist() == [""] * 6 + [NOT_REPEATED] * 2
    assert seen.twin.values.tolist() == [""] * 8
    for name in ("p_holm", "share_upper", "flip_rate_elsewhere", "expected"):
        np.testing.assert_allclose(seen[name][:6], plain[name])
        assert seen[name][6:].isnull().all()


def test_order_of_configs_and_tasks(copied):
    seen = copies(copied)
    other = copies(copied.isel(config=slice(None, None, -1), task=slice(None, None, -1))).sel(config=copied.config)
    xr.testing.assert_allclose(other, seen)


def test_errored_runs_are_failures_where_the_policy_says_so():
    board = recorded([GAPS])
    failed = copies(apply_error_policy(board, "failure"))
    plain = copies(recorded([np.where(GAPS == ERROR, FAIL, GAPS)]))
    for name in ("p", "disagreements", "expected", "varied", "share_upper"):
        np.testing.assert_array_equal(failed[name], plain[name])


def test_arguments_are_checked():
    with pytest.raises(ArgumentError, match="prob=1"):
        copies(simulate.board(2, 5, 2), prob=1)


def test_real_boards(shared_data):
    """Trials of tau-bench differ as fresh runs do. One of 83 entries of Terminal-Bench 2 has one outcome all over in
    each of 88 cells, 85 of them run five times; the next has 8 cells that vary."""
    airline = copies(read(shared_data / "tau_bench_airline.csv"))
    assert not airline.suspicious.any()
    assert airline.disagreements.values.tolist() == [[19, 17, 14, 12, 11, 15]]
    seen = copies(read(shared_data / "terminal_bench_2_counts.csv.gz"))
    assert seen.config.values[seen.suspicious].tolist() == ["final_claude-4_5-sonnet_at_anthropic"]
    assert np.sort(seen.varied.values)[:2].tolist() == [0, 8]
    assert seen.repeated[seen.suspicious].item() == 88
    assert (seen.twin == "").all()
