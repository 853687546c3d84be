"""The gate: verdicts on boards of known change, what it compares, and how often it is wrong."""

import numpy as np
import pytest
import xarray as xr

from boards import counted
from evalbayes import ArgumentError, OutcomesError, simulate
from evalbayes.gate import VERDICTS, _changes, _summed_up, _verdict, gate, paired
from evalbayes.posterior.draws import flat


def version(intercept: float, scored: int = 60, seed: int = 3) -> xr.Dataset:
    """A board of one config and 60 tasks, so that one compiled model serves all; some of them may have no run."""
    board = simulate.board(1, 60, 1, seed=seed, intercept=intercept, config_sd=0.0).drop_vars("outcome")
    kept = np.arange(60) < scored
    return board.assign(successes=board.successes * kept, trials=board.trials * kept)


@pytest.mark.parametrize(("new", "verdict"), [(-1.6, "fail"), (2.2, "pass")])
def test_a_change_that_is_there_is_found(new, verdict):
    """60 tasks and a change of 30 points or so."""
    result = gate(version(0.3), version(new), method="laplace")
    print(result.attrs["sentence"], result.interval.values.round(3).tolist())
    assert result.attrs["verdict"] == verdict
    assert result.attrs["sentence"].startswith(verdict)
    assert result.shared_tasks.item() == 60
    assert (result.new - result.base).item() == pytest.approx(result.estimate.item(), abs=1e-12)
    low, high = result.interval.values[0]
    assert (high < 0) if verdict == "fail" else (low > -0.02)


def test_few_tasks_are_insufficient_and_not_a_pass():
    result = gate(version(0.3, scored=12), version(0.3, scored=12, seed=4).assign_coords(config=["other"]))
    assert result.attrs["verdict"] == "insufficient"
    assert result.config.values.tolist() == ["other"]


def test_regression_is_the_share_of_draws_below_the_margin(fabricate):
    """By hand, on draws that no sampler has seen: P(d < -m), both sides of every threshold."""
    made = fabricate(np.ones((4, 8), int), np.full((4, 8), 2))
    names = ["a (base)", "b (base)", "a (new)", "b (new)"]
    for group in ("posterior", "observed_data", "constant_data"):
        made[group] = made[group].to_dataset().assign_coords(config=names)
    score = flat(made)["score"].transpose("config", "draw").values
    result = _changes(made, ["a", "b"], "sampled", 0.95, 0.02)
    none = xr.zeros_like(result.regression)
    result = result.assign(lost_tasks=none, more_errors=none)
    for config in range(2):
        change = score[2 + config] - score[config]
        share = float(np.mean(change < -0.02))
        assert float(result.regression[config]) == pytest.approx(share)
        expected = "fail" if share >= 0.7 else "pass" if share <= 0.3 else "insufficient"
        assert _verdict(result, 0.02, 0.7).values[config] == expected
        crashed = result.assign(more_errors=none + 0.1)
        assert _verdict(crashed, 0.02, 0.7).values[config] == expected.replace("pass", "insufficient")


@pytest.mark.parametrize(
    ("shares", "worst"), [((0.99, 0.0), "fail"), ((0.5, 0.0), "insufficient"), ((0.0, 0.01), "pass")]
)
def test_the_worst_verdict_is_the_boards(shares, worst):
    none = ("config", [0.0, 0.0])
    result = xr.Dataset({"regression": ("config", list(shares)), "lost_tasks": none, "more_errors": none})
    verdict = _verdict(result, 0.02, 0.95)
    result = result.assign(verdict=verdict, reason=("config", ["", ""])).assign_coords(config=["a", "b"])
    result = result.assign_coords(max_regression=0.02, probability=0.95).assign_attrs(only_base="", only_new="c")
    summed = _summed_up(result)
    assert "on the new board alone: c" in summed.attrs["sentence"]
    assert summed.attrs["verdict"] == worst
    assert VERDICTS.index(worst) == min(VERDICTS.index(one) for one in verdict.values)


def test_one_run_says_nothing_of_new_runs_of_these_tasks():
    result = gate(version(0.3), version(-1.6), tasks="fixed", method="laplace")
    assert result.attrs["verdict"] == "insufficient"
    assert "one run per cell" in result.attrs["sentence"]
    assert np.isnan(result.regression).all()


def test_configs_are_compared_by_name_and_on_shared_tasks():
    old = counted(np.array([[1, 0, 1], [1, 1, 0]]), 1)
    pairs, shared = paired(old, old.isel(config=[1], task=[0, 2]))
    assert pairs == {"c1": ("c1", "c1")}
    assert shared.values.tolist() == [2]
    with pytest.raises(OutcomesError, match="no config is on both"):
        paired(old, old.assign_coords(config=["x", "y"]))
    with pytest.raises(OutcomesError, match="shares no task"):
        gate(version(0.3), version(0.3).assign_coords(task=[f"other-{i}" for i in range(60)]))


@pytest.mark.parametrize(("option", "value"), [("max_regression", -0.1), ("probability", 0.5), ("prob", 1.0)])
def test_what_is_out_of_range_is_refused(option, value):
    with pytest.raises(ArgumentError, match=option):
        gate(version(0.3), version(0.3), **{option: value})


def test_crashes_and_missing_configs_do_not_pass():
    """Failures that became errors are no improvement, and a config that is gone is no pass."""
    base = counted(np.array([[1] * 40 + [0] * 20, [1] * 50 + [0] * 10]), 1)
    crashed = base.isel(config=[0]).copy(deep=True)
    crashed["trials"][0, 40:] = 0
    crashed["errors"][0, 40:] = 1
    result = gate(base, crashed, method="laplace")
    assert result.lost_tasks.item() == pytest.approx(20 / 60)
    assert result.more_errors.item() == pytest.approx(20 / 60)
    assert result.verdict.item() == "insufficient"
    assert "c0: 33.3% of the base's tasks have no scored run" in result.attrs["sentence"]
    assert "on the base alone: c1" in result.attrs["sentence"]
    assert result.attrs["verdict"] == "insufficient"
