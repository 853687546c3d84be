"""Situations from practice about boards and pairs, each with the value that is right.

Those that stand with the function they are about: case 14, 23 and 37 in ``board/test_board_audit.py``, 36 in
``board/test_board_standard_errors.py``, 38, 39 and 40 in ``board/test_board_mcnemar.py``, 42 there and in
``board/test_board_sign_flip.py``, 33 in ``frequentist/test_frequentist_score.py``, 61 in ``test_check_runs.py``.
"""

from itertools import permutations, product

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from boards import counted
from evalbayes import frequentist, outcomes, posterior
from evalbayes.board import mcnemar_groups, rank_sets
from evalbayes.textbook import holm, standing, wilson

CASE_64 = np.array([[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 0, 0]])


def of_counts(*solved, tasks):
    return counted([[1] * k + [0] * (tasks - k) for k in solved], 1)


def random_board(seed=0, configs=5, tasks=20, runs=3):
    rng = np.random.default_rng(seed)
    rates = np.linspace(0.8, 0.3, configs)[:, None]
    return counted(rng.binomial(runs, rates, (configs, tasks)), runs)


def test_case_33_clopper_and_pearson_is_wider_than_wilson_where_nothing_passed():
    """0 of 10: 0.2775 and 0.3085."""
    assert round(wilson(np.array([0.0]), np.array([10.0]), 0.95)[0, 1], 4) == 0.2775
    assert round(proportion_confint(0, 10, method="beta")[1], 4) == 0.3085


@pytest.mark.parametrize(
    ("b", "c", "exact"), [(0, 0, 1), (10, 3, 0.0923), (12, 3, 0.0352), (5, 0, 0.0625), (6, 0, 0.03125)]
)
def test_case_38_and_40_the_test_is_named_and_no_discordant_task_is_no_evidence(b, c, exact):
    board = counted([[1] * b + [0] * c + [1, 0], [0] * b + [1] * c + [1, 0]], 1)
    seen = mcnemar_groups(board)
    assert seen.p[0, 1].item() == pytest.approx(exact, abs=5e-5)
    assert seen.attrs["test"] == "McNemar, two-sided, exact"
    assert bool(seen.testable[0, 1]) is (b + c >= 6)


def test_case_39_bars_overlap_where_the_pair_is_resolved():
    """82 and 73 of 100, of which 12 and 3 alone: Wilson's bars overlap, and the paired bootstrap resolves the pair."""
    rows = [[1] * 70 + [1] * 12 + [0] * 18, [1] * 70 + [0] * 12 + [1] * 3 + [0] * 15]
    bars = wilson(np.array([0.82, 0.73]), np.array([100.0, 100.0]), 0.95)
    assert bars.round(3).tolist() == [[0.733, 0.883], [0.636, 0.807]]
    assert bars[0, 0] < bars[1, 1]
    found = frequentist.adjacent(counted(rows, 1))
    assert found.verdict.values.tolist() == ["resolved"]
    assert found.estimate.item() == pytest.approx(0.09)


def test_case_42_dead_tasks_are_counted_and_move_no_p_value():
    """Six tasks that one solved alone, with and without dead ones on either side."""
    for dead in (0, 10, 94):
        rows = [[1] * 6 + [1, 0] * (dead // 2), [0] * 6 + [1, 0] * (dead // 2)]
        board = counted(rows, 1)
        assert mcnemar_groups(board).p[0, 1].item() == 0.03125
        facts = outcomes.describe(board).attrs
        counts = [facts[f"n_tasks_{kind}"] for kind in ("all_pass", "all_fail", "mixed")]
        assert counts == [dead // 2, dead // 2, 6]


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_case_62_level_entries_whatever_the_order_of_rows(order):
    """396, 396 and 394 of 500: ranks 1, 1, 3; mid-ranks 1.5, 1.5, 3; half a win; half of the first place each.

    Of 2,000 boards either has 0.5 of the first places within 4.5 standard errors of a coin's: once in 150,000.
    """
    board = of_counts(396, 396, 394, tasks=500).isel(config=list(order))
    names = ["c0", "c1", "c2"]
    ranks = frequentist.rank(board).sel(config=names)
    assert ranks.estimate.values.tolist() == [1, 1, 3]
    assert ranks.mid_rank.values.tolist() == [1.5, 1.5, 3]
    first = frequentist.top_k(board).estimate.sel(config=names)
    assert first[0] == first[1] == pytest.approx(0.5, abs=4.5 / np.sqrt(4 * 2000))
    assert first.sum().item() == pytest.approx(1, abs=1e-12)
    wins = frequentist.win_probability(board).sel(config="c0", opponent="c1")
    assert (wins.estimate.item(), wins.tie.item()) == (0.5, 1)
    pair = frequentist.adjacent(board).isel(pair=0)
    assert (pair.config.item(), pair.opponent.item()) == ("c0", "c1")
    assert (pair["rank"].item(), pair.opponent_rank.item(), pair.win_probability.item()) == (1, 1, 0.5)


def test_case_62_half_of_the_first_place_each_exactly(fabricate):
    """In every draw level: a posterior has no noise about it, and the win rates are .25, .25 and 1."""
    fit = fabricate(np.ones((3, 3), int), 2, chains=1, draws=20, scores=[[0.347, 0.347, 0.359]] * 20)
    wins = posterior.win_probability(fit).estimate.values
    assert ((wins.sum(axis=1) - 0.5) / 2).tolist() == [0.25, 0.25, 1]
    level = fabricate(np.ones((3, 3), int), 2, chains=1, draws=20, scores=[[0.792, 0.792, 0.788]] * 20)
    assert posterior.top_k(level).estimate.values.tolist() == [0.5, 0.5, 0]
    assert standing(np.array([[0.792, 0.792, 0.788]]))[0].tolist() == [[1, 1, 3]]


def test_case_62_one_win_one_loss_and_98_ties_are_a_half(fabricate):
    """Counting ties in the denominator alone would make it 1%."""
    scores = [[0.6, 0.5]] + [[0.5, 0.6]] + [[0.5, 0.5]] * 98
    fit = fabricate(np.ones((2, 3), int), 2, chains=1, draws=100, scores=scores)
    wins = posterior.win_probability(fit).sel(config="config-0", opponent="config-1")
    assert (wins.estimate.item(), wins.tie.item()) == (0.5, 0.98)
    pair = posterior.adjacent(fit)
    assert (pair.win_probability.item(), pair.tie.item(), pair.unresolved.item()) == (0.5, 0.98, True)


def enumerated(rows, k):
    """P(top k) over every equally likely draw of tasks, a place shared among those level, by a plain loop."""
    configs, tasks = rows.shape
    share = np.zeros(configs)
    for drawn in product(range(tasks), repeat=tasks):
        scores = rows[:, drawn].sum(axis=1)
        for c in range(configs):
            above, level = (scores > scores[c]).sum(), (scores == scores[c]).sum()
            share[c] += min(max(k - above, 0), level) / level
    return share / tasks**tasks


@pytest.mark.parametrize(("k", "right"), [(1, [0.4993, 0.4993, 0.0013]), (2, [0.9694, 0.9694, 0.0612])])
def test_case_64_top_k_with_ties_enumerated_and_drawn(k, right):
    """All 256 draws, and 20,000: each of three shares is beyond 4.5 standard errors once in 150,000."""
    exact = enumerated(CASE_64, k)
    assert exact.round(4).tolist() == right
    assert exact.sum() == pytest.approx(k, abs=1e-12)
    drawn = frequentist.top_k(counted(CASE_64, 1), k=k, draws=20_000, seed=64)
    print(f"top-{k}: exact {exact.round(4)}, of 20,000 draws {drawn.estimate.values.round(4)}")
    assert drawn.estimate.sum().item() == pytest.approx(k, abs=1e-9)
    # A place shared varies less than a whole one: the bound is that of whole places.
    assert (abs(drawn.estimate.values - exact) < 4.5 * np.sqrt(exact * (1 - exact) / 20_000)).all()
    assert (drawn.se.values <= np.sqrt(exact * (1 - exact) / 20_000) * 1.5).all()


def test_case_67_no_reference_and_no_order_moves_a_difference_or_a_rank():
    board = random_board()
    every = frequentist.difference(board)
    turned = board.isel(config=[3, 1, 4, 0, 2], task=range(19, -1, -1))
    for anchor in board.config.values:
        one = frequentist.difference(board, reference=anchor)
        np.testing.assert_allclose(one.estimate, every.estimate.sel(opponent=anchor), rtol=0, atol=1e-15)
        np.testing.assert_allclose(one.interval, every.interval.sel(opponent=anchor), rtol=0, atol=1e-14)
        moved = frequentist.difference(turned, reference=anchor).sel(config=board.config.values)
        assert moved.identical(one)
    assert frequentist.rank(turned).sel(config=board.config.values).identical(frequentist.rank(board))
    assert rank_sets(turned).lowest.sel(config=board.config.values).identical(rank_sets(board).lowest)


def test_case_67_the_point_is_of_the_full_data_and_inside_its_interval():
    """Every estimate that is no share of draws is the same whatever the seed and the number of draws."""
    board = random_board(1)
    for quantity in ("score", "rank", "difference", "adjacent"):
        function = getattr(frequentist, quantity)
        found = [function(board, seed=seed, draws=draws) for seed, draws in ((0, 100), (7, 333), (8, 2000))]
        for one in found:
            assert one.estimate.identical(found[0].estimate), quantity
            assert bool((one.interval.sel(ci_bound="lower") <= one.estimate).all())
            assert bool((one.estimate <= one.interval.sel(ci_bound="upper")).all())


def test_case_68_raw_and_adjusted_in_the_order_given_with_the_number_of_pairs():
    p = np.array([0.01, 0.04, 0.03])
    assert holm(p).round(10).tolist() == [0.03, 0.06, 0.06]
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1])
    board = random_board(2, runs=1)
    seen = mcnemar_groups(board, correction="holm")
    upper = np.triu_indices(5, 1)
    raw, adjusted = seen.p.values[upper], seen.p_adjusted.values[upper]
    np.testing.assert_allclose(adjusted, multipletests(raw, method="holm")[1], atol=1e-12)
    assert (adjusted >= raw).all()
    assert (seen.attrs["pairs"], seen.attrs["correction"]) == (10, "Holm over all 10 pairs")


def test_case_69_adjacent_pairs_come_from_the_data_each_time():
    """Every order of four configs, and the same board with its leader gone: new neighbours, with both ranks."""
    board = random_board(3, configs=4)
    found = frequentist.adjacent(board, draws=50)
    for order in permutations(range(4)):
        moved = board.isel(config=list(order))
        other = frequentist.adjacent(moved, draws=50)
        assert other.identical(found)
        assert other.attrs == found.attrs
    observed = frequentist.score(board).estimate
    order = observed.config.values[np.argsort(-observed.values)].tolist()
    assert found.config.values.tolist() == order[:-1]
    assert (found["rank"].values.tolist(), found.opponent_rank.values.tolist()) == ([1, 2, 3], [2, 3, 4])
    without = frequentist.adjacent(board.sel(config=[name for name in board.config.values if name != order[1]]))
    assert (without.config[0].item(), without.opponent[0].item()) == (order[0], order[2])
    assert (without["rank"][0].item(), without.opponent_rank[0].item()) == (1, 2)
