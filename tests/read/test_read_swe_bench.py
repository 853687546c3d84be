"""SWE-bench reports, rebuilt from what writes them.

`report` follows make_run_report of SWE-bench/SWE-bench swebench/harness/reporting.py (09749dc0), with the keys that
swebench 5.0.2 adds; `first_report` that of swebench 2.0.0, `metrics` get_model_report of swebench 1.1.0
(swebench/metrics/report.py); `experiment` analysis/get_results.py of the experiments repository, of which
liauto-siada/SWE-bench-experiments holds a copy (c14f62e5).
"""

import json
from pathlib import Path

import pytest

from evalbayes import OutcomesError
from evalbayes.board import audit
from evalbayes.read import swe_bench, terminal_bench
from evalbayes.read.attempts import NoAttempts, Options
from evalbayes.tabulate import from_rows

A, B, C, D, E, F = (
    f"{repo}-{number}" for repo in ("astropy__astropy", "scikit-learn__scikit-learn") for number in (1, 22, 333)
)
NAMED = {"config": "config", "task": "task", "run": "run", "outcome": "outcome", "status": "status"}


def report(resolved=(A,), unresolved=(B,), empty=(C,), error=(D,), incomplete=(E,), malformed=(), **more):
    """What the harness writes; an instance whose own report could not be parsed is completed, and an error."""
    submitted = [*resolved, *unresolved, *empty, *error]
    completed = [*resolved, *unresolved, *malformed]
    return {
        "total_instances": len(submitted) + len(incomplete),
        "submitted_instances": len(submitted),
        "completed_instances": len(completed),
        "resolved_instances": len(resolved),
        "unresolved_instances": len(unresolved),
        "empty_patch_instances": len(empty),
        "error_instances": len(error),
        "completed_ids": sorted(completed),
        "incomplete_ids": sorted(incomplete),
        "empty_patch_ids": sorted(empty),
        "submitted_ids": sorted(submitted),
        "resolved_ids": sorted(resolved),
        "unresolved_ids": sorted(unresolved),
        "error_ids": sorted(error),
        "schema_version": 2,
    } | more


def first_report():
    return {
        "total_instances": 3,
        "completed_instances": 2,
        "resolved_instances": 1,
        "unresolved_instances": 1,
        "error_instances": 1,
        "unstopped_instances": 0,
        "completed_ids": [A, B],
        "resolved_ids": [A],
        "unresolved_ids": [B],
        "error_ids": [C],
        "unstopped_containers": [],
        "unremoved_images": [],
    }


def metrics():
    """Lists that contain one another; D timed out and was not graded, F timed out and was."""
    return {
        "no_generation": [E],
        "generated": [A, B, C, D, F],
        "with_logs": [A, B, D, F],
        "install_fail": [],
        "reset_failed": [],
        "no_apply": [],
        "applied": [A, B, F],
        "test_errored": [],
        "test_timeout": [D, F],
        "resolved": [A],
    }


def experiment():
    return {"no_generation": [C], "no_logs": [D], "resolved": [A]}


def read(content, name="gpt-4.1.first.json", **options):
    return swe_bench.attempts(json.loads(json.dumps(content)), Path("logs") / name, Options(**options))


def outcomes(made):
    rows = made.rows
    return {task: (o, s) for task, o, s in zip(rows["task"], rows["outcome"], rows["status"], strict=True)}


def board(made):
    columns = {role: name for role, name in NAMED.items() if name in made.rows}
    return from_rows(made.rows, columns, {}, place=made.where, source="x", reader="x", tasks=made.tasks)


def test_every_list_has_its_outcome_and_an_unsubmitted_instance_is_a_task_without_an_attempt():
    made = read(report(malformed=(D,)))
    assert outcomes(made) == {A: (1, "ok"), B: (0, "ok"), C: (0, "ok"), D: (None, "error")}
    assert list(made.tasks) == [E]
    assert made.rows["repository"].tolist() == ["astropy/astropy"] * 3 + ["scikit-learn/scikit-learn"]
    assert [made.where(i) for i in range(2)] == ["resolved_ids, entry 1", "unresolved_ids, entry 1"]
    counted = board(made)
    assert counted.successes.sel(task=[A, B, C, D, E]).values.tolist() == [[1, 0, 0, 0, 0]]
    assert counted.trials.sel(task=[A, B, C, D, E]).values.tolist() == [[1, 1, 1, 0, 0]]
    assert counted.errors.sel(task=[A, B, C, D, E]).values.tolist() == [[0, 0, 0, 1, 0]]
    assert counted.repository.dims == ("task",)


def test_the_config_is_the_file_and_the_folder_where_the_file_has_no_name_of_its_own(tmp_path):
    named = read(report()).rows
    assert (named["config"][0], named["model"][0], named["run_id"][0]) == ("gpt-4.1.first", "gpt-4.1", "first")
    for name in (
        "20240402_agent/results/results.json",
        "20240402_agent/report.json.gz",
        "20240402_agent/output.report.json",
    ):
        rows = read(report(), name).rows
        assert rows["config"].unique().tolist() == ["20240402_agent"]
        assert "model" not in rows


def test_header_figures_hold_against_the_rows_and_a_wrong_one_is_told():
    made = read(report())
    assert made.header == {"gpt-4.1.first": {"successes": 1, "trials": 4, "errors": 1}}
    assert [note for note in made.notes if "header" in note] == []
    assert audit(board(made), header=made.header).errors == 0
    wrong = read(report(resolved_instances=2, total_instances=500))
    assert [note for note in wrong.notes if "header" in note] == [
        "gpt-4.1.first.json: its header says 2 resolved, its list has 1",
        "gpt-4.1.first.json: its header says 500 instances, its lists name 5",
    ]
    assert audit(board(wrong), header=wrong.header).kind.values.tolist() == ["header_count"]


def test_errors_of_this_harness_and_suspected_infrastructure_are_told():
    flagged = report(infra_failure_ids=[B, D], ambiguous_failure_ids=[], failure_reasons={B: "out_of_memory"})
    made = read(flagged)
    assert outcomes(made)[B] == (0, "ok")
    assert made.rows["failure_reason"].tolist() == [None, "out_of_memory", None, None]
    assert any("1 instances have no score" in note and "errors='failure'" in note for note in made.notes)
    assert any(f"{B} failed where the environment may have" in note for note in made.notes)
    said = "gpt-4.1.first.json: 1 of 4 instances were not submitted and are tasks without an attempt; "
    assert read(report(error=())).notes == [f"{said}the harness counts them as unresolved (1/4)"]


def test_a_prediction_without_any_outcome_is_skipped_and_unknown_fields_are_passed_over():
    made = read(report(submitted_ids=[A, B, C, D, F], submitted_instances=5, unremoved_images=["x"], novel={"a": 1}))
    assert made.skipped == [(F, "submitted, but in no list of outcomes")]
    assert F not in outcomes(made)


def test_the_first_report_of_the_docker_harness():
    made = read(first_report())
    assert outcomes(made) == {A: (1, "ok"), B: (0, "ok"), C: (None, "error")}
    assert made.header == {"gpt-4.1.first": {"successes": 1, "errors": 1}}


def test_lists_of_2024_that_contain_one_another():
    made = read(metrics(), "agent/results.json")
    assert outcomes(made) == {
        A: (1, "ok"),
        B: (0, "ok"),
        F: (0, "ok"),  # timed out in the log, graded all the same
        E: (0, "ok"),
        D: (None, "error"),
        C: (None, "error"),  # generated, never evaluated
    }
    assert made.rows["config"].unique().tolist() == ["agent"]
    assert made.skipped == []


def test_a_list_of_solved_tasks_needs_all_tasks():
    with pytest.raises(OutcomesError, match=r"^logs/agent/results.json: no list says which tasks failed.*manifest="):
        read(experiment(), "agent/results.json")
    made = read(experiment(), "agent/results.json", manifest=(A, B, C, D, E))
    assert outcomes(made) == {A: (1, "ok"), C: (0, "ok"), D: (None, "error"), B: (0, "ok"), E: (0, "ok")}
    assert made.where(3) == "manifest, entry 1"
    alone = {"resolved": [A, D]}
    assert swe_bench.recognises(alone, Path("x.json"))
    assert outcomes(read(alone, manifest=(A, B, D))) == {A: (1, "ok"), D: (1, "ok"), B: (0, "ok")}


def test_a_report_without_the_failures_takes_them_from_what_was_completed():
    content = {key: value for key, value in report().items() if key != "unresolved_ids"}
    assert outcomes(read(content))[B] == (0, "ok")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unresolved_ids": [A, B]}, rf"{A} is in resolved_ids and in unresolved_ids"),
        ({"incomplete_ids": [D]}, rf"{D} is in error_ids and in incomplete_ids"),
        ({"error_ids": [D, D]}, rf"{D} is in error_ids twice"),
        ({"resolved_ids": [A, 7]}, r"resolved_ids, entry 2: 7 is not the id"),
        ({"resolved_ids": [" "]}, r"resolved_ids, entry 1: ' ' is not the id"),
        ({"error_ids": None}, r"'error_ids' is null, not list"),
        ({"resolved_ids": {A: True}}, r"'resolved_ids' is a dict, not list"),
    ],
)
def test_damage_is_one_line_that_names_the_file_and_the_place(change, message):
    with pytest.raises(OutcomesError, match=message) as caught:
        read(report() | change)
    assert str(caught.value).startswith("logs/gpt-4.1.first.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, [], {}, 3, "x", {"unresolved_ids": [A]}])
def test_another_document_is_an_error_and_not_recognised(content):
    assert not swe_bench.recognises(content, Path("x.json"))
    with pytest.raises(OutcomesError, match=r"^logs/gpt-4.1.first.json: "):
        read(content)


def test_a_report_on_nothing_has_no_attempt():
    with pytest.raises(NoAttempts, match="no attempt"):
        read(report((), (), (), ()))


def test_what_is_recognised():
    path = Path("x.json")
    assert all(swe_bench.recognises(one, path) for one in (report(), first_report(), metrics(), experiment()))
    run = {"results": [{"task_id": "t", "is_resolved": True}], "resolved_ids": ["t"], "unresolved_ids": []}
    assert not swe_bench.recognises(run, path)
    assert terminal_bench.recognises(run, path)
    assert not swe_bench.recognises({"resolved": ["yes"]}, path)
    assert not swe_bench.recognises({"resolved": True, "cost": 1}, path)


def test_names_with_odd_characters_stay_as_written():
    odd = "a b__ü/x'y-1"
    made = read(report(resolved=(odd,)), "modèle d'été.run 1.json")
    assert made.rows["task"][0] == odd
    assert made.rows["config"][0] == "modèle d'été.run 1"
    assert board(made).config.values.tolist() == ["modèle d'été.run 1"]
    assert read(report(resolved=("no-repository",))).rows["repository"][0] is None
