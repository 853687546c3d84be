"""Simulation-based calibration: the test of uniformity, the ranks, the study end to end, and that it can fail."""

import importlib
import itertools
import os
import random
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from arviz_stats.ecdf_utils import get_pointwise_confidence_band, simulate_confidence_bands
from scipy import special, stats

from boards import counted
from evalbayes import ArgumentError, NotIdentifiedError, OutcomesError, SamplingError, plots
from evalbayes.check import calibration
from evalbayes.check.calibration import summary
from evalbayes.check.ranks import design, grid, log_likelihood, rank, ranked
from evalbayes.check.uniformity import band, p_value
from evalbayes.executors import executor_of
from evalbayes.predictive import prior_predictive
from evalbayes.report.calibrated import calibrated, kept_rows

TABLES = Path(__file__).parent / "benchmarks" / "calibration"
ONE = {"configs": 1, "tasks": 8, "runs": 3}
L = 199


def facts(**ranks):
    """A table of rows whose fits all passed."""
    fits = len(next(iter(ranks.values())))
    known = {"seed": 0, "method": "laplace", "k_hat": 0.2, "weight_ess": 1000.0, "seconds": 1.0, "reason": ""}
    return pd.DataFrame({"row": range(fits), **known, **ranks})


def normal_ranks(rng, *, fits=300, scale=1.0, shift=0.0, blind=False):
    """Ranks for theta ~ N(0, 1), y ~ N(theta, 1), whose posterior is N(y / 2, 1 / 2), or for one that is off."""
    theta = rng.standard_normal(fits)
    y = theta + rng.standard_normal(fits)
    z = rng.standard_normal((L, fits))
    draws = z if blind else y / 2 + shift + scale * np.sqrt(0.5) * z
    return {
        "theta": (draws < theta).sum(axis=0),
        "log_likelihood": (-((y - draws) ** 2) < -((y - theta) ** 2)).sum(axis=0),
    }


# The test of uniformity.


@pytest.mark.parametrize(("fits", "draws"), [(4, 3), (3, 5), (6, 2)])
def test_p_value_is_the_share_of_all_rank_vectors_that_are_as_extreme(fits: int, draws: int) -> None:
    vectors = np.array(list(itertools.product(range(draws + 1), repeat=fits)))
    below = (vectors[:, :, None] < np.arange(1, draws + 1)).sum(axis=1)
    law = [stats.binom(fits, k / (draws + 1)) for k in range(1, draws + 1)]
    tails = [np.minimum(one.cdf(c), one.sf(c - 1)) for one, c in zip(law, below.T, strict=True)]
    least = np.min(tails, axis=0)
    expected = (least <= least[:, None] * (1 + 1e-9)).mean(axis=1)
    found = np.array([p_value(vector.astype(float), draws) for vector in vectors])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert all((found <= level).mean() <= level for level in (0.01, 0.05, 0.2, 0.5))
    low, high = band(fits, draws, 0.8)
    inside = ((below / fits >= low - 1e-12) & (below / fits <= high + 1e-12)).all(axis=1)
    np.testing.assert_array_equal(inside, expected > 1 - inside.mean() + 1e-9)
    assert inside.mean() >= 0.8


def test_band_is_that_of_another_implementation() -> None:
    """ArviZ finds the pointwise level by simulation: its band may be off by one count."""
    at, rng = np.arange(1, 100) / 100, np.random.default_rng(0)
    level = simulate_confidence_bands(100, 1, at, 0.95, 5000, rng)
    for ours, theirs in zip(band(100, 99, 0.95), get_pointwise_confidence_band(level, 100, at), strict=True):
        assert np.abs(ours - theirs).max() <= 0.01 + 1e-12
        assert np.abs(ours - theirs).mean() < 0.003


def test_ranks_that_are_missing_are_left_out() -> None:
    ranks = np.array([3.0, np.nan, 7.0, 1.0])
    assert p_value(ranks, 9) == p_value(ranks[[0, 2, 3]], 9)
    assert np.isnan(p_value(np.full(3, np.nan), 9))


# Ranks.


def test_ties_are_broken_evenly() -> None:
    """Each of the four ranks comes up a quarter of the time: chi-square with 3 degrees of freedom, alarm 1e-4."""
    values = np.array([1.0, 1.0, 0.0, 1.0, 2.0, 1.0])
    rng = np.random.default_rng(0)
    found = np.bincount([rank(values, rng) for _ in range(2000)], minlength=6)
    assert found[[0, 5]].sum() == 0
    assert stats.chisquare(found[1:5]).pvalue > 1e-4


def test_what_is_no_number_is_below_all_and_tied_with_its_like() -> None:
    rng = np.random.default_rng(0)
    assert rank(np.array([0.0, np.nan, -1e9, 1.0]), rng) == 2
    assert {rank(np.array([np.nan, np.nan, 0.0]), rng) for _ in range(50)} == {0, 1}


@pytest.mark.parametrize("kappa", [None, 0.3, 20.0])
def test_log_likelihood_is_scipys(kappa: float | None) -> None:
    rng, board = np.random.default_rng(1), counted([[0, 3, 2], [5, 1, 0]], [[3, 3, 4], [5, 5, 0]])
    effect, slope = rng.standard_normal((7, 3)), rng.uniform(0.5, 2.0, (7, 2))
    at = rng.standard_normal(7)
    flat = xr.Dataset(
        {
            "intercept": ("draw", at),
            "config_effect": (("draw", "config"), np.tile([0.5, -0.5], (7, 1))),
            "task_effect": (("draw", "task"), effect),
            "log_discrimination": (("draw", "config"), np.log(slope)),
        }
    )
    if kappa is not None:
        flat["log_kappa"] = (("draw", "config"), np.full((7, 2), np.log(kappa)))
    mu = special.expit(at[:, None, None] + np.array([0.5, -0.5])[:, None] + slope[:, :, None] * effect[:, None, :])
    k, n = board["successes"].values, board["trials"].values
    law = stats.binom(n, mu) if kappa is None else stats.betabinom(n, mu * kappa, (1 - mu) * kappa)
    expected = (law.logpmf(k) - np.log(special.comb(n, k))).sum(axis=(1, 2))
    np.testing.assert_allclose(log_likelihood(board, flat), expected, rtol=1e-9)


# The verdict.


def test_exact_posteriors_pass() -> None:
    """Exact draws of a conjugate normal model; the seed is one of the 95% or more that raise no alarm."""
    found = summary(facts(**normal_ranks(np.random.default_rng(0))), draws=L)
    assert found.attrs["verdict"] == "passed"
    assert found.attrs["sentence"].startswith("calibrated: over 300 fits the ranks of all 2 quantities are compatible")
    assert found["p_value"].min() > 0.05
    np.testing.assert_allclose(found["mean"], 0.5, atol=4 / np.sqrt(12 * 300))
    np.testing.assert_allclose(found["spread"], 1.0, atol=4 * np.sqrt(0.8 / 300))


def test_false_alarms_are_as_rare_as_stated() -> None:
    """Of 100 studies of exact posteriors at 80%, 20% at most: more than 36 have probability 1e-4."""
    rng = np.random.default_rng(3)
    alarms = sum(
        summary(facts(**normal_ranks(rng, fits=30)), draws=L, prob=0.8).attrs["verdict"] == "failed" for _ in range(100)
    )
    assert 2 <= alarms <= 36


@pytest.mark.parametrize(
    ("wrong", "quantity", "shape"),
    [
        ({"scale": 0.7}, "theta", "posteriors too narrow"),
        ({"scale": 1.5}, "theta", "posteriors too wide"),
        ({"shift": 0.4}, "theta", "posteriors too high"),
        ({"shift": -0.4}, "theta", "posteriors too low"),
    ],
)
def test_wrong_posteriors_are_found_and_described(wrong: dict[str, float], quantity: str, shape: str) -> None:
    found = summary(facts(**normal_ranks(np.random.default_rng(1), **wrong)), draws=L)
    assert found.attrs["verdict"] == "failed"
    assert found["shape"].sel(quantity=quantity) == shape
    assert f"{quantity}: {shape}" in found.attrs["sentence"]


def test_a_posterior_that_has_not_seen_the_data_is_found_by_the_likelihood_alone() -> None:
    found = summary(facts(**normal_ranks(np.random.default_rng(2), blind=True)), draws=L)
    assert found["uniform"].to_series().to_dict() == {"theta": True, "log_likelihood": False}


def test_few_fits_are_no_verdict_and_p_values_are_adjusted() -> None:
    rng = np.random.default_rng(0)
    few = summary(facts(**normal_ranks(rng, fits=5)), draws=L)
    assert few.attrs["verdict"] == "insufficient"
    assert few.attrs["sentence"] == "no verdict: 5 fits, and it takes 20 that passed their checks"
    p = few["p_value"].values
    np.testing.assert_allclose(few["p_adjusted"].min(), min(1.0, 2 * p.min()))


# Studies.


@pytest.fixture(scope="module")
def study() -> pd.DataFrame:
    """Twenty-four fits of one config."""
    return pd.DataFrame(list(ranked(design("beta_binomial", grid(**ONE)), range(24))))


def test_ranks_are_where_the_exact_posterior_puts_the_truth(study: pd.DataFrame) -> None:
    """Posteriors of both parameters by quadrature.

    A rank is binomial around L times the exact CDF at the truth, with some more noise from importance weights. Of 48
    ranks one is 4.5 standard errors off with probability 3e-4.
    """
    drawn = prior_predictive(grid(**ONE), "beta_binomial", draws=24, seed=0)
    truth, boards = drawn["prior"].to_dataset(), drawn["prior_predictive"]["successes"].values
    b, m = np.linspace(-8, 8, 241), np.linspace(-8, 8, 241)
    mu, kappa = special.expit(b)[:, None], np.exp(m)
    of_count = np.stack([stats.betabinom.logpmf(k, 3, mu * kappa, (1 - mu) * kappa) for k in range(4)])
    prior = stats.norm.logpdf(b, 0, 1.5)[:, None] + stats.norm.logpdf(m, 0, 1.5)
    for i, successes in enumerate(boards):
        density = special.softmax(prior + np.tensordot(np.bincount(successes.ravel(), minlength=4), of_count, 1))
        for name, at, axis in (("intercept", b, 1), ("log_kappa[0]", m, 0)):
            value = truth[name.removesuffix("[0]")].values.ravel()[i]
            # Half of a node's mass lies below it.
            mass = density.sum(axis=axis)
            below = np.interp(value, at, np.cumsum(mass) - mass / 2)
            se = np.sqrt(max(below * (1 - below), 1e-3) * (1 / L + 1 / study["weight_ess"][i]))
            assert abs(study[name][i] / L - below) < 4.5 * se, (i, name)


def test_the_model_is_calibrated(study: pd.DataFrame) -> None:
    """One seed of those 95% or more that raise no alarm."""
    found = summary(study, draws=L)
    assert found.attrs["verdict"] == "passed"
    assert (study["method"] == "laplace").all()
    assert found["ranks"].min() >= 0
    assert found["ranks"].max() <= L


def test_a_row_can_be_made_alone(study: pd.DataFrame) -> None:
    (alone,) = ranked(design("beta_binomial", grid(**ONE)), [17])
    for name in study.columns.drop("seconds"):
        assert alone[name] == study[name][17], name


def test_what_is_ranked_depends_on_the_model(study: pd.DataFrame) -> None:
    assert list(study.columns[7:]) == ["intercept", "log_kappa[0]", "score[0]", "icc[0]", "log_likelihood"]
    # One config: 1 / (1 + kappa) is the ICC, so that its rank is that of log kappa from the other end.
    np.testing.assert_array_equal(study["icc[0]"], L - study["log_kappa[0]"])
    np.testing.assert_array_equal(study["score[0]"], study["intercept"])


def test_a_prior_that_is_not_the_truths_is_found() -> None:
    """Truths from a prior five times as wide as the fit's: 16 of 80 such rows fail in 100 of 100 random choices."""
    said = []
    options = {"true_priors": {"intercept": 1.5}, "intercept": 0.3, "fits": 16, "progress": said.append}
    found = calibration("beta_binomial", **ONE, **options)
    assert found.attrs["verdict"] == "failed"
    assert found["shape"].sel(quantity="intercept") == "posteriors too narrow"
    assert found.attrs["sentence"].startswith("not calibrated: over 16 fits the ranks of ")
    assert len(said) == 16
    assert said[3].startswith("row 3: laplace, k-hat ")


# With fits that cost nothing.


def blind(board, model, *, method, draws, seed, **priors):
    """In place of a fit: draws from the prior, as if nothing had been run."""
    prior = prior_predictive(board, model, draws=draws, seed=seed, **priors)["prior"].to_dataset()
    tree = xr.DataTree.from_dict({"posterior": prior.expand_dims(chain=[0])})
    tree.attrs = {"method": "laplace", "k_hat": 0.1, "weight_ess": 1000.0, "why": "laplace passed its checks"}
    return tree


def erring(board, model, *, method, draws, seed, **priors):
    """In place of a fit: one that refuses boards with many passes, crashes on those with none, and falls back."""
    passed = int(board["successes"].sum())
    if passed > 16:
        raise SamplingError("laplace: k-hat 0.71\n(below 0.5 needed)")
    if passed == 0:
        raise np.linalg.LinAlgError("not positive definite")
    tree = blind(board, model, method=method, draws=draws, seed=seed)
    if passed % 2:
        del tree.attrs["k_hat"], tree.attrs["weight_ess"]
        tree.attrs |= {"method": "nuts", "why": "laplace: k-hat 0.71; nuts passed its checks"}
    return tree


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch):
    """Set what stands in for `evalbayes.fit`."""
    return partial(monkeypatch.setattr, importlib.import_module("evalbayes.fit"), "fit")


def test_the_likelihood_of_a_whole_study_finds_fits_that_ignore_the_board(stub) -> None:
    stub(blind)
    found = calibration("beta_binomial", **ONE, fits=25, draws=99)
    assert found["uniform"].to_series().drop("log_likelihood").all()
    assert not found["uniform"].sel(quantity="log_likelihood")


def test_fits_that_fail_are_rows_without_ranks(stub) -> None:
    stub(erring)
    found = calibration("beta_binomial", **ONE, fits=30, draws=99)
    failed, by_nuts = (found["method"] == "").values, (found["method"] == "nuts").values
    assert 0 < failed.sum() == found.attrs["failed"] < 30
    assert 0 < by_nuts.sum() == found.attrs["by_nuts"]
    assert np.isnan(found["ranks"]).any("quantity").values.tolist() == failed.tolist()
    assert set(found["reason"].values[failed]) == {"laplace: k-hat 0.71 (below 0.5 needed)", "not positive definite"}
    assert set(found["reason"].values[by_nuts]) == {"laplace: k-hat 0.71; nuts passed its checks"}
    assert set(found["reason"].values[~failed & ~by_nuts]) == {""}
    said = f"over 30 fits ({by_nuts.sum()} not by laplace, {failed.sum()} failed and without ranks)"
    assert said in found.attrs["sentence"]


def test_boards_are_like_the_one_given(stub) -> None:
    """Holes, unequal runs, and groups: boards have them too, and the groups' variables are ranked."""
    seen = []

    def look(board, model, **options):
        seen.append(board)
        return blind(board, model, **options)

    stub(look)
    like = counted(np.zeros((4, 3), int), [[2, 1, 3], [0, 2, 2], [1, 1, 1], [5, 2, 2]])
    like = like.assign_coords(agent=("config", ["x", "x", "y", "y"]))
    found = calibration("crossed", outcomes=like, config_groups=("agent",), fits=1, draws=99, method="laplace")
    assert {"agent_sd", "agent_effect[0]", "task_effect[0]", "icc[0]", "rank[0]"} <= set(found["quantity"].values)
    assert seen[0]["trials"].equals(like["trials"])
    assert (seen[0]["successes"] <= seen[0]["trials"]).all()


def test_a_study_of_failures_has_no_verdict(stub) -> None:
    def refuse(*_, **__):
        raise SamplingError("no")

    stub(refuse)
    found = calibration("beta_binomial", **ONE, fits=2)
    assert found.attrs["verdict"] == "insufficient"
    assert np.isnan(found["p_value"]).all()
    with pytest.raises(OutcomesError, match="no fit passed its checks"):
        plots.calibration(found)


def made(output, which=range(4), **changed):
    """What the command does."""
    options = {"sizes": (1, 8, 3), "seed": 0, "method": "auto", "draws": L, "prob": 0.95, "show_rows": False}
    rest = {"workers": 1, "dask": None, "progress": lambda _: None}
    return calibrated("beta_binomial", which, output=output, **options | rest | changed)


def test_a_study_that_was_stopped_goes_on(stub, tmp_path: Path) -> None:
    stub(erring)
    whole, stopped = tmp_path / "whole.csv", tmp_path / "stopped.csv"
    made(whole, range(6))
    said = []
    made(stopped, range(3))
    stopped.write_text(stopped.read_text() + "3,12345,lap")
    found = made(stopped, range(6), progress=said.append)
    assert [line.split(":")[0] for line in said] == ["row 3", "row 4", "row 5"]
    pd.testing.assert_frame_equal(kept_rows(whole).drop(columns="seconds"), kept_rows(stopped).drop(columns="seconds"))
    assert whole.read_text().splitlines()[0] == stopped.read_text().splitlines()[0]
    assert found.numbers["fits"] == len(found.numbers["rows"]) == 6
    said.clear()
    assert made(stopped, range(6), progress=said.append).numbers["quantities"] == found.numbers["quantities"]
    assert said == []


def test_a_table_of_another_study_is_refused(stub, tmp_path: Path) -> None:
    stub(blind)
    path = tmp_path / "table.csv"
    made(path, [0])
    with pytest.raises(ArgumentError, match=r"table.csv: made by 'evalbayes calibrate .* --seed 0 .* --seed 1 "):
        made(path, [0], seed=1)


def test_rows_that_are_asked_for_are_shown(stub) -> None:
    stub(blind)
    found = made(None, [2, 0], show_rows=True)
    assert list(found.table) == ["quantity", "row 2", "row 0"]
    by_row = {row["row"]: row["ranks"] for row in found.numbers["rows"]}
    assert found.table["row 2"] == list(by_row[2].values())


# Arguments.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fits": 0}, "fits=0"),
        ({"tasks": 1}, "tasks=1"),
        ({"draws": 0}, "draws=0"),
        ({"method": "fast"}, "method='fast': choose one of auto, laplace"),
        ({"kappa": 2.0}, "has no prior or option 'kappa'"),
        ({"true_priors": {"kappa": 2.0}}, "has no prior or option 'kappa'"),
        ({"true_priors": {"intercept": -1.0}}, "intercept=-1.0; give a positive number"),
    ],
)
def test_wrong_arguments(options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        calibration("beta_binomial", **options)


def test_a_model_that_boards_do_not_identify_is_refused() -> None:
    with pytest.raises(NotIdentifiedError, match="no cell was run twice"):
        calibration("crossed_beta_binomial", runs=1, fits=1)


def test_executors() -> None:
    with executor_of(2) as pool:
        assert list(pool.map(abs, [-1, 2])) == [1, 2]
    with pytest.raises(ArgumentError, match="workers=0"), executor_of(0):
        pass
    with pytest.raises(ArgumentError, match="dask='tcp://nowhere:1': "), executor_of(1, "tcp://nowhere:1"):
        pass


@pytest.mark.parametrize("content", [b"\x89HDF\r\n\x1a\n\x00\xff", b"config,task\na,t1", b"# notes\nof mine"])
def test_a_file_that_is_no_table_is_refused_and_left_as_it_was(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mine"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match="mine: no table of calibrate; give another -o"):
        kept_rows(path, "evalbayes calibrate crossed --fits 3")
    assert path.read_bytes() == content


# The picture, and the committed tables.


def test_the_picture_names_what_is_not_uniform() -> None:
    rng = np.random.default_rng(1)
    wrong, right = normal_ranks(rng, scale=0.5), normal_ranks(rng)
    found = summary(facts(narrow=wrong["theta"], fine=right["theta"]), draws=L)
    ax = plots.calibration(found)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["95% band over all", "narrow: posteriors too narrow", "1 of 2 quantities, uniform"]
    lines = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    drawn = lines["narrow: posteriors too narrow"]
    # At k / (L + 1): the share of ranks below k.
    np.testing.assert_allclose(drawn[50], (wrong["theta"] < 50).mean() - 50 / (L + 1))
    assert drawn[0] == drawn[-1] == 0
    low = ax.collections[0].get_paths()[0].vertices[:, 1].min()
    assert drawn.min() < low
    with pytest.raises(ArgumentError, match=r"give what evalbayes\.check\.calibration returned"):
        plots.calibration(found["ranks"])


@pytest.mark.parametrize("model", os.environ.get("EVALBAYES_CALIBRATION", "beta_binomial").split(","))
def test_rows_of_the_committed_study_come_out_the_same(model: str) -> None:
    """Five rows of the table, drawn by ``random.Random(0)``, or those in EVALBAYES_CALIBRATION_ROWS (3,17).

    EVALBAYES_CALIBRATION names the models, separated by commas.
    """
    table = kept_rows(TABLES / f"{model}.csv").set_index("row", drop=False)
    asked = os.environ.get("EVALBAYES_CALIBRATION_ROWS")
    rows = [int(row) for row in asked.split(",")] if asked else random.Random(0).sample(sorted(table["row"]), 5)
    words = (TABLES / f"{model}.csv").read_text().partition("\n")[0].split()
    options = dict(zip(words[4::2], words[5::2], strict=True))
    cells = grid(*(int(options[f"--{name}"]) for name in ("configs", "tasks", "runs")))
    plan = design(
        words[3], cells, seed=int(options["--seed"]), method=options["--method"], draws=int(options["--draws"])
    )
    for row in ranked(plan, rows):
        kept = table.loc[row["row"]]
        for name in table.columns.drop(["seconds", "k_hat", "weight_ess"]):
            assert row[name] == kept[name] or (np.isnan(row[name]) and np.isnan(kept[name])), (row["row"], name)
        np.testing.assert_allclose(row["k_hat"], kept["k_hat"], atol=0.01)
        np.testing.assert_allclose(row["weight_ess"], kept["weight_ess"], rtol=0.01)


@pytest.mark.parametrize(
    ("model", "fits"),
    [("crossed", 500), ("crossed_beta_binomial", 500), ("beta_binomial", 200), ("crossed_discrimination", 200)],
)
def test_committed_studies_are_calibrated(model: str, fits: int) -> None:
    """As many fits as were asked for; of boards with a discrimination laplace fits about half, and that is said."""
    table = kept_rows(TABLES / f"{model}.csv")
    assert table["row"].tolist() == list(range(len(table)))
    found = summary(table, draws=L)
    print(found.attrs["sentence"])
    assert found.attrs["verdict"] == "passed", found.attrs["sentence"]
    assert len(table) - found.attrs["failed"] >= fits
