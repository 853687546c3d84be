"""HAL uploads (``<run_id>_UPLOAD.json``): one run of an agent on a benchmark.

The config is ``config.agent_name`` and the run ``config.run_id``, the strict identity of an upload: another upload of
the agent is a further run, the same one again a copy. The task is as written; ``config.benchmark_name`` is its version,
so that task 0 of one benchmark is not that of another, but for instances of SWE-bench, which name themselves. Uploads
of one agent whose ``agent_args`` differ are not mixed up: see ``variants``.

Benchmarks write ``raw_eval_results`` each in its own form. Where it goes by task, it is read: an object with ``reward``
or ``score``, or a number where the lists below name the same tasks; text, null or an object with ``error`` alone is
what an agent left that raised, and has no score. A list of objects there holds the prompt variations of a task, which
are its runs. A reward of 0 beside a ``harbor_exception`` is a failure where Harbor verifies in spite of it, else no
score.

Else the outcomes are ``results.successful_tasks`` (or ``passed_tasks``) and ``results.failed_tasks``. Of the failed,
those have no score that a SWE-bench report in ``raw_eval_results`` lists in ``error_ids``, or that an Inspect log there
has no score for; ``empty_patch_ids`` of such a report are failures, though HAL leaves them out of its lists.

The archives that HAL publishes are plain zip files whose members are JSON objects of ``encrypted_data`` and ``salt``.

Evidence: princeton-pli/hal-harness hal/benchmarks/base_benchmark.py (d3953107, older; 002a7495, newer), taubench.py
(2bb9fb00), gaia.py (2cf57f45), colbench.py (19bd91f1), swebench.py (57adfaeb), usaco.py (9714837a), appworld.py
(21d8dfd1), assistantbench.py (2108ebdf, 509b3d94), corebench.py (002a7495), replicatorbench.py (5fe71e0e),
inspect_benchmark.py (34101973), hal/inspect_runner.py (120e323f), hal/terminal_bench_harbor.py (8b4bd52f),
hal/utils/encryption.py (7be914a7) and json_encryption.py (57adfaeb); UniPat-AI/harbor_multiturn
src/harbor/trial/single_step.py (8b41dd01) for what Harbor verifies.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, NoAttempts, Options, as_json, from_records, need, pick
from evalbayes.read.swe_bench import repository

SCORES = ("reward", "score")
PASSED, FAILED = ("successful_tasks", "passed_tasks"), "failed_tasks"
RATES = ("accuracy", "overall_accuracy", "pass_rate_all_stages")
VERIFIED = frozenset({"AgentTimeoutError", "NonZeroAgentExitCodeError"})
"""Exceptions of an agent after which Harbor verifies what it left."""
REFUSAL = "agentharm"
"""In the name of a benchmark whose successful tasks are those that the agent refused."""
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
    by_task = _goes_by_task(raw, results, several=config.get("prompt_sensitivity") is True)
    scored = _of_tasks(raw, options, path) if by_task else _of_lists(results, raw, path)
    records = [{**facts, **_row(one, facts, content, results)} for one in scored]
    refusal = REFUSAL in str(facts["suite"])
    return from_records(
        records,
        [one.place for one in scored],
        path,
        rule="raw_eval_results" if by_task else f"{_passed(results)} and {FAILED}",
        header={} if refusal else _header(results, scored, facts["config"]),
        notes=_notes(results, scored, path, refusal=refusal),
        variants=VARIANTS,
    )


def _facts(content: Mapping[str, Any], config: Mapping[str, Any], place: str) -> dict[str, Any]:
    args = config.get("agent_args")
    costs = [part.get("total_cost") for part in (content, content.get("results")) if isinstance(part, Mapping)]
    return {
        "config": need(config, "agent_name", str, place),
        "run": str(need(config, "run_id", (str, int), place)),
        "suite": need(config, "benchmark_name", (str, type(None)), place) if "benchmark_name" in config else None,
        "date": config.get("date"),
        "model": args.get("model_name") if isinstance(args, Mapping) else None,
        "agent_args": as_json(args),
        "agent_version": config.get("agent_version"),
        "run_cost": next((cost for cost in costs if isinstance(cost, int | float)), None),
    }


def _row(
    one: Scored, facts: Mapping[str, Any], content: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, Any]:
    """An attempt with what the upload says of its task: seconds, steps and cost."""
    run, instance_of = facts["run"], repository(one.task)
    run = run if one.variation is None else f"{run}/{one.variation}"
    calls = _at(results, "latencies", one.task)
    waited = _at(content, "wall_clock_times", one.task)
    called = calls.get("total_time") if isinstance(calls, Mapping) else None
    return {
        "task": one.task,
        "run": run,
        "uuid": f"{facts['suite']} {run} {one.task}",
        "outcome": one.outcome,
        "status": "error" if one.outcome is None else "ok",
        "repository": instance_of,
        "task_version": None if instance_of else facts["suite"],
        "time": called if waited is None else waited,
        "steps": _at(content, "task_step_counts", one.task),
        "cost": _at(results, "costs", one.task),
    }


def _at(content: Mapping[str, Any], name: str, task: str) -> Any:
    """What a field says of a task, where it says something."""
    by_task = content.get(name)
    return by_task.get(task) if isinstance(by_task, Mapping) else None


def _goes_by_task(raw: Any, results: Mapping[str, Any], *, several: bool) -> bool:
    """Whether the keys of the raw results are tasks: every value is a score or an error, every listed task a key.

    Where no value has a score by name, the lists must name the same tasks: they may be figures of the whole run.
    """
    if not isinstance(raw, Mapping) or not raw or not all(_is_judged(value, several) for value in raw.values()):
        return False
    listed = {str(task) for key in (*PASSED, FAILED) if isinstance(results.get(key), list) for task in results[key]}
    if any(map(_has_score, raw.values())):
        return listed <= raw.keys()
    return listed == raw.keys() and not any(isinstance(value, Mapping | list) for value in raw.values())


def _is_judged(value: Any, several: bool) -> bool:
    if isinstance(value, list):
        sure = several or all(isinstance(one, Mapping) for one in value)
        return bool(value) and sure and all(not isinstance(one, list) and _is_judged(one, False) for one in value)
    if isinstance(value, Mapping):
        return any(name in value for name in (*SCORES, "error"))
    return value is None or isinstance(value, str | int | float)


def _has_score(value: Any) -> bool:
    if isinstance(value, list):
        return any(_has_score(one) or isinstance(one, int | float) for one in value)
    return isinstance(value, Mapping) and any(name in value for name in SCORES)


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
        score = need(value, name, (int, float, bool, type(None)), place)
        value = None if score == 0 and _unverified(value.get("harbor_exception")) else score
    return None if isinstance(value, str) or (isinstance(value, float) and math.isnan(value)) else value


def _unverified(exception: Any) -> bool:
    """Whether an exception kept Harbor from verifying."""
    kind = exception.get("exception_type") if isinstance(exception, Mapping) else exception
    return bool(exception) and str(kind) not in VERIFIED


def _passed(results: Mapping[str, Any]) -> str:
    """The name of the list of passed tasks."""
    return next((name for name in PASSED if name in results), PASSED[0])


def _of_lists(results: Mapping[str, Any], raw: Any, path: Path) -> list[Scored]:
    key = _passed(results)
    if not any(isinstance(results.get(name), list) for name in (key, FAILED)):
        raise OutcomesError(
            f"{path}: raw_eval_results does not go by task, and results has no {PASSED[0]} or {FAILED}; the outcomes "
            "of tasks are not in this upload"
        )
    report = raw if isinstance(raw, Mapping) else {}
    ungraded, found = _ungraded(report), dict.fromkeys(_names(results, key, f"{path}, results"), key)
    scored = [Scored(task, None, 1, f"{key}, entry {i}") for i, task in enumerate(found, 1)]
    for i, task in enumerate(_names(results, FAILED, f"{path}, results"), 1):
        if task in found:
            raise OutcomesError(f"{path}, results: task {task!r} is in {key} and in {FAILED}; check the file")
        scored.append(Scored(task, None, None if task in ungraded else 0, f"{FAILED}, entry {i}"))
    known = {one.task for one in scored}
    empty = _names(report, "empty_patch_ids", f"{path}, raw_eval_results") if "empty_patch_ids" in report else []
    rest = [(i, task) for i, task in enumerate(empty, 1) if task not in known]
    return scored + [Scored(task, None, 0, f"raw_eval_results, empty_patch_ids, entry {i}") for i, task in rest]


def _names(content: Mapping[str, Any], key: str, place: str) -> list[str]:
    """A list of tasks, each in it once."""
    names = need(content, key, list, place)
    for i, name in enumerate(names, 1):
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise OutcomesError(f"{place}, {key}, entry {i}: {name!r} is not the name of a task; check the file")
    text = list(map(str, names))
    if len(set(text)) < len(text):
        again = next(name for name in text if text.count(name) > 1)
        raise OutcomesError(f"{place}: task {again!r} is in {key} twice; an upload has one outcome of each, check it")
    return text


def _ungraded(report: Mapping[str, Any]) -> set[str]:
    """Tasks without a score: errors of a SWE-bench report, samples of an Inspect log that have none."""
    errors, samples = (found if isinstance(found := report.get(key), list) else [] for key in ("error_ids", "samples"))
    unscored = [sample.get("id") for sample in samples if isinstance(sample, Mapping) and not sample.get("scores")]
    return set(map(str, [*errors, *unscored]))


def _header(results: Mapping[str, Any], scored: Sequence[Scored], config: str) -> dict[str, dict[str, Any]]:
    """The upload's own accuracy, where scores are passes and failures of one run."""
    binary = all(one.variation is None and one.outcome in (None, 0, 1) for one in scored)
    found = (results.get(name) for name in RATES)
    rate = next((value for value in found if isinstance(value, int | float)), None)
    return {config: {"rate": float(rate)}} if binary and rate is not None and 0 <= rate <= 1 else {}


def _notes(results: Mapping[str, Any], scored: Sequence[Scored], path: Path, *, refusal: bool) -> list[str]:
    """Say what has no score here and counts as failed there, and what was chosen."""
    missing = sum(one.outcome is None for one in scored)
    varied = any(one.variation is not None for one in scored)
    unscored = f"{missing} of {len(scored)} attempts have no score; HAL counts them as failed"
    said = [unscored] * bool(missing) + ["the prompt variations of a task are read as its runs"] * varied
    said += [f"{PASSED[0]} are those that the agent refused, also where a task is harmless"] * refusal
    said += _empty(scored)
    threshold = results.get("similarity_threshold")
    if isinstance(threshold, int | float):
        said.append(f"HAL counts scores of {threshold:g} or more as successes (threshold={threshold:g})")
    elif not varied:
        said += _differing(results.get(_passed(results)), scored, _passed(results))
    return [f"{path.name}: {one}" for one in said]


def _empty(scored: Sequence[Scored]) -> list[str]:
    count = sum("empty_patch_ids" in one.place for one in scored)
    return [f"{count} empty patches, which HAL leaves out of {FAILED}, are failures"] * bool(count)


def _differing(listed: Any, scored: Sequence[Scored], key: str) -> list[str]:
    """Say where the list of successes and the scores are not of the same tasks."""
    passed = {one.task for one in scored if one.outcome == 1}
    differ = passed ^ set(map(str, listed)) if isinstance(listed, list) else set()
    what = f"{len(differ)} tasks pass in only one of raw_eval_results, which is read, and {key}"
    return [f"{what}, as {min(differ)!r}"] if differ else []
