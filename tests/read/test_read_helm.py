"""HELM runs, rebuilt from what writes them.

`entry` follows PerInstanceStats and Stat of the package crfm-helm 0.5.16 (helm/benchmark/metrics/metric.py and
statistic.py), as runner.py of stanford-crfm/helm (src/helm/benchmark/runner.py, f0b74de9) writes them without what is
None; `run_spec` the RunSpec of helm/benchmark/run_spec.py. Entries of one instance from several metrics, some without
stats: metric.py of 4c57096b and issue 1205 of stanford-crfm/helm. Names of runs: run_expander.py and
run_spec_factory.py of 0.5.16, and run_expander.py of 0.2.4, which has fewer expanders.
"""

import json
from pathlib import Path

import pytest

import evalbayes
from evalbayes import OutcomesError
from evalbayes.read import helm
from evalbayes.read.attempts import NoAttempts, Options
from evalbayes.tabulate import from_rows

NAME = "toy:subject=sums,model=maker_m-1,data_augmentation=canonical"
NAMED = {"config": "config", "task": "task", "run": "run", "outcome": "outcome", "status": "status"}
TYPOS = {"name": "typos", "robustness": True, "fairness": False, "computed_on": "perturbed"}


def stat(name, mean, split="test", perturbation=None):
    """A stat of one value; of None where nothing was counted, which has no mean."""
    about = {"name": name, "split": split, "perturbation": perturbation}
    known = {"min": mean, "max": mean, "mean": mean, "variance": 0.0, "stddev": 0.0} if mean is not None else {}
    count = int(mean is not None)
    made = {"count": count, "sum": mean or 0, "sum_squared": (mean or 0) ** 2, **known}
    return {"name": {key: value for key, value in about.items() if value is not None}, **made}


def entry(instance="id1", trial=0, split="test", perturbation=None, **stats):
    made = [stat(name, mean, split, perturbation) for name, mean in stats.items()]
    told = {} if perturbation is None else {"perturbation": perturbation}
    return {"instance_id": instance, **told, "train_trial_index": trial, "stats": made}


def run_spec(name=NAME, **adapter):
    made = {"method": "generation", "model": "maker/m-1", "max_train_instances": 5, "temperature": 0.0} | adapter
    return {"name": name, "scenario_spec": {"class_name": "x"}, "adapter_spec": made, "metric_specs": [], "groups": []}


def read(folder, content, spec=None, **options):
    if spec is not False:
        (folder / "run_spec.json").write_text(json.dumps(run_spec() if spec is None else spec))
    path = folder / "per_instance_stats.json"
    return helm.attempts(json.loads(json.dumps(content)), path, Options(**options))


def outcomes(made):
    rows = made.rows
    return [(*row, s) for *row, s in zip(rows["task"], rows["run"], rows["outcome"], rows["status"], strict=True)]


def board(made):
    columns = {role: name for role, name in NAMED.items() if name in made.rows}
    return from_rows(made.rows, columns, {}, place=made.where, source="x", reader="x", tasks=made.tasks)


def test_a_run_with_draws_of_the_prompt_and_perturbations(tmp_path):
    content = [
        entry("id1", 0, exact_match=1.0, num_prompt_tokens=90, num_output_tokens=10, inference_runtime=1.5),
        entry("id1", 0, perturbation=TYPOS, exact_match=0.0),
        entry("id2", 0, exact_match=0.0),
        entry("id1", 1, exact_match=0.0),
        entry("id2", 1, exact_match=1.0),
        entry("id2", 1, perturbation=TYPOS, exact_match=1.0),
        entry("id2", 1, perturbation={"name": "space"}, exact_match=1.0),
    ]
    made = read(tmp_path, content)
    task = "toy:subject=sums/id"
    assert outcomes(made) == [
        (f"{task}1", "0", 1.0, "ok"),
        (f"{task}2", "0", 0.0, "ok"),
        (f"{task}1", "1", 0.0, "ok"),
        (f"{task}2", "1", 1.0, "ok"),
    ]
    rows = made.rows
    assert set(rows["config"]) == {"maker_m-1"}
    assert set(rows["model"]) == {"maker/m-1"}
    assert set(rows["settings"]) == {"data_augmentation=canonical"}
    assert (rows["max_train_instances"][0], rows["temperature"][0], rows["suite"][0]) == ("5", "0.0", task[:-3])
    assert rows["tokens"].tolist() == [100, None, None, None]
    assert rows["time"].tolist() == [1.5, None, None, None]
    assert made.rule == "stat 'exact_match'"
    assert made.where(2) == "entry 4 (instance id1, trial 1)"
    assert made.skipped == [
        ("2 entries under perturbation typos", "only unperturbed instances are read"),
        ("1 entries under perturbation space", "only unperturbed instances are read"),
    ]
    assert made.notes == []
    counted = board(made)
    assert counted.successes.values.tolist() == [[1, 1]]
    assert counted.trials.values.tolist() == [[2, 2]]


def test_entries_of_several_metrics_are_put_together(tmp_path):
    content = [
        entry("id1", num_references=1, exact_match=1),
        entry("id2", num_references=1, exact_match=0),
        entry("id1", estimated_num_tokens_cost=12),
        entry("id1"),  # of a metric with nothing to say
        entry("id2", finish_reason_stop=1),
    ]
    made = read(tmp_path, content)
    assert [row[2] for row in outcomes(made)] == [1, 0]
    assert [made.where(i) for i in (0, 1)] == ["entry 1 (instance id1, trial 0)", "entry 2 (instance id2, trial 0)"]


def test_stats_of_the_request_that_are_repeated_with_other_values_are_left_out_and_a_score_that_is_is_refused(tmp_path):
    tokens = [
        entry("id1", exact_match=1, num_prompt_tokens=5, num_completion_tokens=1),
        entry("id1", num_prompt_tokens=9),
    ]
    made = read(tmp_path, tokens)
    assert [row[2] for row in outcomes(made)] == [1]
    assert "tokens" not in made.rows
    assert read(tmp_path, tokens[:1]).rows["tokens"][0] == 6
    with pytest.raises(OutcomesError, match=r"entry 2, stat 1: exact_match is 0 here and 1 before"):
        read(tmp_path, [entry("id1", exact_match=1), entry("id1", exact_match=0)])


def test_the_score_is_never_guessed(tmp_path):
    content = [entry("id1", exact_match=0, quasi_exact_match=1, f1_score=0.5, logprob=-3.0, max_prob=1)]
    with pytest.raises(
        OutcomesError, match=r"stats exact_match, quasi_exact_match, f1_score: say which .* with score="
    ):
        read(tmp_path, content)
    assert [row[2] for row in outcomes(read(tmp_path, content, score="quasi_exact_match"))] == [1]
    assert [row[2] for row in outcomes(read(tmp_path, content, score="f1_score"))] == [0.5]  # the core refuses it
    assert [row[2] for row in outcomes(read(tmp_path, content, score="logprob"))] == [-3.0]
    with pytest.raises(OutcomesError, match=r"there is no score 'exact' among its stats exact_match, quasi_exact"):
        read(tmp_path, content, score="exact")
    with pytest.raises(OutcomesError, match=r"there are no stats; nothing here has a score"):
        read(tmp_path, [entry("id1", num_prompt_tokens=3)])


def test_an_instance_without_the_stat_is_an_attempt_without_a_score(tmp_path):
    content = [
        entry("id1", score=1),
        entry("id2", num_prompt_tokens=3),
        entry("id3", score=None),
        entry("id4", score=0),
    ]
    content.append(entry("id5"))
    content.append({**entry("id6"), "stats": [stat("score", 1) | {"mean": float("nan")}]})
    made = read(tmp_path, content)
    assert [row[2:] for row in outcomes(made)] == [
        (1, "ok"),
        (None, "error"),
        (None, "error"),
        (0, "ok"),
        (None, "error"),
        (None, "error"),
    ]
    assert made.notes == ["toy:subject=sums: 4 attempts have no stat 'score', so no score"]
    assert board(made).errors.sum() == 4


def test_of_several_splits_test_is_read_and_part_names_another(tmp_path):
    content = [entry("id1", split="valid", score=1), entry("id2", score=0), entry("id3", split="valid", score=1)]
    content.append(entry("id4", split=None, num_bytes=3))
    made = read(tmp_path, content)
    assert outcomes(made) == [("toy:subject=sums/id2", "0", 0, "ok")]
    why = "part= names the split that is read"
    assert made.skipped == [("2 instances of split valid", why), ("1 instances of no split", why)]
    left_out = "2 instances of split valid, 1 instances of no split are not"
    assert made.notes == [f"toy:subject=sums: of several splits one is read; {left_out}"]
    assert len(read(tmp_path, content, part="valid").rows) == 2
    with pytest.raises(OutcomesError, match=r"there is no part 'train' among its splits valid, test"):
        read(tmp_path, content, part="train")
    with pytest.raises(OutcomesError, match=r"splits valid, train: say which counts with part="):
        read(tmp_path, [entry("id1", split="valid", score=1), entry("id2", split="train", score=0)])
    assert len(read(tmp_path, [entry("id1", split="valid", score=1)]).rows) == 1
    assert len(read(tmp_path, [entry("id1", split=None, score=1)]).rows) == 1


@pytest.mark.parametrize(
    ("name", "suite", "config", "settings"),
    [
        ("boolq:model=a_b", "boolq", "a_b", "none"),
        ("toy:model=a_b,data_augmentation=canonical,stop=hash", "toy", "a_b", "data_augmentation=canonical,stop=hash"),
        ("toy:task=x,max_train_instances=0,model=a=b:c", "toy:task=x", "a=b:c", "max_train_instances=0"),
        ("toy:task=modelling,eval_split=test", "toy:task=modelling", "maker/m-1", "eval_split=test"),
        ("toy", "toy", "maker/m-1", "none"),
        ("toy:base_model=b,model=m", "toy:base_model=b", "m", "none"),
        ("tôy:subject=d'été 1,model=é", "tôy:subject=d'été 1", "é", "none"),
    ],
)
def test_the_name_of_a_run_is_a_scenario_a_model_and_settings(tmp_path, name, suite, config, settings):
    row = read(tmp_path, [entry("id 1/x", score=1)], run_spec(name)).rows.iloc[0]
    assert (row["suite"], row["config"], row["settings"]) == (suite, config, settings)
    assert row["task"] == f"{suite}/id 1/x"


def run_folder(folder, spec, *content):
    """The files that a run leaves and the web page adds, of which one has the attempts."""
    folder.mkdir(parents=True)
    shown = [{"instance_id": "id1", "train_trial_index": 0, "predicted_text": "a", "stats": {"score": 1}}]
    files = {
        "run_spec.json": spec,
        "per_instance_stats.json": content,
        "stats.json": [stat("score", 1)],
        "display_predictions.json": shown,
        "scenario.json": {"name": "toy"},
        "scenario_state.json": {"adapter_spec": {}, "request_states": []},
    }
    for name, document in files.items():
        (folder / name).write_text(json.dumps(document, indent=2))


def test_a_folder_of_runs_and_one_model_with_other_settings(tmp_path):
    run_folder(tmp_path / "toy:model=a", run_spec("toy:model=a"), entry("id1", score=1), entry("id2", score=0))
    run_folder(
        tmp_path / "toy:model=b", run_spec("toy:model=b,stop=hash"), entry("id1", score=0), entry("id2", score=0)
    )
    found = evalbayes.read(tmp_path)
    assert found.config.values.tolist() == ["a", "b"]
    assert found.task.values.tolist() == ["toy/id1", "toy/id2"]
    assert found.successes.values.tolist() == [[1, 0], [0, 0]]
    assert found.attrs["score_rule"].startswith("stat 'score'")
    run_folder(tmp_path / "again", run_spec("toy:model=a,stop=hash"), entry("id1", score=0))
    with pytest.raises(OutcomesError, match=r"settings .*; keep them apart with config=\['config', 'settings'\]"):
        evalbayes.read(tmp_path)
    apart = evalbayes.read(tmp_path, config=["config", "settings"])
    assert sorted(apart.config.values) == ["a + none", "a + stop=hash", "b + stop=hash"]


def test_another_number_of_examples_is_another_config(tmp_path):
    run_folder(tmp_path / "a", run_spec(), entry("id1", score=1))
    run_folder(tmp_path / "b", run_spec(max_train_instances=0), entry("id1", score=0))
    with pytest.raises(OutcomesError, match=r"max_train_instances 0 where the same config and task have 5 elsewhere"):
        evalbayes.read(tmp_path)


def test_a_score_that_is_not_0_or_1_is_left_to_the_rule_and_one_that_is_none_is_no_score(tmp_path):
    path = tmp_path / "run" / "per_instance_stats.json"
    nan = entry("id3") | {"stats": [stat("rouge_l", 1) | {"mean": float("nan")}]}
    run_folder(path.parent, run_spec(), entry("id1", rouge_l=0.25), entry("id2", rouge_l=0.75), nan)
    with pytest.raises(OutcomesError, match=r"entry 1 \(instance id1, trial 0\): outcomes between 0 and 1: 0\.25"):
        evalbayes.read(path)
    found = evalbayes.read(path, threshold=0.5)
    assert found.successes.values.tolist() == [[0, 1, 0]]
    assert found.errors.values.tolist() == [[0, 0, 1]]


def test_an_older_run_has_fewer_fields(tmp_path):
    old = [{"instance_id": "id1", "train_trial_index": 0, "stats": [{"name": {"name": "exact_match"}, "mean": 1}]}]
    made = read(tmp_path, old, {"name": "boolq:model=a_b"})
    assert made.rows.to_dict("records") == [
        {
            "config": "a_b",
            "suite": "boolq",
            "settings": "none",
            "task": "boolq/id1",
            "run": "0",
            "outcome": 1,
            "status": "ok",
        }
    ]


def test_unknown_fields_are_passed_over(tmp_path):
    content = [entry("id1", score=1) | {"novel": [1], "perturbation": None}]
    content[0]["stats"][0]["novel"] = {"a": 1}
    assert len(read(tmp_path, content, run_spec() | {"annotators": [{}]}).rows) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([entry("id1", score=1), 3], r"entry 2: a int where an object with 'instance_id'"),
        ([{"train_trial_index": 0, "stats": []}], r"entry 1: there is no 'instance_id'"),
        ([{"instance_id": "a", "stats": []}], r"entry 1: there is no 'train_trial_index'"),
        ([{"instance_id": "a", "train_trial_index": True, "stats": []}], r"'train_trial_index' is a bool, not int"),
        ([{"instance_id": "a", "train_trial_index": 0}], r"entry 1: there is no 'stats'"),
        ([entry("a") | {"stats": {"score": 1}}], r"entry 1: 'stats' is a dict, not list"),
        ([entry("a") | {"stats": [{"mean": 1}]}], r"entry 1, stat 1: there is no 'name'"),
        ([entry("a") | {"stats": [{"name": "score", "mean": 1}]}], r"stat 1: 'name' is a str, not dict"),
        ([entry("a") | {"stats": [stat("score", 1) | {"mean": "1"}]}], r"stat 1: 'mean' is a str, not int or float"),
        ([entry("a", score=1) | {"perturbation": "typos"}], r"entry 1: 'perturbation' is a str, not dict"),
        ({"stats": []}, r"not a list of stats"),
        (None, r"not a list of stats"),
    ],
)
def test_damage_is_one_line_that_names_the_file_and_the_place(tmp_path, content, message):
    with pytest.raises(OutcomesError, match=message) as caught:
        read(tmp_path, content)
    assert str(caught.value).startswith(str(tmp_path / "per_instance_stats.json"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (False, r"per_instance_stats.json: there is no run_spec.json beside it, which names the model"),
        ({"adapter_spec": {"model": "m"}}, r"run_spec.json: there is no 'name'"),
        ({"name": 3}, r"run_spec.json: 'name' is a int, not str"),
        ({"name": "toy"}, r"run_spec.json: neither model= in the name 'toy' nor a model of the adapter"),
        ([], r"run_spec.json: a list where an object with 'name' is expected"),
    ],
)
def test_the_run_spec_has_to_say_the_model(tmp_path, spec, message):
    with pytest.raises(OutcomesError, match=message):
        read(tmp_path, [entry("id1", score=1)], spec)


def test_a_damaged_run_spec_is_named(tmp_path):
    (tmp_path / "run_spec.json").write_text('{"name": ')
    with pytest.raises(OutcomesError, match=r"run_spec.json, line 1, column \d+: not JSON"):
        read(tmp_path, [entry("id1", score=1)], False)


def test_only_perturbed_instances_or_none_is_no_attempt(tmp_path):
    for content in ([], [entry("id1", perturbation=TYPOS, score=1)]):
        with pytest.raises(NoAttempts, match="no attempt"):
            read(tmp_path, content)


def test_what_is_recognised():
    path = Path("per_instance_stats.json")
    assert helm.recognises([entry("id1", score=1)], path)
    assert helm.recognises([entry("id1", perturbation=TYPOS)], Path("x.json"))
    shown = {"instance_id": "id1", "train_trial_index": 0, "predicted_text": "a", "stats": {"score": 1}}
    assert not helm.recognises([shown], Path("display_predictions.json"))
    assert not helm.recognises([stat("score", 1)], Path("stats.json"))
    assert not helm.recognises(run_spec(), Path("run_spec.json"))
    for other in (None, [], {}, 3, "x", [3], [[]], [{"task_id": 1, "reward": 1.0}]):
        assert not helm.recognises(other, path)
