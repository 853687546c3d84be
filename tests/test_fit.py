"""Fits: two methods, one posterior; which is chosen and why; what is refused."""

import importlib
import re
import shutil
from pathlib import Path

import arviz_stats as azs
import numpy as np
import pytest
import xarray as xr

from evalbayes import check, laplace, posterior, simulate
from evalbayes.errors import ArgumentError, NotIdentifiedError, OutcomesError, SamplingError
from evalbayes.fit import fit
from evalbayes.models import crossed as crossed_module
from evalbayes.outcomes import from_counts
from evalbayes.storage import load_fit, save_fit

fit_module = importlib.import_module("evalbayes.fit")  # `evalbayes.fit` is the function
RAGGED = simulate.board(6, 50, 4, seed=13, kappa=3.0, ragged=True, missing=0.1)


@pytest.fixture(scope="module")
def board() -> xr.Dataset:
    return simulate.board(8, 40, 3, seed=11)


@pytest.fixture(scope="module")
def fitted(board) -> xr.DataTree:
    return fit(board, "crossed", method="laplace", draws=4000, seed=1)


@pytest.fixture(scope="module")
def reference(board) -> xr.DataTree:
    return fit(board, "crossed", method="latent", draws=2000, seed=1)


@pytest.fixture(scope="module")
def repeated() -> xr.DataTree:
    """The beta-binomial model on a board with interaction, ragged and with holes, by laplace."""
    return fit(RAGGED, method="laplace", draws=4000, seed=1)


@pytest.fixture(scope="module")
def whitened() -> xr.DataTree:
    """The same by NUTS, at a seed whose first attempt has no divergence: one in five or so is sampled again, finer."""
    return fit(RAGGED, method="nuts", draws=4000, seed=2)


def moments_and_mcse(fitted: xr.DataTree, name: str) -> dict[str, tuple[xr.DataArray, xr.DataArray]]:
    """Mean and sd of a variable, each with its Monte Carlo standard error."""
    x = fitted["posterior"][name]
    mean, sd = x.mean(("chain", "draw")), x.std(("chain", "draw"))
    if "ess_bulk" in fitted.attrs:
        return {"mean": (mean, azs.mcse(x, method="mean")), "sd": (sd, azs.mcse(x, method="sd"))}
    # Importance draws: fewer in effect by their weights, and by being resampled.
    n = 1 / (1 / fitted.attrs["weight_ess"] + 1 / fitted.attrs["draws"])
    kurtosis = ((x - mean) ** 4).mean(("chain", "draw")) / sd**4
    return {"mean": (mean, sd / np.sqrt(n)), "sd": (sd, sd * np.sqrt((kurtosis - 1) / (4 * n)))}


def assert_within_four_mcse(one: xr.DataTree, two: xr.DataTree, name: str) -> None:
    mine, theirs = moments_and_mcse(one, name), moments_and_mcse(two, name)
    for moment, (value, mcse) in mine.items():
        other, other_mcse = theirs[moment]
        z = abs(value - other) / np.sqrt(mcse**2 + other_mcse**2)
        print(f"{name}: {moment}s of {value.size} differ by at most {float(z.max()):.2f} MCSE")
        assert float(z.max()) < 4


@pytest.mark.parametrize("name", ["task_effect", "config_effect", "score", "intercept", "config_sd", "task_sd"])
def test_laplace_and_nuts_agree_within_four_mcse(fitted, reference, name):
    # 110 comparisons at four MCSE: a false alarm in about 140 seeds.
    assert_within_four_mcse(fitted, reference, name)


EVERYTHING = (
    *(
        "intercept",
        "config_effect",
        "config_sd",
        "task_effect",
        "task_sd",
        "log_kappa",
        "log_kappa_mean",
        "log_kappa_sd",
    ),
    *("task_weight", "task_mean", "task_scale", "ability", "score", "upper_weight", "separation", "log_scale_ratio"),
)


@pytest.mark.parametrize("name", EVERYTHING)
def test_laplace_and_whitened_nuts_agree_within_four_mcse_on_everything_reported(repeated, whitened, name):
    assert set(repeated["posterior"].data_vars) == set(whitened["posterior"].data_vars) == set(EVERYTHING)
    # 160 comparisons at four MCSE: a false alarm in about 100 seeds.
    assert_within_four_mcse(repeated, whitened, name)


def test_whitened_chains_pass_every_check(whitened):
    checks = check.sampler(whitened)
    assert checks.passed.all()
    assert whitened.attrs["divergences"] == 0
    assert {"r_hat", "ess_bulk", "ess_tail", "divergences", "bfmi", "stuck"} <= set(checks["check"].values)
    settings = ("chains", "chain_draws", "tune", "target_accept", "sampler_seed")
    assert [whitened.attrs[name] for name in settings] == [4, 1000, 200, 0.8, 2]
    assert whitened["posterior"].sizes["draw"] == 1000


def test_a_fit_by_chains_is_saved_and_asked_again(whitened, tmp_path):
    """Case 76: no attribute or column that netCDF cannot hold, and the same answers from the file."""
    back = load_fit(save_fit(whitened, tmp_path / "fit.nc"))
    xr.testing.assert_identical(posterior.score(back), posterior.score(whitened))
    xr.testing.assert_identical(check.sampler(back), check.sampler(whitened))
    assert whitened.attrs["draws"] == 4000


def test_laplace_says_how_good_it_is(fitted):
    assert fitted.attrs["k_hat"] < 0.5
    assert fitted.attrs["weight_ess"] >= 1000
    assert fitted.attrs["grid_error"] < 1e-5
    assert fitted["importance"]["weight"].sum().item() == pytest.approx(1)
    assert fitted["posterior"].sizes["draw"] == 4000


def test_chains_say_how_good_they_are(reference):
    assert reference.attrs["r_hat"] < 1.01
    assert reference.attrs["ess_bulk"] >= 400
    assert reference.attrs["divergences"] == 0
    assert reference["posterior"].sizes["chain"] == 4
    assert all(v.dtype != object for v in reference["sample_stats"].data_vars.values())


def test_both_methods_return_the_same_variables(fitted, reference):
    mine, theirs = fitted["posterior"].to_dataset(), reference["posterior"].to_dataset()
    assert set(mine.data_vars) == set(theirs.data_vars)
    assert {name: set(v.dims) for name, v in mine.items()} == {name: set(v.dims) for name, v in theirs.items()}
    for dim in ("config", "task"):
        assert mine[dim].values.tolist() == theirs[dim].values.tolist()


def test_auto_takes_laplace_when_its_weights_pass_and_says_so(board):
    chosen = fit(board, seed=1, draws=500)
    assert chosen.attrs["method"] == "laplace"
    assert chosen.attrs["why"] == "laplace passed its checks"
    assert chosen.attrs["model"] == "crossed_beta_binomial"
    assert chosen.attrs["model_why"].startswith("320 of 320 cells were run twice or more")


@pytest.fixture
def poor_weights(monkeypatch):
    """Importance weights that fail, as on a board whose posterior no proposal covers."""
    sample = laplace.sample
    monkeypatch.setattr(laplace, "sample", lambda *a, **k: sample(*a, **k)._replace(k_hat=0.93))


def test_auto_falls_back_on_nuts_and_says_why(board, poor_weights):
    said = []
    chosen = fit(board, "crossed", draws=2000, progress=said.append, task_density="normal")
    assert chosen.attrs["method"] == "nuts"
    assert re.match(r"laplace: k-hat 0\.93 .*; nuts passed its checks", chosen.attrs["why"])
    assert any("k-hat 0.93" in line and "trying the next method" in line for line in said)


def test_auto_that_finds_no_method_says_what_each_failed(board, monkeypatch):
    def failing(name):
        def run(*_, **__):
            raise SamplingError(f"{name}: no luck; try something")

        return run

    for module, name in ((fit_module, "by_laplace"), (fit_module, "by_nuts"), (fit_module, "by_latent")):
        monkeypatch.setattr(module, name, failing(name))
    with pytest.raises(SamplingError, match="by_laplace: no luck; by_nuts: no luck; by_latent: no luck; look at"):
        fit(board)


def test_laplace_asked_for_is_refused_with_the_check_the_figure_and_the_remedy(board, poor_weights):
    with pytest.raises(SamplingError, match=r"k-hat 0\.93 \(below 0\.5 needed\).*method='nuts'"):
        fit(board, method="laplace")


def test_one_task_is_refused_in_one_line(board):
    with pytest.raises(NotIdentifiedError, match="1 task") as refused:
        fit(board.isel(task=[0]))
    assert "\n" not in str(refused.value)


def test_one_config_is_fitted_and_has_no_rank(board):
    """Case 54: no config effect, with a note; rank, top k and pairs are refused."""
    one = fit(board.isel(config=[0]), method="laplace")
    assert one.attrs["model"] == "beta_binomial"
    assert one.attrs["note"] == "one config: no config effect, and no ranks"
    assert "config_effect" not in one["posterior"]
    observed = float((board.successes / board.trials).isel(config=0).mean())
    assert float(posterior.score(one).estimate[0]) == pytest.approx(observed, abs=0.03)
    for quantity in ("rank", "top_k", "win_probability", "difference"):
        with pytest.raises(NotIdentifiedError, match="one config"):
            getattr(posterior, quantity)(one)
    with pytest.raises(NotIdentifiedError, match="one config"):
        posterior.score(one, configs="sampled")


@pytest.mark.parametrize("method", ["laplace", "nuts"])
def test_cells_of_one_half_do_not_run_away(method):
    """Case 50: eight cells of 1/2 spread less than any binomial; kappa leans on its prior, and sampling is clean."""
    halves = from_counts(np.ones((1, 8), int), np.full((1, 8), 2), configs=["a"], tasks=list("abcdefgh"))
    made = fit(halves, method=method)
    assert check.sampler(made).passed.sel(check=check.sampler(made)["about"] == "sampler").all()
    log_kappa = made["posterior"]["log_kappa"]
    assert 0 < float(log_kappa.mean()) < 4
    assert float(log_kappa.quantile(0.999)) < 9


def test_the_intercept_mixes():
    """Case 55: zero-sum configs and task effects of mean zero: bulk ESS above 400 and no divergence on 10 x 20."""
    made = fit(simulate.board(10, 20, 3, seed=8), "crossed", method="nuts")
    ess = float(azs.ess(made["posterior"]["intercept"], method="bulk"))
    print(f"intercept: bulk ESS {ess:.0f} of 4,000, {made.attrs['divergences']:.0f} divergences")
    assert ess > 400
    assert made.attrs["divergences"] == 0


def test_a_board_without_a_scored_run_is_refused(board):
    with pytest.raises(NotIdentifiedError, match="no run was scored"):
        fit(from_counts(np.zeros((2, 3), int), np.zeros((2, 3), int), configs=list("ab"), tasks=list("xyz")))


def test_a_model_given_as_function_or_file_is_the_same_model(board, tmp_path):
    copied = shutil.copy(Path(crossed_module.__file__), tmp_path / "mine.py")
    Path(copied).write_text(Path(copied).read_text().replace("def crossed(", "def mine("))
    by_name, by_file, by_function = (
        fit(board, model, draws=300, seed=2, method="laplace")["posterior"]["score"]
        for model in ("crossed", f"{copied}:mine", crossed_module.crossed)
    )
    assert by_name.equals(by_file)
    assert by_name.equals(by_function)


@pytest.mark.parametrize("model", ["quadratic", "absent.py:mine", "{here}:absent"])
def test_a_model_that_is_not_there_is_named(board, model):
    with pytest.raises(ValueError, match="model="):
        fit(board, model.format(here=__file__))


def test_an_unknown_method_is_refused_with_those_there_are(board):
    with pytest.raises(ValueError, match="auto, laplace, nuts, latent"):
        fit(board, method="advi")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"draws": 0}, "draws=0: an interval needs 100 or more"),
        ({"draws": 150.5}, "draws=150.5: an interval needs 100 or more, a whole number"),
        ({"seed": True}, "seed=True: give a whole number"),
        ({"log_kappa_mean": -1.0}, "crossed_beta_binomial: log_kappa_mean=-1.0; give a positive number, such as 1.5"),
        ({"intercept": None}, "intercept=None; give a positive number"),
        ({"config_sd": np.nan}, "config_sd=nan; give a positive number"),
        ({"task_density": "cauchy"}, "task_density='cauchy': choose one of mixture, normal"),
        ({"model": 5}, "model=5: give a name, a function or 'file.py:function'"),
        ({"model": ""}, "model='': choose one of crossed"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 2**63}, "seed="),
        ({"kappa": 1.0}, "no prior or option 'kappa'; it has intercept, config_sd, task_sd, log_kappa"),
        ({"marginal": True}, "no prior or option 'marginal'"),
    ],
)
def test_an_argument_out_of_range_is_refused_in_one_line(board, options, words):
    with pytest.raises(ArgumentError, match=re.escape(words)) as refused:
        fit(board, **options)
    assert "\n" not in str(refused.value)


def test_a_board_with_broken_counts_is_refused_before_anything_is_built(board):
    with pytest.raises(OutcomesError):
        fit(board.assign(successes=board["successes"] * 0.5))
    with pytest.raises(OutcomesError):
        fit(board.assign(successes=board["trials"] + 1))


def test_weights_without_a_k_hat_are_not_accepted(board, monkeypatch):
    sample = laplace.sample
    monkeypatch.setattr(laplace, "sample", lambda *a, **k: sample(*a, **k)._replace(k_hat=float("nan")))
    with pytest.raises(SamplingError, match="k-hat nan"):
        fit(board, method="laplace")


def test_a_cell_with_a_million_runs_is_left_to_nuts_before_a_grid_is_made():
    rng = np.random.default_rng(0)
    trials = np.full((3, 6), 10**6)
    huge = from_counts(rng.binomial(trials, 0.5), trials, configs=list("abc"), tasks=list("123456"))
    with pytest.raises(SamplingError, match=r"a grid of \d+ nodes is needed, above \d+"):
        fit(huge, method="laplace")


def test_task_density_is_an_option_and_is_recorded(board):
    normal = fit(board, method="laplace", task_density="normal", draws=300)
    assert normal["posterior"].sizes["component"] == 1
    assert normal.attrs["prior_task_density"] == "normal"
