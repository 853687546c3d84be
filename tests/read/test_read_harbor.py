"""Harbor trials and jobs, rebuilt from the package harbor 0.26.0 (laude-institute/harbor, harbor-framework/harbor).

harbor/models/trial/result.py and models/job/result.py give the fields, job.py what is written where, metrics what a
mean is out of. The earlier rule, by which a trial without a reward counts as 0, is in UniPat-AI/harbor_multiturn
src/harbor/job.py (2c7b4c41) and src/harbor/metrics/mean.py (bd2c50b7). Case 23 has the counts of a job of that time, as
tenstorrent/tt-inference-server issue 4176 shows it; which trials they are is invented.
"""

import json
from pathlib import Path

import pytest

from evalbayes import OutcomesError
from evalbayes.board import audit
from evalbayes.read import harbor
from evalbayes.read.attempts import NoAttempts, Options
from evalbayes.tabulate import from_rows

COLUMNS = {name: name for name in ("config", "task", "run", "outcome", "status")}
KEY = "terminus-2__vendor/model-1__terminal-bench"
CONFIG = "terminus-2 + vendor/model-1"


def trial(name="task-1__aB3dEf7", reward=1.0, exception=None, task=None, model="vendor/model-1", **more):
    info = {
        "exception_type": exception,
        "exception_message": "",
        "exception_traceback": "",
        "occurred_at": "2026-01-01T00:00:00",
    }
    return {
        "id": f"id of {name}",
        "task_name": task or name.rpartition("__")[0],
        "trial_name": name,
        "trial_uri": f"file:///jobs/{name}",
        "task_id": {"path": "tasks/task-1"},
        "source": "terminal-bench",
        "task_checksum": "c0ffee",
        "config": {"task": {}, "timeout_multiplier": 1.0, "agent": {"name": "terminus-2", "kwargs": {}}, "job_id": "j"},
        "agent_info": {
            "name": "terminus-2",
            "version": "2.0.0",
            "model_info": {"name": model, "provider": "vendor"} if model else None,
        },
        "agent_result": {"n_input_tokens": 100, "n_cache_tokens": 50, "n_output_tokens": 11, "cost_usd": 0.5},
        "verifier_result": None
        if reward is None
        else {"rewards": reward if isinstance(reward, dict) else {"reward": reward}},
        "exception_info": info if exception else None,
        "started_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T00:10:00Z",
        "agent_execution": {"started_at": "2026-01-01T00:01:00Z", "finished_at": "2026-01-01T00:02:30Z"},
    } | more


def job(rewards, exceptions=None, mean=None, total=None, key=KEY, **more):
    """The result.json of a job: rewards are {key of rewards: {value as text: [names of trials]}}."""
    listed = [name for values in rewards.values() for names in values.values() for name in names]
    raised = [name for names in (exceptions or {}).values() for name in names]
    ran = len({*listed, *raised})
    stats = {
        "n_trials": len(set(listed)),
        "n_errors": len(set(raised)),
        "metrics": [] if mean is None else [{"mean": mean}],
        "pass_at_k": {},
        "reward_stats": rewards,
        "exception_stats": exceptions or {},
    } | more
    progress = {"n_completed_trials": ran, "n_errored_trials": len(set(raised)), "n_retries": 0}
    return {
        "id": "j",
        "started_at": "2026-01-01T00:00:00",
        "finished_at": "2026-01-01T12:00:00",
        "n_total_trials": ran if total is None else total,
        "stats": progress | {"evals": {key: stats}},
    }


def names(start, stop):
    return [f"task-{i:02}__abcdefg" for i in range(start, stop)]


def read(content, path="jobs/job-1/result.json", **options):
    return harbor.attempts(json.loads(json.dumps(content)), Path(path), Options(**options))


def board(made):
    columns = {role: name for role, name in COLUMNS.items() if name in made.rows}
    return from_rows(made.rows, columns, {}, place=made.where, source="x", reader="x", tasks=made.tasks)


def test_case_23_the_rate_is_that_of_the_trials_and_the_note_says_what_the_header_is_out_of():
    """89 trials, 88 with a reward, 40 of them 1; 16 exceptions, 15 of them in trials that have a reward."""
    passed, failed, lost = names(0, 40), names(40, 88), names(88, 89)
    exceptions = {"AgentTimeoutError": failed[:15], "VerifierTimeoutError": lost}
    made = read(job({"reward": {"0.0": failed, "1.0": passed}}, exceptions, mean=0.449438202247191))
    counted = board(made)
    assert (int(counted.successes.sum()), int(counted.trials.sum()), int(counted.errors.sum())) == (40, 88, 1)
    assert counted.sizes["task"] == 89
    assert made.notes == [
        f"job-1/result.json, {CONFIG}: its mean 0.449438 is 40/89, out of all trials, those without a reward as 0 "
        "(n_total_trials 89, n_trials 88, n_errors 16); the rows give 40/88 = 0.454545 and 1 without a score",
        "job-1/result.json: 15 trials have a reward and an exception (AgentTimeoutError 15); their reward counts",
    ]
    assert made.header == {CONFIG: {"trials": 88, "rate": 0.449438202247191}}
    found = audit(counted, header=made.header)
    assert found.kind.values.tolist() == ["denominator"]
    assert "40/89 (attempted" in found.detail.item()
    assert "not 40/88" in found.detail.item()


def test_a_mean_out_of_the_trials_with_a_reward_is_told_apart_and_one_of_none():
    rewards = {"reward": {"1.0": names(0, 3), "0.0": names(3, 4)}}
    lost = {"EnvironmentStartTimeoutError": names(4, 5)}
    now = read(job(rewards, lost, mean=0.75)).notes
    assert ["is 3/4, out of the trials with a reward (" in note for note in now] == [True]
    planned = read(job(rewards, lost, mean=0.3, total=10)).notes
    assert planned[0] == "job-1/result.json: 5 of 10 planned trials have a result"
    assert "is 3/10, out of the planned trials" in planned[1]
    wrong = read(job(rewards, lost, mean=0.9)).notes
    assert "its mean 0.900000 is none that its trials give" in wrong[0]
    assert read(job(rewards, mean=0.75)).notes == []


def test_a_trial_is_an_attempt_with_its_facts():
    made = read(trial(reward=1, config={"timeout_multiplier": 2.0, "agent": {"kwargs": {"b": 1, "a": 2}}}))
    assert made.rows.iloc[0].to_dict() == {
        "config": CONFIG,
        "task": "task-1",
        "run": "task-1__aB3dEf7",
        "outcome": 1.0,
        "status": "ok",
        "uuid": "id of task-1__aB3dEf7",
        "agent": "terminus-2",
        "agent_version": "2.0.0",
        "agent_kwargs": '{"a": 2, "b": 1}',
        "timeout_multiplier": 2.0,
        "model": "vendor/model-1",
        "provider": "vendor",
        "suite": "terminal-bench",
        "task_checksum": "c0ffee",
        "date": "2026-01-01",
        "time": 90.0,
        "tokens": 111,
        "cost": 0.5,
    }
    assert made.where(0) == "trial task-1__aB3dEf7"
    assert {"agent_kwargs", "timeout_multiplier", "suite"} <= set(made.variants)
    assert read(trial(model=None)).rows["config"].tolist() == ["terminus-2"]


@pytest.mark.parametrize(
    ("change", "outcome", "status"),
    [
        ({"reward": 0.0}, 0.0, "ok"),
        ({"reward": 0.5}, 0.5, "ok"),
        ({"reward": None}, None, "error"),
        ({"reward": {}}, None, "error"),
        ({"verifier_result": {"rewards": None}}, None, "error"),
        ({"reward": None, "exception": "AgentTimeoutError"}, None, "error"),
        ({"reward": 1.0, "exception": "AgentTimeoutError"}, 1.0, "ok"),
        ({"reward": 1.0, "exception": "AgentTimeoutError", "reward_valid": True}, 1.0, "ok"),
        ({"reward": 0.0, "exception": "ApiRateLimitError", "reward_valid": False}, None, "error"),
    ],
)
def test_a_reward_counts_unless_the_file_says_it_is_not_valid(change, outcome, status):
    made = read(trial(**change))
    assert made.rows.loc[0, ["outcome", "status"]].tolist() == [outcome, status]
    assert made.rows.get("exception", [None])[0] == change.get("exception")


def test_of_several_rewards_one_is_chosen():
    several = trial(reward={"reward": 1.0, "format": 0.0})
    with pytest.raises(OutcomesError, match=r"rewards reward, format: say which counts with score="):
        read(several)
    assert read(several, score="format").rows["outcome"].tolist() == [0.0]
    listed = job({"reward": {"1.0": names(0, 2)}, "format": {"0.0": names(0, 2)}})
    with pytest.raises(OutcomesError, match=r"rewards format, reward: say which counts with score="):
        read(listed)
    assert read(listed, score="format").rows["outcome"].tolist() == [0.0, 0.0]


def test_trials_with_a_file_of_their_own_are_left_to_it(tmp_path):
    """The other trials of the job come from its list."""
    path = tmp_path / "result.json"
    content = job({"reward": {"1.0": names(0, 2), "0.0": names(2, 3)}}, mean=2 / 3)
    for name in names(0, 2):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(trial(name)))
    made = read(content, path)
    assert made.rows[["task", "outcome"]].values.tolist() == [["task-02", 0.0]]
    (tmp_path / names(2, 3)[0]).mkdir()
    (tmp_path / names(2, 3)[0] / "result.json").write_text(json.dumps(trial(names(2, 3)[0], 0.0)))
    with pytest.raises(NoAttempts, match="its 3 trials have files of their own; read its folder"):
        read(content, path)


def test_trials_inside_a_job_and_repeated_trials_of_a_task():
    inside = [trial("t__a"), trial("t__b", 0.0), trial("u__c", None, "DownloadVerifierDirError")]
    made = read({"n_total_trials": 4, "stats": {"n_trials": 3, "n_errors": 1}, "trial_results": inside})
    counted = board(made)
    assert counted.trials.sel(task=["t", "u"]).values.tolist() == [[2, 0]]
    assert counted.errors.sel(task=["t", "u"]).values.tolist() == [[0, 1]]
    assert made.notes == ["job-1/result.json: 3 of 4 planned trials have a result"]


def test_steps_of_a_trial_are_summed():
    steps = [
        {"agent_result": {"n_input_tokens": 5, "cost_usd": 0.25}},
        {"agent_result": None},
        {"agent_result": {"n_output_tokens": 2}},
    ]
    made = read(trial(agent_result=None, step_results=steps))
    assert made.rows.loc[0, ["tokens", "cost"]].tolist() == [7, 0.25]


def test_names_that_a_job_cuts_off_are_completed_from_the_manifest():
    long = "instance-of-a-task-with-a-name-too-long-to-keep"
    content = job({"reward": {"1.0": [f"{long[:32].rstrip('_-')}__abcdefg"]}})
    assert any("may be cut off" in note for note in read(content).notes)
    assert read(content, manifest=("other", f"org/{long}")).rows["task"].tolist() == [f"org/{long}"]
    with pytest.raises(OutcomesError, match=r"jobs/job-1/result.json: instance-of-.* may be .*; read the result.json"):
        read(content, manifest=(long, f"{long}-2"))


def test_a_trial_that_does_not_say_its_task_is_skipped_and_oracles_have_no_model():
    made = read(job({"reward": {"1.0": ["mine", "t__a"]}}, key="oracle__adhoc"))
    assert made.skipped == [("trial mine", "its name does not say its task; read its own result.json")]
    assert made.rows[["config", "suite"]].values.tolist() == [["oracle", "adhoc"]]


def test_a_job_of_two_configs_has_a_header_for_each_and_of_two_datasets_none():
    one = job({"reward": {"1.0": names(0, 1)}}, mean=1.0)
    other = job({"reward": {"0.0": names(1, 2)}}, mean=0.0)["stats"]["evals"][KEY]
    one["n_total_trials"] = 2
    one["stats"]["evals"]["b__m__d"] = other
    assert read(one).header == {CONFIG: {"trials": 1, "rate": 1.0}, "b + m": {"trials": 1, "rate": 0.0}}
    del one["stats"]["evals"]["b__m__d"]
    one["stats"]["evals"]["terminus-2__vendor/model-1__other"] = other
    assert read(one).header == {}
    partial = read(job({"reward": {"0.5": names(0, 2)}}, mean=0.5))
    assert partial.header == {CONFIG: {"trials": 2}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (trial(agent_info=None), r"'agent_info' is null, not dict"),
        (trial(agent_info={"version": "1"}), r"agent_info: there is no 'name'"),
        (trial(agent_info={"name": "a", "model_info": "m"}), r"agent_info: 'model_info' is a str, not dict"),
        (trial(agent_info={"name": "a", "model_info": {"provider": "p"}}), r"model_info: there is no 'name'"),
        (trial(reward="1.0"), r"rewards: 'reward' is a str, not int or float"),
        (trial(verifier_result=[1]), r"verifier_result: a list where an object"),
        (trial(verifier_result={}), r"verifier_result: there is no 'rewards'"),
        (trial(exception_info={"type": "x"}), r"exception_info: there is no 'exception_type'"),
        (trial(task_name=7), r"'task_name' is a int, not str"),
        (job({"reward": {"good": names(0, 1)}}), rf"evals, {KEY}: reward 'good' is not a number"),
        (job({"reward": {"1.0": names(0, 1), "0.0": names(0, 1)}}), r"trial task-00__abcdefg has two rewards"),
        (job({"reward": {"1.0": names(0, 1)}}) | {"n_total_trials": "1"}, r"'n_total_trials' is a str, not int"),
        (job({}, reward_stats={"reward": [1]}), rf"evals, {KEY}: reward_stats does not list trials"),
        (job({}, exception_stats={"E": "x"}), rf"evals, {KEY}: exception_stats does not list trials"),
        ({"n_total_trials": 1, "stats": {}, "trial_results": ["x"]}, r"trial_results, entry 1: a str where an object"),
        ({}, r"there is no 'n_total_trials'"),
        (None, r"null where an object"),
        ([], r"a list where an object"),
    ],
)
def test_damage_is_one_line_that_names_the_file_and_the_place(content, message):
    with pytest.raises(OutcomesError, match=message) as caught:
        read(content)
    assert str(caught.value).startswith("jobs/job-1/result.json")
    assert "\n" not in str(caught.value)


def test_a_job_that_lists_no_trial_has_no_attempt():
    with pytest.raises(NoAttempts, match="no attempt"):
        read({"n_total_trials": 3, "stats": {"evals": {}}})
    with pytest.raises(NoAttempts, match="this job does not list its trials"):
        read({"n_total_trials": 3, "stats": {"evals": {KEY: {"n_trials": 3}}}})


def test_what_is_recognised():
    path = Path("result.json")
    assert harbor.recognises(trial(), path)
    assert harbor.recognises(job({}), path)
    for other in (None, 3, [], {}, {"n_total_trials": 1}, {"stats": {}}, {"task_name": "a", "trial_name": "b"}):
        assert not harbor.recognises(other, path)


def test_unknown_fields_odd_names_and_facts_of_another_shape():
    odd = {
        "novel": [1],
        "config": None,
        "agent_result": 3,
        "step_results": "x",
        "agent_execution": [],
        "started_at": None,
    }
    made = read(trial("tâche / 1__x", task="org/tâche 1", **odd))
    assert made.rows.loc[0, ["task", "run"]].tolist() == ["org/tâche 1", "tâche / 1__x"]
    assert not {"tokens", "cost", "time", "date", "agent_kwargs"} & set(made.rows)
