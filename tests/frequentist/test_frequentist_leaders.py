"""Neighbours and the set that may be best by resampling: the package's pairs, exact enumeration, boards in pieces."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards import counted
from evalbayes import NotIdentifiedError
from evalbayes.answer import check
from evalbayes.board import rank_sets
from evalbayes.frequentist import adjacent, best_set, difference, rank, score, top_k, win_probability
from evalbayes.frequentist.targets import BOOTSTRAPS, COVERS

RNG = np.random.default_rng(0)
RAGGED = RNG.integers(0, 4, size=(5, 12))
RAGGED[:, 0] = 3
RATES = [[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 0, 0]]


def random_board(trials):
    return counted(RNG.binomial(trials, 0.5), trials)


BOARDS = {
    "single runs": random_board(np.ones((5, 12), int)),
    "three runs": random_board(np.full((5, 12), 3)),
    "ragged": random_board(RAGGED),
}


def in_pieces(configs):
    """Three configs of which the first two share no task, and both share tasks with the third: the first so many."""
    trials = 3 * np.array([[1] * 6 + [0] * 6, [0] * 6 + [1] * 6, [1] * 12])[:configs]
    return counted(np.random.default_rng(1).binomial(trials, [[0.8], [0.4], [0.6]][:configs]), trials)


@pytest.mark.parametrize("method", BOOTSTRAPS)
@pytest.mark.parametrize("board", BOARDS)
def test_neighbours_are_the_pairs_of_the_package(board, method):
    """The numbers that all pairs have, probabilities to the last digit; order and ranks are those of the scores."""
    outcomes, tasks = BOARDS[board], COVERS[method][0]
    target = {"tasks": tasks, "method": method, "draws": 200, "prob": 0.9}
    found = check(adjacent(outcomes, **target))
    observed = dict(zip(outcomes.config.values, score(outcomes).estimate.values, strict=True))
    order = sorted(observed, key=lambda name: (-observed[name], name))
    assert found.config.values.tolist() == order[:-1]
    assert found.opponent.values.tolist() == order[1:]
    places = rank(outcomes, draws=50).estimate
    assert found["rank"].values.tolist() == places.sel(config=order[:-1]).values.tolist()
    assert found.opponent_rank.values.tolist() == places.sel(config=order[1:]).values.tolist()
    gaps, wins = difference(outcomes, **target), win_probability(outcomes, **target)
    for i in range(4):
        one = found.isel(pair=i)
        where = {"config": one.config.item(), "opponent": one.opponent.item()}
        gap, win = gaps.sel(where), wins.sel(where)
        for name in ("estimate", "se", "interval", "interval_mcse"):
            # The other way round quantiles are interpolated from the other side.
            np.testing.assert_allclose(one[name], gap[name], rtol=0, atol=1e-14)
        assert one.reason.item() == gap.reason.item()
        assert one.shared_tasks == gap.shared_tasks
        same = [(one.win_probability, win.estimate), (one.tie, win.tie), (one.win_probability_se, win.se)]
        for mine, theirs in same:
            np.testing.assert_array_equal(mine, theirs)
        assert one.unresolved.item() == (0.05 < win.estimate.item() < 0.95)


def exact_wins(rates):
    """P(first above second), half a tie counted, and P(level), over every equally likely draw of tasks."""
    first, second = np.array(rates)
    drawn = np.array(list(product(range(first.size), repeat=first.size)))
    gap = (first - second)[drawn].sum(axis=1)
    return (gap > 0).mean() + (gap == 0).mean() / 2, (gap == 0).mean()


@pytest.mark.parametrize("pair", [0, 1])
def test_win_probabilities_of_neighbours_against_enumeration(pair):
    """20,000 draws against all 256: two probabilities in each of two pairs beyond 4.5 standard errors, 3 in 100,000."""
    found = adjacent(counted(RATES, 1), draws=20_000).isel(pair=pair)
    right = exact_wins(RATES[pair : pair + 2])
    for seen, exact in zip((found.win_probability, found.tie), right, strict=True):
        assert abs(seen.item() - exact) < 4.5 * np.sqrt(exact * (1 - exact) / 20_000)
    assert found.win_probability_se.item() == pytest.approx(
        np.sqrt((right[0] * (1 - right[0]) - right[1] / 4) / 20_000), rel=0.05
    )


@settings(max_examples=4, deadline=None)
@given(st.permutations(range(5)), st.permutations(range(12)), st.integers(0, 3))
def test_case_69_a_shuffled_board_has_the_same_pairs(configs, tasks, seed):
    for name, board in BOARDS.items():
        moved = board.isel(config=list(configs), task=list(tasks))
        for quantity in (adjacent,) if name == "ragged" else (adjacent, best_set):
            mine, theirs = (quantity(one, draws=50, seed=seed) for one in (board, moved))
            assert mine.attrs == theirs.attrs
            assert mine.identical(theirs.sel(config=board.config.values) if quantity is best_set else theirs)


def test_case_67_seed_and_number_of_draws_move_no_pair_and_no_estimate():
    board = BOARDS["three runs"]
    found = [adjacent(board, seed=seed, draws=draws) for seed, draws in ((0, 100), (1, 101), (2, 2000))]
    for other in found[1:]:
        assert other.estimate.identical(found[0].estimate)
        assert (other["rank"].identical(found[0]["rank"]), other.opponent.identical(found[0].opponent)) == (True, True)
    for one in found:
        assert (one.interval[:, 0] <= one.estimate).all()
        assert (one.estimate <= one.interval[:, 1]).all()


def test_what_no_task_moves_is_level_or_withheld_never_resolved():
    """Two copies tie on every board; a config that wins on both of two tasks wins on every board, and on two tasks."""
    board = counted([[1, 1], [1, 1], [0, 0]], 1)
    found = adjacent(board, draws=100)
    assert (found.win_probability.values.tolist(), found.tie.values.tolist()) == ([0.5, 1], [1, 0])
    assert found.verdict.values.tolist() == ["unresolved", "withheld"]
    assert found.unresolved.values.tolist() == [True, False]
    assert all("no certainty" in text for text in found.reason.values)
    assert (found.attrs["unresolved"], found.attrs["pairs"], found.attrs["withheld"]) == (1, 1, 1)


def test_a_pair_without_a_shared_task_is_withheld_and_not_ranked():
    two = adjacent(in_pieces(2))
    assert (two.reason.item(), two.verdict.item(), two.shared_tasks.item()) == ("no shared task", "withheld", 0)
    for name in ("estimate", "se", "win_probability", "win_probability_se", "tie", "rank", "opponent_rank"):
        assert np.isnan(two[name].item()), name
    assert two.attrs["sentence"] == "no adjacent pair can be compared; not compared: c0 and c1 (no shared task)"
    three = adjacent(in_pieces(3))
    shared = dict(
        zip(zip(three.config.values, three.opponent.values, strict=True), three.shared_tasks.values, strict=True)
    )
    for pair, tasks in shared.items():
        assert tasks == (0 if set(pair) == {"c0", "c1"} else 6)
    for side, place in (("config", "rank"), ("opponent", "opponent_rank")):
        assert three[place].isnull().values.tolist() == [name != "c2" for name in three[side].values]


@pytest.mark.parametrize("quantity", [rank, top_k])
def test_configs_that_share_no_task_are_not_ranked_among_each_other(quantity):
    """The third is: it shares tasks with both."""
    for configs in (2, 3):
        found = quantity(in_pieces(configs), draws=100)
        assert found.estimate.isnull().values.tolist() == [True, True, False][:configs]
        assert found.interval.isnull().all("ci_bound").values.tolist() == [True, True, False][:configs]
        assert found.reason.values.tolist() == ["no shared task with 'c1'", "no shared task with 'c0'", ""][:configs]
        if quantity is rank:
            assert found.mid_rank.isnull().values.tolist() == [True, True, False][:configs]


@pytest.mark.parametrize("configs", [2, 3])
def test_no_best_of_configs_that_share_no_task(configs):
    with pytest.raises(NotIdentifiedError, match="best_set: 'c0' has no shared task with 'c1'; leave one of them out"):
        best_set(in_pieces(configs))


def test_who_may_be_best_is_what_the_rank_sets_say():
    """A config without a run is left out; the shares are those of the tasks that all others ran."""
    trials = np.array([[2] * 30, [2] * 30, [0] * 30, [2] * 28 + [0, 0], [2] * 30])
    rates = np.array([[0.9], [0.8], [0.5], [0.7], [0.2]])
    board = counted(np.random.default_rng(3).binomial(trials, rates), trials)
    found, sets = check(best_set(board, draws=300, prob=0.9)), rank_sets(board, draws=300, prob=0.9)
    ran = ["c0", "c1", "c3", "c4"]
    assert found.in_set.sel(config=ran).values.tolist() == sets.may_be_best.values.tolist()
    assert found.lowest.sel(config=ran).values.tolist() == sets.lowest.values.tolist()
    assert found.highest.sel(config=ran).values.tolist() == sets.highest.values.tolist()
    shares = top_k(board.sel(config=ran).isel(task=range(28)), draws=300, prob=0.9)
    np.testing.assert_array_equal(found.p_best.sel(config=ran), shares.estimate)
    np.testing.assert_array_equal(found.se.sel(config=ran), shares.se)
    assert found.shared_tasks.sel(config="c0").item() == 28
    empty = found.sel(config="c2")
    assert np.isnan(empty.estimate.item())
    assert (empty.in_set.item(), empty.reason.item()) == (False, "no scored run")
    assert (found.attrs["size"], found.attrs["configs_ranked"]) == (int(sets.may_be_best.sum()), 4)
    assert (found.set_kind.item(), found.method.item()) == ("confidence set", "two_level_bootstrap")
    assert "no posterior set" in found.set_meaning.item()
    assert found.attrs["sentence"].startswith(
        f"{found.attrs['size']} of 4 entries may be best (90% confidence set): c0"
    )


def test_questions_without_an_answer():
    board = BOARDS["three runs"]
    for quantity in (adjacent, best_set):
        with pytest.raises(NotIdentifiedError, match="one config"):
            quantity(board.isel(config=[0]))
        with pytest.raises(NotIdentifiedError, match="entries that are not on the board"):
            quantity(board, configs="sampled")
        with pytest.raises(ValueError, match="method='clustered_normal' is not one of"):
            quantity(board, method="clustered_normal")
        with pytest.raises(ValueError, match="prob=95"):
            quantity(board, prob=95)
        before = board.copy(deep=True)
        quantity(board, draws=50)
        assert board.identical(before)
    with pytest.raises(NotIdentifiedError, match="does not cover tasks='fixed'"):
        best_set(board, tasks="fixed", method="two_level_bootstrap")
    empty = counted([[1, 1], [0, 0]], [[1, 1], [0, 0]])
    with pytest.raises(NotIdentifiedError, match="fewer than two configs have a scored run"):
        adjacent(empty)
