"""Several runs of one task, on both sides: published figures, brute force over picks, closed forms, refusals."""

import inspect
import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats

from evalbayes import (
    ArgumentError,
    NotIdentifiedError,
    attempts,
    compare,
    describe_tasks,
    frequentist,
    posterior,
)
from evalbayes.answer import check as checked
from evalbayes.cells import ability, concentration
from evalbayes.outcomes import from_counts, from_table
from evalbayes.posterior.draws import flat

TRIALS = np.array([[4] * 6, [5, 4, 3, 2, 1, 0], [1] * 6])
SUCCESSES = np.array([[4, 0, 2, 3, 1, 4], [5, 2, 3, 0, 1, 0], [1, 0, 1, 1, 0, 0]])
GIVEN = {"pass_at_k": {"k": 3}, "pass_all_k": {"k": 3}, "agreement_rate": {"runs": 3}, "flip_rate": {}}


def board_of(successes, trials):
    successes, trials = np.atleast_2d(successes), np.atleast_2d(trials)
    names = [[f"{dim}-{i}" for i in range(size)] for dim, size in zip(("config", "task"), trials.shape, strict=True)]
    return from_counts(successes, trials, configs=names[0], tasks=names[1])


def by_picks(quantity, k, n, runs):
    """Mean over all ways to pick ``runs`` of n runs, k of which passed."""
    picks = [sum(pick) for pick in itertools.combinations([1] * k + [0] * (n - k), runs)]
    holds = {
        "pass_at_k": lambda passed: passed > 0,
        "pass_all_k": lambda passed: passed == runs,
        "agreement_rate": lambda passed: passed in (0, runs),
        "flip_rate": lambda passed: passed == 1,
    }[quantity]
    return np.mean([holds(passed) for passed in picks]) if picks else np.nan


@pytest.mark.parametrize("quantity", attempts.QUANTITIES)
def test_every_task_is_the_share_of_the_ways_to_pick_its_runs(quantity):
    runs = 2 if quantity == "flip_rate" else 3
    found = getattr(frequentist, quantity)(board_of(SUCCESSES, TRIALS), draws=200, **GIVEN[quantity])
    for config in range(2):
        each = [by_picks(quantity, k, n, runs) for k, n in zip(SUCCESSES[config], TRIALS[config], strict=True)]
        assert found.estimate[config] == pytest.approx(np.nanmean(each))
        assert found.coverage[config] == pytest.approx(np.isfinite(each).mean())
        # What a task could still show, run by run: every way to fill it up.
        fills = [
            [by_picks(quantity, k + more, runs, runs) for more in range(runs - n + 1)] if n < runs else [value]
            for k, n, value in zip(SUCCESSES[config], TRIALS[config], each, strict=True)
        ]
        assert found.lowest[config] == pytest.approx(np.mean([min(fill) for fill in fills]))
        assert found.highest[config] == pytest.approx(np.mean([max(fill) for fill in fills]))
    assert np.isnan(found.estimate[2])
    assert "no unbiased estimate exists from fewer" in found.reason[2].item()


def test_case_26_pass_at_k_needs_k_runs_of_a_task():
    """Three runs say nothing unbiased of five, whether they passed or failed; one run of 164 tasks nothing of ten."""
    for k in (0, 3):
        found = frequentist.pass_at_k(board_of([k, k], [3, 3]), k=5)
        assert np.isnan(found.estimate.item())
        assert "5 runs or more" in found.reason.item()
    problems = board_of(np.arange(164) < 50, np.ones(164, int))
    assert np.isnan(frequentist.pass_at_k(problems, k=10).estimate.item())
    assert round(frequentist.pass_at_k(problems, k=1).estimate.item(), 4) == 0.3049
    assert 1 - attempts.share_of_picks(199, 200, 1) == pytest.approx(0.005, abs=1e-15)
    assert 1 - attempts.share_of_picks(3, 4, 4) == 1.0


def test_case_27_pass_all_k_is_unbiased_and_not_a_power():
    for n, c, k, right in ((4, 3, 2, 0.5), (4, 2, 3, 0.0), (10, 9, 2, 0.8), (10, 9, 10, 0.0)):
        assert attempts.share_of_picks(c, n, k) == pytest.approx(right, abs=1e-15)
        assert attempts.share_of_picks(c, n, k) == pytest.approx(float(Fraction(comb(c, k), comb(n, k))), abs=1e-15)


def test_case_47_no_flips_seen_still_leaves_a_chance_to_flip():
    """8 cells x 2 runs that never differ: the estimate is 0 with no interval, not an interval of no width."""
    found = frequentist.flip_rate(board_of([2, 2, 0, 0, 2, 0, 2, 0], [2] * 8))
    assert found.estimate.item() == 0.0
    assert np.isnan(found.interval).all()
    assert "no certainty" in found.reason.item()


def test_oracle_8_tau_bench(shared_data):
    """pass^1 to pass^4 of tau-bench's airline board as its README prints them."""
    table = pd.read_csv(shared_data / "tau_bench_airline.csv")
    board = from_table(table, config="config", task="task", run="run", outcome="outcome")
    found = [frequentist.pass_all_k(board, k=k).estimate.item() for k in (1, 2, 3, 4)]
    print("pass^1..4", np.round(found, 3).tolist())
    assert np.round(found, 3).tolist() == [0.42, 0.273, 0.22, 0.2]


def test_the_interval_covers_new_tasks():
    """p ~ Beta(1, 1), 40 tasks x 4 runs, pass^2 = 1/3: both methods hold it in 95% of 200 boards, give or take 4 se."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(200, 40))
    board = board_of(rng.binomial(4, p), np.full(p.shape, 4))
    for method in ("one_level_bootstrap", "clustered_normal"):
        ends = frequentist.pass_all_k(board, k=2, method=method, draws=1000).interval
        covered = ((ends.sel(ci_bound="lower") < 1 / 3) & (ends.sel(ci_bound="upper") > 1 / 3)).mean().item()
        print(method, "coverage", covered)
        # The normal interval of 40 tasks is a little short: 0.95 less 0.01, four standard errors of 200 boards below.
        assert covered > 0.94 - 4 * np.sqrt(0.95 * 0.05 / 200)


@pytest.mark.parametrize(("mu", "kappa"), [(0.3, 0.5), (0.8, 4.0), (0.05, 100.0)])
def test_chance_of_all_is_the_beta_integral(mu, kappa):
    for runs in (1, 2, 5):
        exact = special.beta(mu * kappa + runs, (1 - mu) * kappa) / special.beta(mu * kappa, (1 - mu) * kappa)
        assert attempts.chance_of_all(mu, 1 / kappa, runs) == pytest.approx(exact, rel=1e-10)
    assert attempts.chance_of_all(mu, 0.0, 5) == pytest.approx(mu**5)


@pytest.fixture(scope="module")
def made(fabricate):
    """A fit with kappa, whose draws no sampler has seen; the last config ran no task twice."""
    fit = fabricate(SUCCESSES, TRIALS)
    log_kappa = np.random.default_rng(5).normal(1.0, 0.8, fit["posterior"]["config_effect"].shape)
    fit["posterior"] = fit["posterior"].to_dataset().assign(log_kappa=(("chain", "draw", "config"), log_kappa))
    return fit


@pytest.mark.parametrize("quantity", attempts.QUANTITIES)
def test_new_tasks_by_brute_force(made, quantity):
    """At single draws: adaptive quadrature over the mixture of task effects and over the Beta around mu."""
    posterior_draws = flat(made)
    runs = 2 if quantity == "flip_rate" else 3
    from evalbayes.posterior.attempts import _over_new_tasks

    found = _over_new_tasks(posterior_draws, quantity, runs)
    at, kappa = ability(posterior_draws).values, concentration(posterior_draws)
    for draw, config in ((0, 0), (7, 1)):
        weight, mean, scale = (posterior_draws[n].values[draw] for n in ("task_weight", "task_mean", "task_scale"))

        def integrand(t, draw=draw, config=config, parts=(weight, mean, scale)):
            mu = 1 / (1 + np.exp(-(at[draw, config] + t)))
            a, b = mu * kappa[draw, config], (1 - mu) * kappa[draw, config]
            chances = [special.beta(x + runs, y) / special.beta(x, y) for x, y in ((a, b), (b, a))]
            density = sum(w * stats.norm(m, s).pdf(t) for w, m, s in zip(*parts, strict=True))
            return attempts.value(quantity, *chances) * density

        ends = (mean - 9 * scale).min(), (mean + 9 * scale).max()
        exact = integrate.quad(integrand, *ends, limit=200, points=sorted(mean))[0]
        assert found[draw, config] == pytest.approx(exact, abs=1e-6)


def test_one_run_is_the_score_and_two_are_the_within_variance(made):
    """Identities: pass@1 = pass^1 = score; flip rate = 2 mu_w = 1 - stability at two; pass@k rises and pass^k falls."""
    for tasks in ("sampled", "fixed"):
        one = [getattr(posterior, name)(made, k=1, tasks=tasks) for name in ("pass_at_k", "pass_all_k")]
        score = posterior.score(made, tasks=tasks)
        for found in one:
            np.testing.assert_allclose(
                found.estimate[:2], score.estimate[:2], atol=0.02 if tasks == "sampled" else 1e-9
            )
        flips = posterior.flip_rate(made, tasks=tasks).estimate
        stable = posterior.agreement_rate(made, runs=2, tasks=tasks).estimate
        np.testing.assert_allclose(flips, 1 - stable, atol=1e-12)
        curve = [posterior.pass_at_k(made, k=k, tasks=tasks).estimate[0].item() for k in (1, 2, 5, 50)]
        assert curve == sorted(curve)
    board = board_of(SUCCESSES[:1], TRIALS[:1])
    assert frequentist.flip_rate(board).estimate.item() == pytest.approx(
        2 * frequentist.within_variance(board).estimate.item()
    )
    for name in ("pass_at_k", "pass_all_k"):
        one = getattr(frequentist, name)(board, k=1)
        assert one.estimate.item() == pytest.approx(frequentist.score(board).estimate.item())


def test_a_config_that_ran_no_task_twice_has_a_reason_and_one_run_an_answer(made):
    for quantity, given in GIVEN.items():
        found = getattr(posterior, quantity)(made, **given)
        assert np.isnan(found.estimate[2])
        assert found.reason[2].item().startswith("one run of each task")
        assert np.isfinite(found.estimate[:2]).all()
    assert np.isfinite(posterior.pass_at_k(made, k=1).estimate).all()


@pytest.mark.parametrize("quantity", attempts.QUANTITIES)
def test_both_sides_keep_the_contract(made, quantity):
    mine, theirs = (inspect.signature(getattr(side, quantity)).parameters for side in (posterior, frequentist))
    for name in ("tasks", "configs", "prob", *GIVEN[quantity]):
        assert mine[name].default == theirs[name].default
        assert mine[name].kind is theirs[name].kind
    board = from_counts(
        SUCCESSES,
        TRIALS,
        configs=made["posterior"].config.values.tolist(),
        tasks=made["posterior"].task.values.tolist(),
    )
    for tasks in ("sampled", "fixed"):
        both = compare(quantity, made, board, tasks=tasks, **GIVEN[quantity])
        assert both.sizes["method"] == 2
        assert checked(getattr(frequentist, quantity)(board, tasks=tasks, **GIVEN[quantity]))
        assert both.runs.item() == (2 if quantity == "flip_rate" else 3)
    for side, data in ((posterior, made), (frequentist, board)):
        with pytest.raises(NotIdentifiedError, match="configs='sampled'"):
            getattr(side, quantity)(data, configs="sampled", **GIVEN[quantity])
        for name in GIVEN[quantity]:
            for wrong in (0, 2.5, True):
                with pytest.raises(ArgumentError, match=f"{name}={wrong}: give a number of runs"):
                    getattr(side, quantity)(data, **{name: wrong})
    with pytest.raises(NotIdentifiedError, match="does not cover"):
        frequentist.flip_rate(board, tasks="fixed", method="one_level_bootstrap")


def test_tasks_are_always_passed_dead_flaky_dividing_or_unscored():
    board = board_of([[2, 0, 1, 2, 0, 1], [2, 0, 0, 0, 0, 1]], [[2, 2, 2, 2, 0, 1], [2, 2, 2, 2, 0, 1]])
    table = describe_tasks(board)
    assert table.kind.values.tolist() == ["always pass", "dead", "flaky", "divides", "unscored", "always pass"]
    assert table.run_once.values.tolist() == [0, 0, 0, 0, 0, 2]
    total = table.always_pass + table.never_pass + table.flaky
    assert (total == table.configs_scored).all()
    assert table.observed.values[:4].tolist() == [1.0, 0.0, 0.25, 0.5]


def test_a_ragged_board_says_what_it_used_and_what_the_rest_could_change():
    """Half the tasks have four runs: pass^4 is over those, and one half either way over all."""
    board = board_of([4, 4, 1, 1], [4, 4, 1, 1])
    found = frequentist.pass_all_k(board, k=4, draws=100)
    assert (found.estimate.item(), found.coverage.item()) == (1.0, 0.5)
    assert (found.lowest.item(), found.highest.item()) == (0.5, 1.0)
