"""Leave-task-out: against closed forms, quadrature, and the other tasks fitted without the one left out."""

import copy
import importlib
from collections.abc import Callable

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytest
import xarray as xr
from scipy import special, stats

from boards import counted
from evalbayes import ArgumentError, fit, pointwise, read, simulate
from evalbayes.check import compare_models, leave_task_out
from evalbayes.density import compile_density, data_of
from evalbayes.laplace import draws_of
from evalbayes.models import effects
from evalbayes.models.beta_binomial import beta_binomial
from evalbayes.models.crossed_beta_binomial import crossed_beta_binomial
from evalbayes.predictive import origin

MODEL_FILE = """
import numpy as np
import pymc as pm

def shared_rate(outcomes, *, marginal=False):
    cells = outcomes.transpose("task", "config")
    with pm.Model(coords={name: outcomes[name].values for name in ("config", "task")}) as model:
        p = pm.Deterministic("score", pm.Beta("rate", np.float64(2.0), np.float64(3.0), dims="config"), dims="config")
        pm.Deterministic("ability", pm.math.logit(p), dims="config")
        pm.Binomial("successes_observed", cells["trials"].values, p, observed=cells["successes"].values,
                    dims=("task", "config"))
    return model
"""
"""One rate for each config's runs, whatever the task: conjugate."""
PASSES = np.array([[3, 1, 4, 2, 0, 3, 2, 4]])
TWO = counted([[5, 0, 3, 1, 5, 4, 0, 3, 5, 0, 3, 5], [4, 0, 1, 1, 5, 2, 0, 1, 4, 0, 1, 5]], 5)
"""Two configs: with normal task effects and config_sd integrated out there are three parameters, fit for quadrature."""
NORMAL = {"task_density": "normal"}


def held(board: xr.Dataset, posterior: xr.Dataset, model: str, **attrs: object) -> xr.DataTree:
    """A fit as `evalbayes.fit` returns one, of draws made elsewhere."""
    groups = {
        "posterior": posterior,
        "observed_data": board[["successes"]],
        "constant_data": board[["trials", "errors"]],
    }
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {"model": model, "method": "nuts", "seed": 0} | attrs
    return tree


def chains(values: np.ndarray, name: str, *dims: str, **coords: object) -> xr.Dataset:
    """A posterior of one variable, in four chains."""
    return xr.Dataset({name: (("chain", "draw", *dims), values.reshape(4, -1, *values.shape[1:]))}, coords)


# The conjugate model: what is left out has a beta-binomial distribution given the rest.


@pytest.fixture(scope="module")
def conjugate(tmp_path_factory) -> xr.DataTree:
    path = tmp_path_factory.mktemp("model") / "mine.py"
    path.write_text(MODEL_FILE)
    board = counted(PASSES, 4)
    p = np.random.default_rng(1).beta(2 + PASSES.sum(), 3 + (4 - PASSES).sum(), (8000, 1))
    return held(board, chains(p, "rate", "config", config=["c0"]), f"{path}:shared_rate")


@pytest.fixture(scope="module")
def of_conjugate(conjugate) -> xr.Dataset:
    return leave_task_out(conjugate)


def test_a_users_model_from_a_file_against_its_closed_form(of_conjugate):
    """8 tasks within 4.5 Monte Carlo standard errors, which are below 0.02: a false alarm in 18,000 seeds."""
    found = of_conjugate
    rest = PASSES.sum() - PASSES[0]
    exact = stats.betabinom(4, 2 + rest, 3 + 4 * 7 - rest).logpmf(PASSES[0])
    assert (found.mcse < 0.02).all()
    assert (abs(found.elpd - exact) < 4.5 * found.mcse).all()
    assert found.attrs["elpd"] == pytest.approx(exact.sum(), abs=4.5 * found.attrs["mcse"])
    assert found.attrs["se"] == pytest.approx(np.sqrt(8) * exact.std(ddof=1), rel=0.02)
    seen = stats.betabinom(4, 2 + PASSES.sum(), 3 + 32 - PASSES.sum()).logpmf(PASSES[0])
    np.testing.assert_allclose(found.p_loo, seen - exact, atol=0.02)
    assert found.attrs["outcomes"] == "counts"
    assert found.attrs["distinct"] == found.attrs["draws"] == 8000
    assert found.attrs["above_good_k"] == 0


def test_the_monte_carlo_error_is_the_scatter_of_the_estimate():
    """Of 400 estimates from 500 draws each, of two tasks and of their sum: within 15%, four of its errors."""
    module = importlib.import_module("evalbayes.check.leave_task_out")
    p = np.random.default_rng(4).beta(9, 9, (400, 2, 250))
    found = [module._psis(np.stack([stats.binom(4, one).logpmf(k) for k in (1, 1)], -1), 1.0) for one in p]
    for weight in ([1, 0], [1, 1]):
        scatter = np.std([one.elpd @ weight for one in found], ddof=1)
        stated = np.mean([np.sqrt(((weight @ one.influence) ** 2).sum()) for one in found])
        print(f"scatter {scatter:.4f}, stated {stated:.4f}")
        assert stated == pytest.approx(scatter, rel=0.15)


def test_a_task_that_was_not_run_is_left_out_of_the_sum(conjugate, of_conjugate):
    board = counted(np.append(PASSES, [[0]], 1), np.append(np.full((1, 8), 4), [[0]], 1))
    found = leave_task_out(held(board, conjugate["posterior"].to_dataset(), conjugate.attrs["model"]))
    assert found.attrs["tasks"] == of_conjugate.attrs["tasks"] == 8
    assert np.isnan(found.elpd[-1])
    assert found.reason[-1] == "no scored run"
    for name in ("elpd", "se", "p_loo"):
        assert found.attrs[name] == pytest.approx(of_conjugate.attrs[name], rel=1e-12)


# Case 59: what is left out is a task, and the constant of a count is in.


def on_grid(board: xr.Dataset, *, of_counts: bool, by_task: bool = False) -> pm.Model:
    """One ability and standard normal task effects: the contract of a marginal model in a few lines."""
    with pm.Model(coords=effects.coords(board, "normal")) as model:
        k, n, z = effects.data(board)
        b = pmd.Normal("intercept", 0.0, np.float64(1.0))
        pmd.Deterministic("score", pmd.math.sigmoid(b).expand_dims("config"))
        loglik = (k * (b + z) - n * effects.softplus(b + z)).sum("config")
        if of_counts:
            loglik = effects.log_coefficient(board) + loglik
        weight = effects.node_logweight(z, effects.normal_shape())
        if by_task:
            weight = weight + 0.0 * k.sum("config")
        effects.integrate_out(loglik, z, weight)
    return model


def binomial(outcomes: xr.Dataset, *, marginal: bool = False) -> pm.Model:
    return on_grid(outcomes, of_counts=True)


def bernoulli(outcomes: xr.Dataset, *, marginal: bool = False) -> pm.Model:
    return on_grid(outcomes, of_counts=False)


def by_task(outcomes: xr.Dataset, *, marginal: bool = False) -> pm.Model:
    return on_grid(outcomes, of_counts=True, by_task=True)


@pytest.fixture(scope="module")
def both_forms() -> dict[str, xr.Dataset]:
    """Case 59: two tasks of 2 passes in 5 runs, by counts and by runs in their order."""
    draws = chains(np.random.default_rng(2).normal(size=2000), "intercept")
    fitted = held(counted([[2, 2]], 5), draws, "test:mine")
    return {model.__name__: leave_task_out(fitted, model) for model in (binomial, bernoulli)}


def test_counts_and_runs_differ_by_the_log_of_the_binomial_coefficient(both_forms):
    apart = both_forms["binomial"].elpd - both_forms["bernoulli"].elpd
    np.testing.assert_allclose(apart, np.log(special.comb(5, 2)), rtol=1e-10)
    assert apart[0] == pytest.approx(2.3026, abs=5e-5)
    assert [one.attrs["outcomes"] for one in both_forms.values()] == ["counts", "sequences"]


def test_a_models_kind_is_unknown_where_three_tasks_alike_are_no_board_for_it():
    """One's own copy of a model with groups of tasks: three tasks of one group have no effect of it."""
    board = counted([[2, 0, 3, 1]], 5).assign_coords(repository=("task", list("xxyy")))

    def mine(outcomes: xr.Dataset, *, marginal: bool = False) -> pm.Model:
        with on_grid(outcomes, of_counts=True) as model:
            model.add_coord("repository", np.unique(outcomes["repository"].values))
            pmd.Normal("repository_effect", 0.0, 1.0, dims="repository")
        return model

    rng = np.random.default_rng(0)
    draws = chains(rng.normal(size=40), "intercept").merge(
        chains(rng.normal(size=(40, 2)), "repository_effect", "repository")
    )
    form = pointwise.form_of(board, mine, {})
    assert pointwise.kind_of_outcomes(form, board, mine, {}, draws) == "unknown"


def test_counts_and_runs_are_not_compared(both_forms):
    with pytest.raises(ArgumentError, match="'binomial' is a likelihood of counts and 'bernoulli' one of sequences"):
        compare_models(both_forms)


# A model with a grid, against quadrature over its parameters.


def log_prior(b: np.ndarray, u: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Of intercept, the one free coordinate of two effects of sum zero, with its scale integrated out, and task_sd.

    The integral of N(u; 0, sigma) times a half-normal is K0(|u| / 1.5) up to a constant: infinite at 0.
    """
    return stats.norm(0, 1.5).logpdf(b) + np.log(special.k0(abs(u) / 1.5)) + stats.halfnorm(scale=2.5).logpdf(s)


def by_hand(ability: np.ndarray, s: np.ndarray, k: np.ndarray, nodes: int = 121) -> np.ndarray:
    """log of the integral of prod_c Binomial(k_c; 5, expit(ability_c + s z)) over a standard normal z."""
    z = np.linspace(-8, 8, nodes)
    eta = ability[..., None] + s[:, None] * z
    mass = -5 * np.logaddexp(0, eta).sum(0) + np.log(special.comb(5, k)).sum() + (k[:, None, None] * eta).sum(0)
    weight = stats.norm.pdf(z)
    return np.log(np.exp(mass) @ (weight / weight.sum()))


@pytest.fixture(scope="module")
def exact() -> np.ndarray:
    """log p(task | the others), for each task of `TWO`: on a lattice of the three parameters, which is exact enough.

    With 1.4 times as many points along each it moves by less than 1e-4. The second is that of the effects' coordinate
    to the power 1/3, whose density is smooth.
    """
    points = (np.linspace(-5, 5, 25), (np.arange(32) - 15.5) / 9, np.linspace(0, 9, 25)[1:])
    b, w, s = (part.ravel() for part in np.meshgrid(*points, indexing="ij"))
    u = w**3
    ability = np.stack([b + u / np.sqrt(2), b - u / np.sqrt(2)])
    cells = TWO["successes"].values.T
    outcomes = np.unique(cells, axis=0)
    loglik = np.stack([by_hand(ability, s, k) for k in outcomes])
    which = [int(np.flatnonzero((outcomes == k).all(1))[0]) for k in cells]
    whole = log_prior(b, u, s) + 2 * np.log(abs(w)) + loglik[which].sum(axis=0)
    return special.logsumexp(whole) - special.logsumexp(whole - loglik[which], axis=1)


@pytest.fixture(scope="module")
def two_configs() -> xr.DataTree:
    return fit(TWO, "crossed", method="laplace", draws=1000, **NORMAL)


@pytest.fixture(scope="module")
def of_two_configs(two_configs) -> xr.Dataset:
    return leave_task_out(two_configs)


def test_a_laplace_fit_against_quadrature(two_configs, of_two_configs, exact):
    """12 tasks within 4.5 Monte Carlo standard errors: a false alarm in 12,000 seeds."""
    found = of_two_configs
    print(f"exact {exact.sum():.4f}, found {found.attrs['elpd']:.4f}, mcse {found.attrs['mcse']:.4f}")
    assert (found.mcse < 0.08).all()
    assert (abs(found.elpd - exact) < 4.5 * found.mcse).all()
    assert found.attrs["distinct"] < found.attrs["draws"]
    assert found.attrs["effective_draws"] < two_configs.attrs["weight_ess"]


def test_tasks_of_one_outcome_have_one_density(of_two_configs):
    for alike in ([0, 8], [1, 6, 9], [2, 7, 10], [4, 11]):
        assert np.ptp(of_two_configs.elpd.values[alike]) == 0


def test_chains_against_quadrature(exact):
    """As for laplace; the posterior has task effects, and none is used."""
    fitted = fit(TWO, "crossed", method="nuts", draws=4000, **NORMAL)
    found = leave_task_out(fitted)
    assert (abs(found.elpd - exact) < 4.5 * found.mcse).all()
    assert found.attrs["distinct"] > 0.9 * found.attrs["draws"]
    without = held(TWO, fitted["posterior"].to_dataset().drop_dims("task"), "crossed", prior_task_density="normal")
    np.testing.assert_array_equal(leave_task_out(without).elpd, found.elpd)


def test_log_likelihoods_are_integrals_over_the_task_effect(two_configs):
    posterior = two_configs["posterior"].to_dataset().isel(draw=slice(50))
    form = pointwise.form_of(*origin(two_configs))
    usual = pointwise.log_densities(form, posterior)["likelihood"].values[0]
    form = form._replace(data=form.data | {"node_position": np.linspace(-10, 10, 1201)})
    got = pointwise.log_densities(form, posterior)["likelihood"].values[0]
    ability = (posterior["intercept"] + posterior["config_effect"]).transpose("config", ...).values[:, 0]
    want = [by_hand(ability, posterior["task_sd"].values[0], k, 2001) for k in TWO["successes"].values.T]
    np.testing.assert_allclose(got, np.transpose(want), rtol=0, atol=1e-10)
    assert abs((usual - got).sum(axis=1)).max() < 1e-5


# Leaving tasks out in earnest.


@pytest.fixture(scope="module")
def left_out(two_configs) -> xr.Dataset:
    """With every k called too large, so that two tasks are fitted without."""
    module = importlib.import_module("evalbayes.check.leave_task_out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "GOOD_K", -10.0)
        return leave_task_out(two_configs, refit=2)


def test_refits_against_quadrature(left_out, exact):
    """Two tasks within 4.5 Monte Carlo standard errors; the worst two, and no other."""
    worst = np.argsort(-left_out.pareto_k.values)[:2]
    again = (left_out["method"] == "refit").values
    assert set(np.flatnonzero(again)) == set(worst)
    assert (abs(left_out.elpd - exact)[again] < 4.5 * left_out.mcse[again]).all()
    assert (left_out.reason[again] == "").all()
    assert left_out.reason[~again].str.contains("leave it out in earnest with refit=").all()
    assert left_out.attrs["unreliable"] == 10
    assert "not to be relied on for 10 of them" in left_out.attrs["verdict"]


def test_against_fits_of_the_board_without_the_task(two_configs, of_two_configs, exact):
    """The task that says most is dropped: within 4.5 standard errors of both sides, and of quadrature."""
    found = of_two_configs
    i = int(found.p_loo.values.argmax())
    again = fit(TWO.drop_isel(task=i), "crossed", method="laplace", draws=1000, **NORMAL)
    form = pointwise.form_of(*origin(two_configs))
    log_p = pointwise.log_densities(form, again["posterior"].to_dataset())["likelihood"].values[0, :, i]
    elpd = special.logsumexp(log_p) - np.log(log_p.size)
    error = np.exp(log_p - elpd).std() * np.sqrt(1 / again.attrs["weight_ess"] + 1 / 1000)
    print(f"task {i}: {found.elpd[i].item():.3f} ({found.mcse[i].item():.3f}), refit {elpd:.3f} ({error:.3f})")
    assert abs(found.elpd[i] - elpd) < 4.5 * np.hypot(found.mcse[i], error)
    assert abs(elpd - exact[i]) < 4.5 * error


# The recomputed densities.


def placed(model: pm.Model, x: Callable[[int], np.ndarray], node_position=None) -> tuple[xr.Dataset, np.ndarray]:
    """Return a posterior of unconstrained points x(size), (draw, size), and the log-likelihood at each."""
    density = compile_density(model)
    data = data_of(model) if node_position is None else data_of(model, node_position=node_position)
    names = [variable.name for variable in model.free_RVs]
    values = draws_of(density, names, x(density.size), data)
    posterior = xr.Dataset(
        {n: (("chain", "draw", *(model.named_vars_to_dims.get(n) or ())), v[None]) for n, v in values.items()},
        {dim: np.asarray(model.coords[dim]) for n in names for dim in model.named_vars_to_dims.get(n) or ()},
    )
    whole = [float(density.logp(one, data)) - float(density.log_prior(one, data)) for one in x(density.size)]
    return posterior, np.array(whole)


def points(size: int) -> np.ndarray:
    return 0.7 * np.random.default_rng(3).standard_normal((5, size))


@pytest.fixture(scope="module")
def grouped():
    """A packaged model with overdispersion, groups of configs and of tasks, on a grid finer than either form's own."""
    board = simulate.board(4, 9, 3, seed=1, kappa=3.0).assign_coords(
        agent=("config", list("aabb")), repository=("task", list("xxxyyyzzz"))
    )
    options = {"config_groups": "agent", "task_groups": "repository"}
    model = crossed_beta_binomial(board, marginal=True, **options)
    z = np.linspace(-10, 10, 2001)
    posterior, loglik = placed(model, points, z)
    form = pointwise.form_of(board, crossed_beta_binomial, options)
    form = form._replace(data=form.data | {"node_position": z})
    return posterior, pointwise.log_densities(form, posterior), loglik


def test_recomputed_likelihoods_add_up_to_the_density_at_known_points(grouped):
    _, found, loglik = grouped
    np.testing.assert_allclose(found["likelihood"].sum("task")[0], loglik, rtol=0, atol=1e-10)


def test_priors_are_densities_of_the_variables_themselves(grouped):
    """Every prior by scipy, on its own scale; M effects of sum zero are M - 1 normals."""
    posterior, found, _ = grouped
    at = posterior.isel(chain=0)

    def zero_sum(effect: xr.DataArray, sd: xr.DataArray) -> np.ndarray:
        free = effect.shape[1] - 1
        return -0.5 * ((effect**2).sum(effect.dims[1]) / sd**2) - free * np.log(sd) - free / 2 * np.log(2 * np.pi)

    want = {
        "intercept": stats.norm(0, 1.5).logpdf(at["intercept"]),
        "task_sd": stats.halfnorm(scale=2.5).logpdf(at["task_sd"]),
        "agent_sd": stats.halfnorm(scale=1.0).logpdf(at["agent_sd"]),
        "upper_weight": stats.beta(2, 2).logpdf(at["upper_weight"]),
        "log_scale_ratio": stats.norm(0, 0.5).logpdf(at["log_scale_ratio"]),
        "config_effect": zero_sum(at["config_effect"], at["config_sd"]),
        "agent_effect": zero_sum(at["agent_effect"], at["agent_sd"]),
        "repository_effect": stats.norm(0, at["repository_sd"].values[:, None]).logpdf(at["repository_effect"]).sum(1),
        "log_kappa": stats.norm(at["log_kappa_mean"].values[:, None], at["log_kappa_sd"].values[:, None])
        .logpdf(at["log_kappa"])
        .sum(1),
    }
    for name, values in want.items():
        np.testing.assert_allclose(found["prior"].sel(variable=name)[0], values, rtol=0, atol=1e-10, err_msg=name)
    given = {str(name) for name in found["variable"].values[found["hierarchical"].values]}
    assert given == {"config_effect", "agent_effect", "repository_effect", "log_kappa"}


def test_a_model_without_a_grid_has_the_sum_of_its_cells():
    """The beta-binomial of one config against scipy's, at five points."""
    board = counted([[3, 0, 5, 2, 1]], [[5, 4, 5, 5, 3]])
    form = pointwise.form_of(board, beta_binomial, {})
    posterior, _ = placed(beta_binomial(board, marginal=True), points)
    found = pointwise.log_densities(form, posterior)["likelihood"][0]
    mu, kappa = special.expit(posterior["intercept"].values[0]), np.exp(posterior["log_kappa"].values[0, :, 0])
    k, n = board["successes"].values[0], board["trials"].values[0]
    want = stats.betabinom(n, (mu * kappa)[:, None], ((1 - mu) * kappa)[:, None]).logpmf(k)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-10)


def test_weights_of_nodes_may_be_each_tasks_own():
    board, draws = counted([[2, 0, 3]], 5), chains(np.random.default_rng(2).normal(size=40), "intercept")
    one, own = (pointwise.log_densities(pointwise.form_of(board, model, {}), draws) for model in (binomial, by_task))
    np.testing.assert_allclose(own["likelihood"], one["likelihood"], rtol=0, atol=1e-12)


# Models beside each other.


@pytest.fixture(scope="module")
def three(of_conjugate) -> dict[str, xr.Dataset]:
    """Results of one board with made-up densities."""
    rng = np.random.default_rng(0)
    made = {}
    for name, shift in {"low": -1.0, "high": 0.0, "middle": -0.3}.items():
        one = copy.deepcopy(of_conjugate)
        one["elpd"] = one["elpd"] + shift + 0.1 * rng.standard_normal(8)
        one.attrs["elpd"] = float(one["elpd"].sum())
        made[name] = one
    return made


def test_differences_are_paired_over_tasks(three):
    table = compare_models(three)
    assert table["model"].values.tolist() == ["high", "middle", "low"]
    best = three["high"]["elpd"].values
    for name, one in three.items():
        apart = [a - b for a, b in zip(one["elpd"].values, best, strict=True)]
        mean = sum(apart) / 8
        se = np.sqrt(8 * sum((x - mean) ** 2 for x in apart) / 7)
        assert table["difference"].sel(model=name) == pytest.approx(sum(apart), abs=1e-12)
        assert table["difference_se"].sel(model=name) == pytest.approx(se, abs=1e-12)
        mcse = 0.0 if name == "high" else np.sqrt(2) * one.attrs["mcse"]
        assert table["difference_mcse"].sel(model=name) == pytest.approx(mcse, rel=1e-9)
    assert table.attrs["verdict"].startswith("high predicts tasks best; middle 1.5 below (se 0.2)")
    assert table["reason"].sel(model="middle") == "closer than 4; fewer than 100 tasks"
    assert table["reason"].sel(model="high") == ""


def test_order_of_tasks_does_not_matter(three):
    shuffled = three | {"low": three["low"].isel(task=[3, 1, 0, 2, 7, 6, 5, 4])}
    xr.testing.assert_allclose(compare_models(shuffled), compare_models(three))


def test_what_cannot_be_compared(three):
    other = copy.deepcopy(three["low"])
    other.attrs["board"] = "another"
    with pytest.raises(ArgumentError, match="'high' and 'low' are of different boards"):
        compare_models({"high": three["high"], "low": other})
    with pytest.raises(ArgumentError, match="give two or more"):
        compare_models({"high": three["high"]})
    with pytest.raises(ArgumentError, match=r"results\['low'\]: give what"):
        compare_models({"high": three["high"], "low": three["low"]["elpd"].to_dataset()})


def test_the_digest_is_of_cells_and_not_of_their_order():
    digest = importlib.import_module("evalbayes.check.leave_task_out")._digest
    board = counted(PASSES, 4)
    assert digest(board.isel(task=slice(None, None, -1))) == digest(board.transpose("task", "config")) == digest(board)
    assert digest(counted(PASSES[:, ::-1], 4)) != digest(board)


# What is refused.


def test_a_model_that_is_not_the_fits(two_configs, conjugate):
    with pytest.raises(ArgumentError, match="beta_binomial has no prior or option 'task_density'"):
        leave_task_out(two_configs, "beta_binomial")
    with pytest.raises(ArgumentError, match=r"the fit has no .*log_kappa.*; give the model= that it was fitted"):
        leave_task_out(two_configs, "crossed_beta_binomial")
    with pytest.raises(ArgumentError, match="fit is a dict"):
        leave_task_out({})
    with pytest.raises(ArgumentError, match="refit=-1"):
        leave_task_out(conjugate, refit=-1)


def of_every_task(outcomes: xr.Dataset, *, marginal: bool = False) -> pm.Model:
    with on_grid(outcomes, of_counts=True) as model:
        pmd.Normal("own", 0.0, 1.0, dims="task")
    return model


def with_a_potential(outcomes: xr.Dataset, *, marginal: bool = False) -> pm.Model:
    with on_grid(outcomes, of_counts=True) as model:
        pmd.Potential("soft", -(model["intercept"] ** 2))
    return model


def without_a_position(outcomes: xr.Dataset, *, marginal: bool = False) -> pm.Model:
    with pm.Model(coords=effects.coords(outcomes, "normal")) as model:
        b = pmd.Normal("intercept", 0.0, 1.0)
        pmd.Deterministic("score", pmd.math.sigmoid(b).expand_dims("config"))
        pmd.Deterministic("task_loglik", b * pmd.as_xtensor(np.ones((2, 257)), dims=("task", "node")))
    return model


def twice(outcomes: xr.Dataset, *, marginal: bool = False) -> pm.Model:
    doubled = outcomes.assign(successes=2 * outcomes["successes"], trials=2 * outcomes["trials"])
    return on_grid(doubled, of_counts=False)


def of_totals(outcomes: xr.Dataset, *, marginal: bool = False) -> pm.Model:
    with pm.Model(coords=effects.board_coords(outcomes)) as model:
        b = pm.Normal("intercept", 0.0, 1.0)
        p = pm.Deterministic("score", pm.math.sigmoid(b) * np.ones(1), dims="config")
        k, n = (outcomes[name].sum("task").values for name in ("successes", "trials"))
        pm.Binomial("total", n, p, observed=k, dims="config")
    return model


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (of_totals, "observes total and not task by task"),
        (of_every_task, "still has own over task; integrate it out"),
        (with_a_potential, "a term of .* beside its variables' priors"),
        (without_a_position, "has task_loglik of task_loglik, node_logweight, node_position"),
        (twice, "0, 1 and 2 of 2 passes probability .*: neither counts nor sequences"),
    ],
)
def test_models_that_do_not_say_what_a_tasks_likelihood_is(model, said):
    draws = chains(np.random.default_rng(2).normal(size=40), "intercept")
    with pytest.raises(ArgumentError, match=said):
        leave_task_out(held(counted([[2, 2]], 5), draws, "test:mine"), model)


# A real board, reduced; all of it is in benchmarks/model_comparison.py.


def test_terminal_bench_has_interaction(shared_data):
    """Five of the 83 configs: the beta-binomial is ahead by more than three standard errors, as on the whole board."""
    board = read(shared_data / "terminal_bench_2_counts.csv.gz").isel(config=slice(None, None, 20))
    options = {"method": "laplace", "draws": 1000, "task_density": "normal"}
    found = {name: leave_task_out(fit(board, name, **options)) for name in ("crossed", "crossed_beta_binomial")}
    table = compare_models(found)
    print(table.attrs["verdict"])
    assert table["model"].values.tolist() == ["crossed_beta_binomial", "crossed"]
    assert table["difference"][1] < -3 * table["difference_se"][1]
    assert (table["unreliable"] == 0).all()
