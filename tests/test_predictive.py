"""Predictive boards: of the right shape, from the right parameters, with the moments that they must have."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import special

from evalbayes import ArgumentError, NotIdentifiedError, fit, simulate
from evalbayes.models.crossed import crossed
from evalbayes.outcomes import from_counts
from evalbayes.predictive import posterior_predictive, prior_predictive
from evalbayes.storage import load_fit, save_fit

BOARD = simulate.board(5, 20, 3, seed=2, kappa=3.0)


@pytest.fixture(scope="module")
def fitted() -> xr.DataTree:
    return fit(BOARD, method="laplace", draws=1000)


def test_posterior_boards_have_the_boards_labels_and_counts(fitted):
    boards = posterior_predictive(fitted, draws=50)
    assert boards.successes.dims == ("draw", "config", "task")
    assert boards.sizes["draw"] == 50
    assert boards.successes.dtype == np.int64
    assert boards.config.values.tolist() == BOARD.config.values.tolist()
    np.testing.assert_array_equal(boards.trials, BOARD.trials)
    assert ((boards.successes >= 0) & (boards.successes <= boards.trials)).all()


def test_same_seed_same_boards(fitted):
    first = posterior_predictive(fitted, draws=20, seed=3)
    assert first.identical(posterior_predictive(fitted, draws=20, seed=3))
    assert not first.equals(posterior_predictive(fitted, draws=20, seed=4))


def test_means_are_those_of_the_draws_they_came_from(fitted):
    """Every cell's mean over 1,000 boards against the mean of n mu over the same draws: within 4.5 standard errors.

    60 cells: a false alarm in about 2,400 seeds.
    """
    boards = posterior_predictive(fitted, draws=1000, seed=1)
    posterior = fitted["posterior"].isel(chain=0)
    mu = special.expit(posterior["intercept"] + posterior["config_effect"] + posterior["task_effect"])
    expected = (mu * BOARD.trials.reset_coords(drop=True)).mean("draw").transpose("config", "task")
    se = boards.successes.std("draw") / np.sqrt(1000)
    z = abs(boards.successes.mean("draw").values - expected.values) / np.maximum(se.values, 1e-3)
    assert z.max() < 4.5


def test_interaction_shows_in_cells_that_agree_with_themselves(fitted):
    """Case: a binomial fit expects more flaky cells than there are; the beta-binomial's expectation holds the data."""

    def flaky(boards: xr.Dataset) -> xr.DataArray:
        return ((boards.successes > 0) & (boards.successes < boards.trials)).mean(("config", "task"))

    seen = float(flaky(BOARD))
    wide = flaky(posterior_predictive(fitted, draws=400))
    narrow = flaky(posterior_predictive(fit(BOARD, "crossed", method="laplace", draws=500), draws=400))
    print(
        f"flaky cells: observed {seen:.3f}, beta-binomial {float(wide.mean()):.3f}, binomial {float(narrow.mean()):.3f}"
    )
    assert abs(seen - float(wide.mean())) < 2.6 * float(wide.std())
    assert float(narrow.mean()) > float(wide.mean())


def test_a_saved_fit_predicts_the_same(fitted, tmp_path):
    back = load_fit(save_fit(fitted, tmp_path / "fit.nc"))
    assert posterior_predictive(back, draws=10).identical(posterior_predictive(fitted, draws=10))


def test_a_model_from_a_function_has_to_be_given_again_only_if_it_cannot_be_found(fitted):
    other = fitted.copy()
    other.attrs = fitted.attrs | {"model": "somewhere:mine"}
    with pytest.raises(ArgumentError, match="somewhere:mine, which is not here"):
        posterior_predictive(other)
    given = posterior_predictive(other, "crossed_beta_binomial", draws=5)
    assert given.identical(posterior_predictive(fitted, draws=5))


def test_parameters_that_the_fit_lacks_are_not_drawn_from_the_prior_unasked(fitted):
    lacking = fitted.copy()
    lacking["posterior"] = fitted["posterior"].to_dataset().drop_vars("task_effect")
    with pytest.raises(ArgumentError, match="the fit has no task_effect"):
        posterior_predictive(lacking)


def test_another_model_than_the_fits_is_refused(fitted):
    for other in ("crossed", "beta_binomial"):
        with pytest.raises(ArgumentError, match="which the model has not; give the model= that it was fitted with"):
            posterior_predictive(fitted, other)


def test_more_boards_than_draws_are_as_many_as_draws_from_all_of_them(fitted, monkeypatch):
    seen = []
    inner = pm.sample_posterior_predictive
    monkeypatch.setattr(pm, "sample_posterior_predictive", lambda tree, **k: seen.append(tree) or inner(tree, **k))
    few = fitted.isel(draw=slice(50))
    few.attrs = fitted.attrs
    assert posterior_predictive(few, draws=120).sizes["draw"] == 50
    np.testing.assert_array_equal(seen[0]["posterior"]["intercept"], few["posterior"]["intercept"])


def test_prior_boards_come_with_the_parameters_behind_them():
    drawn = prior_predictive(BOARD, draws=300, seed=1)
    assert drawn["prior_predictive"]["successes"].dims == ("draw", "config", "task")
    assert {"score", "log_kappa", "task_effect"} <= set(drawn["prior"].data_vars)
    # The prior mean of a score is one half by symmetry; scores of a draw share an intercept of sd 1.5: sd about 0.27.
    assert float(drawn["prior"]["score"].mean()) == pytest.approx(0.5, abs=4 * 0.27 / np.sqrt(300))
    assert (
        drawn["prior_predictive"]
        .to_dataset()
        .identical(prior_predictive(BOARD, draws=300, seed=1)["prior_predictive"].to_dataset())
    )


def test_prior_options_reach_the_model():
    tight = prior_predictive(BOARD, "crossed", draws=50, intercept=0.01, config_sd=0.01, task_sd=0.01)
    assert float(abs(tight["prior"]["score"] - 0.5).max()) < 0.02
    with pytest.raises(ArgumentError, match="no prior or option 'kappa'"):
        prior_predictive(BOARD, kappa=2.0)


def test_a_users_function_is_served():
    board = from_counts([[1, 0], [2, 1]], [[2, 2], [2, 2]], configs=["a", "b"], tasks=["s", "t"])
    assert prior_predictive(board, crossed, draws=3)["prior_predictive"].sizes["draw"] == 3


def test_a_board_that_fit_refuses_has_no_prior_boards_either():
    once = simulate.board(3, 8, 1, seed=1)
    with pytest.raises(NotIdentifiedError, match="no cell was run twice"):
        prior_predictive(once, "crossed_beta_binomial")
    with pytest.raises(NotIdentifiedError, match="1 task"):
        prior_predictive(BOARD.isel(task=[0]))


def test_no_draws_are_refused(fitted):
    with pytest.raises(ArgumentError, match="draws=0"):
        posterior_predictive(fitted, draws=0)
    with pytest.raises(ArgumentError, match="draws=0"):
        prior_predictive(BOARD, draws=0)
    with pytest.raises(ArgumentError, match="seed=-1"):
        prior_predictive(BOARD, seed=-1)
