"""EvalPlus results (HumanEval+, MBPP+): ``<samples>_eval_results.json``.

``eval.<task_id>`` lists the samples of a task, each with ``base_status`` and ``plus_status``; older writers put arrays
``base`` and ``plus`` of [status, details] there. The config is the name of the file, the run the place in the list. The
score is ``plus`` where the file has it: as for EvalPlus itself, a sample that passes the original and the added tests.
``score="base"`` takes the original tests alone. A sample that ran too long failed: the time limit is part of the test.
``hash``, of the tests, is the version of every task.

Evidence: evalplus/evalplus evalplus/evaluate.py (0310ad2e, the arrays; 58571f98, the lists) and
evalplus/eval/__init__.py (038088e6, statuses and the oldest names).
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, Options, from_records, need, pick

OUTCOMES = {"pass": 1, "success": 1, "fail": 0, "failed": 0, "timeout": 0, "timed out": 0, "thread timeout": 0}


def recognises(content: Any, path: Path) -> bool:
    """Whether a document has tasks with samples that base tests judged."""
    tasks = content.get("eval") if isinstance(content, dict) else None
    first = next(filter(None, tasks.values()), None) if isinstance(tasks, dict) else None
    if isinstance(first, list):
        return isinstance(first[0], dict) and "base_status" in first[0]
    return isinstance(first, dict) and isinstance(first.get("base"), list) and ("nfiles" in first or "files" in first)


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a file; see `evalbayes.read.attempts`. ``options.score`` is base or plus.

    Raises
    ------
    OutcomesError
        If a sample has no status, or the added tests are asked for and were not run.
    """
    tasks = need(content, "eval", dict, str(path))
    samples = {task: _samples(tasks, task, f"{path}, eval") for task in tasks}
    suites = ["base"] + ["plus"] * any(sample.get("plus") is not None for found in samples.values() for sample in found)
    suite = pick(suites, options.score or suites[-1], "score", "test suites", str(path))
    config = _config(path, tasks)
    facts = {"config": config, "task_version": content.get("hash"), "date": str(content.get("date") or "")[:10] or None}
    records, places = [], []
    for task, found in samples.items():
        for i, sample in enumerate(found, 1):
            place = f"eval, {task}, sample {i}"
            outcome = _outcome(sample, suite, f"{path}, {place}")
            status = "ok" if outcome is not None else "error"
            records.append({**facts, "task": task, "run": str(i), "outcome": outcome, "status": status})
            places.append(place)
    said = f"{path.name}: the stricter tests (plus) count; score=base takes the original ones"
    rate = _rate(content, suite)
    return from_records(
        records,
        places,
        path,
        rule=f"{suite} tests" if suite == "base" else "base and plus tests",
        tasks=list(samples),
        header={config: {"rate": rate}} if rate is not None else {},
        notes=[said] * (options.score is None and suite == "plus"),
    )


def _samples(tasks: Mapping[str, Any], task: str, place: str) -> list[dict[str, Any]]:
    """The samples of a task, each suite's status by its name, whichever writer it was."""
    value = need(tasks, task, (list, dict), place)
    if isinstance(value, list):
        return [_statuses(sample, f"{place}, {task}, sample {i}") for i, sample in enumerate(value, 1)]
    base = need(value, "base", list, f"{place}, {task}")
    plus = value.get("plus") or []
    if plus and len(plus) != len(base):
        raise OutcomesError(f"{place}, {task}: {len(base)} samples of base and {len(plus)} of plus; check the file")
    rows = [{"base": one} for one in base]
    return [row | {"plus": plus[i]} for i, row in enumerate(rows)] if plus else rows


def _statuses(sample: Any, place: str) -> dict[str, Any]:
    base = need(sample, "base_status", (str, type(None)), place)
    return {"base": base} | ({"plus": sample["plus_status"]} if "plus_status" in sample else {})


def _outcome(sample: Mapping[str, Any], suite: str, place: str) -> int | None:
    """1 where the suite passes (plus: both do), None where a suite gave no status."""
    needed = ("base", "plus") if suite == "plus" else ("base",)
    found = [_passed(sample.get(name), name, place) for name in needed]
    return 0 if 0 in found else None if None in found else 1


def _passed(status: Any, suite: str, place: str) -> int | None:
    if isinstance(status, Sequence) and not isinstance(status, str) and status:
        status = status[0]
    if status is None or status == []:
        return None
    if not isinstance(status, str) or status not in OUTCOMES:
        raise OutcomesError(f"{place}: {suite} is {status!r}, not one of {', '.join(OUTCOMES)}; check the file")
    return OUTCOMES[status]


def _config(path: Path, tasks: Mapping[str, Any]) -> str:
    """The file's name without its ending and, where it ends in that, without the benchmark's name."""
    stem = re.sub(r"[._]?eval_results\.json(\.gz)?$", "", path.name) or path.absolute().parent.name
    suite = next(iter(tasks), "").partition("/")[0].lower()
    return stem.removesuffix(f"_{suite}") if suite else stem


def _rate(content: Mapping[str, Any], suite: str) -> float | None:
    """The file's own pass@1, where it has one."""
    found = content.get("pass_at_k")
    of = found.get(suite) if isinstance(found, Mapping) else None
    rate = of.get("pass@1") if isinstance(of, Mapping) else None
    return float(rate) if isinstance(rate, int | float) else None
