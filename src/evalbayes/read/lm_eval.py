"""lm-evaluation-harness: ``samples_<task>_<date>.jsonl``, with the ``results_<date>.json`` of the evaluation beside it.

The config is ``model_name`` of the results, in older ones the model that ``config.model_args`` names, and the name of
the folder where there are no results. The task is ``<task>/<doc_id>``; its version is in the results. A row is one
document under one filter, and its score the metric that ``metrics`` names; a document without that metric has no
attempt. Several filters or metrics are not chosen between: ``filter=``, ``score=``. However many answers were drawn
(``repeats``), the harness keeps one score a filter, so there is one run; evaluations of different dates are further
runs. What makes another config of the same model is never mixed up: see ``VARIANTS``.

Rows of versions before 0.4.7 name neither filter nor metrics. Their metrics are those that the results name, or the
keys that hold numbers. They are written filter by filter, so the n-th row of a document is under the n-th filter of
the results; that is believed only where those rows give the rate that the results state for the filter.

Evidence: EleutherAI/lm-evaluation-harness lm_eval/evaluator.py (5b321a1a), lm_eval/evaluator_utils.py (0064c3a0),
lm_eval/loggers/evaluation_tracker.py (034ab036), lm_eval/result_schema.py (293c9dfb, the schema of both files),
lm_eval/logging/evaluation_tracker.py (0024bec9, ``samples_<task>_<date>.json``), pull request 3885 (scores as text)
and issues 1687, 2025, 1232 and 1493; the packages lm_eval 0.4.0 (a JSON list in ``<model_args>_<task>.jsonl`` beside
``results.json``), 0.4.3, 0.4.6, 0.4.7, 0.4.11 and 0.4.13.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalbayes.errors import OutcomesError
from evalbayes.read import rows
from evalbayes.read.attempts import Attempts, NoAttempts, Options, as_json, from_records, need, pick

FIELDS = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"}
    | {"doc_hash", "prompt_hash", "target_hash"}
)
"""Keys of a row that are no metric."""
VARIANTS = ("num_fewshot", "model_args", "gen_kwargs", "system_instruction", "chat_template", "fewshot_as_multiturn")
MODEL_KEYS = ("peft", "delta", "pretrained", "model", "path", "engine")
"""The harness names a model by the first of these among its arguments."""
NO_METRIC = "bypass"
"""What ``--predict_only`` logs in place of a metric."""
ANY = (object, bool)
"""Kinds of a field that only has to be there: `need` takes a boolean only where bool is named."""
_DATE = re.compile(r"_(\d{4}-\d{2}-\d{2}T[\d.-]+)$")


class Sample(NamedTuple):
    """One row: its place, the document, the filter if it is named, every metric, and how many answers were drawn."""

    place: str
    doc: str
    filter: str | None
    scores: Mapping[str, Any]
    named: bool
    answers: int


def recognises(content: Any, path: Path) -> bool:
    """Whether these are samples, as JSON lines or (0.4.0) a list, or the results of an evaluation."""
    first = content[0] if isinstance(content, list) and content else content
    if not isinstance(first, dict):
        return False
    return {"doc_id", "doc", "resps", "filtered_resps"} <= first.keys() or _is_results(content)


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a file of samples; see `evalbayes.read.attempts`.

    ``options.score`` is the metric, ``options.filter`` the filter.

    Raises
    ------
    NoAttempts
        If there is no sample, or these are the results, which say nothing of single tasks.
    OutcomesError
        If a filter or metric has to be chosen, rows do not say of which filter they are, or a row is damaged.
    """
    if _is_results(content):
        raise NoAttempts(f"{path}: these are rates of whole tasks; read the samples beside it, made by --log_samples")
    stated = _results(path)
    suite = _suite(path, stated)
    figures = _of(stated, "results", suite)
    figures = figures if isinstance(figures, Mapping) else {}
    samples = [_sample(row, place, path) for place, row in _placed(content)]
    if not samples:
        raise NoAttempts(f"{path}: there is no sample in it; a board needs at least one")
    under, chosen, ordered = _under_filter(samples, figures, options.filter, path)
    metric = pick(_metrics(under, figures), options.score, "score", "metrics", str(path))
    kept = [one for one in under if metric in one.scores or not one.named]
    left = [one for one in under if metric not in one.scores and one.named]
    values = [_value(one, metric, path) for one in kept]
    rate, se = (_number(figures.get(f"{name},{chosen}")) for name in (metric, f"{metric}_stderr"))
    if ordered:
        _check_order(values, rate, chosen, path)
    about = _about(path, suite, stated)
    header = _header(values, rate, se)
    return from_records(
        [{**about, **_row(one, value, suite)} for one, value in zip(kept, values, strict=True)],
        [one.place for one in kept],
        path,
        rule=f"score {metric!r}, filter {chosen!r}",
        tasks=[f"{suite}/{one.doc}" for one in left],
        skipped=[(one.place, f"{metric!r} is not among the metrics of this document") for one in left],
        header={about["config"]: header} if header else {},
        notes=[
            *_notes(kept, values, header.get("rate"), chosen, path),
            *_notes_of_task(len(under), metric, suite, stated, path),
        ],
        variants=VARIANTS,
    )


def _is_results(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and isinstance(content.get("results"), dict)
        and {"configs", "versions"} <= content.keys()
    )


def _placed(content: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(content, list):
        return ((f"entry {number}", row) for number, row in enumerate(content, 1))
    lines = [(1, content)] if isinstance(content, dict) else content
    return ((f"line {number}", row) for number, row in lines)


def _stem(path: Path) -> str:
    return re.sub(r"(\.jsonl?|\.ndjson)?(\.gz)?$", "", path.name)


def _date(path: Path) -> str | None:
    match = _DATE.search(_stem(path))
    return match[1] if match else None


def _results(path: Path) -> Mapping[str, Any] | None:
    """The results of the same evaluation, whose file ends in the same date; of older samples, the only results."""
    date = _date(path)
    name = re.compile(rf"(?!samples_).*_{re.escape(date)}\.json(\.gz)?" if date else r"results.*\.json(\.gz)?")
    beside = [one for one in path.absolute().parent.iterdir() if name.fullmatch(one.name) and one.name != path.name]
    found = [one for one in beside if one.name.startswith("results_")] if len(beside) > 1 and date else beside
    if len(found) != 1:
        return None
    stated = rows.document(found[0])
    need(stated, "results", dict, str(found[0]))
    return dict(stated)


def _of(stated: Mapping[str, Any] | None, key: str, suite: str) -> Any:
    """What the results say of a task under a key."""
    part = (stated or {}).get(key)
    return part.get(suite) if isinstance(part, Mapping) else None


def _suite(path: Path, stated: Mapping[str, Any] | None) -> str:
    """The task that a file is of, from its name."""
    stem = _DATE.sub("", _stem(path))
    if stem.startswith("samples_") and len(stem) > len("samples_"):
        return stem.removeprefix("samples_")
    known = [str(name) for name in (stated or {}).get("results", ()) if stem.endswith(f"_{name}")]
    if not known:
        raise OutcomesError(f"{path}: its name does not say the task; call it samples_<task>_<date>.jsonl")
    return max(known, key=len)


def _about(path: Path, suite: str, stated: Mapping[str, Any] | None) -> dict[str, Any]:
    """What holds for every row."""
    stated = stated or {}
    config = stated.get("config") if isinstance(stated.get("config"), Mapping) else {}
    model = stated.get("model_name") or _model(config.get("model_args") if config else None)
    date, version, shots = _date(path), _of(stated, "versions", suite), _of(stated, "n-shot", suite)
    return {
        "config": str(model) if model else path.absolute().parent.name,
        "suite": suite,
        "task_version": None if version is None else str(version),
        "date": date[:10] if date else None,
        "invocation": date,
        "num_fewshot": None if shots is None else str(shots),
        "model_args": _text(config.get("model_args") if config else None),
        "gen_kwargs": _text(config.get("gen_kwargs") if config else None),
        "system_instruction": stated.get("system_instruction_sha"),
        "chat_template": stated.get("chat_template_sha"),
        "fewshot_as_multiturn": _text(stated.get("chat_template_sha") and stated.get("fewshot_as_multiturn")),
    }


def _model(arguments: Any) -> str | None:
    """The model among the arguments, which are ``pretrained=org/model,dtype=float16`` or a mapping."""
    if isinstance(arguments, str):
        arguments = dict(part.split("=", 1) for part in arguments.split(",") if "=" in part)
    found = [arguments[key] for key in MODEL_KEYS if arguments.get(key)] if isinstance(arguments, Mapping) else []
    return str(found[0]) if found else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else as_json(value)


def _sample(row: Any, where: str, path: Path) -> Sample:
    place = f"{path}, {where}"
    name = str(need(row, "doc_id", (int, str), place))
    filter = need(row, "filter", str, place) if "filter" in row else None
    answers = [len(drawn) for drawn in need(row, "resps", list, place) if isinstance(drawn, list)]
    if "metrics" in row:
        names = [metric for metric in need(row, "metrics", list, place) if metric != NO_METRIC]
        scores = {str(metric): _plain(need(row, str(metric), ANY, place)) for metric in names}
    else:
        plain = {key: _plain(value) for key, value in row.items() if key not in FIELDS}
        scores = {key: value for key, value in plain.items() if _maybe_score(value)}
    return Sample(where, name, filter, scores, "metrics" in row, max(answers, default=0))


def _plain(value: Any) -> Any:
    """The score; before 0.4.13 numpy's booleans and short floats were logged as text: "True", "0.5"."""
    if not isinstance(value, str):
        return value
    if value in ("True", "False"):
        return value == "True"
    try:
        return float(value)
    except ValueError:
        return value


def _maybe_score(value: Any) -> bool:
    return value is None or isinstance(value, int | float)


def _filters(figures: Mapping[str, Any]) -> list[str]:
    """The filters of a task in the order of the results, whose keys are ``metric,filter``."""
    return list(dict.fromkeys(key.partition(",")[2] for key in figures if "," in key))


def _metrics(samples: Sequence[Sample], figures: Mapping[str, Any]) -> list[str]:
    names = list(dict.fromkeys(name for one in samples for name in one.scores if name != NO_METRIC))
    stated = {key.partition(",")[0] for key in figures if "," in key}
    return [name for name in names if name in stated] or names


def _under_filter(
    samples: Sequence[Sample], figures: Mapping[str, Any], wanted: str | None, path: Path
) -> tuple[list[Sample], str, bool]:
    """Samples under the one filter, its name, and whether it was told from the order of rows."""
    labelled, ordered = _labelled(samples, _filters(figures), path)
    chosen = pick((str(one.filter) for one in labelled), wanted, "filter", "filters", str(path))
    return [one for one in labelled if one.filter == chosen], chosen, ordered


def _labelled(samples: Sequence[Sample], filters: Sequence[str], path: Path) -> tuple[list[Sample], bool]:
    """Samples with their filters, and whether those were told from the order of rows."""
    unnamed = [one for one in samples if one.filter is None]
    if not unnamed:
        return list(samples), False
    seen: Counter[str] = Counter()
    nth = []
    for one in samples:
        nth.append(seen[one.doc])
        seen[one.doc] += 1
    times = set(seen.values())
    names = list(filters) or ["none"]
    if len(unnamed) < len(samples) or times != {len(names)}:
        raise OutcomesError(
            f"{path}, {unnamed[0].place}: no filter is named, {max(times)} rows are of one document and the "
            f"results beside it name {len(filters)}; put results_<date>.json of the same evaluation beside it"
        )
    return [one._replace(filter=names[n]) for one, n in zip(samples, nth, strict=True)], len(names) > 1


def _check_order(values: Sequence[Any], rate: float | None, chosen: str, path: Path) -> None:
    mean = sum(value for value in values if value is not None) / len(values)
    if rate is None or abs(mean - rate) > 1e-6:
        raise OutcomesError(
            f"{path}: no row names its filter, and by their order those of {chosen!r} have the mean {mean:g} where the "
            f"results say {rate}; log the samples with lm_eval 0.4.7 or later"
        )


def _value(sample: Sample, metric: str, path: Path) -> Any:
    """The score, None where there is none."""
    value = need(sample.scores, metric, ANY, f"{path}, {sample.place}")
    if not _maybe_score(value):
        kind = type(value).__name__
        raise OutcomesError(
            f"{path}, {sample.place}: {metric} is a {kind}, which is no pass or fail; choose another metric"
        )
    return None if value is None or value != value else value


def _row(sample: Sample, value: Any, suite: str) -> dict[str, Any]:
    status = "error" if value is None else "ok"
    return {"task": f"{suite}/{sample.doc}", "run": "1", "outcome": value, "status": status}


def _number(value: Any) -> float | None:
    value = _plain(value)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _header(values: Sequence[Any], rate: float | None, se: float | None) -> dict[str, float]:
    """What the results say of passes and failures; a metric may be summed up as something else than their rate."""
    if not all(value in (0, 1, None) for value in values):
        return {}
    return {name: figure for name, figure in (("rate", rate), ("se", se)) if figure is not None and 0 <= figure <= 1}


def _notes(kept: Sequence[Sample], values: Sequence[Any], rate: float | None, chosen: str, path: Path) -> list[str]:
    said = []
    if (drawn := max((one.answers for one in kept), default=1)) > 1:
        said.append(f"{drawn} answers were drawn for a task, and filter {chosen!r} left one score: no runs of it")
    scored = [value for value in values if value is not None]
    if len(scored) < len(values):
        said.append(f"{len(values) - len(scored)} samples have no score")
    if rate is not None and scored and abs(rate - sum(scored) / len(scored)) > 1e-6:
        said.append(f"its results say {rate:g}, its samples give {sum(scored):g} of {len(scored)}")
    return [f"{path.name}: {sentence}" for sentence in said]


def _notes_of_task(there: int, metric: str, suite: str, stated: Mapping[str, Any] | None, path: Path) -> list[str]:
    said = []
    counts, better = _of(stated, "n-samples", suite), _of(stated, "higher_is_better", suite)
    effective, original = (counts.get(key) for key in ("effective", "original")) if isinstance(counts, dict) else (0, 0)
    if type(effective) is int and effective and effective != there:
        said.append(f"its results say {effective} samples, the file has {there}")
    if type(original) is int and original > there:
        said.append(f"{there} of the task's {original} documents were evaluated")
    if isinstance(better, dict) and better.get(metric) is False:
        turn = "outcome_map={0: 1, 1: 0} turns it"
        said.append(f"of {metric!r} less is better, and a success here is the worse answer: {turn}")
    return [f"{path.name}: {sentence}" for sentence in said]
