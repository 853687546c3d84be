"""Groups and discrimination in the answers: each target against a loop over draws that follows its definition."""

import numpy as np
import pytest
import xarray as xr
from scipy import special

import evalbayes as eb
from evalbayes.cells import flattened
from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.posterior.draws import population_nodes, score_draws, task_weights

TARGETS = ("fixed", "sampled")


@pytest.fixture(scope="module")
def board() -> xr.Dataset:
    """8 configs of 3 agents x 36 tasks of 4 repositories of unequal size, 3 runs."""
    plain = eb.simulate.board(configs=8, tasks=36, runs=3, kappa=4.0, seed=4)
    return plain.assign_coords(
        agent=("config", list("xyzxyzxy")), repo=("task", list("aaaaaaaaaaaabbbbbbbbccccdddd" + "d" * 8))
    )


@pytest.fixture(scope="module")
def fit(board) -> xr.DataTree:
    return eb.fit(board, config_groups="agent", task_groups=("repo",), draws=400, seed=1)


@pytest.fixture(scope="module")
def sharp(fit) -> xr.DataTree:
    """The same fit with a discrimination that it did not have: what answers make of one needs no other."""
    tree = fit.copy()
    posterior = tree["posterior"].to_dataset()
    rng = np.random.default_rng(6)
    log_slope = 0.3 * rng.standard_normal(posterior["ability"].shape)
    posterior["log_discrimination"] = posterior["ability"].copy(data=log_slope)
    posterior["discrimination_sd"] = posterior["task_sd"].copy(data=rng.uniform(0.1, 0.5, posterior["task_sd"].shape))
    tree["posterior"] = xr.DataTree(posterior)
    return tree


def draw_of(tree: xr.DataTree, i: int) -> xr.Dataset:
    return flattened(tree["posterior"].to_dataset()).isel(draw=i)


def slope_of(one: xr.Dataset) -> np.ndarray:
    return np.exp(one["log_discrimination"].values) if "log_discrimination" in one else np.ones(8)


def score_by_hand(one: xr.Dataset, board: xr.Dataset, clusters: str) -> np.ndarray:
    """Mean of expit over a fine grid of z for every component, and of every task's group or of new ones."""
    z = np.linspace(-9, 9, 1201)
    normal = np.exp(-(z**2) / 2)
    normal /= normal.sum()
    repos = one["repo_effect"].sel(repo=board["repo"].values).values
    total = 0.0
    for w, m, s in zip(one["task_weight"].values, one["task_mean"].values, one["task_scale"].values, strict=True):
        if clusters == "sampled":
            places, wide = [0.0], np.hypot(s, float(one["repo_sd"]))
        else:
            places, wide = repos, s
        for place in places:
            eta = one["ability"].values[:, None] + slope_of(one)[:, None] * (place + m + wide * z)
            total = total + w * special.expit(eta) @ normal / len(places)
    return np.asarray(total)


@pytest.mark.parametrize("tree", ["fit", "sharp"])
def test_score_for_each_target_of_clusters(tree, board, request):
    tree = request.getfixturevalue(tree)
    for clusters in TARGETS if "log_discrimination" not in tree["posterior"] else ("fixed",):
        draws, reason = score_draws(tree, tasks="sampled", clusters=clusters)
        assert (reason == "").all()
        for i in (0, 57, 399):
            # Nodes a quarter of a scale apart err by 1e-7 where a discrimination of 2.5 widens that scale.
            np.testing.assert_allclose(draws[i], score_by_hand(draw_of(tree, i), board, clusters), atol=1e-6)


def test_new_groups_are_the_default_and_part_of_the_identity(fit):
    answers = {clusters: eb.posterior.score(fit, clusters=clusters) for clusters in (None, "sampled", "fixed")}
    assert [one["clusters"].item() for one in answers.values()] == ["sampled", "sampled", "fixed"]
    xr.testing.assert_identical(answers[None], answers["sampled"])
    assert "clusters" not in eb.posterior.score(fit, tasks="fixed").coords
    wider = {name: float((one.interval[:, 1] - one.interval[:, 0]).mean()) for name, one in answers.items()}
    assert wider["fixed"] > 0


def test_words_for_clusters_that_have_no_meaning_are_refused(fit, small_fit):
    with pytest.raises(ArgumentError, match="the fit has no groups of tasks"):
        eb.posterior.score(small_fit, clusters="fixed")
    with pytest.raises(ArgumentError, match="clusters='some'"):
        eb.posterior.score(fit, clusters="some")
    with pytest.raises(ArgumentError, match="these tasks have the groups"):
        eb.posterior.score(fit, tasks="fixed", clusters="sampled")


def test_reweighted_tasks_keep_or_redraw_what_their_groups_count_for(fit, board):
    """Fixed: groups keep their share in every draw. Sampled: their shares vary, with the mean that sizes give.

    The mean of 20,000 draws of a share has a standard error below 0.002: 5 of them, one false alarm in 10^6.
    """
    many = fit.copy()
    posterior = flattened(fit["posterior"].to_dataset())
    many["posterior"] = xr.DataTree(posterior.isel(draw=np.zeros(20_000, int)).expand_dims(chain=[0]))
    size = xr.DataArray(board["repo"].values).groupby(xr.DataArray(board["repo"].values)).count().values / 36
    members = (board["repo"].values == np.unique(board["repo"].values)[:, None]).T.astype(float)
    for clusters in TARGETS:
        weight = task_weights(many, np.random.default_rng(2), clusters)
        np.testing.assert_allclose(weight.sum(axis=1), 1.0)
        share = weight @ members
        if clusters == "fixed":
            np.testing.assert_allclose(share, np.broadcast_to(size, share.shape))
            # Within a group of n a Dirichlet weight has variance (n - 1) / (n^2 (n + 1)) of the group's square.
            first, n = weight[:, 0] / size[0], 12
            assert first.var() == pytest.approx((n - 1) / (n**2 * (n + 1)), rel=0.1)
        else:
            assert share.std(axis=0).min() > 0.05
            # Exponential weights on unequal sizes: by simulation of the definition itself.
            e = size * np.random.default_rng(3).exponential(size=(20_000, 4))
            np.testing.assert_allclose(share.mean(axis=0), (e / e.sum(axis=1)[:, None]).mean(axis=0), atol=0.01)


@pytest.mark.parametrize("population", ["model", "reweighted"])
@pytest.mark.parametrize("clusters", TARGETS)
def test_every_answer_for_new_tasks_takes_clusters(fit, clusters, population):
    target = {"clusters": clusters, "population": population}
    for name, options in (
        ("score", {}),
        ("difference", {"reference": str(fit["posterior"]["config"].values[0])}),
        ("rank", {}),
        ("top_k", {"k": 2}),
        ("win_probability", {}),
        ("icc", {}),
        ("ceiling", {}),
        ("optimal_runs", {"cost_ratio": 5.0}),
        ("pass_at_k", {"k": 3}),
        ("flip_rate", {}),
        ("adjacent", {}),
        ("best_set", {}),
    ):
        result = getattr(eb.posterior, name)(fit, **options, **target)
        assert result["clusters"].item() == clusters, name
        assert result["estimate"].notnull().any(), name


def test_icc_of_new_tasks_of_known_groups_against_a_loop(sharp, board):
    """sigma_b^2 and mu_w from their definitions at single draws; clusters fixed."""
    from evalbayes.posterior.variances import component_draws

    found = component_draws(sharp, tasks="sampled", clusters="fixed")
    for i in (3, 200):
        one = draw_of(sharp, i)
        at, weight = population_nodes(flattened(sharp["posterior"].to_dataset()).isel(draw=[i]), "fixed")
        mu = special.expit(one["ability"].values[:, None] + slope_of(one)[:, None] * at[0])
        kappa = np.exp(one["log_kappa"].values)
        mean, noise = mu @ weight[0], (mu * (1 - mu)) @ weight[0]
        variance = ((mu - mean[:, None]) ** 2) @ weight[0]
        np.testing.assert_allclose(found.between[i], variance + noise / (1 + kappa), atol=1e-10)
        np.testing.assert_allclose(found.within[i], noise * kappa / (1 + kappa), atol=1e-10)


def test_fixed_tasks_follow_discrimination(sharp, board):
    """Without kappa the score on these tasks is the mean of expit(ability + slope effect), draw by draw."""
    tree = sharp.copy()
    tree["posterior"] = xr.DataTree(tree["posterior"].to_dataset().drop_vars(["log_kappa"]))
    draws, _ = score_draws(tree, tasks="fixed")
    for i in (0, 123):
        one = draw_of(tree, i)
        p = special.expit(one["ability"].values[:, None] + slope_of(one)[:, None] * one["task_effect"].values)
        np.testing.assert_allclose(draws[i], p.mean(axis=1), atol=1e-12)


def test_a_future_entry_is_of_a_new_agent(fit):
    """Its mean logit varies by config_sd^2 (1 + 1/8) + agent_sd^2 (1 + 1/3); its score by simulation of just that.

    Both means have standard errors below 0.02 at 400 draws: 5 of them, one false alarm in 10^6.
    """
    from evalbayes.posterior.draws import future_score_draws

    found = future_score_draws(fit, tasks="sampled", clusters="sampled").values
    posterior, rng = flattened(fit["posterior"].to_dataset()), np.random.default_rng(9)
    spread = np.sqrt(posterior["config_sd"] ** 2 * (1 + 1 / 8) + posterior["agent_sd"] ** 2 * (1 + 1 / 3)).values
    ability = posterior["intercept"].values + spread * rng.standard_normal(spread.size)
    at, weight = population_nodes(posterior, "sampled")
    expected = (special.expit(ability[:, None] + at) * weight).sum(axis=1)
    assert abs(found.mean() - expected.mean()) < 5 * np.sqrt((found.var() + expected.var()) / found.size)
    assert np.log(found.std() / expected.std()) == pytest.approx(0, abs=0.25)


def simulated_components(tree: xr.DataTree, i: int, size: int) -> tuple[dict[str, float], dict[str, float], float]:
    """First-order variances by picking and freezing one factor (Sobol' 1993), their standard errors, and Var mu."""
    from evalbayes.posterior.partition import _parts

    logit, rng = _parts(tree), np.random.default_rng(11)
    sharpness = float(draw_of(tree, i)["discrimination_sd"]) if "discrimination_sd" in tree["posterior"] else 0.0

    def factors() -> dict[str, np.ndarray]:
        normal = {name: sd[i] for name, sd in (logit.configs | logit.tasks).items()}
        drawn = {name: sd * rng.standard_normal(size) for name, sd in normal.items()}
        which = rng.choice(logit.weight.shape[1], size=size, p=logit.weight[i])
        drawn["task"] = logit.mean[i][which] + logit.scale[i][which] * rng.standard_normal(size)
        return drawn | {"discrimination": np.exp(sharpness * rng.standard_normal(size))}

    def mu(drawn: dict[str, np.ndarray]) -> np.ndarray:
        configs = sum(drawn[name] for name in logit.configs)
        tasks = sum(drawn[name] for name in (*logit.tasks, "task"))
        return special.expit(logit.intercept[i] + configs + drawn["discrimination"] * tasks)

    first, second = factors(), factors()
    base = mu(first)
    found, error = {}, {}
    for name in (*logit.configs, *logit.tasks, "task", *(["discrimination"] if sharpness else [])):
        product = (base - base.mean()) * ((frozen := mu(second | {name: first[name]})) - frozen.mean())
        found[name], error[name] = float(product.mean()), float(product.std() / np.sqrt(size))
    return found, error, float(base.var())


@pytest.mark.parametrize("tree", ["fit", "sharp"])
def test_variance_components_against_simulation(tree, request):
    """Within 5 standard errors of 400,000 simulated pairs: one false alarm in a million for each of ten figures."""
    from evalbayes.posterior.partition import _on_probability_scale

    tree = request.getfixturevalue(tree)
    parts = _on_probability_scale(tree)
    for i in (5, 321):
        found, error, total = simulated_components(tree, i, 400_000)
        for name, value in found.items():
            assert abs(parts[name][i] - value) < 5 * error[name] + 1e-9, name
        assert sum(parts[name][i] for name in (*found, "interaction")) == pytest.approx(total, rel=0.02)


def test_variance_components_sum_to_the_variance_of_an_outcome(sharp):
    """m (1 - m), and on the latent scale those of the effects: E lambda by the log-normal's formulas."""
    from evalbayes.posterior.partition import _on_latent_scale, _on_probability_scale, _parts

    parts, logit = _on_probability_scale(sharp), _parts(sharp)
    assert min(value.min() for value in parts.values()) >= 0
    whole = np.sum(list(parts.values()), axis=0)
    assert whole.max() <= 0.25
    latent = _on_latent_scale(sharp)
    s2 = flattened(sharp["posterior"].to_dataset())["discrimination_sd"].values ** 2
    variance = (logit.weight * (logit.scale**2 + logit.mean**2)).sum(axis=1)
    np.testing.assert_allclose(latent["task"], np.exp(s2) * variance, rtol=1e-6)
    both = np.exp(s2) * (np.exp(s2) - 1) * (variance + logit.tasks["repo"] ** 2)
    np.testing.assert_allclose(latent["interaction"], both, rtol=1e-5)
    np.testing.assert_allclose(latent["agent"], logit.configs["agent"] ** 2)


def test_variance_components_answer(fit, small_fit):
    result = eb.posterior.variance_components(fit)
    assert result["component"].values.tolist() == ["config", "agent", "repo", "task", "interaction", "cell", "run"]
    assert result["side"].values.tolist() == ["configs", "configs", "tasks", "tasks", "both", "both", "runs"]
    print(result.attrs["sentence"])
    assert result.attrs["sentence"].startswith("of the variance between configs: ")
    latent = eb.posterior.variance_components(fit, scale="latent")
    assert latent["estimate"].sel(component="run").item() == pytest.approx(np.pi**2 / 3)
    assert "kappa" in latent["reason"].sel(component="cell").item()
    assert latent["share"].sel(component="cell").isnull()
    assert latent["share_interval"].sel(component="cell").isnull().all()
    assert "config_groups=" in eb.posterior.variance_components(small_fit).attrs["sentence"]
    with pytest.raises(NotIdentifiedError, match="of populations"):
        eb.posterior.variance_components(fit, configs="fixed")
    with pytest.raises(ArgumentError, match="scale='logit'"):
        eb.posterior.variance_components(fit, scale="logit")


def test_a_fit_with_groups_is_saved_and_read_whole(fit, tmp_path):
    from evalbayes.storage import load_fit, save_fit

    save_fit(fit, tmp_path / "fit.nc")
    again = load_fit(tmp_path / "fit.nc")
    assert again.attrs["prior_config_groups"] == "agent"
    xr.testing.assert_identical(eb.posterior.variance_components(again), eb.posterior.variance_components(fit))
    assert eb.check.repeatability(again, draws=200).attrs["verdict"]
