"""HELM: the ``per_instance_stats.json`` of a run, with the ``run_spec.json`` beside it.

The config is ``model=`` in the name of the run spec, where it has none the adapter's model. The rest of that name is
the scenario with its arguments and, between them, what run expanders append (``data_augmentation=canonical``;
``stop=hash`` for some models only): these are ``settings`` of the config. The task is the scenario and
``instance_id``, the run ``train_trial_index``: another draw of the examples in the prompt. Every metric writes an
entry of its own for an instance, so entries are put together; some of 2022 repeat stats of the request with other
values, which are left out.

The score is the ``mean`` of the stat that ``score=`` names, or of the only one that is of the answer. HELM takes out
stats that are not a number: an instance without the stat is an attempt without a score. Instances under a perturbation
are other prompts and are passed over, as are those of other splits than ``test`` where there are several; ``part=``
names another split.

Evidence: stanford-crfm/helm src/helm/benchmark/runner.py (f0b74de9) and src/helm/benchmark/metrics/metric.py
(4c57096b), its issue 1205 for the entries of 2022; metrics/statistic.py, metrics/metric_name.py, run_expander.py and
run_spec_factory.py of the packages crfm-helm 0.2.4 and 0.5.16.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read import rows
from evalbayes.read.attempts import Attempts, Options, from_records, need, pick

RUN_SPEC = "run_spec.json"
TEST = "test"
VARIANTS = ("settings", "max_train_instances", "temperature")
EXPANDERS = frozenset(
    [
        "add_to_stop",
        "amazon-nova",
        "anthropic",
        "chatml",
        "claude_3",
        "data_augmentation",
        "eval_split",
        "follow_format_instructions",
        "format_prompt",
        "global_prefix",
        "idefics_instruct",
        "increase_max_tokens",
        "increase_temperature",
        "instructions",
        "llava",
        "max_eval_instances",
        "max_train_instances",
        "model_deployment",
        "newline",
        "num_output_tokens",
        "num_outputs",
        "num_prompt_tokens",
        "num_train_trials",
        "num_trials",
        "open_flamingo",
        "output_format_instructions",
        "process_output",
        "prompt",
        "stop",
        "temperature",
        "tokenizer",
    ]
)
"""Arguments in the name of a run that are not the scenario's."""
BOOKKEEPING = re.compile(
    r"(max_)?num_.*|finish_reason_.*|inference_.*|training_.*|estimated_.*|prompt_truncated|batch_size|predicted_index"
    r"|max_prob|logprob.*|perplexity|bits_per_byte"
)
"""Stats of the request, not of the answer."""


class Stat(NamedTuple):
    """A stat of an instance: its mean is None where nothing was counted."""

    name: str
    mean: float | None
    split: str | None
    place: str


class Key(NamedTuple):
    """An instance and which draw of the examples in its prompt."""

    instance: str
    trial: str


Groups = Mapping[Key, Sequence[Stat]]


def recognises(content: Any, path: Path) -> bool:
    """Whether a document is a list of stats of instances."""
    first = content[0] if isinstance(content, list) and content else None
    if not isinstance(first, dict) or not {"instance_id", "train_trial_index"} <= first.keys():
        return False
    return isinstance(first.get("stats"), list)  # a mapping in display_predictions.json, which the web page shows


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a run; see `evalbayes.read.attempts`.

    ``options.score`` is the name of a stat, ``options.part`` of a split.

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
    all_groups, entries, perturbed = _groups(content, path)
    groups, others = _of_split(all_groups, options.part, path)
    stat = _chosen(groups, options.score, path) if groups else ""
    records = [{**about, **_row(about["suite"], key, group, stat)} for key, group in groups.items()]
    missing = sum(record["outcome"] is None for record in records)
    reasons = ((perturbed, "only unperturbed instances are read"), (others, "part= names the split that is read"))
    return from_records(
        records,
        [f"entry {entries[key]} (instance {key.instance}, trial {key.trial})" for key in groups],
        path,
        rule=f"stat {stat!r}",
        skipped=[(f"{count} {what}", why) for found, why in reasons for what, count in found.items()],
        notes=_notes(about["suite"], stat, missing, others),
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
    suite, model, settings = split_name(name)
    if not (model or adapter.get("model")):
        raise OutcomesError(f"{beside}: neither model= in the name {name!r} nor a model of the adapter; name one")
    shots, temperature = adapter.get("max_train_instances"), adapter.get("temperature")
    return {
        "config": model or str(adapter["model"]),
        "suite": suite,
        "settings": settings or "none",  # a blank could not be part of a config's name
        "model": adapter.get("model"),
        "max_train_instances": None if shots is None else str(shots),
        "temperature": None if temperature is None else str(temperature),
    }


def split_name(name: str) -> tuple[str, str | None, str]:
    """Return the scenario of a run's name, the model and the settings.

    >>> split_name("mmlu:subject=anatomy,model=openai_gpt-4,stop=hash")
    ('mmlu:subject=anatomy', 'openai_gpt-4', 'stop=hash')
    >>> split_name("boolq:model=openai_gpt-4")
    ('boolq', 'openai_gpt-4', '')
    """
    scenario, _, arguments = name.partition(":")
    model: str | None = None
    kept: list[str] = []
    settings: list[str] = []
    for part in filter(None, arguments.split(",")):
        key, _, value = part.partition("=")
        if key == "model":
            model = value
        else:
            (settings if key in EXPANDERS else kept).append(part)
    return ":".join(filter(None, [scenario, ",".join(kept)])), model, ",".join(settings)


def _groups(content: Sequence[Any], path: Path) -> tuple[dict[Key, list[Stat]], dict[Key, int], Counter[str]]:
    """Stats of each unperturbed instance and trial, its first entry, and how many are under each perturbation."""
    groups: dict[Key, list[Stat]] = {}
    entries: dict[Key, int] = {}
    perturbed: Counter[str] = Counter()
    for i, entry in enumerate(content, 1):
        place = f"{path}, entry {i}"
        name = str(need(entry, "instance_id", (str, int), place))
        key = Key(name, str(need(entry, "train_trial_index", int, place)))
        stats = list(_stats(need(entry, "stats", list, place), place))
        if entry.get("perturbation") is not None:
            perturbation = need(need(entry, "perturbation", dict, place), "name", str, place)
            perturbed[f"entries under perturbation {perturbation}"] += 1
            continue
        entries.setdefault(key, i)
        groups.setdefault(key, []).extend(stats)
    return groups, entries, perturbed


def _stats(stats: Sequence[Any], where: str) -> Iterator[Stat]:
    for j, stat in enumerate(stats, 1):
        place = f"{where}, stat {j}"
        about = need(stat, "name", dict, place)
        mean = need(stat, "mean", (int, float, type(None)), place) if "mean" in stat else None
        split = need(about, "split", (str, type(None)), place) if "split" in about else None
        yield Stat(need(about, "name", str, place), None if mean != mean else mean, split, place)


def _of_split(groups: Groups, wanted: str | None, path: Path) -> tuple[Groups, Counter[str]]:
    """Instances of the split that is read, and how many there are of others."""
    splits = {key: next((stat.split for stat in group if stat.split), None) for key, group in groups.items()}
    known = [split for split in splits.values() if split]
    if wanted is None and len(set(known)) < 2:
        return groups, Counter()
    chosen = pick(known, wanted or (TEST if TEST in known else None), "part", "splits", str(path))
    others = Counter(
        f"instances of {f'split {split}' if split else 'no split'}" for split in splits.values() if split != chosen
    )
    return {key: group for key, group in groups.items() if splits[key] == chosen}, others


def _chosen(groups: Groups, wanted: str | None, path: Path) -> str:
    names = dict.fromkeys(stat.name for group in groups.values() for stat in group)
    of_answer = [name for name in names if not BOOKKEEPING.fullmatch(name)]
    return pick(names if wanted else of_answer, wanted, "score", "stats", str(path))


def _row(suite: str, key: Key, group: Sequence[Stat], stat: str) -> dict[str, Any]:
    values: dict[str, float | None] = {}
    differing = set()
    for one in group:
        if values.setdefault(one.name, one.mean) != one.mean:
            if one.name == stat:
                raise OutcomesError(
                    f"{one.place}: {stat} is {one.mean} here and {values[stat]} before; correct the file"
                )
            differing.add(one.name)
    values = {name: value for name, value in values.items() if name not in differing}
    prompt, answer = (
        values.get("num_prompt_tokens"),
        values.get("num_output_tokens", values.get("num_completion_tokens")),
    )
    return {
        "task": f"{suite}/{key.instance}",
        "run": key.trial,
        "outcome": values.get(stat),
        "status": "error" if values.get(stat) is None else "ok",
        "tokens": None if prompt is None or answer is None else prompt + answer,
        "time": values.get("inference_runtime"),
    }


def _notes(suite: str, stat: str, missing: int, others: Mapping[str, int]) -> list[str]:
    said = [f"{missing} attempts have no stat {stat!r}, so no score"] * bool(missing)
    if others:
        left_out = words.shown(f"{count} {what}" for what, count in others.items())
        said.append(f"of several splits one is read; {left_out} are not")
    return [f"{suite}: {sentence}" for sentence in said]
