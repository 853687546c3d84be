"""What a board holds and what it lacks: coverage, errors, bounds over the error policy, suspicious names."""

import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import xarray as xr

from evalbayes.errors import OutcomesError
from evalbayes.schema import scored_trials

READING = (
    "reader",
    "column_rule",
    "name_rule",
    "attempt_rule",
    "duplicate_rule",
    "ignored_columns",
    "skipped",
    "notes",
)
"""Attributes that say how a log was read, as text."""


def observed_score(ds: xr.Dataset, *, weights: Literal["task", "micro"] = "task") -> xr.DataArray:
    """Score of each config as observed: an exact fact about these runs, (config).

    ``weights="task"``: the mean over tasks with a trial of successes/trials, so that every task counts
    the same. ``weights="micro"``: all successes over all trials. NaN where no task has a trial.

    Examples
    --------
    >>> from evalbayes import outcomes
    >>> board = outcomes.from_counts([[1, 3]], [[1, 4]], configs=["a"], tasks=["t", "u"])
    >>> float(observed_score(board).item()), float(observed_score(board, weights="micro").item())
    (0.875, 0.8)
    """
    k, n = ds["successes"], ds["trials"]
    if weights == "micro":
        total = n.sum("task")
        return (k.sum("task") / total.where(total > 0)).rename("observed_micro")
    if weights != "task":
        raise OutcomesError(f"weights={weights!r} is unknown; use 'task' or 'micro'")
    return (k / n.where(n > 0)).mean("task").rename("observed")


def describe(ds: xr.Dataset) -> xr.Dataset:
    """Describe a board, config by config, with board-level facts as attributes.

    Returns
    -------
    xarray.Dataset
        Over ``config``: ``tasks_scored``, ``tasks_total``, ``coverage`` (their ratio), ``trials``, ``errors``,
        ``observed`` and ``observed_micro`` (`outcomes.observed_score`), ``observed_lower`` and
        ``observed_upper``: the mean over attempted tasks if every errored attempt had failed or passed;
        ``published`` where known. Attributes: sizes, empty and single-run cells, errors and their policy,
        duplicates, near-duplicate names, and how many tasks are all-pass, all-fail, mixed or unscored.

    Examples
    --------
    >>> from evalbayes import outcomes
    >>> ds = outcomes.from_counts([[2, 0]], [[6, 0]], configs=["a"], tasks=["t", "u"], errors=[[2, 0]])
    >>> d = describe(ds)
    >>> float(d.coverage.item()), float(d.observed_lower.item()), float(d.observed_upper.item())
    (0.5, 0.25, 0.5)
    """
    scored = scored_trials(ds)
    attempts = scored + ds["errors"]
    attempted = attempts.where(attempts > 0)
    facts = {
        "tasks_scored": (ds["trials"] > 0).sum("task"),
        "tasks_total": xr.full_like(ds["trials"].sum("task"), ds.sizes["task"]),
        "coverage": (ds["trials"] > 0).mean("task"),
        "trials": ds["trials"].sum("task"),
        "errors": ds["errors"].sum("task"),
        "observed": observed_score(ds),
        "observed_micro": observed_score(ds, weights="micro"),
        "observed_lower": (ds["successes"] / attempted).mean("task"),
        "observed_upper": ((ds["successes"] + ds["errors"]) / attempted).mean("task"),
    }
    if "published" in ds:
        facts["published"] = ds["published"]
    return xr.Dataset(facts).drop_attrs().assign_attrs(_board_facts(ds))


def describe_tasks(ds: xr.Dataset) -> xr.Dataset:
    """Describe a board task by task: who always passes it, who never does, and who does now and then.

    Returns
    -------
    xarray.Dataset
        Over ``task``: ``kind``; ``observed`` (mean over its configs of their success rates); ``configs_scored``, and
        how many of those ``always_pass``, ``never_pass`` or are ``flaky`` on it (runs of both kinds); ``run_once``, how
        many have a single run, which cannot show that they are not flaky; ``trials``. The kinds:

        - ``"always pass"``: every run of every config passed; ``"dead"``: none did;
        - ``"flaky"``: some config has runs of both kinds;
        - ``"divides"``: every config always passes or never does, and not all alike;
        - ``"unscored"``: no run.

    Examples
    --------
    >>> from evalbayes import outcomes
    >>> ds = outcomes.from_counts([[2, 0, 1, 2], [2, 0, 0, 0]], [[2] * 4] * 2, configs=["a", "b"], tasks=list("wxyz"))
    >>> describe_tasks(ds).kind.values.tolist()
    ['always pass', 'dead', 'flaky', 'divides']
    """
    k, n = ds["successes"], ds["trials"]
    scored = n > 0
    always, never = ((scored & (k == count)).sum("config") for count in (n, 0 * n))
    total = scored.sum("config")
    flaky = total - always - never
    kind = xr.where(flaky > 0, "flaky", "divides")
    for where, name in ((always == total, "always pass"), (never == total, "dead"), (total == 0, "unscored")):
        kind = xr.where(where, name, kind)
    facts = {
        "kind": kind.astype(object),
        "observed": (k / n.where(scored)).mean("config"),
        "configs_scored": total,
        "always_pass": always,
        "never_pass": never,
        "flaky": flaky,
        "run_once": (n == 1).sum("config"),
        "trials": n.sum("config"),
    }
    return xr.Dataset(facts).drop_attrs()


def _board_facts(ds: xr.Dataset) -> dict[str, str | int]:
    k, n, scored = ds["successes"].sum("config"), ds["trials"].sum("config"), scored_trials(ds)
    return {
        "source": str(ds.attrs.get("source", "")),
        "score_rule": str(ds.attrs.get("score_rule", "")),
        "error_policy": str(ds.attrs.get("error_policy", "")),
        "run_rule": str(ds.attrs.get("run_rule", "")),
        "n_configs": ds.sizes["config"],
        "n_tasks": ds.sizes["task"],
        "n_cells": ds.sizes["config"] * ds.sizes["task"],
        "n_cells_empty": int((ds["trials"] == 0).sum()),
        "n_cells_single_run": int((ds["trials"] == 1).sum()),
        "n_cells_repeated": int((ds["trials"] > 1).sum()),
        "max_trials": int(ds["trials"].max()),
        "n_trials": int(scored.sum()),
        "n_errors": int(ds["errors"].sum()),
        "n_duplicates_dropped": int(ds.attrs.get("n_duplicates_dropped", 0)),
        "n_tasks_all_pass": int(((n > 0) & (k == n)).sum()),
        "n_tasks_all_fail": int(((n > 0) & (k == 0)).sum()),
        "n_tasks_mixed": int(((k > 0) & (k < n)).sum()),
        "n_tasks_unscored": int((n == 0).sum()),
        "n_attempts_set_aside": int(ds.attrs.get("n_attempts_set_aside", 0)),
        "n_scores_overruled_by_status": int(ds.attrs.get("n_scores_overruled_by_status", 0)),
        **{name: str(ds.attrs.get(name, "")) for name in READING},
        "near_duplicate_names": "; ".join(near_duplicates(ds)),
    }


def near_duplicates(ds: xr.Dataset) -> list[str]:
    """Groups of config and of task names that may be one name, as text; nothing is merged.

    Names are near when they differ by case, surrounding or repeated space, Unicode form, or a prefix before
    ``/`` (``vendor/model-a``, ``model-a``).

    Examples
    --------
    >>> from evalbayes import outcomes
    >>> near_duplicates(outcomes.from_matrix([[1], [0]], configs=["m", "lab/M "], tasks=["t"]))
    ["config 'm', 'lab/M '"]
    """
    groups = [(dim, group) for dim in ("config", "task") for group in near_names(ds[dim].values.tolist())]
    return [f"{dim} {', '.join(map(repr, group))}" for dim, group in groups]


def near_names(names: Sequence[str]) -> list[list[str]]:
    """Groups of two or more names that may be one; see `near_duplicates`."""
    plain = {name: " ".join(unicodedata.normalize("NFKC", name).casefold().split()) for name in names}
    bare = set(plain.values())
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(_without_prefix(plain[name], bare), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _without_prefix(name: str, bare: set[str]) -> str:
    """The shortest ending after a ``/`` that is itself a name on the board, else the name.

    A number is no name that has lost its prefix: task 7 of one suite is not task 7 of another.
    """
    parts = name.split("/")
    endings = ("/".join(parts[i:]) for i in range(len(parts) - 1, 0, -1))
    return next((ending for ending in endings if ending in bare and not ending.isdecimal()), name)


def warn_of_variants(names: Mapping[str, Sequence[str]], source: str) -> None:
    """Warn once along config and once along task of names that may be one; they are kept apart."""
    for dim, found in names.items():
        groups = [", ".join(map(repr, group)) for group in near_names(found)]
        if groups:
            more = f" (and {len(groups) - 3} more such groups)" if len(groups) > 3 else ""
            warnings.warn(
                f"{source}: {dim} names {'; '.join(groups[:3])} may be one{more}; they are kept apart, "
                f"merge them with {dim}_map= if they are",
                UserWarning,
                skip_file_prefixes=(str(Path(__file__).parent),),
            )
