"""BFCL score files, rebuilt from what writes them.

`summary` and `failure` follow save_eval_results and the runners of the package bfcl-eval 2026.3.23
(bfcl_eval/eval_checker/eval_runner.py and eval_runner_helper.py; ShishirPatil/gorilla
berkeley-function-call-leaderboard/bfcl_eval/eval_checker/eval_runner.py, 0dc53e31), `answer` multi_threaded_inference
of bfcl_eval/_llm_response_generation.py; ids as sort_key of bfcl_eval/utils.py (d858a2a9) says. Failures listed by
place: eval_checker/eval_runner.py (03cd5369) and pull request 893. A broken call of several turns listed twice:
bfcl/eval_checker/eval_runner.py (02003a62). Folders as in bbrowning/bfcl-vllm-results,
results/2025-11-12-harmony-fixes-2/score and result (f98223ae).
"""

import json
from pathlib import Path

import pytest

import evalbayes
from evalbayes import OutcomesError
from evalbayes.board import audit
from evalbayes.read import bfcl
from evalbayes.read.attempts import NoAttempts, Options
from evalbayes.tabulate import from_rows

NAMED = {"config": "config", "task": "task", "run": "run", "outcome": "outcome", "status": "status"}
CALL = [{"add": '{"a": 1}'}]
BROKEN = "Error during inference: the server is gone"


def summary(correct, total, **more):
    return {"accuracy": correct / total if total else 0.0, "correct_count": correct, "total_count": total, **more}


def failure(name, category="simple_python", model="maker_m-1", answer=CALL, **more):
    about = {"id": name, "model_name": model, "test_category": category, "valid": False}
    said = {"error": ["Wrong number of functions."], "error_type": "simple:wrong_count", "prompt": {"id": name}}
    return about | said | {"model_result_raw": answer, "possible_answer": []} | more


def answer(name, result=CALL, tokens=(20, 5), latency=1.5):
    return {
        "id": name,
        "result": result,
        "input_token_count": tokens[0],
        "output_token_count": tokens[1],
        "latency": latency,
    }


def lines(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def score_file(folder, category="simple_python", group="non_live", model="maker_m-1", version="BFCL_v4_"):
    return folder / "score" / model / group / f"{version}{category}_score.json"


def result_file(folder, category="simple_python", group="non_live", model="maker_m-1"):
    return folder / "result" / model / group / f"BFCL_v4_{category}_result.json"


def read(path, *rows, **options):
    return bfcl.attempts(enumerate(json.loads(json.dumps(rows)), 1), path, Options(**options))


def outcomes(made):
    rows = made.rows
    return {task: (o, s) for task, o, s in zip(rows["task"], rows["outcome"], rows["status"], strict=True)}


def board(made):
    columns = {role: name for role, name in NAMED.items() if name in made.rows}
    return from_rows(made.rows, columns, {}, place=made.where, source="x", reader="x", tasks=made.tasks)


def ids(count, category="simple_python"):
    return tuple(f"{category}_{i}" for i in range(count))


def test_what_passed_is_what_the_answers_have_and_the_list_has_not(tmp_path):
    lines(result_file(tmp_path), *map(answer, ids(4)))
    path = score_file(tmp_path)
    made = read(path, summary(3, 4), failure("simple_python_2"))
    assert outcomes(made) == {
        "simple_python_2": (0, "ok"),
        "simple_python_0": (1, "ok"),
        "simple_python_1": (1, "ok"),
        "simple_python_3": (1, "ok"),
    }
    rows = made.rows
    assert set(rows["config"]) == set(rows["model"]) == {"maker_m-1"}
    assert set(rows["suite"]) == {"simple_python"}
    assert set(rows["run"]) == {"1"}
    assert rows["error_type"].tolist() == ["simple:wrong_count", None, None, None]
    assert (rows["tokens"].tolist(), rows["time"].tolist()) == ([25] * 4, [1.5] * 4)
    assert [made.where(i) for i in (0, 1)] == ["line 2", "simple_python_0, not in its list"]
    assert made.header == {"maker_m-1": {"successes": 3, "trials": 4, "rate": 0.75}}
    assert made.notes == []
    assert audit(board(made), header=made.header).errors == 0


def test_the_answers_may_be_beside_the_scores_and_counts_of_turns_are_summed(tmp_path):
    path = tmp_path / "maker_m-1" / "BFCL_v4_multi_turn_base_score.json"
    turns = [[10, 20], [5]]
    answers = [
        answer(name, [[CALL]], (turns, [[1, 1], [1]]), [[0.5, 0.5], [1.0]]) for name in ids(2, "multi_turn_base")
    ]
    answers[1]["input_token_count"] = [[None]]
    lines(path.with_name("BFCL_v4_multi_turn_base_result.json"), *answers)
    made = read(path, summary(2, 2))
    assert outcomes(made) == dict.fromkeys(ids(2, "multi_turn_base"), (1, "ok"))
    assert made.rows["tokens"].tolist() == [38, None]
    assert made.rows["time"].tolist() == [2.0, 2.0]
    assert set(made.rows["config"]) == {"maker_m-1"}
    assert "model" not in made.rows


def test_without_the_answers_a_manifest_has_to_name_what_was_evaluated(tmp_path):
    path = score_file(tmp_path)
    rows = (summary(3, 4), failure("simple_python_2"))
    remedy = r"put the file of answers, BFCL_v4_simple_python_result.json, beside it, or name all tests with manifest="
    with pytest.raises(OutcomesError, match=rf"3 of 4 tests passed, and only those that failed are named; {remedy}"):
        read(path, *rows)
    every = ids(4) + ids(9, "simple_java") + ids(2, "live_simple_python")
    assert outcomes(read(path, *rows, manifest=every))["simple_python_3"] == (1, "ok")
    assert len(read(path, *rows, manifest=every).rows) == 4
    with pytest.raises(
        OutcomesError, match=r"4 tests of category simple_python were evaluated, and the manifest has 6;"
    ):
        read(path, *rows, manifest=ids(6))
    with pytest.raises(
        OutcomesError, match=r"line 2: test simple_python_2 is not in the manifest; correct one of them"
    ):
        read(path, *rows, manifest=("simple_python_0", "simple_python_1", "simple_python_3", "simple_python_4"))


def test_a_renamed_file_is_of_the_category_of_its_failures(tmp_path):
    with pytest.raises(OutcomesError, match=r"only those that failed are named; name all tests with manifest="):
        read(tmp_path / "a.json", summary(1, 2), failure("simple_python_1"))
    made = read(tmp_path / "a.json", summary(1, 2), failure("simple_python_1"), manifest=ids(2))
    assert outcomes(made) == {"simple_python_1": (0, "ok"), "simple_python_0": (1, "ok")}
    with pytest.raises(
        OutcomesError, match=r"its name does not say the category; call it BFCL_v4_<category>_score.json"
    ):
        read(tmp_path / "a.json", summary(2, 2), manifest=ids(2))


def test_one_manifest_serves_all_categories_and_a_file_of_answers_is_one(tmp_path):
    every = [*ids(3), *ids(3, "live_simple")]
    first = lines(score_file(tmp_path), summary(2, 3), failure("simple_python_2"))
    lines(score_file(tmp_path, "live_simple", "live"), summary(2, 3), failure("live_simple_0", "live_simple"))
    found = evalbayes.read(tmp_path, manifest=every)
    assert found.successes.sel(task=every).values.tolist() == [[1, 1, 0, 0, 1, 1]]
    assert found.suite.dims == ("task",)
    elsewhere = lines(tmp_path / "other" / "answers.jsonl", *map(answer, ids(3)))
    assert evalbayes.read(first, manifest=elsewhere).successes.sum() == 2


def test_a_part_of_the_tests_was_evaluated_and_the_answers_say_which(tmp_path):
    lines(result_file(tmp_path), *map(answer, ids(2)))
    made = read(score_file(tmp_path), summary(1, 2), failure("simple_python_1"), manifest=ids(9))
    assert outcomes(made) == {"simple_python_1": (0, "ok"), "simple_python_0": (1, "ok")}
    lines(result_file(tmp_path), *map(answer, ids(3)))
    counts = r"2 tests of category simple_python were evaluated, and the file of answers has 3 and the manifest has 9;"
    with pytest.raises(OutcomesError, match=counts):
        read(score_file(tmp_path), summary(1, 2), failure("simple_python_1"), manifest=ids(9))
    full = read(score_file(tmp_path), summary(1, 2), failure("simple_python_1"), manifest=ids(2))
    assert outcomes(full)["simple_python_0"] == (1, "ok")  # answers of a later, longer evaluation


def test_where_nothing_passed_the_list_is_all(tmp_path):
    made = read(score_file(tmp_path), summary(0, 2), *map(failure, ids(2)))
    assert outcomes(made) == dict.fromkeys(ids(2), (0, "ok"))


@pytest.mark.parametrize(
    ("category", "name", "group"),
    [
        ("simple_python", "simple_python_12", "non_live"),
        ("live_simple", "live_simple_19-3-15", "live"),
        ("live_parallel_multiple", "live_parallel_multiple_1-1-0", "live"),
        ("multi_turn_miss_func", "multi_turn_miss_func_7", "multi_turn"),
        ("web_search_no_snippet", "web_search_no_snippet_3", "agentic"),
        ("memory_rec_sum", "memory_rec_sum_30-notetaker-2", "agentic/memory/rec_sum"),
        ("format_sensitivity", "format_sensitivity_5:ret_fmt=json&tool=True:live_simple_2-2-0", "format_sensitivity"),
    ],
)
def test_ids_begin_with_their_category_and_the_config_is_the_folder_of_the_model(tmp_path, category, name, group):
    other = f"{category}_999"
    lines(result_file(tmp_path, category, group), answer(name), answer(other), answer("memory_rec_sum_prereq_0-x-0"))
    made = read(score_file(tmp_path, category, group), summary(1, 2), failure(other, category))
    assert outcomes(made) == {other: (0, "ok"), name: (1, "ok")}
    assert made.rows["config"].unique().tolist() == ["maker_m-1"]
    assert made.rows.get("cluster", [None] * 2)[1] == (name.split(":")[2] if ":" in name else None)


def test_the_summary_of_formats_has_more_fields(tmp_path):
    more = summary(0, 1, accuracy_std=0.0, **{"ret_fmt=json": summary(0, 1)})
    assert len(read(score_file(tmp_path), more, failure("simple_python_0") | {"novel": {"a": 1}}).rows) == 1


def test_a_call_that_broke_is_an_attempt_without_a_score(tmp_path):
    inner = {"error": {"error_type": "multi_turn:inference_error"}, "model_result": BROKEN}
    twice = [failure("multi_turn_base_1", "multi_turn_base", **inner) for _ in range(2)]
    for row in twice:
        del row["model_result_raw"], row["error_type"]
    stopped = failure("multi_turn_base_2", "multi_turn_base", error_type="multi_turn:force_terminated")
    made = read(
        score_file(tmp_path, "multi_turn_base", "multi_turn"),
        summary(1, 4),
        failure("multi_turn_base_0", "multi_turn_base", answer=""),
        *twice,
        stopped,
        manifest=ids(4, "multi_turn_base"),
    )
    assert [outcomes(made)[name] for name in ids(4, "multi_turn_base")] == [
        (0, "ok"),
        (None, "error"),
        (0, "ok"),
        (1, "ok"),
    ]
    assert made.rows["error_type"].tolist()[1:3] == ["multi_turn:inference_error", "multi_turn:force_terminated"]
    said = "1 calls of the model broke and have no score here; the leaderboard counts 1 as failures"
    assert made.notes == [f"BFCL_v4_multi_turn_base_score.json: {said}"]
    assert audit(board(made), header=made.header).errors == 0


def test_a_call_that_broke_is_no_pass_either_where_nothing_was_to_be_called(tmp_path):
    name = "live_irrelevance"
    every = ids(3, name)
    path = score_file(tmp_path, name, "live")
    rows = (summary(2, 3), failure(every[0], name))
    told = read(path, *rows, manifest=every)
    assert outcomes(told)[every[1]] == (1, "ok")
    assert any("that broke is a pass in this category" in note for note in told.notes)
    lines(result_file(tmp_path, name, "live"), answer(every[0]), answer(every[1], BROKEN), answer(every[2], ""))
    made = read(path, *rows)
    assert [outcomes(made)[one] for one in every] == [(0, "ok"), (None, "error"), (1, "ok")]
    said = "1 calls of the model broke and have no score here; the leaderboard counts 0 as failures, 1 as passes"
    assert made.notes == [f"{path.name}: {said}"]
    assert made.header == {}  # its figures are of other passes


def test_ids_of_2024_are_places(tmp_path):
    path = score_file(tmp_path, "simple", version="", group=".")
    rows = (summary(9, 11), failure(2, "simple"), failure(11, "simple"))
    made = read(path, *rows)
    assert sorted(made.rows["task"]) == sorted(f"simple#{i}" for i in range(1, 12))
    assert [task for task, (outcome, _) in outcomes(made).items() if outcome == 0] == ["simple#2", "simple#11"]
    assert made.notes == [
        "simple_score.json: its ids are places, so tests are named by place; with the ids of all they would get theirs"
    ]
    shuffled = tuple(reversed(ids(11, "simple")))
    named = read(path, *rows, manifest=shuffled)
    assert [task for task, (outcome, _) in outcomes(named).items() if outcome == 0] == ["simple_1", "simple_10"]
    assert named.notes == []
    live = tuple(f"live_simple_{i}-{i}-0" for i in range(11))
    third = read(score_file(tmp_path, "live_simple"), summary(10, 11), failure(3, "live_simple"), manifest=live)
    assert third.rows["task"][0] == "live_simple_2-2-0"
    with pytest.raises(OutcomesError, match=r"line 3: test 12 is not in places from 1 to 11"):
        read(path, summary(9, 11), failure(2, "simple"), failure(12, "simple"))


def test_what_does_not_add_up_is_told(tmp_path):
    name = "BFCL_v4_simple_python_score.json"
    made = read(
        score_file(tmp_path),
        summary(1, 2) | {"accuracy": 0.9},
        failure("simple_python_0", model="other"),
        manifest=ids(2),
    )
    assert made.notes == [
        f"{name}: its summary says accuracy 0.9 and 1 of 2",
        f"{name}: its failures are of model other, its folder is maker_m-1, which is the config",
    ]
    assert "rate" not in read(score_file(tmp_path), summary(0, 1) | {"accuracy": float("nan")}, failure("a_0")).header


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"line 1: there is no 'correct_count'"),
        ([{"accuracy": 1.0, "correct_count": 1}], r"line 1: there is no 'total_count'"),
        ([summary(1, 2) | {"correct_count": "1"}], r"line 1: 'correct_count' is a str, not int"),
        ([summary(1, 2) | {"accuracy": None}], r"line 1: 'accuracy' is null"),
        ([summary(1, 3), failure("simple_python_0")], r"line 1: 2 of 3 tests failed and 1 are listed; the list is cut"),
        ([summary(3, 2)], r"-1 of 2 tests failed and 0 are listed"),
        ([summary(0, 1), 3], r"line 2: a int where an object with 'id'"),
        ([summary(0, 1), failure("a") | {"id": None}], r"line 2: 'id' is null, not str or int"),
        ([summary(0, 1), failure("a") | {"valid": "no"}], r"line 2: 'valid' is a str, not bool"),
        ([summary(0, 1), failure("a") | {"valid": True}], r"line 2: a is valid, in a list of failures"),
        ([summary(0, 1), {"id": "a", "valid": False}], r"line 2: there is no 'model_name'"),
        ([summary(0, 2), failure("a"), failure("b", "other")], r"line 3: simple_python, other in one file"),
        ([summary(0, 2), failure("a"), failure("b", model="other")], r"line 3: maker_m-1, other in one file"),
    ],
)
def test_damage_is_one_line_that_names_the_file_and_the_place(tmp_path, rows, message):
    with pytest.raises(OutcomesError, match=message) as caught:
        read(score_file(tmp_path), *rows)
    assert str(caught.value).startswith(str(score_file(tmp_path)))
    assert "\n" not in str(caught.value)


def test_damaged_answers_are_named(tmp_path):
    path = lines(result_file(tmp_path), answer("simple_python_0"), {"result": CALL})
    with pytest.raises(OutcomesError, match=r"result.json, line 2: there is no 'id'"):
        read(score_file(tmp_path), summary(2, 2))
    path.write_text('{"id": "simple_python_0", "res')
    with pytest.raises(OutcomesError, match=r"result.json, line 1: not JSON"):
        read(score_file(tmp_path), summary(2, 2))


def test_answers_and_an_evaluation_of_nothing_have_no_attempts(tmp_path):
    with pytest.raises(NoAttempts, match=r"result.json: these are answers; read the score file"):
        read(result_file(tmp_path), answer("simple_python_0"))
    with pytest.raises(NoAttempts, match="no attempt"):
        read(score_file(tmp_path), summary(0, 0))


def test_what_is_recognised():
    path = Path("BFCL_v4_simple_python_score.json")
    assert bfcl.recognises(summary(1, 2), path)
    assert bfcl.recognises(summary(1, 2), Path("simple_score.json.gz"))
    assert bfcl.recognises(answer("simple_python_0"), Path("BFCL_v3_simple_result.json"))
    assert bfcl.recognises(summary(1, 2), Path("renamed.log2"))
    assert not bfcl.recognises(summary(1, 2, model="m"), Path("report.json"))
    assert not bfcl.recognises(answer("simple_python_0"), Path("my_result.json"))
    assert not bfcl.recognises({"config": "a", "task": "t", "outcome": 1}, path)
    for other in (None, [], {}, 3, "x", [summary(1, 2)]):
        assert not bfcl.recognises(other, path)


def test_a_folder_of_scores_and_results_is_a_board(tmp_path):
    for model, failed in (("é_m 1", ["simple_python_0"]), ("b", [])):
        lines(result_file(tmp_path, model=model), *map(answer, ids(2)))
        rows = [failure(name, model=model) for name in failed]
        lines(score_file(tmp_path, model=model), summary(2 - len(failed), 2), *rows)
    lines(result_file(tmp_path, "irrelevance", model="b"), *map(answer, ids(3, "irrelevance")))
    lines(score_file(tmp_path, "irrelevance", model="b"), summary(3, 3))
    (tmp_path / "score" / "data_overall.txt").write_text("x")
    found = evalbayes.read(tmp_path)
    assert found.config.values.tolist() == ["b", "é_m 1"]
    simple = found.sel(task=list(ids(2)))
    assert simple.successes.values.tolist() == [[1, 1], [0, 1]]
    assert found.trials.sel(config="é_m 1").sum() == 2
    assert found.trials.sel(config="b").sum() == 5
    assert "these are answers" in found.attrs["skipped"]
