"""tau2-bench results, rebuilt from sierra-research/tau2-bench.

src/tau2/data_model/simulation.py gives the fields (82971646, the older form; 143a213f, the newer, with an index of
simulations and more reasons to end), runner/progress.py (143a213f) what is written for a run that the infrastructure
stopped: a reason, no reward. evaluator/evaluator.py (81adbc34) sets 0 where neither side ended the run, and
metrics/agent_metrics.py (26ac2bc2) leaves runs that never ran out of its rates; context_window_exceeded is one of them
in 143a213f (issue 159, pull request 360). scripts/evaluate_trajectories.py (2b80cb1f) has sets of tasks that share ids.
Contents are invented.
"""

import json

import pytest

import evalbayes
from evalbayes import OutcomesError
from evalbayes.read import tau2_bench
from evalbayes.read.attempts import NoAttempts, Options
from evalbayes.read.joined import Asked, board_of, part_of


def simulation(task="0", trial=0, reward=1.0, reason="user_stop", **more):
    return {
        "id": f"sim-{task}-{trial}-{reward}-{reason}",
        "task_id": task,
        "timestamp": "2026-01-02T10:00:00",
        "start_time": "2026-01-02T10:00:00",
        "end_time": "2026-01-02T10:01:00",
        "duration": 60.0,
        "termination_reason": reason,
        "agent_cost": 0.25,
        "user_cost": 0.125,
        "reward_info": None if reward is None else {"reward": reward, "reward_breakdown": {"DB": reward}},
        "messages": [{"role": "user", "content": "hello"}],
        "trial": trial,
        "seed": 300,
    } | more


def results(simulations, *, llm="model-a", domain="airline", tasks=None, timestamp="2026-01-02T09:00:00", **info):
    names = dict.fromkeys(one["task_id"] for one in simulations if isinstance(one, dict) and "task_id" in one)
    about = {
        "git_commit": "abc",
        "num_trials": 1,
        "max_steps": 100,
        "max_errors": 10,
        "user_info": {"implementation": "user_simulator", "llm": "model-u", "llm_args": {"temperature": 0.0}},
        "agent_info": {"implementation": "llm_agent", "llm": llm, "llm_args": {"temperature": 0.0}},
        "environment_info": {"domain_name": domain, "policy": "be kind"},
        "seed": 300,
    } | info
    listed = [{"id": name, "user_scenario": {}} for name in (names if tasks is None else tasks)]
    return {"timestamp": timestamp, "info": about, "tasks": listed, "simulations": simulations}


def made(content, path):
    """The attempts of a document, through text as a file has it."""
    content = json.loads(json.dumps(content))
    assert tau2_bench.recognises(content, path)
    return tau2_bench.attempts(content, path, Options())


def board(tmp_path, *contents, **rules):
    paths = [tmp_path / f"{i}.json" for i in range(len(contents))]
    parts = [
        part_of(str(path), path.name, "tau2_bench", made(one, path), {})
        for path, one in zip(paths, contents, strict=True)
    ]
    return board_of(parts, rules, Asked("logs", len(parts) > 1))


def test_simulations_are_runs_of_a_task_of_their_domain(tmp_path):
    content = results(
        [
            simulation("0", 0, duration=20.0),
            simulation("0", 1, 0.0, agent_cost=0.75),
            simulation("1", 0, 1.0000001),
            simulation("1", 1, 1 - 1e-7),
        ],
        num_trials=2,
    )
    found = board(tmp_path, content)
    assert found.config.values.tolist() == ["model-a"]
    assert found.task.values.tolist() == ["airline/0", "airline/1"]
    assert found.run.values.tolist() == ["0", "1"]
    assert found.outcome.values.tolist() == [[[1, 0], [1, 1]]]
    assert found.suite.values.tolist() == ["airline"] * 2
    assert found.suite.dims == ("task",)
    assert (found.agent.item(), found.user_model.item(), found.date.item()) == ("llm_agent", "model-u", "2026-01-02")
    assert (found.cost.values.tolist(), found.duration.values.tolist()) == ([[0.5, 0.25]], [[40.0, 60.0]])
    assert made(content, tmp_path / "a.json").where(3) == "simulations, entry 4 (task airline/1, trial 1)"
    assert found.attrs["notes"] == ""


def test_case_2_a_task_whose_every_trial_hit_the_infrastructure_stays(tmp_path):
    stopped = [
        simulation(name, 0, None, "infrastructure_error", messages=[], info={"error": "disconnected"}) for name in "123"
    ]
    found = board(tmp_path, results([simulation("0"), *stopped]))
    assert found.sizes["task"] == 4
    assert found.trials.values.tolist() == [[1, 0, 0, 0]]
    assert found.errors.values.tolist() == [[0, 1, 1, 1]]
    assert "3 of 4 simulations have no score (infrastructure_error 3)" in found.attrs["notes"]
    failed = board(tmp_path, results([simulation("0"), *stopped]), errors="failure")
    assert (int(failed.successes.sum()), int(failed.trials.sum())) == (1, 4)


@pytest.mark.parametrize("reason", ["too_many_errors", "max_steps", "agent_error", "user_error", "timeout", "new_word"])
def test_a_run_that_was_judged_has_its_reward_whatever_ended_it(tmp_path, reason):
    assert board(tmp_path, results([simulation(reward=0.0, reason=reason)])).outcome.values.tolist() == [[[0]]]


@pytest.mark.parametrize("reason", ["infrastructure_error", "context_window_exceeded"])
def test_a_run_that_never_ran_has_no_score_even_with_a_reward(tmp_path, reason):
    assert board(tmp_path, results([simulation(reward=0.0, reason=reason)])).outcome.values.tolist() == [[[-1]]]


def test_a_simulation_without_reward_info_has_no_score(tmp_path):
    bare = {key: value for key, value in simulation("1").items() if key not in ("reward_info", "agent_cost")}
    found = board(tmp_path, results([simulation("0"), bare, simulation("2", reward=None)]))
    assert found.outcome.values.tolist() == [[[1], [-1], [-1]]]
    assert "2 of 3 simulations have no score (no reward 2)" in found.attrs["notes"]


@pytest.mark.parametrize("reward", [None, float("nan")])
def test_a_reward_that_is_none_is_no_failure(tmp_path, reward):
    found = board(tmp_path, results([simulation("0"), simulation("1", reward_info={"reward": reward})]))
    assert found.outcome.values.tolist() == [[[1], [-1]]]
    assert "1 of 2 simulations have no score (no reward 1)" in found.attrs["notes"]


def test_a_partial_reward_needs_a_rule(tmp_path):
    content = results([simulation("0", reward=0.5), simulation("1", reward=1 - 1e-5)])
    with pytest.raises(
        OutcomesError, match=r"0\.json, simulations, entry 1 \(task airline/0, trial 0\): outcomes betwe"
    ):
        board(tmp_path, content)
    assert board(tmp_path, content, threshold=1).outcome.values.tolist() == [[[0], [0]]]


def test_the_placeholder_of_a_run_that_never_ran_has_no_duration(tmp_path):
    stopped = simulation("0", 1, None, "infrastructure_error", duration=0.0, agent_cost=None)
    found = board(tmp_path, results([simulation("0", 0, duration=50.0), stopped]))
    assert (found.duration.item(), found.cost.item()) == (50.0, 0.25)


def test_sets_of_tasks_that_share_ids_are_kept_apart(tmp_path):
    other = results([simulation(reward=0.0, id="x")], timestamp="2026-01-03T09:00:00", task_set_name="airline_hi")
    found = board(tmp_path, results([simulation()]), other)
    assert found.task.values.tolist() == ["airline/0@airline", "airline/0@airline_hi"]
    assert found.outcome.values.tolist() == [[[1], [0]]]
    same = results([simulation(id="x")], timestamp="2026-01-03T09:00:00", task_set_name="airline")
    assert board(tmp_path, results([simulation()]), same).task.values.tolist() == ["airline/0"]


def test_task_0_of_two_domains_is_two_tasks(tmp_path):
    found = board(tmp_path, results([simulation()]), results([simulation(reward=0.0)], domain="retail"))
    assert found.task.values.tolist() == ["airline/0", "retail/0"]
    assert found.suite.values.tolist() == ["airline", "retail"]
    assert found.outcome.values.tolist() == [[[1], [0]]]


def test_tasks_and_trials_that_were_planned_are_told(tmp_path):
    found = board(tmp_path, results([simulation("0")], tasks=["0", "7 é/ü"], num_trials=4))
    assert found.task.values.tolist() == ["airline/0", "airline/7 é/ü"]
    assert found.trials.values.tolist() == [[1, 0]]
    assert "1 of 8 planned simulations are present (num_trials=4)" in found.attrs["notes"]


def test_another_file_has_further_runs_and_the_same_simulation_is_a_copy(tmp_path):
    one = results([simulation("0", 0), simulation("0", 1, 0.0)], num_trials=2)
    again = results([simulation("0", 0, id="x"), simulation("0", 1, id="y")], timestamp="2026-01-03T09:00:00")
    both = board(tmp_path, one, again)
    assert both.outcome.values.tolist() == [[[1, 0, 1, 1]]]
    resumed = results([simulation("0", 0), simulation("1", 0)], timestamp="2026-01-04T09:00:00")
    kept = board(tmp_path, one, resumed)
    assert kept.attrs["n_duplicates_dropped"] == 1
    assert int(kept.trials.sum()) == 3


def test_another_setting_of_the_model_is_not_mixed_up(tmp_path):
    one, other = results([simulation()]), results([simulation(id="x")], timestamp="2026-01-03T09:00:00")
    other["info"]["agent_info"]["implementation"] = "llm_agent_solo"
    with pytest.raises(OutcomesError, match=r"1\.json, .*: agent llm_agent_solo where .* llm_agent elsewhere"):
        board(tmp_path, one, other)


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"retrieval_config_kwargs": {"k": 5}}, "retrieval_args"),
        ({"audio_native_config": {"model": "voice-1", "provider": "xai"}}, "voice_provider xai"),
        ({"audio_native_config": {"model": "voice-1", "reasoning_effort": "high"}}, "reasoning_effort high"),
    ],
)
def test_settings_of_retrieval_and_of_a_voice_are_not_mixed_up(tmp_path, info, said):
    voice = {"llm": None} if "audio_native_config" in info else {}
    plain = {"audio_native_config": {"model": "voice-1"}} if voice else {}
    one = results([simulation()], **voice, **plain)
    other = results([simulation(id="x")], timestamp="2026-01-03T09:00:00", **voice, **info)
    with pytest.raises(
        OutcomesError, match=rf"1\.json, .*: {said}.* where the same config and task have none elsewhere"
    ):
        board(tmp_path, one, other)


def test_a_folder_of_runs_is_read_without_being_told_the_format(tmp_path):
    for name, reward in (("first", 1.0), ("second", 0.0)):
        content = results([simulation("0", reward=reward, id=name)], timestamp=name, num_trials=2)
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(json.dumps(content))
    found = evalbayes.read(tmp_path)
    assert found.attrs["reader"] == "tau2_bench: 2 files"
    assert found.outcome.values.tolist() == [[[1, 0]]]
    assert "first/results.json, second/results.json: 1 of 2 planned simulations" in found.attrs["notes"]


def test_a_results_file_beside_a_folder_of_simulations_is_read_from_its_index(tmp_path):
    index = [
        {"id": "a", "task_id": 0, "trial": 0, "reward": 1.0, "termination_reason": "user_stop", "duration": 5.0},
        {"id": "b", "task_id": "0", "trial": 1, "reward": None, "termination_reason": "infrastructure_error"},
    ]
    content = results([], tasks=["0"], num_trials=2) | {"simulation_index": index, "format_version": 1}
    del content["simulations"]
    found = board(tmp_path, content)
    assert found.outcome.values.tolist() == [[[1, -1]]]
    assert found.duration.values.tolist() == [[5.0]]
    assert made(content, tmp_path / "a.json").where(1).startswith("simulation_index, entry 2")
    with pytest.raises(OutcomesError, match="simulations are files of the folder simulations, which no simulation_in"):
        made(content | {"simulation_index": None}, tmp_path / "results.json")


def test_a_voice_agent_is_named_by_its_voice_model(tmp_path):
    content = results([simulation(ticks=[], messages=None)], llm=None, audio_native_config={"model": "voice-1"})
    assert board(tmp_path, content).config.values.tolist() == ["voice-1"]
    with pytest.raises(OutcomesError, match=r"a\.json, info\.agent_info: no 'llm' names the model"):
        made(results([simulation()], llm=None), tmp_path / "a.json")


def test_trials_without_a_number_are_each_a_run(tmp_path):
    found = board(tmp_path, results([simulation(trial=None), simulation(trial=None, reward=0.0)]))
    assert (int(found.successes.sum()), int(found.trials.sum())) == (1, 2)


def test_a_discarded_run_and_an_empty_file_hold_no_attempt(tmp_path):
    with pytest.raises(NoAttempts, match="discarded and made again"):
        made(results([simulation()]), tmp_path / "hallucination_discarded" / "a.json")
    with pytest.raises(NoAttempts, match="there is no attempt"):
        made(results([]), tmp_path / "a.json")


def test_unknown_fields_are_passed_over(tmp_path):
    content = results([simulation(brand_new={"a": [1]})], brand_new=2) | {"brand_new": None}
    assert int(board(tmp_path, content).successes.sum()) == 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"reward_info": {}}, r"a\.json, simulations, entry 2, reward_info: there is no 'reward'"),
        ({"reward_info": {"reward": "1"}}, "entry 2, reward_info: 'reward' is a str"),
        ({"reward_info": {"reward": True}}, "entry 2, reward_info: 'reward' is a bool"),
        ({"reward_info": 1.0}, "entry 2, reward_info: a float where an object with 'reward' is expected"),
        ({"task_id": None}, "entry 2: 'task_id' is null"),
        ({"trial": 0.5}, "entry 2: 'trial' is a float"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(tmp_path, change, fault):
    with pytest.raises(OutcomesError, match=fault):
        made(results([simulation(), simulation(trial=1) | change]), tmp_path / "a.json")


@pytest.mark.parametrize(
    ("place", "field", "fault"),
    [
        ("environment_info", "domain_name", r"a\.json, info: there is no 'domain_name'"),
        (None, "environment_info", None),
        (None, "agent_info", None),
    ],
)
def test_a_missing_field_is_named(tmp_path, place, field, fault):
    content = results([simulation()])
    del (content["info"][place] if place else content["info"])[field]
    if fault is None:
        assert not tau2_bench.recognises(content, tmp_path / "a.json")
        fault = rf"a\.json, info: there is no '{field}'"
    with pytest.raises(OutcomesError, match=fault):
        tau2_bench.attempts(content, tmp_path / "a.json", Options())


@pytest.mark.parametrize("tasks", [5, None, {"0": {}}, ["0", {"name": "x"}, {"id": []}]])
def test_tasks_that_are_not_named_are_not_known(tmp_path, tasks):
    assert made(results([simulation()]) | {"tasks": tasks}, tmp_path / "a.json").tasks == []


def test_an_entry_of_the_index_of_the_wrong_kind_is_named(tmp_path):
    content = results([]) | {"simulations": [], "simulation_index": [{"task_id": "0", "trial": 0, "reward": "1"}]}
    with pytest.raises(OutcomesError, match=r"a\.json, simulation_index, entry 1: 'reward' is a str"):
        made(content, tmp_path / "a.json")
    del content["simulation_index"][0]["reward"]
    assert made(content, tmp_path / "a.json").rows["status"].tolist() == ["error"]


def test_simulations_that_are_no_list_are_named(tmp_path):
    with pytest.raises(OutcomesError, match=r"a\.json: 'simulations' is a dict, not list"):
        made(results([simulation()]) | {"simulations": {"a": 1}}, tmp_path / "a.json")
    with pytest.raises(OutcomesError, match="entry 1: a str where an object with 'task_id' is expected"):
        made(results(["x"]), tmp_path / "a.json")


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        3,
        "x",
        [{"task_id": 0, "reward": 1.0, "trial": 0}],
        {"info": {}, "simulations": []},
        {"info": [], "simulations": []},
        {"config": {"agent_name": "a", "run_id": "r"}, "results": {}},
    ],
)
def test_other_documents_are_not_recognised(tmp_path, content):
    assert not tau2_bench.recognises(content, tmp_path / "a.json")
