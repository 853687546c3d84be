"""tau-bench trajectories, rebuilt from sierra-research/tau-bench tau_bench/run.py (commit 01ed5e31)."""

import json

import numpy as np
import pandas as pd
import pytest

from evalbayes import OutcomesError, frequentist, read


def entry(task, trial, reward, *, instruction="buy", **info):
    about = {"task": {"user_id": "u", "instruction": f"{instruction} {task}"}, "user_cost": 0.5, **info}
    return {"task_id": task, "reward": reward, "info": about, "traj": [{"role": "user"}], "trial": trial}


def raised(task, trial):
    """What run.py writes when the agent, or the service behind it, raised."""
    info = {"error": "RateLimitError", "traceback": "..."}
    return {"task_id": task, "reward": 0.0, "info": info, "traj": [], "trial": trial}


def test_rewards_are_outcomes_and_what_raised_has_none(write):
    entries = [entry(0, 0, 1.0), entry(0, 1, 0.0), entry(1, 0, 1.0000001), raised(1, 1)]
    board = read(write(json.dumps(entries), "gpt-x.json"))
    assert board.config.values.tolist() == ["gpt-x"]
    assert board.task.values.tolist() == ["0", "1"]
    assert board.outcome.values.tolist() == [[[1, 0], [1, -1]]]
    assert board.attrs["reader"] == "tau_bench"
    assert "1 run raised and have no score" in board.attrs["notes"]
    assert read(write(json.dumps(entries), "gpt-x.json"), errors="failure").trials.values.tolist() == [[2, 2]]


def test_task_0_of_another_domain_is_another_task(write, tmp_path):
    write(json.dumps([entry(0, 0, 1.0), raised(1, 0), entry(1, 1, 1.0)]), "a.json")
    write(json.dumps([entry(0, 0, 0.0, instruction="fly"), entry(1, 0, 0.0, instruction="fly")]), "b.json")
    board = read(tmp_path)
    assert board.sizes["task"] == 4
    assert int((board.trials > 0).any("config").sum()) == 4
    assert int(board.errors.sum()) == 1


def test_an_instruction_that_is_no_valid_text_still_tells_tasks_apart(write, tmp_path):
    write(json.dumps([entry(0, 0, 1.0, instruction="\ud800")]), "a.json")
    write(json.dumps([entry(0, 0, 1.0, instruction="\ud801")]), "b.json")
    assert read(tmp_path).sizes["task"] == 2


def test_partial_rewards_need_a_rule(write):
    path = write(json.dumps([entry(0, 0, 0.5)]), "a.json")
    with pytest.raises(OutcomesError, match=r"a\.json, entry 1 \(task 0, trial 0\): outcomes between 0 and 1"):
        read(path)
    assert read(path, threshold=0.5).successes.item() == 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"reward": "1"}, "entry 2: 'reward' is a str"),
        ({"reward": True}, "entry 2: 'reward' is a bool"),
        ({"task_id": None}, "entry 2: 'task_id' is null"),
        ({"trial": 1.5}, "entry 2: 'trial' is a float"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(write, change, fault):
    with pytest.raises(OutcomesError, match=fault):
        read(write(json.dumps([entry(0, 0, 1.0), entry(0, 1, 1.0) | change]), "a.json"))


def test_a_missing_field_is_named(write):
    broken = {key: value for key, value in entry(0, 1, 1.0).items() if key != "trial"}
    with pytest.raises(OutcomesError, match=r"a\.json, entry 2: there is no 'trial'"):
        read(write(json.dumps([entry(0, 0, 1.0), broken]), "a.json"))


def test_the_native_file_is_the_published_table(shared_data):
    """O8: pass^1..4 = .420 .273 .220 .200; cell by cell the packaged csv of the same runs."""
    board = read(shared_data / "native" / "tau_bench" / "gpt-4o-airline_traj_trimmed.json")
    assert dict(board.sizes) == {"config": 1, "task": 50, "run": 4}
    assert (int(board.successes.sum()), int(board.trials.sum()), int(board.errors.sum())) == (84, 200, 0)
    found = [float(frequentist.pass_all_k(board, k=k, tasks="fixed").estimate.item()) for k in (1, 2, 3, 4)]
    assert np.round(found, 3).tolist() == [0.42, 0.273, 0.22, 0.2]
    table = pd.read_csv(shared_data / "tau_bench_airline.csv")
    counts = table.groupby("task")["outcome"].sum()
    assert board.successes.values[0].tolist() == [counts[int(task)] for task in board.task.values]
