"""Rows to a board: one row for each run, or for each cell with its counts.

The universe of configs and tasks is every name in the rows, fixed before any row is set aside, so that a
task whose every run errored is still a task. Names are text exactly as written.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from evalbayes import words
from evalbayes.coverage import warn_of_variants
from evalbayes.errors import OutcomesError
from evalbayes.facts import facts
from evalbayes.retries import ATTEMPTS, DUPLICATES, check_choice, chosen, distinct, rank
from evalbayes.schema import ABSENT, COUNTS, ERROR, FAIL, PASS, Int8, Int64, assemble
from evalbayes.tallies import Columns, Rules, Tally, listed, tally
from evalbayes.words import Bools, Floats, Place

Axis = tuple[Int64, list[str]]  # a code for each row, and the names that the codes stand for

# Columns that tell apart rows of one run key: work split over shards restarts its run numbers in each.
SHARD_LIKE = ("shard", "source", "source_file", "file", "filename", "log", "batch", "worker", "part")
NUMBERED = "numbered within each cell"
"""Of runs that have no identity beyond their cell, in a board's ``run_rule``."""
# The array of states is kept while it stays within this many times the rows, or within a megabyte.
RUN_ARRAY_PER_ROW, RUN_ARRAY_FLOOR = 8, 2**20


def from_rows(
    df: pd.DataFrame,
    columns: Columns,
    rules: Rules,
    *,
    place: Place,
    source: str,
    reader: str,
    tasks: Sequence[str] = (),
    about: Mapping[str, str | int] | None = None,
) -> xr.Dataset:
    """Reduce rows to a board.

    Parameters
    ----------
    df
        The rows; text, numbers or pandas categories.
    columns, rules
        As the arguments of `outcomes.from_table`.
    place
        From a row position to words, for messages: "runs.csv, line 7".
    source, reader
        Attributes of the board.
    tasks
        Tasks that are on the board whether or not a row names them.
    about
        Further attributes.

    Raises
    ------
    OutcomesError
        In one line that names the row, what is wrong, and the remedy.

    Examples
    --------
    >>> rows = pd.DataFrame({"config": ["a", "a"], "task": ["t", "t"], "outcome": ["1", "0"]})
    >>> columns = {"config": "config", "task": "task", "outcome": "outcome"}
    >>> from_rows(rows, columns, {}, place=str, source="x", reader="x").successes.values.tolist()
    [[1]]
    """
    others = _other_columns(df, columns, source)
    axes = {
        "config": _axis(df, listed(columns["config"]), "config", place, rules.get("config_map")),
        "task": _with(tasks, _axis(df, listed(columns["task"]), "task", place, rules.get("task_map"))),
    }
    counts = tally(df, columns, rules, place, source)
    runs, key = listed(columns.get("run")), _key(columns, rules, counts)
    axes["run"] = _run_axis(df, key, place)
    keep, set_aside = _kept(df, axes, counts, columns, rules, place, others, bool(key))
    if columns.get("attempt") and not key:
        axes["run"] = axes["run"][0], ["1"]
    states = bool(runs or columns.get("attempt")) and not counts.counted
    outcome, named = _states(axes, counts, keep) if states else (None, True)
    coords, variables, ignored = facts(df, others, axes, keep, rules.get("measures") or (), runs=outcome is not None)
    warn_of_variants({dim: axes[dim][1] for dim in ("config", "task")}, source)
    return assemble(
        {name: _sum(axes, getattr(counts, name), keep) for name in COUNTS},
        configs=axes["config"][1],
        tasks=axes["task"][1],
        policy=rules.get("errors", "missing"),
        outcome=outcome,
        runs=axes["run"][1],
        published=_published(df, columns.get("published"), axes["config"], place),
        coords=coords,
        variables=variables,
        attrs={
            "source": source,
            "reader": reader,
            "score_rule": counts.rule,
            "run_rule": _run_rule(key, counts.counted, named),
            "attempt_rule": _attempt_rule(columns, rules),
            "duplicate_rule": f"rows of one run that differ: {rules.get('duplicates', 'raise')}",
            "ignored_columns": words.shown(ignored, most=len(ignored)),
            "n_rows": len(df),
            "n_duplicates_dropped": int((~keep).sum()) - set_aside,
            "n_attempts_set_aside": set_aside,
            "n_scores_overruled_by_status": counts.n_overruled,
            **(about or {}),
        },
    )


def _with(more: Sequence[str], axis: Axis) -> Axis:
    codes, names = axis
    return codes, list(dict.fromkeys([*names, *more]))


def _key(columns: Columns, rules: Rules, counts: Tally) -> list[str]:
    """Columns that tell the runs of a cell apart; attempts are runs only where that was asked for."""
    runs = listed(columns.get("run"))
    retries = listed(columns.get("attempt")) if rules.get("attempts") == "runs" else []
    return [*listed(columns.get("shard")), *runs, *retries] if runs or retries or counts.counted else []


def _attempt_rule(columns: Columns, rules: Rules) -> str:
    said = {"first": "the first scored attempt of a run counts", "best": "the best attempt of a run counts"}
    policy = rules.get("attempts", "first")
    return said.get(policy, "every attempt is a run") if columns.get("attempt") else ""


def _kept(
    df: pd.DataFrame,
    axes: Mapping[str, Axis],
    counts: Tally,
    columns: Columns,
    rules: Rules,
    place: Place,
    others: list[str],
    keyed: bool,
) -> tuple[Bools, int]:
    """Rows that count, and how many further attempts at a run were set aside."""
    check_choice("attempts", rules.get("attempts", "first"), ATTEMPTS)
    check_choice("duplicates", rules.get("duplicates", "raise"), DUPLICATES)
    attempt = df[columns["attempt"]] if columns.get("attempt") and rules.get("attempts") != "runs" else None
    if not (keyed or counts.counted or attempt is not None):
        return np.ones(len(df), bool), 0
    run = _cell(axes) * len(axes["run"][1]) + axes["run"][0]
    row = run if attempt is None else pd.factorize(run * (len(df) + 1) + rank(attempt))[0].astype(np.int64)
    keep = _distinct(df, axes, row, counts, rules.get("duplicates", "raise"), place, others)
    if attempt is None:
        return keep, 0
    if counts.counted:
        raise OutcomesError(f"{place(0)}: counts and attempts do not go together; name attempt='' or give a row a run")
    best = chosen(run, attempt, counts, keep, rules.get("attempts", "first"))
    return best, int(keep.sum() - best.sum())


def _other_columns(df: pd.DataFrame, columns: Columns, source: str) -> list[str]:
    """Columns with no role, after checking that those with one are there, once each, and rows as well."""
    present = [str(name) for name in df.columns]
    used = [name for role in columns.values() for name in listed(role)]  # type: ignore[arg-type]
    for name in used:
        if present.count(name) != 1:
            fault = "is not there" if name not in present else "appears more than once; rename one"
            raise OutcomesError(f"{source}: column {name!r} {fault}; the columns are {words.shown(present)}")
        if used.count(name) > 1:
            raise OutcomesError(f"{source}: column {name!r} is named for two purposes; name it for one")
    if len(df) == 0:
        raise OutcomesError(f"{source}: there are no rows below the header; a board needs at least one")
    # A part of a joined config name is a fact about the config too (config=["agent", "model"]).
    joined = listed(columns["config"]) if len(listed(columns["config"])) > 1 else []
    return [name for name in present if (name not in used or name in joined) and present.count(name) == 1]


def _axis(df: pd.DataFrame, parts: list[str], role: str, place: Place, mapping: Mapping[str, str] | None) -> Axis:
    if len(parts) == 1:
        return words.names(df[parts[0]], role, place, mapping)
    codes, names = _joined(df, parts, " + ", place)
    return words.names(pd.Series(np.array(names, object)[codes]), role, place, mapping) if mapping else (codes, names)


def _joined(df: pd.DataFrame, parts: list[str], separator: str, place: Place) -> Axis:
    """Several columns as one name."""
    codes, names = words.names(df[parts[0]], parts[0], place)
    for part in parts[1:]:
        more, ends = words.names(df[part], part, place)
        codes, pairs = words.factor(pd.Series(codes * len(ends) + more))
        names = [f"{names[pair // len(ends)]}{separator}{ends[pair % len(ends)]}" for pair in pairs]
    return codes, names


def _run_axis(df: pd.DataFrame, key: list[str], place: Place) -> Axis:
    """Runs by their key; names that are all whole numbers are put in numeric order."""
    if not key:
        return np.zeros(len(df), np.int64), [""]
    codes, names = _joined(df, key, "/", place)
    if all(name.isascii() and name.isdigit() for name in names):
        order = np.array(sorted(range(len(names)), key=lambda i: (int(names[i]), names[i])))
        codes, names = np.argsort(order).astype(np.int64)[codes], [names[i] for i in order]
    return codes, names


def _cell(axes: Mapping[str, Axis]) -> Int64:
    return axes["config"][0] * len(axes["task"][1]) + axes["task"][0]


def _distinct(
    df: pd.DataFrame,
    axes: Mapping[str, Axis],
    key: Int64,
    counts: Tally,
    policy: str,
    place: Place,
    others: list[str],
) -> Bools:
    """Rows to keep: the first of identical copies; rows of one key that differ are refused, or as the policy says."""
    shards = [name for name in others if name.strip().lower() in SHARD_LIKE]
    split = np.array([pd.factorize(df[name])[0] for name in shards], np.int64).reshape(len(shards), len(df))

    def say(row: int, origin: int, conflict: bool) -> str:
        who = ", ".join(f"{role} {names[codes[row]]!r}" for role, (codes, names) in axes.items() if names != [""])
        what = "another outcome" if conflict else f"another {shards[0]}"
        hint = f"shard={shards[0]!r}" if shards else "shard=COLUMN"
        remedy = f"remove one, tell the runs apart with {hint}, or keep one with duplicates='first'"
        return f"{who} is on {_in_same_file(place(row), place(origin))} too, with {what}; {remedy}"

    return distinct(key, counts, split, policy, place, say)


def _in_same_file(here: str, there: str) -> str:
    """The place there as one says it here: without the name of the file where it is the same."""
    file = here.partition(", ")[0] + ", "
    return there.removeprefix(file)


def _sum(axes: Mapping[str, Axis], values: Int64, keep: Bools) -> Int64:
    # bincount adds in double precision: exact while a cell stays below 2**53.
    shape = (len(axes["config"][1]), len(axes["task"][1]))
    total = np.bincount(_cell(axes)[keep], values[keep], shape[0] * shape[1])
    return total.astype(np.int64).reshape(shape)


def _states(axes: dict[str, Axis], counts: Tally, keep: Bools) -> tuple[Int8 | None, bool]:
    """States of the runs, if their array is not too sparse, and whether runs keep their names.

    Run ids that are unique to their row (a hash) say nothing across cells and would make the run dim as long
    as the log: such runs are numbered within their cell, and ``axes["run"]`` is replaced.
    """
    numbered = _positions(_cell(axes), axes["run"][0], keep)
    named = len(axes["run"][1]) <= 2 * len(numbered[1])
    if not named:
        axes["run"] = numbered
    shape = tuple(len(names) for _, names in axes.values())
    if np.prod(shape, dtype=float) > max(RUN_ARRAY_PER_ROW * len(keep), RUN_ARRAY_FLOOR):
        return None, named
    state = np.select([counts.errors > 0, counts.successes > 0], [ERROR, PASS], FAIL)
    outcome = np.full(shape, ABSENT, np.int8)
    outcome[tuple(codes[keep] for codes, _ in axes.values())] = state[keep]
    return outcome, named


def _positions(cell: Int64, run: Int64, keep: Bools) -> Axis:
    """Position of each kept row among the runs of its cell, in the order of the run names, from "1"."""
    order = np.lexsort((run, cell, ~keep))
    codes = np.empty(len(cell), np.int64)
    codes[order] = pd.Series(cell[order]).groupby(cell[order]).cumcount().to_numpy()
    return codes, [str(i + 1) for i in range(int(codes[keep].max()) + 1)]


def _run_rule(key: list[str], counted: bool, named: bool) -> str:
    if not (key or counted):
        return f"no run column: every row is its own run, {NUMBERED}, so copies of a row cannot be noticed"
    text = f"a row is identified by {', '.join(['config', 'task', *key])}"
    return text if named else f"{text}; runs are {NUMBERED}, for each name is used in few cells"


def _published(df: pd.DataFrame, column: str | None, configs: Axis, place: Place) -> Floats | None:
    if column is None:
        return None
    codes, found = words.factor(df[column])
    try:
        rate = np.array([*(np.nan if str(value).strip() == "" else float(value) for value in found), np.nan])[codes]
    except (TypeError, ValueError):
        raise OutcomesError(f"{place(0)}: column {column!r} is not numeric; give rates in [0, 1]") from None
    of, names = configs
    published = np.full(len(names), np.nan)
    published[of[::-1]] = rate[::-1]
    same = (rate == published[of]) | (np.isnan(rate) & np.isnan(published[of]))
    words.refuse(~same, place, lambda i: f"config {names[of[i]]!r} has another published rate above; keep one")
    return published
