"""METR's runs, rebuilt from the code that reads them in METR/eval-analysis-public.

src/horizon/wrangle/logistic.py, compute_task_weights.py, agent_summary.py and token_usage_distribution.py (52d6b564)
src/horizon/generate_benchmark_results.py (6d03dca6) and src/plot/cost.py (517a6c39) give the fields; no writer is
public. Contents are invented.
"""

import json

import numpy as np
import pandas as pd
import pytest

import evalbayes
from evalbayes import OutcomesError
from evalbayes.read import metr
from evalbayes.read.attempts import NoAttempts, Options
from evalbayes.read.joined import Asked, board_of, part_of


def run(task="family/main", score=1, name="r1", **more):
    return {
        "task_id": task,
        "task_family": task.partition("/")[0],
        "run_id": name,
        "alias": "Agent One",
        "model": "agent-1",
        "score_binarized": score,
        "score_cont": None if score is None else score / 2 + 0.25,
        "fatal_error_from": None,
        "human_minutes": 30.5,
        "human_score": 1.0,
        "human_source": "baseline",
        "task_source": "HCAST",
        "generation_cost": 0.5,
        "human_cost": 40.0,
        "time_limit": 1800.0,
        "started_at": 1_000.0,
        "completed_at": 61_000.0,
        "equal_task_weight": 0.5,
        "invsqrt_task_weight": 0.5,
    } | more


def lines(*runs):
    """The numbered lines of a file, as it is read."""
    return ((number, json.loads(json.dumps(one))) for number, one in enumerate(runs, 1))


def made(path, *runs, **options):
    return metr.attempts(lines(*runs), path, Options(**options))


def board(tmp_path, *runs, rules=None, **options):
    path = tmp_path / "runs.jsonl"
    part = part_of(str(path), path.name, "metr", made(path, *runs, **options), {})
    return board_of([part], rules or {}, Asked("runs.jsonl", False))


def test_every_line_is_a_run(tmp_path):
    found = board(tmp_path, run(name="1"), run(score=0, name="2"), run(name="3"), run("other/a b", 0, "4"))
    assert found.config.values.tolist() == ["Agent One"]
    assert found.task.values.tolist() == ["family/main", "other/a b"]
    assert found.successes.values.tolist() == [[2, 0]]
    assert found.trials.values.tolist() == [[3, 1]]
    assert found.attrs["score_rule"].startswith("score_binarized")
    assert found.attrs["notes"] == ""


def test_facts_of_agents_tasks_and_runs_are_kept(tmp_path):
    found = board(
        tmp_path, run(name="1", tokens_count=100), run(score=0, name="2", tokens_count=300, generation_cost=1.5)
    )
    assert (found.model.item(), found.task_family.values.tolist(), found.suite.values.tolist()) == (
        "agent-1",
        ["family"],
        ["HCAST"],
    )
    assert found.suite.dims == found.task_family.dims == ("task",)
    assert (found.cost.item(), found.tokens.item(), found.time.item()) == (1.0, 200.0, 60.0)


def test_a_run_ended_by_a_fatal_error_keeps_its_score(tmp_path):
    found = board(
        tmp_path,
        run(name="1", fatal_error_from="usageLimits"),
        run(score=0, name="2", fatal_error_from="usageLimits"),
        run(score=0, name="3", fatal_error_from="serverOrTask"),
    )
    assert (int(found.successes.sum()), int(found.trials.sum()), int(found.errors.sum())) == (1, 3, 0)
    assert "3 runs were ended by a fatal error (usageLimits 2, serverOrTask 1)" in found.attrs["notes"]


@pytest.mark.parametrize("score", [None, float("nan")])
def test_a_run_without_a_score_is_no_failure(tmp_path, score):
    found = board(tmp_path, run(name="1"), run(name="2", score_binarized=score))
    assert (found.trials.item(), found.errors.item()) == (1, 1)


def test_the_score_before_it_was_cut_needs_a_rule(tmp_path):
    runs = [run(name="1"), run(score=0, name="2")]
    with pytest.raises(OutcomesError, match=r"runs\.jsonl, line 1: outcomes between 0 and 1: .*threshold="):
        board(tmp_path, *runs, score="score_cont")
    assert board(tmp_path, *runs, score="score_cont", rules={"threshold": 0.5}).successes.item() == 1
    with pytest.raises(OutcomesError, match=r"no score 'points' among its scores score_binarized, score_cont"):
        board(tmp_path, *runs, score="points")


def test_a_copy_is_known_by_its_run_and_times(tmp_path):
    again = run(name="1", started_at=2_000.0, score=0)
    found = board(tmp_path, run(name="1"), run(name="1"), again)
    assert (found.attrs["n_duplicates_dropped"], found.trials.item(), found.successes.item()) == (1, 2, 1)
    nameless = board(tmp_path, run(name=None), run(name=None))
    assert (nameless.attrs["n_duplicates_dropped"], nameless.trials.item()) == (0, 2)


def test_a_name_without_times_does_not_make_a_copy(tmp_path):
    found = board(tmp_path, *[run(name="0", started_at=0, completed_at=0)] * 3)
    assert (found.attrs["n_duplicates_dropped"], found.trials.item()) == (0, 3)


def test_scores_that_are_true_or_false(tmp_path):
    found = board(tmp_path, run(name="1", score_binarized=True), run(name="2", score_binarized=False))
    assert (found.successes.item(), found.trials.item()) == (1, 2)


def test_several_scaffolds_of_an_agent_are_told(tmp_path):
    runs = [run(name="1", scaffold="flock"), run(name="2", scaffold="modular"), run("b", name="3", scaffold="flock")]
    found = board(tmp_path, *runs)
    assert found.trials.values.tolist() == [[2, 1]]
    assert "1 tasks have runs of one agent in several scaffolds (Agent One)" in found.attrs["notes"]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in runs))
    apart = evalbayes.read(path, config=["config", "scaffold"])
    assert apart.attrs["reader"] == "metr"
    assert apart.config.values.tolist() == ["Agent One + flock", "Agent One + modular"]
    assert apart.trials.values.tolist() == [[1, 1], [1, 0]]
    assert board(tmp_path, *runs[::2]).attrs["notes"] == ""


def test_the_older_form_has_no_alias_source_or_times(tmp_path):
    older = {"task_id": "t", "model": "davinci-002", "score_binarized": 0, "human_minutes": 1.0}
    found = board(tmp_path, older, older)
    assert (found.config.item(), found.trials.item()) == ("davinci-002", 2)
    assert board(tmp_path, run(alias=None)).config.item() == "agent-1"


def test_versions_of_a_task_are_kept_apart(tmp_path):
    found = board(tmp_path, run(task_version="1.0", name="1"), run(score=0, task_version="1.1", name="2"))
    assert found.task.values.tolist() == ["family/main@1.0", "family/main@1.1"]


def test_times_that_say_nothing_are_left_out(tmp_path):
    rows = made(tmp_path / "a.jsonl", run(started_at=0, completed_at=0), run(started_at=None), run(started_at="x")).rows
    assert "time" not in rows


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"score_binarized": "1"}, r"a\.jsonl, line 2: 'score_binarized' is a str"),
        ({"score_binarized": [1]}, "line 2: 'score_binarized' is a list"),
        ({"task_id": None}, "line 2: 'task_id' is null"),
        ({"alias": None, "model": None}, "line 2: neither 'alias' nor 'model' names the agent"),
        ({"alias": 3}, "line 2: 'alias' is a int"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(tmp_path, change, fault):
    with pytest.raises(OutcomesError, match=fault):
        made(tmp_path / "a.jsonl", run(), run() | change)


@pytest.mark.parametrize("field", ["task_id", "score_binarized"])
def test_a_missing_field_is_named(tmp_path, field):
    broken = {key: value for key, value in run().items() if key != field}
    assert not metr.recognises(broken, tmp_path)
    with pytest.raises(OutcomesError, match=rf"a\.jsonl, line 2: there is no '{field}'"):
        made(tmp_path / "a.jsonl", run(), broken)


def test_a_line_that_is_no_object_and_no_line_at_all(tmp_path):
    with pytest.raises(OutcomesError, match="line 2: a list where an object with 'score_binarized' is expected"):
        made(tmp_path / "a.jsonl", run(), [1])
    with pytest.raises(NoAttempts, match="there is no attempt"):
        made(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        3,
        {"config": "a", "task": "t", "run": 1, "outcome": 1},
        {"model": "m", "task_id": "t", "passed": True},
        {"score_binarized": 1, "task_id": "t"},
        {"evaluation_id": "e", "model_id": "m", "evaluation_name": "n", "sample_id": "s", "evaluation": {}},
    ],
)
def test_other_lines_are_not_recognised(tmp_path, content):
    assert not metr.recognises(content, tmp_path / "a.jsonl")
    assert metr.recognises(run(), tmp_path / "a.jsonl")


def test_the_published_runs_give_the_table_made_of_them(tmp_path, shared_data):
    """The lines are rebuilt from the packaged csv, so that only the way back is tested: 7063 runs, 2129 passes."""
    table = pd.read_csv(shared_data / "metr_all_runs.csv.gz", keep_default_na=False, dtype={"config": str, "task": str})
    rows = table[["config", "model", "task", "task_family", "outcome", "fatal_error_from"]].to_dict("records")
    runs = [
        {
            "alias": one["config"],
            "model": one["model"],
            "task_id": one["task"],
            "task_family": one["task_family"],
            "score_binarized": one["outcome"],
            "fatal_error_from": one["fatal_error_from"] or None,
        }
        for one in rows
    ]
    found = board(tmp_path, *runs)
    assert (int(found.trials.sum()), int(found.successes.sum()), int(found.errors.sum())) == (7063, 2129, 0)
    counts = table.groupby(["config", "task"])["outcome"].agg(["sum", "size"])
    cells = found[["successes", "trials"]].to_dataframe()[["successes", "trials"]]
    assert (cells.loc[counts.index].to_numpy() == counts.to_numpy()).all()
    assert int(cells["trials"].sum()) == int(counts["size"].sum())
    assert np.isin(["human", "o1"], found.config.values).all()
