"""tau2-bench results: ``info`` says who was tested on which domain, ``simulations`` lists the runs.

The config is ``info.agent_info.llm`` (for a voice agent without one, ``info.audio_native_config.model``), the task
``info.environment_info.domain_name`` / ``task_id``, for every domain counts its tasks anew, and the run ``trial``. A
reward within 1e-6 of 1 is a success. A results file that keeps its simulations in a folder beside it is read from its
``simulation_index``.

=============================================================  ======================================================
simulation                                                     outcome
=============================================================  ======================================================
``termination_reason`` is infrastructure_error or              no score, whatever the reward: tau2-bench leaves these
context_window_exceeded                                        out of its rates
no ``reward_info``, or null, or a reward that is null or NaN   no score
anything else, as too_many_errors, max_steps or timeout        the reward, which tau2-bench sets to 0 for a run that
                                                               did not end by agent or user
=============================================================  ======================================================

Several files of one model and domain are further runs, told apart by the time of the file; a simulation is known again
by its ``id``. What makes another config of the same model is never mixed up: see ``variants``. Sets of tasks of one
domain, as translated ones, share their ids: ``info.task_set_name``, where it is there, is the version of a task.

Evidence: sierra-research/tau2-bench src/tau2/data_model/simulation.py (82971646, older; 143a213f, newer), issue 159 and
pull request 360 for context_window_exceeded, metrics/agent_metrics.py (26ac2bc2), runner/progress.py (143a213f),
evaluator/evaluator.py (81adbc34), scripts/evaluate_trajectories.py (2b80cb1f) for the sets of tasks.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, NoAttempts, Options, as_json, from_records, need
from evalbayes.read.tau_bench import binary

NOT_RUN = ("infrastructure_error", "context_window_exceeded")
"""Reasons of runs that tau2-bench does not evaluate."""
VARIANTS = (
    *("agent", "agent_args", "user_model", "user_args", "retrieval_config", "retrieval_args", "speech_complexity"),
    *("voice_provider", "reasoning_effort"),
)
"""What makes another config of the same model."""
DISCARDED = "hallucination_discarded"
"""The folder of runs that were made again because the simulated user made things up."""
_LISTS = ("simulations", "simulation_index")


def recognises(content: Any, path: Path) -> bool:
    """Whether a document has an agent, an environment and simulations."""
    info = content.get("info") if isinstance(content, dict) else None
    if not isinstance(info, dict) or not any(name in content for name in _LISTS):
        return False
    return "agent_info" in info and "environment_info" in info


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a results file; see `evalbayes.read.attempts`.

    Raises
    ------
    NoAttempts
        If there is no simulation, or the file holds one that was discarded.
    OutcomesError
        If a field is missing or of another kind, or the simulations are in other files that no index lists.
    """
    if path.absolute().parent.name == DISCARDED:
        raise NoAttempts(f"{path}: a run that tau2-bench discarded and made again; read the results file instead")
    info = need(content, "info", dict, str(path))
    domain = need(need(info, "environment_info", dict, f"{path}, info"), "domain_name", str, f"{path}, info")
    facts = {**_facts(info, path), **_when(content), "suite": domain, "task_version": _task_set(info, domain)}
    key, simulations = _listed(content, path)
    records, places = [], []
    for i, simulation in enumerate(simulations, 1):
        record = _row(simulation, domain, f"{path}, {key}, entry {i}", indexed=key == "simulation_index")
        records.append({**facts, **record})
        places.append(f"{key}, entry {i} (task {record['task']}, trial {record['run'] or 'unnumbered'})")
    tasks = _known(content, domain)
    name = f"{path.absolute().parent.name}/{path.name}"
    return from_records(
        records,
        places,
        path,
        rule="reward",
        tasks=tasks,
        notes=[*_unscored(records, name), *_planned(info, records, tasks, name)],
        variants=VARIANTS,
    )


def _facts(info: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What the header says of every simulation."""
    agent = need(info, "agent_info", dict, f"{path}, info")
    found = info.get("audio_native_config")
    voice = found if isinstance(found, Mapping) else {}
    model = voice.get("model") if agent.get("llm") is None else agent["llm"]
    if not isinstance(model, str):
        raise OutcomesError(f"{path}, info.agent_info: no 'llm' names the model; write its name there")
    user = info.get("user_info")
    user = user if isinstance(user, Mapping) else {}
    return {
        "config": model,
        "agent": agent.get("implementation"),
        "agent_args": as_json(agent.get("llm_args")),
        "user_model": user.get("llm"),
        "user_args": as_json(user.get("llm_args")),
        "retrieval_config": info.get("retrieval_config"),
        "retrieval_args": as_json(info.get("retrieval_config_kwargs")),
        "speech_complexity": info.get("speech_complexity"),
        "voice_provider": voice.get("provider"),
        "reasoning_effort": voice.get("reasoning_effort"),
    }


def _task_set(info: Mapping[str, Any], domain: str) -> str:
    """The set that the tasks are of: by default the one that is called as the domain."""
    name = info.get("task_set_name")
    return name if isinstance(name, str) and name else domain


def _known(content: Mapping[str, Any], domain: str) -> list[str]:
    """Tasks that were to be run, as far as they are named."""
    listed = content.get("tasks")
    named = [task.get("id") for task in listed if isinstance(task, Mapping)] if isinstance(listed, list) else []
    return [f"{domain}/{name}" for name in named if isinstance(name, str | int)]


def _when(content: Mapping[str, Any]) -> dict[str, Any]:
    """The time of the file, which tells its trials from those of another one."""
    timestamp = content.get("timestamp")
    return {"date": timestamp[:10], "invocation": timestamp} if isinstance(timestamp, str) else {}


def _listed(content: Mapping[str, Any], path: Path) -> tuple[str, Sequence[Any]]:
    """The name of the list of simulations, and the list."""
    name = "simulations" if content.get("simulations") or not content.get("simulation_index") else "simulation_index"
    if name not in content and "simulation_index" in content:
        raise OutcomesError(
            f"{path}: its simulations are files of the folder simulations, which no simulation_index here lists; save "
            "it as one file with tau2's Results.load(path).save(path)"
        )
    return name, need(content, name, list, str(path))


def _row(simulation: Any, domain: str, place: str, *, indexed: bool) -> dict[str, Any]:
    task = need(simulation, "task_id", (str, int), place)
    trial = need(simulation, "trial", (str, int, type(None)), place) if "trial" in simulation else None
    reward, reason = _reward(simulation, place, indexed=indexed), simulation.get("termination_reason")
    missing = reward is None or reason in NOT_RUN
    return {
        "task": f"{domain}/{task}",
        "run": None if trial is None else str(trial),
        "outcome": None if missing or reward is None else binary(reward),
        "status": "error" if missing else "ok",
        "termination_reason": reason,
        "uuid": simulation.get("id"),
        "cost": simulation.get("agent_cost"),
        "user_cost": simulation.get("user_cost"),
        "duration": None if reason in NOT_RUN else simulation.get("duration"),
    }


def _reward(simulation: Mapping[str, Any], place: str, *, indexed: bool) -> float | None:
    """The reward, which an entry of the index has itself; None where the run was not judged."""
    judged, place = (simulation, place) if indexed else (simulation.get("reward_info"), f"{place}, reward_info")
    if judged is None or (indexed and "reward" not in judged):
        return None
    reward = need(judged, "reward", (int, float, type(None)), place)
    return None if reward is None or math.isnan(reward) else reward


def _unscored(records: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """Say how many runs have no score, and why."""
    reasons = (record["termination_reason"] for record in records if record["status"] == "error")
    counts = Counter(reason if reason in NOT_RUN else "no reward" for reason in reasons)
    said = words.shown([f"{why} {count}" for why, count in counts.items()])
    return [f"{name}: {counts.total()} of {len(records)} simulations have no score ({said})"] * bool(counts)


def _planned(info: Mapping[str, Any], records: Sequence[Any], tasks: Sequence[str], name: str) -> list[str]:
    """Say when fewer simulations are there than were planned."""
    trials = info.get("num_trials")
    planned = trials * len(tasks) if isinstance(trials, int) else 0
    said = f"{name}: {len(records)} of {planned} planned simulations are present (num_trials={trials})"
    return [said] * (len(records) < planned)
