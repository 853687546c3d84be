"""HAL uploads (``<run_id>_UPLOAD.json``): one run of an agent on a benchmark.

The config is ``config.agent_name`` and the run ``config.run_id``, the strict identity of an upload: another upload of
the agent is a further run, the same one again a copy. The task is as written; ``config.benchmark_name`` is its version,
so that task 0 of one benchmark is not that of another, but for instances of SWE-bench, which name themselves. Uploads
of one agent whose ``agent_args`` differ are not mixed up: see ``variants``.

Benchmarks write ``raw_eval_results`` each in its own form. Where it goes by task, it is read: a number, or an object
with ``reward`` or ``score``; text, null or an object with ``error`` alone is what an agent left that raised, and has no
score. A list of objects there holds the prompt variations of a task, which are its runs. Else the outcomes are
``results.successful_tasks`` and ``results.failed_tasks``; of the failed, those that a SWE-bench report there lists in
``error_ids`` have no score.

The archives that HAL publishes are plain zip files whose members are JSON objects of ``encrypted_data`` and ``salt``.

Evidence: princeton-pli/hal-harness hal/benchmarks/base_benchmark.py (d3953107, older; 002a7495, newer), taubench.py
(2bb9fb00), gaia.py (2cf57f45), colbench.py (19bd91f1), swebench.py (57adfaeb), usaco.py (9714837a), appworld.py
(21d8dfd1), assistantbench.py (2108ebdf), hal/utils/encryption.py (7be914a7) and json_encryption.py (57adfaeb).
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, NoAttempts, Options, from_records, need, pick
from evalbayes.read.swe_bench import repository

SCORES = ("reward", "score")
LISTS = ("successful_tasks", "failed_tasks")
VARIANTS = ("agent_args",)
"""What makes another config of the same agent."""
_ENCRYPTED = frozenset({"encrypted_data", "salt"})


class Scored(NamedTuple):
    """One attempt: its task, the number of its variation, its score, None where there is none, and its place."""

    task: str
    variation: int | None
    outcome: Any
    place: str


def recognises(content: Any, path: Path) -> bool:
    """Whether a document is an upload, or an encrypted one."""
    if not isinstance(content, dict):
        return False
    config = content.get("config")
    plain = isinstance(config, dict) and "agent_name" in config and "run_id" in config
    return content.keys() == _ENCRYPTED or (plain and ("raw_eval_results" in content or "results" in content))


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of an upload; see `evalbayes.read.attempts`.

    ``options.score`` is reward or score, where a task has both.

    Raises
    ------
    NoAttempts
        If the upload is encrypted, or has no task.
    OutcomesError
        If a field is missing, no outcome goes by task, or a task is both in the successful and the failed.
    """
    if isinstance(content, Mapping) and content.keys() == _ENCRYPTED:
        raise NoAttempts(f"{path}: an encrypted HAL upload; decrypt it with hal-decrypt and read what that writes")
    config = need(content, "config", dict, str(path))
    facts = _facts(content, config, f"{path}, config")
    results, raw = content.get("results"), content.get("raw_eval_results")
    results = results if isinstance(results, Mapping) else {}
    by_task = _goes_by_task(raw, results)
    scored = _of_tasks(raw, options, path) if by_task else _of_lists(results, raw, path)
    records = [{**facts, **_row(one, facts, content)} for one in scored]
    return from_records(
        records,
        [one.place for one in scored],
        path,
        rule="raw_eval_results" if by_task else " and ".join(LISTS),
        header=_header(results, scored, facts["config"]),
        notes=_notes(results, scored, path),
        variants=VARIANTS,
    )


def _facts(content: Mapping[str, Any], config: Mapping[str, Any], place: str) -> dict[str, Any]:
    args = config.get("agent_args")
    cost = content.get("total_cost")
    return {
        "config": need(config, "agent_name", str, place),
        "run": str(need(config, "run_id", (str, int), place)),
        "suite": config.get("benchmark_name"),
        "date": config.get("date"),
        "model": args.get("model_name") if isinstance(args, Mapping) else None,
        "agent_args": json.dumps(args, sort_keys=True) if args else None,
        "agent_version": config.get("agent_version"),
        "run_cost": cost if isinstance(cost, int | float) else None,
    }


def _row(one: Scored, facts: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """An attempt with what the upload says of its task: seconds and steps."""
    run, instance_of = facts["run"], repository(one.task)
    times, steps = (content.get(name) for name in ("wall_clock_times", "task_step_counts"))
    run = run if one.variation is None else f"{run}/{one.variation}"
    return {
        "task": one.task,
        "run": run,
        "uuid": f"{facts['suite']} {run} {one.task}",
        "outcome": one.outcome,
        "status": "error" if one.outcome is None else "ok",
        "repository": instance_of,
        "task_version": None if instance_of else facts["suite"],
        "time": times.get(one.task) if isinstance(times, Mapping) else None,
        "steps": steps.get(one.task) if isinstance(steps, Mapping) else None,
    }


def _goes_by_task(raw: Any, results: Mapping[str, Any]) -> bool:
    """Whether the keys of the raw results are tasks: every value is a score or an error, every listed task a key."""
    if not isinstance(raw, Mapping) or not raw or not all(map(_is_judged, raw.values())):
        return False
    listed = {str(task) for name in LISTS if isinstance(results.get(name), list) for task in results[name]}
    unscored = all(value is None or isinstance(value, str) for value in raw.values())
    return listed <= raw.keys() and (unscored or any(map(_has_score, raw.values())))


def _is_judged(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, Mapping) and _is_judged(one) for one in value)
    if isinstance(value, Mapping):
        return any(name in value for name in (*SCORES, "error"))
    return value is None or isinstance(value, str | int | float)


def _has_score(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_score, value))
    return any(name in value for name in SCORES) if isinstance(value, Mapping) else isinstance(value, int | float)


def _of_tasks(raw: Mapping[str, Any], options: Options, path: Path) -> list[Scored]:
    scored = []
    for task, value in raw.items():
        varied = isinstance(value, list)
        for i, one in enumerate(value if varied else [value], 1):
            place = f"raw_eval_results, {task}" + f", variation {i}" * varied
            outcome = _score(one, options.score, f"{path}, {place}")
            scored.append(Scored(task, i if varied else None, outcome, place))
    return scored


def _score(value: Any, wanted: str | None, place: str) -> Any:
    """The score of a task; None where it has none."""
    if isinstance(value, Mapping):
        names = [name for name in SCORES if name in value]
        if not names:
            return None
        name = pick(names, wanted, "score", "scores", place)
        return need(value, name, (int, float, bool, type(None)), place)
    return None if isinstance(value, str) else value


def _of_lists(results: Mapping[str, Any], raw: Any, path: Path) -> list[Scored]:
    if not any(isinstance(results.get(name), list) for name in LISTS):
        raise OutcomesError(
            f"{path}: raw_eval_results does not go by task, and results has no {' or '.join(LISTS)}; the outcomes of "
            "tasks are not in this upload"
        )
    ungraded = raw.get("error_ids") if isinstance(raw, Mapping) else None
    errors = set(map(str, ungraded)) if isinstance(ungraded, list) else set()
    passed, failed = ([str(task) for task in need(results, name, list, f"{path}, results")] for name in LISTS)
    if both := set(passed) & set(failed):
        raise OutcomesError(f"{path}, results: task {min(both)!r} is in {' and in '.join(LISTS)}; check the file")
    rows = [Scored(task, None, 1, f"{LISTS[0]}, entry {i}") for i, task in enumerate(passed, 1)]
    outcomes = [None if task in errors else 0 for task in failed]
    rest = enumerate(zip(failed, outcomes, strict=True), 1)
    return rows + [Scored(task, None, outcome, f"{LISTS[1]}, entry {i}") for i, (task, outcome) in rest]


def _header(results: Mapping[str, Any], scored: Sequence[Scored], config: str) -> dict[str, dict[str, Any]]:
    """The upload's own accuracy, where scores are passes and failures of one run."""
    binary = all(one.variation is None and one.outcome in (None, 0, 1) for one in scored)
    found = (results.get(name) for name in ("accuracy", "overall_accuracy"))
    rate = next((value for value in found if isinstance(value, int | float)), None)
    return {config: {"rate": float(rate)}} if binary and rate is not None and 0 <= rate <= 1 else {}


def _notes(results: Mapping[str, Any], scored: Sequence[Scored], path: Path) -> list[str]:
    """Say what has no score here and counts as failed there, and what was chosen."""
    missing = sum(one.outcome is None for one in scored)
    varied = any(one.variation is not None for one in scored)
    unscored = f"{missing} of {len(scored)} attempts have no score; HAL counts them as failed"
    said = [unscored] * bool(missing) + ["the prompt variations of a task are read as its runs"] * varied
    threshold = results.get("similarity_threshold")
    if isinstance(threshold, int | float):
        said.append(f"HAL counts scores of {threshold:g} or more as successes (threshold={threshold:g})")
    elif not varied:
        said += _differing(results.get(LISTS[0]), scored)
    return [f"{path.name}: {one}" for one in said]


def _differing(listed: Any, scored: Sequence[Scored]) -> list[str]:
    """Say where the list of successes and the scores are not of the same tasks."""
    passed = {one.task for one in scored if one.outcome == 1}
    differ = passed ^ set(map(str, listed)) if isinstance(listed, list) else set()
    what = f"{len(differ)} tasks pass in only one of raw_eval_results, which is read, and {LISTS[0]}"
    return [f"{what}, as {min(differ)!r}"] if differ else []
