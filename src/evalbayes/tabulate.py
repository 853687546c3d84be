"""Rows to a board: one row for each run, or for each cell with its counts.

The universe of configs and tasks is every name in the rows, fixed before any row is set aside, so that a
task whose every run errored is still a task. Ids are text exactly as written.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from evalbayes import words
from evalbayes.coverage import near_names
from evalbayes.errors import OutcomesError
from evalbayes.schema import ABSENT, COUNTS, ERROR, FAIL, PASS, Int8, Int64, assemble
from evalbayes.words import Bools, Floats, Place

# Columns that tell apart rows of one run key: work split over shards restarts its run numbers in each.
SHARD_LIKE = ("shard", "source", "source_file", "file", "filename", "log", "batch", "worker", "part")
# The array of states is kept while it stays within this many times the rows, or within a megabyte.
RUN_ARRAY_PER_ROW, RUN_ARRAY_FLOOR = 8, 2**20


class Tally(NamedTuple):
    """What each row says: its successes, scored runs and errors, and the rule that made them."""

    successes: Int64
    trials: Int64
    errors: Int64
    rule: str
    counted: bool
    n_overruled: int = 0


def from_rows(
    df: pd.DataFrame,
    *,
    place: Place,
    config: str | Sequence[str],
    task: str,
    run: str | Sequence[str] | None = None,
    shard: str | None = None,
    outcome: str | None = None,
    successes: str | None = None,
    trials: str | None = None,
    error_count: str | None = None,
    status: str | None = None,
    reducer: str | None = None,
    published: str | None = None,
    threshold: float | None = None,
    outcome_map: Mapping[Any, float | None] | None = None,
    config_map: Mapping[str, str] | None = None,
    task_map: Mapping[str, str] | None = None,
    errors: str = "missing",
    source: str = "table",
    reader: str = "from_table",
) -> xr.Dataset:
    """Reduce rows to a board; `outcomes.from_table` documents the arguments, ``place`` names a row."""
    runs, parts = (_listed(run), _listed(config))
    key = [shard, *runs] if shard else runs
    used = [*parts, task, *key, outcome, successes, trials, error_count, status, reducer, published]
    columns = _require(df, [name for name in used if name is not None], source)
    c, configs = (
        _combined(df, parts, " + ", place) if len(parts) > 1 else words.names(df[parts[0]], "config", place, config_map)
    )
    t, tasks = words.names(df[task], "task", place, task_map)
    if outcome is not None and successes is None:
        score = words.scores(df[outcome], place, outcome_map)
        failed = words.errored(df[status], place) if status else np.zeros(len(df), bool)
        tally = _from_scores(df, score, failed, threshold, trials, reducer, place)
    elif successes is not None and trials is not None and outcome is None and status is None:
        tally = _from_counts(df, successes, trials, error_count, place)
    else:
        raise OutcomesError(f"{source}: name outcome= (and optionally status=), or successes= and trials=")
    keyed = tally.counted or bool(runs)
    r, labels = _run_codes(df, key if keyed else [], place)
    cell = c * len(tasks) + t
    keep = np.ones(len(df), bool)
    if keyed:
        keep = _distinct(df, cell * len(labels) + r, tally, place, (c, configs), (t, tasks), (r, labels), columns)
    shape = (len(configs), len(tasks))
    counts = {name: _sum(cell[keep], getattr(tally, name)[keep], shape) for name in COUNTS}
    states, named = None, True
    if runs and not tally.counted:
        # Run ids unique to their row (a hash) say nothing across cells, and would make the run dim as long as the log.
        position, places = _positions(cell, r, keep)
        named = len(labels) <= 2 * len(places)
        r, labels = (r, labels) if named else (position, places)
        if len(configs) * len(tasks) * len(labels) <= max(RUN_ARRAY_PER_ROW * len(df), RUN_ARRAY_FLOOR):
            states = _states(tally, (c, t, r), keep, (*shape, len(labels)))
    _warn_of_variants({"config": configs, "task": tasks}, source)
    coords, ignored = _coords(df, columns, c, configs, t, tasks)
    return assemble(
        counts,
        configs=configs,
        tasks=tasks,
        policy=errors,
        outcome=states,
        runs=labels,
        published=None if published is None else _published(df[published], c, configs, place),
        coords=coords,
        attrs={
            "source": source,
            "reader": reader,
            "score_rule": tally.rule,
            "run_rule": _run_rule(key, keyed, named),
            "ignored_columns": ", ".join(ignored),
            "n_rows": len(df),
            "n_duplicates_dropped": int((~keep).sum()),
            "n_scores_overruled_by_status": tally.n_overruled,
        },
    )


def _warn_of_variants(names: Mapping[str, list[str]], source: str) -> None:
    for dim, group in [(dim, group) for dim, found in names.items() for group in near_names(found)]:
        warnings.warn(
            f"{source}: {dim} names {', '.join(map(repr, group))} may be one; they are kept apart, "
            f"merge them with {dim}_map= if they are",
            UserWarning,
            stacklevel=4,
        )


def _require(df: pd.DataFrame, used: list[str], source: str) -> list[str]:
    """The columns that are not used, after checking that the used ones are there, once each."""
    present = [str(name) for name in df.columns]
    for name in used:
        if present.count(name) != 1:
            fault = "is not there" if name not in present else "appears more than once"
            raise OutcomesError(f"{source}: column {name!r} {fault}; the columns are {', '.join(present)}")
    twice = {name for name in used if used.count(name) > 1}
    if twice:
        raise OutcomesError(f"{source}: column {twice.pop()!r} is named for two purposes; name it for one")
    if len(df) == 0:
        raise OutcomesError(f"{source}: there are no rows below the header; a board needs at least one")
    return [name for name in present if name not in used and present.count(name) == 1]


def _from_scores(
    df: pd.DataFrame,
    score: Floats,
    failed: Bools,
    threshold: float | None,
    trials: str | None,
    reducer: str | None,
    place: Place,
) -> Tally:
    blank = np.isnan(score) | failed
    overruled = int((failed & ~np.isnan(score)).sum())
    score = np.where(blank, 0.0, score)
    if trials is not None:
        return _from_means(df, score, blank, trials, reducer, place)
    if reducer is not None:
        raise OutcomesError(f"{place(0)}: a reducer column needs trials=, the number of runs each score reduces")
    k = words.passed(score, threshold, place)
    rule = "1 passes, 0 fails" if threshold is None else f"a score of at least {threshold:g} (less 1e-6) passes"
    one = (~blank).astype(np.int64)
    return Tally(k.astype(np.int64) * one, one, 1 - one, rule, False, overruled)


def _from_means(df: pd.DataFrame, score: Floats, blank: Bools, trials: str, reducer: str | None, place: Place) -> Tally:
    """Scores that reduce several runs: a mean of n gives n runs, a mode or first gives one."""
    n = words.whole(df[trials], trials, place, blank=0)
    is_mean = np.ones(len(df), bool) if reducer is None else _is_mean(df[reducer], place)
    n = np.where(is_mean, n, 1)
    words.refuse(
        ~blank & (n < 1),
        place,
        lambda i: f"mean {score[i]:g} has no number of runs; fill in {trials!r} or drop the row",
    )
    k = np.rint(score * n)
    words.refuse(
        ~blank & (np.abs(score * n - k) > words.TOLERANCE * np.maximum(n, 1)),
        place,
        lambda i: f"score {score[i]:g} times {n[i]} runs is not a whole number; give successes= and trials= instead",
    )
    scored = np.where(blank, 0, n)
    return Tally(np.where(blank, 0, k).astype(np.int64), scored, blank.astype(np.int64), f"mean of {trials} runs", True)


def _is_mean(column: pd.Series, place: Place) -> Bools:
    codes, found = words.factor(column)
    text = [str(word).strip().lower() for word in found]
    known = np.array([*(word in ("mean", "mode", "first") for word in text), False], bool)
    words.refuse(
        ~known[codes],
        place,
        lambda i: f"reducer {'' if codes[i] < 0 else found[codes[i]]!r} is not mean, mode or first",
    )
    return np.asarray(np.array([*(word == "mean" for word in text), False], bool)[codes])


def _from_counts(df: pd.DataFrame, successes: str, trials: str, error_count: str | None, place: Place) -> Tally:
    k, n = words.whole(df[successes], successes, place), words.whole(df[trials], trials, place)
    e = words.whole(df[error_count], error_count, place, blank=0) if error_count else np.zeros(len(df), np.int64)
    words.refuse(k > n, place, lambda i: f"{k[i]} successes out of {n[i]} trials; correct the row")
    return Tally(k, n, e, "successes out of trials", True)


def _listed(names: str | Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _combined(df: pd.DataFrame, columns: list[str], separator: str, place: Place) -> tuple[Int64, list[str]]:
    """Codes and labels of several columns together."""
    code, labels = words.names(df[columns[0]], columns[0], place)
    for name in columns[1:]:
        more, parts = words.names(df[name], name, place)
        code, pairs = words.factor(pd.Series(code * len(parts) + more))
        labels = [f"{labels[pair // len(parts)]}{separator}{parts[pair % len(parts)]}" for pair in pairs]
    return code, labels


def _run_codes(df: pd.DataFrame, key: list[str], place: Place) -> tuple[Int64, list[str]]:
    """Codes and labels of the run key; labels that are all whole numbers are put in numeric order."""
    if not key:
        return np.zeros(len(df), np.int64), [""]
    code, labels = _combined(df, key, "/", place)
    if all(label.isascii() and label.isdigit() for label in labels):
        order = np.array(sorted(range(len(labels)), key=lambda i: (int(labels[i]), labels[i])))
        code, labels = np.argsort(order).astype(np.int64)[code], [labels[i] for i in order]
    return code, labels


def _distinct(
    df: pd.DataFrame,
    key: Int64,
    tally: Tally,
    place: Place,
    configs: tuple[Int64, list[str]],
    tasks: tuple[Int64, list[str]],
    runs: tuple[Int64, list[str]],
    columns: list[str],
) -> Bools:
    """Rows to keep: the first of identical copies; rows of one key that differ are refused.

    A copy that says the same but comes from another shard is a run whose number restarted: dropping it would
    lose data, so it is refused as well.
    """
    codes, _ = pd.factorize(key)
    first = np.empty(codes.max() + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    origin = first[codes]
    again = origin != np.arange(len(codes))
    if not again.any():
        return np.ones(len(codes), bool)
    facts = np.stack([tally.successes, tally.trials, tally.errors])
    shards = [name for name in columns if name.strip().lower() in SHARD_LIKE]
    split = np.array([pd.factorize(df[name])[0] for name in shards]).reshape(len(shards), len(codes))
    conflict, restarted = ((facts != facts[:, origin]).any(0), (split != split[:, origin]).any(0))

    def say(row: int) -> str:
        named = zip(("config", "task", "run"), (configs, tasks, runs), strict=True)
        who = ", ".join(f"{role} {names[code[row]]!r}" for role, (code, names) in named if names != [""])
        line = place(int(origin[row])).rsplit(", ", 1)[-1]
        what = "another outcome" if conflict[row] else f"another {shards[0]}"
        hint = f"shard={shards[0]!r}" if shards else "shard="
        return f"{who} is on {line} too, with {what}; remove one, or tell the runs apart with {hint}"

    words.refuse(conflict | restarted, place, say)
    return np.asarray(~again)


def _sum(cell: Int64, values: Int64, shape: tuple[int, int]) -> Int64:
    # bincount adds in double precision: exact while a cell stays below 2**53.
    return np.bincount(cell, values, shape[0] * shape[1]).astype(np.int64).reshape(shape)


def _states(tally: Tally, codes: tuple[Int64, Int64, Int64], keep: Bools, shape: tuple[int, int, int]) -> Int8:
    state = np.select([tally.errors > 0, tally.successes > 0], [ERROR, PASS], FAIL)
    outcome = np.full(shape, ABSENT, np.int8)
    outcome[tuple(code[keep] for code in codes)] = state[keep]
    return outcome


def _positions(cell: Int64, run: Int64, keep: Bools) -> tuple[Int64, list[str]]:
    """Position of each kept row among the runs of its cell, in the order of the run names, from "1"."""
    order = np.lexsort((run, cell, ~keep))
    position = pd.Series(cell[order]).groupby(cell[order]).cumcount().to_numpy()
    code = np.empty(len(cell), np.int64)
    code[order] = position
    return code, [str(i + 1) for i in range(int(code[keep].max()) + 1)]


def _run_rule(key: list[str], keyed: bool, named: bool) -> str:
    if not keyed:
        return "no run column: every row is its own run, so copies of a row cannot be noticed"
    text = f"a row is identified by config, task{''.join(', ' + name for name in key)}"
    return text if named else text + "; runs are numbered within each cell, for each name is used in few cells"


def _published(column: pd.Series, c: Int64, configs: list[str], place: Place) -> Floats:
    codes, found = words.factor(column)
    try:
        rate = np.array([*(np.nan if str(v).strip() == "" else float(v) for v in found), np.nan])[codes]
    except ValueError:
        raise OutcomesError(f"{place(0)}: column {column.name!r} holds a published rate that is not a number") from None
    published = np.full(len(configs), np.nan)
    published[c[::-1]] = rate[::-1]
    differs = ~((rate == published[c]) | (np.isnan(rate) & np.isnan(published[c])))
    words.refuse(
        differs, place, lambda i: f"config {configs[c[i]]!r} has two published rates; keep one for each config"
    )
    return published


def _coords(
    df: pd.DataFrame, columns: list[str], c: Int64, configs: list[str], t: Int64, tasks: list[str]
) -> tuple[dict[str, tuple[str, npt.NDArray[Any]]], list[str]]:
    """Columns that are constant for each config, else for each task, as coords; and the others."""
    coords: dict[str, tuple[str, npt.NDArray[Any]]] = {}
    ignored = []
    for name in columns:
        codes, found = words.factor(df[name])
        for dim, of, size in (("config", c, len(configs)), ("task", t, len(tasks))):
            first = np.empty(size, np.int64)
            first[of[::-1]] = codes[::-1]
            if _is_coord_name(name) and (first[of] == codes).all():
                coords[name] = (dim, _values(found, first))
                break
        else:
            ignored.append(name)
    return coords, ignored


def _is_coord_name(name: str) -> bool:
    reserved = {*COUNTS, "config", "task", "run", "outcome", "published"}
    return bool(name.strip()) and name not in reserved and "/" not in name and "\0" not in name


def _values(found: list[Any], codes: Int64) -> npt.NDArray[Any]:
    """Numbers stay numbers with NaN for a blank; everything else is text with '' for a blank."""
    if found and all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in found):
        return np.array(found)[codes] if (codes >= 0).all() else np.array([*found, np.nan], float)[codes]
    return np.array([*map(str, found), ""], dtype=object)[codes]
