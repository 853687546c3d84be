"""Terminal-Bench runs, rebuilt from the package terminal-bench 0.2.18 (laude-institute/terminal-bench).

terminal_bench/harness/models.py gives the fields, harness.py where is_resolved stays null, agents/failure_mode.py the
failure modes. laude-institute/terminal-bench-leaderboard
results/terminal-bench-core:0.1.1/20250811_cursor-cli_claude-4-sonnet/run1_2025-08-10__05-27-18/results.json (14e607d0)
is a run; finyorko/longcli-bench terminal_bench/harness/models.py (82c7eb3b) has fields that came later.
"""

import json

import pytest

from evalbayes import OutcomesError
from evalbayes.board import audit
from evalbayes.read import terminal_bench
from evalbayes.read.attempts import NoAttempts, Options
from evalbayes.tabulate import from_rows

COLUMNS = {name: name for name in ("config", "task", "run", "outcome", "status")}


def trial(task, resolved=True, mode="unset", k=1, n=1, run="2026-01-01__00-00-00", **more):
    return {
        "id": f"{task}-{k}-{run}",
        "trial_name": f"{task}.{k}-of-{n}.{run}",
        "task_id": task,
        "instruction": "Do it.",
        "is_resolved": resolved,
        "failure_mode": mode,
        "parser_results": None if resolved is None else {"test_it": "passed" if resolved else "failed"},
        "recording_path": None,
        "total_input_tokens": 100,
        "total_output_tokens": 11,
        "trial_started_at": "2026-01-01T00:00:00+00:00",
        "trial_ended_at": "2026-01-01T00:03:00+00:00",
        "agent_started_at": "2026-01-01T00:00:30+00:00",
        "agent_ended_at": "2026-01-01T00:02:00.500000+00:00",
        "test_started_at": None,
        "test_ended_at": None,
    } | more


def results(*trials):
    """BenchmarkResults with its computed fields."""
    passed = [one["task_id"] for one in trials if one["is_resolved"]]
    failed = [one["task_id"] for one in trials if not one["is_resolved"]]
    return {
        "id": "r",
        "results": list(trials),
        "pass_at_k": {},
        "n_resolved": len(passed),
        "n_unresolved": len(failed),
        "resolved_ids": passed,
        "unresolved_ids": failed,
        "accuracy": len(passed) / len(trials) if trials else 0.0,
    }


def metadata(**more):
    return {
        "run_id": "2026-01-01__00-00-00",
        "uuid": "u",
        "dataset_name": "terminal-bench-core",
        "dataset_version": "0.1.1",
        "output_path": "/runs",
        "agent_name": "terminus",
        "no_rebuild": False,
        "cleanup": True,
        "log_level": 20,
        "task_ids": None,
        "n_attempts": 1,
        "accuracy": None,
        "model_name": "vendor/model-1",
        "start_time": "2026-01-01T00:00:00+00:00",
        "agent_kwargs": None,
    } | more


@pytest.fixture
def read(tmp_path):
    def read(content, folder="run-1", about=None):
        path = tmp_path / folder / "results.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        if about is not False:
            (path.parent / "run_metadata.json").write_text(json.dumps(metadata() if about is None else about))
        return terminal_bench.attempts(json.loads(json.dumps(content)), path, Options())

    return read


def board(made):
    columns = {role: name for role, name in COLUMNS.items() if name in made.rows}
    return from_rows(made.rows, columns, {}, place=made.where, source="x", reader="x", tasks=made.tasks)


def test_agent_and_model_are_the_config_and_the_trial_says_the_run(read):
    made = read(
        results(trial("a.b", k=1, n=2), trial("a.b", False, k=2, n=2)), about=metadata(task_ids=["a.b", "never-run"])
    )
    counted = board(made)
    assert counted.config.values.tolist() == ["terminus + vendor/model-1"]
    assert counted.run.values.tolist() == ["1", "2"]
    assert counted.trials.sel(task=["a.b", "never-run"]).values.tolist() == [[2, 0]]
    assert counted.successes.sel(task="a.b").values.tolist() == [1]
    facts = ["agent", "model", "invocation", "suite", "task_version", "date", "uuid", "tokens", "time"]
    assert made.rows[facts].iloc[0].tolist() == [
        *("terminus", "vendor/model-1", "2026-01-01__00-00-00", "terminal-bench-core", "0.1.1", "2026-01-01"),
        *("a.b-1-2026-01-01__00-00-00", 111, 90.5),
    ]
    assert made.where(1) == "results, entry 2 (a.b)"
    assert made.notes == []


@pytest.mark.parametrize(
    ("mode", "outcome", "status"),
    [
        ("test_timeout", None, "error"),
        ("parse_error", None, "error"),
        ("unknown_agent_error", None, "error"),
        ("agent_installation_failed", None, "error"),
        ("unknown", None, "error"),
        ("unset", None, "error"),
        ("none", None, "error"),
        (None, None, "error"),
        ("agent_timeout", 0, "ok"),
        ("context_length_exceeded", 0, "ok"),
        ("output_length_exceeded", 0, "ok"),
        ("fatal_llm_parse_error", 0, "ok"),
    ],
)
def test_without_a_test_result_only_a_failure_of_the_agent_is_a_failure(read, mode, outcome, status):
    made = read(results(trial("a", None, mode), trial("b")))
    assert made.rows.loc[0, ["outcome", "status"]].tolist() == [outcome, status]


@pytest.mark.parametrize("mode", ["agent_timeout", "unknown_agent_error", "test_timeout"])
@pytest.mark.parametrize("resolved", [True, False])
def test_a_test_result_counts_whatever_became_of_the_agent(read, mode, resolved):
    made = read(results(trial("a", resolved, mode)))
    assert made.rows.loc[0, ["outcome", "status"]].tolist() == [int(resolved), "ok"]


def test_the_note_says_that_the_harness_counts_a_missing_score_as_unresolved(read):
    made = read(
        results(
            trial("a"), trial("b", False), trial("c", None, "test_timeout"), trial("d", False, "unknown_agent_error")
        )
    )
    assert made.notes == [
        "run-1/results.json: 1 trials have no score (test_timeout 1), unresolved for the harness: its accuracy is out "
        "of 4 trials, here it is out of 3",
        "run-1/results.json: failures after which the agent had broken (unknown_agent_error 1) count as failures",
    ]
    config = "terminus + vendor/model-1"
    assert made.header == {config: {"successes": 1, "trials": 4, "rate": 0.25}}
    found = audit(board(made), header=made.header)
    assert found.errors == 0
    assert found.kind.values.tolist() == ["denominator"]


def test_a_header_that_does_not_add_up_is_told(read):
    made = read(results(trial("a"), *(trial(task, False) for task in "bcd")) | {"accuracy": 0.75, "n_resolved": 2})
    assert made.notes == ["run-1/results.json: its header says accuracy 0.75, its trials give 1 of 4"]
    assert set(audit(board(made), header=made.header).kind.values) == {"header_count", "header_rate"}


def test_another_run_is_another_evaluation_and_a_trial_without_a_name_is_numbered(read):
    first, second = (
        read(results(trial("a", run=run)), folder=run, about=metadata(run_id=run)) for run in ("r.1", "r.2")
    )
    assert [made.rows.loc[0, ["run", "invocation"]].tolist() for made in (first, second)] == [
        ["1", "r.1"],
        ["1", "r.2"],
    ]
    unnamed = [
        {key: value for key, value in trial("a", i == 1).items() if key not in ("trial_name", "id")} for i in (1, 2)
    ]
    made = read(results(*unnamed))
    assert made.rows["run"].tolist() == ["1", "2"]
    assert "uuid" not in made.rows
    assert read(results(trial("a", trial_name="my trial"))).rows["run"].tolist() == ["my trial"]


def test_the_metadata_must_be_beside_it_and_name_the_agent(read):
    with pytest.raises(OutcomesError, match=r"run-1/results.json: there is no run_metadata.json beside it"):
        read(results(trial("a")), about=False)
    with pytest.raises(OutcomesError, match=r"run_metadata.json: there is no 'agent_name'"):
        read(results(trial("a")), about={"model_name": "m"})
    with pytest.raises(OutcomesError, match=r"run_metadata.json: a list where an object"):
        read(results(trial("a")), about=[])
    alone = read(results(trial("a")), about={"agent_name": "oracle"})
    assert alone.rows.loc[0, ["config", "invocation"]].tolist() == ["oracle", "2026-01-01__00-00-00"]
    assert "model" not in alone.rows


def test_settings_of_the_agent_make_another_config_of_the_same_name(read):
    made = read(results(trial("a")), about=metadata(agent_kwargs={"effort": "high"}))
    assert made.rows["agent_kwargs"].tolist() == ['{"effort": "high"}']
    assert "agent_kwargs" in made.variants


def test_the_file_of_one_trial_is_passed_over_for_that_of_the_run(read):
    assert terminal_bench.recognises(trial("a"), None)
    with pytest.raises(NoAttempts, match="one trial of a run; read"):
        read(trial("a"))


def test_a_run_without_a_trial_has_no_attempt(read):
    assert terminal_bench.recognises(results(), None)
    with pytest.raises(NoAttempts, match="no attempt"):
        read(results())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"results": [trial("a"), {"task_id": "b"}]}, r"results, entry 2: there is no 'is_resolved'"),
        ({"results": [trial("a", "yes")]}, r"results, entry 1: 'is_resolved' is a str, not bool"),
        ({"results": [trial("a", 1)]}, r"results, entry 1: 'is_resolved' is a int, not bool"),
        ({"results": [trial("a", task_id=3)]}, r"results, entry 1: 'task_id' is a int, not str"),
        ({"results": [trial("a", failure_mode=["x"])]}, r"results, entry 1: 'failure_mode' is a list"),
        ({"results": [trial("a", trial_name=None)]}, r"results, entry 1: 'trial_name' is null, not str"),
        ({"results": ["a"]}, r"results, entry 1: a str where an object"),
        ({"results": {"a": True}}, r"'results' is a dict, not list"),
        ({}, r"there is no 'results'"),
        (None, r"null where an object"),
        ([], r"a list where an object"),
    ],
)
def test_damage_is_one_line_that_names_the_file_and_the_place(read, tmp_path, content, message):
    with pytest.raises(OutcomesError, match=message) as caught:
        read(content)
    assert str(caught.value).startswith(str(tmp_path / "run-1" / "results.json"))
    assert "\n" not in str(caught.value)


def test_what_is_recognised():
    assert terminal_bench.recognises(results(trial("a")), None)
    for other in (None, 3, [], {}, {"results": []}, {"results": {}}, {"results": [1]}, {"results": [{"task_id": "a"}]}):
        assert not terminal_bench.recognises(other, None)
    assert not terminal_bench.recognises({"task_id": "a", "is_resolved": True}, None)


def test_later_fields_odd_names_and_times_that_are_none(read):
    odd = "crack-7z-hash.easy / ü"
    later = {"pass_rate": 0.5, "long_cli": {"a": 1}, "agent_ended_at": "soon", "total_input_tokens": None}
    made = read(
        results(trial(odd, **later), trial("b", agent_ended_at="2026-01-01T00:02:00")) | {"long_cli_n_attempts": {}}
    )
    assert made.rows["task"].tolist() == [odd, "b"]
    assert made.rows["tokens"].tolist() == [11, 111]
    assert "time" not in made.rows
