"""Scores against quadrature, double loops and direct simulation, for each of the three targets."""

from functools import partial

import numpy as np
import pytest
import xarray as xr
from scipy import integrate, special

from evalbayes import NotIdentifiedError, SamplingError, posterior
from evalbayes.answer import check
from evalbayes.components import SAMPLED_ONLY
from evalbayes.posterior.draws import flat, future_score_draws, score_draws

FAILED = {"gate": "failed", "mean_gap": -0.031, "mean_gap_se": 1.7, "worst_gap": -0.052}


def quadrature(ability, weight, mean, scale):
    """E expit(ability + t), t from the mixture, by adaptive integration around each component."""

    def one(w, m, s):
        density = lambda t: np.exp(-0.5 * ((t - m) / s) ** 2) / (s * np.sqrt(2 * np.pi))  # noqa: E731
        value, _ = integrate.quad(
            lambda t: special.expit(ability + t) * density(t), m - 12 * s, m + 12 * s, points=[m], epsabs=1e-12
        )
        return w * value

    return sum(one(*part) for part in zip(weight, mean, scale, strict=True))


def quadratures(draws, ability):
    shape = (draws[f"task_{name}"].transpose("draw", "component").values for name in ("weight", "mean", "scale"))
    return np.array([quadrature(*one) for one in zip(ability.values, *shape, strict=True)])


def summaries(draws, prob=0.95):
    """Mean, sd and ends of plain columns of draws."""
    return draws.mean(0), draws.std(0, ddof=1), np.quantile(draws, [(1 - prob) / 2, (1 + prob) / 2], axis=0).T


@pytest.fixture(scope="module")
def made(fabricate):
    rng = np.random.default_rng(1)
    trials = rng.integers(1, 4, (3, 5))
    trials[0, :2] = 0
    return fabricate(rng.binomial(trials, 0.5), trials, draws=40)


def test_new_tasks_by_quadrature_on_the_real_fit(small_fit):
    """The model's own score: 24 draws x 8 configs, each within 1e-8 of adaptive integration."""
    draws = flat(small_fit).isel(draw=slice(None, None, 84))
    for config in draws.config.values:
        here = draws.sel(config=config)
        expected = quadratures(here, here["intercept"] + here["config_effect"])
        np.testing.assert_allclose(here["score"], expected, rtol=0, atol=1e-8)


def test_new_tasks_by_quadrature(made):
    draws = flat(made)
    ability = draws["intercept"] + draws["config_effect"]
    expected = np.stack([quadratures(draws, ability.sel(config=config)) for config in draws.config.values], axis=1)
    result = posterior.score(made, tasks="sampled")
    for mine, theirs in zip((result.estimate, result.se, result.interval), summaries(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-8)


def test_new_runs_of_these_tasks_by_a_double_loop(made):
    draws = flat(made)
    expected = np.zeros((draws.sizes["draw"], 3))
    for s in range(len(expected)):
        one = draws.isel(draw=s)
        for c in range(3):
            logits = [float(one.intercept + one.config_effect[c] + one.task_effect[t]) for t in range(5)]
            expected[s, c] = np.mean([1 / (1 + np.exp(-logit)) for logit in logits])
    result = posterior.score(made, tasks="fixed", prob=0.8)
    for mine, theirs in zip((result.estimate, result.se, result.interval), summaries(expected, 0.8), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)
    assert result.imputed.values.tolist() == [2, 0, 0]


def test_blocks_are_no_part_of_a_score(made, monkeypatch):
    """Draws are taken in blocks of bounded memory; a block of one must give the same digits."""
    whole = [score_draws(made, tasks="fixed")[0], score_draws(made, tasks="sampled", population="reweighted")[0]]
    monkeypatch.setattr("evalbayes.cells.BLOCK", 1)
    single = [score_draws(made, tasks="fixed")[0], score_draws(made, tasks="sampled", population="reweighted")[0]]
    for one, other in zip(whole, single, strict=True):
        xr.testing.assert_allclose(one, other, rtol=1e-14)


def test_reweighted_tasks_by_explicit_weights(fabricate):
    """The Bayesian bootstrap of tasks, against weights drawn here from gamma variables.

    4,000 draws on each side; means within 4.5 combined standard errors (7 in a million for each of 3 configs), sds
    within 6% (their standard errors are 1.1% each of a near-normal's, so 4 combined ones).
    """
    made = fabricate(np.random.default_rng(2).binomial(2, 0.5, (3, 7)), 2, draws=2000)
    draws = flat(made)
    gamma = np.random.default_rng(3).gamma(1.0, size=(4000, 7))
    weight = gamma / gamma.sum(axis=1, keepdims=True)
    ability = (draws["intercept"] + draws["config_effect"]).transpose("draw", "config").values
    p = special.expit(ability[:, :, None] + draws["task_effect"].transpose("draw", "task").values[:, None, :])
    expected = (p * weight[:, None, :]).sum(-1)
    result = posterior.score(made, population="reweighted")
    assert result.method.item() == "laplace_reweighted"
    # The draws of effects are the same on both sides, so only the weights add error: this is an upper bound.
    se = np.sqrt(2) * expected.std(0) / np.sqrt(4000)
    assert (abs(result.estimate.values - expected.mean(0)) < 4.5 * se).all()
    np.testing.assert_allclose(result.se, expected.std(0), rtol=0.06)


def test_reweighted_tasks_share_their_weights_over_configs(fabricate):
    """Two configs of equal effects differ by nothing, whatever the weights are."""
    made = fabricate([[1, 0, 2], [1, 0, 2]], 2)
    posterior_draws = made["posterior"].to_dataset()
    posterior_draws["config_effect"] = posterior_draws["config_effect"] * 0
    made["posterior"] = posterior_draws
    apart = posterior.difference(made, population="reweighted")
    assert (apart.estimate == 0).all()
    assert (apart.interval == 0).all()


@pytest.mark.parametrize("population", ["model", "reweighted"])
def test_a_future_entry_by_direct_simulation(fabricate, population):
    """Draw its effect as d + a, d ~ N(0, sigma^2 / M), a ~ N(0, sigma^2), then 30 tasks, and average their p.

    8,000 draws on each side: means within 4.5 combined standard errors, 7 in a million.
    """
    rng = np.random.default_rng(4)
    made = fabricate(rng.binomial(2, 0.5, (4, 9)), 2, draws=4000)
    draws = flat(made)
    size = draws.sizes["draw"]
    sigma = draws["config_sd"].values
    new = draws["intercept"].values + rng.normal(0, sigma / np.sqrt(4)) + rng.normal(0, sigma)
    if population == "model":
        upper = rng.random((30, size)) < draws["task_weight"].isel(component=1).values
        parts = (draws[f"task_{name}"].transpose("component", "draw").values for name in ("mean", "scale"))
        mean, scale = (np.where(upper, high, low) for low, high in parts)
        effect = rng.normal(mean, scale)
    else:
        effects = draws["task_effect"].transpose("task", "draw").values
        effect = np.take_along_axis(effects, rng.integers(9, size=(30, size)), axis=0)
    p = special.expit(new + effect).mean(axis=0)
    result = posterior.score(made, configs="sampled", population=population)
    assert result.estimate.dims == ()
    assert check(result).configs.item() == "sampled"
    exact = future_score_draws(made, tasks="sampled", population=population)
    se = np.sqrt(p.var() / size + float(exact.var()) / size)
    assert abs(float(result.estimate) - p.mean()) < 4.5 * se
    # An entry not on the board is less certain than any that is.
    assert float(result.se) > float(posterior.score(made, population=population).se.max())


def test_a_future_entry_integrates_over_tasks_exactly(fabricate):
    """With no spread of configs its score is that of the intercept alone, to 1e-10 of adaptive integration."""
    made = fabricate([[1, 2], [0, 1]], 2, draws=10)
    changed = made["posterior"].to_dataset()
    changed["config_sd"] = changed["config_sd"] * 0
    made["posterior"] = changed
    draws = flat(made)
    expected = quadratures(draws, draws["intercept"])
    np.testing.assert_allclose(future_score_draws(made, tasks="sampled"), expected, rtol=0, atol=1e-10)


def test_observed_is_exact_and_of_scored_tasks_alone(made):
    """Case 13: a task without a run is not a failure; the mean of task means has equal task weights."""
    k, n = made["observed_data"]["successes"].values, made["constant_data"]["trials"].values
    for tasks in ("fixed", "sampled"):
        result = posterior.score(made, tasks=tasks)
        expected = [np.mean([k[c, t] / n[c, t] for t in range(5) if n[c, t]]) for c in range(3)]
        np.testing.assert_allclose(result.observed, expected, rtol=1e-15)


def test_one_run_per_cell_leaves_the_interval_open(fabricate):
    """Nothing on the board says how a cell would vary: the observed mean, and a reason in place of an interval."""
    made = fabricate([[1, 0, 1, 1], [1, 0, 0, 0], [2, 0, 3, 1]], [[1] * 4, [1] * 4, [3] * 4])
    result = posterior.score(made, tasks="fixed")
    assert result.estimate.values[:2].tolist() == [0.75, 0.25]
    assert np.isnan(result.interval.values[:2]).all()
    assert np.isnan(result.se.values[:2]).all()
    assert np.isnan(result.interval_mcse.values[:2]).all()
    assert [str(text).split(":")[0] for text in result.reason.values] == ["one run per cell", "one run per cell", ""]
    assert np.isfinite(result.interval.values[2]).all()
    taken = posterior.score(made, tasks="fixed", assume="no_interaction")
    assert np.isfinite(taken.interval).all()
    assert taken.coords["assume"].item() == "no_interaction"
    assert (taken.reason == "").all()
    np.testing.assert_array_equal(taken.estimate[2], result.estimate[2])
    # New tasks are another question, and one run per cell answers it.
    assert np.isfinite(posterior.score(made).interval).all()


def test_a_config_without_a_scored_run_has_no_answer(fabricate):
    made = fabricate([[0, 0, 0], [2, 1, 0]], [[0, 0, 0], [2, 2, 2]])
    for target in (
        {"tasks": "fixed"},
        {},
        {"population": "reweighted"},
        {"tasks": "fixed", "assume": "no_interaction"},
    ):
        result = posterior.score(made, **target)
        assert np.isnan(result.estimate.values[0])
        assert np.isnan(result.interval.values[0]).all()
        assert str(result.reason.values[0]).startswith("no scored run")
        assert np.isfinite(result.estimate.values[1])
        assert result.imputed.values.tolist() == [3, 0]
        pairs = posterior.difference(made, **target)
        assert np.isnan(pairs.estimate.values[[0, 1], [1, 0]]).all()
        assert (pairs.estimate.values.diagonal() == 0).all()


def test_a_failed_population_is_refused_with_its_gap_and_a_way_out(fabricate, needs):
    made = fabricate([[1, 0, 1], [2, 1, 0]], 2, **FAILED)
    with pytest.raises(SamplingError, match=r"-3\.1 points.*ask frequentist\.variance_components"):
        posterior.variance_components(made)
    for name in set(posterior.__all__) - {"variance_components"}:
        function = partial(getattr(posterior, name), **needs(getattr(posterior, name)))
        with pytest.raises(
            SamplingError, match=r"-3\.1 points on average \(1\.7 standard errors; -5\.2 at worst\).*rew"
        ):
            function(made)
        assert np.isfinite(function(made, population="reweighted").estimate).all()
        described = function(made, tasks="fixed")
        assert (np.isfinite(described.estimate) | (described.reason == SAMPLED_ONLY)).all()
    with pytest.raises(SamplingError, match=r"-3\.1 points"):
        posterior.score(made, configs="sampled")
    assert np.isfinite(posterior.score(made, configs="sampled", population="reweighted").estimate)
    with pytest.raises(NotIdentifiedError):
        posterior.score(made, configs="sampled", tasks="fixed")


def test_interval_mcse_is_the_spread_of_an_interval_end(fabricate):
    """500 configs whose 400 draws are independent and alike: the sd of their interval ends against the mean reported.

    The sd of 500 values has a standard error of 3.2%, and the ends are near normal: 16% is 5 of them.
    """
    scores = special.expit(np.random.default_rng(5).normal(0, 0.5, (400, 500)))
    result = posterior.score(fabricate(np.ones((500, 2), int), 1, draws=200, scores=scores))
    # The effective number is harmonic in proposals and resampled draws: half of 400, so sqrt(2) wider.
    expected = np.sqrt(2) * result.interval.std("config", ddof=1)
    np.testing.assert_allclose(result.interval_mcse.mean("config"), expected, rtol=0.16)
