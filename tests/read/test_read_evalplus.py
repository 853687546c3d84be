"""EvalPlus results, rebuilt from evalplus/evalplus evalplus/evaluate.py (0310ad2e: arrays; 58571f98: lists)."""

import json

import pytest

from evalbayes import OutcomesError, read
from evalbayes.board import audit


def sample(base, plus=None):
    return {"task_id": "x", "solution": "pass", "base_status": base} | ({"plus_status": plus} if plus else {})


def results(tasks, **more):
    return json.dumps({"date": "2026-01-01 10:00", "hash": "abc", "eval": tasks, **more})


TASKS = {
    "HumanEval/0": [sample("pass", "pass"), sample("pass", "fail")],
    "HumanEval/1": [sample("fail", "pass"), sample("timeout", "timeout")],
}


def test_plus_is_both_suites_and_base_the_first(write):
    path = write(results(TASKS), "my-model_temp_0.8_eval_results.json")
    board = read(path)
    assert board.config.values.tolist() == ["my-model_temp_0.8"]
    assert board.task.values.tolist() == ["HumanEval/0", "HumanEval/1"]
    assert board.outcome.values.tolist() == [[[1, 0], [0, 0]]]
    assert board.attrs["score_rule"].startswith("base and plus tests")
    assert "score=base takes the original ones" in board.attrs["notes"]
    assert read(path, score="base").successes.values.tolist() == [[2, 0]]
    assert read(path, score="plus").attrs["notes"] == ""
    with pytest.raises(OutcomesError, match="no score 'extra' among its test suites base, plus"):
        read(path, score="extra")


def test_base_alone_and_a_sample_without_a_status(write):
    board = read(write(results({"Mbpp/2": [sample("pass"), sample(None)]}), "m_mbpp_eval_results.json"))
    assert board.config.values.tolist() == ["m"]
    assert board.outcome.values.tolist() == [[[1, -1]]]
    assert board.attrs["score_rule"].startswith("base tests")


def test_files_without_the_added_tests_and_of_the_oldest_names(write):
    """--base-only writes plus_status null; the oldest files have "files" and "timed out"."""
    base_only = [sample(status) | {"plus_status": None} for status in ("pass", "fail")]
    board = read(write(results({"Mbpp/1": [], "Mbpp/2": base_only}), "a_eval_results.json"))
    assert board.outcome.sel(task="Mbpp/2").values.tolist() == [[1, 0]]
    assert board.trials.sel(task="Mbpp/1").item() == 0
    oldest = {"Mbpp/2": {"files": ["a"], "base": [["timed out", []]], "plus": [["timed out", []]]}}
    assert read(write(results(oldest), "b_eval_results.json")).outcome.values.tolist() == [[[0]]]


def test_tasks_under_other_tests_are_other_tasks(write, tmp_path):
    write(results(TASKS), "a_eval_results.json")
    write(results(TASKS, hash="def"), "b_eval_results.json")
    assert read(tmp_path).task.values[0] == "HumanEval/0@abc"


def test_the_older_arrays_say_the_same(write):
    old = {
        "HumanEval/0": {
            "nfiles": 2,
            "base": [["success", [True]], ["success", []]],
            "plus": [["success", []], ["failed", [False]]],
        },
        "HumanEval/1": {
            "nfiles": 2,
            "base": [["failed", []], ["timeout", []]],
            "plus": [["success", []], ["timeout", []]],
        },
    }
    path = write(results(old), "a_eval_results.json")
    assert read(path).outcome.values.tolist() == [[[1, 0], [0, 0]]]
    assert read(path, score="base").outcome.values.tolist() == [[[1, 1], [0, 0]]]
    base_only = {"HumanEval/0": {"nfiles": 1, "base": [["success", []]], "plus": []}}
    assert read(write(results(base_only), "b_eval_results.json")).successes.item() == 1


def test_pass_at_1_of_the_file_is_held_against_its_samples(write):
    said = {"base": {"pass@1": 0.5}, "plus": {"pass@1": 0.25}}
    assert audit(read(write(results(TASKS, pass_at_k=said), "a_eval_results.json"))).sizes["finding"] == 0
    wrong = audit(read(write(results(TASKS, pass_at_k={"plus": {"pass@1": 0.9}}), "a_eval_results.json")))
    assert "header_rate" in wrong.kind.values.tolist()


@pytest.mark.parametrize(
    ("tasks", "fault"),
    [
        (
            {"HumanEval/0": [sample("pass", "pass")], "HumanEval/1": [{}]},
            "HumanEval/1, sample 1: there is no 'base_status'",
        ),
        ({"HumanEval/0": [sample("pass", "maybe")]}, "HumanEval/0, sample 1: plus is 'maybe', not one of pass"),
        ({"HumanEval/0": [sample("pass", "pass")], "HumanEval/1": 3}, "'HumanEval/1' is a int, not list or dict"),
        ({"HumanEval/0": {"nfiles": 1, "base": [["success"]], "plus": [["success"]] * 2}}, "1 samples of base and 2"),
    ],
)
def test_damage_is_named_by_its_task(write, tasks, fault):
    with pytest.raises(OutcomesError, match=fault):
        read(write(results(tasks), "a_eval_results.json"))


def test_the_native_files(shared_data):
    """Counted by hand from the files: base passes 105 and 74 of 164; of those that pass plus, 2 fail base."""
    folder = shared_data / "native" / "evalplus"
    raw = [json.loads(path.read_text())["eval"] for path in sorted(folder.iterdir())]
    base, plus = read(folder, score="base"), read(folder)
    assert plus.config.values.tolist() == [
        "meta-llama--Meta-Llama-3-8B-Instruct",
        "mistralai--Mistral-7B-Instruct-v0.2",
    ]
    assert dict(plus.sizes) == {"config": 2, "task": 164, "run": 1}
    assert base.successes.sum("task").values.tolist() == [105, 74]
    both = [
        sum(one["base_status"] == one["plus_status"] == "pass" for found in file.values() for one in found)
        for file in raw
    ]
    assert plus.successes.sum("task").values.tolist() == both
    assert sum(both) == 158
