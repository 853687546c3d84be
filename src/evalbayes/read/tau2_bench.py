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
no ``reward_info``, or null                                    no score
anything else, as too_many_errors, max_steps or timeout        the reward, which tau2-bench sets to 0 for a run that
                                                               did not end by agent or user
=============================================================  ======================================================

Several files of one model and domain are further runs, told apart by the time of the file; a simulation is known again
by its ``id``. What makes another config of the same model is never mixed up: see ``variants``.

Evidence: sierra-research/tau2-bench src/tau2/data_model/simulation.py (82971646, older; 143a213f, newer),
runner/progress.py (143a213f), evaluator/evaluator.py (81adbc34).
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, NoAttempts, Options, from_records, need

NOT_RUN = ("infrastructure_error", "context_window_exceeded")
"""Reasons of runs that tau2-bench does not evaluate."""
VARIANTS = ("agent", "agent_args", "user_model", "user_args", "retrieval_config", "speech_complexity")
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
    facts = {**_facts(info, path), **_when(content), "suite": domain}
    name, simulations = _listed(content, path)
    records, places = [], []
    for i, simulation in enumerate(simulations, 1):
        record = _row(simulation, domain, f"{path}, {name}, entry {i}", indexed=name == "simulation_index")
        records.append({**facts, **record})
        places.append(f"{name}, entry {i} (task {record['task']}, trial {record['run'] or 'unnumbered'})")
    tasks = [f"{domain}/{task['id']}" for task in content.get("tasks") or [] if isinstance(task, Mapping)]
    return from_records(
        records,
        places,
        path,
        rule="reward",
        tasks=tasks,
        notes=[*_unscored(records, path), *_planned(info, records, tasks, path)],
        variants=VARIANTS,
    )


def _facts(info: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What the header says of every simulation."""
    agent = need(info, "agent_info", dict, f"{path}, info")
    model = agent.get("llm")
    if model is None:
        voice = info.get("audio_native_config")
        model = voice.get("model") if isinstance(voice, Mapping) else None
    if not isinstance(model, str):
        raise OutcomesError(f"{path}, info.agent_info: no 'llm' names the model; write its name there")
    user = info.get("user_info")
    user = user if isinstance(user, Mapping) else {}
    return {
        "config": model,
        "agent": agent.get("implementation"),
        "agent_args": _text(agent.get("llm_args")),
        "user_model": user.get("llm"),
        "user_args": _text(user.get("llm_args")),
        "retrieval_config": info.get("retrieval_config"),
        "speech_complexity": info.get("speech_complexity"),
    }


def _text(values: Any) -> str | None:
    return json.dumps(values, sort_keys=True) if values else None


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
    trial, reason = simulation.get("trial"), simulation.get("termination_reason")
    reward = simulation.get("reward") if indexed else _reward(simulation, place)
    missing = reward is None or reason in NOT_RUN
    return {
        "task": f"{domain}/{task}",
        "run": None if trial is None else str(trial),
        "outcome": None if missing else _binary(reward),
        "status": "error" if missing else "ok",
        "termination_reason": reason,
        "uuid": simulation.get("id"),
        "cost": simulation.get("agent_cost"),
        "user_cost": simulation.get("user_cost"),
        "duration": simulation.get("duration"),
    }


def _reward(simulation: Mapping[str, Any], place: str) -> Any:
    """The reward; None where the run was not judged."""
    judged = simulation.get("reward_info")
    return None if judged is None else need(judged, "reward", (int, float), f"{place}, reward_info")


def _binary(reward: Any) -> Any:
    """A reward as tau2-bench judges it: within 1e-6 of 1 is 1, also just above it."""
    return 1.0 if isinstance(reward, int | float) and abs(reward - 1) <= 1e-6 else reward


def _unscored(records: Sequence[Mapping[str, Any]], path: Path) -> list[str]:
    """Say how many runs have no score, and why."""
    counts: dict[str, int] = {}
    for record in records:
        if record["status"] == "error":
            reason = record["termination_reason"]
            why = str(reason) if reason in NOT_RUN else "no reward"
            counts[why] = counts.get(why, 0) + 1
    said = words.shown([f"{why} {count}" for why, count in counts.items()])
    return [f"{path.name}: {sum(counts.values())} of {len(records)} simulations have no score ({said})"] * bool(counts)


def _planned(
    info: Mapping[str, Any], records: Sequence[Mapping[str, Any]], tasks: Sequence[str], path: Path
) -> list[str]:
    """Say when fewer simulations are there than were planned."""
    trials = info.get("num_trials")
    planned = trials * len(tasks) if isinstance(trials, int) else 0
    said = f"{path.name}: {len(records)} of {planned} planned simulations are present (num_trials={trials})"
    return [said] * (len(records) < planned)
