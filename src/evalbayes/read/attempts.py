"""What a reader returns, what it is told, and the few steps that readers share.

A reader is one module with two functions::

    recognises(content, path) -> bool            does this file look like one of mine?
    attempts(content, path, options) -> Attempts its rows

For a file that is one JSON document ``content`` is the document; for one of JSON lines it is, for ``recognises``, the
first object and, for ``attempts``, an iterator of (line number, object).
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.tallies import Columns

STANDARD = ("config", "task", "run", "attempt", "outcome", "status")
"""Columns that have their role by name in the rows of every reader but `table`."""


class NoAttempts(OutcomesError):
    """A good file that holds no attempt: passed over in a folder, an error where it was named."""


class Options(NamedTuple):
    """What a reader may be told: which of several scores, fields, filters or boards, and the list of all tasks."""

    score: str | None = None
    field: str | None = None
    filter: str | None = None
    part: str | None = None
    manifest: tuple[str, ...] | None = None


class Attempts(NamedTuple):
    """What one file says, one row an attempt.

    Attributes
    ----------
    rows
        Columns ``config``, ``task``, ``outcome`` (1, 0, true, false, a letter, a score in [0, 1]; None where there is
        no score) and, where the format has them, ``run``, ``attempt`` (retries of one run, in order), ``status``
        (``ok`` or ``error``), ``task_version``, and facts of the config, the task or the attempt: ``model``, ``agent``,
        ``date``, ``cluster``, ``cost``, ``tokens``, ... ``invocation`` names an evaluation that numbered its runs anew,
        ``uuid`` an attempt: a second row with it is a copy.
    where
        From a row to words that name it within its file: ``"sample 3, epoch 1"``.
    columns
        The column of each role, where it is not the one of that name.
    rule
        How the score was taken from the log.
    tasks
        Tasks that the file knows of, whether or not it has attempts at them.
    skipped
        Entries that were not read: what, and why.
    header
        What the file says of a config beside its rows, as `board.audit` takes it.
    notes
        Sentences for the reader of the board: what was chosen, what does not add up.
    letters
        Scores of words that only this format has; ``outcome_map=`` comes first.
    variants
        Columns that make another config of one name: where they vary within a cell, the person decides.
    """

    rows: pd.DataFrame
    where: Callable[[int], str]
    columns: Columns | None = None
    rule: str = ""
    tasks: Sequence[str] = ()
    skipped: Sequence[tuple[str, str]] = ()
    header: Mapping[str, Mapping[str, Any]] = {}
    notes: Sequence[str] = ()
    letters: Mapping[str, float | None] = {}
    variants: Sequence[str] = ()


def from_records(records: Sequence[Mapping[str, Any]], places: Sequence[str], path: Path, **about: Any) -> Attempts:
    """Attempts from one mapping a row and its place; a column that no row fills is left out.

    Raises
    ------
    NoAttempts
        If there is no record.

    Examples
    --------
    >>> made = from_records([{"config": "a", "task": "t", "outcome": 1, "cost": None}], ["entry 1"], Path("log.json"))
    >>> list(made.rows), made.where(0)
    (['config', 'task', 'outcome'], 'entry 1')
    """
    if not records:
        raise NoAttempts(f"{path}: there is no attempt in it; a board needs at least one")
    rows = pd.DataFrame(list(records), dtype=object)
    kept = [name for name in rows if name in ("config", "task", "outcome") or rows[name].notna().any()]
    return Attempts(rows[kept], lambda row: places[row], **about)


def need(content: Any, key: str, kind: type | tuple[type, ...], place: str) -> Any:
    """Return a field that must be there and be of a kind.

    Raises
    ------
    OutcomesError
        Naming the place and the field.

    Examples
    --------
    >>> need({"reward": 1.0}, "reward", (int, float), "log.json, entry 1")
    1.0
    """
    if not isinstance(content, Mapping):
        raise OutcomesError(f"{place}: {_kind(content)} where an object with {key!r} is expected; check the file")
    if key not in content:
        raise OutcomesError(f"{place}: there is no {key!r}; {words.shown(map(str, content), 8)} are there")
    value = content[key]
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kinds):  # to Python True is an int
        raise OutcomesError(f"{place}: {key!r} is {_kind(value)}, not {_named(kind)}; check the file")
    return value


def part(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a part that only has facts beside the score: nothing where it is missing or no object.

    >>> part({"usage": {"tokens": 3}}, "usage"), part({"usage": None}, "usage")
    ({'tokens': 3}, {})
    """
    found = content.get(key)
    return found if isinstance(found, Mapping) else {}


def as_json(values: Any) -> str | None:
    """Return settings as text that is the same for the same settings; None where there are none.

    >>> as_json({"b": 1, "a": 2}), as_json({})
    ('{"a": 2, "b": 1}', None)
    """
    return json.dumps(values, sort_keys=True, default=str) if values else None


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def _named(kind: type | tuple[type, ...]) -> str:
    return " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))


def pick(names: Iterable[str], wanted: str | None, option: str, what: str, place: str) -> str:
    """Return the one name there is, or the one wanted of several: none is guessed at.

    Raises
    ------
    OutcomesError
        If there are several and none is wanted, or the wanted one is not there: lists those there are.

    Examples
    --------
    >>> pick(["acc", "acc_norm"], "acc", "score", "metrics", "log.jsonl")
    'acc'
    """
    known = list(dict.fromkeys(names))
    if wanted is None and len(known) == 1:
        return known[0]
    if wanted in known:
        return str(wanted)
    if not known:
        raise OutcomesError(f"{place}: there are no {what}; nothing here has a score")
    if wanted is None:
        raise OutcomesError(f"{place}: {what} {words.shown(known)}: say which counts with {option}=")
    raise OutcomesError(f"{place}: there is no {option} {wanted!r} among its {what} {words.shown(known)}")
