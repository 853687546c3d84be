"""Interaction by groups against independent computation: scipy's functions, and double sums over fine, wide grids."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr
from scipy import special, stats

from evalbayes import chains, nodes
from evalbayes.choice import built
from evalbayes.density import compile_density, data_of
from evalbayes.errors import ArgumentError
from evalbayes.marginal import Settled
from evalbayes.models import crossed, crossed_beta_binomial, crossed_discrimination

FAMILY = np.array(list("ppqq"))
CONFIGS, TASKS = FAMILY.size, 5
FORMS = {
    "crossed": (crossed.crossed, {}),
    "crossed_beta_binomial": (crossed_beta_binomial.crossed_beta_binomial, {}),
    "crossed_discrimination": (crossed_discrimination.crossed_discrimination, {}),
    "overdispersed": (crossed_discrimination.crossed_discrimination, {"overdispersion": True}),
}
SPACING = 0.02
T = SPACING * np.arange(-1200, 1201)
"""Task effects of the brute-force sums: a spacing and a reach beyond any grid of the package."""


@pytest.fixture(scope="module")
def board() -> xr.Dataset:
    """4 configs of two families x 5 tasks, 0 to 4 runs a cell."""
    rng = np.random.default_rng(5)
    trials = rng.integers(0, 5, size=(CONFIGS, TASKS))
    successes = rng.binomial(trials, rng.random((CONFIGS, TASKS)))
    names = {"config": [f"c{i}" for i in range(CONFIGS)], "task": [f"t{i}" for i in range(TASKS)]}
    cells = {name: (("config", "task"), values) for name, values in (("successes", successes), ("trials", trials))}
    return xr.Dataset(cells, names | {"family": ("config", FAMILY), "one": ("config", ["x"] * CONFIGS)})


@pytest.fixture(scope="module")
def density_of(board):
    """Compile a form with families once for all tests."""

    @cache
    def compiled(form, marginal=True):
        function, own = FORMS[form]
        return compile_density(
            function(board, interaction_group="family", interaction_sd=0.7, marginal=marginal, **own)
        )

    return compiled


def named(density, x, data) -> dict[str, np.ndarray]:
    names = [variable.name for variable in density.model.unobserved_RVs]
    return {name: np.asarray(value) for name, value in density.quantities(names)(x, data).items()}


def drawn(density, omega: float = 0.8) -> np.ndarray:
    """A point with residuals of sd omega, and task effects that the brute-force sums reach the ends of."""
    x = 0.6 * np.random.default_rng(3).standard_normal(density.size)
    x[density.slices["task_sd_log__"]], x[density.slices["interaction_sd_log__"]] = np.log(1.5), np.log(omega)
    return x


def loglik(density, x, data) -> float:
    return float(density.logp(x, data) - density.log_prior(x, data))


def slope_of(at) -> np.ndarray:
    return np.exp(at["log_discrimination"]) if "log_discrimination" in at else np.ones(CONFIGS)


def log_mass(board, at, effect: Any) -> np.ndarray:
    """Of every cell, for effects (..., config, task) that configs see of tasks."""
    k, n = board["successes"].values, board["trials"].values
    eta = at["ability"][:, None] + slope_of(at)[:, None] * effect
    if "log_kappa" not in at:
        return stats.binom.logpmf(k, n, special.expit(eta))
    kappa = np.exp(at["log_kappa"])[:, None]
    passes, fails = kappa * special.expit(eta), kappa * special.expit(-eta)
    coefficient = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return coefficient + special.betaln(k + passes, n - k + fails) - special.betaln(passes, fails)


class BruteForce(NamedTuple):
    """Of sums over t and w: p(t, outcomes) (t, task), and means of w_f and its square given t (family, t, task)."""

    joint: np.ndarray
    first: np.ndarray
    second: np.ndarray


def brute_force(board, at) -> BruteForce:
    """Integrate every family's residual out at every t, by sums of spacing 0.02 and on 9 omega."""
    omega = float(at["interaction_sd"])
    reach = int(np.ceil(9 * omega / SPACING))
    w = SPACING * np.arange(-reach, reach + 1)
    x = SPACING * np.arange(T[0] / SPACING - reach, T[-1] / SPACING + reach + 0.5)
    cells = np.exp(log_mass(board, at, np.broadcast_to(x[:, None, None], (x.size, CONFIGS, TASKS))))
    parts = zip(at["task_weight"], at["task_mean"], at["task_scale"], strict=True)
    joint = sum(share * stats.norm(m, s).pdf(T)[:, None] for share, m, s in parts) * SPACING
    moments = []
    for family in np.unique(FAMILY):
        likelihood = cells[:, family == FAMILY].prod(axis=1)
        seen = np.lib.stride_tricks.sliding_window_view(likelihood, w.size, axis=0)
        normal = stats.norm(0, omega).pdf(w) * SPACING
        total, first, second = (seen @ (normal * w**power) for power in range(3))
        joint = joint * total
        moments.append((first / np.maximum(total, 1e-300), second / np.maximum(total, 1e-300)))
    return BruteForce(joint, *(np.array(part) for part in zip(*moments, strict=True)))


@pytest.mark.parametrize("form", ["crossed", "crossed_beta_binomial", "overdispersed"])
def test_latent_density_is_scipys(board, density_of, form):
    """A family's residual stands beside the task's effect, inside the discrimination; its prior is normal."""
    density = density_of(form, marginal=False)
    data, x = data_of(density.model), drawn(density)
    at = named(density, x, data)
    effect = at["task_effect"] + at["interaction_effect"][np.searchsorted(np.unique(FAMILY), FAMILY)]
    assert at["interaction_effect"].shape == (2, TASKS)
    assert loglik(density, x, data) == pytest.approx(log_mass(board, at, effect).sum(), abs=1e-10)
    without = x.copy()
    without[density.slices["interaction_effect"]] = 0.0
    prior = stats.norm(0, at["interaction_sd"])
    difference = float(density.log_prior(x, data) - density.log_prior(without, data))
    expected = prior.logpdf(at["interaction_effect"]).sum() - 2 * TASKS * prior.logpdf(0.0)
    assert difference == pytest.approx(expected, abs=1e-10)


def test_prior_of_omega_is_half_normal(density_of):
    density = density_of("crossed")
    data, low, high = data_of(density.model), drawn(density, 0.2), drawn(density, 1.1)
    found = float(density.log_prior(high, data) - density.log_prior(low, data))
    # The Jacobian of the logarithm is omega.
    prior = stats.halfnorm(0, 0.7)
    assert found == pytest.approx(prior.logpdf(1.1) - prior.logpdf(0.2) + np.log(1.1 / 0.2), abs=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_marginal_density_is_the_brute_force_double_integral(board, density_of, form):
    density = density_of(form)
    data = data_of(density.model, node_position=np.linspace(-8, 8, 1025))
    x = drawn(density)
    expected = np.log(brute_force(board, named(density, x, data)).joint.sum(axis=0)).sum()
    found = loglik(density, x, data)
    print(f"{form} with families, marginal: off the double integral by {abs(found - expected):.1e}, over {TASKS} tasks")
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("form", ["crossed", "overdispersed"])
def test_score_is_the_mean_over_new_tasks_and_new_residuals(density_of, form):
    density = density_of(form)
    data, x = data_of(density.model), drawn(density)
    at = named(density, x, data)
    t = np.linspace(-40, 40, 16_001)[:, None]
    parts = zip(at["task_weight"], at["task_mean"], np.hypot(at["task_scale"], at["interaction_sd"]), strict=True)
    density_of_x = sum(w * stats.norm(m, s).pdf(t) for w, m, s in parts)
    mean = (special.expit(at["ability"] + slope_of(at) * t) * density_of_x).sum(axis=0) * (t[1] - t[0])
    np.testing.assert_allclose(at["score"], mean, atol=1e-9)


@pytest.mark.parametrize("form", ["crossed", "overdispersed"])
def test_no_spread_of_residuals_is_the_model_without_them(board, density_of, form):
    function, options = FORMS[form]
    plain, shared = compile_density(function(board, marginal=True, **options)), density_of(form)
    x = 0.6 * np.random.default_rng(3).standard_normal(plain.size)
    wide = np.zeros(shared.size)
    for name, where in plain.slices.items():
        wide[shared.slices[name]] = x[where]
    wide[shared.slices["interaction_sd_log__"]] = -15.0
    found, expected = (loglik(one, at, data_of(one.model)) for one, at in ((shared, wide), (plain, x)))
    assert found == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("omega", [0.03, 0.8])
def test_residuals_drawn_back_have_the_moments_of_their_exact_conditional(board, density_of, omega):
    """Means, squares and products of t, w_p and w_q at one point: 45 at each omega, 6,000 draws.

    Each is compared in standard errors of its mean; the largest of 90 standard normals passes 4.9 once in 10,000 times.
    At omega = 0.03 the residual is a quarter of the spacing of the grid.
    """
    density = density_of("overdispersed")
    data, x = data_of(density.model), drawn(density, omega)
    at = named(density, x, data)
    exact = brute_force(board, at)
    p = exact.joint / exact.joint.sum(axis=0)
    t = T[:, None]
    terms = {"t": t + 0 * p, "t^2": t**2 + 0 * p, "w_p w_q": exact.first.prod(axis=0)}
    for i, family in enumerate("pq"):
        terms |= {f"w_{family}": exact.first[i], f"w_{family}^2": exact.second[i], f"t w_{family}": t * exact.first[i]}
    back = nodes.drawn_back(density, np.tile(x, (6000, 1)), data, np.random.default_rng(8))
    t, (wp, wq) = back["task_effect"], np.moveaxis(back["interaction_effect"], 1, 0)
    seen = {"t": t, "t^2": t**2, "w_p w_q": wp * wq, "w_p": wp, "w_p^2": wp**2, "t w_p": t * wp}
    seen |= {"w_q": wq, "w_q^2": wq**2, "t w_q": t * wq}
    z = {
        name: (values.mean(0) - (p * terms[name]).sum(axis=0)) / (values.std(0) / np.sqrt(len(values)))
        for name, values in seen.items()
    }
    worst = max(z, key=lambda name: abs(z[name]).max())
    print(f"omega {omega}: worst of 45 moments {worst}, {abs(z[worst]).max():.1f} standard errors off")
    assert abs(z[worst]).max() < 4.9


def test_the_grid_is_checked_for_effects_of_families_too(board, density_of):
    """The narrowest conditional is that of a family's effect t + w where the task's own is held loosely."""
    many = board.assign(successes=7 * board["successes"], trials=7 * board["trials"])
    density, counts = density_of("crossed"), {name: many[name].values.T for name in ("successes", "trials")}
    data = data_of(density.model, node_position=np.linspace(-8, 8, 1025), **counts)
    x = drawn(density, 2.0)
    at = named(density, x, data)
    exact = brute_force(many, at)
    p = exact.joint / exact.joint.sum(axis=0)

    def sd(first, second):
        return np.sqrt((p * second).sum(axis=0) - (p * first).sum(axis=0) ** 2)

    t = T[:, None]
    of_task = sd(t, t**2)
    of_family = [sd(t + m, t**2 + 2 * t * m + square) for m, square in zip(exact.first, exact.second, strict=True)]
    assert np.min(of_family) < 0.8 * of_task.min()
    unit = np.hypot(at["task_sd"], at["interaction_sd"])
    assert nodes.grid_check(density)(x, data).smallest_sd * unit == pytest.approx(np.min(of_family), rel=1e-6)


def test_nuts_integrates_residuals_out_however_large_the_board(board, density_of, monkeypatch):
    """Its coordinates have no place for them, so the model as written is not sampled, not even first."""

    class Stopped(Exception):
        pass

    def stop(target):
        raise Stopped("marginal" if target.marginal else "latent")

    density = density_of("crossed")
    seen = nodes.GridCheck(0.0, 0.0, 1.0)
    settled = Settled(density.model, density, data_of(density.model), None, seen)
    for name, value in (("MARGINAL_WORK", 0), ("_compiled", stop), ("_coordinates", lambda *_: None)):
        monkeypatch.setattr(chains, name, value)
    with pytest.raises(Stopped, match="marginal"):
        chains.by_nuts(settled, board, crossed.crossed, draws=400, seed=0, say=lambda _: None, priors={})


@pytest.mark.parametrize("group", ["", "one"])
def test_without_families_there_is_no_interaction(board, group):
    model = crossed.crossed(board, interaction_group=group, marginal=True)
    assert not [name for name in model.named_vars if name.startswith("interaction")]
    assert "interaction_group" not in model.coords


@pytest.mark.parametrize(
    ("labels", "name", "message"),
    [
        (FAMILY, "lab", "interaction_group: 'lab' is not a coord of the board's configs; it has family, one"),
        (list("p qq"), "family", "'family' is blank for 1 configs, 'c1' the first"),
        (list("pqrs"), "family", "every config has a 'family' of its own"),
        (FAMILY, ("family",), "give the name of one coord"),
    ],
)
def test_what_is_no_family_is_refused(board, labels, name, message):
    wrong = board.assign_coords(family=("config", labels))
    with pytest.raises(ArgumentError, match=message):
        built(crossed.crossed, wrong, {"interaction_group": name})
    with pytest.raises(ArgumentError, match="a model has its own 'interaction'"):
        built(crossed.crossed, board.rename(family="interaction"), {"interaction_group": "interaction"})


def test_a_family_may_be_a_group_of_configs_too(board):
    model = crossed.crossed(board, config_groups="family", interaction_group="family", marginal=True)
    assert {"family_effect", "family_sd", "interaction_sd"} <= set(model.named_vars)
