"""tau-bench trajectories: a JSON list of ``task_id``, ``reward``, ``info``, ``traj`` and ``trial``.

The config is the name of the file, which holds agent, model and user simulator. Nothing says which domain a task 0 is
of: its version is a digest of its instruction, so that two domains are told apart. A reward within 1e-6 of 1 is a
success. A run that raised is written with reward 0, no trajectory and ``info.error``: it has no score here, and is a
failure for tau-bench itself.

Evidence: sierra-research/tau-bench tau_bench/run.py (01ed5e31).
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalbayes.read.attempts import Attempts, Options, from_records, need

FIELDS = frozenset({"task_id", "reward", "trial"})


def recognises(content: Any, path: Path) -> bool:
    """Whether a document is a list of trajectories."""
    return isinstance(content, list) and bool(content) and isinstance(content[0], dict) and content[0].keys() >= FIELDS


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a file; see `evalbayes.read.attempts`.

    Raises
    ------
    OutcomesError
        If an entry lacks a field.
    """
    config = path.name.removesuffix(".gz").removesuffix(".json")
    records, places, broken = [], [], 0
    for i, entry in enumerate(content, 1):
        record = _row(entry, f"{path}, entry {i}")
        broken += record["status"] == "error"
        records.append({"config": config, **record})
        places.append(f"entry {i} (task {record['task']}, trial {record['run']})")
    known = {record["task"]: record["task_version"] for record in records if record["task_version"]}
    records = [{**record, "task_version": known.get(record["task"])} for record in records]
    runs = "1 run" if broken == 1 else f"{broken} runs"
    said = f"{path.name}: {runs} raised and have no score; tau-bench counts them as failures (errors='failure')"
    return from_records(records, places, path, rule="reward", notes=[said] * bool(broken))


def _row(entry: Any, place: str) -> dict[str, Any]:
    reward = need(entry, "reward", (int, float, type(None)), place)
    info = entry.get("info")
    raised = isinstance(info, Mapping) and bool(info.get("error"))
    missing = raised or reward is None
    cost = info.get("user_cost") if isinstance(info, Mapping) else None
    return {
        "task": str(need(entry, "task_id", (int, str), place)),
        "run": str(need(entry, "trial", (int, str), place)),
        "outcome": None if missing else binary(reward),
        "status": "error" if missing else "ok",
        "task_version": _digest(info),
        "user_cost": cost if isinstance(cost, int | float) else None,
    }


def _digest(info: Any) -> str | None:
    """A short digest of what the user was told to want; None where that was not written."""
    task = info.get("task") if isinstance(info, Mapping) else None
    told = task.get("instruction") if isinstance(task, Mapping) else None
    return hashlib.sha256(told.encode(errors="backslashreplace")).hexdigest()[:8] if isinstance(told, str) else None


def binary(reward: float) -> float:
    """Return a reward as tau-bench and tau2-bench judge it: within 1e-6 of 1 is 1, also just above it.

    >>> binary(1.0000001), binary(0.5)
    (1.0, 0.5)
    """
    return 1.0 if abs(reward - 1) <= 1e-6 else reward
