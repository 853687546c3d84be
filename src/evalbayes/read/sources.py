"""From what a person names (a file, a glob, a folder, several of them) to files, each with the name it is known by."""

import glob
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalbayes.errors import ArgumentError, OutcomesError

Named = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class File(NamedTuple):
    """A file, its name below what was asked for, and whether it was named itself rather than found in a folder."""

    path: Path
    name: str
    asked: bool


def find(source: Named) -> list[File]:
    """Return the files of a source, in order of their names within a folder or glob, none twice.

    Hidden files and folders, whose names begin with a dot, are passed over.

    Raises
    ------
    OutcomesError
        If there is no such file, or a folder or glob has none.
    """
    several = isinstance(source, Sequence) and not isinstance(source, str)
    sources: list[Any] = list(source) if several else [source]  # type: ignore[arg-type]
    for one in sources:
        if not isinstance(one, str | os.PathLike):
            what = type(one).__name__
            remedy = "give paths of logs, or rows of a table to outcomes.from_table"
            raise ArgumentError(f"read: a {what} is no path; {remedy}")
    if not sources:
        raise OutcomesError("read: there is no source; name a file, a glob or a folder")
    found: dict[Path, bool] = {}
    for one in sources:
        for path, asked in _expanded(os.fspath(one)):
            found[path] = asked or found.get(path, False)
    root = _root(list(found))
    return [File(path, os.path.relpath(path, root).replace(os.sep, "/"), asked) for path, asked in found.items()]


def _expanded(source: str) -> list[tuple[Path, bool]]:
    path = Path(source)
    if not source.strip():
        raise OutcomesError("read: the name of the source is empty; name a file, a glob or a folder")
    if path.is_dir():
        return [(file, False) for file in _within(path)]
    if path.exists():
        return [(path, True)]
    matches = _matching(path) if glob.has_magic(source) else []
    if not matches:
        what = "no file matches it" if glob.has_magic(source) else "there is no such file"
        raise OutcomesError(f"{source}: {what}; check the path")
    files = [file for match in matches for file in (_within(match) if match.is_dir() else [match])]
    return [(file, len(files) == 1) for file in files]


def _matching(pattern: Path) -> list[Path]:
    """Files and folders that a glob matches; ** follows no links, which may lead back, and a * no hidden names."""
    at = next(i for i, part in enumerate(pattern.parts) if glob.has_magic(part))
    folder, rest = Path(*pattern.parts[:at]), pattern.parts[at:]
    found = [match for match in folder.glob("/".join(rest)) if match.is_file() or (match.is_dir() and rest[-1] != "**")]
    if any(part.startswith(".") for part in rest):
        return sorted(found)
    return sorted(one for one in found if not any(part.startswith(".") for part in one.relative_to(folder).parts))


def _within(folder: Path) -> list[Path]:
    inside = (path for path in folder.rglob("*") if path.is_file())
    files = sorted(path for path in inside if not any(part.startswith(".") for part in path.relative_to(folder).parts))
    if not files:
        raise OutcomesError(f"{folder}: there is no file in this folder; name one with logs")
    return files


def _root(paths: list[Path]) -> str:
    """Return the folder that all files are in."""
    return os.path.commonpath([path.parent.absolute() for path in paths])


def copies(files: Sequence[File]) -> dict[Path, str]:
    """Return the files that hold the same bytes as an earlier one, with that one's name."""
    by_size: dict[int, list[File]] = {}
    for file in files:
        by_size.setdefault(file.path.stat().st_size, []).append(file)
    same: dict[Path, str] = {}
    for group in by_size.values():
        seen: dict[bytes, str] = {}
        for file in group if len(group) > 1 else ():
            with file.path.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").digest()
            if digest in seen:
                same[file.path] = seen[digest]
            seen.setdefault(digest, file.name)
    return same
