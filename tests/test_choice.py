"""Which model a board gets, what is refused, and what a reader is told of it."""

import numpy as np
import pytest
import xarray as xr

from evalbayes import ArgumentError, NotIdentifiedError, fit, simulate
from evalbayes.choice import check_identified, chosen, notes
from evalbayes.outcomes import from_counts


def once(configs=3, tasks=6) -> xr.Dataset:
    return simulate.board(configs, tasks, 1, seed=1)


@pytest.mark.parametrize(
    ("board", "name", "why"),
    [
        (once(), "crossed", "no cell was run twice"),
        (simulate.board(3, 6, 2), "crossed_beta_binomial", "18 of 18 cells were run twice or more"),
        (simulate.board(1, 6, 2), "beta_binomial", "one config"),
        (once(configs=1), "beta_binomial", "one config"),
    ],
)
def test_the_data_choose_the_model_and_it_is_said(board, name, why):
    found, function, said = chosen(board, None)
    assert found == function.__name__ == name
    assert said.startswith(why)


def test_one_repeated_cell_is_enough():
    trials = np.ones((3, 4), int)
    trials[1, 2] = 2
    board = from_counts(np.zeros((3, 4), int), trials, configs=list("abc"), tasks=list("wxyz"))
    assert chosen(board, None)[2] == "1 of 12 cells were run twice or more: cells need not be additive"


def test_a_model_that_is_named_is_taken():
    assert chosen(simulate.board(3, 6, 2), "crossed")[::2] == ("crossed", "asked for")


def test_kappa_without_a_repeated_cell_is_refused_with_the_way_out():
    """Case 49: a beta-binomial of one run is the same for every kappa."""
    with pytest.raises(NotIdentifiedError, match=r"no cell was run twice.*fit model='crossed'") as refused:
        fit(once(), "crossed_beta_binomial")
    assert "\n" not in str(refused.value)


def test_one_config_run_once_says_that_kappa_is_the_priors():
    """Case 49: its score is known, its kappa is not, and the fit says so."""
    board = once(configs=1, tasks=30)
    made = fit(board)
    dropped, prior = made.attrs["note"].split("; ")
    assert dropped == "one config: no config effect, and no ranks"
    assert prior == "no cell was run twice: log_kappa is the prior's alone"
    drawn = made["posterior"]["log_kappa"]
    # Prior Normal(0, 1.5): 2,000 draws of some 1,000 effective know its mean to 0.05 and its sd to 0.04; four of them.
    assert float(drawn.mean()) == pytest.approx(0, abs=0.2)
    assert float(drawn.std()) == pytest.approx(1.5, abs=0.16)


def test_configs_that_borrow_their_kappa_are_named():
    trials = np.full((3, 5), 3)
    trials[1] = 1
    board = from_counts(np.zeros((3, 5), int), trials, configs=["a", "b", "c"], tasks=list("vwxyz"))
    posterior = xr.Dataset({"log_kappa": ("config", np.zeros(3))})
    assert notes(board, posterior) == "log_kappa of b is borrowed from the other configs: no cell run twice"
    assert notes(board, xr.Dataset()) == ""


@pytest.mark.parametrize("name", ["crossed", "crossed_beta_binomial", "beta_binomial"])
def test_one_task_and_no_run_are_refused_by_every_model(name):
    with pytest.raises(NotIdentifiedError, match="1 task"):
        check_identified(simulate.board(3, 1, 2), name)
    nothing = from_counts(np.zeros((2, 3), int), np.zeros((2, 3), int), configs=list("ab"), tasks=list("xyz"))
    with pytest.raises(NotIdentifiedError, match="no run was scored"):
        check_identified(nothing, name)


def test_a_prior_of_another_model_is_refused():
    with pytest.raises(ArgumentError, match="crossed has no prior or option 'log_kappa_sd'"):
        fit(once(), log_kappa_sd=1.0)
