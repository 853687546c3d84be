"""The crossed model against independent computation: scipy's densities and adaptive quadrature, no shared grid."""

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytest
import xarray as xr
from scipy import integrate, special, stats

from evalbayes.density import compile_density, data_of
from evalbayes.models import effects
from evalbayes.models.crossed import crossed
from evalbayes.models.effects import SHAPES

POINTS = (0, 1)
"""Seeds of the parameter points."""


@pytest.fixture(scope="module")
def board() -> xr.Dataset:
    rng = np.random.default_rng(3)
    trials = rng.integers(0, 4, size=(4, 10))
    trials[0, 0] = trials[1, 0] = 0
    successes = rng.binomial(trials, rng.random((4, 1)))
    successes[3] = trials[3]
    return xr.Dataset(
        {"successes": (("config", "task"), successes), "trials": (("config", "task"), trials)},
        coords={"config": list("abcd"), "task": [f"t{i}" for i in range(10)]},
    )


def parameters(seed: int, density: str) -> dict[str, np.ndarray]:
    """A point with its mixture written out: weights, means and scales from w, rho and r by the formula in words."""
    rng = np.random.default_rng(seed)
    effect = rng.normal(size=4)
    point = {"b": rng.normal(), "config_sd": rng.uniform(0.5, 2), "task_sd": rng.uniform(0.5, 3)}
    point |= {"a": effect - effect.mean(), "weight": np.ones(1), "mean": np.zeros(1), "scale": np.ones(1)}
    if density == "mixture":
        w, rho, r = rng.uniform(0.2, 0.8), rng.uniform(0.1, 0.8), np.exp(rng.normal(0, 0.4))
        distance = np.sqrt(rho / (w * (1 - w)))
        narrow = np.sqrt((1 - rho) / ((1 - w) + w * r**2))
        point |= {"w": w, "rho": rho, "log_r": np.log(r), "weight": np.array([1 - w, w])}
        point |= {"mean": np.array([-w * distance, (1 - w) * distance]), "scale": np.array([narrow, narrow * r])}
    return point


def unconstrained(density, point) -> np.ndarray:
    """Lay the point out as the model's value variables; the zero-sum transform is PyMC's own isometry."""
    last = -point["a"][-1] * 2.0
    shift = last / (2.0 + 4.0)
    values = {
        "intercept": point["b"],
        "config_sd_log__": np.log(point["config_sd"]),
        "config_effect_zerosum__": point["a"][:-1] + shift,
        "task_sd_log__": np.log(point["task_sd"]),
    }
    if "w" in point:
        values |= {
            "upper_weight_logodds__": special.logit(point["w"]),
            "separation_logodds__": special.logit(point["rho"]),
            "log_scale_ratio": point["log_r"],
        }
    if "t" in point:
        values["task_effect"] = point["t"]
    return np.concatenate([np.ravel(values[name]) for name in density.slices])


def log_prior(point) -> float:
    """Priors by scipy, with the Jacobians of the log and logit transforms."""
    total = stats.norm(0, 1.5).logpdf(point["b"])
    total += stats.halfnorm(0, 1.5).logpdf(point["config_sd"]) + np.log(point["config_sd"])
    total += stats.halfnorm(0, 2.5).logpdf(point["task_sd"]) + np.log(point["task_sd"])
    # Zero-sum normal: an isotropic normal in the three dimensions orthogonal to (1, 1, 1, 1).
    total += 3 * stats.norm(0, point["config_sd"]).logpdf(0) - 0.5 * (point["a"] ** 2).sum() / point["config_sd"] ** 2
    if "w" in point:
        for share in (point["w"], point["rho"]):
            total += stats.beta(2, 2).logpdf(share) + np.log(share * (1 - share))
        total += stats.norm(0, 0.5).logpdf(point["log_r"])
    return float(total)


def task_density(point, t):
    return sum(
        w * stats.norm(point["task_sd"] * m, point["task_sd"] * s).pdf(t)
        for w, m, s in zip(point["weight"], point["mean"], point["scale"], strict=True)
    )


def likelihood(board: xr.Dataset, task: int, point, t) -> float:
    p = special.expit(point["b"] + point["a"] + t)
    cells = board.isel(task=task)
    return float(stats.binom.pmf(cells["successes"].values, cells["trials"].values, p).prod())


def brute_force(board: xr.Dataset, point) -> float:
    """Sum over tasks of the log of an adaptive integral of binomial likelihoods times the density of t."""
    reach = 9 * point["task_sd"]
    total = 0.0
    for task in range(board.sizes["task"]):
        value, _ = integrate.quad(
            lambda t, task=task: likelihood(board, task, point, t) * task_density(point, t),
            -reach, reach, epsabs=0, epsrel=1e-11, limit=200, points=[0.0],
        )  # fmt: skip
        total += np.log(value)
    return total


@pytest.mark.parametrize("shape", SHAPES)
def test_marginal_log_density_is_the_brute_force_integral_of_the_latent_one(board, shape):
    density = compile_density(crossed(board, marginal=True, task_density=shape))
    data = data_of(density.model)
    for seed in POINTS:
        point = parameters(seed, shape)
        x = unconstrained(density, point)
        marginal = float(density.logp(x, data) - density.log_prior(x, data))
        error = abs(marginal - brute_force(board, point))
        print(f"{shape}, point {seed}: marginal log-likelihood off the integral by {error:.1e}, summed over 10 tasks")
        assert error < 1e-8


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("marginal", [True, False])
def test_log_prior_is_scipys(board, shape, marginal):
    density = compile_density(crossed(board, marginal=marginal, task_density=shape))
    for seed in POINTS:
        point = parameters(seed, shape)
        expected = log_prior(point)
        if not marginal:
            point["t"] = np.random.default_rng(seed).normal(size=10)
            expected += np.log(task_density(point, point["t"])).sum()
        assert float(density.log_prior(unconstrained(density, point), data_of(density.model))) == pytest.approx(
            expected, abs=1e-10
        )


@pytest.mark.parametrize("shape", SHAPES)
def test_latent_log_likelihood_is_scipys_binomial(board, shape):
    density = compile_density(crossed(board, marginal=False, task_density=shape))
    data = data_of(density.model)
    for seed in POINTS:
        point = parameters(seed, shape) | {"t": np.random.default_rng(seed).normal(size=10)}
        x = unconstrained(density, point)
        p = special.expit(point["b"] + point["a"][:, None] + point["t"])
        expected = stats.binom.logpmf(board["successes"], board["trials"], p).sum()
        assert float(density.logp(x, data) - density.log_prior(x, data)) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("marginal", [True, False])
def test_score_is_the_integral_over_new_tasks(board, shape, marginal):
    density = compile_density(crossed(board, marginal=marginal, task_density=shape))
    point = parameters(0, shape) | ({} if marginal else {"t": np.zeros(10)})
    score = density.quantities(["score"])(unconstrained(density, point), data_of(density.model))["score"]
    for config in range(4):
        expected, _ = integrate.quad(
            lambda t, c=config: special.expit(point["b"] + point["a"][c] + t) * task_density(point, t),
            -12 * point["task_sd"], 12 * point["task_sd"], epsabs=1e-13, epsrel=1e-12, limit=500,
        )  # fmt: skip
        assert float(score[config]) == pytest.approx(expected, abs=1e-10)


def test_mixture_has_mean_zero_variance_one_and_ordered_means(board):
    model = crossed(board, marginal=True)
    names = ["task_weight", "task_mean", "task_scale", "task_sd"]
    weight, mean, scale, sd = pm.draw([model[name] for name in names], draws=50, random_seed=1)
    assert (mean[:, 0] < mean[:, 1]).all()
    np.testing.assert_allclose(weight.sum(1), 1, rtol=1e-12)
    np.testing.assert_allclose((weight * mean).sum(1), 0, atol=1e-9)
    np.testing.assert_allclose((weight * (mean**2 + scale**2)).sum(1), sd**2, rtol=1e-9)


def test_an_unknown_density_is_refused_with_the_two_there_are(board):
    with pytest.raises(ValueError, match="mixture, normal"):
        crossed(board, task_density="cauchy")


@pytest.mark.parametrize(
    ("weight", "mean", "scale"), [((0.995, 0.005), (-0.07, 14.0), (0.7, 0.05)), ((1.0,), (0.0,), (1.0,))]
)
def test_the_score_is_right_also_with_a_component_beyond_the_nodes(weight, mean, scale):
    """A half percent of tasks at 14 standard deviations, where the nodes end at 8: adaptive quadrature."""
    shape = effects.Shape(*(pmd.as_xtensor(np.array(part), dims=("component",)) for part in (weight, mean, scale)))
    ability = np.array([-3.0, 0.5])
    found = effects.mean_rate(pmd.as_xtensor(ability, dims=("config",)), 2.5, shape).eval()
    for a, value in zip(ability, found, strict=True):
        exact = sum(
            w
            * integrate.quad(
                lambda t, a=a, m=m, s=s: special.expit(a + 2.5 * t) * stats.norm(m, s).pdf(t), m - 9 * s, m + 9 * s
            )[0]
            for w, m, s in zip(weight, mean, scale, strict=True)
        )
        assert value == pytest.approx(exact, abs=1e-9)
