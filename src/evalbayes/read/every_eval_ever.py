"""every_eval_ever: one JSON line a sample (``<uuid>_samples.jsonl``); its other file, one of rates, has no attempts.

The config is ``model_id``, the task ``<evaluation_name>/<sample_id>``, the run ``metadata.epoch`` where a converter
wrote it; another ``evaluation_id`` is another evaluation, whose runs are further ones. A sample has a ``score`` and
``is_correct``, which converters fill in different ways: of a score between 0 and 1 one says that it is correct and
another that it is not. Where both say the same of every sample there is nothing to choose; where not, ``field=`` says
which counts. A sample with several scores has a line for each, told apart by ``evaluation_result_id`` (``score=``) or
by ``evaluation_name`` (``part=``). A sample with an ``error`` has no score, whatever number was written beside it.

Evidence: evaleval/every_eval_ever, its instance_level_eval.schema.json and eval.schema.json of version 0.3.0, the
package every_eval_ever 0.3.0, every_eval_ever/converters/inspect/instance_level_adapter.py (eb3513c8) and those of helm
and lm_eval (60a1c34d); None/mmlu/openai/gpt2/None_samples.jsonl (0ce59f18) for 0.2.1.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalbayes.read.attempts import Attempts, NoAttempts, Options, from_records, need, part, pick

FACTS = ("subject", "difficulty", "category", "domain")
"""Keys of ``metadata`` that are facts of a task."""


class Sample(NamedTuple):
    """One line: which score of which evaluation it is, what tells the sample, both outcomes, and the row so far."""

    line: int
    evaluation: str
    result: str | None
    same: tuple[str, ...] | None
    score: float | None
    correct: bool
    record: Mapping[str, Any]


def recognises(content: Any, path: Path) -> bool:
    """Whether this is a sample, or the file of rates."""
    return isinstance(content, dict) and (_is_rates(content) or _is_sample(content))


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a file of samples; see `evalbayes.read.attempts`.

    ``options.score`` is an ``evaluation_result_id``, ``options.part`` an ``evaluation_name``, ``options.field``
    ``"score"`` or ``"is_correct"``.

    Raises
    ------
    NoAttempts
        If there is no sample, or this is the file of rates.
    OutcomesError
        If one of several scores has to be chosen, or a line is damaged.
    """
    if isinstance(content, dict) and not _is_sample(content):
        raise NoAttempts(_no_outcomes(content, path))
    numbered: Iterable[tuple[int, Any]] = [(1, content)] if isinstance(content, dict) else content
    samples = [_sample(row, line, f"{path}, line {line}") for line, row in numbered]
    kept = _of_part(samples, options.part, path)
    kept, skipped = _of_score(kept, options.score, path)
    field = _field(kept, options.field, path)
    values = [one.score if field == "score" else _correct(one) for one in kept]
    errored = sum(one.record["status"] == "error" for one in kept)
    return from_records(
        [{**one.record, "outcome": value} for one, value in zip(kept, values, strict=True)],
        [f"line {one.line}" for one in kept],
        path,
        rule=field,
        skipped=skipped,
        notes=[f"{path.name}: {errored} samples have an error, so no score"] * bool(errored),
    )


def _is_sample(content: Mapping[str, Any]) -> bool:
    return {"evaluation_name", "sample_id", "model_id", "evaluation"} <= content.keys()


def _is_rates(content: Mapping[str, Any]) -> bool:
    return {"schema_version", "model_info", "evaluation_results"} <= content.keys()


def _no_outcomes(content: Mapping[str, Any], path: Path) -> str:
    """Say that a file of rates holds no attempt, and where the attempts would be."""
    model = need(need(content, "model_info", dict, str(path)), "id", str, str(path))
    count = len(need(content, "evaluation_results", list, str(path)))
    details = content.get("detailed_evaluation_results")
    named = details.get("file_path") if isinstance(details, Mapping) else None
    remedy = f"read the samples, {named}" if named else "read the _samples.jsonl of this evaluation, if there is one"
    rates = "1 rate" if count == 1 else f"{count} rates"
    return f"{path}: {rates} of {model}; the rate of an unknown number of samples is no outcome of any; {remedy}"


def _sample(row: Any, line: int, place: str) -> Sample:
    name = need(row, "evaluation_name", str, place)
    sample = str(need(row, "sample_id", (str, int), place))
    evaluation = need(row, "evaluation", dict, place)
    score = need(evaluation, "score", (int, float, type(None)), place)
    result, hashed, error = (row.get(key) for key in ("evaluation_result_id", "sample_hash", "error"))
    unscored = bool(error) or score is None or score != score
    model, invocation = need(row, "model_id", str, place), row.get("evaluation_id")
    metadata = part(row, "metadata")
    record = {
        "config": model,
        "task": f"{name}/{sample}",
        "run": str(metadata.get("epoch", "1")),
        "status": "error" if unscored else "ok",
        "invocation": invocation,
        "suite": name,
        "tokens": part(row, "token_usage").get("total_tokens"),
        "time": _seconds(part(row, "performance")),
        "turns": evaluation.get("num_turns"),
        **{fact: metadata[fact] for fact in FACTS if isinstance(metadata.get(fact), str)},
    }
    same = (model, str(invocation), sample, str(hashed), record["run"]) if hashed else None
    correct = need(evaluation, "is_correct", bool, place)
    return Sample(
        line, name, None if result is None else str(result), same, None if unscored else score, correct, record
    )


def _seconds(performance: Mapping[str, Any]) -> float | None:
    for key in ("latency_ms", "generation_time_ms"):
        if isinstance(performance.get(key), int | float):
            return float(performance[key]) / 1000
    return None


def _of_part(samples: Sequence[Sample], part: str | None, path: Path) -> list[Sample]:
    """Samples of the evaluation asked for; all, where no two of them score the same samples."""
    if part is not None:
        pick((one.evaluation for one in samples), part, "part", "evaluations", str(path))
        return [one for one in samples if one.evaluation == part]
    evaluations: dict[tuple[str, ...], dict[str, None]] = {}
    for one in samples:
        if one.same is not None:
            evaluations.setdefault(one.same, {})[one.evaluation] = None
    for names in evaluations.values():
        if len(names) > 1:
            pick(names, None, "part", "evaluations of the same samples", str(path))
    return list(samples)


def _of_score(samples: Sequence[Sample], score: str | None, path: Path) -> tuple[list[Sample], list[tuple[str, str]]]:
    """Samples under the score asked for; where an evaluation has several, one has to be."""
    results: dict[str, dict[str, None]] = {}
    for one in samples:
        results.setdefault(one.evaluation, {})[one.result or ""] = None
    if score is None:
        for name, ids in results.items():
            pick(ids, None, "score", f"scores of {name}", str(path))
        return list(samples), []
    pick((one.result or "" for one in samples), score, "score", "scores", str(path))
    lost = [name for name, ids in results.items() if score not in ids]
    reason = f"it has no score {score!r}"
    return [one for one in samples if one.result == score], [(f"evaluation {name}", reason) for name in lost]


def _correct(sample: Sample) -> int | None:
    return None if sample.record["status"] == "error" else int(sample.correct)


def _field(samples: Sequence[Sample], field: str | None, path: Path) -> str:
    """Which of the two outcomes counts: it must be said where they differ."""
    if field is not None:
        return pick(["is_correct", "score"], field, "field", "outcomes", str(path))
    for one in samples:
        if one.score is not None and one.score != int(one.correct):
            said = f"score {one.score:g} and is_correct {str(one.correct).lower()} are not the same; outcomes"
            return pick(["is_correct", "score"], None, "field", said, f"{path}, line {one.line}")
    return "is_correct"
