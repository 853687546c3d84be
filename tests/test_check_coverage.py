"""check.coverage against procedures whose coverage is known, plain loops, and its own committed table."""

import importlib.util
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
import xarray as xr
from scipy import integrate, optimize, special, stats

from evalbayes import ArgumentError, SamplingError, check, frequentist, simulate
from evalbayes.answer import answer
from evalbayes.check import designs
from evalbayes.check.coverage import board_seeds, coverage

BENCHMARKS = Path(__file__).parent / "benchmarks"
SETTINGS = [(0.634, 0.76), (0.808, 0.59), (0.344, 0.96), (0.8, 0.3)]


@pytest.fixture(scope="module")
def table_script():
    """tests/benchmarks/coverage_table.py as a module, wherever the tests are run from."""
    spec = importlib.util.spec_from_file_location("coverage_table", BENCHMARKS / "coverage_table.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(seed, configs=1, shared=0.0, tasks="own", centre="true_score"):
    """A board that carries one normal measurement a config, sd 1, of ``centre``; ``shared`` of its variance is common.

    The realised truth is 3 sd from that of the population.
    """
    rng = np.random.default_rng(seed)
    error = np.sqrt(shared) * rng.standard_normal() + np.sqrt(1 - shared) * rng.standard_normal(configs)
    truth = {"true_score": np.full(configs, 0.0), "true_fixed_score": np.full(configs, 3.0)}
    board = xr.Dataset(coords={"config": [f"c{i}" for i in range(configs)]}, attrs={"true_tasks": tasks})
    board = board.assign_coords({name: ("config", values) for name, values in truth.items()})
    return board.assign(measured=("config", truth[centre] + error))


def normal(board, prob=0.95, claims="sampled", gap=False):
    """The exact interval of a normal measurement with sd 1, as an answer; ``gap`` withholds the first config's."""
    half = stats.norm.ppf((1 + prob) / 2)
    at = board["measured"].reset_coords(drop=True)
    blank = xr.zeros_like(at, bool)
    blank[0] = gap
    return answer(
        at,
        1.0,
        xr.concat([at - half, at + half], "ci_bound").where(~blank),
        quantity="score",
        tasks=claims,
        configs="fixed",
        method="exact",
        prob=prob,
        reason=xr.where(blank, "withheld", ""),
    )


def refuse_even(board):
    """A fit that fails on half of the boards, each time with other numbers."""
    at = float(board["measured"][0])
    if int(abs(at) * 1000) % 2 == 0:
        raise SamplingError(f"laplace: k-hat {abs(at):.3f} (below 0.5 needed)")
    return board


@pytest.mark.parametrize(("mean", "icc"), SETTINGS)
@pytest.mark.parametrize("shape", designs.SHAPES)
def test_every_shape_has_the_mean_and_the_icc_asked_for(mean, icc, shape):
    """By quadrature of scipy's Beta quantiles, whose integral over (0, 1) is the moment."""
    found = designs.population(mean, icc, shape)

    def moment(power, m, s):
        return (
            integrate.quad(lambda u: stats.beta.ppf(u, m * s, (1 - m) * s) ** power, 0, 1, limit=200)[0] if m else 0.0
        )

    parts = list(zip(found.mean, found.concentration, strict=True))
    moments = [found.weight @ [moment(power, *part) for part in parts] for power in (1, 2)]
    assert found.weight.sum() == pytest.approx(1)
    assert moments[0] == pytest.approx(mean, abs=1e-6)
    assert (moments[1] - moments[0] ** 2) / (mean * (1 - mean)) == pytest.approx(icc, abs=1e-6)


@pytest.mark.parametrize("shape", designs.SHAPES)
def test_boards_hold_what_the_population_says(shape):
    """400,000 rates: means of rates, passes and double passes within 5 standard errors; one seed in 190,000 fails."""
    board = designs.rates(0.8, 0.3, tasks=1000, runs=2, shape=shape, configs=400)(seed=5)
    rate = (board["successes"] / board["trials"]).values
    size = rate.size
    assert abs(board["true_fixed_score"].mean().item() - 0.8) < 5 * np.sqrt(0.3 * 0.16 / size)
    assert abs(rate.mean() - 0.8) < 5 * rate.std() / np.sqrt(size)
    both = (board["successes"] == 2).values
    assert abs(both.mean() - (0.3 * 0.16 + 0.64)) < 5 * both.std() / np.sqrt(size)
    assert board["true_between_variance"].values == pytest.approx(0.3 * 0.16)
    assert board["true_within_variance"].values == pytest.approx(0.7 * 0.16)


def test_shapes_differ_as_their_names_say():
    """Drawn apart from the package: a longer tail below; two tops with next to nothing between them."""
    rng = np.random.default_rng(0)
    drawn = {}
    for shape in designs.SHAPES:
        found = designs.population(0.8, 0.3, shape)
        which = rng.choice(len(found.weight), 100_000, p=found.weight)
        m, s = found.mean[which], found.concentration[which]
        drawn[shape] = np.where(m == 0, 0.0, rng.beta(np.maximum(m * s, 1e-9), (1 - m) * s))
    assert stats.skew(drawn["skewed"]) < stats.skew(drawn["beta"]) - 0.5
    low, between, high = np.histogram(drawn["two_humped"], [0.25, 0.5, 0.75, 1.0])[0]
    assert low > 10_000
    assert high > 70_000
    assert between < 100


@pytest.mark.parametrize("prob", [0.5, 0.8, 0.95])
def test_an_exact_interval_has_its_nominal_coverage(prob):
    """Within 4 standard errors of 4,000 boards: one seed in 16,000 fails, for each of three levels."""
    found = coverage(partial(normal, prob=prob), partial(measured, configs=4000), boards=1)
    covers = found["coverage"].sel(target="sampled").item()
    se = np.sqrt(covers * (1 - covers) / 3999)
    assert found["coverage_se"].sel(target="sampled").item() == pytest.approx(se)
    assert abs(covers - prob) < 4 * se
    assert found["ci_prob"].item() == prob
    assert found["width"].item() == pytest.approx(2 * stats.norm.ppf((1 + prob) / 2))
    assert found["width_se"].item() == pytest.approx(0, abs=1e-12)
    assert (found["coverage"] + found["too_low"] + found["too_high"]).values == pytest.approx(np.ones(2))


@pytest.mark.parametrize(("centre", "covered", "other"), [("true_score", 0, 1), ("true_fixed_score", 1, 0)])
def test_both_targets_are_reported_whatever_is_claimed(centre, covered, other):
    """4 standard errors of 2,000 data sets; the other truth is 3 sd away, so that 1.96 sd reach it in 14.9%."""
    found = coverage(partial(normal, claims="sampled"), partial(measured, configs=2000, centre=centre), boards=1)
    expected = stats.norm.cdf(1.96 - 3) - stats.norm.cdf(-1.96 - 3)
    assert found["target"].values.tolist() == ["sampled", "fixed"]
    assert found["claims"].item() == "sampled"
    assert abs(found["coverage"][covered].item() - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 2000)
    assert abs(found["coverage"][other].item() - expected) < 4 * np.sqrt(expected * (1 - expected) / 2000)
    assert found["too_low" if other else "too_high"][other].item() == pytest.approx(1 - found["coverage"][other].item())


def test_the_error_is_clustered_by_board():
    """Against statsmodels' cluster-robust standard error of a mean, on boards of six configs that share an error."""
    design = partial(measured, configs=6, shared=0.8)
    found = coverage(partial(normal, prob=0.6), design, boards=50, seed=3)
    half = stats.norm.ppf(0.8)
    rows = [
        (board, abs(value) <= half)
        for board, seed in enumerate(board_seeds(3, 50))
        for value in design(seed=seed)["measured"].values
    ]
    data = pd.DataFrame(rows, columns=["board", "covers"]).astype(float)
    robust = smf.ols("covers ~ 1", data).fit(cov_type="cluster", cov_kwds={"groups": data["board"]})
    assert found["coverage"].sel(target="sampled").item() == pytest.approx(robust.params["Intercept"])
    assert found["coverage_se"].sel(target="sampled").item() == pytest.approx(robust.bse["Intercept"])
    assert found["intervals"].item() == 300


def test_where_every_board_covers_the_error_is_not_nil():
    found = coverage(partial(normal, prob=1 - 1e-12), measured, boards=20)
    assert found["coverage"].sel(target="sampled").item() == 1
    assert found["coverage_se"].sel(target="sampled").item() == pytest.approx(np.sqrt(21 / 22 * (1 / 22) / 20))


def test_one_board_of_shared_tasks_has_no_error():
    found = coverage(normal, partial(measured, configs=50, tasks="shared"), boards=1)
    assert np.isnan(found["coverage_se"]).all()
    assert np.isnan(found["width_se"])
    assert "draw more boards" in found["reason"].item()


def test_refused_fits_and_missing_intervals_are_counted():
    refused = sum(int(abs(float(measured(seed)["measured"][0])) * 1000) % 2 == 0 for seed in board_seeds(0, 60))
    found = coverage(normal, measured, fit=refuse_even, boards=60)
    assert 0 < refused < 60
    assert (found["failed"].item(), found["intervals"].item()) == (refused, 60 - refused)
    assert found["reason"].item().startswith(f"{refused} x laplace: k-hat")
    found = coverage(partial(normal, gap=True), partial(measured, configs=3), boards=10)
    assert (found["failed"].item(), found["no_interval"].item(), found["intervals"].item()) == (0, 10, 20)
    assert found["reason"].item() == "10 x withheld"


def refuse(board):
    raise SamplingError("the population gate failed")


def test_a_procedure_that_is_always_refused_is_nan_beside_the_others():
    found = coverage({"fine": normal, "refused": refuse}, measured, boards=20)
    one = found.sel(procedure="refused")
    assert np.isnan(one["coverage"]).all()
    assert one["reason"].item() == "20 x the population gate failed"
    assert (one["failed"].item(), one["intervals"].item(), one["claims"].item()) == (20, 0, "")
    xr.testing.assert_equal(found.sel(procedure="fine").drop_vars("procedure"), coverage(normal, measured, boards=20))


def test_any_executor_gives_the_same_numbers():
    methods = {m: partial(frequentist.score, method=m, draws=200) for m in ("two_level_bootstrap", "clustered_normal")}
    design = designs.rates(0.6, 0.5, tasks=20, runs=3, shape="skewed", configs=4)
    alone = coverage(methods, design, boards=6, seed=8)
    with ThreadPoolExecutor(3) as pool:
        xr.testing.assert_identical(alone, coverage(methods, design, boards=6, seed=8, executor=pool))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        xr.testing.assert_identical(alone, coverage(methods, design, boards=6, seed=8, executor=pool))
    other = coverage(methods, design, boards=6, seed=9)
    assert (other["width"] != alone["width"]).all()


def test_differences_count_each_pair_once():
    """Against a loop over boards and pairs."""
    design = partial(simulate.board, 4, 30, 3, kappa=5.0)
    found = coverage(partial(frequentist.difference, method="clustered_normal"), design, boards=12, seed=2)
    hits, widths = {"true_score": [], "true_fixed_score": []}, []
    for seed in board_seeds(2, 12):
        board = design(seed=seed)
        rate = (board["successes"] / board["trials"]).values
        for a in range(4):
            for b in range(a + 1, 4):
                gaps = rate[a] - rate[b]
                half = 1.959964 * gaps.std(ddof=1) / np.sqrt(30)
                widths.append(2 * half)
                for name, kept in hits.items():
                    truth = float(board[name][a] - board[name][b])
                    kept.append(abs(gaps.mean() - truth) <= half)
    assert found["intervals"].item() == 72
    assert found["coverage"].values == pytest.approx([np.mean(kept) for kept in hits.values()])
    assert found["width"].item() == pytest.approx(np.mean(widths), rel=1e-6)


def against_second(board):
    """Differences from one reference, as a fit gives them: with its name."""
    found = frequentist.difference(board, method="clustered_normal", reference="config-2")
    return found.assign_coords(reference="config-2")


def test_differences_from_one_reference_leave_it_out():
    design = partial(simulate.board, 3, 30, 3)
    found = coverage(against_second, design, boards=2)
    pairs = coverage(partial(frequentist.difference, method="clustered_normal"), design, boards=2)
    assert (found["intervals"].item(), pairs["intervals"].item()) == (4, 6)
    with pytest.raises(ArgumentError, match="do not name their reference"):
        coverage(lambda board: against_second(board).drop_vars("reference"), design, boards=1)


def test_the_truth_of_another_quantity_can_be_given():
    """The ICC of a design, with intervals from 0 to 1 that cannot miss it."""

    def whole(board):
        given = normal(board).assign_coords(quantity="icc")
        return given.assign(interval=xr.zeros_like(given["interval"]) + xr.DataArray([0.0, 1.0], dims="ci_bound"))

    with pytest.raises(ArgumentError, match=r"truth of 'icc'.*truth="):
        coverage(whole, measured, boards=1)
    found = coverage(whole, measured, boards=2, truth=lambda board, answer: {"icc": xr.DataArray(0.3)})
    assert found["target"].values.tolist() == ["icc"]
    assert found["coverage"].values.tolist() == [1.0]
    with pytest.raises(ArgumentError, match="'icc' is over"):
        coverage(whole, measured, boards=1, truth=lambda board, answer: {"icc": xr.DataArray([0.3], dims="task")})


def test_arguments_that_are_wrong_are_named():
    with pytest.raises(ArgumentError, match="boards=0"):
        coverage(normal, measured, boards=0)
    with pytest.raises(ArgumentError, match="empty mapping"):
        coverage({}, measured)
    with pytest.raises(ArgumentError, match="returned a float"):
        coverage(lambda board: 0.5, measured, boards=1)
    with pytest.raises(ArgumentError, match="no coord true_score"):
        coverage(normal, lambda seed: measured(seed).drop_vars("true_score"), boards=1)
    with ProcessPoolExecutor(1) as pool, pytest.raises(ArgumentError, match=r"cannot pickle.*in place of a lambda"):
        coverage(lambda board: normal(board), measured, boards=1, executor=pool)
    with pytest.raises(ArgumentError, match="shape='bimodal'"):
        designs.rates(0.5, 0.5, shape="bimodal")
    with pytest.raises(ArgumentError, match="icc=1"):
        designs.rates(0.5, 1.0)
    assert check.coverage is coverage


@pytest.mark.parametrize(("shape", "points"), [("beta", 0.0), ("skewed", -2.7), ("two_humped", -0.1)])
def test_why_the_beta_model_covers_less_on_a_skewed_population(shape, points):
    """The mean that a beta-binomial tends to with ever more tasks, by scipy: dead tasks bias it, humps hardly do."""
    k, found = np.arange(6), designs.population(0.634, 0.76, shape)
    parts = [
        stats.betabinom.pmf(k, 5, m * s, (1 - m) * s) if m else k == 0
        for m, s in zip(found.mean, found.concentration, strict=True)
    ]
    seen = found.weight @ np.array(parts, float)

    def loss(x):
        mean, size = special.expit(x[0]), np.exp(x[1])
        return -seen @ stats.betabinom.logpmf(k, 5, mean * size, (1 - mean) * size)

    best = optimize.minimize(loss, [0.5, -1.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12})
    assert 100 * (special.expit(best.x[0]) - 0.634) == pytest.approx(points, abs=0.05)


def test_frequentist_rows_of_the_table_are_of_the_same_data_sets(table_script):
    design, seeds = designs.rates(0.8, 0.3), board_seeds(0, 3)
    board = table_script.together(design, seeds, seed=11)
    for i, seed in enumerate(seeds):
        one = design(seed=seed)
        assert (board["successes"].values[i] == one["successes"].values[0]).all()
        assert board["true_fixed_score"].values[i] == one["true_fixed_score"].item()


@pytest.fixture(scope="module")
def committed():
    path = BENCHMARKS / "coverage_table.csv"
    return path.read_text().partition("\n")[0], pd.read_csv(path, comment="#")


def test_the_table_says_what_made_it_and_is_whole(table_script, committed):
    head, table = committed
    assert head == table_script.heading()
    populations = [f"{shape} {m:g} {icc:g}" for m, icc in table_script.SETTINGS for shape in designs.SHAPES]
    assert table["design"].unique().tolist() == [
        *populations,
        *(f"crossed {shape}" for shape in table_script.DENSITIES),
    ]
    assert (table.filter(like="_se").dropna() >= 0).all().all()


@pytest.mark.parametrize(
    ("mean", "icc", "shape", "data_sets", "bayesian"),
    [(0.8, 0.3, "skewed", 12, True), (0.634, 0.76, "beta", 300, False)],
)
def test_reduced_rows_agree_with_the_committed_table(table_script, committed, mean, icc, shape, data_sets, bayesian):
    """Other data sets: each figure within 4 standard errors of the difference, and the rounding.

    27 figures, one seed in 500 fails. A coverage is allowed a binomial error of one miss at least in either.
    """
    found = table_script.single(mean, icc, shape, data_sets=data_sets, seed=77, bayesian=bayesian)
    table = committed[1].merge(found, on=["design", "quantity", "procedure", "claims"], suffixes=("", "_now"))
    assert len(table) == len(found)
    for target in ("sampled", "fixed"):
        n, now = table["intervals"], table["intervals_now"]
        share = ((table[target] * n + table[f"{target}_now"] * now) / (n + now) / 100).clip(1 / n, 1 - 1 / n)
        allowed = 4 * np.sqrt(share * (1 - share) * (1 / n + 1 / now))
        assert ((table[target] - table[f"{target}_now"]).abs() / 100 <= allowed).all()
    allowed = 4 * np.hypot(table["width_se"], table["width_se_now"]) + 0.002
    assert ((table["width"] - table["width_now"]).abs() <= allowed).all()
