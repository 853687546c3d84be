"""Interaction by groups in the answers: each against a loop over draws that follows its definition."""

import numpy as np
import pytest
import xarray as xr
from scipy import special

import evalbayes as eb
from evalbayes.cells import expected_rates, family_effects, flattened, new_family_effects
from evalbayes.check.repeatability import drawn_boards
from evalbayes.errors import NotIdentifiedError
from evalbayes.fit import load_fit, save_fit
from evalbayes.posterior import draws as of_draws
from evalbayes.posterior.variances import component_draws

FAMILY = np.array([0, 1, 0, 2, 1, 0])
DRAWS, TASKS = 200, 30
Z = np.linspace(-9, 9, 361)
NORMAL = np.exp(-(Z**2) / 2) / np.exp(-(Z**2) / 2).sum()


@pytest.fixture(scope="module")
def fit(fabricate) -> xr.DataTree:
    """6 configs of three families x 30 tasks x 2 runs; what answers make of residuals needs no sampler."""
    rng = np.random.default_rng(2)
    tree = fabricate(rng.binomial(2, rng.random((FAMILY.size, TASKS))), 2, chains=2, draws=DRAWS // 2)
    posterior = tree["posterior"].to_dataset()
    omega = rng.uniform(0.2, 1.5, posterior["task_sd"].shape)
    both, shape = ("chain", "draw"), (*omega.shape, 3, TASKS)
    effect = omega[..., None, None] * rng.standard_normal(shape)
    posterior = posterior.assign(
        interaction_sd=(both, omega), interaction_effect=((*both, "interaction_group", "task"), effect)
    ).assign_coords(
        interaction_group=list("pqr"),
        interaction_group_of_config=(("config", "interaction_group"), np.eye(3)[FAMILY]),
    )
    return tree.assign(posterior=xr.DataTree(posterior))


@pytest.fixture(scope="module")
def flat(fit) -> xr.Dataset:
    return flattened(fit["posterior"].to_dataset())


def logits(flat: xr.Dataset, i: int) -> np.ndarray:
    """Of every cell at one draw, cell by cell."""
    names = ("intercept", "config_effect", "task_effect", "interaction_effect")
    b, a, t, w = (flat[name].values[i] for name in names)
    table = np.empty((FAMILY.size, TASKS))
    for config, family in enumerate(FAMILY):
        for task in range(TASKS):
            table[config, task] = b + a[config] + t[task] + w[family, task]
    return table


def mixture(flat: xr.Dataset, i: int, extra: float) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights of a task's effect at one draw, widened by ``extra`` variance, on a fine grid."""
    one = flat.isel(draw=i)
    parts = [
        (m + np.sqrt(s**2 + extra) * Z, w * NORMAL)
        for w, m, s in zip(*(one[f"task_{name}"].values for name in ("weight", "mean", "scale")), strict=True)
    ]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def ability(flat: xr.Dataset, i: int) -> np.ndarray:
    return (flat["intercept"] + flat["config_effect"]).transpose("draw", "config").values[i]


def test_cells_have_the_residual_of_their_family(fit, flat):
    found, _ = of_draws.score_draws(fit, tasks="fixed", assume="no_interaction")
    total = np.zeros((FAMILY.size, TASKS))
    for i in range(DRAWS):
        p = special.expit(logits(flat, i))
        np.testing.assert_allclose(found[i], p.mean(axis=1), atol=1e-12)
        total += p
    np.testing.assert_allclose(expected_rates(flat, TASKS), total / DRAWS, atol=1e-12)


def test_score_on_new_tasks_is_over_new_residuals_too(flat):
    found = of_draws._over_population(flat, None)
    for i in (0, 77):
        x, weight = mixture(flat, i, float(flat["interaction_sd"][i]) ** 2)
        expected = special.expit(ability(flat, i)[:, None] + x) @ weight
        np.testing.assert_allclose(found[i], expected, atol=1e-9)


def test_a_difference_of_two_families_varies_by_the_residuals_of_both(fit, flat):
    """Var(p_a - p_b) over new tasks, by a double sum: residuals are one and the same in a family, else independent."""
    reference = "config-2"
    found = component_draws(fit, tasks="sampled", reference=reference)
    for i in (3, 150):
        omega, at = float(flat["interaction_sd"][i]), ability(flat, i)
        t, weight = mixture(flat, i, 0.0)
        x, wide = mixture(flat, i, omega**2)
        given_t = special.expit(at[:, None, None] + t[:, None] + omega * Z) @ NORMAL
        p = special.expit(at[:, None] + x)
        mean, square = p @ wide, p**2 @ wide
        for c in range(FAMILY.size):
            together = p[c] * p[2] @ wide if FAMILY[c] == FAMILY[2] else given_t[c] * given_t[2] @ weight
            variance = sum(square[[c, 2]] - mean[[c, 2]] ** 2) - 2 * (together - mean[c] * mean[2])
            assert float(found.between[i, c]) == pytest.approx(variance, abs=2e-6), c
            noise = sum(mean[[c, 2]] - square[[c, 2]])
            assert float(found.within[i, c]) == pytest.approx(noise, abs=1e-8)


def test_components_of_variance_have_the_residuals_as_their_own(fit, flat):
    """Var over w of E(mu | w), with the config and the task integrated out by a normal mixture each."""
    from evalbayes.posterior.partition import _on_latent_scale, _on_probability_scale, _parts

    parts, intercept = _on_probability_scale(fit), _parts(fit).intercept
    for i in (0, 99):
        omega = float(flat["interaction_sd"][i])
        x, weight = mixture(flat, i, float(flat["config_sd"][i]) ** 2)
        mean = special.expit(intercept[i] + omega * Z[:, None] + x) @ weight
        variance = NORMAL @ mean**2 - (NORMAL @ mean) ** 2
        assert parts["interaction_group"][i] == pytest.approx(variance, abs=1e-9)
        total = sum(values[i] for values in parts.values())
        x, weight = mixture(flat, i, float(flat["config_sd"][i]) ** 2 + omega**2)
        m = float(special.expit(intercept[i] + x) @ weight)
        assert total == pytest.approx(m * (1 - m), abs=1e-6)
    np.testing.assert_allclose(_on_latent_scale(fit)["interaction_group"], flat["interaction_sd"].values ** 2)
    answer = eb.posterior.variance_components(fit)
    assert answer["component"].values.tolist() == ["config", "interaction_group", "task", "interaction", "run"]
    assert answer["side"].sel(component="interaction_group") == "both"


def test_a_future_entry_is_of_a_new_family(fit, flat):
    """Its residuals on the run tasks are new: of sd omega, and unlike any on the board.

    6,000 of them: a mean square of 1 has a standard error of 0.018, a correlation one of 0.013; 5 of them.
    """
    entry = of_draws._future_entry(fit, np.random.default_rng(4))
    residual = family_effects(entry, slice(None))[:, 0] / flat["interaction_sd"].values[:, None]
    assert residual.shape == (DRAWS, TASKS)
    assert (residual**2).mean() == pytest.approx(1, abs=5 * 0.0183)
    for family in range(3):
        old = flat["interaction_effect"].values[:, family] / flat["interaction_sd"].values[:, None]
        assert abs((residual * old).mean()) < 5 * 0.013
    assert np.isfinite(of_draws.future_score_draws(fit, tasks="sampled", population="reweighted")).all()


def test_new_tasks_have_new_residuals_one_to_a_family(flat):
    """Their mean square in units of omega: 200 x 3 x 40 squares have a standard error of 0.0091; 5 of them."""
    shared = new_family_effects(flat, slice(None), 40, np.random.default_rng(3))
    assert shared.shape == (DRAWS, FAMILY.size, 40)
    np.testing.assert_array_equal(shared[:, 0], shared[:, 5])
    assert not (shared[:, 0] == shared[:, 1]).any()
    per_family = shared[:, [0, 1, 3]] / flat["interaction_sd"].values[:, None, None]
    assert (per_family**2).mean() == pytest.approx(1, abs=5 * 0.0092)


@pytest.mark.parametrize("new", [False, True])
def test_boards_drawn_from_a_fit_have_the_same_residuals_within_a_family(flat, new):
    """With configs otherwise alike mu is one for a family, another for the next; on the same tasks it is the fit's."""
    alike = flat.assign(config_effect=0 * flat["config_effect"])
    n = np.full((FAMILY.size, TASKS), 2)
    mu = np.concatenate([mu for mu, _ in drawn_boards(alike, n, np.random.default_rng(1), new=new)])
    np.testing.assert_array_equal(mu[:, 0], mu[:, 2])
    np.testing.assert_array_equal(mu[:, 1], mu[:, 4])
    assert not np.isclose(mu[:, 0], mu[:, 3]).all()
    if not new:
        np.testing.assert_allclose(mu[7], special.expit(logits(alike, 7)), atol=1e-12)


def test_near_ties_are_refused_as_their_panels_have_no_families(fit):
    with pytest.raises(NotIdentifiedError, match="fit without interaction_group="):
        eb.posterior.near_tie(fit, 0.05)


def test_checks_take_a_fit_with_families(fit, tmp_path):
    assert eb.check.repeatability(fit, draws=200).attrs["verdict"]
    save_fit(fit, tmp_path / "fit.nc")
    back = load_fit(tmp_path / "fit.nc")
    xr.testing.assert_identical(back["posterior"].to_dataset(), fit["posterior"].to_dataset())
    xr.testing.assert_identical(eb.posterior.score(back), eb.posterior.score(fit))
    assert "interaction_group_of_config" not in eb.posterior.score(fit).coords
