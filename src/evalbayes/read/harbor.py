"""Harbor, which runs Terminal-Bench 2 and others: the ``result.json`` of a trial, and that of a job.

Of a trial the config is agent and model (``agent_info``), the task ``task_name``, the run ``trial_name`` and the score
the one of ``verifier_result.rewards`` that is wanted. A trial without a reward has no score. One with a reward and an
exception (an agent that ran out of time is verified all the same) keeps it, unless the file says that ``reward_valid``
is false.

A job lists the trials of its folder by reward, in ``stats.evals.<agent>__<model>__<dataset>.reward_stats``, and those
that raised in ``exception_stats``. Trials with a file of their own, beside it, are read from that; the others from the
list, where a task's name is cut off at 32 characters. Its ``mean`` once counted trials without a reward as 0 and now
leaves them out; the note says which it is.

Evidence: the package harbor 0.26.0 (laude-institute/harbor, harbor-framework/harbor): harbor/models/trial/result.py and
error_policy.py, harbor/models/job/result.py, harbor/job.py, harbor/metrics; UniPat-AI/harbor_multiturn
src/harbor/models/trial/result.py (bd2c50b7), src/harbor/job.py (2c7b4c41) and src/harbor/metrics/mean.py (bd2c50b7) for
the earlier rule; tenstorrent/tt-inference-server issue 4176 for a job of that time.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, NoAttempts, Options, as_json, from_records, need, part, pick
from evalbayes.read.terminal_bench import seconds

VARIANTS = ("suite", "agent_kwargs", "timeout_multiplier")
LONGEST = 32
"""Characters of a task's name that the name of a trial keeps."""

Records = list[dict[str, Any]]


def recognises(content: Any, path: Path) -> bool:
    """Whether a document is the result of a trial or of a job."""
    if not isinstance(content, dict):
        return False
    trial = {"task_name", "trial_name", "agent_info"} <= content.keys()
    return trial or ("n_total_trials" in content and isinstance(content.get("stats"), dict))


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempt of a trial, or those of a job that have no file of their own; see `evalbayes.read.attempts`.

    ``options.score`` says which reward counts where there are several; ``options.manifest`` completes the names of
    tasks that a job cuts off.

    Raises
    ------
    NoAttempts
        If every trial of a job has a file of its own, or it lists none.
    OutcomesError
        If a reward has to be chosen, or the file is damaged.
    """
    if isinstance(content, dict) and "task_name" in content:
        record = _of_trial(content, options.score, str(path))
        return _made([record], [f"trial {record['run']}"], path, options.score)
    planned = need(content, "n_total_trials", int, str(path))
    skipped: list[tuple[str, str]] = []
    evals: dict[str, Any] = {}
    if content.get("trial_results"):
        listed = need(content, "trial_results", list, str(path))
        records, places = _of_trials(listed, path, options.score)
    else:
        evals = _evals(content, path)
        records, places, skipped = _of_stats(evals, path, options)
    notes = _notes(content, evals, records, planned, f"{path.absolute().parent.name}/{path.name}")
    apart = [i for i, record in enumerate(records) if not (path.parent / record["run"] / "result.json").is_file()]
    if records and not apart:
        said = "; ".join(notes)
        raise NoAttempts(f"{path}: its {len(records)} trials have files of their own; read its folder ({said})")
    kept, where = [records[i] for i in apart], [places[i] for i in apart]
    return _made(kept, where, path, options.score, notes=notes, skipped=skipped, header=_header(evals, records))


def _made(records: Records, places: list[str], path: Path, score: str | None, **about: Any) -> Attempts:
    rule = f"reward {score!r}" if score else "reward"
    return from_records(records, places, path, rule=rule, variants=VARIANTS, **about)


def _config(agent: str, model: str | None) -> str:
    return f"{agent} + {model}" if model else agent


def _of_trials(trials: Sequence[Any], path: Path, score: str | None) -> tuple[Records, list[str]]:
    records = [_of_trial(trial, score, f"{path}, trial_results, entry {i}") for i, trial in enumerate(trials, 1)]
    return records, [f"trial {record['run']}" for record in records]


def _of_trial(trial: Any, score: str | None, place: str) -> dict[str, Any]:
    agent = need(trial, "agent_info", dict, place)
    known = agent.get("model_info") is not None
    model = need(agent, "model_info", dict, f"{place}, agent_info") if known else {}
    name, failure = need(trial, "trial_name", str, place), trial.get("exception_info")
    reward = _reward(trial, score, place)
    valid = reward is not None and trial.get("reward_valid") is not False
    config, ran = part(trial, "config"), part(trial, "agent_execution")
    kwargs = part(config, "agent").get("kwargs")
    return {
        "config": _config(need(agent, "name", str, f"{place}, agent_info"), _model(model, place)),
        "task": need(trial, "task_name", str, place),
        "run": name,
        "outcome": reward if valid else None,
        "status": "ok" if valid else "error",
        "exception": need(failure, "exception_type", str, f"{place}, exception_info") if failure else None,
        "uuid": trial.get("id"),
        "agent": agent["name"],
        "agent_version": agent.get("version"),
        "agent_kwargs": as_json(kwargs),
        "timeout_multiplier": config.get("timeout_multiplier"),
        "model": model.get("name"),
        "provider": model.get("provider"),
        "suite": trial.get("source"),
        "task_checksum": trial.get("task_checksum"),
        "date": str(trial.get("started_at") or "")[:10] or None,
        "time": seconds(ran.get("started_at"), ran.get("finished_at")),
        **_usage(trial),
    }


def _model(info: Mapping[str, Any], place: str) -> str | None:
    return need(info, "name", str, f"{place}, model_info") if info else None


def _reward(trial: Mapping[str, Any], score: str | None, place: str) -> float | None:
    verified = trial.get("verifier_result")
    if verified is None:
        return None
    rewards = need(verified, "rewards", (dict, type(None)), f"{place}, verifier_result")
    if not rewards:
        return None
    key = pick(rewards, score, "score", "rewards", place)
    return float(need(rewards, key, (int, float), f"{place}, rewards"))


def _usage(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Tokens and cost of the agent, summed over the steps of a trial that has several."""
    steps = trial.get("step_results")
    several = [step for step in steps if isinstance(step, Mapping)] if isinstance(steps, list) else []
    used = [part(one, "agent_result") for one in ([trial] if part(trial, "agent_result") else several)]
    tokens = [one.get(key) for one in used for key in ("n_input_tokens", "n_output_tokens")]
    costs = [one["cost_usd"] for one in used if isinstance(one.get("cost_usd"), int | float)]
    return {
        "tokens": sum(count for count in tokens if isinstance(count, int)) or None,
        "cost": sum(costs) if costs else None,
    }


def _evals(content: Any, path: Path) -> dict[str, Any]:
    """What a job says of each agent, model and dataset, checked to be of the shape that lists trials."""
    stats = need(content, "stats", dict, str(path))
    evals = need(stats, "evals", dict, f"{path}, stats") if "evals" in stats else {}
    for key, one in evals.items():
        if not isinstance(one, Mapping) or "reward_stats" not in one:
            raise NoAttempts(f"{path}: this job does not list its trials; read the result.json of each trial")
        for name in ("reward_stats", "exception_stats"):
            lists = need(one, name, dict, f"{path}, evals, {key}") if name in one else {}
            for reward in lists.values() if name == "reward_stats" else [lists]:
                if not isinstance(reward, Mapping) or not all(map(_is_names, reward.values())):
                    raise OutcomesError(f"{path}, evals, {key}: {name} does not list trials; check the file")
    return evals


def _is_names(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _identity(key: str) -> tuple[str, str | None, str | None]:
    """Agent, model and dataset of a key of evals.

    >>> _identity("terminus-2__openai/gpt__terminal-bench"), _identity("oracle__adhoc")
    (('terminus-2', 'openai/gpt', 'terminal-bench'), ('oracle', None, 'adhoc'))
    """
    agent, *model = key.split("__")
    return agent, "__".join(model[:-1]) or None, model[-1] if model else None


def _of_stats(
    evals: Mapping[str, Any], path: Path, options: Options
) -> tuple[Records, list[str], list[tuple[str, str]]]:
    """The trials that a job lists by reward and by exception; those whose name does not say the task are skipped."""
    records: Records = []
    skipped = []
    names = {name for stats in evals.values() for name in stats["reward_stats"]}
    score = pick(sorted(names), options.score, "score", "rewards", str(path)) if names else ""
    for key, stats in evals.items():
        agent, model, suite = _identity(key)
        facts = {"agent": agent, "model": model, "suite": suite}
        for name, reward, exception in _listed(stats, score, f"{path}, evals, {key}"):
            task, mark, _ = name.rpartition("__")
            if not mark:
                skipped.append((f"trial {name}", "its name does not say its task; read its own result.json"))
                continue
            about = {"config": _config(agent, model), "task": _whole(task, options.manifest, path), "run": name}
            status = "error" if reward is None else "ok"
            records.append({**about, "outcome": reward, "status": status, "exception": exception, **facts})
    return records, [f"trial {record['run']}" for record in records], skipped


def _listed(stats: Any, score: str, place: str) -> Iterable[tuple[str, float | None, str | None]]:
    """Each trial once: its name, its reward and its exception."""
    rewards: dict[str, float] = {}
    for text, names in stats["reward_stats"].get(score, {}).items():
        for name in names:
            if name in rewards:
                raise OutcomesError(f"{place}: trial {name} has two rewards; correct the file")
            rewards[name] = _number(text, place)
    raised = {name: exception for exception, names in stats.get("exception_stats", {}).items() for name in names}
    return [(name, rewards.get(name), raised.get(name)) for name in dict.fromkeys([*rewards, *raised])]


def _number(text: str, place: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OutcomesError(f"{place}: reward {text!r} is not a number; check the file") from None


def _whole(task: str, manifest: Sequence[str] | None, path: Path) -> str:
    """The task that a trial's name begins with: the one of the manifest, where it may be cut off."""
    found = [name for name in manifest or () if name.split("/")[-1][:LONGEST].rstrip("_-") == task.rstrip("_-")]
    if len(found) > 1:
        raise OutcomesError(f"{path}: {task} may be {words.shown(found, 3)}; read the result.json of each trial")
    return found[0] if found else task


def _header(evals: Mapping[str, Any], records: Records) -> dict[str, dict[str, Any]]:
    """The mean of each config, where it is one of passes; nothing where a config has several datasets."""
    found: dict[str, dict[str, Any]] = {}
    configs = [_config(*_identity(key)[:2]) for key in evals]
    for config, stats in zip(configs, evals.values(), strict=True):
        scores = {one["outcome"] for one in records if one["config"] == config and one["outcome"] is not None}
        figures = {"trials": stats["n_trials"]} if type(stats.get("n_trials")) is int else {}
        mean = _mean(stats) if scores <= {0.0, 1.0} else None
        figures |= {} if mean is None else {"rate": mean}
        found |= {config: figures} if figures and configs.count(config) == 1 else {}
    return found


def _mean(stats: Mapping[str, Any]) -> float | None:
    metrics = stats.get("metrics")
    means = [one["mean"] for one in metrics if "mean" in one] if isinstance(metrics, list) else []
    return float(means[0]) if len(means) == 1 and isinstance(means[0], int | float) else None


def _notes(
    content: Mapping[str, Any], evals: Mapping[str, Any], records: Records, planned: int, name: str
) -> list[str]:
    said = []
    if len(records) < planned:
        said.append(f"{name}: {len(records)} of {planned} planned trials have a result")
    for key, stats in evals.items():
        agent, model, suite = _identity(key)
        own = [one for one in records if (one["agent"], one["model"], one["suite"]) == (agent, model, suite)]
        alone = planned if len(evals) == 1 else None
        said += _denominator(stats, own, alone, f"{name}, {_config(agent, model)}")
    both = [one["exception"] for one in records if one["exception"] and one["outcome"] is not None]
    if both:
        kinds = words.shown(f"{kind} {both.count(kind)}" for kind in dict.fromkeys(both))
        said.append(f"{name}: {len(both)} trials have a reward and an exception ({kinds}); their reward counts")
    cut = sorted({one["task"] for one in records if len(one["task"]) in (LONGEST - 1, LONGEST)}) if evals else []
    if cut:
        said.append(f"{name}: {words.shown(cut, 3)} may be cut off, as long names are; manifest= completes them")
    return said


def _denominator(stats: Mapping[str, Any], own: Records, planned: int | None, name: str) -> list[str]:
    """Say what the header's mean is out of, where its trials do not all have a reward."""
    mean, scored = _mean(stats), [one["outcome"] for one in own if one["outcome"] is not None]
    if mean is None or not scored:
        return []
    total, n, ran = sum(scored), len(scored), len(own)
    every = "all trials" if ran == planned else "the trials that ran"
    under = {
        planned: "the planned trials, those without a reward as 0",
        ran: f"{every}, those without a reward as 0",
        n: "the trials with a reward",
    }
    if n == ran == (planned or ran) and abs(mean - total / n) < 1e-9:
        return []
    counts = ", ".join(f"{key} {stats[key]}" for key in ("n_trials", "n_errors") if key in stats)
    counts = f"n_total_trials {planned}, {counts}" if planned else counts
    rows = f"the rows give {total:g}/{n} = {total / n:.6f} and {ran - n} without a score"
    for out_of, of in under.items():
        if out_of and abs(mean - total / out_of) < 1e-9:
            return [f"{name}: its mean {mean:.6f} is {total:g}/{out_of}, out of {of} ({counts}); {rows}"]
    return [f"{name}: its mean {mean:.6f} is none that its trials give ({counts}); {rows}"]
