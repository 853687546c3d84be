"""The beta-binomial models against independent computation: scipy's densities, adaptive quadrature, exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import integrate, special, stats

from evalbayes.density import compile_density, data_of
from evalbayes.models.beta_binomial import beta_binomial
from evalbayes.models.crossed import crossed
from evalbayes.models.crossed_beta_binomial import crossed_beta_binomial

EFFECT, TASKS = np.array([0.7, -0.4, 0.1, -0.4]), 8
LOG_KAPPA = np.array([0.3, 1.4, -0.8, 2.5])


@pytest.fixture(scope="module")
def board() -> xr.Dataset:
    """4 configs x 8 tasks, 0 to 7 runs a cell, one config that always passes."""
    rng = np.random.default_rng(5)
    trials = rng.integers(0, 8, size=(4, TASKS))
    trials[0, 0] = 0
    successes = rng.binomial(trials, rng.random((4, TASKS)))
    successes[3] = trials[3]
    return xr.Dataset(
        {"successes": (("config", "task"), successes), "trials": (("config", "task"), trials)},
        coords={"config": list("abcd"), "task": [f"t{i}" for i in range(TASKS)]},
    )


def point(density, **more) -> np.ndarray:
    """A fixed point, normal task effects of sd 1.6, laid out as the model's value variables."""
    shift = -EFFECT[-1] * 2 / 6
    values = {
        "intercept": 0.2,
        "config_sd_log__": np.log(0.9),
        "config_effect_zerosum__": EFFECT[:-1] + shift,
        "task_sd_log__": np.log(1.6),
        "log_kappa_mean": 0.5,
        "log_kappa_sd_log__": np.log(0.7),
        "log_kappa": LOG_KAPPA,
    } | more
    return np.concatenate([np.ravel(values[name]) for name in density.slices])


def log_prior() -> float:
    """Priors by scipy, with the Jacobians of the log transforms."""
    total = stats.norm(0, 1.5).logpdf(0.2) + stats.norm(0, 1.5).logpdf(0.5)
    for scale, value in ((1.5, 0.9), (0.5, 0.7)):
        total += stats.halfnorm(0, scale).logpdf(value) + np.log(value)
    total += 3 * stats.norm(0, 0.9).logpdf(0) - 0.5 * (EFFECT**2).sum() / 0.9**2
    return float(total + stats.norm(0.5, 0.7).logpdf(LOG_KAPPA).sum())


def task_prior() -> float:
    return float(stats.halfnorm(0, 2.5).logpdf(1.6) + np.log(1.6))


def log_mass(k, n, mu, log_kappa):
    kappa = np.exp(log_kappa)
    return stats.betabinom.logpmf(k, n, mu * kappa, (1 - mu) * kappa)


def test_latent_density_is_scipys(board):
    density = compile_density(crossed_beta_binomial(board, task_density="normal"))
    data = data_of(density.model)
    t = np.random.default_rng(1).normal(size=TASKS)
    x = point(density, task_effect=t)
    mu = special.expit(0.2 + EFFECT[:, None] + t)
    expected = log_mass(board["successes"].values, board["trials"].values, mu, LOG_KAPPA[:, None]).sum()
    found = float(density.logp(x, data) - density.log_prior(x, data))
    prior = log_prior() + task_prior() + stats.norm(0, 1.6).logpdf(t).sum()
    print(f"latent: log likelihood off scipy's by {abs(found - expected):.1e}")
    assert found == pytest.approx(expected, abs=1e-10)
    assert float(density.log_prior(x, data)) == pytest.approx(prior, abs=1e-10)


def test_marginal_density_is_the_brute_force_integral(board):
    density = compile_density(crossed_beta_binomial(board, task_density="normal", marginal=True))
    data = data_of(density.model)
    x = point(density)
    k, n = board["successes"].values, board["trials"].values

    def integrand(t: float, task: int) -> float:
        mu = special.expit(0.2 + EFFECT + t)
        return float(np.exp(log_mass(k[:, task], n[:, task], mu, LOG_KAPPA).sum()) * stats.norm(0, 1.6).pdf(t))

    expected = sum(
        np.log(integrate.quad(integrand, -15, 15, args=(task,), epsabs=0, epsrel=1e-11, limit=200, points=[0.0])[0])
        for task in range(TASKS)
    )
    found = float(density.logp(x, data) - density.log_prior(x, data))
    print(f"marginal: off the integral by {abs(found - expected):.1e}, summed over {TASKS} tasks")
    assert found == pytest.approx(expected, abs=1e-8)
    assert float(density.log_prior(x, data)) == pytest.approx(log_prior() + task_prior(), abs=1e-10)


def test_exchangeable_tasks_are_scipys_too(board):
    density = compile_density(beta_binomial(board))
    data = data_of(density.model)
    x = point(density)
    mu = special.expit(0.2 + EFFECT)[:, None]
    expected = log_mass(board["successes"].values, board["trials"].values, mu, LOG_KAPPA[:, None]).sum()
    assert float(density.logp(x, data) - density.log_prior(x, data)) == pytest.approx(expected, abs=1e-10)
    assert float(density.log_prior(x, data)) == pytest.approx(log_prior(), abs=1e-10)


def one_cell(k: int, n: int) -> xr.Dataset:
    return xr.Dataset(
        {"successes": (("config", "task"), [[k]]), "trials": (("config", "task"), [[n]])},
        coords={"config": ["a"], "task": ["t"]},
    )


def of_one_cell(k: int, n: int, form: bool):
    """The log likelihood of one cell; with a task effect of sd 1e-30 the grid's integral is the mass at mu itself."""
    model = crossed_beta_binomial(one_cell(k, n), task_density="normal", marginal=form)
    density, data = compile_density(model), data_of(model)

    def log_likelihood(**values: float) -> float:
        values |= {"task_sd_log__": np.log(1e-30), "task_effect": 0.0}
        x = np.concatenate([np.ravel(values[name]) for name in density.slices])
        return float(density.logp(x, data) - density.log_prior(x, data))

    return log_likelihood


def exact(k: int, n: int, mu: Fraction, kappa: Fraction) -> float:
    """Log of the beta-binomial mass, in whole numbers until the last step."""
    mass = Fraction(int(special.comb(n, k, exact=True)))
    for j in range(n):
        a = mu * kappa + j if j < k else (1 - mu) * kappa + j - k
        mass *= a / (kappa + j)
    return float(np.log(mass.numerator / mass.denominator))


@pytest.mark.parametrize("form", [False, True])
def test_full_precision_at_every_kappa(form):
    """Case 50: y = 2 of 5 at mu = 1/2; differences of log gammas give a probability above 1 at 1e16."""
    k, n = 2, 5
    log_likelihood = of_one_cell(k, n, form)
    for power in range(2, 17, 2):
        found = log_likelihood(intercept=0.0, log_kappa=power * np.log(10.0))
        expected = exact(k, n, Fraction(1, 2), Fraction(10) ** power)
        scipys = log_mass(k, n, 0.5, power * np.log(10.0))
        print(f"kappa 1e{power}: {found:.15f}, exact {expected:.15f}, scipy {scipys:.6f}")
        assert found == pytest.approx(expected, abs=1e-13)


def test_the_published_values_of_case_50():
    assert exact(2, 5, Fraction(1, 2), Fraction(100)) == pytest.approx(-1.182857, abs=5e-7)
    assert exact(2, 5, Fraction(1, 2), Fraction(10) ** 6) == pytest.approx(-1.163153, abs=5e-7)
    assert exact(2, 5, Fraction(1, 2), Fraction(10) ** 16) == pytest.approx(-1.163151, abs=5e-7)


def test_an_infinite_kappa_is_the_crossed_model(board):
    """At kappa = 1e30 psi is 0 to rounding, and so is the difference of the two models."""
    wide, narrow = (compile_density(m(board, task_density="normal")) for m in (crossed_beta_binomial, crossed))
    t = np.linspace(-2, 2, TASKS)
    found, expected = (
        float(d.logp(x, data_of(d.model)) - d.log_prior(x, data_of(d.model)))
        for d in (wide, narrow)
        for x in [point(d, task_effect=t, log_kappa=np.full(4, 30 * np.log(10)))]
    )
    assert found == pytest.approx(expected, abs=1e-10)


def test_constants_are_not_narrowed():
    """Case 51: prior constants go in as float64; a Python float would be good to seven digits only."""
    density = compile_density(crossed_beta_binomial(one_cell(1, 2), intercept=0.1, log_kappa_mean=0.3, marginal=True))
    base = np.zeros(density.size)
    for name, scale in (("intercept", 0.1), ("log_kappa", 0.3)):
        moved = base.copy()
        moved[density.slices[name]] = 5.0
        difference = density.log_prior(moved, data_of(density.model)) - density.log_prior(base, data_of(density.model))
        assert float(difference) == pytest.approx(-0.5 * (5.0 / scale) ** 2, rel=1e-14)


def test_a_cell_without_runs_adds_exactly_nothing(board):
    """Case 58: n = 0 is a factor of one, in both forms; a config is fitted on the cells it has."""
    empty = board.copy(deep=True)
    empty["trials"][:, 2] = empty["successes"][:, 2] = 0
    for form in (True, False):
        for function in (crossed_beta_binomial, crossed):
            whole, part = (
                function(b, task_density="normal", marginal=form)
                for b in (empty, empty.isel(task=[0, 1, 3, 4, 5, 6, 7]))
            )
            t = np.linspace(-1, 1, TASKS)
            values = []
            for model, effects in ((whole, t), (part, np.delete(t, 2))):
                d = compile_density(model)
                x = point(d, task_effect=effects)
                values.append(float(d.logp(x, data_of(model)) - d.log_prior(x, data_of(model))))
            assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_one_run_says_nothing_of_kappa():
    """Case 49: a beta-binomial of one run is a Bernoulli whatever kappa is."""
    board = one_cell(1, 1)
    density = compile_density(beta_binomial(board))
    data = data_of(density.model)
    logit = special.logit(0.3)
    masses = [
        float(density.logp(x, data) - density.log_prior(x, data))
        for kappa in (0.1, 1.0, 1000.0)
        for x in [
            np.concatenate([np.ravel({"intercept": logit, "log_kappa": np.log(kappa)}[n]) for n in density.slices])
        ]
    ]
    np.testing.assert_allclose(np.exp(masses), 0.3, rtol=1e-12)


def by_the_run(k: int, n: int, mu: float, kappa: float) -> float:
    """The log mass without its coefficient, a run at a time in extended precision."""
    long = np.longdouble

    def rising(p: float, runs: int) -> np.longdouble:
        return np.log(long(p) + np.arange(runs, dtype=long) / long(kappa)).sum()

    return float(rising(mu, k) + rising(1 - mu, n - k) - rising(1.0, n))


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize(("k", "n"), [(97, 200), (40, 40), (31, 10_000), (199_990, 200_000)])
def test_cells_of_many_runs_are_summed_as_if_run_by_run(k, n, form):
    """Runs after the thirty-second go by Stirling's series, between counts that occur: relative error below 1e-12."""
    log_likelihood = of_one_cell(k, n, form)
    coefficient = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    for kappa in (1e-3, 1.0, 50.0, 1e8):
        found = log_likelihood(intercept=0.4, log_kappa=np.log(kappa)) - coefficient
        expected = by_the_run(k, n, special.expit(0.4), kappa)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-8)


def test_steps_of_many_runs_end_where_counts_do():
    trials = np.array([[100, 50, 3], [100, 0, 100]])
    successes = np.array([[60, 33, 3], [100, 0, 1]])
    cell = ("config", "task")
    board = xr.Dataset(
        {"successes": (cell, successes), "trials": (cell, trials)}, coords={"config": ["a", "b"], "task": list("xyz")}
    )
    data = data_of(crossed_beta_binomial(board, marginal=True))
    ends = np.asarray(data["earlier_runs"] + data["runs_at_once"]).tolist()
    assert ends == [*range(1, 33), 33, 40, 50, 60, 99, 100]


def test_simulated_counts_are_the_beta_binomials(board):
    """Case: prediction by the model's own draws, against the closed mean and variance; 4 standard errors of 64 cells.

    64 comparisons at four standard errors: a false alarm in about 250 seeds.
    """
    model = beta_binomial(board)
    eta, log_kappa = 0.3, np.log(2.5)
    given = {"intercept": eta, "config_effect": np.zeros(4), "log_kappa": np.full(4, log_kappa)}
    fixed = pm.do(model, given)
    draws = 4000
    k = pm.draw(fixed["successes_observed"], draws=draws, random_seed=3)
    n, mu, kappa = board["trials"].values.T, special.expit(eta), np.exp(log_kappa)
    mean = n * mu
    variance = n * mu * (1 - mu) * (1 + (n - 1) / (1 + kappa))
    z = np.abs(k.mean(0) - mean) / np.sqrt(np.maximum(variance, 1e-9) / draws)
    assert z[n > 0].max() < 4
    kurtosis = ((k - mean) ** 4).mean(0) - variance**2
    z = np.abs(((k - mean) ** 2).mean(0) - variance) / np.sqrt(np.maximum(kurtosis, 1e-9) / draws)
    assert z[n > 0].max() < 4
    assert (k[:, n == 0] == 0).all()


def test_the_implied_prior_on_the_correlation_is_near_uniform(board):
    """Normal(0, 1.5) on log kappa: no tenth of (0, 1) gets less than 5% or more than 15% of 1 / (1 + kappa)."""
    one = beta_binomial(board.isel(config=[0]))
    draws = pm.draw(one["log_kappa"], draws=20_000, random_seed=1)
    share = np.histogram(1 / (1 + np.exp(draws)), bins=10, range=(0, 1))[0] / draws.size
    assert share.min() > 0.05
    assert share.max() < 0.15


def test_zero_sum_effects_have_the_smaller_sd_that_the_docstring_says():
    """Case 57: sqrt(1 - 1/M) of the scale, for M = 2, 3, 10; 40,000 draws know a sd to 0.4%."""
    for m, expected in ((2, 0.7071), (3, 0.8165), (10, 0.9487)):
        board = xr.Dataset(
            {name: (("config", "task"), np.ones((m, 2), int)) for name in ("successes", "trials")},
            coords={"config": [f"c{i}" for i in range(m)], "task": ["s", "t"]},
        )
        model = pm.do(crossed(board), {"config_sd": 1.0})
        draws = pm.draw(model["config_effect"], draws=40_000 // m, random_seed=2)
        np.testing.assert_allclose(draws.sum(axis=1), 0, atol=1e-12)
        assert draws.std() == pytest.approx(expected, rel=0.02)


def test_one_config_has_neither_effect_nor_scale(board):
    """Case 54."""
    one = board.isel(config=[1])
    for function in (crossed, crossed_beta_binomial, beta_binomial):
        for form in (True, False):
            names = {variable.name for variable in function(one, marginal=form).free_RVs}
            assert not names & {"config_effect", "config_sd", "log_kappa_mean", "log_kappa_sd"}
            assert "intercept" in names


def test_earlier_runs_are_data(board):
    """A board of more runs is another argument of the compiled density, not another constant in it."""
    data = data_of(crossed_beta_binomial(board, marginal=True))
    np.testing.assert_array_equal(data["earlier_runs"], np.arange(int(board["trials"].max())))
    np.testing.assert_array_equal(data["runs_at_once"], 1.0)
