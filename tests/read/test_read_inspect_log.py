"""Inspect logs, written by inspect-ai itself: scores, errors, retries, repeats, variants, and large ones fast."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    write_eval_log,
)
from inspect_ai.model import ModelUsage
from inspect_ai.scorer import Score

from evalbayes import OutcomesError, outcomes, read
from evalbayes.board import audit


def sample(name, value="C", *, epoch=1, scorer="match", uuid=None, error=None, scored=True):
    """One sample; ``scored=False`` has no scores at all."""
    failure = EvalError(message=error, traceback="", traceback_ansi="") if error else None
    scores = {scorer: Score(value=value)} if scored else None
    usage = {"m": ModelUsage(total_tokens=10 * epoch)}
    return EvalSample(
        id=name, epoch=epoch, input="q", target="a", scores=scores, uuid=uuid, error=failure, model_usage=usage
    )


@pytest.fixture
def log(tmp_path):
    """Write an Inspect log and return its path."""

    def log(
        samples,
        name="log.eval",
        *,
        model="model-a",
        task="demo",
        created="2026-01-01T00:00:00+00:00",
        task_id="T1",
        epochs=1,
        ids=None,
        status="success",
        results=None,
        version=0,
        task_args=None,
    ):
        spec = EvalSpec(
            created=created,
            task=task,
            task_id=task_id,
            task_version=version,
            task_args=task_args or {},
            dataset=EvalDataset(sample_ids=list(dict.fromkeys(s.id for s in samples)) if ids is None else ids),
            model=model,
            config=EvalConfig(epochs=epochs),
        )
        path = tmp_path / name
        write_eval_log(EvalLog(eval=spec, status=status, samples=samples, results=results), str(path))
        return path

    return log


def score_of(name, value, reducer=None):
    return EvalScore(
        name=name, scorer=name, reducer=reducer, metrics={"accuracy": EvalMetric(name="accuracy", value=value)}
    )


# -- scores


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_a_log_is_a_board_of_its_samples(log, name):
    path = log([sample("a", "C"), sample("a", "I", epoch=2), sample(7, "I"), sample(7, 1, epoch=2)], name, epochs=2)
    board = read(path)
    assert board.config.values.tolist() == ["model-a"]
    assert set(board.task.values) == {"demo/a", "demo/7"}
    assert board.outcome.sel(task=["demo/a", "demo/7"]).values.tolist() == [[[1, 0], [0, 1]]]
    assert board.suite.dims == ("task",)
    assert board.tokens.values.tolist() == [[15.0, 15.0]]
    assert board.attrs["reader"] == "inspect"
    assert board.attrs["score_rule"] == "score 'match'; 1 passes, 0 fails"
    assert outcomes.describe(board).attrs["notes"] == ""


def test_case_5_letters_and_the_text_nan(log):
    path = log([sample(f"task-{i}", value) for i, value in enumerate(["C", "I", "N", "E", "nan"], 1)])
    with pytest.raises(OutcomesError, match=r"log\.eval, sample task-4, epoch 1: outcome 'E' .*'nan'.*outcome_map="):
        read(path)
    board = read(path, outcome_map={"E": None, "nan": None})
    assert board.successes.values.tolist() == [[1, 0, 0, 0, 0]]
    assert board.trials.values.tolist() == [[1, 1, 1, 0, 0]]
    assert board.errors.values.tolist() == [[0, 0, 0, 1, 1]]


def test_case_5_partial_credit_needs_a_rule(log):
    path = log([sample("a", "C"), sample("b", "P")])
    with pytest.raises(OutcomesError, match=r"sample b, epoch 1: outcomes between 0 and 1: 0\.5; .*threshold="):
        read(path)
    assert read(path, threshold=1).successes.values.tolist() == [[1, 0]]
    assert read(path, threshold=0.5).successes.values.tolist() == [[1, 1]]
    assert read(path, outcome_map={"P": 0}).successes.values.tolist() == [[1, 0]]


def test_case_25_dictionary_scores_with_nan_and_null_at_the_root(log):
    path = log(
        [
            sample("task-1", {"helpful": 1, "safe": 0}),
            sample("task-2", float("nan")),
            sample("task-3", scored=False, error="x"),
        ]
    )
    with pytest.raises(OutcomesError, match=r"sample task-1, epoch 1: fields of score 'match' helpful, safe: .*field="):
        read(path)
    for field, passes in {"helpful": 1, "safe": 0}.items():
        board = read(path, field=field)
        assert board.successes.values.tolist() == [[passes, 0, 0]]
        assert board.trials.values.tolist() == [[1, 0, 0]]
        assert board.errors.values.tolist() == [[0, 1, 1]]
        assert f"field '{field}'" in board.attrs["score_rule"]
    with pytest.raises(OutcomesError, match=r"no field 'kind' among .* helpful, safe"):
        read(path, field="kind")


def test_a_field_of_a_plain_score_and_a_list_are_refused(log):
    with pytest.raises(OutcomesError, match=r"sample a, epoch 1: score 'match' is 'C', which has no field 'x'"):
        read(log([sample("a")]), field="x")
    with pytest.raises(OutcomesError, match=r"sample a, epoch 1: score 'match' is a list"):
        read(log([sample("a", [1, 0])]))


def test_several_scorers_need_a_choice(log):
    both = sample("a")
    both.scores["model_graded"] = Score(value="I")
    path = log([both])
    with pytest.raises(OutcomesError, match=r"log\.eval: scorers match, model_graded: say which counts with score="):
        read(path)
    assert read(path, score="match").successes.item() == 1
    assert read(path, score="model_graded").successes.item() == 0
    with pytest.raises(OutcomesError, match="no score 'f1' among its scorers match, model_graded"):
        read(path, score="f1")


def test_case_11_two_reducers_under_one_name_are_kept_apart(log):
    results = EvalResults(total_samples=4, scores=[score_of("match", 0.25, "mean"), score_of("match", 1.0, "max")])
    board = read(log([sample("task-1", int(e == 1), epoch=e) for e in (1, 2, 3, 4)], epochs=4, results=results))
    assert (board.successes.item(), board.trials.item()) == (1, 4)
    assert "match/mean accuracy 0.25, match/max accuracy 1" in board.attrs["notes"]
    assert audit(board).sizes["finding"] == 0  # 0.25 is the rate of the rows; 1.0 is another object


def test_the_header_is_held_against_the_samples(log):
    results = EvalResults(total_samples=4, scores=[score_of("match", 0.75)])
    found = audit(read(log([sample(name, "C" if name == "a" else "I") for name in "abcd"], results=results)))
    assert found.kind.values.tolist() == ["header_rate"]
    right = EvalResults(total_samples=4, scores=[score_of("match", 0.25)])
    assert audit(read(log([sample(n, "C" if n == "a" else "I") for n in "abcd"], results=right))).sizes["finding"] == 0


# -- errors and what was planned


def test_case_1_errored_samples_are_errors_even_where_they_carry_a_score(log):
    board = read(
        log(
            [sample("a", "C"), sample("b", "I"), sample("c", "I", error="server"), sample("d", scored=False, error="x")]
        )
    )
    assert board.trials.values.tolist() == [[1, 1, 0, 0]]
    assert board.errors.values.tolist() == [[0, 0, 1, 1]]
    described = outcomes.describe(board)
    assert described.observed.item() == 0.5
    assert (described.observed_lower.item(), described.observed_upper.item()) == (0.25, 0.75)
    assert described.attrs["n_scores_overruled_by_status"] == 1
    assert "log.eval: samples ended by an error: server 1, x 1" in board.attrs["notes"]


def test_samples_without_any_score_are_named_and_follow_the_policy(log):
    path = log([sample("a", scored=False), sample("b", scored=False)])
    board = read(path)
    assert board.errors.values.tolist() == [[1, 1]]
    assert "log.eval: 2 samples have neither a score nor an error" in board.attrs["notes"]
    assert read(path, errors="failure").trials.values.tolist() == [[1, 1]]
    with pytest.raises(OutcomesError, match="attempt without a score and errors='raise'"):
        read(path, errors="raise")


def test_case_21_planned_epochs_that_were_not_run(log):
    board = read(log([sample("task-1", "C"), sample("task-2", "I")], epochs=4))
    assert board.trials.values.tolist() == [[1, 1]]
    assert "2 of 8 planned runs are present (epochs=4)" in board.attrs["notes"]


def test_tasks_that_were_planned_and_not_run_are_on_the_board(log):
    board = read(log([sample("a")], ids=["a", "b"], status="cancelled"))
    assert board.task.values.tolist() == ["demo/a", "demo/b"]
    assert board.trials.values.tolist() == [[1, 0]]
    assert "its status is cancelled" in board.attrs["notes"]


def test_the_completed_flag_of_old_logs_is_no_filter(shared_data):
    """log_streaming.eval, of 2024, has completed=false on all four of its scored samples."""
    board = read(shared_data / "native" / "inspect_eval" / "log_streaming.eval")
    assert board.trials.sum().item() == 4
    assert board.successes.sum().item() == 3


# -- several logs


def test_a_retry_stands_in_for_the_sample_that_errored(log, tmp_path):
    log([sample("a", "C", uuid="1"), sample("b", scored=False, error="x", uuid="2")], "1.eval")
    again = [sample("a", "C", uuid="1"), sample("b", "I", uuid="3")]
    log(again, "2.eval", created="2026-01-01T01:00:00+00:00")
    board = read(tmp_path)
    assert board.trials.values.tolist() == [[1, 1]]
    assert board.errors.sum().item() == 0
    assert board.attrs["n_duplicates_dropped"] == 1  # sample a, carried over
    assert board.attrs["n_attempts_set_aside"] == 1
    assert board.attrs["attempt_rule"] == "the first scored attempt of a run counts"


def test_a_retry_that_passed_does_not_replace_a_failure_unless_asked(log, tmp_path):
    log([sample("a", "I", uuid="1")], "1.eval", created="2026-01-01T23:00:00+00:00")
    log([sample("a", "C", uuid="2")], "2.eval", created="2026-01-01T22:30:00-02:00")  # later, in another zone
    assert read(tmp_path).successes.item() == 0
    assert read(tmp_path, attempts="best").successes.item() == 1
    assert read(tmp_path, attempts="runs").trials.item() == 2
    with pytest.raises(ValueError, match="attempts='worst' is unknown; use 'first', 'best', 'runs'"):
        read(tmp_path, attempts="worst")


def test_evaluations_of_one_config_are_further_runs(log, tmp_path):
    log([sample("a", "I"), sample("a", "C", epoch=2)], "1.eval", epochs=2)
    log([sample("a", "C"), sample("a", "C", epoch=2)], "2.eval", epochs=2, task_id="T2")
    log([sample("a", "I"), sample("a", "I", epoch=2)], "3.eval", epochs=2, task_id="T3", model="model-b")
    board = read(tmp_path)
    assert board.trials.values.tolist() == [[4], [2]]
    assert board.successes.values.tolist() == [[3], [0]]
    assert board.run.values.tolist() == ["1/1", "1/2", "2/1", "2/2"]
    index = board.source_file.transpose("config", "task", "run").values
    assert [board.file.values[i] for i in index[0, 0]] == ["1.eval", "1.eval", "2.eval", "2.eval"]
    assert index[1, 0].tolist() == [2, 2, -1, -1]


def test_other_arguments_make_another_config_and_are_not_mixed_up(log, tmp_path):
    log([sample("a", "C")], "1.eval", task_args={"shots": 0})
    log([sample("a", "I")], "2.eval", task_args={"shots": 5}, task_id="T2")
    with pytest.raises(OutcomesError, match=r'2\.eval, sample a, epoch 1: task_args .*"shots": 5.* config=\['):
        read(tmp_path)
    apart = read(tmp_path, config=["config", "task_args"])
    assert apart.config.values.tolist() == ['model-a + {"shots": 0}', 'model-a + {"shots": 5}']
    assert read(tmp_path, config="config").trials.item() == 2


def test_a_task_of_two_versions_is_two_tasks(log, tmp_path):
    log([sample("a", "C")], "1.eval")
    log([sample("a", "I"), sample("b", "C")], "2.eval", task_id="T2", model="model-b", version=1)
    board = read(tmp_path)
    assert board.task.values.tolist() == ["demo/a@0", "demo/a@1", "demo/b"]
    assert "kept apart as TASK@VERSION" in board.attrs["notes"]
    alone = [read(tmp_path / name) for name in ("1.eval", "2.eval")]
    with pytest.raises(OutcomesError, match=r"task 'demo/a' in versions 0 and 1"):
        outcomes.combine(alone)


def test_the_same_bytes_twice_count_once(log, tmp_path):
    path = log([sample("a", "C")])
    (tmp_path / "copy.eval").write_bytes(path.read_bytes())
    board = read(tmp_path)
    assert board.trials.item() == 1
    assert board.attrs["skipped"] == "log.eval: a copy of copy.eval"


# -- files


def test_every_native_log_reads(shared_data):
    """Counts as Inspect itself prints them; the one without samples is named."""
    folder = shared_data / "native" / "inspect_eval"
    found = {}
    for path in sorted(folder.iterdir()):
        if "no-samples" in path.name:
            with pytest.raises(OutcomesError, match=r"no-samples\.json: the log has no samples \(status cancelled\)"):
                read(path)
            continue
        board = read(path)
        found[path.name] = tuple(int(board[name].sum()) for name in ("successes", "trials", "errors"))
    assert found == {
        "2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval": (0, 0, 10),
        "2025-05-12T20-28-13-04-00_popularity.json": (2, 3, 0),
        "hibayes_minimal_test.eval": (0, 2, 0),
        "log_formats.json": (0, 1, 0),
        "log_read_sample.json": (1, 1, 0),
        "log_streaming.eval": (3, 4, 0),
        "mmlu-summary-choices.eval": (0, 1, 0),
    }
    whole = read(folder)
    assert int(whole.trials.sum()) == sum(scored for _, scored, _ in found.values())
    assert whole.attrs["n_files"] == 7
    assert "no-samples.json" in whole.attrs["skipped"]
    kept = read(shared_data / "native" / "every_eval_ever" / "data_arc_qwen.json")
    assert (int(kept.successes.sum()), int(kept.trials.sum())) == (1, 3)


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.8, 0.99])
def test_a_truncated_log_is_one_line_that_names_it(log, name, part):
    path = log([sample(f"task-{i}", "C") for i in range(20)], name)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(OutcomesError) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_an_archive_of_something_else_is_not_unpacked(tmp_path):
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../evil.csv", "config,task,outcome\na,t,1\n")
    with pytest.raises(OutcomesError, match=r"logs\.zip: an archive; unpack it first, and name the logs in it"):
        read(path)
    assert [file.name for file in tmp_path.iterdir()] == ["logs.zip"]


def _large(path: Path, samples: int, message: int) -> None:
    """Turn a log of one sample into one of many, each with a long message, without keeping them in memory."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    one = json.loads(next(data for name, data in parts.items() if name.startswith("samples/")))
    (summary,) = json.loads(parts["summaries.json"])
    summaries = [{**summary, "id": f"task-{i}", "uuid": str(i)} for i in range(samples)]
    text = "".join(np.random.default_rng(0).choice(list("abcdefgh "), message))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for i in range(samples):
            entry = {**one, "id": f"task-{i}", "input": f"{i} {text}"}
            archive.writestr(f"samples/task-{i}_epoch_1.json", json.dumps(entry))
        archive.writestr("summaries.json", json.dumps(summaries))
        archive.writestr("header.json", parts["header.json"])


MEASURE = """
import re, sys, time
from pathlib import Path
import inspect_ai.log, evalbayes, evalbayes.read, pandas, xarray
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1))
before, start = peak(), time.perf_counter()
board = evalbayes.read(sys.argv[1])
print(board.sizes["task"], time.perf_counter() - start, (peak() - before) / 1024)
"""


def test_case_74_ten_thousand_samples_with_large_messages_take_seconds_and_little_memory(log, capsys):
    """250 MB of messages in the archive: they are never loaded."""
    path = log([sample("task-0", "C")], ids=[])
    _large(path, 10_000, 25_000)
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    tasks, seconds, megabytes = map(float, done.stdout.split()[-3:])
    with capsys.disabled():
        print(f"\n10,000 samples: {seconds:.2f} s, {megabytes:.0f} MB above the imports", end=" ")
    assert tasks == 10_000
    assert seconds < 10
    assert megabytes < 120


def test_case_77_unknown_fields_are_passed_over_and_missing_ones_named(log):
    path = log([sample("a", "C")], "log.json")
    content = json.loads(path.read_text())
    content["samples"][0]["invented"] = {"x": 1}
    path.write_text(json.dumps(content))
    assert read(path).successes.item() == 1
    del content["eval"]["model"]
    path.write_text(json.dumps(content))
    with pytest.raises(OutcomesError, match=r"log\.json: not a readable Inspect log"):
        read(path)


def test_without_inspect_ai_the_extra_is_named(log, monkeypatch):
    path = log([sample("a")])
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(OutcomesError, match=re.escape("pip install 'evalbayes[inspect]'")):
        read(path)
