"""Terminal-Bench (the harness `tb`): the ``results.json`` of a run, with its ``run_metadata.json`` beside it.

The config is ``agent_name`` and ``model_name`` of the metadata, the task ``task_id``, the run the k of a trial's name
``<task>.<k>-of-<n>.<run_id>``; another run_id is another evaluation, whose runs are further ones. The score is
``is_resolved``, as the tests gave it, whatever the agent's ``failure_mode``: the harness runs the tests after an agent
timed out or broke as well. It is null where the tests gave no result, which the harness counts as unresolved. Here that
is a failure only where the failure mode is the agent's own (it ran out of time, of context or of output, or its answer
could not be read); a test timeout, tests whose output could not be read, an agent that could not be started and a
broken harness (``unknown_agent_error``) leave no score.

Evidence: the package terminal-bench 0.2.18 (laude-institute/terminal-bench): terminal_bench/harness/models.py and
harness.py, terminal_bench/agents/failure_mode.py; laude-institute/terminal-bench-leaderboard
results/terminal-bench-core:0.1.1/20250811_cursor-cli_claude-4-sonnet/run1_2025-08-10__05-27-18/results.json (14e607d0);
finyorko/longcli-bench terminal_bench/harness/models.py (82c7eb3b) for a later shape with more fields.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read import rows
from evalbayes.read.attempts import Attempts, NoAttempts, Options, as_json, from_records, need

METADATA = "run_metadata.json"
AGENTS_OWN = frozenset({"agent_timeout", "context_length_exceeded", "output_length_exceeded", "fatal_llm_parse_error"})
"""Failure modes that are a failure of the agent where there is no score."""
BROKEN = ("unknown_agent_error", "agent_installation_failed")
"""Failure modes after which the tests ran in what the agent left, perhaps nothing."""
VARIANTS = ("suite", "agent_kwargs")
_TRIAL = re.compile(r"(?P<task>.+)\.(?P<k>\d+)-of-\d+\.(?P<run>.+)")


def recognises(content: Any, path: Path) -> bool:
    """Whether a document is the results of a run, or of one of its trials."""
    if not isinstance(content, dict):
        return False
    if _is_trial(content):
        return True
    entries = content.get("results")
    if entries == []:
        return {"n_resolved", "accuracy"} <= content.keys()
    first = entries[0] if isinstance(entries, list) else None
    return isinstance(first, dict) and "task_id" in first and ("is_resolved" in first or "failure_mode" in first)


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a run; see `evalbayes.read.attempts`.

    Raises
    ------
    NoAttempts
        If there is no trial, or this is the file of one trial, which the run's file lists too.
    OutcomesError
        If the metadata are not beside it, or a trial is damaged.
    """
    if isinstance(content, dict) and _is_trial(content):
        raise NoAttempts(f"{path}: one trial of a run; read the results.json of the run, which lists all")
    trials = need(content, "results", list, str(path))
    about, tasks = _about(path)
    records, places = [], []
    seen: Counter[str] = Counter()
    for i, trial in enumerate(trials, 1):
        place = f"{path}, results, entry {i}"
        records.append({**about, **_row(trial, seen, about["invocation"], place)})
        places.append(f"results, entry {i} ({records[-1]['task']})")
    return from_records(
        records,
        places,
        path,
        rule="is_resolved",
        tasks=tasks,
        header={about["config"]: figures} if (figures := _header(content)) else {},
        notes=_notes(content, records, f"{path.absolute().parent.name}/{path.name}"),
        variants=VARIANTS,
    )


def _is_trial(content: Mapping[str, Any]) -> bool:
    """Whether this is a trial, which the harness also writes to a file of its own."""
    return {"task_id", "trial_name", "is_resolved"} <= content.keys()


def _about(path: Path) -> tuple[dict[str, Any], list[str]]:
    """What the metadata say of every trial, and the tasks that were to be run."""
    beside = path.parent / METADATA
    if not beside.is_file():
        raise OutcomesError(f"{path}: there is no {METADATA} beside it, which names the agent and the model; add it")
    said = rows.document(beside)
    agent = need(said, "agent_name", str, str(beside))
    model = need(said, "model_name", (str, type(None)), str(beside)) if "model_name" in said else None
    tasks = said.get("task_ids")
    kwargs = said.get("agent_kwargs")
    return {
        "config": f"{agent} + {model}" if model else agent,
        "agent": agent,
        "model": model,
        "invocation": str(said.get("run_id") or path.absolute().parent.name),
        "suite": said.get("dataset_name"),
        "task_version": said.get("dataset_version"),
        "date": str(said.get("start_time") or "")[:10] or None,
        "agent_kwargs": as_json(kwargs),
    }, [name for name in tasks if isinstance(name, str)] if isinstance(tasks, list) else []


def _row(trial: Any, seen: Counter[str], invocation: str, place: str) -> dict[str, Any]:
    task = need(trial, "task_id", str, place)
    resolved = need(trial, "is_resolved", (bool, type(None)), place)
    mode = need(trial, "failure_mode", (str, type(None)), place) if "failure_mode" in trial else None
    own = resolved is None and mode in AGENTS_OWN
    seen[task] += 1
    name = need(trial, "trial_name", str, place) if "trial_name" in trial else str(seen[task])
    match = _TRIAL.fullmatch(name)
    tokens = [trial.get("total_input_tokens"), trial.get("total_output_tokens")]
    return {
        "task": task,
        "run": match["k"] if match else name,
        "invocation": match["run"] if match else invocation,
        "outcome": 0 if own else None if resolved is None else int(resolved),
        "status": "error" if resolved is None and not own else "ok",
        "failure_mode": mode,
        "uuid": trial.get("id"),
        "tokens": sum(count for count in tokens if isinstance(count, int)) or None,
        "time": seconds(trial.get("agent_started_at"), trial.get("agent_ended_at")),
    }


def seconds(start: Any, end: Any) -> float | None:
    """Seconds between two times as ISO text, None where one is missing or is none.

    >>> seconds("2026-01-01T00:00:00+00:00", "2026-01-01T00:01:30Z")
    90.0
    """
    if not (isinstance(start, str) and isinstance(end, str)):
        return None
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):  # TypeError: one of the two has no time zone
        return None


def _header(content: Mapping[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    if type(content.get("n_resolved")) is int:
        figures["successes"] = content["n_resolved"]
        if type(content.get("n_unresolved")) is int:
            figures["trials"] = content["n_resolved"] + content["n_unresolved"]
    if isinstance(content.get("accuracy"), float):
        figures["rate"] = content["accuracy"]
    return figures


def _notes(content: Mapping[str, Any], records: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    said = []
    passed = sum(record["outcome"] == 1 for record in records)
    missing = Counter(record["failure_mode"] for record in records if record["status"] == "error")
    scored, accuracy = len(records) - missing.total(), content.get("accuracy")
    if missing:
        modes = words.shown(f"{mode} {count}" for mode, count in missing.items())
        out_of = f"its accuracy is out of {len(records)} trials, here it is out of {scored}"
        said.append(f"{name}: {missing.total()} trials have no score ({modes}), unresolved for the harness: {out_of}")
    if isinstance(accuracy, float) and abs(accuracy - passed / max(len(records), 1)) > 1e-9:
        said.append(f"{name}: its header says accuracy {accuracy:g}, its trials give {passed} of {len(records)}")
    broken = Counter(record["failure_mode"] for record in records if record["outcome"] == 0)
    if found := [f"{mode} {broken[mode]}" for mode in BROKEN if broken[mode]]:
        said.append(f"{name}: failures after which the agent had broken ({words.shown(found)}) count as failures")
    return said
