"""Answers of real fits: relabelled, reordered, duplicated and extreme boards, and one core against two.

A drawn answer is compared within Monte Carlo error: an estimate's standard error is se / sqrt(effective draws), an
interval end's is ``interval_mcse``; the two fits' errors add in quadrature. At ``FAR`` = 4.5 of them one comparison
fails by chance 7 times in a million; each test states how many it makes.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from boards import counted
from evalbayes import fit, nodes, posterior, simulate
from evalbayes.posterior.draws import effective
from evalbayes.storage import load_fit

FAR = 4.5


def assert_close(mine, mine_ess, theirs, theirs_ess):
    """Estimates and interval ends agree within `FAR` combined Monte Carlo standard errors."""
    error = np.hypot(mine.se / np.sqrt(mine_ess), theirs.se / np.sqrt(theirs_ess))
    assert (abs(mine.estimate - theirs.estimate) <= FAR * error + 1e-12).all()
    if "interval_mcse" in mine:
        error = np.hypot(mine.interval_mcse, theirs.interval_mcse)
        assert (abs(mine.interval - theirs.interval) <= FAR * error + 1e-12).all()


@pytest.fixture(scope="module")
def turned_fit(small_board):
    """The board with configs and tasks renamed and in another order."""
    rng = np.random.default_rng(0)
    turned = small_board.isel(config=rng.permutation(8), task=rng.permutation(40))
    renamed = turned.assign_coords(
        config=[f"model {name}" for name in turned.config.values], task=[f"{name}?" for name in turned.task.values]
    )
    return fit(renamed, "crossed", method="laplace", seed=1)


@pytest.mark.parametrize("target", [{"tasks": "fixed"}, {"tasks": "sampled"}, {"population": "reweighted"}])
def test_relabelling_and_reordering_permute_every_answer(small_fit, turned_fit, target):
    """8 scores and 56 differences with their ends, 56 wins and 16 top-k: some 250 comparisons a target, 2 in 1,000."""
    ess = effective(small_fit), effective(turned_fit)
    labels = [f"model {name}" for name in small_fit["posterior"].config.values]
    for quantity, keyword in [
        ("score", {}),
        ("difference", {}),
        ("win_probability", {}),
        ("top_k", {"k": 1}),
        ("top_k", {"k": 3}),
    ]:
        mine, theirs = (getattr(posterior, quantity)(one, **target, **keyword) for one in (small_fit, turned_fit))
        mine = mine.assign_coords(dict.fromkeys([dim for dim in ("config", "opponent") if dim in mine.dims], labels))
        theirs = theirs.reindex_like(mine)
        if quantity in ("win_probability", "top_k"):
            # Their se is Monte Carlo error already.
            assert_close(mine, 1, theirs, 1)
        else:
            assert_close(mine, ess[0], theirs, ess[1])
        np.testing.assert_array_equal(mine.reason, theirs.reason)
    mine, theirs = (posterior.rank(one, **target) for one in (small_fit, turned_fit))
    mine = mine.assign_coords(config=labels)
    theirs = theirs.reindex_like(mine)
    error = np.hypot(mine.se / np.sqrt(ess[0]), theirs.se / np.sqrt(ess[1]))
    assert (abs(mine.expected_rank - theirs.expected_rank) <= FAR * error + 1e-12).all()
    # Ranks are whole numbers: one whose share of draws is at a level by chance moves an end by one.
    assert (abs(mine.interval - theirs.interval) <= 1).all()


def test_what_has_no_draws_in_it_does_not_change_at_all(small_fit, turned_fit):
    labels = [f"model {name}" for name in small_fit["posterior"].config.values]
    mine, theirs = (posterior.score(one, tasks="fixed") for one in (small_fit, turned_fit))
    theirs = theirs.sel(config=labels)
    # Sums over tasks in another order: the last digit may differ.
    np.testing.assert_allclose(mine.observed, theirs.observed, rtol=1e-15)
    np.testing.assert_array_equal(mine.imputed, theirs.imputed)


def test_a_duplicated_config_has_the_same_answer():
    """Two copies of one config and their mirror image on the board: 6 comparisons, 4 in 100,000."""
    board = simulate.board(5, 30, 2, seed=2)
    copied = xr.concat([board, board.isel(config=[1]).assign_coords(config=["copy"])], "config")
    made = fit(copied.drop_vars("outcome"), "crossed", method="laplace")
    original = board.config.values[1]
    for tasks in ("fixed", "sampled"):
        result = posterior.score(made, tasks=tasks)
        one, other = (result.sel(config=name) for name in (original, "copy"))
        assert_close(one, effective(made), other, effective(made))
        wins = posterior.win_probability(made, tasks=tasks).sel(config=original, opponent="copy")
        assert abs(float(wins.estimate) - 0.5) <= FAR * float(wins.se)
        apart = posterior.difference(made, tasks=tasks).sel(config=original, opponent="copy")
        assert abs(float(apart.estimate)) <= FAR * float(apart.se) / np.sqrt(effective(made))


@pytest.mark.parametrize(("config_sd", "mean", "upper"), [(1.0, 0.034, 0.127), (2.5, 0.016, 0.084)])
def test_complete_separation_is_an_ordinary_case(config_sd, mean, upper):
    """Case 52: 0 of 25, 12 of 25 and 25 of 25. The references are three-digit numbers from a crossed logit model.

    They are for new runs of these tasks; the priors are half-normal of scale 1 on the tasks' sd and normal 1.5 on the
    intercept, to which model-a is all but insensitive. Within 4.5 Monte Carlo errors and half the last digit.
    """
    board = counted([[0] * 5, [2, 3, 2, 3, 2], [5] * 5], 5)
    made = fit(board, "crossed", method="laplace", config_sd=config_sd, task_sd=1.0, task_density="normal", draws=4000)
    result = posterior.score(made, tasks="fixed")
    assert np.isfinite(result.interval).all()
    a = result.isel(config=0)
    assert float(a.estimate) == pytest.approx(mean, abs=FAR * float(a.se) / np.sqrt(effective(made)) + 0.0005)
    assert float(a.interval[1]) == pytest.approx(upper, abs=FAR * float(a.interval_mcse[1]) + 0.0005)
    # All-pass mirrors all-fail.
    c = result.isel(config=2)
    error = np.hypot(a.interval_mcse[1], c.interval_mcse[0])
    assert abs(float(a.interval[1] - (1 - c.interval[0]))) <= FAR * float(error)


@pytest.mark.parametrize("model", ["crossed", None])
def test_a_constant_response(model):
    """Case 53: every cell 1 of 10. The intercept is log(1/9), both spreads are near zero, nothing breaks."""
    made = fit(counted(np.ones((10, 10), int), 10), model)
    draws = made["posterior"]
    assert float(draws.intercept.mean()) == pytest.approx(np.log(1 / 9), abs=0.1)
    assert float(draws.config_sd.median()) < 0.25
    assert float(draws.task_sd.median()) < 0.25
    for tasks in ("fixed", "sampled"):
        result = posterior.score(made, tasks=tasks)
        assert np.isfinite(result.interval).all()
        np.testing.assert_allclose(result.estimate, 0.1, atol=0.02)


def test_complete_separation_is_ordinary_for_the_model_that_it_gets():
    """Case 52 under the beta-binomial model, chosen from the data, by the method that passes: finite, in [0, 1]."""
    board = counted([[0] * 5, [2, 3, 2, 3, 2], [5] * 5], 5)
    made = fit(board)
    assert made.attrs["model"] == "crossed_beta_binomial"
    assert made.attrs.get("divergences", 0) == 0
    observed = (board.successes / board.trials).mean("task")
    for tasks in ("fixed", "sampled"):
        result = posterior.score(made, tasks=tasks, population="reweighted" if tasks == "sampled" else "model")
        assert ((result.interval >= 0) & (result.interval <= 1)).all()
        np.testing.assert_allclose(result.estimate, observed, atol=0.1)


@pytest.fixture(scope="module")
def uneven():
    """Three configs, 14 easy tasks and 6 hard ones; the second was run on the easy ones alone, four runs a cell."""
    rng = np.random.default_rng(7)
    ability = np.array([[0.5], [0.0], [-0.5]])
    difficulty = np.repeat([2.0, -2.0], [14, 6])
    successes = rng.binomial(4, 1 / (1 + np.exp(-(ability + difficulty))))
    trials = np.full((3, 20), 4)
    trials[1, 14:] = successes[1, 14:] = 0
    board = counted(successes, trials)
    return board, fit(board, "crossed", method="laplace")


def test_observed_fixed_and_sampled_are_three_numbers(uneven):
    """Cases 13 and 58: each is what it should be, and empty cells are neither failures nor draws of their own."""
    board, made = uneven
    k, n = board.successes.values, board.trials.values
    fixed, sampled = (posterior.score(made, tasks=tasks).isel(config=1) for tasks in ("fixed", "sampled"))
    observed = (k[1, :14] / n[1, :14]).mean()
    assert float(fixed.observed) == float(sampled.observed) == pytest.approx(observed, abs=1e-15)
    assert int(fixed.imputed) == 6
    draws = made["posterior"].isel(chain=0, config=1)
    p = 1 / (1 + np.exp(-(draws.intercept + draws.config_effect + draws.task_effect)))
    assert float(fixed.estimate) == pytest.approx(float(p.mean()), abs=1e-12)
    z = np.linspace(-12, 12, 4001)
    weight = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    at = (draws.intercept + draws.config_effect + draws.task_mean).values[..., None] + draws.task_scale.values[
        ..., None
    ] * z
    by_hand = ((1 / (1 + np.exp(-at))) @ weight * draws.task_weight.values).sum(-1)
    assert float(sampled.estimate) == pytest.approx(float(draws.score.mean()), abs=1e-12)
    # The fit integrates on its own grid; now and then a draw puts a component of a per cent of the tasks beyond it.
    end = (abs(draws.task_mean) + 5 * draws.task_scale).max("component") / draws.task_sd
    held = (end < nodes.REACH).values
    off = abs(draws.score.values - by_hand)
    print(f"{held.mean():.1%} of draws have the grid hold both components: off by at most {off[held].max():.1e}")
    assert held.mean() > 0.9
    assert off[held].max() < 1e-6
    assert float(sampled.estimate) == pytest.approx(by_hand.mean(), abs=1e-5)
    print(f"observed {observed:.3f}, fixed {float(fixed.estimate):.3f}, sampled {float(sampled.estimate):.3f}")
    # It was run on the easy tasks: its observed proportion flatters it.
    assert observed - float(fixed.estimate) > 0.1
    assert observed - float(sampled.estimate) > 0.1
    assert abs(float(fixed.estimate - sampled.estimate)) > 2e-3
    # Of these tasks it is known how many are hard; of new ones it is not.
    assert float(sampled.se) > 1.2 * float(fixed.se)


def test_a_task_without_runs_changes_nothing(uneven):
    """An empty task adds exactly nothing to the likelihood: the other answers within Monte Carlo error (18, 1e-4)."""
    board, made = uneven
    empty = (board * 0).isel(task=[0]).assign_coords(task=["never run"])
    longer = fit(xr.concat([board, empty], "task").assign_attrs(board.attrs), "crossed", method="laplace", seed=3)
    mine, theirs = (posterior.score(one) for one in (made, longer))
    assert_close(mine, effective(made), theirs, effective(longer))
    np.testing.assert_array_equal(mine.observed, theirs.observed)


TWICE = """
import os, sys
if sys.argv[2] == "one core":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from evalbayes import simulate
from evalbayes.fit import fit
from evalbayes.storage import save_fit
if sys.argv[2] != "one core":
    fit(simulate.board(4, 10, 1, seed=9), method="laplace", draws=200)
for method in ("laplace", "nuts"):
    made = fit(simulate.board(4, 12, 2, seed=4, kappa=2.0), "crossed", method=method, seed=5, task_density="normal")
    save_fit(made, os.path.join(sys.argv[1], f"{method}, {sys.argv[2]}.nc"))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a process cannot be held to one core here")
def test_same_seed_same_numbers_on_one_core_and_two(tmp_path):
    """Case 76: every bit of every array, in a process held to one core, with all cores, and after another fit."""
    cores = ("one core", "all cores, after another fit")
    started = [
        subprocess.Popen([sys.executable, "-c", TWICE, str(tmp_path), name], stderr=subprocess.PIPE, text=True)
        for name in cores
    ]
    for run in started:
        _, said = run.communicate()
        assert run.returncode == 0, said
    for method in ("laplace", "nuts"):
        one, other = (load_fit(tmp_path / f"{method}, {name}.nc") for name in cores)
        for node in one.subtree:
            for name, variable in node.to_dataset().data_vars.items():
                assert variable.values.tobytes() == other[node.path].to_dataset()[name].values.tobytes(), name
        assert {k: v for k, v in one.attrs.items() if k != "seconds"} == {
            k: v for k, v in other.attrs.items() if k != "seconds"
        }
