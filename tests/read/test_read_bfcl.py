"""Score files of the Berkeley Function Calling Leaderboard, rebuilt from what writes them.

`summary` and `failure` follow the runners of ShishirPatil/gorilla
berkeley-function-call-leaderboard/bfcl_eval/eval_checker/eval_runner.py (0dc53e31) and of bfcl-eval 2026.3.23, `answer`
its _llm_response_generation.py; how ids are formed is in bfcl_eval/utils.py (d858a2a9: sort_key and
extract_test_category_from_id). eval_checker/eval_runner.py (03cd5369) wrote places for ids.
"""

import json

import pytest

from evalbayes import OutcomesError, read
from evalbayes.board import audit
from evalbayes.read import bfcl, formats
from evalbayes.read.attempts import NoAttempts, Options

IDS = [f"simple_python_{i}" for i in range(5)]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(formats.DOCUMENTS, "bfcl", bfcl)
    monkeypatch.setitem(formats.LINES, "bfcl", bfcl)


def summary(correct, total, **more):
    return {"accuracy": correct / total, "correct_count": correct, "total_count": total, **more}


def failure(name, category="simple_python", *, answer="[f(a=1)]", model="org_small-FC", **more):
    return {
        "id": name,
        "model_name": model,
        "test_category": category,
        "valid": False,
        "error": ["Invalid syntax."],
        "error_type": "ast_decoder:decoder_failed",
        "prompt": {"id": name},
        "model_result_raw": answer,
        "possible_answer": [],
        **more,
    }


def answer(name):
    return {"id": name, "result": "[f(a=2)]", "latency": 0.5}


@pytest.fixture
def score(tmp_path):
    """Write a file of lines below the folder of a model, and return its path."""

    def score(*lines, category="simple_python", group="non_live", kind="score", model="org_small-FC", name=None):
        folder = tmp_path / kind / model / group
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name or f"BFCL_v4_{category}_{kind}.json")
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return score


def test_what_passed_is_the_rest_of_the_manifest(score):
    path = score(summary(3, 5), failure(IDS[1]), failure(IDS[4]))
    board = read(path, manifest=IDS)
    assert board.config.values.tolist() == ["org_small-FC"]
    assert dict(zip(board.task.values.tolist(), board.outcome.values[0, :, 0].tolist(), strict=True)) == {
        IDS[0]: 1,
        IDS[1]: 0,
        IDS[2]: 1,
        IDS[3]: 1,
        IDS[4]: 0,
    }
    assert set(board.suite.values) == {"simple_python"}
    assert json.loads(board.attrs["header"]) == {"org_small-FC": {"successes": 3, "trials": 5, "rate": 0.6}}
    assert audit(board).sizes["finding"] == 0
    assert board.attrs["reader"] == "bfcl"
    assert board.attrs["notes"] == ""


def test_the_result_file_is_a_manifest(score):
    result = score(*map(answer, IDS), kind="result")
    path = score(summary(4, 5), failure(IDS[0]))
    board = read(path, manifest=result)
    assert (int(board.successes.sum()), int(board.trials.sum())) == (4, 5)


def test_without_a_manifest_only_counts_can_be_had(score):
    path = score(summary(3, 5), failure(IDS[1]), failure(IDS[4]))
    said = (
        r"3 of 5 tests passed, and only those that failed are named; name all with manifest=.*BFCL_v4_simple_python_res"
    )
    with pytest.raises(OutcomesError, match=said):
        read(path)


def test_where_nothing_passed_the_list_is_all(score):
    board = read(score(summary(0, 2), failure(IDS[0]), failure(IDS[1])))
    assert board.outcome.values.tolist() == [[[0], [0]]]


def test_where_nothing_failed_the_folder_names_the_model(score):
    path = score(summary(2, 2), category="memory_kv", group="agentic/memory/kv", model="org_große")
    board = read(path, manifest=["memory_kv_0-customer-0", "memory_kv_1-customer-1"])
    assert board.config.values.tolist() == ["org_große"]
    assert board.outcome.values.tolist() == [[[1], [1]]]


def test_one_manifest_serves_all_categories(score, tmp_path):
    live = ["live_simple_0-0-0", "live_simple_1-1-0"]
    other = "format_sensitivity_0:plain:live_simple_0-0-0"
    score(summary(4, 5), failure(IDS[2]))
    score(summary(1, 2), failure(live[1], "live_simple"), category="live_simple", group="live")
    score(summary(1, 1), category="format_sensitivity", group="format_sensitivity")
    board = read(tmp_path / "score", manifest=[*IDS, *live, other])
    assert (int(board.successes.sum()), int(board.trials.sum())) == (6, 8)
    assert board.successes.sel(task=[live[1], IDS[2], other]).values.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (IDS[:4], "5 tests were evaluated, and the manifest has 4 of category simple_python"),
        ([*IDS, "simple_python_5"], "5 tests were evaluated, and the manifest has 6 of category simple_python"),
        (["simple_java_0"], "5 tests were evaluated, and the manifest has 0 of category simple_python"),
        ([*IDS[:4], "simple_python_9"], "simple_python_4 failed and is not in the manifest"),
    ],
)
def test_a_manifest_of_other_tests_is_refused(score, manifest, said):
    with pytest.raises(OutcomesError, match=said):
        read(score(summary(4, 5), failure(IDS[4])), manifest=manifest)


def test_a_call_that_broke_has_no_score(score):
    path = score(
        summary(2, 5),
        failure(IDS[0], answer="Error during inference: 503"),
        failure(IDS[1], answer=""),
        failure(IDS[2], answer=[["f()"]]),
    )
    board = read(path, manifest=IDS)
    assert board.outcome.sel(task=IDS).values[0, :, 0].tolist() == [-1, 0, 0, 1, 1]
    assert "1 calls of the model broke, which the leaderboard counts as failures" in board.attrs["notes"]
    assert int(read(path, manifest=IDS, errors="failure").trials.sum()) == 5


def test_an_agentic_failure_says_what_went_wrong_in_the_error(score):
    told = {"error": {"error_message": ["x"], "error_type": "multi_turn:inference_error"}, "error_type": None}
    row = failure("multi_turn_base_0", "multi_turn_base", **told) | {"model_result": "Error during inference: timeout"}
    del row["model_result_raw"]
    made = bfcl.attempts(
        iter([(1, summary(0, 1)), (2, row)]), score(category="multi_turn_base", group="multi_turn"), Options()
    )
    assert made.rows[["outcome", "status", "error_type"]].values.tolist() == [
        [None, "error", "multi_turn:inference_error"]
    ]
    assert made.where(0) == "line 2"


def test_irrelevance_counts_a_broken_call_as_a_pass_and_says_so(score):
    names = ["irrelevance_0", "irrelevance_1"]
    board = read(score(summary(1, 2), failure(names[0], "irrelevance"), category="irrelevance"), manifest=names)
    assert "a call of the model that broke is a pass in this category" in board.attrs["notes"]


def test_a_failure_listed_twice_is_one(score):
    """The multi-turn runner of 02003a62 lists an answer that is no list twice."""
    path = score(summary(4, 5), failure(IDS[0]), failure(IDS[0]))
    assert read(path, manifest=IDS).outcome.sel(task=IDS[0]).values.tolist() == [[0]]


def test_ids_of_2024_are_places(score):
    path = score(summary(2, 3), failure(2, "simple"), group=".", name="simple_score.json")
    board = read(path)
    assert board.task.values.tolist() == ["simple_2", "simple_1", "simple_3"]
    assert board.outcome.values.tolist() == [[[0], [1], [1]]]
    with pytest.raises(OutcomesError, match="simple_7 failed and is not in the ids from 1 to 3"):
        read(score(summary(2, 3), failure(7, "simple"), group=".", name="simple_score.json"))


@pytest.mark.parametrize("failed", [1, 3])
def test_a_list_of_another_length_than_the_summary_says_is_refused(score, failed):
    path = score(summary(3, 5), *(failure(name) for name in IDS[:failed]))
    with pytest.raises(OutcomesError, match=rf"score\.json, line 1: 2 of 5 tests failed and {failed} are listed"):
        read(path, manifest=IDS)


def test_an_accuracy_that_is_not_of_the_counts_is_said(score):
    board = read(score(summary(4, 5) | {"accuracy": 0.2}, failure(IDS[0])), manifest=IDS)
    assert "its summary says accuracy 0.2 and 4 of 5" in board.attrs["notes"]
    assert "header_rate" in audit(board).kind.values


def test_a_result_file_is_no_score(score, tmp_path):
    result = score(*map(answer, IDS), kind="result")
    score(summary(4, 5), failure(IDS[0]))
    with pytest.raises(NoAttempts, match="these are answers; read the score file, with this one as manifest="):
        read(result)
    board = read(tmp_path, manifest=IDS)
    assert "BFCL_v4_simple_python_result.json: these are answers" in board.attrs["skipped"]


@pytest.mark.parametrize("key", ["id", "model_name", "test_category"])
def test_a_missing_field_is_named_by_its_line(score, key):
    broken = {name: value for name, value in failure(IDS[1]).items() if name != key}
    with pytest.raises(OutcomesError, match=rf"score\.json, line 3: there is no '{key}'"):
        read(score(summary(3, 5), failure(IDS[0]), broken), manifest=IDS)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([summary(4, 5) | {"correct_count": "4"}, failure(IDS[0])], "line 1: 'correct_count' is a str, not int"),
        ([summary(4, 5), failure(None)], "line 2: 'id' is null, not str or int"),
        ([summary(4, 5), failure(IDS[0], valid=True)], "line 2: simple_python_0 is valid, in a list of failures"),
        ([summary(3, 5), failure(IDS[0]), failure(IDS[1], model="b")], "line 3: org_small-FC, b in one file"),
        ([summary(3, 5), failure(IDS[0]), failure(IDS[1], "parallel")], "line 3: simple_python, parallel in one file"),
    ],
)
def test_damage_is_named_by_its_line(score, lines, said):
    with pytest.raises(OutcomesError, match=said):
        read(score(*lines), manifest=IDS)


def test_a_file_of_no_category_is_refused(score):
    with pytest.raises(OutcomesError, match="its name does not say the category"):
        read(score(summary(2, 2), name="a.json"), manifest=IDS)


def test_nothing_evaluated_is_no_attempt(tmp_path):
    lone = {"accuracy": 0, "correct_count": 0, "total_count": 0}
    with pytest.raises(NoAttempts, match="there is no attempt"):
        bfcl.attempts(lone, tmp_path / "BFCL_v4_parallel_score.json", Options())


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (None, "BFCL_v4_a_score.json"),
        ([], "BFCL_v4_a_score.json"),
        ({"accuracy": 1}, "BFCL_v4_a_score.json"),
        ({"id": "a", "result": 1}, "runs.jsonl"),
        ({"id": "a", "result": 1}, "my_result.json"),
    ],
)
def test_other_documents_are_not_recognised(content, name, tmp_path):
    assert not bfcl.recognises(content, tmp_path / name)
