"""The list of all tasks of a benchmark, for logs that name only some of them."""

import json
from collections import Counter
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from evalbayes import words
from evalbayes.errors import ArgumentError, OutcomesError
from evalbayes.read import rows

KEYS = ("task", "task_id", "instance_id", "id", "sample_id", "problem_id")


def read_manifest(source: str | PathLike[str] | Sequence[str]) -> tuple[str, ...]:
    """Return the names of a manifest: a sequence of them, or a file.

    Parameters
    ----------
    source
        Names; or a file with one name a line, a JSON list of names or of objects with one of `KEYS`, JSON lines of such
        objects, or a csv or tsv with such a column.

    Raises
    ------
    OutcomesError
        If the file is not readable, or a name is blank or listed twice.

    Examples
    --------
    >>> read_manifest(["t1", "t2"])
    ('t1', 't2')
    """
    if not isinstance(source, str | PathLike | Sequence):
        raise ArgumentError(f"manifest={source!r}: give a file, or the names of all tasks")
    if not isinstance(source, str | PathLike):
        return _checked([str(name) for name in source], "manifest")
    path = Path(fspath(source))
    if not path.is_file():
        raise OutcomesError(f"{path}: there is no such manifest; give a file with one task a line, or their names")
    return _checked(_names(path), str(path))


def _names(path: Path) -> list[str]:
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        frame = rows.delimited(path, "\t" if suffix == ".tsv" else ",")
        return [str(name) for name in frame[_key(list(map(str, frame.columns)), str(path))]]
    start = rows.first_line(path).lstrip()
    if start.startswith("["):
        return [_name(entry, f"{path}, entry {i}") for i, entry in enumerate(rows.document(path), 1)]
    if start.startswith("{"):
        return [_name(entry, f"{path}, line {line}") for line, entry in rows.objects(path)]
    with rows.open_text(path) as file:
        return [line.strip() for line in file if line.strip()]


def _name(entry: Any, place: str) -> str:
    if isinstance(entry, dict):
        entry = entry[_key(list(entry), place)]
    if not isinstance(entry, str | int):
        raise OutcomesError(f"{place}: {json.dumps(entry)[:40]} is not the name of a task")
    return str(entry)


def _key(present: list[str], place: str) -> str:
    for key in KEYS:
        if key in present:
            return key
    raise OutcomesError(f"{place}: none of {', '.join(KEYS)} among {words.shown(present)}; name the tasks by one")


def _checked(names: list[str], place: str) -> tuple[str, ...]:
    if not names:
        raise OutcomesError(f"{place}: the manifest is empty; it needs the name of every task")
    if blank := [i for i, name in enumerate(names, 1) if not name.strip()]:
        raise OutcomesError(f"{place}: entry {blank[0]} of the manifest is blank")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise OutcomesError(f"{place}: {words.shown(map(repr, twice), 3)} is in the manifest twice; list a task once")
    return tuple(names)
