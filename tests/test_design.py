"""Planning: published figures, closed forms, brute force, and a simulation of what assurance promises."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from evalbayes import (
    ArgumentError,
    NotIdentifiedError,
    OutcomesError,
    components,
    datasets,
    design,
    frequentist,
    posterior,
    simulate,
)
from evalbayes.outcomes import from_counts
from evalbayes.posterior.variances import component_draws

R_PUBLISHED = 25 / 88
"""mu_w / sigma_b^2 behind the published 0.28: with it R = 5 is optimal at a cost ratio of 88."""


@pytest.fixture(scope="module")
def board() -> xr.Dataset:
    return datasets.load("repeated_runs").isel(config=slice(0, 6))


@pytest.fixture(scope="module")
def made(fabricate) -> xr.DataTree:
    trials = np.full((3, 12), 4)
    fit = fabricate(np.random.default_rng(0).binomial(trials, [[0.8], [0.5], [0.3]]), trials)
    log_kappa = np.random.default_rng(5).normal(1.0, 0.5, fit["posterior"]["config_effect"].shape)
    fit["posterior"] = fit["posterior"].to_dataset().assign(log_kappa=(("chain", "draw", "config"), log_kappa))
    return fit


def test_oracle_4_flatness_is_as_published():
    """R = 5 at problems ten times dearer than 88 costs 1.3% of width, ten times cheaper 9% (arXiv 2606.00920)."""
    loss = [100 * (float(components.relative_width(R_PUBLISHED, 5, c)) - 1) for c in (880.0, 88.0, 8.8)]
    print("R = 5 at 880, 88, 8.8:", [f"{value:.1f}%" for value in loss])
    assert [f"{value:.1f}" for value in loss] == ["1.3", "0.0", "9.1"]


@pytest.mark.parametrize("r", [0.0, 0.05, 0.34, 2.0, np.inf])
def test_relative_width_is_least_at_the_best_runs_and_exact_at_both_ends(r):
    """Against the variance at a fixed budget of 1,000 runs, written out, over a fine grid of R."""
    cost, runs = 12.0, np.append(1.0, np.geomspace(0.05, 200, 20001))
    between, within = (1.0, r) if np.isfinite(r) else (0.0, 1.0)
    variance = (between + within / runs) / (1000 / (cost + runs))
    # A task has one run or more; with r = 0 one is best, and without end as many as there can be.
    best = within / 1000 if np.isinf(r) else variance[runs >= 1].min()
    np.testing.assert_allclose(components.relative_width(r, runs, cost), np.sqrt(variance / best), rtol=1e-6)


def test_cost_curve_of_both_sides_is_the_function_of_their_own_components(board, made):
    curve = design.cost_curve(board, cost_ratio=88, runs=[1, 5])
    between, within = (getattr(frequentist, f"{name}_variance")(board).estimate for name in ("between", "within"))
    for count in (1, 5):
        expected = components.relative_width(within / between, count, 88.0)
        np.testing.assert_allclose(curve.estimate.sel(runs=count), expected, rtol=1e-12)
    sigma, mu, *_ = component_draws(made, tasks="sampled")
    mine = design.cost_curve(made, cost_ratio=88, runs=[3])
    np.testing.assert_allclose(
        mine.estimate.sel(runs=3), components.relative_width(mu / sigma, 3, 88.0).median("draw"), rtol=1e-12
    )
    assert (mine.tasks.item(), mine.cost_ratio.item(), mine.estimate.dims) == ("sampled", 88.0, ("runs", "config"))


def test_tasks_needed_give_the_width_that_was_wanted(board):
    """A width from the formula for so many tasks: 0.1 again; a difference needs fewer than two scores would suggest."""
    needed = design.tasks_needed(board, width=0.1, runs=[1, 5])
    for count in (1, 5):
        se = [getattr(frequentist, f"{name}_variance")(board).estimate for name in ("between", "within")]
        variance = (se[0] + se[1] / count) / needed.estimate.sel(runs=count)
        np.testing.assert_allclose(2 * stats.norm.ppf(0.975) * np.sqrt(variance), 0.1, rtol=1e-12)
    pair = design.tasks_needed(board, width=0.1, runs=[5], reference=board.config.values[0]).estimate[0, 1]
    assert pair < needed.estimate.sel(runs=5)[:2].sum()


def test_assurance_is_what_simulated_boards_do():
    """One draw of known parameters: the share of 2,000 new boards whose paired interval excludes zero, within 4 se."""
    truth = simulate.board(2, 150, 3, seed=4, kappa=3.0, config_sd=0.8)
    draw = _fit_at_truth(truth)
    promised = design.assurance(draw, reference="config-0", tasks=80, runs=3).estimate.sel(config="config-1").item()
    rng = np.random.default_rng(0)
    intercept, effect = draw["posterior"]["intercept"].values[0, 0], draw["posterior"]["config_effect"].values[0, 0]
    hits, boards = 0, 2000
    for _ in range(boards):
        mu = 1 / (1 + np.exp(-(intercept + effect[:, None] + 1.5 * rng.standard_normal(80))))
        gap = np.diff(rng.binomial(3, rng.beta(mu * 3, (1 - mu) * 3)) / 3, axis=0)[0]
        hits += abs(gap.mean()) > stats.norm.ppf(0.975) * gap.std(ddof=1) / np.sqrt(80)
    share = hits / boards
    print(f"assurance {promised:.3f}, simulated {share:.3f}")
    # The interval there has an estimated standard error, 80 tasks: worth about one point of power.
    assert promised == pytest.approx(share, abs=0.01 + 4 * np.sqrt(share * (1 - share) / boards))
    assert 0.2 < promised < 0.98


def _fit_at_truth(board: xr.Dataset) -> xr.DataTree:
    """A fit whose every draw is one known point: normal tasks of sd 1.5, kappa 3, two configs 0.7 logits apart."""
    both, draws = ("chain", "draw"), 4
    ones = np.ones((1, draws))
    values = {
        "intercept": (both, 0.2 * ones),
        "config_effect": ((*both, "config"), ones[..., None] * [-0.35, 0.35]),
        "task_weight": ((*both, "component"), ones[..., None]),
        "task_mean": ((*both, "component"), 0 * ones[..., None]),
        "task_scale": ((*both, "component"), 1.5 * ones[..., None]),
        "log_kappa": ((*both, "config"), np.log(3.0) * np.ones((1, draws, 2))),
    }
    names = {"config": ["config-0", "config-1"], "task": board.task.values}
    drawn = xr.Dataset(values, coords={"config": names["config"]})
    z = np.linspace(-8, 8, 2001)
    p = 1 / (1 + np.exp(-(0.2 + np.array([[-0.35], [0.35]]) + 1.5 * z)))
    score = (p * stats.norm.pdf(z)).sum(axis=1) / stats.norm.pdf(z).sum()
    drawn["score"] = ((*both, "config"), np.broadcast_to(score, (1, draws, 2)))
    cells = {n: (("config", "task"), board[n].values) for n in ("successes", "trials", "errors")}
    counts = xr.Dataset(cells, coords=names)
    tree = xr.DataTree.from_dict(
        {"posterior": drawn, "observed_data": counts[["successes"]], "constant_data": counts[["trials", "errors"]]}
    )
    tree.attrs = {"method": "laplace", "seed": 0, "weight_ess": 4.0, "draws": 4, "gate": "passed"}
    return tree


def test_resolution_is_a_loop_over_pairs():
    rng = np.random.default_rng(1)
    trials = rng.integers(0, 4, (3, 9))
    board = from_counts(rng.binomial(trials, 0.5), trials, configs=list("abc"), tasks=list("rstuvwxyz"))
    found = design.resolution(board, prob=0.9, power=0.7)
    z = stats.norm.ppf(0.95) + stats.norm.ppf(0.7)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        both = (trials[i] > 0) & (trials[j] > 0)
        p, q = (board.successes.values[c][both] / trials[c][both] for c in (i, j))
        n = both.sum()
        pair = found.isel(config=i, opponent=j)
        assert pair.shared.item() == n
        assert pair.paired.item() == pytest.approx(z * np.std(p - q, ddof=1) / np.sqrt(n))
        assert pair.unpaired.item() == pytest.approx(z * np.sqrt((np.var(p, ddof=1) + np.var(q, ddof=1)) / n))
        assert pair.observed.item() == pytest.approx((p - q).mean())
    assert np.isnan(found.paired.values.diagonal()).all()


def test_case_71_smallest_gap_and_lead():
    """15.47 points at n = 164, p = 0.5; 7.22 at n = 500, p = 0.79; leads of 10, 14, 20 among 20, 40, 80 discordant."""
    assert round(100 * design.smallest_gap(0.5, 164), 2) == 15.47
    assert round(100 * design.smallest_gap(0.79, 500), 2) == 7.22
    assert [design.smallest_lead(n) for n in (20, 40, 80)] == [10, 14, 20]
    assert [design.smallest_lead(n) for n in range(6)] == [None] * 6
    for n in (6, 17, 33):
        lead = design.smallest_lead(n)
        below, at = (stats.binomtest((n - x) // 2, n).pvalue for x in (lead - 2, lead))
        assert at <= 0.05 < below


def test_case_46_what_repeats_can_buy():
    """SE ratio to one run: 0.8967 at ICC 0.7061 and R = 3 (0.8403 without end), 0.7441 and 0.6364 at 0.405 and 4."""
    for icc, runs, ratio, limit in ((0.7061, 3, 0.8967, 0.8403), (0.405, 4, 0.7441, 0.6364)):
        r = 1 / icc - 1
        assert round(components.design_factor(r, runs) / np.sqrt(runs), 4) == ratio
        assert round(1 / np.sqrt(components.ceiling(r)), 4) == limit


def test_one_run_of_each_task_has_a_reason_and_bad_plans_an_error(board, made):
    once = board.assign(successes=(board.successes > 2).astype(int), trials=(board.trials > 0).astype(int))
    for answer in (design.cost_curve(once, cost_ratio=3), design.tasks_needed(once, width=0.1)):
        assert np.isnan(answer.estimate).all()
        assert (answer.reason == components.ONE_RUN).all()
    own = design.assurance(made, reference="config-0", tasks=100)
    assert own.reason.sel(config="config-0").item() == components.ITSELF
    assert np.isfinite(own.estimate[1:]).all()
    for wrong, match in (
        (lambda: design.cost_curve(board, cost_ratio=-1), "cost_ratio=-1"),
        (lambda: design.cost_curve(board, cost_ratio=3, runs=[0]), "runs=0"),
        (lambda: design.cost_curve(board, cost_ratio=3, runs=[]), "runs=\\[\\]"),
        (lambda: design.tasks_needed(board, width=0), "width=0"),
        (lambda: design.assurance(made, reference="config-0", tasks=2.5), "tasks=2.5"),
        (lambda: design.resolution(board, power=1), "power=1"),
    ):
        with pytest.raises(ArgumentError, match=match):
            wrong()
    with pytest.raises(OutcomesError, match="nobody"):
        design.assurance(made, reference="nobody", tasks=100)


def test_more_tasks_and_runs_give_more_assurance(made):
    """And without end it is the posterior's own certainty of a difference: 1."""
    ask = {"reference": "config-0"}
    few, many, endless = (design.assurance(made, tasks=n, **ask).estimate[1:] for n in (20, 200, 10**9))
    assert ((few < many) & (many < endless)).all()
    gap = posterior.score(made).estimate
    assert (endless > 0.99).all(), gap
    assert (design.assurance(made, tasks=20, runs=50, **ask).estimate[1:] > few).all()


def test_a_pilot_is_what_a_loop_over_splits_gives(board):
    """Full runs in the pilot: its error is the floor, and the floor that of moments of each half, split by split."""
    small = board.isel(config=[0, 1], task=slice(0, 9))
    found = design.pilot(small, runs=[5], draws=30, seed=2)
    np.testing.assert_allclose(found.error.sel(runs=5), found.floor.sel(runs=5), atol=1e-12)
    first = np.random.default_rng(2).random((30, 9)).argsort(axis=1) < 4
    errors = []
    for half in first:
        sides = [frequentist.icc(small.isel(task=np.flatnonzero(side)), draws=2).estimate for side in (half, ~half)]
        errors.append(abs(sides[0] - sides[1]))
    np.testing.assert_allclose(found.floor.sel(quantity="icc", runs=5), np.nanmean(errors, axis=0), atol=1e-12)


def test_pilots_on_the_packaged_board(board):
    """More runs err less, none less than the floor. Published for other data: 0.18 to 0.27 and 0.09 to 0.11."""
    found = design.pilot(board, runs=[2, 3], draws=200)
    print(found[["mean_error", "mean_floor", "error_se"]].to_dataframe().round(3).to_string())
    slack = 4 * found.error_se
    assert (found.mean_error.sel(runs=3) < found.mean_error.sel(runs=2) + slack.sel(runs=2)).all()
    assert (found.mean_error > found.mean_floor).all()


def test_pilots_that_cannot_be(board):
    with pytest.raises(ArgumentError, match=r"from 2 to 5"):
        design.pilot(board, runs=[6])
    with pytest.raises(NotIdentifiedError, match="one run"):
        design.pilot(simulate.board(3, 20, 1))
    with pytest.raises(NotIdentifiedError, match="each half"):
        design.pilot(board.isel(task=slice(0, 3)))


def test_where_no_task_moves_the_difference_no_gap_is_claimed():
    """Two entries that pass the same tasks, or everything: a variance of 0 is no certainty."""
    twins = from_counts([[1, 0, 1, 0]] * 2, [[1] * 4] * 2, configs=["a", "b"], tasks=list("wxyz"))
    found = design.resolution(twins).sel(config="a", opponent="b")
    assert np.isnan(found.paired)
    assert found.unpaired > 0
    sure = design.resolution(from_counts([[1] * 4] * 2, [[1] * 4] * 2, configs=["a", "b"], tasks=list("wxyz")))
    assert np.isnan(sure.unpaired).all()
    for wrong in (lambda: design.smallest_gap(1.5, 10), lambda: design.smallest_gap(0.5, 10, power=0.01)):
        with pytest.raises(ArgumentError):
            wrong()
    with pytest.raises(ArgumentError, match="discordant"):
        design.smallest_lead(-1)
