"""The population gate: what it lets through, what it refuses, and what it says, on posteriors made by hand."""

import numpy as np
import pytest
import xarray as xr

from evalbayes import simulate
from evalbayes.check.population import MEAN_GAP, population


def told(board, *, shift=0.0, moved=None, draws=200, seed=0):
    """The posterior of someone who knows the board's truth, with scores off by ``shift``, or one config's."""
    rng = np.random.default_rng(seed)
    m = board.sizes["config"]
    at = (2, draws)
    effect = board.true_config_effect.values + 0.05 * rng.standard_normal((*at, m))
    if moved is not None:
        effect[..., moved[0]] += moved[1]
    score = board.true_score.values + shift + 0.005 * rng.standard_normal((*at, m))
    sd = board.attrs["true_task_sd"]
    both = ("chain", "draw")
    return xr.Dataset(
        {
            "intercept": (both, board.attrs["true_intercept"] + np.zeros(at)),
            "config_effect": ((*both, "config"), effect),
            "task_weight": ((*both, "component"), np.ones((*at, 1))),
            "task_mean": ((*both, "component"), np.zeros((*at, 1))),
            "task_scale": ((*both, "component"), np.full((*at, 1), sd)),
            "task_effect": (
                (*both, "task"),
                np.broadcast_to(board.true_task_effect.values, (*at, board.sizes["task"])),
            ),
            "score": ((*both, "config"), score),
        },
        coords={"config": board.config.values, "task": board.task.values},
    )


def test_a_posterior_that_knows_the_truth_passes():
    """20 boards of 6 x 200. The mean gap is a mean over tasks, about normal with sd 1 in its own standard errors.

    Someone who knows the truth exactly is beyond half a standard error in 62% of boards (a fit is not: its population
    is drawn to the tasks that were run), and outside a config's 99% range in at most 6%, 4 or more of 20 having a
    chance of 3% at that bound, and far less at the real, dependent one.
    """
    boards = [simulate.board(6, 200, 2, seed=seed) for seed in range(20)]
    seen = [population(told(board), board, seed=1) for board in boards]
    assert sum(not bool(one.inside.all()) for one in seen) <= 3
    for board, one in zip(boards, seen, strict=True):
        gap = board.true_score.values - (board.successes / board.trials).mean("task").values
        np.testing.assert_allclose(one.gap, gap, atol=0.002)
        assert one.attrs["mean_gap"] == pytest.approx(float(one.gap.mean()))
        assert abs(one.attrs["worst_gap"]) == pytest.approx(float(abs(one.gap).max()))
        expected = one.attrs["mean_gap_se"] <= MEAN_GAP and bool(one.inside.all())
        assert one.attrs["gate"] == ("passed" if expected else "failed")


def test_the_predictive_range_is_that_of_new_tasks():
    """Against 4,000 fresh boards of the same truth: the 0.5% and 99.5% points, within the error of 400 replicates.

    The second smallest of 400 lies between the 0.1% and 1.4% points 99 times in 100: those, widened by 2 points.
    """
    board = simulate.board(3, 60, 2, seed=3)
    one = population(told(board, draws=400), board)
    rng = np.random.default_rng(0)
    effect = 2.0 * rng.standard_normal((4000, 1, 60))
    p = 1 / (1 + np.exp(-(board.true_config_effect.values[:, None] + effect)))
    means = (rng.binomial(2, p) / 2).mean(-1)
    low, high = (np.quantile(means, ends, axis=0) for ends in ([0.001, 0.014], [0.986, 0.999]))
    lower, upper = one.predictive.transpose("ci_bound", "config").values
    assert ((low[0] - 0.02 <= lower) & (lower <= low[1] + 0.02)).all()
    assert ((high[0] - 0.02 <= upper) & (upper <= high[1] + 0.02)).all()


def test_a_bias_of_all_configs_fails():
    """Half of what an observed mean may move by sampling tasks is refused, whoever is ahead."""
    board = simulate.board(6, 200, 2, seed=0)
    exact = population(told(board), board)
    se = abs(exact.attrs["mean_gap"]) / exact.attrs["mean_gap_se"]
    for direction in (-1, 1):
        bias = direction * 0.75 * se - exact.attrs["mean_gap"]
        biased = population(told(board, shift=bias), board)
        assert biased.attrs["mean_gap"] == pytest.approx(direction * 0.75 * se, abs=1e-6)
        assert biased.attrs["mean_gap_se"] == pytest.approx(0.75, rel=1e-6)
        assert biased.attrs["gate"] == "failed"
    centred = population(told(board, shift=-exact.attrs["mean_gap"]), board)
    assert centred.attrs["gate"] == "passed"


def test_one_config_out_of_its_range_fails():
    board = simulate.board(6, 200, 2, seed=0)
    one = population(told(board, moved=(2, 3.0)), board)
    assert one.inside.values.tolist() == [True, True, False, True, True, True]
    assert one.attrs["gate"] == "failed"


def test_configs_without_runs_are_left_out():
    """Case 20: what was not run is neither a failure nor a gap; other configs' numbers stay as they are."""
    board = simulate.board(4, 50, 1, seed=1).drop_vars("outcome")
    empty = board.copy(deep=True)
    for name in ("successes", "trials"):
        empty[name][0] = 0
    posterior = told(board)
    one, full = population(posterior, empty), population(posterior, board)
    assert np.isnan(one.gap[0])
    assert bool(one.inside[0])
    np.testing.assert_array_equal(one.gap[1:], full.gap[1:])
    assert one.attrs["worst_gap"] == float(one.gap[np.nanargmax(abs(one.gap.values))])
    assert np.isfinite(one.attrs["mean_gap"])


def test_a_config_run_on_the_easy_tasks_alone_says_nothing_against_the_density():
    """Case 13: its other tasks are filled in with what the fit expects of them, cell by cell."""
    board = simulate.board(4, 60, 2, seed=1).drop_vars("outcome")
    hard = (board.true_task_effect < 0).values
    partial = board.copy(deep=True)
    for name in ("successes", "trials"):
        partial[name][1, hard] = 0
    posterior = told(board, draws=100)
    one, full = population(posterior, partial), population(posterior, board)
    logit = (posterior.intercept + posterior.config_effect + posterior.task_effect).isel(config=1)
    expected = (1 / (1 + np.exp(-logit))).mean(("chain", "draw")).values
    rate = np.where(hard, expected, board.successes[1] / 2)
    assert float(one.observed[1]) == pytest.approx(rate.mean(), abs=1e-12)
    np.testing.assert_array_equal(one.observed[[0, 2, 3]], full.observed[[0, 2, 3]])
    assert one.inside.all()
    assert rate[~hard].mean() > float(one.predictive.sel(ci_bound="upper")[1])


@pytest.mark.parametrize("passes", [0, 1])
def test_boards_at_the_boundary(passes):
    """All pass or all fail: a model that says so passes, one that says a half fails, and nothing is NaN."""
    board = simulate.board(3, 20, 1, seed=0).drop_vars("outcome")
    board["successes"] = board.trials * passes
    sure, unsure = told(board), told(board)
    for posterior, logit in ((sure, 12.0), (unsure, 0.0)):
        posterior["intercept"] = posterior.intercept * 0 + (logit if passes else -logit)
        posterior["score"] = posterior.score * 0 + (1 / (1 + np.exp(-logit)) if passes else 1 / (1 + np.exp(logit)))
    assert population(unsure, board).attrs["gate"] == "failed"
    seen = population(sure, board)
    assert seen.inside.all()
    assert np.isfinite([seen.attrs[name] for name in ("mean_gap", "worst_gap", "mean_gap_se")]).all()
    assert seen.attrs["gate"] == "passed"


def test_same_seed_same_range_and_the_order_of_dims_is_nothing():
    board = simulate.board(4, 30, 2, seed=2)
    posterior = told(board)
    first = population(posterior, board, seed=3)
    assert first.identical(population(posterior, board, seed=3))
    turned = population(posterior.transpose("config", "draw", ...), board.transpose("task", "config", ...), seed=3)
    for name in first.data_vars:
        np.testing.assert_allclose(first[name], turned[name].transpose(*first[name].dims), rtol=1e-12)
    assert not first.predictive.equals(population(posterior, board, seed=4).predictive)


def test_the_real_fit_passes(small_fit):
    assert small_fit.attrs["gate"] == "passed"
    assert bool(small_fit["population"].inside.all())


def test_where_nothing_varies_the_gap_is_none_or_without_end():
    """Scores and replicates that are all exactly 1: not a division by zero."""
    board = simulate.board(3, 20, 1, seed=0).drop_vars("outcome")
    board["successes"] = board.trials
    sure = told(board)
    sure["intercept"] = sure.intercept * 0 + 800.0
    sure["score"] = sure.score * 0 + 1.0
    seen = population(sure, board)
    assert (seen.attrs["mean_gap_se"], seen.attrs["gate"]) == (0.0, "passed")
    sure["score"] = sure.score * 0 + 0.5
    seen = population(sure, board)
    assert (seen.attrs["mean_gap_se"], seen.attrs["gate"]) == (np.inf, "failed")
