"""lm-evaluation-harness samples and results, rebuilt from what writes them.

`sample` follows evaluate of EleutherAI/lm-evaluation-harness lm_eval/evaluator.py (5b321a1a, without ``filter`` and
``metrics``; with them since lm_eval 0.4.7), `results` its results and consolidate_results of lm_eval/evaluator_utils.py
(0064c3a0), the names of files lm_eval/loggers/evaluation_tracker.py (034ab036); lm_eval/result_schema.py (293c9dfb) is
the schema of both. lm_eval 0.4.0 wrote a JSON list, and for a time samples were ``samples_<task>_<date>.json``: a list,
then lines (lm_eval/logging/evaluation_tracker.py, 0024bec9). ``handle_non_serializable`` of lm_eval/utils.py wrote
numpy's booleans and short floats as text before lm_eval 0.4.13 (pull request 3885).
"""

import json
import math

import pytest

from evalbayes import OutcomesError, outcomes, read
from evalbayes.board import audit
from evalbayes.read import formats, lm_eval
from evalbayes.read.attempts import NoAttempts, Options

DATE = "2026-01-02T03-04-05.678901"
SAMPLES, RESULTS = f"samples_sums_{DATE}.jsonl", f"results_{DATE}.json"


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(formats.DOCUMENTS, "lm_eval", lm_eval)
    monkeypatch.setitem(formats.LINES, "lm_eval", lm_eval)


def sample(doc, scores=None, *, filter="none", drawn=1, old=False, **more):
    scores = {"exact_match": 1.0} if scores is None else scores
    named = {} if old else {"filter": filter, "metrics": list(scores)}
    return {
        "doc_id": doc,
        "doc": {"question": "1 + 1"},
        "target": "2",
        "arguments": {"gen_args_0": {"arg_0": "1 + 1 ="}},
        "resps": [["2"] * drawn],
        "filtered_resps": ["2"],
        **named,
        "doc_hash": "d",
        "prompt_hash": "p",
        "target_hash": "t",
        **scores,
        **more,
    }


def results(figures, suite="sums", model="org/small", **more):
    return {
        "results": {suite: {"alias": suite, **figures}},
        "configs": {suite: {"task": suite}},
        "versions": {suite: 3.0},
        "n-shot": {suite: 5},
        "config": {"model": "hf", "model_args": f"pretrained={model},dtype=float16", "gen_kwargs": None},
        "model_name": model,
        "chat_template_sha": None,
    } | more


@pytest.fixture
def log(tmp_path):
    """Write samples, and the results beside them, and return the path of the samples."""

    def log(samples, stated=None, folder="org__small", name=SAMPLES, beside=RESULTS):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        (place / name).write_text("".join(json.dumps(one) + "\n" for one in samples))
        if stated is not None:
            (place / beside).write_text(json.dumps(stated))
        return place / name

    return log


def four(*values, **how):
    return [sample(i, {"exact_match": value}, **how) for i, value in enumerate(values)]


# -- a good file


def test_samples_are_a_board_with_what_the_results_say(log):
    path = log(four(1.0, 0.0, 1.0), results({"exact_match,none": 2 / 3, "exact_match_stderr,none": 1 / 3}))
    board = read(path)
    assert board.config.values.tolist() == ["org/small"]
    assert board.task.values.tolist() == ["sums/0", "sums/1", "sums/2"]
    assert board.outcome.values.tolist() == [[[1], [0], [1]]]
    assert board.task_version.values.tolist() == ["3.0"] * 3
    assert board.suite.values.tolist() == ["sums"] * 3
    assert (board.date.item(), board.num_fewshot.item()) == ("2026-01-02", "5")
    assert board.attrs["reader"] == "lm_eval"
    assert board.attrs["score_rule"].startswith("score 'exact_match', filter 'none'")
    assert json.loads(board.attrs["header"]) == {"org/small": {"rate": 2 / 3, "se": 1 / 3}}
    assert outcomes.describe(board).attrs["notes"] == ""


def test_the_rate_and_its_standard_error_are_those_of_the_rows(log):
    """The harness divides by n - 1: 3 of 4 has sqrt(0.75 * 0.25 / 3) = 0.25."""
    path = log(four(1, 1, 1, 0), results({"exact_match,none": 0.75, "exact_match_stderr,none": 0.25}))
    assert audit(read(path)).sizes["finding"] == 0
    path = log(four(1, 1, 1, 0), results({"exact_match,none": 0.25, "exact_match_stderr,none": 0.25}))
    board = read(path)
    assert "its results say 0.25, its samples give 3 of 4" in board.attrs["notes"]
    assert "header_rate" in audit(board).kind.values


def test_without_results_the_folder_names_the_config(log):
    board = read(log(four(1, 0), folder="vendor__large"))
    assert board.config.values.tolist() == ["vendor__large"]
    assert "header" not in board.attrs


def test_results_of_another_evaluation_are_not_taken(log):
    board = read(log(four(1, 0), results({"exact_match,none": 0.9}), beside="results_2025-01-01T00-00-00.json"))
    assert board.config.values.tolist() == ["org__small"]
    assert "header" not in board.attrs


@pytest.mark.parametrize(
    ("arguments", "model"),
    [
        ("pretrained=org/base,peft=org/tuned", "org/tuned"),
        ({"path": "/models/a", "engine": "e"}, "/models/a"),
        ("model=gpt,base_url=http://x/?a=b", "gpt"),
        ("", "org__small"),
        (None, "org__small"),
    ],
)
def test_older_results_name_the_model_among_its_arguments(log, arguments, model):
    stated = results({"exact_match,none": 0.5}, config={"model": "hf", "model_args": arguments})
    del stated["model_name"]
    assert read(log(four(1, 0), stated)).config.item() == model


def test_names_are_as_written(log):
    path = log([sample("é/ 1", {"acc": 1}), sample(2, {"acc": 0})], name=f"samples_mmlu_über-x_{DATE}.jsonl")
    assert read(path).task.values.tolist() == ["mmlu_über-x/é/ 1", "mmlu_über-x/2"]


def test_results_are_passed_over_in_a_folder_and_an_error_where_named(log):
    path = log(four(1, 0), results({"exact_match,none": 0.5}))
    board = read(path.parent)
    assert board.trials.values.tolist() == [[1, 1]]
    assert "skipped" not in board.attrs  # they belong to the samples, and were read with them
    with pytest.raises(NoAttempts, match="read the samples beside it"):
        read(path.parent / RESULTS)


# -- filters and metrics


def test_several_filters_need_a_choice(log):
    rows = [*four(1, 0, filter="strict-match"), *four(1, 1, filter="flexible-extract")]
    figures = {"exact_match,strict-match": 0.5, "exact_match,flexible-extract": 1.0}
    path = log(rows, results(figures))
    with pytest.raises(OutcomesError, match=r"filters strict-match, flexible-extract: say which counts with filter="):
        read(path)
    assert read(path, filter="strict-match").successes.values.tolist() == [[1, 0]]
    board = read(path, filter="flexible-extract")
    assert board.successes.values.tolist() == [[1, 1]]
    assert json.loads(board.attrs["header"]) == {"org/small": {"rate": 1.0}}
    with pytest.raises(OutcomesError, match="no filter 'none' among its filters"):
        read(path, filter="none")


def test_several_metrics_need_a_choice(log):
    path = log([sample(0, {"acc": 1.0, "acc_norm": 0.0}), sample(1, {"acc": 1.0, "acc_norm": 1.0})])
    with pytest.raises(OutcomesError, match=r"metrics acc, acc_norm: say which counts with score="):
        read(path)
    assert read(path, score="acc").successes.values.tolist() == [[1, 1]]
    assert read(path, score="acc_norm").successes.values.tolist() == [[0, 1]]
    with pytest.raises(OutcomesError, match="no score 'f1' among its metrics acc, acc_norm"):
        read(path, score="f1")


def test_a_number_beside_the_metrics_is_none_of_them(log):
    assert read(log([sample(0, {"acc": 1.0}, extra=0.5), sample(1, {"acc": 0.0}, extra=0.5)])).trials.sum() == 2


def test_partial_scores_are_left_to_the_rule(log):
    path = log(four(0.25, 1.0), results({"exact_match,none": 0.625}))
    with pytest.raises(OutcomesError, match=r"line 1: outcomes between 0 and 1: 0\.25"):
        read(path)
    board = read(path, threshold=1)
    assert board.successes.values.tolist() == [[0, 1]]
    assert "header" not in board.attrs


def test_a_metric_that_is_no_number_is_refused(log):
    with pytest.raises(OutcomesError, match=r"line 1: f1 is a list, which is no pass or fail"):
        read(log([sample(0, {"f1": [1, 0]})]))


def test_booleans_are_scores_beside_lists_which_are_none(log):
    """As ifeval logs them (lm_eval/tasks/ifeval/utils.py)."""
    path = log([sample(i, {"prompt_level": i == 1, "inst_level": [True, i == 1]}) for i in range(3)])
    with pytest.raises(OutcomesError, match="metrics prompt_level, inst_level: say which"):
        read(path)
    assert read(path, score="prompt_level").successes.values.tolist() == [[0, 1, 0]]


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("texts", [("True", "False", "nan"), ("1.0", "0.0", "nan")])
def test_numpy_scores_that_were_logged_as_text_are_numbers(log, texts, old):
    path = log(four(*texts, old=old), results({"exact_match,none": "0.5", "exact_match_stderr,none": "N/A"}))
    board = read(path)
    assert board.outcome.values.tolist() == [[[1], [0], [-1]]]
    assert json.loads(board.attrs["header"]) == {"org/small": {"rate": 0.5}}
    with pytest.raises(OutcomesError, match=r"line 1: exact_match is a str, which is no pass or fail"):
        read(log(four("tensor(1.)")))


def test_a_document_without_the_metric_has_no_attempt(log):
    path = log([sample(0, {"acc": 1.0}), sample(1, {"acc": 0.0, "acc_hard": 1.0}), sample(2, {"acc_hard": 0.0})])
    board = read(path, score="acc_hard")
    assert board.trials.sel(task=["sums/0", "sums/1", "sums/2"]).values.tolist() == [[0, 1, 1]]
    assert board.attrs["skipped"] == "line 1: 'acc_hard' is not among the metrics of this document"


def test_a_metric_of_which_less_is_better_is_said_and_can_be_turned(log):
    better = {"higher_is_better": {"sums": {"bias": False}}}
    path = log([sample(i, {"bias": float(i == 0)}) for i in range(3)], results({"bias,none": 1 / 3}, **better))
    board = read(path)
    assert board.successes.values.tolist() == [[1, 0, 0]]
    assert "of 'bias' less is better, and a success here is the worse answer" in board.attrs["notes"]
    assert read(path, outcome_map={0: 1, 1: 0}).successes.values.tolist() == [[0, 1, 1]]
    assert "less is better" not in read(log(four(1, 0), results({}, higher_is_better={"sums": None}))).attrs["notes"]


def test_a_figure_that_is_no_rate_is_no_header(log):
    board = read(log(four(1, 0), results({"exact_match,none": -0.2, "exact_match_stderr,none": 3.5})))
    assert "header" not in board.attrs
    assert audit(board).sizes["finding"] == 0


def test_answers_without_a_metric_have_no_score(log):
    with pytest.raises(OutcomesError, match="there are no metrics; nothing here has a score"):
        read(log([sample(0, {"bypass": 999})]))


def test_case_10_answers_drawn_several_times_leave_one_score(log):
    board = read(log(four(1, 0, drawn=8)))
    assert board.sizes["run"] == 1
    assert "8 answers were drawn for a task, and filter 'none' left one score" in board.attrs["notes"]


# -- older rows, which name neither


def test_older_rows_take_the_metrics_of_the_results(log):
    rows = [sample(i, {"acc": value}, old=True, length=7) for i, value in enumerate((1.0, 0.0))]
    board = read(log(rows, results({"acc,none": 0.5, "acc_stderr,none": 0.5})))
    assert board.successes.values.tolist() == [[1, 0]]
    assert board.attrs["score_rule"].startswith("score 'acc', filter 'none'")


def test_older_rows_without_results_take_the_keys_that_hold_numbers(log):
    rows = [sample(i, {"acc": value, "gold": [1, 2]}, old=True) for i, value in enumerate((1.0, 0.0))]
    assert read(log(rows)).successes.values.tolist() == [[1, 0]]
    with pytest.raises(OutcomesError, match="metrics acc, length: say which"):
        read(log([sample(0, {"acc": 1.0, "length": 7}, old=True)]))


FIGURES = {"exact_match,strict": 0.25, "exact_match,flexible": 0.75}


def interleaved():
    """Two ranks of two documents each, gathered: a rank writes its documents filter by filter."""
    scores = {"strict": (1, 0, 0, 0), "flexible": (1, 1, 0, 1)}
    ranks = [(0, 2), (1, 3)]
    return [
        sample(doc, {"exact_match": scores[name][doc]}, old=True) for rank in ranks for name in scores for doc in rank
    ]


def test_older_rows_of_several_filters_are_told_by_their_order(log):
    path = log(interleaved(), results(FIGURES))
    with pytest.raises(OutcomesError, match="filters strict, flexible: say which"):
        read(path)
    strict, flexible = (read(path, filter=name) for name in ("strict", "flexible"))
    assert strict.successes.sel(task=[f"sums/{i}" for i in range(4)]).values.tolist() == [[1, 0, 0, 0]]
    assert flexible.successes.sel(task=[f"sums/{i}" for i in range(4)]).values.tolist() == [[1, 1, 0, 1]]


def test_an_order_that_does_not_give_the_rate_is_not_believed(log):
    path = log(interleaved()[::-1], results(FIGURES))
    with pytest.raises(OutcomesError, match=r"those of 'strict' have the mean 0\.75 where the results say 0\.25"):
        read(path, filter="strict")


@pytest.mark.parametrize("stated", [None, results({"exact_match,strict": 0.25})])
def test_older_rows_of_several_filters_without_their_names_are_refused(log, stated):
    with pytest.raises(OutcomesError, match=r"line 1: no filter is named, 2 rows are of one document"):
        read(log(interleaved(), stated), filter="strict")


def test_one_row_a_document_where_the_results_name_two_filters_is_refused(log):
    with pytest.raises(OutcomesError, match=r"1 rows are of one document and the results beside it name 2"):
        read(log(interleaved()[:2], results(FIGURES)), filter="strict")


def test_the_first_version_is_a_list_named_after_the_model(tmp_path):
    content = [sample(i, {"acc": value}, old=True) for i, value in enumerate((1.0, 0.0))]
    stated = results({"acc,none": 0.5}, suite="a_sums")
    stated["results"]["sums"] = {"acc,none": 0.5}
    del stated["model_name"]
    (tmp_path / "results.json").write_text(json.dumps(stated))
    path = tmp_path / "pretrained__org__small_a_sums.jsonl"
    assert lm_eval.recognises(content, path)
    made = lm_eval.attempts(content, path, Options())
    assert made.rows[["config", "task", "outcome"]].values.tolist() == [
        ["org/small", "a_sums/0", 1.0],
        ["org/small", "a_sums/1", 0.0],
    ]
    with pytest.raises(OutcomesError, match="its name does not say the task; call it samples_<task>_<date>"):
        lm_eval.attempts(content, tmp_path / "other.jsonl", Options())


@pytest.mark.parametrize("layout", ["list", "lines"])
def test_samples_that_end_in_json_find_the_results_between_them(log, layout):
    stated = results({"exact_match,none": 0.5})
    stated["results"]["more"] = {"exact_match,none": 1.0}
    folder = log([], stated).parent
    for name, rows in (("sums", four(1, 0, old=True)), ("more", four(1, 1, old=True))):
        text = json.dumps(rows, indent=2) if layout == "list" else "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"samples_{name}_{DATE}.json").write_text(text)
    (folder / SAMPLES).unlink()
    board = read(folder)
    assert board.config.values.tolist() == ["org/small"]
    assert board.successes.sel(task=["sums/0", "sums/1", "more/0", "more/1"]).values.tolist() == [[1, 0, 1, 1]]
    (folder / RESULTS).unlink()
    assert read(folder).config.values.tolist() == ["org__small"]


def test_a_list_names_its_entries(tmp_path):
    with pytest.raises(OutcomesError, match=r"json, entry 2: there is no 'doc_id'"):
        lm_eval.attempts([sample(0), {"doc": {}}], tmp_path / f"samples_sums_{DATE}.json", Options())


def test_another_file_of_that_date_does_not_hide_the_results(log):
    path = log(four(1, 0), results({"exact_match,none": 0.5}))
    (path.parent / f"mine_{DATE}.json").write_text("{}")
    assert read(path).config.item() == "org/small"
    (path.parent / RESULTS).rename(path.parent / f"theirs_{DATE}.json")  # two, and none is called results
    assert read(path).config.item() == "org__small"


def test_results_are_named_as_the_output_path_was(log):
    path = log(four(1, 0), results({"exact_match,none": 0.5}), folder="out", beside=f"small_{DATE}.json")
    assert read(path).config.item() == "org/small"


# -- several evaluations


def test_another_evaluation_of_a_model_is_a_further_run(log):
    log(four(1, 0), results({"exact_match,none": 0.5}))
    later = "2026-02-02T00-00-00.000001"
    path = log(
        four(0, 0),
        results({"exact_match,none": 0.0}),
        name=f"samples_sums_{later}.jsonl",
        beside=f"results_{later}.json",
    )
    board = read(path.parent)
    assert board.run.values.tolist() == ["1/1", "2/1"]
    assert board.outcome.values.tolist() == [[[1, 0], [0, 0]]]


def test_another_number_of_examples_is_another_config(log):
    log(four(1, 0), results({"exact_match,none": 0.5}))
    later = "2026-02-02T00-00-00.000001"
    stated = results({"exact_match,none": 0.0}, **{"n-shot": {"sums": 0}})
    path = log(four(0, 0), stated, name=f"samples_sums_{later}.jsonl", beside=f"results_{later}.json")
    with pytest.raises(OutcomesError, match=r"num_fewshot 0 where the same config and task have 5 elsewhere"):
        read(path.parent)
    board = read(path.parent, config=["config", "num_fewshot"])
    assert board.config.values.tolist() == ["org/small + 5", "org/small + 0"]


def test_examples_as_turns_are_another_config_under_a_chat_template(log):
    turns = results({"exact_match,none": 0.5}, chat_template_sha="c", fewshot_as_multiturn=True)
    log(four(1, 0), turns)
    later = "2026-02-02T00-00-00.000001"
    path = log(
        four(0, 0),
        results({"exact_match,none": 0.0}, chat_template_sha="c", fewshot_as_multiturn=False),
        name=f"samples_sums_{later}.jsonl",
        beside=f"results_{later}.json",
    )
    with pytest.raises(OutcomesError, match=r"fewshot_as_multiturn none where the same config and task have true"):
        read(path.parent)
    (path.parent / RESULTS).write_text(json.dumps(turns | {"chat_template_sha": None}))
    (path.parent / f"results_{later}.json").write_text(json.dumps(results({"exact_match,none": 0.0})))
    assert read(path.parent).sizes["run"] == 2


def test_tasks_of_one_evaluation_are_told_apart(log):
    path = log(four(1, 0))
    log([sample(0, {"acc": 1})], name=f"samples_more_{DATE}.jsonl")
    assert set(read(path.parent).task.values) == {"sums/0", "sums/1", "more/0"}


def test_a_part_of_the_documents_is_said(log):
    counts = {"n-samples": {"sums": {"original": 100, "effective": 3}}}
    notes = read(log(four(1, 0), results({"exact_match,none": 0.5}, **counts))).attrs["notes"]
    assert f"{SAMPLES}: its results say 3 samples, the file has 2" in notes
    assert f"{SAMPLES}: 2 of the task's 100 documents were evaluated" in notes


# -- no score, and damage


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_no_score_is_no_failure(log, nothing):
    board = read(log(four(1.0, nothing, 0.0)))
    assert board.outcome.values.tolist() == [[[1], [-1], [0]]]
    assert "1 samples have no score" in board.attrs["notes"]


@pytest.mark.parametrize("key", ["doc_id", "resps", "exact_match"])
def test_a_missing_field_is_named_by_its_line(log, key):
    broken = {name: value for name, value in sample(1).items() if name != key}
    with pytest.raises(OutcomesError, match=rf"{SAMPLES}, line 2: there is no '{key}'"):
        read(log([sample(0), broken]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"doc_id": None}, "'doc_id' is null"),
        ({"filter": 1}, "'filter' is a int, not str"),
        ({"metrics": "acc"}, "'metrics' is a str, not list"),
        ({"resps": {}}, "'resps' is a dict, not list"),
    ],
)
def test_a_field_of_another_kind_is_named_by_its_line(log, change, said):
    with pytest.raises(OutcomesError, match=f"line 2: {said}"):
        read(log([sample(0), sample(1) | change]))


def test_damaged_results_are_named(log):
    path = log(four(1, 0), {})
    with pytest.raises(OutcomesError, match=rf"{RESULTS}: there is no 'results'"):
        read(path)
    (path.parent / RESULTS).write_text('{"results": ')
    with pytest.raises(OutcomesError, match=rf"{RESULTS}, line 1.*not JSON"):
        read(path)


def test_no_sample_is_no_attempt(tmp_path):
    with pytest.raises(NoAttempts, match="there is no sample in it"):
        lm_eval.attempts(iter([]), tmp_path / SAMPLES, Options())


def test_a_lone_sample_is_a_file(log):
    assert read(log([sample(0)])).successes.item() == 1


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        [1],
        "x",
        {"doc_id": 1, "outcome": 1},
        {"results": [], "configs": {}, "versions": {}},
        {"results": {}},
    ],
)
def test_other_documents_are_not_recognised(content, tmp_path):
    assert not lm_eval.recognises(content, tmp_path / "a.json")
