"""The attempts of several files as one board: rows are joined by names, and what must not be mixed is told apart."""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
import xarray as xr

from evalbayes import words
from evalbayes.combination import combine
from evalbayes.errors import OutcomesError
from evalbayes.facts import FILE
from evalbayes.read.attempts import STANDARD, Attempts
from evalbayes.read.identity import (
    INVOCATION,
    UUID,
    VERSION,
    as_text,
    check_variants,
    numbered_invocations,
    several_versions,
    versions_apart,
    without_copies,
)
from evalbayes.read.table import FORMATS, Named
from evalbayes.tabulate import from_rows
from evalbayes.tallies import Columns, Rules, listed

COUNTED = ("successes", "trials")
HEADER_LIMIT = 50_000
"""Characters of header figures that are kept, for netCDF has no room for more in an attribute."""


class Part(NamedTuple):
    """One file: its path for messages, its name, its format, its attempts and the column of each role."""

    path: str
    name: str
    format: str
    attempts: Attempts
    columns: dict[str, str | list[str]]


def part_of(path: str, name: str, format: str, attempts: Attempts, named: Named) -> Part:
    """Return a part with the column of each role: as named, else the reader's, else those of that name.

    Raises
    ------
    OutcomesError
        If a named column is not in the rows.
    """
    rows = attempts.rows
    columns: dict[str, Any] = dict(attempts.columns or {role: role for role in STANDARD if role in rows})
    for role, column in named.items():
        if column is None or format in FORMATS:  # a table has looked for its columns itself
            continue
        if lost := [one for one in listed(column) if one and one not in rows and one != FILE]:
            present = words.shown([*map(str, rows.columns), FILE])
            raise OutcomesError(f"{path}: column {lost[0]!r} is not there; the {format} log has {present}")
        columns.pop(role, None)
        columns |= {role: column} if column else {}
    return Part(path, name, format, attempts, columns)


class Asked(NamedTuple):
    """What was asked for as a whole.

    Attributes
    ----------
    source
        The name of all files together.
    several
        Whether there is more than one file, so that rows carry the name of theirs.
    manifest
        All tasks, if that is known; a row of another is refused.
    configs_named
        Whether the person has said what a config is: then variants under one name are not refused.
    """

    source: str
    several: bool
    manifest: tuple[str, ...] | None = None
    configs_named: bool = False


def board_of(parts: Sequence[Part], rules: Rules, asked: Asked) -> xr.Dataset:
    """Return the board of all parts; ``rules`` as in `outcomes.from_table`.

    Raises
    ------
    OutcomesError
        Naming the file, the row and the remedy.
    """
    parts = [_prepared(part, rules.get("outcome_map") or {}) for part in parts]
    split = several_versions((part.attempts.rows, str(part.columns["task"])) for part in parts)
    groups: dict[tuple[bool, bool], list[Part]] = {}
    for part in parts:
        counted, numbered = any(role in part.columns for role in COUNTED), "run" in part.columns
        groups.setdefault((counted, numbered), []).append(part)
    boards = [_board(group, rules, asked, split) for group in groups.values()]
    return boards[0] if len(boards) == 1 else combine(boards)


def _board(parts: list[Part], rules: Rules, asked: Asked, split: set[str]) -> xr.Dataset:
    columns, frames = _aligned(parts)
    df = _stacked(frames)
    place = _place(parts)
    if asked.several:
        df[FILE] = _files(parts, df)
    df, place, copies = without_copies(df, place, columns)
    df = versions_apart(df, columns, split)
    if not asked.configs_named:
        variants = dict.fromkeys(chain.from_iterable(part.attempts.variants for part in parts))
        check_variants(df, columns, place, list(variants))
    df, columns = numbered_invocations(df, columns)
    said = [f"{len(split)} tasks are there in several versions, which are kept apart as TASK@VERSION"] * bool(split)
    notes = [*_grouped(chain.from_iterable(part.attempts.notes for part in parts)), *said, *_unused(df, columns, rules)]
    names = rules.get("task_map") or {}
    known = _tasks(parts, split) if asked.manifest is None else _manifest(asked.manifest, df, columns, names, place)
    board = from_rows(
        df.drop(columns=[name for name in (UUID, INVOCATION) if name in df]),
        cast(Columns, columns),
        rules,
        place=place,
        source=asked.source,
        reader=_readers(parts),
        tasks=[names.get(task, task) for task in known],
        about={"notes": "\n".join(notes), **_header(parts, rules)},
    )
    return _told(board, parts, copies, rules)


def _files(parts: Sequence[Part], df: pd.DataFrame) -> Any:
    """The file of every row; a table's own column of that name says more, and is kept behind it."""
    which = np.repeat(np.arange(len(parts)), [len(part.attempts.rows) for part in parts])
    names = [part.name for part in parts]
    if FILE not in df:
        return pd.Categorical.from_codes(which, pd.Index(names, dtype=object))
    own = df[FILE].astype(object).fillna("")
    return [f"{names[i]}: {text}" if text else names[i] for i, text in zip(which, own, strict=True)]


def _prepared(part: Part, given: Mapping[Any, Any]) -> Part:
    """A part whose own letters are scores, but for those that the person maps, and whose own identities are marked.

    A table may have a column of any name: only a reader's ``uuid`` and ``invocation`` are identities.
    """
    if part.format in FORMATS:
        rows = part.attempts.rows.rename(columns={UUID: f"{UUID}_", INVOCATION: f"{INVOCATION}_"})
        rows = rows.loc[:, ~rows.columns.duplicated()]  # no role has such a column: those were refused
        return part._replace(attempts=part.attempts._replace(rows=rows))
    rows = part.attempts.rows.rename(columns={"uuid": UUID, "invocation": INVOCATION})
    mapped = {str(word).strip().lower() for word in given}
    letters = {word: score for word, score in part.attempts.letters.items() if word.lower() not in mapped}
    outcome = part.columns.get("outcome")
    if letters and isinstance(outcome, str):
        scores = [letters.get(value, value) if isinstance(value, str) else value for value in rows[outcome]]
        rows = rows.assign(**{outcome: pd.Series(scores, index=rows.index, dtype=object)})
    return part._replace(attempts=part.attempts._replace(rows=rows))


def _grouped(notes: Iterable[str]) -> list[str]:
    """Notes that say the same of several files as one."""
    split = [note.partition(": ") for note in notes]
    return skipped_lines([(name, text) for name, _, text in split]).splitlines()


def _told(board: xr.Dataset, parts: Sequence[Part], copies: int, rules: Rules) -> xr.Dataset:
    said = "; ".join(dict.fromkeys(part.attempts.rule for part in parts if part.attempts.rule))
    attrs = {"n_files": len(parts), "n_duplicates_dropped": int(board.attrs["n_duplicates_dropped"]) + copies}
    mapped = ", ".join(f"{word} is {score}" for word, score in (rules.get("outcome_map") or {}).items())
    rule = "; ".join(text for text in (said, board.attrs["score_rule"], mapped) if text)
    names = [f"{was} is {name}" for _, _, mapping in _renamed(rules) for was, name in mapping.items()]
    tables = [part for part in parts if part.format in FORMATS]
    roles = [f"{role} is {_said(column)}" for role, column in tables[0].columns.items()] if tables else []
    more = {"name_rule": words.shown(names), "column_rule": ", ".join(roles)}
    return board.assign_attrs(attrs | {"score_rule": rule} | {name: text for name, text in more.items() if text})


def _said(column: Any) -> str:
    return " + ".join(listed(column))


def _renamed(rules: Rules) -> list[tuple[str, str, Mapping[str, str]]]:
    """The role, the option and the mapping of new names for configs and for tasks."""
    return [
        ("config", "config_map", rules.get("config_map") or {}),
        ("task", "task_map", rules.get("task_map") or {}),
    ]


def _unused(df: pd.DataFrame, columns: Mapping[str, Any], rules: Rules) -> list[str]:
    """New names for what is not there: most likely a slip."""
    said = []
    for role, kind, mapping in _renamed(rules):
        column = columns[role]
        there = {str(name) for name in df[column].unique()} if isinstance(column, str) else set()
        lost = [str(name) for name in mapping if isinstance(column, str) and str(name) not in there]
        said += [f"{kind}: {words.shown(map(repr, lost), 5)} is the name of no {role}"] * bool(lost)
    return said


def _aligned(parts: Sequence[Part]) -> tuple[dict[str, Any], list[pd.DataFrame]]:
    """The column of each role, the same in every part: renamed to the role where parts differ."""
    if all(part.columns == parts[0].columns for part in parts):
        return parts[0].columns, [part.attempts.rows for part in parts]
    frames = []
    for part in parts:
        if joined := [role for role, column in part.columns.items() if not isinstance(column, str)]:
            raise OutcomesError(
                f"{part.path}: {joined[0]} has several columns here and not in other files; read it apart"
            )
        rename = {str(column): role for role, column in part.columns.items() if column != FILE}
        present = set(part.attempts.rows.columns)
        others = {name: _free(name, present) for name in set(part.columns) - set(rename) if name in present}
        frames.append(part.attempts.rows.rename(columns=others | rename))
    roles = dict.fromkeys(chain.from_iterable(part.columns for part in parts))
    by_file = {role for part in parts for role, column in part.columns.items() if column == FILE}
    return {role: FILE if role in by_file else role for role in roles}, frames


def _free(name: str, present: set[str]) -> str:
    """A name that no column has."""
    return next(free for free in (name + "_" * i for i in itertools.count(1)) if free not in present)


def _stacked(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    if len(frames) == 1:
        return frames[0].copy(deep=False)
    names = list(dict.fromkeys(chain.from_iterable(frame.columns for frame in frames)))
    columns = {name: _column([frame.get(name) for frame in frames], frames) for name in names}
    return pd.DataFrame(columns)


def _column(parts: list[pd.Series | None], frames: Sequence[pd.DataFrame]) -> Any:
    """One column of all frames; categories stay categories, so that a large log stays small."""
    blanks = [
        pd.Series(pd.Categorical([None] * len(frame)) if part is None else part)
        for part, frame in zip(parts, frames, strict=True)
    ]
    if all(isinstance(part.dtype, pd.CategoricalDtype) for part in blanks):
        typed = [part.cat.set_categories(part.cat.categories.astype(object)) for part in blanks]
        return pd.api.types.union_categoricals(typed)
    return np.concatenate([part.to_numpy(object) for part in blanks])


def _place(parts: Sequence[Part]) -> Callable[[int], str]:
    starts = np.cumsum([0, *(len(part.attempts.rows) for part in parts)])

    def place(row: int) -> str:
        which = int(np.searchsorted(starts, row, side="right")) - 1
        return f"{parts[which].path}, {parts[which].attempts.where(row - int(starts[which]))}"

    return place


def _readers(parts: Sequence[Part]) -> str:
    """Formats, with the number of files where there are several."""
    counts: dict[str, int] = {}
    for part in parts:
        name = f"table ({part.format})" if part.format in FORMATS else part.format
        counts[name] = counts.get(name, 0) + 1
    if len(parts) == 1:
        return next(iter(counts))
    return ", ".join(f"{name}: {count} file" + "s" * (count != 1) for name, count in counts.items())


def _tasks(parts: Sequence[Part], split: set[str]) -> list[str]:
    """All tasks that the files know of, by the names that rows have."""
    names: dict[str, None] = {}
    for part in parts:
        rows = part.attempts.rows
        versions = dict.fromkeys(as_text(rows[VERSION].dropna())) if VERSION in rows else {}
        for task in part.attempts.tasks:
            names |= dict.fromkeys([f"{task}@{version}" for version in versions] if task in split else [task])
    return list(names)


def _manifest(
    manifest: tuple[str, ...],
    df: pd.DataFrame,
    columns: Mapping[str, Any],
    names: Mapping[str, str],
    place: Callable[[int], str],
) -> list[str]:
    """All tasks of the manifest; a row of another, under its new name too, is refused."""
    task = as_text(df[columns["task"]])
    known = {*manifest, *(names.get(task, task) for task in manifest)}
    words.refuse(
        ~(task.isin(known) | task.map(lambda name: names.get(name, name)).isin(known)).to_numpy(),
        place,
        lambda row: f"task {task.iloc[row]!r} is not in the manifest; complete it, or leave manifest= out",
    )
    return list(manifest)


def _header(parts: Sequence[Part], rules: Rules) -> dict[str, str]:
    """What files say of a config beside their rows, of configs whose rows are all in one file."""
    names = rules.get("config_map") or {}
    holders: dict[str, int] = {}
    for part in parts:
        column, rows = part.columns["config"], part.attempts.rows
        for config in rows[column].unique() if isinstance(column, str) and column in rows else ():
            holders[names.get(config, config)] = holders.get(names.get(config, config), 0) + 1
    found = {
        names.get(config, config): dict(figures)
        for part in parts
        for config, figures in part.attempts.header.items()
        if holders.get(names.get(config, config)) == 1
    }
    text = json.dumps(found)
    return {"header": text} if found and len(text) < HEADER_LIMIT else {}


def skipped_lines(skipped: Sequence[tuple[str, str]]) -> str:
    """Return what was not read, a line for each reason.

    >>> skipped_lines([("a.md", "no log"), ("b.md", "no log")])
    'a.md, b.md: no log'
    """
    by_reason: dict[str, list[str]] = {}
    for what, why in skipped:
        by_reason.setdefault(why, []).append(what)
    return "\n".join(f"{words.shown(names)}: {why}" for why, names in by_reason.items())
