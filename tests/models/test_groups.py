"""Groups and discrimination against independent computation: scipy's functions, and sums over a fine, wide grid."""

import numpy as np
import pytest
import xarray as xr
from scipy import special, stats

from evalbayes.choice import built
from evalbayes.density import compile_density, data_of
from evalbayes.errors import ArgumentError
from evalbayes.models import crossed, crossed_beta_binomial, crossed_discrimination
from evalbayes.models.labels import named as names_of

AGENT, MODEL = list("xxyyyx"), list("pqpqrr")
REPO, SUITE = ["r1", "r2", "r3", "r1", "r2", "r3", "r3", "r1"], ["s1", "s1", "s1", "s2", "s2", "s2", "s1", "s2"]
GROUPS = {"config_groups": ("agent", "model"), "task_groups": ("repo", "suite")}
CONFIGS, TASKS = len(AGENT), len(REPO)
FORMS = {
    "crossed": (crossed.crossed, {}),
    "crossed_beta_binomial": (crossed_beta_binomial.crossed_beta_binomial, {}),
    "crossed_discrimination": (crossed_discrimination.crossed_discrimination, {}),
    "overdispersed": (crossed_discrimination.crossed_discrimination, {"overdispersion": True}),
}


@pytest.fixture(scope="module")
def board() -> xr.Dataset:
    """6 configs x 8 tasks, 0 to 4 runs a cell, two groups of each."""
    rng = np.random.default_rng(8)
    trials = rng.integers(0, 5, size=(CONFIGS, TASKS))
    successes = rng.binomial(trials, rng.random((CONFIGS, TASKS)))
    return xr.Dataset(
        {"successes": (("config", "task"), successes), "trials": (("config", "task"), trials)},
        coords={
            "config": [f"c{i}" for i in range(CONFIGS)],
            "task": [f"t{i}" for i in range(TASKS)],
            "agent": ("config", AGENT),
            "model": ("config", MODEL),
            "repo": ("task", REPO),
            "suite": ("task", SUITE),
        },
    )


def named(density, x, data) -> dict[str, np.ndarray]:
    names = [variable.name for variable in density.model.unobserved_RVs]
    return {name: np.asarray(value) for name, value in density.quantities(names)(x, data).items()}


def log_prior(density, x: np.ndarray, at: dict[str, np.ndarray]) -> float:
    """Priors by scipy with the Jacobians of log and logit, task effects left out."""
    total = stats.norm(0, 1.5).logpdf(at["intercept"])
    scales = {"config_sd": 1.5, "task_sd": 2.5, "discrimination_sd": 0.5, "log_kappa_sd": 0.5}
    scales |= dict.fromkeys(("agent_sd", "model_sd", "repo_sd", "suite_sd"), 1.0)
    for name, scale in scales.items():
        if name in at:
            total += stats.halfnorm(0, scale).logpdf(at[name]) + np.log(at[name])
    sds = {"config_effect": "config_sd", "log_discrimination": "discrimination_sd"}
    for name, sd in (sds | {"agent_effect": "agent_sd", "model_effect": "model_sd"}).items():
        if name in at:
            assert at[name].sum() == pytest.approx(0, abs=1e-12)
            free = at[name].size - 1
            total += free * stats.norm(0, at[sd]).logpdf(0) - 0.5 * (at[name] ** 2).sum() / at[sd] ** 2
    for group in ("repo", "suite"):
        if f"{group}_sd" in at:
            total += stats.norm(0, at[f"{group}_sd"]).logpdf(at[f"{group}_effect"]).sum()
    if "log_kappa" in at:
        total += stats.norm(0, 1.5).logpdf(at["log_kappa_mean"])
        total += stats.norm(at["log_kappa_mean"], at["log_kappa_sd"]).logpdf(at["log_kappa"]).sum()
    for name in ("upper_weight", "separation"):
        p = special.expit(x[density.slices[f"{name}_logodds__"]][0])
        total += stats.beta(2, 2).logpdf(p) + np.log(p * (1 - p))
    return float(total + stats.norm(0, 0.5).logpdf(at["log_scale_ratio"]))


def ability(at: dict[str, np.ndarray]) -> np.ndarray:
    effect = at["intercept"] + at["config_effect"]
    for group, labels in (("agent", AGENT), ("model", MODEL)):
        effect = effect + at[f"{group}_effect"][np.searchsorted(np.unique(labels), labels)]
    return effect


def group_effect(at: dict[str, np.ndarray]) -> np.ndarray:
    return sum(
        at[f"{group}_effect"][np.searchsorted(np.unique(labels), labels)]
        for group, labels in (("repo", REPO), ("suite", SUITE))
    )


def task_density(at: dict[str, np.ndarray], t: np.ndarray, about: np.ndarray) -> np.ndarray:
    parts = zip(at["task_weight"], at["task_mean"], at["task_scale"], strict=True)
    return sum(w * stats.norm(about + m, s).pdf(t) for w, m, s in parts)


def log_mass(board: xr.Dataset, at: dict[str, np.ndarray], t: np.ndarray) -> np.ndarray:
    """Of every cell, for task effects t (..., task): (..., config, task)."""
    k, n = board["successes"].values, board["trials"].values
    slope = np.exp(at["log_discrimination"]) if "log_discrimination" in at else np.ones(CONFIGS)
    eta = ability(at)[:, None] + slope[:, None] * np.asarray(t)[..., None, :]
    if "log_kappa" not in at:
        return stats.binom.logpmf(k, n, special.expit(eta))
    kappa = np.exp(at["log_kappa"])[:, None]
    passes, fails = kappa * special.expit(eta), kappa * special.expit(-eta)
    coefficient = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return coefficient + special.betaln(k + passes, n - k + fails) - special.betaln(passes, fails)


def integral(values: np.ndarray, t: np.ndarray) -> np.ndarray:
    """By the trapezoidal rule along the first axis: for smooth functions that end at zero as good as any."""
    return values.sum(axis=0) * (t[1] - t[0])


def drawn(density) -> np.ndarray:
    return 0.6 * np.random.default_rng(3).standard_normal(density.size)


@pytest.mark.parametrize("form", FORMS)
def test_latent_density_is_scipys(board, form):
    """DESIGN's mathematics, term by term: group effects of configs and tasks, discrimination, overdispersion."""
    function, options = FORMS[form]
    density = compile_density(function(board, **GROUPS, **options))
    data, x = data_of(density.model), drawn(density)
    at = named(density, x, data)
    t = at["task_effect"]
    np.testing.assert_allclose(at["ability"], ability(at), atol=1e-12)
    np.testing.assert_allclose(at["task_group_effect"], group_effect(at), atol=1e-12)
    prior = log_prior(density, x, at) + np.log(task_density(at, t, group_effect(at))).sum()
    likelihood = log_mass(board, at, t).sum()
    found = float(density.logp(x, data) - density.log_prior(x, data))
    print(f"{form} with groups, latent: log likelihood off scipy's by {abs(found - likelihood):.1e}")
    assert found == pytest.approx(likelihood, abs=1e-10)
    assert float(density.log_prior(x, data)) == pytest.approx(prior, abs=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_marginal_density_is_the_brute_force_integral(board, form):
    function, options = FORMS[form]
    density = compile_density(function(board, **GROUPS, **options, marginal=True))
    data = data_of(density.model, node_position=np.linspace(-8, 8, 1025))
    x = drawn(density)
    at = named(density, x, data)
    t = np.linspace(-25, 25, 10_001)
    cells = log_mass(board, at, np.broadcast_to(t[:, None], (t.size, TASKS))).sum(axis=1)
    expected = np.log(integral(np.exp(cells) * task_density(at, t[:, None], group_effect(at)), t)).sum()
    found = float(density.logp(x, data) - density.log_prior(x, data))
    print(f"{form} with groups, marginal: off the integral by {abs(found - expected):.1e}, summed over {TASKS} tasks")
    assert found == pytest.approx(expected, abs=1e-8)
    assert float(density.log_prior(x, data)) == pytest.approx(log_prior(density, x, at), abs=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_score_is_the_mean_over_new_tasks_of_new_groups(board, form):
    function, options = FORMS[form]
    density = compile_density(function(board, **GROUPS, **options, marginal=True))
    data, x = data_of(density.model), drawn(density)
    at = named(density, x, data)
    spread = np.hypot(at["repo_sd"], at["suite_sd"])
    assert at["task_group_sd"] == pytest.approx(spread, rel=1e-12)
    slope = np.exp(at["log_discrimination"]) if "log_discrimination" in at else np.ones(CONFIGS)
    t = np.linspace(-40, 40, 16_001)[:, None]
    parts = zip(at["task_weight"], at["task_mean"], np.hypot(at["task_scale"], spread), strict=True)
    density_of_t = sum(w * stats.norm(m, s).pdf(t) for w, m, s in parts)
    mean = integral(special.expit(ability(at) + slope * t) * density_of_t, t[:, 0])
    np.testing.assert_allclose(at["score"], mean, atol=1e-9)


def test_one_discrimination_for_all_is_the_crossed_model(board):
    """With log lambda at 0 the log likelihood is that of the model without it, at the same values of the rest."""
    plain = compile_density(crossed.crossed(board, marginal=True))
    sharp = compile_density(crossed_discrimination.crossed_discrimination(board, marginal=True))
    x = drawn(plain)
    wide = np.zeros(sharp.size)
    for name, where in plain.slices.items():
        wide[sharp.slices[name]] = x[where]

    def loglik(density, at):
        data = data_of(density.model)
        return float(density.logp(at, data) - density.log_prior(at, data))

    assert loglik(sharp, wide) == pytest.approx(loglik(plain, x), abs=1e-11)


def test_a_group_of_one_level_has_no_effect(board):
    """Case 54: a random effect with one level is dropped."""
    alone = board.assign_coords(agent=("config", ["x"] * CONFIGS))
    model = crossed.crossed(alone, config_groups=("agent", "model"))
    assert "agent_effect" not in model.named_vars
    assert "model_effect" in model.named_vars


@pytest.mark.parametrize(
    ("coord", "names", "message"),
    [
        ({}, "scaffold", "'scaffold' is not a coord of the board's configs; it has agent, model"),
        ({}, "repo", "'repo' is not a coord of the board's configs"),
        ({"agent": [*"xxyy ", "x"]}, "agent", "'agent' is blank for 1 configs, 'c4' the first"),
        ({"agent": list("uvwxyz")}, "agent", "every config has a 'agent' of its own"),
        ({"agent": MODEL}, "agent, model", "groups 'agent' and 'model' are one"),
        ({}, "agent, agent", "one is named twice"),
        ({"node": AGENT}, "node", "a model has its own 'node'; rename the coord"),
        ({"config_sd": AGENT}, "config_sd", "a model has its own 'config_sd'; rename the coord"),
        ({}, 1.0, "groups=1.0: give the names of coords"),
    ],
)
def test_what_is_no_group_is_refused(board, coord, names, message):
    wrong = board.assign_coords({name: ("config", labels) for name, labels in coord.items()})
    with pytest.raises(ArgumentError, match=message):
        built(crossed.crossed, wrong, {"config_groups": names})


def test_names_of_groups_as_text_and_as_a_sequence():
    assert names_of("agent, model") == names_of(("agent", "model")) == ("agent", "model")
    assert names_of(()) == names_of("") == ()
