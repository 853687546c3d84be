"""HAL uploads, rebuilt from princeton-pli/hal-harness.

hal/benchmarks/base_benchmark.py (d3953107, older; 002a7495, newer) writes the upload; what its raw results are is for
each benchmark: taubench.py (2bb9fb00), gaia.py (2cf57f45), colbench.py (19bd91f1), swebench.py (57adfaeb), usaco.py
(9714837a), appworld.py (21d8dfd1), scicode.py (0b014400), assistantbench.py (2108ebdf, 509b3d94), corebench.py
(002a7495), replicatorbench.py (5fe71e0e). hal/inspect_runner.py (120e323f) writes the upload of an Inspect log and
inspect_benchmark.py (34101973) its lists, hal/terminal_bench_harbor.py (8b4bd52f) that of Terminal-Bench;
UniPat-AI/harbor_multiturn src/harbor/trial/single_step.py (8b41dd01) shows after which exceptions Harbor verifies.
hal/utils/encryption.py (7be914a7) and json_encryption.py (57adfaeb) give the form of an encrypted upload. Contents are
invented.
"""

import json

import pytest

import evalbayes
from evalbayes import OutcomesError
from evalbayes.board import audit
from evalbayes.read import hal
from evalbayes.read.attempts import NoAttempts, Options
from evalbayes.read.joined import Asked, board_of, part_of

TAU = {
    "0": {"reward": 1.0, "taken_actions": []},
    "1": {"reward": 0.0, "taken_actions": []},
    "2": "ERROR: connection closed",
}


def upload(raw, passed=None, failed=None, *, agent="Agent (model-a)", run="taubench_1", benchmark="taubench", **more):
    """An upload; ``more`` is what its results have beside the lists of tasks, or ``agent_args``."""
    args = more.pop("agent_args", {"model_name": "model-a"})
    config = {
        "agent_name": agent,
        "benchmark_name": benchmark,
        "date": "2026-01-02",
        "run_id": run,
        "agent_args": args,
        "run_command": "hal-eval",
    }
    lists = {"successful_tasks": passed, "failed_tasks": failed}
    results = {name: tasks for name, tasks in lists.items() if tasks is not None} | more
    return {
        "config": config,
        "results": {**results, "total_cost": 3.5, "latencies": {}},
        "raw_eval_results": raw,
        "raw_logging_results": [],
        "total_usage": {},
        "total_cost": 3.5,
        "git_info": {},
    }


def made(content, path, **options):
    """The attempts of a document, through text as a file has it."""
    content = json.loads(json.dumps(content))
    assert hal.recognises(content, path)
    return hal.attempts(content, path, Options(**options))


def board(tmp_path, *contents, score=None, configs_named=False, **rules):
    paths = [tmp_path / f"{i}_UPLOAD.json" for i in range(len(contents))]
    parts = [
        part_of(str(path), path.name, "hal", made(one, path, score=score), {})
        for path, one in zip(paths, contents, strict=True)
    ]
    return board_of(parts, rules, Asked("uploads", len(parts) > 1, None, configs_named))


def cells(found):
    """Task to (passes, scored runs, errors) of the only config."""
    values = zip(*(found[name].values[0].tolist() for name in ("successes", "trials", "errors")), strict=True)
    return dict(zip(found.task.values.tolist(), values, strict=True))


# -- results that go by task


def test_rewards_by_task_and_an_agent_that_raised(tmp_path):
    found = board(tmp_path, upload(TAU, ["0"], ["1", "2"], accuracy=1 / 50))
    assert found.config.values.tolist() == ["Agent (model-a)"]
    assert cells(found) == {"0": (1, 1, 0), "1": (0, 1, 0), "2": (0, 0, 1)}
    assert found.run.values.tolist() == ["taubench_1"]
    assert (found.model.item(), found.date.item(), found.run_cost.item()) == ("model-a", "2026-01-02", 3.5)
    assert found.suite.values.tolist() == ["taubench"] * 3
    assert found.attrs["notes"] == "0_UPLOAD.json: 1 of 3 attempts have no score; HAL counts them as failed"
    assert made(upload(TAU), tmp_path / "a.json").where(1) == "raw_eval_results, 1"
    assert board(tmp_path, upload(TAU), errors="failure").trials.values.tolist() == [[1, 1, 1]]


def test_an_agent_that_always_raised_has_no_score(tmp_path):
    found = board(tmp_path, upload({"0": "ERROR", "1": None, "2": "ERROR"}, [], ["0", "1", "2"]))
    assert cells(found) == {"0": (0, 0, 1), "1": (0, 0, 1), "2": (0, 0, 1)}


def test_scores_that_are_true_or_false(tmp_path):
    raw = {"a-1": {"score": True, "explanation": ""}, "b/2 é": {"score": False, "explanation": ""}}
    content = upload(raw, ["a-1"], ["b/2 é"], benchmark="gaia", accuracy=0.5, level_1_accuracy=None)
    found = board(tmp_path, content)
    assert cells(found) == {"a-1": (1, 1, 0), "b/2 é": (0, 1, 0)}
    assert audit(found).sizes["finding"] == 0


def test_numbers_by_task_need_a_rule_where_they_are_between(tmp_path):
    content = upload({"0": 1, "1": 0.5, "2": 0}, ["0"], ["1", "2"], benchmark="colbench", average_correctness=0.5)
    with pytest.raises(OutcomesError, match=r"0_UPLOAD\.json, raw_eval_results, 1: outcomes between 0 and 1: 0\.5"):
        board(tmp_path, content)
    assert board(tmp_path, content, threshold=1).successes.values.tolist() == [[1, 0, 0]]
    assert "header" not in board(tmp_path, content, threshold=1).attrs


def test_the_threshold_of_the_harness_is_told(tmp_path):
    content = upload({"0": 0.9, "1": 0.3}, ["0"], ["1"], similarity_threshold=0.8, accuracy=0.5)
    found = board(tmp_path, content, threshold=0.8)
    assert found.successes.values.tolist() == [[1, 0]]
    assert "HAL counts scores of 0.8 or more as successes (threshold=0.8)" in found.attrs["notes"]


def test_prompt_variations_are_runs(tmp_path):
    raw = {"0": [{"score": 1.0}, {"score": 0.0}], "1": [{"score": 0.0}, {"error": "raised"}]}
    found = board(tmp_path, upload(raw, ["0"], ["1"], accuracy=0.25))
    assert found.run.values.tolist() == ["taubench_1/1", "taubench_1/2"]
    assert found.outcome.values.tolist() == [[[1, 0], [0, -1]]]
    assert "prompt variations of a task are read as its runs" in found.attrs["notes"]
    assert "only one of" not in found.attrs["notes"]
    assert "header" not in found.attrs


def test_reward_and_score_together_need_a_choice(tmp_path):
    content = upload({"0": {"reward": 1, "score": 0}})
    with pytest.raises(OutcomesError, match="raw_eval_results, 0: scores reward, score: say which counts with score="):
        board(tmp_path, content)
    assert board(tmp_path, content, score="reward").successes.item() == 1
    assert board(tmp_path, content, score="score").successes.item() == 0


def test_a_null_reward_is_no_failure(tmp_path):
    raw = {"0": {"reward": None}, "1": {"reward": 1.0}, "2": {"error": "out of memory"}}
    assert cells(board(tmp_path, upload(raw))) == {"0": (0, 0, 1), "1": (1, 1, 0), "2": (0, 0, 1)}


def test_lists_that_say_another_thing_are_noted(tmp_path):
    found = board(tmp_path, upload({"0": {"reward": 1.0}, "1": {"reward": 0.0}}, ["1"], ["0"]))
    assert found.successes.values.tolist() == [[1, 0]]
    assert "2 tasks pass in only one of raw_eval_results, which is read, and successful_tasks" in found.attrs["notes"]


def test_seconds_and_steps_of_the_newer_form(tmp_path):
    more = {"agent_hash": "f00", "wall_clock_times": {"0": 12.5, "1": 4}, "task_step_counts": {"0": 7, "1": 3}}
    found = board(tmp_path, upload(TAU) | more)
    assert found.time.values[0].tolist()[:2] == [12.5, 4.0]
    assert found.steps.values[0].tolist()[:2] == [7.0, 3.0]


def test_figures_of_the_whole_run_are_not_taken_for_tasks(tmp_path):
    for raw in ({"average_score": 0.75, "n": 10}, {"status": "error", "message": "out of disk"}):
        with pytest.raises(OutcomesError, match="raw_eval_results does not go by task"):
            made(upload(raw, average_score=0.75), tmp_path / "a.json")
        assert cells(board(tmp_path, upload(raw, ["t"], []))) == {"t": (1, 1, 0)}


def test_a_score_that_is_not_a_number_is_no_failure(tmp_path):
    found = board(tmp_path, upload({"0": {"score": float("nan")}, "1": {"score": 1}}))
    assert cells(found) == {"0": (0, 0, 1), "1": (1, 1, 0)}


def test_prompt_variations_that_raised_or_are_numbers(tmp_path):
    content = upload({"0": [1.0, "ERROR: closed"], "1": [{"reward": 0.0}, {"reward": 1.0}]})
    content["config"]["prompt_sensitivity"] = True
    assert board(tmp_path, content).outcome.values.tolist() == [[[1, -1], [0, 1]]]


def test_an_exception_after_which_harbor_does_not_verify_leaves_no_score(tmp_path):
    def trial(reward, exception=None):
        return {"reward": reward, "cost": 0.5, "harbor_exception": exception and {"exception_type": exception}}

    raw = {
        "late": trial(0.0, "AgentTimeoutError"),
        "exit": trial(0.0, "NonZeroAgentExitCodeError"),
        "build": trial(0.0, "EnvironmentStartTimeoutError"),
        "judge": trial(0.0, "VerifierTimeoutError"),
        "passed": trial(1.0, "CancelledError"),
        "failed": trial(0.0),
    }
    passed, failed = ["passed"], [name for name in raw if name != "passed"]
    about = {"costs": {"late": 0.5, "exit": 0.25}, "latencies": {"late": {"total_time": 30.0}}}
    found = board(tmp_path, upload(raw, passed, failed, benchmark="terminal_bench", accuracy=1 / 6))
    assert cells(found) == {
        "late": (0, 1, 0),
        "exit": (0, 1, 0),
        "build": (0, 0, 1),
        "judge": (0, 0, 1),
        "passed": (1, 1, 0),
        "failed": (0, 1, 0),
    }
    content = upload(raw, passed, failed)
    content["results"] |= about
    measured = board(tmp_path, content)
    assert measured.cost.values[0].tolist()[:2] == [0.5, 0.25]
    assert measured.time.values[0, 0] == 30.0


# -- results that do not


def report(**lists):
    """A report of the SWE-bench harness, as raw results."""
    names = ("resolved", "unresolved", "error", "empty_patch", "completed", "submitted")
    return {
        "total_instances": 500,
        "resolved_instances": len(lists.get("resolved", [])),
        **{f"{name}_ids": lists.get(name, []) for name in names},
        "schema_version": 2,
    }


def test_a_swe_bench_report_has_errors_among_the_failed(tmp_path):
    raw = report(resolved=["org__a-1"], unresolved=["org__a-2"], error=["org__b-3"])
    found = board(tmp_path, upload(raw, ["org__a-1"], ["org__a-2", "org__b-3"], benchmark="swebench_verified_mini"))
    assert cells(found) == {"org__a-1": (1, 1, 0), "org__a-2": (0, 1, 0), "org__b-3": (0, 0, 1)}
    assert found.repository.values.tolist() == ["org/a", "org/a", "org/b"]
    assert found.attrs["score_rule"].startswith("successful_tasks and failed_tasks")
    assert made(upload(raw, ["org__a-1"], []), tmp_path / "a.json").where(0) == "successful_tasks, entry 1"


def test_an_empty_patch_is_a_failure_though_hal_does_not_list_it(tmp_path):
    raw = report(resolved=["org__a-1"], unresolved=["org__a-2"], empty_patch=["org__a-3", "org__a-4"])
    found = board(tmp_path, upload(raw, ["org__a-1"], ["org__a-2", "org__a-4"], accuracy=0.25))
    assert cells(found) == {"org__a-1": (1, 1, 0), "org__a-2": (0, 1, 0), "org__a-4": (0, 1, 0), "org__a-3": (0, 1, 0)}
    assert found.attrs["notes"].endswith("1 empty patches, which HAL leaves out of failed_tasks, are failures")
    assert audit(found).errors == 0


def test_a_sample_of_an_inspect_log_without_a_score_has_none(tmp_path):
    samples = [
        {"id": "a", "epoch": 1, "scores": {"gaia_scorer": {"value": "C"}}},
        {"id": "b", "epoch": 1, "scores": {"gaia_scorer": {"value": "I"}}},
        {"id": 3, "epoch": 1, "error": {"message": "closed"}},
        {"id": "d", "epoch": 1, "scores": None},
    ]
    raw = {"version": 2, "status": "success", "eval": {}, "samples": samples}
    content = upload(raw, ["a"], ["b", 3, "d"], benchmark="inspect_evals/gaia", accuracy=0.5)
    del content["total_cost"]
    path = tmp_path / "gaia_1_UPLOAD.json"
    path.write_text(json.dumps(content))
    found = evalbayes.read(path)
    assert found.attrs["reader"] == "hal"
    assert cells(found) == {"a": (1, 1, 0), "b": (0, 1, 0), "3": (0, 0, 1), "d": (0, 0, 1)}
    assert found.run_cost.item() == 3.5


def test_an_inspect_log_whose_tasks_hal_does_not_list_is_refused(tmp_path):
    content = upload({"status": "success", "samples": []})
    content["results"] |= {"successful_tasks": None, "failed_tasks": None}
    with pytest.raises(OutcomesError, match="the outcomes of tasks are not in this upload"):
        made(content, tmp_path / "a.json")


def test_a_success_in_agentharm_is_a_refusal_and_its_accuracy_no_rate(tmp_path):
    content = upload({"samples": []}, ["a"], ["b"], benchmark="inspect_evals/agentharm_benign", accuracy=0.9)
    found = board(tmp_path, content)
    assert found.successes.values.tolist() == [[1, 0]]
    assert "successful_tasks are those that the agent refused" in found.attrs["notes"]
    assert "header" not in found.attrs


def test_a_list_of_passed_tasks(tmp_path):
    raw = {"a": {"task_id": "a", "correct": True}, "b": {"task_id": "b", "correct": False}}
    found = board(tmp_path, upload(raw, None, ["b"], passed_tasks=["a"], pass_rate_all_stages=0.5))
    assert cells(found) == {"a": (1, 1, 0), "b": (0, 1, 0)}
    assert found.attrs["score_rule"].startswith("passed_tasks and failed_tasks")
    assert audit(found).sizes["finding"] == 0


def test_answers_that_could_not_be_parsed_are_failures(tmp_path):
    wrong = {"correct_written_answers": 0, "total_written_questions": 1, "error": "Expecting value"}
    assert cells(board(tmp_path, upload({"a": wrong}, [], ["a"], benchmark="corebench_hard"))) == {"a": (0, 1, 0)}


@pytest.mark.parametrize(
    "raw",
    [
        {"scores": [0.5], "answers": [1], "successful_tasks": ["t"], "failed_tasks": ["7"]},
        {"rdict": {"1_a": []}, "sdict": {"1_a": [{"result": {"fraction_passed": 1}}]}, "rs": [[]], "ss": [[]]},
        {"aggregate": {"task_goal_completion": 50}, "individual": {"t": {"success": True}}},
        {"details": {"1": ["1.1"], "2": []}},
        {"t": {"correct_written_answers": 1, "total_written_questions": 1, "error": "x"}},
        {"version": 2, "status": "success", "samples": [{"id": 1}]},
        report(),
        [1, 0],
        None,
        {},
    ],
)
def test_other_raw_results_are_read_from_the_lists(tmp_path, raw):
    found = board(tmp_path, upload(raw, ["t"], [7]))
    assert cells(found) == {"t": (1, 1, 0), "7": (0, 1, 0)}


def test_scores_without_names_are_refused(tmp_path):
    raw = {"scores": [0.5, 1.0], "answers": [1, 1], "exact_matches": [1]}
    with pytest.raises(OutcomesError, match=r"a\.json: raw_eval_results does not go by task, and results has no succ"):
        made(upload(raw, average_score=0.75), tmp_path / "a.json")
    with pytest.raises(OutcomesError, match=r"a\.json, results: there is no 'failed_tasks'"):
        made(upload(raw, ["a"]), tmp_path / "a.json")
    with pytest.raises(OutcomesError, match=r"a\.json, results: 'failed_tasks' is a dict, not list"):
        made(upload(raw, ["a"], {"b": 1}), tmp_path / "a.json")


def test_a_task_in_both_lists_is_refused(tmp_path):
    with pytest.raises(OutcomesError, match=r"a\.json, results: task 'b' is in successful_tasks and in failed_tasks"):
        made(upload({}, ["a", "b"], ["b"]), tmp_path / "a.json")


@pytest.mark.parametrize(
    ("passed", "failed", "fault"),
    [
        (["a"], ["b", "b"], "task 'b' is in failed_tasks twice"),
        (["a", {"id": "b"}], [], r"successful_tasks, entry 2: {'id': 'b'} is not the name of a task"),
        (["a"], [None], "failed_tasks, entry 1: None is not the name of a task"),
        (["a"], [True], "failed_tasks, entry 1: True is not the name of a task"),
    ],
)
def test_a_list_that_is_damaged_is_named(tmp_path, passed, failed, fault):
    with pytest.raises(OutcomesError, match=rf"a\.json, results[:,] {fault}"):
        made(upload({}, passed, failed), tmp_path / "a.json")


# -- several uploads


def test_uploads_of_an_agent_are_runs_and_the_same_one_is_a_copy(tmp_path):
    one, other = upload(TAU, run="r1"), upload(TAU | {"1": {"reward": 1.0}}, run="r2")
    found = board(tmp_path, one, other, one)
    assert found.outcome.values.tolist() == [[[1, 1], [0, 1], [-1, -1]]]
    assert found.attrs["n_duplicates_dropped"] == 3
    with pytest.raises(OutcomesError, match=r"task '1', run 'r1' is on .* too, with another outcome"):
        board(tmp_path, one, upload(TAU | {"1": {"reward": 1.0}}, run="r1"))


def test_other_arguments_of_the_agent_are_not_mixed_up(tmp_path):
    one, other = upload(TAU, run="r1"), upload(TAU, run="r2", agent_args={"model_name": "model-b"})
    with pytest.raises(OutcomesError, match=r"1_UPLOAD\.json, .*: agent_args .*model-b.* where .*model-a.* elsewhere"):
        board(tmp_path, one, other)
    assert board(tmp_path, one, other, configs_named=True).trials.values.tolist() == [[2, 2, 0]]


def test_task_0_of_another_benchmark_is_another_task(tmp_path):
    one = upload({"0": {"reward": 1.0}}, run="r1", benchmark="taubench_airline")
    found = board(tmp_path, one, upload({"0": {"reward": 0.0}}, run="r2", benchmark="taubench_retail"))
    assert cells(found) == {"0@taubench_airline": (1, 1, 0), "0@taubench_retail": (0, 1, 0)}
    same = [upload(report(), ["org__a-1"], [], run=name, benchmark=f"swebench_{name}") for name in ("all", "mini")]
    assert cells(board(tmp_path, *same)) == {"org__a-1": (2, 2, 0)}


# -- headers


@pytest.mark.parametrize(("name", "value", "findings"), [("accuracy", 0.5, 0), ("overall_accuracy", 0.0, 1)])
def test_the_accuracy_of_the_upload_is_held_against_its_tasks(tmp_path, name, value, findings):
    raw = {str(i): {"reward": float(i < 2)} for i in range(4)}
    seen = audit(board(tmp_path, upload(raw, ["0", "1"], ["2", "3"], **{name: value})))
    assert seen.kind.values.tolist() == ["header_rate"] * findings


# -- what is not an upload


def test_an_encrypted_upload_is_named(tmp_path):
    with pytest.raises(NoAttempts, match=r"a\.json\.encrypted: an encrypted HAL upload; decrypt it with hal-decrypt"):
        made({"encrypted_data": "Z0FB", "salt": "c2Fs"}, tmp_path / "a.json.encrypted")


def test_no_task_at_all(tmp_path):
    with pytest.raises(NoAttempts, match="there is no attempt"):
        made(upload({}, [], []), tmp_path / "a.json")


def test_unknown_fields_are_passed_over(tmp_path):
    content = upload({"0": {"reward": 1.0, "brand_new": [1]}}, brand_new=2) | {"brand_new": None}
    assert board(tmp_path, content).successes.item() == 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"agent_name": None}, r"a\.json, config: 'agent_name' is null"),
        ({"agent_name": ["x"]}, "config: 'agent_name' is a list"),
        ({"run_id": None}, "config: 'run_id' is null"),
        ({"benchmark_name": ["x"]}, "config: 'benchmark_name' is a list"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(tmp_path, change, fault):
    content = upload(TAU)
    with pytest.raises(OutcomesError, match=fault):
        made(content | {"config": content["config"] | change}, tmp_path / "a.json")


def test_a_score_of_the_wrong_kind_is_named(tmp_path):
    with pytest.raises(OutcomesError, match=r"a\.json, raw_eval_results, 1: 'reward' is a str"):
        made(upload({"0": {"reward": 1}, "1": {"reward": "1"}}), tmp_path / "a.json")


@pytest.mark.parametrize("field", ["agent_name", "run_id"])
def test_a_missing_field_is_named(tmp_path, field):
    content = upload(TAU)
    del content["config"][field]
    assert not hal.recognises(content, tmp_path / "a.json")
    with pytest.raises(OutcomesError, match=rf"a\.json, config: there is no '{field}'"):
        hal.attempts(content, tmp_path / "a.json", Options())


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        3,
        "x",
        {"config": {"agent_name": "a", "run_id": "r"}},
        {"config": {"agent": "a"}, "results": {}},
        {"config": [], "results": {}},
        {"info": {"agent_info": {}, "environment_info": {}}, "simulations": []},
        {"resolved_ids": [], "unresolved_ids": []},
        {"encrypted_data": "x", "salt": "y", "more": 1},
    ],
)
def test_other_documents_are_not_recognised(tmp_path, content):
    assert not hal.recognises(content, tmp_path / "a.json")
