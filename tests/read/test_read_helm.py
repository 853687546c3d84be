"""HELM runs, rebuilt from what writes them.

`stats` and `entry` follow Stat and PerInstanceStats, and Metric.evaluate, of stanford-crfm/helm
src/helm/benchmark/metrics/metric.py (4c57096b), whose entries src/helm/benchmark/runner.py (f0b74de9) writes without
Nones and without stats that are not a number; names of stats are of basic_metrics.py and efficiency_metrics.py of the
packages crfm-helm 0.2.4 and 0.5.16.
"""

import json
import math

import pytest

from evalbayes import OutcomesError, read
from evalbayes.read import formats, helm
from evalbayes.read.attempts import NoAttempts, Options

NAME = "sums:digits=2,model=org_small,data_augmentation=canonical"
SUITE = "sums:digits=2,data_augmentation=canonical"


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(formats.DOCUMENTS, "helm", helm)


def stat(name, mean, count=1):
    told = {} if mean is None else {"min": mean, "max": mean, "mean": mean, "variance": 0.0, "stddev": 0.0}
    return {"name": {"name": name, "split": "test"}, "count": count, "sum": mean or 0, "sum_squared": 0} | told


def entry(instance, values, *, trial=0, perturbation=None, **more):
    made = {
        "instance_id": instance,
        "train_trial_index": trial,
        "stats": [stat(name, mean) for name, mean in values.items()],
    }
    return made | ({"perturbation": {"name": perturbation, "fairness": True}} if perturbation else {}) | more


def right(score):
    """What the basic metric writes of one answer; its other stats are of the request."""
    return {"num_references": 1, "num_train_trials": 1, "exact_match": score, "finish_reason_stop": 1, "logprob": -3.5}


@pytest.fixture
def run(tmp_path):
    """Write a run and return the path of its stats."""

    def run(entries, name=NAME, adapter=None, folder="run"):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        adapter = {"model": "org/small", "max_train_instances": 5, "temperature": 0.0} if adapter is None else adapter
        if name is not None:
            (place / "run_spec.json").write_text(json.dumps({"name": name, "adapter_spec": adapter}))
        (place / "per_instance_stats.json").write_text(json.dumps(entries))
        return place / "per_instance_stats.json"

    return run


def test_a_run_is_a_board(run):
    path = run([entry("id1", right(1)), entry("id2", right(0)), entry("id1", right(1), trial=1)])
    board = read(path)
    assert board.config.values.tolist() == ["org_small"]
    assert board.task.values.tolist() == [f"{SUITE}/id1", f"{SUITE}/id2"]
    assert board.run.values.tolist() == ["0", "1"]
    assert board.outcome.values.tolist() == [[[1, 1], [0, -2]]]
    assert board.suite.values.tolist() == [SUITE] * 2
    assert (board.model.item(), board.max_train_instances.item()) == ("org/small", "5")
    assert board.attrs["score_rule"].startswith("stat 'exact_match'")
    assert board.attrs["reader"] == "helm"


def test_entries_of_several_metrics_are_one_attempt(run):
    usage = {"num_prompt_tokens": 20, "num_completion_tokens": 3, "inference_runtime": 0.5}
    board = read(run([entry("id1", right(1)), entry("id2", right(0)), entry("id1", usage), entry("id2", usage)]))
    assert board.trials.values.tolist() == [[1, 1]]
    assert (board.tokens.item(), board.time.item()) == (23, 0.5)


def test_several_stats_of_0_and_1_need_a_choice(run):
    path = run([entry("id1", right(1) | {"quasi_exact_match": 1}), entry("id2", right(0) | {"quasi_exact_match": 1})])
    with pytest.raises(OutcomesError, match=r"0 or 1 exact_match, quasi_exact_match: say which counts with score="):
        read(path)
    assert read(path, score="exact_match").successes.values.tolist() == [[1, 0]]
    assert read(path, score="quasi_exact_match").successes.values.tolist() == [[1, 1]]
    assert read(path, score="finish_reason_stop").successes.values.tolist() == [[1, 1]]
    with pytest.raises(OutcomesError, match="no score 'f1' among its stats num_references"):
        read(path, score="f1")


def test_stats_of_the_request_are_not_taken_for_a_score(run):
    path = run([entry("id1", {"num_train_trials": 1, "finish_reason_stop": 1})])
    with pytest.raises(OutcomesError, match="there are no stats; nothing here has a score"):
        read(path)


def test_a_score_that_is_not_0_or_1_is_left_to_the_rule(run):
    path = run([entry("id1", {"rouge_l": 0.25}), entry("id2", {"rouge_l": 0.75})])
    with pytest.raises(OutcomesError, match=r"entry 1 \(instance id1, trial 0\): outcomes between 0 and 1: 0\.25"):
        read(path)
    assert read(path, threshold=0.5).successes.values.tolist() == [[0, 1]]
    path = run([entry("id1", {"rouge_l": 0.25, "bleu_1": 0.5})])
    with pytest.raises(OutcomesError, match="stats rouge_l, bleu_1: say which"):
        read(path)


def test_perturbed_instances_are_passed_over_and_named(run):
    board = read(
        run(
            [
                entry("id1", right(1)),
                entry("id1", right(0), perturbation="dialect"),
                entry("id2", right(0), perturbation="dialect"),
                entry("id1", right(0), perturbation="typos"),
            ]
        )
    )
    assert board.task.values.tolist() == [f"{SUITE}/id1"]
    assert board.successes.item() == 1
    assert board.attrs["skipped"] == (
        "2 entries under perturbation dialect, 1 entries under perturbation typos: only unperturbed instances are read"
    )


def test_only_perturbed_instances_are_no_attempts(run):
    with pytest.raises(NoAttempts, match="there is no attempt"):
        read(run([entry("id1", right(1), perturbation="dialect")]))


@pytest.mark.parametrize("nothing", [{}, {"exact_match": None}, {"exact_match": math.nan}])
def test_an_instance_without_the_stat_has_no_score(run, nothing):
    """HELM takes out stats that are not a number; a count of 0 has no mean."""
    board = read(run([entry("id1", right(1)), entry("id2", {"num_references": 1} | nothing)]))
    assert board.outcome.values.tolist() == [[[1], [-1]]]
    assert board.attrs["notes"] == f"{SUITE}: 1 attempts have no stat 'exact_match', so no score"


def test_a_stat_that_is_there_twice_must_say_the_same(run):
    assert read(run([entry("id1", right(1)), entry("id1", right(1))])).trials.item() == 1
    with pytest.raises(OutcomesError, match="entry 2, stat 3: exact_match is 0 here and 1 before"):
        read(run([entry("id1", right(1)), entry("id1", right(0))]))


@pytest.mark.parametrize(
    ("name", "adapter", "config", "suite"),
    [
        ("sums:model=org_small", {}, "org_small", "sums"),
        ("sums:a=1,model=org_small,stop=x", {"model": "org/small"}, "org_small", "sums:a=1,stop=x"),
        ("sums:a=1", {"model": "org/small"}, "org/small", "sums:a=1"),
        ("sums", {"model": "org/ümlaut"}, "org/ümlaut", "sums"),
        ("sums:base_model=b,model=m", {}, "m", "sums:base_model=b"),
    ],
)
def test_the_model_is_in_the_name_of_the_run(run, name, adapter, config, suite):
    board = read(run([entry("id1", right(1))], name, adapter))
    assert (board.config.item(), board.task.item()) == (config, f"{suite}/id1")


def test_models_share_their_tasks(run, tmp_path):
    run([entry("id1", right(1))], folder="a")
    run([entry("id1", right(0))], NAME.replace("org_small", "org_large"), folder="b")
    board = read(tmp_path)
    assert board.config.values.tolist() == ["org_small", "org_large"]
    assert board.outcome.values.tolist() == [[[1]], [[0]]]


def test_another_number_of_examples_is_another_config(run, tmp_path):
    run([entry("id1", right(1))], folder="a")
    run([entry("id1", right(0))], adapter={"model": "org/small", "max_train_instances": 0}, folder="b")
    with pytest.raises(OutcomesError, match=r"max_train_instances 0 where the same config and task have 5 elsewhere"):
        read(tmp_path)


def test_a_run_without_its_spec_or_a_model_is_refused(run):
    with pytest.raises(OutcomesError, match=r"there is no run_spec\.json beside it, which names the model"):
        read(run([entry("id1", right(1))], name=None))
    with pytest.raises(OutcomesError, match=r"run_spec\.json: neither model= in the name 'sums' nor a model"):
        read(run([entry("id1", right(1))], "sums", {}))


@pytest.mark.parametrize("key", ["instance_id", "train_trial_index", "stats"])
def test_a_missing_field_is_named_by_its_entry(run, key):
    broken = {name: value for name, value in entry("id2", right(1)).items() if name != key}
    with pytest.raises(OutcomesError, match=rf"per_instance_stats\.json, entry 2: there is no '{key}'"):
        read(run([entry("id1", right(1)), broken]))


@pytest.mark.parametrize(
    ("stats", "said"),
    [
        ([{"count": 1}], "stat 1: there is no 'name'"),
        ([{"name": "exact_match"}], "stat 1: 'name' is a str, not dict"),
        ([stat("exact_match", 1) | {"mean": "1"}], "stat 1: 'mean' is a str, not int or float or NoneType"),
        ([7], "stat 1: a int where an object"),
    ],
)
def test_a_damaged_stat_is_named(run, stats, said):
    with pytest.raises(OutcomesError, match=f"entry 2, {said}"):
        read(run([entry("id1", right(1)), {"instance_id": "id2", "train_trial_index": 0, "stats": stats}]))


def test_unknown_fields_are_passed_by(run):
    assert read(run([entry("id1", right(1), later={"a": 1})])).successes.item() == 1


@pytest.mark.parametrize("content", [None, {}, [], [1], [{"instance_id": "a", "resolved": True}], "x"])
def test_other_documents_are_not_recognised(content, tmp_path):
    assert not helm.recognises(content, tmp_path / "per_instance_stats.json")


def test_a_document_of_another_kind_is_refused(tmp_path):
    with pytest.raises(OutcomesError, match="not a list of stats of instances"):
        helm.attempts({}, tmp_path / "a.json", Options())
