"""The 134 x 500 board: the density of task effects matters, and maximum likelihood agrees where it can.

Figures: two-normal mixtures bring the mean gap between fitted population and observed rates to 0.02 points by maximum
likelihood, normal task effects leave about -3 (design notes of this project); `glmm` (its own engine, checked against
lme4) finds standard deviations of 2.09 for configs and 3.1 to 3.2 for tasks under normal effects.
"""

import glmm
import numpy as np
import pytest
import xarray as xr

from evalbayes import check, posterior
from evalbayes.errors import SamplingError
from evalbayes.fit import fit
from evalbayes.read import read


@pytest.fixture(scope="module")
def board(shared_data) -> xr.Dataset:
    return read(shared_data / "swebench_verified_134.csv.gz")


@pytest.fixture(scope="module")
def mixture(board) -> xr.DataTree:
    return fit(board)


@pytest.fixture(scope="module")
def normal(board) -> xr.DataTree:
    return fit(board, method="laplace", task_density="normal")


@pytest.fixture(scope="module")
def likelihood(board):
    table = board["successes"].to_dataframe().reset_index()
    return glmm.fit(table, "successes ~ 1 + (1|config) + (1|task)", "binomial")


def test_the_weights_pass(mixture, normal):
    for name, fitted in (("mixture", mixture), ("normal", normal)):
        seen = fitted.attrs
        print(f"{name}: k-hat {seen['k_hat']:.2f}, weight ESS {seen['weight_ess']:.0f} of {seen['proposals']}")
        assert seen["method"] == "laplace"
        assert seen["k_hat"] < 0.5
        assert seen["weight_ess"] >= 400


def test_population_scores_match_observed_proportions_with_the_mixture(mixture):
    seen = mixture["population"]
    mean, worst = 100 * float(seen["gap"].mean()), 100 * float(abs(seen["gap"]).max())
    inside = int(seen["inside"].sum())
    print(f"mixture: population minus observed {mean:+.2f} points, {worst:.2f} at worst; {inside} of 134 inside")
    assert abs(mean) < 0.5
    assert inside == 134
    assert mixture.attrs["gate"] == "passed"


def test_normal_task_effects_are_caught_by_the_gate_and_refused(normal):
    gap = 100 * normal["population"]["gap"]
    print(f"normal: population minus observed {float(gap.mean()):+.2f} points, {float(gap.min()):+.2f} at worst")
    assert -3.5 < float(gap.mean()) < -2
    assert -5.5 < float(gap.min()) < -3.5
    assert normal.attrs["gate"] == "failed"
    with pytest.raises(SamplingError, match="reweighted"):
        posterior.score(normal)
    fallback = posterior.score(normal, population="reweighted")
    gap = 100 * float((fallback.estimate - fallback.observed).mean())
    print(f"normal, reweighted: {gap:+.2f} points on average")
    assert abs(gap) < 0.5


def test_the_ten_best_disagree_less_than_either_density_of_tasks_says(mixture, normal):
    """On 11.85% of tasks a pair; 13.1% and 13.4% predicted on these tasks. The design's 0.168 is another figure.

    It is the chance on a new task with normal task effects, whose population is wrong at the top (17.1% here).
    """
    found = {name: check.discordance(fitted) for name, fitted in (("mixture", mixture), ("normal", normal))}
    for name, seen in found.items():
        print(f"{name}: {seen.attrs['sentence']}")
        assert float(seen["observed"]) == pytest.approx(0.118533, abs=1e-6)
    assert float(found["mixture"]["predicted"]) == pytest.approx(0.1305, abs=0.003)
    assert float(found["normal"]["predicted"]) == pytest.approx(0.1337, abs=0.003)


def test_variance_components_match_maximum_likelihood(normal, likelihood):
    ml = {name: float(np.sqrt(v[0])) for name, v in zip(("config_sd", "task_sd"), likelihood.varcorr, strict=True)}
    assert ml["config_sd"] == pytest.approx(2.09, abs=0.01)
    assert 3.1 <= ml["task_sd"] <= 3.2
    for name, value in ml.items():
        draws = normal["posterior"][name]
        z = float((value - draws.mean()) / draws.std())
        print(
            f"{name}: posterior {float(draws.mean()):.3f} +- {float(draws.std()):.3f}, glmm {value:.3f} ({z:+.2f} sd)"
        )
        # A flat-prior mode against a posterior mean under weak priors: a fraction of the posterior sd apart.
        assert abs(z) < 0.5


def test_effects_match_the_conditional_modes_of_maximum_likelihood(normal, likelihood):
    blocks = {block["group"]: block for block in likelihood.ranef_blocks}
    modes = {dim: dict(zip(b["levels"], b["values"][:, 0], strict=True)) for dim, b in blocks.items()}
    for dim in ("config", "task"):
        draws = normal["posterior"][f"{dim}_effect"]
        mean, sd = draws.mean(("chain", "draw")), draws.std(("chain", "draw"))
        mode = np.array([modes[dim][label] for label in draws[dim].values.tolist()])
        # Up to a common shift, the intercept's; the median, since the tasks that nobody solves pull the mean.
        apart = mean.values - mode
        z = np.abs(apart - np.median(apart)) / sd.values
        correlation = np.corrcoef(mean.values, mode)[0, 1]
        print(f"{dim} effects: correlation {correlation:.5f}, apart by at most {z.max():.2f} posterior sd")
        assert correlation > 0.998
        # All effects scale with task_sd, whose posterior mean is half a percent above its mode: 0.02 at four logits, a
        # sixth of a config's sd. And the mode and mean of a skewed conditional (a task nobody solves) differ by half
        # its sd or a little more.
        assert np.median(z) < 0.2
        assert z.max() < 0.7
