"""HELM: the ``per_instance_stats.json`` of a run, with the ``run_spec.json`` beside it.

The config is ``model=`` in the name of the run spec, where it has none the adapter's model. The task is the rest of
that name and ``instance_id``, the run ``train_trial_index``: another draw of the examples in the prompt. Every metric
writes an entry of its own for an instance, so entries are put together. The score is the ``mean`` of the stat that
``score=`` names; where only one that tells something of the answer is 0 or 1 throughout, that one. HELM takes out stats
that are not a number, so that an instance without the stat is an attempt without a score. Instances under a
perturbation are other prompts and are passed over.

Evidence: stanford-crfm/helm src/helm/benchmark/runner.py (f0b74de9) and src/helm/benchmark/metrics/metric.py
(4c57096b); metrics/statistic.py, metrics/metric_name.py and run_expander.py of the packages crfm-helm 0.2.4 and 0.5.16.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbayes.errors import OutcomesError
from evalbayes.read import rows
from evalbayes.read.attempts import Attempts, Options, from_records, need, pick

RUN_SPEC = "run_spec.json"
VARIANTS = ("max_train_instances", "temperature")
BOOKKEEPING = re.compile(
    r"(max_)?num_.*|finish_reason_.*|inference_.*|training_.*|estimated_.*|prompt_truncated|batch_size|predicted_index"
    r"|max_prob|logprob.*|perplexity|bits_per_byte"
)
"""Stats of the request, not of the answer; some of them are 0 or 1."""
Group = list[tuple[int, Mapping[str, Any]]]


def recognises(content: Any, path: Path) -> bool:
    """Whether a document is a list of stats of instances."""
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, dict) and {"instance_id", "train_trial_index", "stats"} <= first.keys()


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a run; see `evalbayes.read.attempts`.

    ``options.score`` is the name of a stat.

    Raises
    ------
    NoAttempts
        If every instance is perturbed, or there is none.
    OutcomesError
        If the run spec is not beside it, several stats could be the score, or an entry is damaged.
    """
    if not isinstance(content, list):
        raise OutcomesError(f"{path}: not a list of stats of instances; check the file")
    about = _about(path)
    groups, perturbed = _groups(content, path)
    stat = _chosen(groups, options.score, path) if groups else ""
    records, places = [], []
    for (name, trial), group in groups.items():
        place = f"entry {group[0][0]} (instance {name}, trial {trial})"
        records.append({**about, **_row(about["suite"], name, trial, _values(group, path), stat)})
        places.append(place)
    missing = sum(record["outcome"] is None for record in records)
    return from_records(
        records,
        places,
        path,
        rule=f"stat {stat!r}",
        skipped=[
            (f"{count} entries under perturbation {name}", "only unperturbed instances are read")
            for name, count in perturbed.items()
        ],
        notes=[f"{about['suite']}: {missing} attempts have no stat {stat!r}, so no score"] * bool(missing),
        variants=VARIANTS,
    )


def _about(path: Path) -> dict[str, Any]:
    """What the run spec says of every instance."""
    beside = path.parent / RUN_SPEC
    if not beside.is_file():
        raise OutcomesError(f"{path}: there is no {RUN_SPEC} beside it, which names the model; add it")
    spec = rows.document(beside)
    name = need(spec, "name", str, str(beside))
    adapter = spec.get("adapter_spec") if isinstance(spec.get("adapter_spec"), Mapping) else {}
    suite, model = split_name(name)
    if not (model or adapter.get("model")):
        raise OutcomesError(f"{beside}: neither model= in the name {name!r} nor a model of the adapter; name one")
    shots, temperature = adapter.get("max_train_instances"), adapter.get("temperature")
    return {
        "config": model or str(adapter["model"]),
        "suite": suite,
        "model": adapter.get("model"),
        "max_train_instances": None if shots is None else str(shots),
        "temperature": None if temperature is None else str(temperature),
    }


def split_name(name: str) -> tuple[str, str | None]:
    """Return the name of a run without its model, and the model.

    >>> split_name("mmlu:subject=anatomy,model=openai_gpt-4,data_augmentation=canonical")
    ('mmlu:subject=anatomy,data_augmentation=canonical', 'openai_gpt-4')
    >>> split_name("mmlu")
    ('mmlu', None)
    """
    scenario, colon, arguments = name.partition(":")
    parts = arguments.split(",")
    models = [part for part in parts if part.startswith("model=")]
    rest = ",".join(part for part in parts if part not in models)
    return scenario + colon * bool(rest) + rest, models[0].removeprefix("model=") if models else None


def _groups(content: Sequence[Any], path: Path) -> tuple[dict[tuple[str, str], Group], Counter[str]]:
    """Entries of each unperturbed instance and trial, and how many there are under each perturbation."""
    groups: dict[tuple[str, str], Group] = {}
    perturbed: Counter[str] = Counter()
    for i, entry in enumerate(content, 1):
        place = f"{path}, entry {i}"
        name = str(need(entry, "instance_id", (str, int), place))
        trial = str(need(entry, "train_trial_index", int, place))
        need(entry, "stats", list, place)
        if entry.get("perturbation") is not None:
            perturbed[str(need(need(entry, "perturbation", dict, place), "name", str, place))] += 1
            continue
        groups.setdefault((name, trial), []).append((i, entry))
    return groups, perturbed


def _stats(group: Group, path: Path) -> Iterator[tuple[str, float | None, str]]:
    """Name, mean and place of every stat of an instance; None where nothing was counted."""
    for i, entry in group:
        for j, stat in enumerate(entry["stats"], 1):
            place = f"{path}, entry {i}, stat {j}"
            name = need(need(stat, "name", dict, place), "name", str, place)
            mean = need(stat, "mean", (int, float, type(None)), place) if "mean" in stat else None
            yield name, None if mean is None or mean != mean else mean, place


def _values(group: Group, path: Path) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for name, mean, place in _stats(group, path):
        if name in values and values[name] != mean:
            raise OutcomesError(f"{place}: {name} is {mean} here and {values[name]} before; correct the file")
        values[name] = mean
    return values


def _chosen(groups: Mapping[tuple[str, str], Group], wanted: str | None, path: Path) -> str:
    binary: dict[str, bool] = {}
    for group in groups.values():
        for name, mean, _ in _stats(group, path):
            binary[name] = binary.get(name, True) and mean in (0, 1, None)
    telling = [name for name in binary if not BOOKKEEPING.fullmatch(name)]
    if wanted is not None:
        return pick(binary, wanted, "score", "stats", str(path))
    of_two = [name for name in telling if binary[name]]
    return pick(of_two or telling, None, "score", "stats that are 0 or 1" if of_two else "stats", str(path))


def _row(suite: str, name: str, trial: str, values: Mapping[str, float | None], stat: str) -> dict[str, Any]:
    score = values.get(stat)
    prompt = values.get("num_prompt_tokens")
    answer = values.get("num_completion_tokens", values.get("num_output_tokens"))
    return {
        "task": f"{suite}/{name}",
        "run": trial,
        "outcome": score,
        "status": "error" if score is None else "ok",
        "tokens": None if prompt is None or answer is None else prompt + answer,
        "time": values.get("inference_runtime"),
    }
