"""Ranks, top-k, wins and differences against explicit loops over draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from evalbayes import posterior
from evalbayes.posterior.draws import effective

DRAWS = 60


@pytest.fixture(scope="module")
def scored(fabricate):
    """Return a fit whose population scores are given, (draw, config)."""

    def scored(scores):
        scores = np.asarray(scores, float)
        return fabricate(np.ones((scores.shape[1], 3), int), 2, chains=1, draws=len(scores), scores=scores)

    return scored


# Few distinct values, so that most draws have ties.
tied_scores = st.integers(2, 6).flatmap(
    lambda configs: arrays(float, (DRAWS, configs), elements=st.integers(0, 3).map(lambda i: i / 4))
)


@settings(max_examples=25, deadline=None)
@given(tied_scores)
def test_ranks_by_a_loop(scored, scores):
    result = posterior.rank(scored(scores), prob=0.9)
    ranks = np.array([rankdata(-row, method="min") for row in scores])
    np.testing.assert_allclose(result.expected_rank, ranks.mean(0))
    for c, drawn in enumerate(ranks.T):
        ordered = np.sort(drawn)
        # The inverse of the empirical distribution at 0.05, 0.5, 0.95 of 60 draws: the 3rd, 30th and 57th.
        assert result.interval[c].values.tolist() == [ordered[2], ordered[56]]
        assert float(result.estimate[c]) == ordered[29]
        assert set(result.interval[c].values) <= set(drawn)


@settings(max_examples=25, deadline=None)
@given(tied_scores, st.data())
def test_top_k_by_a_loop(scored, scores, data):
    m = scores.shape[1]
    k = data.draw(st.integers(1, m))
    result = posterior.top_k(scored(scores), k=k)
    share = np.zeros(m)
    for row in scores:
        for c in range(m):
            better, level = (row > row[c]).sum(), (row == row[c]).sum()
            share[c] += min(max(k - better, 0), level) / level / DRAWS
    np.testing.assert_allclose(result.estimate, share, atol=1e-12)
    assert float(result.estimate.sum()) == pytest.approx(k, abs=1e-9)
    assert result.k.item() == k
    if k == m:
        assert (result.estimate == 1).all()


@settings(max_examples=25, deadline=None)
@given(tied_scores)
def test_wins_by_a_loop(scored, scores):
    result = posterior.win_probability(scored(scores))
    m = scores.shape[1]
    for a in range(m):
        for b in range(m):
            won, level = (scores[:, a] > scores[:, b]).mean(), (scores[:, a] == scores[:, b]).mean()
            assert float(result.estimate[a, b]) == pytest.approx(won + level / 2, abs=1e-12)
            assert float(result.tie[a, b]) == pytest.approx(level, abs=1e-12)
    np.testing.assert_allclose(result.estimate + result.estimate.values.T, 1, atol=1e-12)
    assert (result.estimate.values.diagonal() == 0.5).all()
    assert (result.tie.values.diagonal() == 1).all()
    lower, upper = result.interval.transpose("ci_bound", ...).values
    np.testing.assert_allclose(lower + upper.T, 1, atol=1e-12)


def test_ties_are_split_and_shared(scored):
    """Case 62: 396, 396 and 394 of 500 in every draw: ranks 1, 1, 3, half of the first place each, half a win."""
    made = scored([[0.792, 0.792, 0.788]] * 10)
    assert posterior.rank(made).estimate.values.tolist() == [1, 1, 3]
    assert posterior.top_k(made, k=1).estimate.values.tolist() == [0.5, 0.5, 0]
    assert posterior.top_k(made, k=2).estimate.values.tolist() == [1, 1, 0]
    wins = posterior.win_probability(made)
    assert wins.estimate.values.tolist() == [[0.5, 0.5, 1], [0.5, 0.5, 1], [0, 0, 0.5]]
    assert wins.tie.values.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert (posterior.difference(made).estimate.values[0, 1] == 0).all()


def test_standard_errors_are_those_of_the_simulation(scored):
    """Shares of 400 independent draws, 500 configs alike against a fixed one: sd of the shares against the se.

    The sd of 500 values has a standard error of 3.2%: 16% is 5 of them.
    """
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 1, (400, 501))
    scores[:, 0] = 0.3
    wins = posterior.win_probability(scored(scores))
    # The fit says 200 effective draws (400 proposals, 400 resampled); these 400 are independent: sqrt(2) wider.
    expected = np.sqrt(2) * float(wins.estimate[1:, 0].std(ddof=1))
    assert float(wins.se[1:, 0].mean()) == pytest.approx(expected, rel=0.16)
    assert effective(scored(scores)) == 200


def test_differences_are_antisymmetric_and_shift_free(scored):
    """Case 67: a common shift of all scores moves no difference, rank or win."""
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.2, 0.6, (200, 4))
    plain, moved = scored(scores), scored(scores + rng.uniform(0, 0.3, (200, 1)))
    apart = posterior.difference(plain)
    np.testing.assert_allclose(apart.estimate, -apart.estimate.values.T, atol=1e-15)
    lower, upper = apart.interval.transpose("ci_bound", ...).values
    np.testing.assert_allclose(lower, -upper.T, atol=1e-15)
    for quantity in ("difference", "rank", "top_k", "win_probability"):
        mine, other = (getattr(posterior, quantity)(fit) for fit in (plain, moved))
        np.testing.assert_allclose(mine.estimate, other.estimate, atol=1e-14)
        np.testing.assert_allclose(mine.interval, other.interval, atol=1e-14)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 3))
def test_one_reference_is_a_column_of_all_pairs(scored, which):
    scores = np.random.default_rng(2).uniform(0, 1, (50, 4))
    made, name = scored(scores), f"config-{which}"
    column = posterior.difference(made).sel(opponent=name)
    one = posterior.difference(made, reference=name)
    for variable in ("estimate", "se", "interval", "interval_mcse"):
        np.testing.assert_array_equal(one[variable], column[variable])
    assert one.reference.item() == name
    by_hand = scores - scores[:, [which]]
    np.testing.assert_allclose(one.estimate, by_hand.mean(0), atol=1e-15)
    np.testing.assert_allclose(one.interval, np.quantile(by_hand, [0.025, 0.975], axis=0).T, atol=1e-14)


@settings(max_examples=4, deadline=None)
@given(st.permutations(range(4)), st.permutations(range(6)))
def test_reordering_a_posterior_reorders_its_answers(fabricate, needs, configs, tasks):
    rng = np.random.default_rng(3)
    trials = rng.integers(1, 4, (4, 6))
    made = fabricate(rng.binomial(trials, 0.5), trials, draws=50)
    other = made.copy()
    for name in ("posterior", "observed_data", "constant_data"):
        other[name] = made[name].to_dataset().isel(config=list(configs), task=list(tasks))
    # Components are of populations alone, and over their own dim.
    for quantity in set(posterior.__all__) - {"variance_components"}:
        for target in ("fixed", "sampled"):
            function = getattr(posterior, quantity)
            mine, theirs = (function(fit, tasks=target, **needs(function)) for fit in (made, other))
            theirs = theirs.reindex_like(mine)
            for variable in ("estimate", "se", "interval"):
                # Sums over tasks in another order: the last digit may differ.
                np.testing.assert_allclose(mine[variable], theirs[variable], rtol=1e-11, atol=1e-14)


def test_one_unknown_config_leaves_every_rank_unknown(fabricate):
    """With one run per cell a config's new runs are unknown, and so is who stands before or behind it."""
    made = fabricate([[1, 0, 1], [2, 2, 1], [0, 1, 1]], [[1] * 3, [3] * 3, [3] * 3])
    for quantity in ("rank", "top_k"):
        result = getattr(posterior, quantity)(made, tasks="fixed")
        assert np.isnan(result.estimate).all()
        assert all(text.startswith("one run per cell") for text in result.reason.values)
    wins = posterior.win_probability(made, tasks="fixed")
    assert np.isnan(wins.estimate.values[0, 1:]).all()
    assert np.isfinite(wins.estimate.values[1:, 1:]).all()
    for quantity in ("rank", "top_k", "win_probability", "difference"):
        taken = getattr(posterior, quantity)(made, tasks="fixed", assume="no_interaction")
        assert np.isfinite(taken.estimate).all()
        assert taken.coords["assume"].item() == "no_interaction"


def test_a_config_without_a_run_takes_nobodys_place(fabricate):
    """Its draws are the prior's: were they ranked, it would hold a share of first place and widen every interval."""
    successes, trials = np.array([[5, 4, 3], [3, 2, 4], [0, 0, 0]]), np.array([[5, 5, 5], [5, 5, 5], [0, 0, 0]])
    with_it = fabricate(successes, trials)
    draws = with_it["posterior"]["score"]
    draws.loc[{"config": "config-2"}] = 2.0
    for k in (1, 2):
        share = posterior.top_k(with_it, k=k)
        assert np.isnan(share.estimate[2])
        assert "no scored run" in share.reason[2].item()
        assert float(share.estimate.sum()) == pytest.approx(k)
    ranks = posterior.rank(with_it)
    assert np.isnan(ranks.estimate[2])
    assert ranks.interval[:2].max() <= 2
    with pytest.raises(ValueError, match="k=3"):
        posterior.top_k(with_it, k=3)
