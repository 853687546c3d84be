"""METR's runs (JSON lines), as its time-horizon analysis reads them: every line is one run.

The config is ``alias``, the public name of an agent (``model`` where there is none), the task ``task_id``, the score
``score_binarized``; ``score="score_cont"`` takes the score before it was cut. Runs have no number within their task, so
every line is its own run; a line with the ``run_id`` and the times of another is a copy of it. A run that a fatal error
ended (``fatal_error_from``, as usageLimits) has a score, which stands; one whose score is null has none. Times are
milliseconds there and seconds here.

Evidence: METR/eval-analysis-public src/horizon/wrangle/logistic.py, compute_task_weights.py, agent_summary.py and
token_usage_distribution.py (52d6b564), src/plot/cost.py (517a6c39).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, Options, from_records, need, pick

SCORES = ("score_binarized", "score_cont")
KEPT = {
    "model": "model",
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
    ended: dict[str, int] = {}
    for number, run in content:
        record = _row(run, score, f"{path}, line {number}")
        if reason := record.get("fatal_error_from"):
            ended[str(reason)] = ended.get(str(reason), 0) + 1
        records.append(record)
        places.append(f"line {number}")
    said = words.shown([f"{reason} {count}" for reason, count in ended.items()])
    notes = [f"{path.name}: {sum(ended.values())} runs were ended by a fatal error ({said}); their scores stand"]
    return from_records(records, places, path, rule=score, notes=notes * bool(ended))


def _row(run: Any, score: str, place: str) -> dict[str, Any]:
    outcome = need(run, score, (int, float, type(None)), place)
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
    """What a run is known again by, and how long it took."""
    name, start, end = (run.get(field) for field in ("run_id", "started_at", "completed_at"))
    made: dict[str, Any] = {} if name is None else {"uuid": f"{name} {start} {end}"}
    if isinstance(start, int | float) and isinstance(end, int | float) and end > start:
        made["time"] = (end - start) / 1000
    return made
