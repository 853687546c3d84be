"""Every Eval Ever: records of samples (JSON lines); records of rates alone (JSON) hold no attempt.

The config is ``model_id``, the task ``evaluation_name`` / ``sample_id`` and the score ``evaluation.is_correct``;
``score="score"`` takes the number ``evaluation.score``. ``evaluation_id`` names the evaluation, so that another one of
the same model and sample is a further run. A record with ``error`` has no score.

A sample that counts for several results has a record for each, told apart by ``evaluation_result_id``: which one is
read is for ``filter`` to say.

Evidence: evaleval/every_eval_ever instance_level_eval.schema.json and eval.schema.json, both 0.3.0.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evalbayes import words
from evalbayes.read.attempts import Attempts, NoAttempts, Options, from_records, need, pick

SCORES = ("is_correct", "score")
_INSTANCE = frozenset({"evaluation_id", "model_id", "evaluation_name", "sample_id", "evaluation"})


def recognises(content: Any, path: Path) -> bool:
    """Whether this is the record of a sample, or of rates."""
    if not isinstance(content, dict):
        return False
    return content.keys() >= _INSTANCE or {"evaluation_id", "evaluation_results", "model_info"} <= content.keys()


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a file; see `evalbayes.read.attempts`.

    ``options.score`` is is_correct (the default) or score; ``options.filter`` an ``evaluation_result_id``.

    Raises
    ------
    NoAttempts
        If the record is of rates alone.
    OutcomesError
        If a record lacks a field, or samples have several results and none is chosen.
    """
    if isinstance(content, Mapping) and content.keys() >= _INSTANCE:
        content = [(1, content)]
    if isinstance(content, Mapping):
        raise NoAttempts(
            f"{path}: {_rates(content)} of samples that are not told; read its records of samples (.jsonl)"
        )
    score = pick(SCORES, options.score or SCORES[0], "score", "scores", str(path))
    rows, places = _rows(content, score, path)
    results = dict.fromkeys(row["result"] for row in rows if row["result"])
    several = len({(row["config"], row["task"], row["invocation"], row["result"]) for row in rows}) > len(
        {(row["config"], row["task"], row["invocation"]) for row in rows}
    )
    if several or options.filter is not None:
        wanted = pick(results, options.filter, "filter", "results (evaluation_result_id)", str(path))
        kept = [i for i, row in enumerate(rows) if row["result"] == wanted]
        rows, places = [rows[i] for i in kept], [places[i] for i in kept]
    return from_records([{k: v for k, v in row.items() if k != "result"} for row in rows], places, path, rule=score)


def _rows(content: Iterable[tuple[int, Any]], score: str, path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    rows, places = [], []
    for line, entry in content:
        rows.append(_row(entry, score, f"{path}, line {line}"))
        places.append(f"line {line}")
    return rows, places


def _row(entry: Any, score: str, place: str) -> dict[str, Any]:
    suite = need(entry, "evaluation_name", str, place)
    sample = need(entry, "sample_id", (str, int), place)
    error = entry.get("error")
    judged = need(entry, "evaluation", dict, place)
    kinds = (bool, type(None)) if score == "is_correct" else (int, float, type(None))
    value = need(judged, score, kinds, f"{place}, evaluation")
    usage, speed = _part(entry, "token_usage"), _part(entry, "performance")
    latency = speed.get("latency_ms")
    return {
        "config": need(entry, "model_id", str, place),
        "task": f"{suite}/{sample}",
        "run": "1",
        "outcome": None if error else value,
        "status": "error" if error or value is None else "ok",
        "result": entry.get("evaluation_result_id"),
        "invocation": need(entry, "evaluation_id", str, place),
        "suite": suite,
        "tokens": usage.get("total_tokens"),
        "time": latency / 1000 if isinstance(latency, int | float) else None,
    }


def _part(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = entry.get(key)
    return part if isinstance(part, Mapping) else {}


def _rates(content: Mapping[str, Any]) -> str:
    """The rates of a record, for the message."""
    results = content.get("evaluation_results")
    said = []
    for result in results if isinstance(results, list) else []:
        if isinstance(result, Mapping):
            score = _part(result, "score_details").get("score")
            said.append(f"{result.get('evaluation_name')} {score}")
    return f"only rates ({words.shown(said, 3)})" if said else "no rates"
