"""Near tie and its siblings: targets, panels, exactness at the margin, inclusion, what an answer says of itself."""

import warnings
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from boards import counted
from evalbayes import pairs
from evalbayes.answer import check
from evalbayes.errors import ArgumentError, NotIdentifiedError, OutcomesError
from evalbayes.outcomes import from_counts
from evalbayes.pairs.targets import BY_INCLUSION, METHODS, SERVES

RNG = np.random.default_rng(5)
BOARD = counted(
    RNG.binomial(1, np.array([[0.5, 0.1, 0.5, 0.5, 0.9, 0.5, 0.25, 0.5, 0.75]]).T, (9, 30)), 1
).assign_coords(vendor=("config", list("aabbccdde")), repo=("task", np.repeat(list("uvwxyz"), 5)))
RAGGED = counted(RNG.binomial(trials := RNG.integers(1, 5, (7, 12)), 0.5), trials)
TARGETS = list(product(("fixed", "sampled"), repeat=2))


def scored_exactly(board, config, tasks=None):
    k, n = board.successes.values[config], board.trials.values[config]
    use = np.flatnonzero(n) if tasks is None else tasks
    return sum(Fraction(int(k[t]), int(n[t])) for t in use) / len(use)


def by_loop(scores, margin):
    ties = [abs(a - b) <= margin for a, b in combinations(scores, 2)]
    return Fraction(sum(ties), len(ties))


@pytest.mark.parametrize(("configs", "tasks"), TARGETS)
@pytest.mark.parametrize("method", METHODS)
def test_each_method_serves_its_target_and_is_refused_for_others(method, configs, tasks):
    ask = {"configs": configs, "tasks": tasks, "method": method, "draws": 50, "cluster": "repo"}
    if method not in SERVES[configs, tasks]:
        with pytest.raises(NotIdentifiedError, match="does not cover"):
            pairs.near_tie(BOARD, 0.1, **ask)
        return
    found = check(pairs.near_tie(BOARD, 0.1, **ask))
    assert found.method == method
    assert (found.scores, found.inclusion, found.weights, found.margin) == ("observed", "all pairs", "equal", 0.1)
    assert found.new_runs == (method != "exact")
    assert found.fraction == str(by_loop([scored_exactly(BOARD, c) for c in range(9)], Fraction(1, 10)))
    assert bool(np.isfinite(found.interval).all()) == (method != "exact")
    assert ("first_order_share" in found) == (configs == "sampled")


@pytest.mark.parametrize("quantity", ["near_tie", "equality", "discordance"])
@pytest.mark.parametrize("board", [BOARD, RAGGED], ids=["single runs", "ragged"])
@pytest.mark.parametrize(("configs", "tasks"), TARGETS)
def test_every_target_of_every_rule_is_an_answer(quantity, board, configs, tasks):
    margin = (0.2,) if quantity == "near_tie" else ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = check(getattr(pairs, quantity)(board, *margin, configs=configs, tasks=tasks, draws=60))
    assert (found.quantity, found.configs, found.tasks) == (quantity, configs, tasks)
    assert set(pairs.checklist(found)) == {
        "target",
        "fixed",
        "sampled",
        "aggregation order",
        "weights",
        "ties",
        "missing outcomes",
        "uncertainty design",
    }


def test_defaults_and_methods_side_by_side():
    assert pairs.near_tie(BOARD, 0.1, configs="sampled").method == "hoeffding"
    assert pairs.near_tie(BOARD, 0.1, tasks="sampled", draws=20).method == "task_bootstrap"
    assert pairs.near_tie(BOARD, 0.1, tasks="sampled", cluster="repo", draws=20).method == "cluster_bootstrap"
    both = [pairs.near_tie(BOARD, 0.1, configs="sampled", method=m) for m in ("hoeffding", "pair_iid")]
    joined = xr.concat(both, "method", join="exact", coords="different", compat="equals")
    assert joined.estimate.dims == ("method",)
    assert joined.se[0] > joined.se[1]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 500), min_size=2, max_size=8),
    st.sampled_from(["0.05", "0.002", "0.1", "0.3", "0.006", "0.15"]),
)
def test_the_margin_is_the_decimal_that_is_written(solved, margin):
    scores = xr.DataArray(solved, dims="config")
    expected = by_loop([Fraction(k, 500) for k in solved], Fraction(margin))
    for given_as in (margin, float(margin), Fraction(margin)):
        assert pairs.near_tie(scores, given_as, out_of=500).fraction == f"{expected.numerator}/{expected.denominator}"


def test_a_difference_of_exactly_the_margin_is_a_near_tie():
    """25 of 500 tasks at margin 0.05; in floats 275 / 500 - 250 / 500 exceeds 0.05."""
    assert 275 / 500 - 250 / 500 > 0.05
    for apart, expected in ((25, 1.0), (26, 0.0)):
        successes = np.zeros((2, 500), int)
        successes[0, :250], successes[1, : 250 + apart] = 1, 1
        assert pairs.near_tie(counted(successes, 1), 0.05).estimate == expected


@pytest.mark.parametrize("margin", [0, "0.05", 0.25])
def test_ragged_runs_are_compared_as_fractions(margin):
    found = pairs.near_tie(RAGGED, margin)
    expected = by_loop([scored_exactly(RAGGED, c) for c in range(7)], Fraction(str(margin)))
    assert Fraction(found.fraction.item()) == expected
    assert found.runs == "1 to 4"


def test_denominators_too_large_for_integers_are_rounded_and_said_to_be():
    trials = np.array([[97, 89, 83, 79, 73, 71, 67, 61]] * 3)
    board = counted(trials // 2 + np.array([[0], [0], [1]]), trials)
    found = pairs.equality(board)
    assert float(found.estimate) == pytest.approx(1 / 3)
    assert found.fraction == ""
    assert "after rounding" in pairs.checklist(found)["ties"]


def test_scores_that_are_equal_stay_equal_after_rounding():
    """Three tasks at 1/3 against one at 3/3 and two at 0, beside tasks whose denominators make integers too large."""
    trials = np.array([[3, 3, 3, 97, 89, 83, 79, 73, 71, 67, 61]] * 3)
    successes = np.minimum(trials, 40)
    successes[:, :3] = [[1, 1, 1], [3, 0, 0], [2, 0, 0]]
    board = counted(successes, trials)
    assert pairs.equality(board).fraction == ""
    assert float(pairs.equality(board).estimate) == pytest.approx(1 / 3)


def test_order_of_configs_and_tasks_changes_nothing():
    shuffled = BOARD.isel(config=RNG.permutation(9), task=RNG.permutation(30))
    for ask in (
        {"configs": "sampled"},
        {"configs": "sampled", "method": "config_bootstrap"},
        {"configs": "sampled", "method": "block_bootstrap", "blocks": "vendor"},
        {"tasks": "sampled", "cluster": "repo"},
        {"configs": "sampled", "tasks": "sampled"},
    ):
        xr.testing.assert_identical(*(pairs.near_tie(b, 0.1, draws=100, **ask) for b in (BOARD, shuffled)))
    xr.testing.assert_identical(pairs.thinning(BOARD, draws=50), pairs.thinning(shuffled, draws=50))


def test_discordance_against_a_loop():
    p = (RAGGED.successes / RAGGED.trials).values
    loop = [(a * (1 - b) + b * (1 - a)).mean() for a, b in combinations(p, 2)]
    found = pairs.discordance(RAGGED)
    assert float(found.estimate) == pytest.approx(np.mean(loop), abs=1e-12)
    assert Fraction(found.fraction.item()) == pytest.approx(np.mean(loop), abs=1e-12)


# Panels: missing cells.


def gappy(missing):
    trials = np.ones((4, 6), int)
    for config, task in missing:
        trials[config, task] = 0
    successes = np.array([[1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1]])
    return counted(successes * trials, trials)


def test_missing_cells_shrink_the_panel_and_the_answer_says_so():
    board = gappy([(0, 5), (2, 0)])
    found = pairs.near_tie(board, 0.2)
    expected = by_loop([scored_exactly(board, c, [1, 2, 3, 4]) for c in range(4)], Fraction(1, 5))
    assert Fraction(found.fraction.item()) == expected
    assert (found.panel, found.panel_tasks, found.board_tasks) == ("shared", 4, 6)
    text = pairs.checklist(found)["missing outcomes"]
    assert text.startswith("4 tasks on which every config was scored, of 6 on the board")


def test_a_table_read_in_parts_is_the_same_panel(monkeypatch):
    boards = [BOARD, RAGGED, gappy([(0, 5), (2, 0)])]
    asked = [(board, panel) for board in boards for panel in ("shared", "own")]
    whole = [pairs.near_tie(board, 0.2, panel=panel) for board, panel in asked]
    monkeypatch.setattr("evalbayes.pairs.panel.CACHED", 1)
    for (board, panel), found in zip(asked, whole, strict=True):
        xr.testing.assert_identical(pairs.near_tie(board, 0.2, panel=panel), found)


def test_own_tasks_are_another_panel_and_still_exact():
    board = gappy([(0, 5), (2, 0), (2, 1)])
    found = pairs.near_tie(board, "0.1", panel="own")
    scores = [scored_exactly(board, c) for c in range(4)]
    assert Fraction(found.fraction.item()) == by_loop(scores, Fraction(1, 10))
    assert (found.panel, float(found.panel_coverage)) == ("own", pytest.approx(4 / 6))
    assert "own tasks" in pairs.checklist(found)["missing outcomes"]
    drawn = pairs.near_tie(
        counted(np.tile(board.successes, 8), np.tile(board.trials, 8)), 0.1, panel="own", tasks="sampled", draws=50
    )
    assert np.isfinite(drawn.se)


def test_configs_that_share_no_task_are_never_compared():
    board = gappy([*((0, t) for t in (3, 4, 5)), *((1, t) for t in (0, 1, 2))])
    with pytest.raises(NotIdentifiedError, match="no common panel"):
        pairs.near_tie(board, 0.1)
    with pytest.raises(NotIdentifiedError, match="'c0' and 'c1' share no task"):
        pairs.near_tie(board, 0.1, panel="own")
    with pytest.raises(NotIdentifiedError, match="'c3' has no scored run"):
        pairs.near_tie(gappy([(3, t) for t in range(6)]), 0.1)
    with pytest.raises(NotIdentifiedError, match="one config"):
        pairs.near_tie(BOARD.isel(config=[0]), 0.1)


# Inclusion and weights.


def test_weights_of_configs_and_of_pairs_against_a_loop():
    v = RNG.integers(1, 5, 9)
    scores = [scored_exactly(BOARD, c) for c in range(9)]
    tied = {(i, j): abs(scores[i] - scores[j]) <= Fraction(1, 10) for i, j in combinations(range(9), 2)}
    weight = {(i, j): int(v[i] * v[j]) for i, j in tied}
    expected = Fraction(sum(weight[d] for d in tied if tied[d]), sum(weight.values()))
    table = xr.DataArray(np.outer(v, v), dims=("config", "other"))
    for weights in (v, xr.DataArray(v, dims="config", coords={"config": BOARD.config}), np.outer(v, v), table):
        found = pairs.near_tie(BOARD, 0.1, weights=weights)
        assert Fraction(found.fraction.item()) == expected
    one, two = (
        pairs.near_tie(BOARD, 0.1, weights=w, configs="sampled", method="config_bootstrap", draws=100)
        for w in (v, np.outer(v, v))
    )
    np.testing.assert_allclose(one.interval, two.interval, atol=1e-12)
    for method in ("hoeffding", "jackknife", "pair_iid"):
        with pytest.raises(NotIdentifiedError, match="count the same"):
            pairs.near_tie(BOARD, 0.1, weights=v, configs="sampled", method=method)
    assert BY_INCLUSION["weights"] == ("dyadic", "config_bootstrap")


def test_a_pair_of_weight_nought_is_left_out():
    weights = np.ones((9, 9))
    weights[0, 1:] = weights[1:, 0] = 0
    found = pairs.near_tie(BOARD, 0.1, weights=weights.astype(int))
    assert found.fraction == pairs.near_tie(BOARD.isel(config=slice(1, None)), 0.1).fraction
    assert found.pairs == 28


def test_weights_in_a_plain_array_are_in_the_order_of_the_board():
    order = RNG.permutation(9)
    v = np.arange(1, 10)
    first = pairs.near_tie(BOARD, 0.1, weights=v)
    second = pairs.near_tie(BOARD.isel(config=order), 0.1, weights=v[order])
    assert first.fraction == second.fraction
    square = np.outer(v, v)
    third = pairs.near_tie(BOARD.isel(config=order), 0.1, weights=square[np.ix_(order, order)])
    assert third.fraction == first.fraction


def test_a_users_rule():
    def agree(a, b):
        return a[0] == b[0]

    table = np.equal.outer(BOARD.successes.values[:, 0], BOARD.successes.values[:, 0])
    found = pairs.summary(BOARD, agree, configs="sampled")
    assert found.quantity == "pair_rule"
    xr.testing.assert_identical(found, pairs.summary(BOARD, table, configs="sampled"))
    assert Fraction(found.fraction.item()) == Fraction(int(table.sum() - 9) // 2, 36)
    drawn = pairs.summary(BOARD, agree, configs="sampled", method="config_bootstrap", draws=50)
    assert np.isfinite(drawn.se)
    with pytest.raises(OutcomesError, match=r"not symmetric: it differs between \('c0', 'c1'\)"):
        pairs.summary(BOARD, np.triu(np.ones((9, 9)), 1))
    with pytest.raises(NotIdentifiedError, match="own tasks only"):
        pairs.summary(BOARD, agree, tasks="sampled")
    thirds = np.array([[Fraction(1, 3)] * 9] * 9)
    assert pairs.summary(BOARD, thirds).fraction == "1/3"


# What cannot be known.


def test_no_spread_has_a_reason_and_no_interval():
    same = counted(np.ones((6, 10), int), 1)
    for ask in (
        *({"configs": "sampled", "method": m} for m in ("hoeffding", "dyadic", "jackknife", "config_bootstrap")),
        {"tasks": "sampled"},
    ):
        found = pairs.near_tie(same, 0.1, draws=20, **ask)
        assert found.estimate == 1
        assert np.isnan(found.interval).all()
        assert found.reason.item()
    assert not pairs.diagnostic(same, 0.1).passed


def test_too_few_units_have_a_reason():
    three = BOARD.isel(config=slice(3))
    assert "3 configs: hoeffding needs 4" in pairs.near_tie(three, 0.1, configs="sampled").reason.item()
    few = pairs.near_tie(BOARD.isel(task=slice(10)), 0.1, tasks="sampled", cluster="repo")
    assert "2 clusters" in few.reason.item()
    with pytest.raises(NotIdentifiedError, match="need four"):
        pairs.diagnostic(three, 0.1)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ({"margin": -0.1}, "margin=-0.1"),
        ({"margin": "many"}, "margin='many'"),
        ({"margin": float("nan")}, "margin=nan"),
        ({"configs": "new"}, "configs='new'"),
        ({"method": "bootstrap"}, "is not one of exact"),
        ({"copies": "in"}, "copies='in'"),
        ({"panel": "any"}, "panel='any'"),
        ({"blocks": "vendor", "weights": [1] * 9}, "not both"),
        ({"weights": [0] * 9}, "above 0"),
        ({"draws": 1}, "draws=1"),
        ({"tasks": "sampled", "method": "cluster_bootstrap"}, "cluster="),
        ({"configs": "sampled", "method": "block_bootstrap", "blocks": "vendor", "copies": "ties"}, "copies='ties'"),
    ],
)
def test_bad_arguments_are_named(ask, words):
    with pytest.raises(ArgumentError, match=words):
        pairs.near_tie(BOARD, **({"margin": 0.1} | ask))


def test_scores_alone_serve_fixed_tasks_only():
    scores = xr.DataArray([1, 2, 3, 9], dims="config")
    with pytest.raises(NotIdentifiedError, match="give the board"):
        pairs.near_tie(scores, 0.1, tasks="sampled", out_of=10)
    with pytest.raises(ArgumentError, match="out_of"):
        pairs.near_tie(scores / 10, 0.1)
    with pytest.raises(ArgumentError, match="out_of=5"):
        pairs.near_tie(scores, 0.1, out_of=5)
    with pytest.raises(OutcomesError, match="no config coord 'team'"):
        pairs.near_tie(BOARD, 0.1, blocks="team")


def test_influence_against_boards_without_a_config():
    found = pairs.influence(BOARD, 0.1)
    whole = float(pairs.near_tie(BOARD, 0.1).estimate)
    for config in BOARD.config.values:
        rest = float(pairs.near_tie(BOARD.sel(config=BOARD.config != config), 0.1).estimate)
        assert float(found.without.sel(config=config)) == pytest.approx(rest, abs=1e-12)
        assert float(found.change.sel(config=config)) == pytest.approx(rest - whole, abs=1e-12)


def test_coverage_by_enumeration_against_every_board():
    """All 2^5 boards of five configs and one task, each weighted by its probability, through near_tie itself."""
    p, size, theta = 0.3, 5, 0.58
    for method in ("hoeffding", "dyadic", "jackknife", "pair_iid"):
        total = passes = both = 0.0
        for ones in product((0, 1), repeat=size):
            answer = pairs.equality(xr.DataArray(list(ones), dims="config"), out_of=1, configs="sampled", method=method)
            weight = p ** sum(ones) * (1 - p) ** (size - sum(ones))
            low, high = answer.interval.values
            # Without an estimate of spread the enumeration takes an interval of no width, which misses 0.58.
            total += (low <= theta <= high) * weight
            passes += answer.regular.item() * weight
            both += (low <= theta <= high and answer.regular.item()) * weight
        found = pairs.exact_coverage(size, p, method)
        expected = (total, passes, both / passes)
        np.testing.assert_allclose([found.coverage, found.passes, found.coverage_given_pass], expected, atol=1e-12)
    # Of pair_iid, the last: some states that cover do not pass.
    assert both < total


def test_coverage_of_another_kernel_and_bad_arguments():
    both = pairs.exact_coverage(40, "0.2", "dyadic", kernel=lambda x, y: x * y)
    assert float(both.theta) == pytest.approx(0.04)
    assert 0.5 < float(both.coverage) < 0.95
    unequal = pairs.exact_coverage(40, 0.2, "dyadic", kernel=lambda x, y: int(x != y))
    assert float(unequal.coverage) == pytest.approx(float(pairs.exact_coverage(40, 0.2, "dyadic").coverage), abs=1e-12)
    with pytest.raises(NotIdentifiedError, match="pair_iid"):
        pairs.exact_coverage(40, 0.2, "dyadic", edges="independent")
    for bad in ({"M": 3}, {"method": "wald"}, {"kernel": "other"}, {"kernel": lambda x, y: x - y}, {"edges": "few"}):
        with pytest.raises(ArgumentError):
            pairs.exact_coverage(**({"M": 40, "p": 0.2, "method": "dyadic"} | bad))


def test_checklist_is_for_answers_about_pairs():
    with pytest.raises(ArgumentError, match=r"evalbayes\.pairs"):
        pairs.checklist(from_counts([[1]], [[1]], configs=["a"], tasks=["t"]))
