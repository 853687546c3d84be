"""Near ties from a fit against exact rates: sums of binomials, convolutions and one-dimensional integrals.

Fits are made by hand with parameters that are known, so that theta is known at every posterior draw. Where a test is
statistical its estimate has to be within 4.4 standard errors: a false alarm in 100,000 a number.
"""

import numpy as np
import pytest
import xarray as xr
from scipy import special, stats

from boards import counted
from evalbayes import ArgumentError, NotIdentifiedError, SamplingError, compare, pairs, posterior
from evalbayes.answer import check
from evalbayes.cells import flattened
from evalbayes.outcomes import from_counts
from evalbayes.posterior import panels
from evalbayes.posterior.near_tie import _without_noise

DRAWS, MARGIN, FAR = 400, 0.1, 4.4
B, SD = 0.9, 0.8
OF_MEAN = SD / np.sqrt(5)
"""What d varies by on a board of five configs."""
WEIGHT, MEAN, SCALE = np.array([0.6, 0.4]), np.array([-0.8, 1.2]), np.array([0.5, 0.9])
EFFECT = np.random.default_rng(8).normal(0, 1.2, 12)


@pytest.fixture(scope="module")
def known(fabricate):
    """Return a maker of fits whose parameters are the same in every draw: additive, or with kappa."""

    def make(configs=5, tasks=12, runs=1, *, flat=False, kappa=None, spread=1.0, seed=0, **attrs):
        k = np.random.default_rng(1).binomial(runs, 0.6, (configs, tasks))
        fit = fabricate(k, runs, draws=DRAWS // 2, seed=seed, **attrs)
        post = fit["posterior"].to_dataset()
        level = spread * np.linspace(-1, 1, configs)
        values = {
            "intercept": B,
            "config_sd": SD,
            "config_effect": level,
            "task_weight": WEIGHT,
            "task_mean": MEAN * (not flat),
            "task_scale": SCALE * (1e-9 if flat else 1),
            "task_effect": np.zeros(tasks) if flat else np.resize(EFFECT, tasks),
        }
        for name, value in values.items():
            post[name] = post[name].copy(data=np.broadcast_to(value, post[name].shape))
        if kappa is not None:
            post["log_kappa_mean"] = post["intercept"] * 0 + np.log(kappa[0])
            post["log_kappa_sd"] = post["intercept"] * 0 + kappa[1]
            post["log_kappa"] = post["config_effect"] * 0 + np.log(kappa[0])
        fit["posterior"] = xr.DataTree(post)
        return fit

    return make


def hermite(nodes):
    """Nodes and weights of a standard normal."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    return z, w / w.sum()


def repeated(pmf, times):
    """Distribution of the sum of so many independent counts that have this one, over the last axis."""
    size = (pmf.shape[-1] - 1) * times + 1
    return np.fft.ifft(np.fft.fft(pmf, size) ** times).real


def summed(pmf):
    """Distribution of the sum of independent counts that each have their own, (..., of, count)."""
    size = (pmf.shape[-1] - 1) * pmf.shape[-2] + 1
    return np.fft.ifft(np.fft.fft(pmf, size).prod(axis=-2)).real


def cell(mu, runs, kappa=None):
    """Distribution of passes of a cell, (..., runs + 1)."""
    k, mu = np.arange(runs + 1), np.asarray(mu)[..., None]
    if kappa is None:
        return stats.binom.pmf(k, runs, mu)
    return stats.betabinom.pmf(k, runs, mu * kappa[..., None], (1 - mu) * kappa[..., None])


def tied(first, second, out_of):
    """P(|X - Y| <= MARGIN) of independent X and Y with these distributions of counts."""
    apart = np.abs(np.subtract.outer(np.arange(out_of + 1), np.arange(out_of + 1))) * 10 <= out_of
    return first @ apart @ second


def within(found, exact):
    """Whether an estimate is that of the exact rate, by its own simulation and posterior draws."""
    spread = found.se.item() / np.sqrt(1 - min(found.simulation_share.item(), 0.999))
    print(f"{found.estimate.item():.5f}, exact {exact:.5f}, standard error {spread / np.sqrt(DRAWS):.5f}")
    return abs(found.estimate.item() - exact) <= FAR * spread / np.sqrt(DRAWS) + 1e-9


def ask(fit, **how):
    return check(posterior.near_tie(fit, MARGIN, **{"draws": DRAWS, "entries": 128} | how))


# Two future entries.


def future_rates(score, out_of, own=SD, shared=OF_MEAN):
    """Theta at nodes of d, the mean that future entries share; X and Y being independent given the parameters.

    ``score`` gives the distribution of a count, (ability, count).
    """
    a, w = hermite(50)
    d, share = hermite(24)
    marginal = [w @ score(B + shared * shift + own * a) for shift in d]
    return np.array([tied(one, one, out_of) for one in marginal]), d, share


def one_level(runs, tasks, kappa=None):
    """Scores where all tasks are alike: sums of as many cells."""

    def score(ability):
        mu = special.expit(ability)
        if kappa is None:
            return cell(mu, runs * tasks)
        log, w = hermite(15)
        each = repeated(cell(mu[:, None], runs, kappa[0] * np.exp(kappa[1] * log)), tasks)
        return np.einsum("z,azk->ak", w, each)

    return score


@pytest.mark.parametrize("tasks", ["sampled", "fixed"])
@pytest.mark.parametrize(("runs", "kappa"), [(1, None), (3, None), (3, (2.0, 1.5)), (1, (2.0, 1.5))])
def test_future_entries_where_tasks_are_alike_are_binomial(known, tasks, runs, kappa):
    """The mean of theta over d ~ N(0, sd^2 / M), and the interval's ends: theta(d)'s, no wider for simulation."""
    fit = known(tasks=12, runs=runs, flat=True, kappa=kappa)
    found = ask(fit, tasks=tasks)
    # With one run a cell kappa is of no matter.
    theta, d, share = future_rates(one_level(runs, 12, kappa if runs > 1 else None), 12 * runs)
    assert within(found, share @ theta)
    assert found.simulation_share < 0.35
    drawn = np.interp(np.random.default_rng(0).standard_normal(10**5), d, theta)
    ends = np.quantile(drawn, [0.025, 0.975])
    print("ends", found.interval.values, ends, found.interval_mcse.values)
    assert (np.abs(found.interval.values - ends) <= FAR * found.interval_mcse.values + 0.15 * np.ptp(ends)).all()


def population():
    """Effects of new tasks and their weights, by the trapezoidal rule on each component."""
    z = np.linspace(-8, 8, 65)
    density = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    return (MEAN[:, None] + SCALE[:, None] * z).ravel(), (WEIGHT[:, None] * density).ravel()


def differences(at, slopes, panel_tasks, runs=1, kappa=None):
    """P(|X - Y| <= MARGIN) for every pair of abilities on one panel of new tasks.

    Tasks are independent, so that X - Y is a sum of steps from -runs to runs that all have the same distribution: an
    integral over a task's effect, given which X and Y are independent.
    """
    t, w = population()
    mu = special.expit(at[:, None] + slopes[:, None] * t)
    pmf = cell(mu, runs, kappa if kappa is None else np.full_like(mu, kappa))
    steps = np.zeros((len(at), len(at), 2 * runs + 1))
    for x in range(runs + 1):
        for y in range(runs + 1):
            steps[..., x - y + runs] += (pmf[..., x] * w) @ pmf[..., y].T
    most = panel_tasks * runs
    near = np.abs(np.arange(-most, most + 1)) * 10 <= most
    return repeated(steps, panel_tasks) @ near


def test_future_entries_meet_one_panel_of_new_tasks(known):
    """Exact, and well apart from what it would be if the two met panels of their own."""
    a, w = hermite(40)
    d, share = hermite(12)
    found = ask(known(), panel_tasks=30)
    together = sum(
        v * w @ differences(B + OF_MEAN * s + SD * a, np.ones(40), 30) @ w for s, v in zip(d, share, strict=True)
    )
    assert within(found, together)
    t, weight = population()
    alone, _, share = future_rates(lambda at: cell(special.expit(at[:, None] + t) @ weight, 30), 30)
    assert not within(found, share @ alone)


@pytest.mark.parametrize("runs", [1, 2])
def test_future_entries_on_the_tasks_of_the_board(known, runs):
    def score(ability):
        return summed(cell(special.expit(ability[:, None] + EFFECT), runs))

    theta, _, share = future_rates(score, 12 * runs)
    assert within(ask(known(runs=runs), tasks="fixed"), share @ theta)


def test_a_new_agent_adds_its_variance_to_the_entry(known):
    """And to what entries share, by the number of agents on the board."""
    fit = known(configs=6, flat=True)
    post = fit["posterior"].to_dataset()
    post["agent_effect"] = (("chain", "draw", "agent"), np.zeros((2, DRAWS // 2, 2)))
    post["agent_sd"] = post["intercept"] * 0 + 0.6
    fit["posterior"] = xr.DataTree(post)
    seen = fit["observed_data"].to_dataset().assign_coords(agent=("config", list("xyxyxy")))
    fit["observed_data"] = xr.DataTree(seen)
    own, shared = np.hypot(SD, 0.6), np.sqrt(SD**2 / 6 + 0.6**2 / 2)
    theta, _, share = future_rates(one_level(1, 12), 12, own, shared)
    assert within(ask(fit), share @ theta)


def test_future_entries_have_discriminations_of_their_own(known):
    """log lambda ~ N(e, 0.6^2) on the tasks of the board, with e ~ N(0, 0.6^2 / 5) shared as d is."""
    fit = known()
    for name, like, value in (("log_discrimination", "config_effect", 0.0), ("discrimination_sd", "intercept", 0.6)):
        fit["posterior"][name] = fit["posterior"][like].copy(data=np.full(fit["posterior"][like].shape, value))
    z, w = hermite(9)
    exact = 0.0
    for e, part in zip(z, w, strict=True):
        slope = np.exp(0.6 / np.sqrt(5) * e + 0.6 * z)[:, None]

        def score(ability, slope=slope):
            return np.einsum("l,alk->ak", w, summed(cell(special.expit(ability[:, None, None] + slope * EFFECT), 1)))

        theta, _, share = future_rates(score, 12)
        exact += part * (share @ theta)
    assert within(ask(fit, tasks="fixed", entries=256), exact)


def test_entries_are_drawn_from_their_hierarchies(fabricate):
    """Means and standard deviations of 100,000 entries, to 4.4 standard errors: 1/316, 1/447 of an sd."""
    fit = fabricate(np.ones((8, 3), int), 2, draws=5, chains=1)
    post = fit["posterior"].to_dataset()
    post["log_kappa_mean"], post["log_kappa_sd"] = post["intercept"] * 0 + 0.7, post["intercept"] * 0 + 1.1
    post["log_discrimination"], post["discrimination_sd"] = post["config_effect"] * 0, post["intercept"] * 0 + 0.4
    fit["posterior"] = xr.DataTree(post)
    rng = np.random.default_rng(0)
    future = panels._future(fit, flattened(post), rng)
    drawn = panels._entries(future, 3, (1, 2, 50_000), rng)
    ability, slope, pull = drawn[0].ravel(), np.log(drawn[1]).ravel(), np.log(drawn[2]).ravel()
    expected = ((ability, future.ability), (slope, future.slope), (-pull, (np.full(5, 0.7), np.full(5, 1.1))))
    for values, (mean, sd) in expected:
        assert abs(values.mean() - mean[3]) < FAR * sd[3] / 316
        assert abs(values.std() - sd[3]) < FAR * sd[3] / 447
    np.testing.assert_array_equal(future.ability[1], post["config_sd"].values[0])
    np.testing.assert_allclose(future.slope[1], 0.4)


# The configs of the board.


@pytest.mark.parametrize(("runs", "kappa"), [(1, None), (2, None), (3, 2.0)])
def test_configs_of_the_board_on_new_tasks(known, runs, kappa):
    """Every pair exactly, configs with slopes of their own; close together, so that kappa matters."""
    fit = known(runs=runs, kappa=kappa and (kappa, 1.0), spread=0.2)
    slopes = np.array([0.5, 1.0, 1.5, 1.0, 2.0])
    for name, value in (("log_discrimination", np.log(slopes)), ("discrimination_sd", 0.5)):
        like = fit["posterior"]["config_effect" if name.startswith("log") else "intercept"]
        fit["posterior"][name] = like.copy(data=np.broadcast_to(value, like.shape))
    exact = differences(B + 0.2 * np.linspace(-1, 1, 5), slopes, 20, runs, kappa)
    found = ask(fit, configs="fixed", panel_tasks=20)
    assert within(found, exact[np.triu_indices(5, 1)].mean())


@pytest.mark.parametrize("kappa", [None, (3.0, 0.1)])
def test_new_runs_of_the_cells_of_the_board(known, kappa):
    """Additive cells, and cells with rates of their own: then new runs are beta-binomial about what was seen."""
    runs = 2
    fit = known(runs=runs, kappa=kappa)
    mu = special.expit(B + np.linspace(-1, 1, 5)[:, None] + EFFECT)
    pmf = cell(mu, runs)
    if kappa is not None:
        k = fit["observed_data"]["successes"].values
        a, b = mu * kappa[0] + k, (1 - mu) * kappa[0] + runs - k
        pmf = stats.betabinom.pmf(np.arange(runs + 1), runs, a[..., None], b[..., None])
    sums = summed(pmf)
    exact = [tied(sums[i], sums[j], 12 * runs) for i in range(5) for j in range(i)]
    assert within(ask(fit, configs="fixed", tasks="fixed"), np.mean(exact))


def test_clusters_of_new_tasks(known):
    """Of the board's clusters, or of new ones that tasks share: two of them, six tasks each, nothing else varying."""
    fit = known(configs=3, flat=True, prior_task_groups="repo")
    post = fit["posterior"].to_dataset()
    group = np.repeat([-1.5, 1.0], 6)
    post["task_group_effect"] = post["task_effect"].copy(data=np.broadcast_to(group, post["task_effect"].shape))
    post["task_group_sd"] = post["intercept"] * 0 + 1.3
    fit["posterior"] = xr.DataTree(post)

    def exact(effects):
        sums = summed(cell(special.expit(B + np.array([-1.0, 0.0, 1.0])[:, None] + effects), 1))
        return np.mean([tied(sums[i], sums[j], 12) for i in range(3) for j in range(i)])

    fixed = ask(fit, configs="fixed", clusters="fixed")
    assert within(fixed, exact(group))
    assert (fixed.clusters, fixed.cluster) == ("fixed", "")
    z, w = hermite(10)
    by_pair = [[exact(1.3 * np.repeat([x, y], 6)) for y in z] for x in z]
    sampled = ask(fit, configs="fixed")
    assert within(sampled, w @ np.array(by_pair) @ w)
    assert (sampled.clusters, sampled.cluster) == ("sampled", "repo")


@pytest.mark.parametrize("configs", ["fixed", "sampled"])
def test_reweighted_tasks_against_a_simulation_of_its_own(known, configs):
    """Dirichlet weights, a panel of 20 tasks drawn with them, a run of each; 40,000 panels of two entries."""
    found = ask(
        known(configs=2, gate="failed", mean_gap=0.1, mean_gap_se=3, worst_gap=0.2),
        configs=configs,
        population="reweighted",
        panel_tasks=20,
    )
    rng = np.random.default_rng(5)
    at = B + np.zeros((40_000, 2)) + np.array([-1.0, 1.0])
    if configs == "sampled":
        at = B + SD * rng.standard_normal((40_000, 2)) + SD / np.sqrt(2) * rng.standard_normal((40_000, 1))
    weight = rng.dirichlet(np.ones(12), 40_000)
    which = (rng.random((40_000, 20, 1)) > weight.cumsum(axis=1)[:, None, :-1]).sum(axis=-1)
    solved = (rng.random((40_000, 2, 20)) < special.expit(at[..., None] + EFFECT[which][:, None])).sum(axis=-1)
    exact = (abs(solved[:, 0] - solved[:, 1]) <= 2).mean()
    assert found.method == "laplace_reweighted"
    error = np.hypot(
        np.sqrt(exact * (1 - exact) / 40_000), found.se.item() / np.sqrt(1 - found.simulation_share.item()) / 20
    )
    assert abs(found.estimate.item() - exact) <= FAR * error


# Latent scores.


def by_grid(score):
    """P(|score(a) - score(a')| <= MARGIN) over a, a' ~ N(0, sd^2) and d, on a grid of equally spaced abilities."""
    z = np.linspace(-6, 6, 1201)
    w = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    d, share = hermite(12)
    total = 0.0
    for shift, part in zip(d, share, strict=True):
        s = score(B + OF_MEAN * shift + SD * z)
        below = np.concatenate([[0], w.cumsum()])
        total += part * (w @ (below[np.searchsorted(s, s + MARGIN, "right")] - below[np.searchsorted(s, s - MARGIN)]))
    return total


def mean_rate(effects, weight):
    return lambda at: special.expit(at[:, None] + effects) @ weight


def test_latent_scores_of_future_entries(known):
    new = mean_rate(*population())
    board = mean_rate(EFFECT, np.full(12, 1 / 12))
    sampled, fixed = (ask(known(runs=2), scores="latent", tasks=tasks) for tasks in ("sampled", "fixed"))
    for found, score in ((sampled, new), (fixed, board)):
        assert within(found, by_grid(score))
        assert (found.panel, found.panel_tasks, found.runs, found.new_runs) == ("none", 0, "", False)
    assert within(ask(known(flat=True), scores="latent"), by_grid(special.expit))


def test_latent_scores_on_these_tasks_have_the_spread_of_their_cells(known):
    """One task: a cell's rate is Beta, and two future entries' are near ties as two such rates are; kappa fixed."""
    found = ask(known(tasks=1, runs=2, flat=True, kappa=(2.0, 1e-9)), scores="latent", tasks="fixed")
    rng = np.random.default_rng(2)
    at = B + SD * rng.standard_normal((10**6, 2)) + OF_MEAN * rng.standard_normal((10**6, 1))
    p = rng.beta(2 * special.expit(at), 2 * (1 - special.expit(at)))
    exact = (abs(p[:, 0] - p[:, 1]) <= MARGIN).mean()
    assert within(found, exact)


def test_latent_scores_of_the_board_are_counted(fabricate):
    fit = fabricate(np.ones((6, 4), int), 2)
    found = ask(fit, scores="latent", configs="fixed", draws=200)
    scores = fit["posterior"]["score"].values.reshape(200, 6)
    share = [np.mean([abs(s[i] - s[j]) <= MARGIN for i in range(6) for j in range(i)]) for s in scores]
    assert found.estimate.item() == pytest.approx(np.mean(share))
    np.testing.assert_allclose(found.interval, np.quantile(share, [0.025, 0.975]))
    assert found.simulation_share == 0


# Simulation is no part of the interval.


def test_noise_is_taken_out_of_the_spread():
    """Theta of sd 0.02 seen twice with noise of sd 0.04: their plain means spread 1.7 times as far; 4,000 draws."""
    rng = np.random.default_rng(0)
    theta = 0.4 + 0.02 * rng.standard_normal(4000)
    estimates = theta[:, None] + 0.04 * rng.standard_normal((4000, 2))
    kept, share = _without_noise(estimates)
    assert estimates.mean(axis=1).std() > 0.033
    assert kept.std() == pytest.approx(0.02, rel=0.15)
    assert share == pytest.approx(2 / 3, abs=0.06)
    assert kept.mean() == pytest.approx(estimates.mean())
    alone, nothing = _without_noise(np.full((50, 2), 0.3))
    assert (alone == 0.3).all()
    assert nothing == 0


@pytest.mark.parametrize(
    "target", [{}, {"tasks": "fixed"}, {"configs": "fixed"}, {"configs": "fixed", "tasks": "fixed"}]
)
def test_twice_the_simulation_leaves_the_interval_where_it_is(small_fit, target):
    """Within 4.4 Monte Carlo errors of both together; without the correction the small one is wider."""
    few, more = (posterior.near_tie(small_fit, MARGIN, draws=400, entries=n, **target) for n in (128, 256))
    apart = np.abs(few.interval - more.interval).values
    print(few.interval.values, more.interval.values, few.simulation_share.item(), more.simulation_share.item())
    assert (apart <= FAR * np.hypot(few.interval_mcse, more.interval_mcse).values).all()
    assert more.simulation_share < few.simulation_share < 0.5
    assert few.se.item() == pytest.approx(more.se.item(), rel=0.15)


# A real fit of a board with known truth.


def true_rate(board, configs, tasks, rng):
    """The rate of near ties among 4,000 simulated panels, drawn from what the board was drawn from."""
    raw = np.random.default_rng(np.random.SeedSequence(1).spawn(5)[0]).standard_normal(8)
    effect = board.true_config_effect.values
    np.testing.assert_allclose(raw - raw.mean(), effect)
    # The board's effects have lost their mean, and a future entry is drawn around what is left.
    at = effect + np.zeros((4000, 1)) if configs == "fixed" else rng.standard_normal((4000, 8)) - raw.mean()
    t = board.true_task_effect.values + np.zeros((4000, 1)) if tasks == "fixed" else 2 * rng.standard_normal((4000, 40))
    solved = rng.binomial(3, special.expit(at[:, :, None] + t[:, None])).sum(axis=-1)
    apart = np.abs(solved[:, :, None] - solved[:, None])
    return ((apart <= 12).sum() / 4000 - 8) / 56


@pytest.mark.parametrize("configs", ["fixed", "sampled"])
@pytest.mark.parametrize("tasks", ["fixed", "sampled"])
def test_the_interval_covers_the_truth_of_a_simulated_board(small_fit, small_board, configs, tasks):
    """99% intervals of four targets: on another board one of them would miss in 4% of cases."""
    truth = true_rate(small_board, configs, tasks, np.random.default_rng(3))
    found = posterior.near_tie(small_fit, MARGIN, configs=configs, tasks=tasks, prob=0.99)
    print(f"configs {configs}, tasks {tasks}: {truth:.4f} in {found.interval.values.round(4)}")
    assert found.interval[0] <= truth <= found.interval[1]
    assert 0.01 < found.interval[1] - found.interval[0] < 0.6


# What is asked, and what is not known.


def test_the_panel_is_part_of_the_identity(known):
    found = ask(known(runs=2), draws=100)
    said = {"margin": 0.1, "scores": "observed", "new_runs": True, "panel": "shared", "panel_tasks": 12, "runs": "2"}
    assert {name: found[name].item() for name in said} == said
    assert (found.quantity, found.configs, found.tasks, found.method) == ("near_tie", "sampled", "sampled", "laplace")
    other = ask(known(runs=2), draws=100, panel_tasks=50, panel_runs=4)
    assert (other.panel_tasks, other.runs) == (50, "4")
    assert ask(known(runs=2), draws=100).identical(found)


def test_runs_that_vary_are_rounded_and_said_to_be(fabricate):
    trials = np.array([[1, 2, 2, 3], [2, 0, 4, 4], [2, 2, 2, 2]])
    found = ask(fabricate(trials // 2, trials), draws=100)
    assert found.runs == "2, the rounded mean of 1 to 4"


def test_a_difference_of_exactly_the_margin_is_a_near_tie(known):
    """One entry always passes 4 of 10 tasks and the other 3, which floats put beyond 0.1."""
    assert MARGIN < 0.4 - 0.3
    fit = known(configs=2, tasks=10)
    for name, value in (("task_effect", np.repeat([800.0, 0.0, -800.0], [3, 1, 6])), ("config_effect", [-40.0, 40.0])):
        like = fit["posterior"][name]
        fit["posterior"][name] = like.copy(data=np.broadcast_to(value, like.shape))
    how = {"configs": "fixed", "tasks": "fixed", "assume": "no_interaction"}
    assert ask(fit, **how).estimate == 1
    assert posterior.near_tie(fit, 0.0999, draws=DRAWS, **how).estimate == 0


@pytest.mark.parametrize(
    ("how", "known_"),
    [
        ({}, True),
        ({"tasks": "fixed"}, True),
        ({"configs": "fixed"}, True),
        ({"panel_runs": 2}, False),
        ({"panel_runs": 2, "tasks": "fixed"}, False),
        ({"configs": "fixed", "panel_runs": 2}, False),
        ({"configs": "fixed", "tasks": "fixed"}, False),
        ({"scores": "latent"}, True),
        ({"scores": "latent", "tasks": "fixed"}, False),
    ],
)
def test_single_runs_do_not_say_how_runs_of_a_cell_agree(known, how, known_):
    found = ask(known(runs=1), draws=100, **how)
    assert bool(np.isfinite(found.interval).all()) is known_
    assert ("one run per cell" in found.reason.item()) is not known_
    assumed = ask(known(runs=1), assume="no_interaction", draws=100, **how)
    assert np.isfinite(assumed.interval).all()
    assert ("assume" in assumed.coords) or known_


def test_a_config_without_runs_is_named_in_the_reason(fabricate):
    fit = fabricate([[1, 1, 0], [0, 1, 2], [0, 0, 0]], [[2, 2, 2], [2, 2, 2], [0, 0, 0]])
    assert "no scored run" in ask(fit, configs="fixed", draws=100).reason.item()
    assert np.isfinite(ask(fit, draws=100).estimate)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"margin": 1.5}, "margin=1.5"),
        ({"scores": "true"}, "scores='true'"),
        ({"configs": "new"}, "configs='new'"),
        ({"tasks": "new"}, "tasks='new'"),
        ({"population": "other"}, "population='other'"),
        ({"assume": "nothing"}, "assume='nothing'"),
        ({"prob": 95}, "prob=95"),
        ({"draws": 10}, "draws=10"),
        ({"entries": 2.5}, "entries=2.5"),
        ({"panel_tasks": 0}, "panel_tasks=0"),
        ({"panel_runs": True}, "panel_runs=True"),
        ({"tasks": "fixed", "panel_tasks": 5}, "panel_tasks=5: tasks='fixed' are the board's own 12"),
        ({"scores": "latent", "panel_runs": 5}, "panel_runs=5: latent scores"),
        ({"clusters": "fixed"}, "no groups of tasks"),
    ],
)
def test_bad_arguments_are_named(known, how, words):
    with pytest.raises(ArgumentError, match=words):
        posterior.near_tie(known(), **({"margin": MARGIN} | how))


def test_one_config_and_a_failed_population_are_refused(known, fabricate):
    with pytest.raises(NotIdentifiedError, match="one config"):
        posterior.near_tie(fabricate([[1, 1]], 2), MARGIN)
    failed = known(gate="failed", mean_gap=0.1, mean_gap_se=3, worst_gap=0.2)
    with pytest.raises(SamplingError, match="reweighted"):
        posterior.near_tie(failed, MARGIN)
    assert np.isfinite(ask(failed, tasks="fixed").estimate)
    lacking = known()
    lacking["posterior"] = lacking["posterior"].to_dataset().drop_vars("config_sd")
    with pytest.raises(NotIdentifiedError, match="no config_sd"):
        posterior.near_tie(lacking, MARGIN)
    with pytest.raises(ArgumentError, match="fit is a Dataset"):
        posterior.near_tie(counted([[1], [0]], 1), MARGIN)


# Beside the board's own.


@pytest.mark.parametrize(
    ("target", "method"),
    [
        ({"configs": "sampled", "tasks": "fixed"}, "hoeffding"),
        ({"configs": "fixed", "tasks": "sampled"}, "task_bootstrap"),
        ({"configs": "sampled", "tasks": "sampled"}, "joint_bootstrap"),
    ],
)
def test_compare_sets_like_beside_like(small_fit, small_board, target, method):
    both = compare("near_tie", small_fit, small_board, margin=MARGIN, draws=200, **target)
    assert both.method.values.tolist() == ["laplace", method]
    assert (both.panel_tasks, both.runs, both.scores, both.new_runs) == (40, "3", "observed", True)
    theirs = pairs.near_tie(small_board, MARGIN, draws=200, **target)
    assert both.estimate.values[1] == theirs.estimate
    assert both.width_ratio > 0


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"scores": "latent"}, "scores is 'latent' on one side and 'observed' on the other"),
        ({"panel_tasks": 41}, "panel_tasks is 41 on one side and 40"),
        ({"panel_runs": 2}, "runs is '2' on one side and '3'"),
        ({"tasks": "fixed"}, "new_runs is True on one side and False"),
        ({"panel": "own"}, "panel is 'shared' on one side and 'own'"),
        ({"weights": [1.0] * 8}, "inclusion is|weights is"),
    ],
)
def test_compare_refuses_other_estimands(small_fit, small_board, how, words):
    with pytest.raises(ArgumentError, match=words):
        compare("near_tie", small_fit, small_board, margin=0.05, draws=100, **how)


def test_where_future_entries_differ_the_shape_of_abilities_is_named(fabricate):
    """A board of two crowds, of which a normal population says little."""
    successes = np.repeat([[1] * 2 + [0] * 18, [1] * 18 + [0] * 2], 10, axis=0)
    fit = fabricate(successes, 1)
    names = {"configs": fit["posterior"].config.values.tolist(), "tasks": fit["posterior"].task.values.tolist()}
    board = from_counts(successes, np.ones_like(successes), **names)
    both = compare(
        "near_tie", fit, board, margin=MARGIN, configs="sampled", tasks="fixed", method="pair_iid", draws=100
    )
    assert both.verdict.item().startswith("differ")
    assert "abilities of future entries to be normal" in both.verdict.item()
    assert both.why.item() in both.verdict.item()
