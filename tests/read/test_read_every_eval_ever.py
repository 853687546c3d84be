"""Every Eval Ever, from its schemas (evaleval/every_eval_ever, 0.3.0) and the native samples."""

import json

import pytest

from evalbayes import OutcomesError, read


def record(
    sample,
    correct,
    *,
    score=None,
    evaluation="run-1",
    result=None,
    error=None,
    suite="bench",
    hashed=None,
    epoch=None,
):
    made = {
        "schema_version": "0.3.0",
        "evaluation_id": evaluation,
        "model_id": "org/m",
        "evaluation_name": suite,
        "sample_id": sample,
        "interaction_type": "single_turn",
        "input": {"raw": "?", "reference": ["4"]},
        "answer_attribution": [],
        "evaluation": {"score": float(correct) if score is None else score, "is_correct": correct},
        "token_usage": {"total_tokens": 17},
        "performance": {"latency_ms": 1500.0},
        "metadata": {"subject": "arithmetic"} | ({"epoch": epoch} if epoch else {}),
    }
    more = {"evaluation_result_id": result, "error": error, "sample_hash": hashed}
    return made | {name: value for name, value in more.items() if value}


def lines(*records):
    return "".join(json.dumps(one) + "\n" for one in records)


def test_records_of_samples_are_a_board(write):
    path = write(lines(record("1", True), record("2", False), record("3", False, error="timeout")), "a.jsonl")
    board = read(path)
    assert board.config.values.tolist() == ["org/m"]
    assert board.task.values.tolist() == ["bench/1", "bench/2", "bench/3"]
    assert board.outcome.values.tolist() == [[[1], [0], [-1]]]
    assert board.suite.values.tolist() == ["bench"] * 3
    assert board.attrs["reader"] == "every_eval_ever"
    assert board.attrs["score_rule"].startswith("is_correct")
    assert board.attrs["notes"] == "a.jsonl: 1 samples have an error, so no score"


@pytest.mark.parametrize(("score", "correct"), [(0.4, True), (0.9, False)])
def test_a_score_and_a_verdict_that_differ_need_a_choice(write, score, correct):
    """The converter of Inspect calls 0.4 correct, that of HELM calls 0.9 not: none of them is taken for granted."""
    path = write(lines(record("1", True), record("2", correct, score=score)), "a.jsonl")
    said = rf"a\.jsonl, line 2: score {score} and is_correct {str(correct).lower()} are not the same; .*field="
    with pytest.raises(OutcomesError, match=said):
        read(path)
    assert read(path, field="is_correct").successes.values.tolist() == [[1, int(correct)]]
    with pytest.raises(OutcomesError, match=r"line 2: outcomes between 0 and 1"):
        read(path, field="score")
    assert read(path, field="score", threshold=0.5).successes.values.tolist() == [[1, int(score >= 0.5)]]
    with pytest.raises(OutcomesError, match="no field 'f1' among its outcomes is_correct, score"):
        read(path, field="f1")


def test_evaluations_of_one_model_and_epochs_of_one_evaluation_are_runs(write):
    path = write(lines(record("1", True), record("1", False, evaluation="run-2")), "a.jsonl")
    assert read(path).outcome.values.tolist() == [[[1, 0]]]
    epochs = write(lines(record("1", True, epoch="1"), record("1", False, epoch="2")), "b.jsonl")
    assert read(epochs).outcome.values.tolist() == [[[1, 0]]]


def test_a_sample_of_several_scores_needs_a_choice(write):
    path = write(lines(record("1", True, result="strict"), record("1", False, result="loose")), "a.jsonl")
    with pytest.raises(OutcomesError, match=r"scores of bench strict, loose: say which counts with score="):
        read(path)
    assert read(path, score="strict").successes.item() == 1
    assert read(path, score="loose").successes.item() == 0
    filters = [record("1", True, suite="arc/none", hashed="h"), record("1", False, suite="arc/strict", hashed="h")]
    path = write(lines(*filters), "b.jsonl")
    with pytest.raises(OutcomesError, match="evaluations of the same samples arc/none, arc/strict"):
        read(path)
    assert read(path, part="arc/strict").successes.item() == 0


def test_rates_alone_are_no_outcomes(write, tmp_path):
    rates = {
        "schema_version": "0.3.0",
        "evaluation_id": "x",
        "model_info": {"id": "org/m"},
        "evaluation_results": [{"evaluation_name": "IFEval", "score_details": {"score": 0.4486}}],
    }
    path = write(json.dumps(rates), "x.json")
    with pytest.raises(OutcomesError, match=r"x\.json: 1 rate of org/m; the rate of an unknown number of samples"):
        read(path)
    write(lines(record("1", True)), "x_samples.jsonl")
    board = read(tmp_path)
    assert board.trials.item() == 1
    assert board.attrs["skipped"].startswith("x.json: 1 rate")


@pytest.mark.parametrize("key", ["model_id", "sample_id", "evaluation"])
def test_a_missing_field_is_named_by_its_line(write, key):
    broken = {name: value for name, value in record("2", True).items() if name != key}
    with pytest.raises(OutcomesError, match=f"line 2: there is no '{key}'"):
        read(write(lines(record("1", True), broken), "a.jsonl"))


def test_the_native_samples(shared_data):
    """One record of a sample; two Inspect logs of 3 and 2 samples; two records of rates and two schemas passed over."""
    folder = shared_data / "native" / "every_eval_ever"
    board = read(folder / "demo_samples.jsonl")
    assert (board.config.item(), board.task.item()) == ("demo-org/demo-model", "demo-source.demo_bench/demo_0001")
    assert (board.successes.item(), board.trials.item(), board.tokens.item()) == (1, 1, 17)
    whole = read(folder)
    assert (int(whole.successes.sum()), int(whole.trials.sum())) == (4, 6)
    assert whole.attrs["reader"] == "inspect: 2 files, every_eval_ever: 1 file"
    assert len(whole.attrs["skipped"].splitlines()) == 3
    for name in ("98ea850e-7019-4728-a558-8b1819ec47c2.json", "demo.json"):
        with pytest.raises(OutcomesError, match="is no outcome of any"):
            read(folder / name)
    for name in ("eval.schema.json", "instance_level_eval.schema.json"):
        with pytest.raises(OutcomesError, match="no known format"):
            read(folder / name)
