"""Power-scaling: against closed forms, quadrature and fits under another prior."""

import importlib

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import integrate, stats

from boards import counted
from evalbayes import ArgumentError, fit, simulate
from evalbayes.check import sensitivity

PASSES = [[3, 1, 4, 2, 0, 3, 2, 4]]
SEPARATED = counted([[0] * 5, [2, 3, 2, 3, 2], [5] * 5], 5)
"""Case 52: one config fails and one passes every run."""


def moved(values: np.ndarray, log_density: np.ndarray) -> xr.Dataset:
    """What the module makes of one component, for draws of one quantity in one chain."""
    draws = xr.DataArray(values[None, :, None], dims=("chain", "draw", "quantity"))
    module = importlib.import_module("evalbayes.check.sensitivity")
    return module._moved(draws, xr.DataArray(log_density[None], dims=("chain", "draw"))).isel(quantity=0)


# A normal mean under a normal prior.

POSTERIOR, PRIOR = stats.norm(1.0, 0.5), stats.norm(-1.0, 1.5)


def scaled(alpha: float) -> "stats.rv_frozen":
    """The posterior with the prior to the power alpha."""
    precision = 1 / 0.5**2 + (alpha - 1) / 1.5**2
    return stats.norm((1.0 / 0.5**2 + (alpha - 1) * -1.0 / 1.5**2) / precision, precision**-0.5)


def distance(p: "stats.rv_frozen", q: "stats.rv_frozen", low: float, high: float) -> float:
    """The cumulative Jensen-Shannon distance by quadrature, of x and of -x, the larger (Nguyen and Vreeken 2015)."""
    x = np.linspace(low, high, 200_001)

    def one(f: np.ndarray, g: np.ndarray) -> float:
        middle = (f + g) / 2
        total = integrate.trapezoid(f * np.log2(f / middle) + g * np.log2(g / middle), x)
        return float(np.sqrt(total / integrate.trapezoid(f + g, x)))

    return max(one(p.cdf(x), q.cdf(x)), one(p.sf(x), q.sf(x)))


def test_a_power_scaled_normal_prior_against_the_closed_form():
    """Draws are the posterior's quantiles, so that there is no Monte Carlo error: within 2% of the integral."""
    draws = POSTERIOR.ppf((np.arange(20_000) + 0.5) / 20_000)
    found = moved(draws, PRIOR.logpdf(draws))
    low, high = (distance(POSTERIOR, scaled(alpha), draws[0], draws[-1]) for alpha in (0.99, 1.01))
    exact = (-low / np.log2(0.99) + high / np.log2(1.01)) / 2
    slope = (scaled(1.001).mean() - scaled(0.999).mean()) / (np.log2(1.001) - np.log2(0.999)) / 0.5
    print(
        f"sensitivity {found.sensitivity.item():.4f}, exact {exact:.4f}; shift {found['shift'].item():.4f}, {slope:.4f}"
    )
    assert found.sensitivity == pytest.approx(exact, rel=0.02)
    assert found["shift"] == pytest.approx(slope, rel=0.002)


def test_the_threshold_is_a_quarter_of_a_standard_deviation():
    """A normal whose mean moves by 0.24 standard deviations a doubling, and nothing else."""
    draws = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    assert moved(draws, 0.24 / np.log(2) * draws).sensitivity == pytest.approx(0.05, abs=0.002)


def test_a_flat_prior_moves_nothing():
    draws = np.random.default_rng(0).normal(size=1000)
    assert moved(draws, np.zeros(1000)).sensitivity == 0


# A user's conjugate model, and which priors are scaled.


def shared_rate(outcomes, *, marginal=False, passes=2.0):
    cells = outcomes.transpose("task", "config")
    with pm.Model(coords={name: outcomes[name].values for name in ("config", "task")}) as model:
        p = pm.Beta("rate", np.float64(passes), np.float64(3.0))
        pm.Deterministic("score", p * np.ones(1), dims="config")
        pm.Deterministic("intercept", pm.math.logit(p))
        other = pm.Normal("level", 0.0, 1.0)
        pm.Normal("effect", other, 1.0, dims="config")
        k, n = (cells[name].values for name in ("successes", "trials"))
        pm.Binomial("successes_observed", n, p, observed=k, dims=("task", "config"))
    return model


@pytest.fixture(scope="module")
def conjugate() -> xr.DataTree:
    board, rng = counted(PASSES, 4), np.random.default_rng(1)
    at = ("chain", "draw")
    level = rng.normal(size=(4, 5000))
    posterior = xr.Dataset(
        {
            "rate": (at, rng.beta(2 + 19, 3 + 13, (4, 5000))),
            "level": (at, level),
            "effect": ((*at, "config"), rng.normal(level)[..., None]),
        },
        {"config": ["c0"]},
    )
    counts = {"observed_data": board[["successes"]], "constant_data": board[["trials", "errors"]]}
    tree = xr.DataTree.from_dict({"posterior": posterior} | counts)
    tree.attrs = {"model": "test:shared_rate", "method": "nuts", "seed": 0}
    return tree


@pytest.fixture(scope="module")
def found(conjugate) -> xr.Dataset:
    return sensitivity(conjugate, shared_rate, quantities=["rate", "level", "effect"])


def test_a_users_model_against_its_closed_form(found):
    """Beta(a, b) to the power alpha is Beta(alpha (a - 1) + 1, alpha (b - 1) + 1): within 4 Monte Carlo errors."""

    def mean(alpha: float) -> float:
        return stats.beta(alpha + 1 + 19, 2 * alpha + 1 + 13).mean()

    sd = stats.beta(21, 16).std()
    exact = (mean(1.001) - mean(0.999)) / (np.log2(1.001) - np.log2(0.999)) / sd
    got = found["shift"].sel(prior="rate", quantity="rate").item()
    print(f"shift {got:.4f}, exact {exact:.4f}")
    assert got == pytest.approx(exact, abs=4 * 0.1 / np.sqrt(20_000))


def test_a_quantity_moves_with_its_own_prior_alone(found):
    assert found["diagnosis"].sel(quantity="rate") == "-"
    assert found["from_prior"].sel(quantity="level") == "level"
    assert found["prior_sensitivity"].sel(quantity="rate", prior="level") < 0.02
    assert found["likelihood_sensitivity"].sel(quantity="rate") > 0.05


def test_what_only_the_prior_says_has_a_weak_likelihood(found):
    assert found["diagnosis"].sel(quantity="level") == "weak likelihood"
    assert found["likelihood_sensitivity"].sel(quantity="level") < 0.05
    assert found.attrs["flagged"] == 1
    said = "1 of 3 quantities move with the priors: level with the prior of level (weak likelihood)"
    assert found.attrs["verdict"] == said


def test_priors_given_their_parameters_are_a_part_of_the_model(found):
    assert found["prior"].values.tolist()[0] == "all"
    assert set(found["prior"].values) == {"all", "rate", "level"}


def test_all_priors_together_are_the_sum_of_each(found):
    """To first order a mean moves with log prior, which is a sum."""
    shift = found["shift"]
    np.testing.assert_allclose(shift.sel(prior="all"), shift.drop_sel(prior="all").sum("prior"), atol=1e-10)


def test_a_prior_that_says_little_is_none(conjugate):
    """A Beta(1, b) has no factor of its first parameter: less of it is less sensitivity."""
    weak = sensitivity(conjugate, shared_rate, quantities="rate", threshold=1e-9)
    assert weak.attrs["flagged"] == 1
    assert weak["diagnosis"].item() == "prior-data conflict"


def test_what_is_not_there(conjugate):
    with pytest.raises(ArgumentError, match=r"quantities: no 'icc' in this fit; it has rate"):
        sensitivity(conjugate, shared_rate, quantities=["icc"])
    with pytest.raises(ArgumentError, match="quantities: none is named"):
        sensitivity(conjugate, shared_rate, quantities=[])
    with pytest.raises(ArgumentError, match="threshold=0: give a positive number"):
        sensitivity(conjugate, shared_rate, threshold=0)
    with pytest.raises(ArgumentError, match="give the function, or its file, as model="):
        sensitivity(conjugate)


# Fits.


@pytest.fixture(scope="module")
def separated() -> xr.DataTree:
    return fit(SEPARATED, "crossed", method="laplace", draws=4000, task_density="normal")


def test_separation_shows_that_the_prior_of_config_sd_decides(separated):
    """Case 52: how far from 0 and 1 the extremes are is for the prior to say; the config between them is not moved."""
    found = sensitivity(separated)
    print(found.attrs["verdict"])
    word = found["diagnosis"].to_series()
    for name in ("score[c0]", "score[c2]", "config_sd"):
        assert word[name] == "prior-data conflict"
        assert found["from_prior"].sel(quantity=name) == "config_sd"
    assert word["score[c1]"] == "-"
    shift = found["shift"].sel(prior="config_sd")
    assert shift.sel(quantity="score[c0]") > 0 > shift.sel(quantity="score[c2]")


def test_shifts_are_those_of_fits_under_another_prior(separated):
    """A half-normal of scale s to the power alpha is one of scale s / sqrt(alpha): the prior of config_sd twice.

    The shift is to first order and alpha far from 1: the same sign, and within a factor of 1.6.
    """
    twice = fit(SEPARATED, "crossed", method="laplace", draws=4000, task_density="normal", config_sd=1.5 / np.sqrt(2))
    shift = sensitivity(separated)["shift"].sel(prior="config_sd")
    before, after = (one["posterior"].to_dataset() for one in (separated, twice))
    of = {
        "config_sd": before["config_sd"],
        "score[c0]": before["score"].sel(config="c0"),
        "score[c2]": before["score"].sel(config="c2"),
    }
    now = {
        "config_sd": after["config_sd"],
        "score[c0]": after["score"].sel(config="c0"),
        "score[c2]": after["score"].sel(config="c2"),
    }
    for name, values in of.items():
        seen = float((now[name].mean() - values.mean()) / values.std())
        said = float(shift.sel(quantity=name))
        print(f"{name}: {said:+.3f} said, {seen:+.3f} seen")
        assert np.sign(seen) == np.sign(said)
        assert 1 / 1.6 < said / seen < 1.6


def test_a_tight_prior_and_few_data_are_flagged():
    """Half-normal 0.05 for configs that are logits apart."""
    tight = fit(SEPARATED, "crossed", method="laplace", task_density="normal", config_sd=0.05)
    found = sensitivity(tight)
    print(found.attrs["verdict"])
    assert found["diagnosis"].sel(quantity="config_sd") == "prior-data conflict"
    assert found["from_prior"].sel(quantity="config_sd") == "config_sd"
    assert found["prior_sensitivity"].sel(quantity="config_sd", prior="config_sd") > 0.2


def test_many_data_and_default_priors_are_not():
    big = fit(simulate.board(20, 100, 2, seed=1), "crossed", method="laplace", task_density="normal")
    found = sensitivity(big)
    assert found.attrs["verdict"] == "no quantity moves with the priors"
    assert (found["diagnosis"] == "-").all()
    assert found["prior_sensitivity"].max() < 0.05
    assert (found["likelihood_sensitivity"].sel(quantity="task_sd") > 0.05).all()
    assert found["name"].values.tolist() == ["score"] * 20 + ["config_sd", "task_sd"] + ["icc"] * 20


def test_chains_and_weighted_draws_agree(separated):
    """Sensitivities by NUTS and by laplace, within 0.05 or a fifth."""
    chains = fit(SEPARATED, "crossed", method="nuts", draws=4000, task_density="normal")
    ours, other = (sensitivity(one)["prior_sensitivity"].sel(prior="all") for one in (separated, chains))
    np.testing.assert_allclose(other, ours, rtol=0.2, atol=0.05)
