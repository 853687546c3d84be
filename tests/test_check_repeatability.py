"""Posterior predictive checks of repeatability: every statistic against a loop, and which model is let through."""

import itertools
import sys

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot as plt
from scipy import special, stats

from evalbayes import ArgumentError, OutcomesError, fit, plots, simulate
from evalbayes.check import repeatability, statistics
from evalbayes.check.population import population

mpl.use("Agg")
WITHIN = ["always_pass", "never_pass", "mixed", "within_variance", "flip_rate", "histogram"]
JUDGED = [*WITHIN, "discordance", "item_rest_slope", "task_spread", "population_gap"]
RUNS = np.array([[2, 4, 1, 0, 3, 4, 4], [3, 4, 2, 2, 0, 4, 1], [1, 1, 1, 1, 1, 0, 1], [4, 0, 2, 3, 4, 4, 2]])
"""Runs of a ragged board: cells without a run, and a config with no cell run twice."""


def ragged(seed=0):
    """Two boards of the same ragged runs."""
    return np.random.default_rng(seed).binomial(RUNS, 0.5, (2, *RUNS.shape))


def told(board, *, kappa=None, draws=10, density=True, effects=True):
    """A fit by someone who knows the truth that a simulated board carries, and takes kappa to be as given."""
    at, both, m = (1, draws), ("chain", "draw"), board.sizes["config"]
    variables = {
        "intercept": (both, np.full(at, board.attrs["true_intercept"])),
        "config_effect": ((*both, "config"), np.tile(board.true_config_effect.values, (*at, 1))),
        "score": ((*both, "config"), np.tile(board.true_score.values, (*at, 1))),
    }
    if effects:
        variables["task_effect"] = (*both, "task"), np.tile(board.true_task_effect.values, (*at, 1))
    if density and effects:
        values = {"weight": 1.0, "mean": 0.0, "scale": board.attrs["true_task_sd"]}
        variables |= {f"task_{name}": ((*both, "component"), np.full((*at, 1), v)) for name, v in values.items()}
    if kappa is not None:
        variables["log_kappa"] = (*both, "config"), np.full((*at, m), np.log(kappa))
    labels = {"config": board.config.values, "task": board.task.values}
    bare = board[["successes", "trials"]].reset_coords(drop=True)
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(variables, coords=labels),
            "observed_data": bare[["successes"]],
            "constant_data": bare[["trials"]],
        }
    )
    tree.attrs = {"model": "told"}
    return tree


def value(result, name, column="pooled_observed"):
    return result[column].sel(statistic=name).item()


# Each statistic against a loop


def test_statistics_within_cells_are_those_of_a_loop():
    for k, own, pooled in zip(
        ragged(), *(np.moveaxis(part, 1, 0) for part in statistics.within(ragged(), RUNS)), strict=True
    ):
        cells = {c: [] for c in range(4)}
        for c, t in itertools.product(range(4), range(7)):
            n, s = int(RUNS[c, t]), int(k[c, t])
            if n >= 2:
                pairs = list(itertools.combinations([1] * s + [0] * (n - s), 2))
                flips = np.mean([a != b for a, b in pairs])
                variance = np.var([1] * s + [0] * (n - s), ddof=1)
                cells[c].append([s == n, s == 0, 0 < s < n, variance, flips])
        for c in (0, 1, 3):
            np.testing.assert_allclose(own[:, c], np.mean(cells[c], axis=0))
        assert np.isnan(own[:, 2]).all()
        np.testing.assert_allclose(pooled, np.mean(cells[0] + cells[1] + cells[3], axis=0))


def test_the_histogram_is_that_of_a_loop_over_cells_of_the_commonest_number_of_runs():
    assert statistics.commonest(RUNS) == 4
    assert statistics.commonest(np.ones((2, 2), int)) == 0
    own, pooled = statistics.histogram(ragged(), RUNS, 4)
    for b, k in enumerate(ragged()):
        for c, wanted in itertools.product((0, 1, 3), range(5)):
            assert own[wanted, b, c] == np.mean([k[c, t] == wanted for t in range(7) if RUNS[c, t] == 4])
        for wanted in range(5):
            assert pooled[wanted, b] == np.mean([k[c, t] == wanted for c, t in np.argwhere(RUNS == 4)])
    assert np.isnan(own[:, :, 2]).all()


def test_a_histogram_of_many_runs_has_twelve_classes_that_hold_every_count_once():
    of, names = statistics.classes(200)
    assert len(names) == 12
    for name, members in zip(names, (np.flatnonzero(of == c) for c in range(12)), strict=True):
        low, high = (int(end) for end in (name.split("-") * 2)[:2])
        np.testing.assert_array_equal(members, np.arange(low, high + 1))
    n = np.full((1, 50), 200)
    k = np.random.default_rng(0).integers(0, 201, (1, 1, 50))
    own, pooled = statistics.histogram(k, n, 200)
    np.testing.assert_array_equal(own[:, 0, 0], np.bincount(of[k[0, 0]], minlength=12) / 50)
    np.testing.assert_array_equal(own[:, :, 0], pooled)


def test_the_distance_is_pearsons_chi_square_over_the_mean_board():
    shares = np.array([[0.2, 0.5], [0.8, 0.5], [0.0, 0.0]])
    expected = stats.chisquare(np.array([0.2, 0.8]) * 40, np.array([0.35, 0.65]) * 40).statistic
    np.testing.assert_allclose(statistics.distance(shares, 40), expected)


def test_discordance_is_that_of_a_loop_over_pairs_and_tasks():
    own, pooled = statistics.discordance(ragged(), RUNS)
    for b, k in enumerate(ragged()):
        seen = {c: [] for c in range(4)}
        every = []
        for (a, c), t in itertools.product(itertools.combinations(range(4), 2), range(7)):
            if RUNS[a, t] and RUNS[c, t]:
                p, q = k[a, t] / RUNS[a, t], k[c, t] / RUNS[c, t]
                every.append(p * (1 - q) + q * (1 - p))
                seen[a].append(every[-1])
                seen[c].append(every[-1])
        np.testing.assert_allclose(own[b], [np.mean(seen[c]) for c in range(4)])
        assert pooled[b] == pytest.approx(np.mean(every))


def test_item_rest_slopes_are_scipys():
    own, pooled = statistics.item_rest_slopes(ragged(), RUNS)
    for b, k in enumerate(ragged()):
        slopes = []
        for c in range(4):
            points = []
            for t in range(7):
                others = [k[a, t] / RUNS[a, t] for a in range(4) if a != c and RUNS[a, t]]
                if RUNS[c, t] and others:
                    points.append((np.mean(others), k[c, t] / RUNS[c, t]))
            slopes.append(stats.linregress(*zip(*points, strict=True)).slope)
        np.testing.assert_allclose(own[b], slopes)
        assert pooled[b] == pytest.approx(np.std(slopes, ddof=1))


def test_where_the_others_do_not_vary_the_slope_is_nil():
    own, _ = statistics.item_rest_slopes(np.array([[[0, 1, 1], [1, 1, 1]]]), np.ones((2, 3), int))
    np.testing.assert_allclose(own, 0.0, atol=1e-15)


def test_the_spread_of_tasks_is_that_of_a_loop():
    spread = statistics.task_spread(ragged(), RUNS)
    for b, k in enumerate(ragged()):
        means = [np.mean([k[c, t] / RUNS[c, t] for c in range(4) if RUNS[c, t]]) for t in range(7)]
        assert spread[b] == pytest.approx(np.std(means, ddof=1))


def test_the_summary_counts_the_board_among_the_drawn_ones_and_ties_on_both_sides():
    # The board's 5, one drawn 5 and a drawn 9 are as large: 3 of 7. It and five others are as small: 6 of 7.
    values = np.array([5.0, 1.0, 2.0, 3.0, 4.0, 5.0, 9.0])
    assert statistics.summary(values, large=True)["p_value"] == 3 / 7
    assert statistics.summary(values, large=False)["p_value"] == 2 * 3 / 7
    assert statistics.summary(np.zeros(7), large=False)["p_value"] == 1.0
    one_sided = statistics.summary(values, large=True)
    assert [one_sided["lower"], one_sided["upper"]] == [1.0, np.quantile(values[1:], 0.95)]
    beyond = np.concatenate([[9.0], np.arange(399) / 399])
    assert statistics.summary(beyond, large=False)["p_value"] == 2 / 400
    np.testing.assert_allclose(
        [statistics.summary(beyond, large=False)[end] for end in ("lower", "upper")],
        np.quantile(beyond[1:], [0.025, 0.975]),
    )


def test_the_scatter_is_a_loops_mean_square_in_standard_deviations():
    values = np.random.default_rng(1).normal(size=(50, 3)) * [1, 5, 0]
    values = np.column_stack([values, np.full(50, np.nan)])
    expected = [
        np.mean([*(((one[c] - values[:, c].mean()) / values[:, c].std()) ** 2 for c in (0, 1)), 0.0]) for one in values
    ]
    np.testing.assert_allclose(statistics.scatter(values), expected)
    assert np.isnan(statistics.scatter(values[:, [0, 3]])).all()


# Boards drawn from a fit


def test_drawn_boards_have_the_means_of_a_beta_binomial():
    """Against scipy's masses and closed moments at the parameters: within 4.5 standard errors of 400 boards.

    Ten numbers: a false alarm in about 15,000 seeds.
    """
    board = simulate.board(5, 30, 4, seed=2, kappa=3.0)
    result = repeatability(told(board, kappa=3.0))
    logit = board.attrs["true_intercept"] + board.true_config_effect.values[:, None] + board.true_task_effect.values
    mu = special.expit(logit)
    mass = stats.betabinom.pmf(np.arange(5)[:, None, None], 4, 3 * mu, 3 * (1 - mu)).mean(axis=(1, 2))
    pairs = list(itertools.combinations(mu, 2))
    expected = {f"passes_{k}_of_4": mass[k] for k in range(5)} | {
        "always_pass": mass[4],
        "never_pass": mass[0],
        "mixed": 1 - mass[0] - mass[4],
        "within_variance": (mu * (1 - mu)).mean() * 3 / 4,
        "discordance": np.mean([a * (1 - b) + b * (1 - a) for a, b in pairs]),
    }
    for name, wanted in expected.items():
        se = (value(result, name, "pooled_upper") - value(result, name, "pooled_lower")) / (2 * 1.96 * 20)
        assert value(result, name, "pooled_predicted") == pytest.approx(wanted, abs=4.5 * se)


def test_drawn_boards_of_new_tasks_have_the_spread_of_the_density():
    """Against the density's own by quadrature, with 20,000 runs a cell: within 4.5 standard errors of 400 boards."""
    board = simulate.board(3, 60, 20_000, seed=2).drop_vars("outcome")
    result = repeatability(told(board))
    z = np.linspace(-9, 9, 2001)
    weight = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    mean = special.expit(board.attrs["true_intercept"] + board.true_config_effect.values[:, None] + 2 * z).mean(axis=0)
    variance = weight @ mean**2 - (weight @ mean) ** 2
    low, high = (value(result, "task_spread", f"pooled_{end}") for end in ("lower", "upper"))
    sd = (high - low) / (2 * 1.96)
    # E s = sqrt(E s^2 - Var s): a standard deviation of 60 tasks is a little small on average.
    assert value(result, "task_spread", "pooled_predicted") == pytest.approx(
        np.sqrt(variance - sd**2), abs=4.5 * sd / 20
    )
    assert value(result, "population_gap", "pooled_observed") == pytest.approx(
        float((board.true_score - (board.successes / board.trials).mean("task")).mean()), abs=1e-12
    )


def test_p_values_of_the_true_model_are_uniform_and_its_verdicts_good():
    """40 boards of 6 x 30 x 4 told their own parameters: p-values are then uniform, up to ties.

    Kolmogorov's test of the within variance at 0.1%. Each of twelve p-values (six statistics of cells, pooled and
    config by config) fails 2 boards of 201 at most, and so one of them 12% of boards at most: 11 boards of 40 or more
    have a chance of at most 0.8%.
    """
    seen = []
    for seed in range(40):
        board = simulate.board(6, 30, 4, seed=seed, kappa=3.0)
        result = repeatability(told(board, kappa=3.0), draws=200, seed=seed)
        seen.append(
            (
                value(result, "within_variance", "pooled_p_value"),
                (result.result.sel(statistic=WITHIN) == "failed").any(),
            )
        )
    p, failed = np.array(seen).T
    print(f"true model: {failed.sum():.0f} of 40 boards fail a statistic of cells; within variance p {np.sort(p)[:3]}")
    assert stats.kstest(p, "uniform").pvalue > 0.001
    assert failed.sum() < 11
    assert p.min() < 0.2


# Which model is let through


def test_a_model_without_the_interaction_is_condemned_and_one_with_it_passes():
    """Cases by parameters that are known: what is missing is kappa alone."""
    board = simulate.board(8, 60, 5, seed=3, kappa=2.0)
    without, within = repeatability(told(board)), repeatability(told(board, kappa=2.0))
    assert (without.result.sel(statistic=WITHIN) == "failed").all()
    assert (within.result.sel(statistic=JUDGED) == "passed").all()
    assert "fit model='crossed_beta_binomial'" in without.attrs["verdict"]
    assert without.attrs["verdict"].startswith("told fails always_pass (")
    assert within.attrs["verdict"] == f"told passes {', '.join(JUDGED)}"


def test_a_real_fit_of_the_binomial_model_is_condemned_and_one_of_the_beta_binomial_passes():
    """8 x 40 x 5 with kappa 2. Fits of a true model failed none of ten statistics on any of 38 boards of 8 x 60 x 5."""
    board = simulate.board(8, 40, 5, seed=3, kappa=2.0)
    binomial, beta_binomial = (
        repeatability(fit(board, model, method="laplace", draws=400)) for model in ("crossed", "crossed_beta_binomial")
    )
    print(binomial.attrs["verdict"], beta_binomial.attrs["verdict"], sep="\n")
    assert (binomial.result.sel(statistic=["mixed", "within_variance", "flip_rate", "histogram"]) == "failed").all()
    assert value(binomial, "mixed") < value(binomial, "mixed", "pooled_lower")
    assert (beta_binomial.result.sel(statistic=JUDGED) == "passed").all()


def test_a_real_fit_of_the_binomial_model_passes_where_cells_are_additive(small_fit):
    result = repeatability(small_fit)
    assert (result.result.sel(statistic=JUDGED) == "passed").all()
    np.testing.assert_array_equal(result.observed.sel(statistic="population_gap"), small_fit["population"].gap)


def test_a_model_without_discrimination_is_condemned_by_item_rest_slopes():
    """Half of the configs follow the tasks three times as steeply as the others."""
    board = simulate.board(10, 80, 4, seed=1, config_sd=0.3, task_sd=1.5)
    steep = np.repeat([0.5, 1.5], 5)[:, None] * board.true_task_effect.values
    p = special.expit(board.true_config_effect.values[:, None] + steep)
    counted = board.drop_vars("outcome").assign(successes=(("config", "task"), np.random.default_rng(1).binomial(4, p)))
    result = repeatability(told(counted))
    assert value(result, "item_rest_slope", "result") == "failed"
    assert value(result, "item_rest_slope") > value(result, "item_rest_slope", "pooled_upper")
    assert value(repeatability(told(board)), "item_rest_slope", "result") == "passed"


def test_configs_can_fail_where_their_mean_does_not():
    """The best and the middle config change places: the mean over pairs stays what it was, theirs do not."""
    board = simulate.board(7, 200, 2, seed=2, config_sd=2.0).drop_vars("outcome")
    order = np.argsort(board.true_config_effect.values)
    places = np.arange(7)
    places[order[[-1, 3]]] = order[[3, -1]]
    swapped = board.assign(successes=(("config", "task"), board.successes.values[places]))
    was, now = repeatability(told(board)), repeatability(told(swapped))
    assert value(was, "discordance") == pytest.approx(value(now, "discordance"), abs=1e-12)
    assert value(was, "discordance", "result") == "passed"
    assert value(now, "discordance", "result") == "failed"
    assert value(now, "discordance", "pooled_p_value") > 0.05
    assert value(now, "discordance", "scatter_p_value") == pytest.approx(1 / 401)
    own = now.p_value.sel(statistic="discordance").values
    assert value(now, "discordance", "outside") >= np.sum(own < 0.04) >= 1
    assert "discordance (configs" in now.attrs["verdict"]


def test_exchangeable_tasks_are_condemned_where_configs_share_them():
    """A beta-binomial model of several configs takes their tasks for unrelated ones."""
    board = simulate.board(6, 60, 3, seed=4)
    result = repeatability(told(board, kappa=0.5, effects=False))
    assert value(result, "task_spread") > value(result, "task_spread", "pooled_upper")
    assert value(result, "task_spread", "result") == value(result, "discordance", "result") == "failed"


# What a board cannot tell


def test_one_run_a_cell_leaves_statistics_of_cells_unknown_and_the_others_known():
    board = simulate.board(5, 40, 1, seed=1)
    result = repeatability(told(board))
    assert result.statistic.values.tolist() == JUDGED
    assert (result.result.sel(statistic=WITHIN) == "unknown").all()
    for column in ("reason", "pooled_reason"):
        assert (result[column].sel(statistic=WITHIN) == "no cell was run twice or more").all()
    assert result.pooled_p_value.sel(statistic=JUDGED[6:]).notnull().all()
    assert result.p_value.sel(statistic=["discordance", "item_rest_slope", "population_gap"]).notnull().all()
    assert "leaves unknown always_pass, never_pass" in result.attrs["verdict"]
    assert result.attrs["histogram_runs"] == 0


def test_a_config_run_once_a_task_is_unknown_beside_others_that_are_not():
    board = simulate.board(4, 30, 3, seed=1).drop_vars("outcome")
    board["trials"][1] = 1
    board["successes"] = np.minimum(board.successes, board.trials)
    board["trials"][2, :], board["successes"][2, :] = 0, 0
    result = repeatability(told(board))
    one = result.sel(statistic="mixed")
    assert one.reason.values.tolist() == ["", "no cell was run twice or more", "no cell was run twice or more", ""]
    np.testing.assert_array_equal(one.observed.isnull(), one.reason != "")
    assert result.sel(statistic="passes_0_of_3").reason.values.tolist()[1] == "no cell was run 3 times"
    assert result.sel(statistic="population_gap").reason.values.tolist() == ["", "", "no scored run", ""]
    assert (result.sel(statistic="task_spread").reason == "a statistic of the whole board").all()
    for prefix in ("", "pooled_"):
        unknown = result[f"{prefix}observed"].isnull()
        for column in ("predicted", "lower", "upper", "p_value"):
            np.testing.assert_array_equal(result[prefix + column].isnull(), unknown)
        np.testing.assert_array_equal(result[f"{prefix}reason"] != "", unknown)


def test_one_config_has_no_others():
    board = simulate.board(1, 40, 4, seed=1, kappa=1.0)
    tree = told(board, kappa=1.0, effects=False)
    tree["posterior"] = tree["posterior"].to_dataset().drop_vars("config_effect")
    result = repeatability(tree)
    for name in ("discordance", "item_rest_slope"):
        assert value(result, name, "result") == "unknown"
        assert "another config" in value(result, name, "pooled_reason")
    assert result.scatter.isnull().all()
    np.testing.assert_array_equal(
        result.observed.isel(config=0).sel(statistic=WITHIN), result.pooled_observed.sel(statistic=WITHIN)
    )


def test_without_a_density_no_new_tasks_are_drawn():
    board = simulate.board(4, 30, 3, seed=1)
    result = repeatability(told(board, density=False))
    for name in ("task_spread", "population_gap"):
        assert value(result, name, "result") == "unknown"
        assert "to draw new tasks from" in value(result, name, "pooled_reason")
    assert value(result, "mixed", "result") == "passed"


@pytest.mark.parametrize("passes", [0, 1])
def test_a_board_without_failures_or_passes_is_no_surprise_to_a_model_that_says_so(passes):
    board = simulate.board(3, 20, 3, seed=0).drop_vars("outcome")
    board["successes"] = board.trials * passes
    tree = told(board, draws=400)
    tree["posterior"]["intercept"] += 11.0 if passes else -11.0
    tree["posterior"]["score"] = tree["posterior"]["score"] * 0 + passes
    result = repeatability(tree)
    assert (result.result.sel(statistic=JUDGED) == "passed").all()
    assert (result.pooled_p_value.drop_sel(statistic=["population_gap"]) == 1).all()


# The gate, the draws, the arguments


def test_the_population_gap_is_the_gates():
    board = simulate.board(6, 200, 2, seed=0)
    tree = told(board, draws=400)
    tree["posterior"]["score"] = tree["posterior"]["score"] + 0.2
    gate = population(tree["posterior"].to_dataset(), board, seed=0)
    assert gate.attrs["gate"] == "failed"
    for made in (None, gate):
        if made is not None:
            tree["population"] = xr.DataTree(made)
        result = repeatability(tree)
        assert value(result, "population_gap", "result") == "failed"
        assert value(result, "population_gap") == pytest.approx(gate.attrs["mean_gap"])
        np.testing.assert_allclose(result.observed.sel(statistic="population_gap"), gate.gap)
        # The gate's range is of 99%, ours of 95%.
        lower, upper = (gate.predictive.sel(ci_bound=end) for end in ("lower", "upper"))
        score = tree["posterior"]["score"].mean(("chain", "draw"))
        width = (upper - lower).values * 1.96 / 2.576
        ours = result.sel(statistic="population_gap")
        np.testing.assert_allclose(ours.upper - ours.lower, width, rtol=0.3)
        np.testing.assert_allclose((ours.upper + ours.lower) / 2, score - (lower + upper) / 2, atol=0.02)


def test_same_seed_same_numbers_whatever_the_order_of_dims():
    board = simulate.board(4, 20, 3, seed=1)
    tree = told(board)
    first = repeatability(tree, seed=3)
    assert first.identical(repeatability(tree, seed=3))
    turned = xr.DataTree.from_dict({name: tree[name].to_dataset().transpose() for name in tree.children})
    turned.attrs = tree.attrs
    assert first.identical(repeatability(turned, seed=3))
    assert not first.equals(repeatability(tree, seed=4))


def test_large_boards_get_fewer_boards_and_never_too_few_to_fail(monkeypatch):
    board = simulate.board(8, 60, 5, seed=3, kappa=2.0)
    monkeypatch.setattr(sys.modules["evalbayes.check.repeatability"], "CELLS", 100)
    result = repeatability(told(board))
    assert result.attrs["boards"] == 200
    assert result.attrs["level"] == result.attrs["floor"] == 2 / 201
    assert (result.result.sel(statistic=WITHIN) == "failed").all()


def test_blocks_change_no_statistic_of_the_board(monkeypatch):
    tree = told(simulate.board(4, 20, 3, seed=1))
    whole = repeatability(tree)
    monkeypatch.setattr(sys.modules["evalbayes.check.repeatability"], "BLOCK", 1)
    one_by_one = repeatability(tree)
    np.testing.assert_array_equal(whole.observed, one_by_one.observed)
    known = whole.pooled_predicted.notnull()
    inside = (one_by_one.pooled_predicted > whole.pooled_lower) & (one_by_one.pooled_predicted < whole.pooled_upper)
    np.testing.assert_array_equal(inside, known)


def test_what_is_no_fit_or_has_other_cells_is_refused():
    board = simulate.board(4, 20, 3, seed=1)
    with pytest.raises(ArgumentError, match="fit is a Dataset"):
        repeatability(board)
    with pytest.raises(ArgumentError, match="draws=50"):
        repeatability(told(board), draws=50)
    with pytest.raises(ArgumentError, match="seed=-1"):
        repeatability(told(board), seed=-1)
    lacking = told(board)
    lacking["posterior"] = lacking["posterior"].to_dataset().drop_vars("config_effect")
    with pytest.raises(ArgumentError, match="the fit has no config_effect"):
        repeatability(lacking)
    for name, of in (("sharpness", "config_effect"), ("agent_effect", "intercept")):
        more = told(board)
        more["posterior"] = more["posterior"].to_dataset().assign({name: more["posterior"][of]})
        with pytest.raises(ArgumentError, match=f"the fit has {name}, and cells are drawn from"):
            repeatability(more)


# Pictures


@pytest.fixture
def drawn():
    """A result, and every figure closed after the test."""
    yield repeatability(told(simulate.board(8, 60, 5, seed=3, kappa=2.0)))
    plt.close("all")


def test_the_picture_marks_every_statistic_and_says_its_numbers(drawn):
    ax = plots.repeatability(drawn)
    assert [label.get_text() for label in ax.get_yticklabels()] == [name.replace("_", " ") for name in JUDGED]
    said = [text.get_text() for text in ax.texts]
    assert f"{value(drawn, 'mixed'):.3f} ({value(drawn, 'mixed', 'pooled_predicted'):.3f})" in said
    at = {round(float(y)): float(x) for c in ax.collections for x, y in c.get_offsets() if c.get_sizes()[0] > 50}
    mixed = drawn.sel(statistic="mixed")
    expected = (mixed.pooled_observed - mixed.pooled_predicted) / (mixed.pooled_predicted - mixed.pooled_lower)
    assert at[JUDGED.index("mixed")] == pytest.approx(float(expected))
    assert sorted(at) == list(range(10))
    ax.figure.draw_without_rendering()


def test_the_histogram_shows_what_was_observed(drawn):
    _, mine = plt.subplots()
    ax = plots.successes(drawn, ax=mine)
    assert ax is mine
    bars = drawn.isel(statistic=(drawn["about"] == "bars").values)
    np.testing.assert_array_equal([bar.get_height() for bar in ax.patches], bars.pooled_observed)
    one = plots.successes(drawn, config="config-3")
    np.testing.assert_array_equal([bar.get_height() for bar in one.patches], bars.observed.sel(config="config-3"))


def test_pictures_of_what_is_unknown_say_so(drawn):
    once = repeatability(told(simulate.board(5, 40, 1, seed=1)))
    assert [text.get_text() for text in plots.repeatability(once).texts].count("no cell was run twice or more") == 6
    with pytest.raises(OutcomesError, match="no cell was run twice"):
        plots.successes(once)
    with pytest.raises(OutcomesError, match="'nobody' is not on the board"):
        plots.successes(drawn, config="nobody")
    for draw in (plots.repeatability, plots.successes):
        with pytest.raises(ArgumentError, match=r"give what evalbayes\.check\.repeatability returned"):
            draw(simulate.board(2, 3))
