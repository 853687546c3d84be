"""METR's runs (JSON lines), as its time-horizon analysis reads them: every line is one run.

The config is ``alias``, the public name of an agent (``model`` where there is none), the task ``task_id``, the score
``score_binarized``; ``score="score_cont"`` takes the score before it was cut. Runs have no number within their task, so
every line is its own run; a line with the ``run_id`` and the times of another is a copy of it. A run that a fatal error
ended (``fatal_error_from``, as usageLimits) has a score, which stands; one whose score is null has none. Runs of one
alias with several scaffolds are one agent, as they are for METR; the note says so. Times are milliseconds there and
seconds here.

Evidence: METR/eval-analysis-public src/horizon/wrangle/logistic.py, compute_task_weights.py, agent_summary.py and
token_usage_distribution.py (52d6b564), src/horizon/generate_benchmark_results.py (6d03dca6), src/plot/cost.py
(517a6c39).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, Options, from_records, need, pick

SCORES = ("score_binarized", "score_cont")
KEPT = {
    "model": "model",
    "scaffold": "scaffold",
    "task_family": "task_family",
    "task_version": "task_version",
    "task_source": "suite",
    "human_minutes": "human_minutes",
    "human_score": "human_score",
    "human_source": "human_source",
    "fatal_error_from": "fatal_error_from",
    "time_limit": "time_limit",
    "generation_cost": "cost",
    "tokens_count": "tokens",
    "equal_task_weight": "equal_task_weight",
    "invsqrt_task_weight": "invsqrt_task_weight",
}
"""Fields that are kept beside the outcome, and the column of each."""


def recognises(content: Any, path: Path) -> bool:
    """Whether a line is a run: an agent, a task and a binarized score."""
    if not isinstance(content, dict):
        return False
    return content.keys() >= {"task_id", "score_binarized"} and ("alias" in content or "model" in content)


def attempts(content: Iterable[tuple[int, Any]], path: Path, options: Options) -> Attempts:
    """Return the attempts of a file; see `evalbayes.read.attempts`.

    ``options.score`` is score_binarized (the default) or score_cont.

    Raises
    ------
    OutcomesError
        If a line has no agent, task or score.
    """
    score = pick(SCORES, options.score or SCORES[0], "score", "scores", str(path))
    records, places = [], []
    for number, run in content:
        records.append(_row(run, score, f"{path}, line {number}"))
        places.append(f"line {number}")
    return from_records(records, places, path, rule=score, notes=_notes(records, path.name))


def _notes(records: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    said = []
    if ended := Counter(str(one["fatal_error_from"]) for one in records if one.get("fatal_error_from")):
        reasons = words.shown([f"{reason} {count}" for reason, count in ended.items()])
        said.append(f"{name}: {ended.total()} runs were ended by a fatal error ({reasons}); their scores stand")
    scaffolds: dict[tuple[str, str], set[str]] = {}
    for one in records:
        scaffolds.setdefault((one["config"], one["task"]), set()).add(str(one.get("scaffold")))
    if several := [cell for cell, found in scaffolds.items() if len(found) > 1]:
        agents = words.shown(dict.fromkeys(config for config, _ in several), 3)
        remedy = "config=['config', 'scaffold'] keeps them apart"
        said.append(f"{name}: {len(several)} tasks have runs of one agent in several scaffolds ({agents}); {remedy}")
    return said


def _row(run: Any, score: str, place: str) -> dict[str, Any]:
    outcome = need(run, score, (int, float, bool, type(None)), place)
    missing = outcome is None or outcome != outcome
    return {
        "config": _agent(run, place),
        "task": str(need(run, "task_id", (str, int), place)),
        "outcome": None if missing else outcome,
        "status": "error" if missing else "ok",
        **{column: run[field] for field, column in KEPT.items() if run.get(field) is not None},
        **_identity(run),
    }


def _agent(run: Mapping[str, Any], place: str) -> str:
    for field in ("alias", "model"):
        if run.get(field) is not None:
            return str(need(run, field, str, place))
    raise OutcomesError(f"{place}: neither 'alias' nor 'model' names the agent; complete the line")


def _identity(run: Mapping[str, Any]) -> dict[str, Any]:
    """How long a run took, and what it is known again by: its name and times, if they are such."""
    name, start, end = (run.get(field) for field in ("run_id", "started_at", "completed_at"))
    if not (isinstance(start, int | float) and isinstance(end, int | float) and end > start):
        return {}
    return {"time": (end - start) / 1000} | ({} if name is None else {"uuid": f"{name} {start} {end}"})
