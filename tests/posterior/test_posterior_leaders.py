"""Neighbours and the set of the best from draws: loops over draws, every subset, shuffled configs, boards in pieces."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evalbayes import NotIdentifiedError, SamplingError, compare, frequentist, posterior
from evalbayes.answer import check
from evalbayes.outcomes import from_counts
from evalbayes.posterior.draws import effective

DRAWS = 40
APART = [[1] * 3 + [0] * 3, [0] * 3 + [1] * 3, [1] * 6]
"""Of three configs the first two share no task, and both share tasks with the third."""


@pytest.fixture(scope="module")
def scored(fabricate):
    """Return a fit whose population scores are given, (draw, config)."""

    def scored(scores, **attrs):
        scores = np.asarray(scores, float)
        return fabricate(np.ones((scores.shape[1], 3), int), 2, chains=1, draws=len(scores), scores=scores, **attrs)

    return scored


@pytest.fixture(scope="module")
def linked(fabricate):
    """Return a fit of the first so many of the configs of `APART`, three runs a cell."""

    def linked(configs):
        trials = 3 * np.array(APART[:configs])
        return fabricate(np.random.default_rng(1).binomial(trials, 0.5), trials)

    return linked


# Few distinct values, so that most draws have ties, and some means are equal.
tied_scores = st.integers(2, 6).flatmap(
    lambda configs: arrays(float, (DRAWS, configs), elements=st.integers(0, 3).map(lambda i: i / 4))
)


@settings(max_examples=12, deadline=None)
@given(tied_scores, st.sampled_from([0.5, 0.9, 0.95]))
def test_neighbours_by_a_loop(scored, scores, prob):
    fit = scored(scores)
    found = check(posterior.adjacent(fit, prob=prob))
    names = fit["posterior"].config.values.tolist()
    mean = dict(zip(names, posterior.score(fit).estimate.values, strict=True))
    order = sorted(names, key=lambda name: (-mean[name], name))
    assert found.config.values.tolist() == order[:-1]
    assert found.opponent.values.tolist() == order[1:]
    rank = {name: 1 + sum(other > mean[name] for other in mean.values()) for name in names}
    assert found["rank"].values.tolist() == [rank[name] for name in order[:-1]]
    assert found.opponent_rank.values.tolist() == [rank[name] for name in order[1:]]
    open_pairs = 0
    for i, (upper, lower) in enumerate(pairwise(order)):
        s, o = scores[:, names.index(upper)], scores[:, names.index(lower)]
        above, level = sum(s > o), sum(s == o)
        one = found.isel(pair=i)
        assert one.win_probability.item() == pytest.approx((above + level / 2) / DRAWS, abs=1e-12)
        assert one.tie.item() == pytest.approx(level / DRAWS, abs=1e-12)
        assert one.estimate.item() == pytest.approx(np.mean(s - o), abs=1e-12)
        ends = np.quantile(s - o, [(1 - prob) / 2, (1 + prob) / 2])
        np.testing.assert_allclose(one.interval, ends, atol=1e-12)
        # In halves of a draw, so that a probability at a limit is at it.
        halves, edge = 2 * above + level, round(10 * (1 - prob) * DRAWS) / 10
        assert one.unresolved.item() == (edge < halves < 2 * DRAWS - edge)
        assert one.verdict.item() == ("unresolved" if one.unresolved else "resolved")
        open_pairs += one.unresolved.item()
    assert (found.attrs["unresolved"], found.attrs["pairs"]) == (open_pairs, len(names) - 1)
    assert found.attrs["sentence"].startswith(f"{open_pairs} of {len(names) - 1} adjacent pairs are unresolved")


@pytest.mark.parametrize(("wins", "unresolved"), [(1, False), (2, True), (38, True), (39, False), (40, False)])
def test_the_limits_are_outside(scored, wins, unresolved):
    """At 95% of 40 draws 1/40 = 0.025 and 39/40 = 0.975 are resolved. The mean may disagree with the many."""
    gap = np.where(np.arange(40) < wins, 1.0, -0.001)
    found = posterior.adjacent(scored(np.stack([0.5 + gap / 4, np.full(40, 0.5)], axis=1)))
    assert found.config.item() == "config-0"
    assert found.win_probability.item() == wins / 40
    assert found.unresolved.item() is unresolved


def test_the_simulation_error_of_a_win_is_that_of_win_probability(scored):
    scores = np.random.default_rng(2).integers(0, 4, (60, 4)) / 4
    fit = scored(scores)
    found, wins = posterior.adjacent(fit), posterior.win_probability(fit)
    for i in range(3):
        one = found.isel(pair=i)
        same = wins.sel(config=one.config.item(), opponent=one.opponent.item())
        assert one.win_probability.item() == pytest.approx(same.estimate.item(), abs=1e-12)
        assert one.win_probability_se.item() == pytest.approx(same.se.item(), abs=1e-12)
        assert one.tie.item() == pytest.approx(same.tie.item(), abs=1e-12)
        gap = posterior.difference(fit).sel(config=one.config.item(), opponent=one.opponent.item())
        np.testing.assert_allclose(one.interval_mcse, gap.interval_mcse, atol=1e-12)


@settings(max_examples=5, deadline=None)
@given(st.permutations(range(5)))
def test_case_69_pairs_come_from_the_data_whatever_the_order_of_configs(scored, order):
    """Two of five have the same mean: they share a rank, and their names decide who is said first."""
    scores = np.random.default_rng(3).integers(0, 17, (30, 5)) / 16
    scores[:, 4] = scores[::-1, 1]
    fit = scored(scores)
    moved = fit.copy()
    for name in ("posterior", "observed_data", "constant_data"):
        moved[name] = fit[name].to_dataset().isel(config=list(order))
    for quantity in ("adjacent", "best_set"):
        mine, theirs = (getattr(posterior, quantity)(one) for one in (fit, moved))
        assert mine.attrs == theirs.attrs
        assert mine.identical(theirs.reindex_like(mine) if quantity == "best_set" else theirs)
    found = posterior.adjacent(fit)
    at = found.config.values.tolist().index("config-1")
    assert (found.opponent[at].item(), found["rank"][at], found.opponent_rank[at]) == (
        "config-4",
        *[found["rank"][at]] * 2,
    )
    assert "equal estimates share a rank and stand in the order of their names" in found.attrs["sentence"]


def test_level_entries_are_unresolved_with_all_their_mass_a_tie(scored):
    """Case 62: 396, 396 and 394 of 500 in every draw."""
    found = posterior.adjacent(scored([[0.788, 0.792, 0.792]] * 10))
    assert found.config.values.tolist() == ["config-1", "config-2"]
    assert (found["rank"].values.tolist(), found.opponent_rank.values.tolist()) == ([1, 1], [1, 3])
    assert (found.win_probability.values.tolist(), found.tie.values.tolist()) == ([0.5, 1], [1, 0])
    assert found.verdict.values.tolist() == ["unresolved", "resolved"]
    best = posterior.best_set(scored([[0.788, 0.792, 0.792]] * 10))
    assert best.p_best.values.tolist() == [0, 0.5, 0.5]
    assert best.in_set.values.tolist() == [False, True, True]


def test_a_pair_without_a_shared_task_is_withheld(linked):
    """Two configs in two pieces; three, where the third links the first two and these stand next to each other."""
    found = posterior.adjacent(linked(2))
    assert found.reason.item().startswith("no shared task")
    assert (found.verdict.item(), found.unresolved.item(), found.shared_tasks.item()) == ("withheld", False, 0)
    for name in ("estimate", "se", "win_probability", "win_probability_se", "tie", "rank", "opponent_rank"):
        assert np.isnan(found[name].item()), name
    assert found.interval.isnull().all()
    assert (found.attrs["pairs"], found.attrs["withheld"]) == (0, 1)
    said = f"no adjacent pair can be compared; not compared: {found.config.item()} and {found.opponent.item()}"
    assert found.attrs["sentence"] == f"{said} (no shared task)"
    fit = linked(3)
    draws = fit["posterior"].to_dataset()
    level = draws["config"].copy(data=[0.1, 0.05, 0.0])
    fit["posterior"] = draws.assign(score=draws["score"] * 0.01 + level)
    three = posterior.adjacent(fit)
    assert three.config.values.tolist() == ["config-0", "config-1"]
    assert three.verdict.values.tolist() == ["withheld", "resolved"]
    assert three.reason[0].item().startswith("no shared task")
    assert three.shared_tasks.values.tolist() == [0, 3]
    assert three["rank"].isnull().all()
    assert three.opponent_rank.isnull().values.tolist() == [True, False]
    assert three.attrs["sentence"].endswith("not compared: config-0 and config-1 (no shared task)")
    assert (three.attrs["pairs"], three.attrs["withheld"]) == (1, 1)
    assumed = posterior.adjacent(fit, assume="no_interaction")
    assert assumed.verdict.values.tolist() == ["resolved", "resolved"]
    assert (assumed["rank"].values.tolist(), assumed.opponent_rank.values.tolist()) == ([1, 2], [2, 3])
    assert assumed.coords["assume"].item() == "no_interaction"


def test_a_config_without_a_run_has_no_neighbours_and_is_not_in_the_set(fabricate):
    trials = np.array([[3] * 4, [0] * 4, [3] * 4])
    fit = fabricate(trials // 2, trials)
    found, best = posterior.adjacent(fit), posterior.best_set(fit)
    assert {found.config.item(), found.opponent.item()} == {"config-0", "config-2"}
    assert found.attrs["unranked"] == "config-1"
    assert found.attrs["sentence"].endswith("without a rank, for want of a scored run: config-1")
    assert best.p_best.isnull().values.tolist() == [False, True, False]
    assert not best.in_set[1].item()
    assert "no scored run" in best.reason[1].item()
    assert best.attrs["configs_ranked"] == 2
    with pytest.raises(NotIdentifiedError, match="fewer than two configs have a scored run"):
        posterior.adjacent(fabricate(trials[:2] // 2, trials[:2]))


def test_one_run_a_cell_says_nothing_of_new_runs_of_these_tasks(fabricate):
    fit = fabricate([[1, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]], 1)
    found = posterior.adjacent(fit, tasks="fixed")
    assert found.win_probability.isnull().all()
    assert all(text.startswith("one run per cell") for text in found.reason.values)
    assert found.verdict.values.tolist() == ["withheld"] * 2
    with pytest.raises(NotIdentifiedError, match="best_set: one run per cell"):
        posterior.best_set(fit, tasks="fixed")
    taken = posterior.adjacent(fit, tasks="fixed", assume="no_interaction")
    assert taken.win_probability.notnull().all()
    assert posterior.best_set(fit, tasks="fixed", assume="no_interaction").in_set.any()


@settings(max_examples=20, deadline=None)
@given(tied_scores, st.sampled_from([0.5, 0.75, 0.95]))
def test_no_smaller_set_is_as_probable(scored, scores, prob):
    """Against every subset; the cumulative probability is a sum over those before it."""
    fit = scored(scores)
    found = check(posterior.best_set(fit, prob=prob))
    p = np.zeros(scores.shape[1])
    for row in scores:
        first = row == row.max()
        p[first] += 1 / first.sum() / DRAWS
    np.testing.assert_allclose(found.p_best, p, atol=1e-12)
    np.testing.assert_allclose(found.estimate, p, atol=1e-12)
    assert p[found.in_set.values].sum() >= prob - 1e-9
    smaller = [sum(some) for size in range(found.attrs["size"]) for some in combinations(p, size)]
    assert max(smaller) < prob
    names = found.config.values.tolist()
    for i, name in enumerate(names):
        before = [
            j for j, other in enumerate(names) if (-found.p_best.values[j], other) <= (-found.p_best.values[i], name)
        ]
        assert found["cumulative"][i].item() == pytest.approx(p[before].sum(), abs=1e-9)
    assert found.attrs["sentence"].startswith(f"{found.attrs['size']} of {len(names)} entries may be best")


def test_a_posterior_set_is_no_confidence_set(scored, fabricate):
    fit = scored(np.random.default_rng(5).uniform(0, 1, (50, 3)))
    found = posterior.best_set(fit, prob=0.9)
    assert (found.set_kind.item(), found.ci_kind.item(), found.ci_prob.item()) == ("posterior set", "monte_carlo", 0.9)
    assert "no confidence set" in found.set_meaning.item()
    np.testing.assert_allclose(found.se, posterior.top_k(fit, prob=0.9).se)
    assert effective(fit) == 25
    trials = np.full((3, 12), 3)
    successes = np.random.default_rng(6).binomial(trials, [[0.8], [0.5], [0.3]])
    made = fabricate(successes, trials)
    names = {"configs": made["posterior"].config.values.tolist(), "tasks": made["posterior"].task.values.tolist()}
    board = from_counts(successes, trials, **names)
    with pytest.raises(ValueError, match="set_kind is 'posterior set' on one side and 'confidence set' on the other"):
        compare("best_set", made, board)
    mine, theirs = posterior.adjacent(made), frequentist.adjacent(board, draws=200)
    assert set(mine.data_vars) == set(theirs.data_vars)
    assert set(mine.coords) == set(theirs.coords)
    assert set(mine.attrs) == set(theirs.attrs)
    for name in mine.data_vars:
        assert (mine[name].dims, mine[name].dtype) == (theirs[name].dims, theirs[name].dtype), name


def test_questions_without_an_answer(scored, linked):
    fit = scored(np.random.default_rng(7).uniform(0, 1, (20, 3)), gate="failed")
    for quantity in ("adjacent", "best_set"):
        function = getattr(posterior, quantity)
        with pytest.raises(SamplingError):
            function(fit)
        assert function(fit, population="reweighted").method.item() == "laplace_reweighted"
        with pytest.raises(NotIdentifiedError, match="an entry that is not on the board"):
            function(fit, configs="sampled")
        with pytest.raises(NotIdentifiedError, match=f"{quantity}: the board has one config"):
            function(scored(np.ones((20, 1))))
        for wrong in ({"prob": 95}, {"tasks": "new"}, {"population": "bootstrap"}, {"assume": "additive"}):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                function(fit, **{"population": "reweighted"} | wrong)
    with pytest.raises(NotIdentifiedError, match=r"best_set: no chain of shared tasks links config-0 .* and config-1"):
        posterior.best_set(linked(2))
