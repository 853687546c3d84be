"""Rank sets and the winner: brute force, exact conditional coverage on normals, and coverage on simulated boards."""

import numpy as np
import pytest
from scipy import stats

from boards import counted
from evalbayes import NotIdentifiedError, board, datasets, simulate
from evalbayes.board.leaders import _limits, _mean_at
from evalbayes.frequentist import bootstrap


def test_rank_sets_are_those_of_a_loop():
    small = simulate.board(4, 30, 2, seed=5, config_sd=1.5)
    found = board.rank_sets(small, draws=200, seed=3)
    draws = bootstrap.score_draws(small, "two_level_bootstrap", draws=200, seed=3).values
    at = (small.successes / small.trials).mean("task").values
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    sd = {(i, j): max(np.std(draws[:, i] - draws[:, j], ddof=1), 1 / 30) for i, j in pairs}
    farthest = [max(abs(d[i] - d[j] - at[i] + at[j]) / sd[i, j] for i, j in pairs) for d in draws]
    critical = np.quantile(farthest, 0.95)
    assert found.attrs["critical"] == pytest.approx(critical)
    for i in range(4):
        above = [j for j in range(4) if j != i and at[j] - at[i] > critical * sd[j, i]]
        below = [j for j in range(4) if j != i and at[i] - at[j] > critical * sd[i, j]]
        assert found.lowest.values[i] == 1 + len(above)
        assert found.highest.values[i] == 4 - len(below)
    assert found.may_be_best.values.tolist() == (found.lowest.values == 1).tolist()


def test_all_rank_sets_hold_together():
    """80 boards of 6 x 60: fewer than 69 of 80 have a chance of 1 in 2,000 if all sets hold in 95% of boards."""
    held = 0
    for seed in range(80):
        one = simulate.board(6, 60, 2, seed=seed, config_sd=0.8)
        found = board.rank_sets(one, draws=300, seed=seed)
        rank = stats.rankdata(-one.true_score.values, method="min")
        held += bool(((found.lowest.values <= rank) & (rank <= found.highest.values)).all())
    print(f"all six sets hold on {held} of 80 boards")
    assert held >= 69


@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_given_the_win_the_estimate_is_median_unbiased_and_the_interval_covers(spread):
    """4,000 wins among five correlated normals of unequal variance: each share within 4 standard errors."""
    rng = np.random.default_rng(1)
    mean = spread * np.arange(5)
    root = rng.normal(size=(5, 5)) / 2 + np.diag([0.3, 0.5, 1.0, 0.7, 0.4])
    covariance = root @ root.T
    below, naive = [], []
    for score in rng.multivariate_normal(mean, covariance, 4000):
        first = int(np.argmax(score))
        se, limits = np.sqrt(covariance[first, first]), _limits(score, covariance, first)
        assert limits[0] <= score[first] <= limits[1]
        # The distribution function falls in the mean: so at the truth it is below a level as often as that level says.
        low, high = ((limit - mean[first]) / se for limit in limits)
        below.append(stats.truncnorm.cdf((score[first] - mean[first]) / se, low, high))
        naive.append(score[first] > mean[first])
    for level in (0.025, 0.5, 0.975):
        share = np.mean(np.array(below) <= level)
        assert abs(share - level) < 4 * np.sqrt(level * (1 - level) / 4000)
    print(f"observed above the truth in {np.mean(naive):.0%} of wins")
    assert np.mean(naive) > 0.6


def test_a_mean_is_found_where_the_level_is_reached():
    limits = (0.3, np.inf)
    for level in (0.025, 0.5, 0.975):
        mean = _mean_at(0.45, 0.05, limits, level)
        assert stats.truncnorm.cdf((0.45 - mean) / 0.05, (0.3 - mean) / 0.05, np.inf) == pytest.approx(level, abs=1e-9)
    # Nothing near that the winner had to beat: the usual estimate and interval.
    assert _mean_at(0.45, 0.05, (-np.inf, np.inf), 0.5) == pytest.approx(0.45)
    assert _mean_at(0.45, 0.05, (-np.inf, np.inf), 0.975) == pytest.approx(0.45 - 1.959963984540054 * 0.05)


def test_the_winner_of_a_board():
    one = datasets.load("simulated")
    found = board.winner(one)
    at = (one.successes / one.trials).mean("task")
    assert found.config.item() == str(at.config[int(np.argmax(at.values))].item())
    assert found.observed.item() == pytest.approx(float(at.max()))
    assert found.estimate.item() < found.observed.item()
    low, high = found.interval.values[0]
    assert low < found.estimate.item() < high
    # Of two that are all but level, the winner's luck counts for more.
    close = board.winner(counted(np.array([[1] * 21 + [0] * 19, [0] * 20 + [1] * 20]), 1))
    assert close.observed.item() - close.estimate.item() > found.observed.item() - found.estimate.item()


def test_what_has_no_winner_or_no_ranks():
    level = counted(np.array([[1, 0, 1, 1, 0, 1], [1, 0, 1, 1, 0, 1]]), 1)
    with pytest.raises(NotIdentifiedError, match="none has won"):
        board.winner(level)
    assert board.rank_sets(level, draws=50).may_be_best.all()
    apart = counted(np.array([[1] * 6 + [0] * 6, [0] * 6 + [1] * 6]), np.array([[1] * 6 + [0] * 6, [0] * 6 + [1] * 6]))
    for function in (board.winner, board.rank_sets):
        with pytest.raises(NotIdentifiedError, match="0 tasks that every entry was scored on"):
            function(apart)
        with pytest.raises(NotIdentifiedError, match="one config"):
            function(level.isel(config=[0]))
    sure = counted(np.array([[1] * 20, [0] * 20]), 1)
    assert board.rank_sets(sure, draws=50).may_be_best.values.tolist() == [True, False]
    with pytest.raises(NotIdentifiedError, match="no certainty"):
        board.winner(sure)
