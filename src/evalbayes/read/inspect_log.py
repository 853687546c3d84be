"""Inspect logs (``.eval`` archives and ``.json``), through inspect-ai: the header and the summaries of samples.

The config is ``eval.model``, the task ``eval.task`` / sample id, the run the epoch. Summaries hold every score and no
message, so that a log of large transcripts costs no more than a small one. Of several logs of one model and task those
that share ``eval.task_id`` are one evaluation, retried: a sample that errored and was made again is an attempt at the
same run. Others are further runs. What makes another config of the same model (task arguments, solver, ...) is never
mixed up: see ``variants``.
"""

import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read import rows
from evalbayes.read.attempts import Attempts, NoAttempts, Options, as_json, from_records, pick

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSampleSummary

LETTERS = {"N": 0.0, "P": 0.5}
"""Inspect's NOANSWER and PARTIAL; C and I are words of every log."""
VARIANTS = ("task_args", "solver", "solver_args", "model_args", "generate_config")
"""What makes another config of the same model."""
_HEAD = 4096


def is_archive(names: Iterable[str]) -> bool:
    """Whether an archive with files of these names is an Inspect log, whole or still being written."""
    return any(name in ("header.json", "_journal/start.json") for name in names)


def is_document(path: Path) -> bool:
    """Whether a JSON file is an Inspect log, from its beginning alone: such a file can be large."""
    with rows.open_text(path) as file:
        head = "".join(file.read(_HEAD).split())
    return head.startswith('{"version":') and '"eval":{' in head and '"status":"' in head


def attempts(path: Path, options: Options) -> Attempts:
    """Return the attempts of a log; see `evalbayes.read.attempts`.

    Raises
    ------
    NoAttempts
        If no sample was logged.
    OutcomesError
        If inspect-ai is not installed, the log is damaged, or a score or field has to be chosen.
    """
    log, summaries = _opened(path)
    if not summaries:
        raise NoAttempts(f"{path}: the log has no samples (status {log.status}); read one that has")
    suite, records, places, missing = log.eval.task, [], [], 0
    scorer = _scorer(summaries, options, path)
    for sample in summaries:
        place = f"sample {sample.id}, epoch {sample.epoch}"
        value = _value(sample, scorer, options.field, f"{path}, {place}")
        missing += value is None and not sample.error
        records.append({**_facts(log), **_of_sample(log, sample), "outcome": value})
        places.append(place)
    values = [record["outcome"] for record in records]
    chosen = f"score {scorer!r}" + (f", field {options.field!r}" if options.field else "") if scorer else ""
    return from_records(
        records,
        places,
        path,
        rule=chosen,
        tasks=[f"{suite}/{name}" for name in (log.eval.dataset.sample_ids or [])],
        header=_header(log, scorer, values),
        notes=[
            *_planned(log, summaries, path),
            *_errors(summaries, path),
            *_headers(log, path),
            *_unscored(missing, path),
        ],
        letters=LETTERS,
        variants=VARIANTS,
    )


def _opened(path: Path) -> "tuple[EvalLog, Sequence[EvalSampleSummary]]":
    try:
        from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries
    except ImportError:
        raise OutcomesError(f"{path}: an Inspect log needs inspect-ai; pip install 'evalbayes[inspect]'") from None
    if rows.is_gzip(path):
        raise OutcomesError(f"{path}: an Inspect log in gzip; gunzip it first, for inspect-ai reads logs in place")
    broken = (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, AttributeError, TypeError, AssertionError)
    format: Literal["eval", "json"] = "eval" if zipfile.is_zipfile(path) else "json"  # whatever the name says
    try:
        header = read_eval_log(str(path), header_only=True, format=format)
        return header, read_eval_log_sample_summaries(str(path), format=format)
    except broken as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise OutcomesError(f"{path}: not a readable Inspect log ({reason}); copy it again") from None


def _facts(log: "EvalLog") -> dict[str, Any]:
    """What the header says of every sample."""
    about = log.eval
    return {
        "config": about.model,
        "suite": about.task,
        "task_version": str(about.task_version),
        "date": about.created[:10],
        "invocation": about.task_id,
        "attempt": datetime.fromisoformat(about.created).astimezone(UTC).isoformat(),
        "task_args": as_json(about.task_args),
        "solver": about.solver,
        "solver_args": as_json(about.solver_args),
        "model_args": as_json(about.model_args),
        "generate_config": as_json(about.model_generate_config.model_dump(exclude_none=True)),
    }


def _of_sample(log: "EvalLog", sample: "EvalSampleSummary") -> dict[str, Any]:
    usage = (sample.model_usage or {}).values()
    return {
        "task": f"{log.eval.task}/{sample.id}",
        "run": str(sample.epoch),
        "status": "error" if sample.error else "ok",
        "uuid": sample.uuid,
        "tokens": sum(one.total_tokens for one in usage) or None,
        "time": sample.total_time,
        "limit": sample.limit,
    }


def _scorer(summaries: "Sequence[EvalSampleSummary]", options: Options, path: Path) -> str:
    """The scorer that counts; blank where no sample has any score."""
    names = dict.fromkeys(name for sample in summaries for name in sample.scores or {})
    return pick(names, options.score, "score", "scorers", str(path)) if names else ""


def _value(sample: "EvalSampleSummary", scorer: str, field: str | None, place: str) -> Any:
    """The value of the score, or of its field; None where there is none."""
    score = (sample.scores or {}).get(scorer)
    value = None if score is None else score.value
    if isinstance(value, Mapping):
        name = pick(map(str, value), field, "field", f"fields of score {scorer!r}", place)
        return value[name]
    blank = value is None or value != value
    if field is not None and not blank:
        raise OutcomesError(f"{place}: score {scorer!r} is {value!r}, which has no field {field!r}; leave field= out")
    if isinstance(value, list):
        raise OutcomesError(
            f"{place}: score {scorer!r} is a list, which is no pass or fail; score the sample by one value"
        )
    return value


def _planned(log: "EvalLog", summaries: "Sequence[EvalSampleSummary]", path: Path) -> list[str]:
    """Say when fewer samples were logged than the header planned."""
    epochs = log.eval.config.epochs or 1
    names = log.eval.dataset.sample_ids
    planned = len(names) * epochs if names else (log.results.total_samples if log.results else 0)
    said = [f"{path.name}: its status is {log.status}"] * (log.status != "success")
    if len(summaries) < planned:
        present = f"{len(summaries)} of {planned} planned runs are present (epochs={epochs})"
        said.append(f"{path.name}: {present}; runs are counted from the samples")
    return said


def _errors(summaries: "Sequence[EvalSampleSummary]", path: Path) -> list[str]:
    """Say what kinds of error samples ended with: one that was cancelled because another crashed is no crash."""
    kinds = Counter(
        str(sample.error).partition("(")[0].partition(":")[0].strip()[:40] for sample in summaries if sample.error
    )
    said = words.shown([f"{kind or 'unnamed'} {count}" for kind, count in kinds.items()], 5)
    return [f"{path.name}: samples ended by an error: {said}"] * bool(kinds)


def _headers(log: "EvalLog", path: Path) -> list[str]:
    """Say what the header gives where several reducers share the name of a scorer: one does not stand for the other."""
    scores = log.results.scores if log.results else []
    reducers: dict[str, set[str | None]] = {}
    for score in scores:
        reducers.setdefault(score.name, set()).add(score.reducer)
    said = [
        f"{score.name}/{score.reducer or 'mean'} {name} {metric.value:g}"
        for score in scores
        for name, metric in score.metrics.items()
        if len(reducers[score.name]) > 1 and isinstance(metric.value, int | float)
    ]
    return [f"{path.name}: its header reduces epochs in several ways ({words.shown(said)}); runs are counted"] * bool(
        said
    )


def _header(log: "EvalLog", scorer: str, values: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The header's accuracy, where it is a rate of passes: no partial credit, epochs averaged."""
    binary = all(value in ("C", "I", "N", 0, 1) for value in values if value is not None)
    for score in log.results.scores if log.results and binary else []:
        if score.name == scorer and score.reducer in (None, "mean") and "accuracy" in score.metrics:
            return {log.eval.model: {"rate": score.metrics["accuracy"].value}}
    return {}


def _unscored(missing: int, path: Path) -> list[str]:
    plural = "sample has" if missing == 1 else "samples have"
    return [f"{path.name}: {missing} {plural} neither a score nor an error: attempts without a score"] * bool(missing)
