"""The grid: its error against a much finer one, what the check sees, and task effects drawn back from it."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy import integrate, special, stats

from evalbayes import nodes, simulate
from evalbayes.density import compile_density, data_of
from evalbayes.models.crossed import crossed


def at_truth(density, board) -> np.ndarray:
    """A point near the posterior's bulk: the truth a simulated board carries, with a mildly humped density."""
    a = board["true_config_effect"].values
    last = -a[-1] * np.sqrt(a.size)
    values = {
        "intercept": board.attrs["true_intercept"],
        "config_sd_log__": np.log(board.attrs["true_config_sd"]),
        "config_effect_zerosum__": a[:-1] + last / (np.sqrt(a.size) + a.size),
        "task_sd_log__": np.log(board.attrs["true_task_sd"]),
        "upper_weight_logodds__": 0.4,
        "separation_logodds__": -0.2,
        "log_scale_ratio": -0.3,
    }
    return np.concatenate([np.ravel(values[name]) for name in density.slices])


@pytest.fixture(scope="module")
def large() -> xr.Dataset:
    return simulate.board(134, 500, 5, seed=7, config_sd=2.0, task_sd=3.0)


def test_grid_error_is_bounded_on_134_by_500_by_5(large):
    density = compile_density(crossed(large, marginal=True))
    x, z = at_truth(density, large), nodes.first_nodes(large)
    seen = nodes.grid_check(density)(x, data_of(density.model, node_position=z))
    fine = np.linspace(z[0], z[-1], 4 * (z.size - 1) + 1)
    values = [float(density.logp(x, data_of(density.model, node_position=grid))) for grid in (z, fine)]
    error = abs(values[0] - values[1])
    print(f"134 x 500 x 5: {z.size} nodes, bound {seen.error:.1e}, against {fine.size} nodes {error:.1e}")
    assert seen.passed()
    # Sums of 67,000 terms of size 1e5 round to about 1e-9, whatever the grid.
    assert error < nodes.TOLERANCE + 2e-9


def test_a_coarse_grid_is_condemned_and_its_bound_has_the_size_of_its_error(large):
    board = large.isel(config=slice(0, 40), task=slice(0, 60))
    density = compile_density(crossed(board, marginal=True, task_density="normal"))
    rng = np.random.default_rng(0)
    x = np.concatenate([[0.0, np.log(2.0)], rng.normal(0, 2, 39), [np.log(3.0)]])
    reference = float(density.logp(x, data_of(density.model, node_position=np.linspace(-8, 8, 4097))))
    check = nodes.grid_check(density)
    for count in (97, 129, 161):
        data = data_of(density.model, node_position=np.linspace(-8, 8, count))
        seen = check(x, data)
        error = abs(float(density.logp(x, data)) - reference)
        print(f"{count} nodes: bound {seen.error:.1e}, error {error:.1e}")
        assert not seen.passed()
        # Errors of tasks have either sign, so their sum is below the bound; an order of magnitude is not asked.
        assert error <= 3 * seen.error


def test_refinement_widens_for_mass_at_the_ends_and_thins_for_narrow_conditionals():
    z = np.linspace(-8, 8, 129)
    wide = nodes.refined(z, nodes.GridCheck(0.0, 1e-3, 1.0), tasks=100)
    assert wide[-1] == pytest.approx(10)
    thin = nodes.refined(z, nodes.GridCheck(1.0, 0.0, 0.06), tasks=100)
    assert thin[-1] == 8
    assert thin[1] - thin[0] < 0.06
    # A conditional narrower than the spacing is not measured by it.
    unresolved = nodes.refined(z, nodes.GridCheck(2.0, 0.0, 1e-9), tasks=100)
    assert unresolved[1] - unresolved[0] <= (z[1] - z[0]) / 2
    assert unresolved.size < 10_000


@pytest.fixture(scope="module")
def small():
    """A density, its data and one point, of a board with a task that nobody solves and one that all do."""
    rng = np.random.default_rng(5)
    trials = rng.integers(0, 4, (5, 8))
    successes = rng.binomial(trials, 0.5)
    successes[:, 0], successes[:, 1] = 0, trials[:, 1]
    board = xr.Dataset(
        {"successes": (("config", "task"), successes), "trials": (("config", "task"), trials)},
        coords={"config": list("abcde"), "task": list("12345678")},
    )
    density = compile_density(crossed(board, marginal=True, task_density="normal"))
    x = np.concatenate([[0.3, np.log(1.2)], rng.normal(0, 1, 4), [np.log(2.0)]])
    return board, density, x


def conditional(board, density, x, task):
    """The exact conditional density of one task's effect, unnormalised, by scipy."""
    values = density.quantities(["intercept", "config_effect", "task_sd"])(x, data_of(density.model))
    b, a, sd = (np.asarray(values[name]) for name in ("intercept", "config_effect", "task_sd"))
    cells = board.isel(task=task)

    def log_density(t):
        p = special.expit(b + a[:, None] + t)
        k, n = cells["successes"].values[:, None], cells["trials"].values[:, None]
        return stats.binom.logpmf(k, n, p).sum(axis=0) + stats.norm(0, sd).logpdf(t)

    return log_density


def test_task_effects_have_the_exact_conditional_distribution(small):
    board, density, x = small
    draws = 4000
    data = data_of(density.model, node_position=np.linspace(-8, 8, 129))
    effects = nodes.task_effects(density, np.tile(x, (draws, 1)), data, np.random.default_rng(2))
    smallest = 1.0
    for task in range(board.sizes["task"]):
        log_density = conditional(board, density, x, task)
        grid = np.linspace(-20, 20, 8001)
        weight = np.exp(log_density(grid))
        cdf = integrate.cumulative_trapezoid(weight, grid, initial=0)
        p = stats.kstest(effects[:, task], lambda t, c=cdf, g=grid: np.interp(t, g, c / c[-1])).pvalue
        smallest = min(smallest, p)
    print(f"smallest of 8 Kolmogorov-Smirnov p-values: {smallest:.3f}")
    # One false alarm in 10,000 seeds, by Bonferroni over the eight tasks.
    assert smallest > 1e-4 / 8


def test_a_coarse_grid_still_gives_task_effects_the_right_mean_and_variance(small):
    board, density, x = small
    draws = 20_000
    data = data_of(density.model, node_position=np.linspace(-8, 8, 33))
    effects = nodes.task_effects(density, np.tile(x, (draws, 1)), data, np.random.default_rng(3))
    for task in range(board.sizes["task"]):
        log_density = conditional(board, density, x, task)
        grid = np.linspace(-20, 20, 4001)
        weight = np.exp(log_density(grid))
        mean = np.average(grid, weights=weight)
        sd = np.sqrt(np.average((grid - mean) ** 2, weights=weight))
        # Five standard errors: a false alarm in about 100,000 seeds for 16 comparisons.
        assert abs(effects[:, task].mean() - mean) < 5 * sd / np.sqrt(draws)
        assert abs(effects[:, task].std() / sd - 1) < 5 / np.sqrt(2 * draws) * 1.3


def test_the_pick_is_a_search_in_the_running_sum():
    rng = np.random.default_rng(1)
    probability = rng.dirichlet(np.full(161, 0.05), size=200)
    uniform = rng.random(200)
    expected = [np.searchsorted(np.cumsum(row), u * row.sum()) for row, u in zip(probability, uniform, strict=True)]
    assert nodes._pick(jnp.asarray(probability), jnp.asarray(uniform)).tolist() == expected


def test_marginal_equals_the_latent_model_summed_over_an_explicit_grid(small):
    """The marginal form against the latent model file itself, node by node."""
    board, density, x = small
    latent = compile_density(crossed(board, marginal=False, task_density="normal"))
    z = np.linspace(-8, 8, 129)
    sd = float(np.exp(x[density.slices["task_sd_log__"]][0]))
    table = []
    for node in z:
        full = np.zeros(latent.size)
        for name, where in density.slices.items():
            full[latent.slices[name]] = x[where]
        full[latent.slices["task_effect"]] = sd * node
        table.append(float(latent.logp(full, data_of(latent.model))))
    # All tasks at one node at a time: the product over tasks of likelihood times density, not yet their sum.
    quantities = density.quantities(["task_loglik", "node_logweight"])
    values = quantities(x, data_of(density.model, node_position=z))
    together = np.asarray(values["task_loglik"]).sum(axis=0) + 8 * stats.norm(0, sd).logpdf(sd * z)
    prior = float(density.log_prior(x, data_of(density.model)))
    np.testing.assert_allclose(together + prior, table, atol=1e-9)
