"""Read evaluation logs into a board: `read` finds the files and their formats, and one module a format reads them."""

import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import xarray as xr

from evalbayes.combination import combine
from evalbayes.errors import ArgumentError, OutcomesError
from evalbayes.facts import FILE
from evalbayes.read import formats, table
from evalbayes.read.attempts import NoAttempts, Options
from evalbayes.read.joined import Asked, Part, board_of, part_of, skipped_lines
from evalbayes.read.manifest import read_manifest
from evalbayes.read.sources import File, copies, find
from evalbayes.schema import apply_error_policy, check_policy
from evalbayes.storage import load
from evalbayes.tallies import Rules, listed

__all__ = ["read"]

SECONDS_BETWEEN = 1.0
"""Least time between two words of progress."""
Source = str | PathLike[str] | Sequence[str | PathLike[str]]


def read(
    source: Source,
    *,
    format: str | None = None,
    errors: str = "missing",
    score: str | None = None,
    field: str | None = None,
    filter: str | None = None,
    part: str | None = None,
    manifest: str | PathLike[str] | Sequence[str] | None = None,
    attempts: str = "first",
    duplicates: str = "raise",
    measures: Sequence[str] = (),
    config: str | Sequence[str] | None = None,
    task: str | None = None,
    run: str | Sequence[str] | None = None,
    shard: str | None = None,
    attempt: str | None = None,
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
    progress: Callable[[str], None] | None = None,
) -> xr.Dataset:
    r"""Read logs, or boards saved by `outcomes.save`, into one board.

    Parameters
    ----------
    source
        A file, a glob (``**`` for any depth), a folder, or several of them. Of a folder every file of a known format is
        read; what was passed over, and why, is in the attribute ``skipped``. Files are joined by the names of configs,
        tasks and runs. Rows of several files carry ``source_file``: a coord, or the number of the file along ``file``.
    format
        ``"csv"``, ``"tsv"``, ``"jsonl"``, ``"json"``, ``"parquet"``, ``"board"``, ``"inspect"``, or a module of
        `evalbayes.read`; by default found out from the content. The attribute ``reader`` says which it was.
    errors
        What an attempt without a score counts as: ``"missing"``, ``"failure"`` or ``"raise"``. A saved board
        keeps its own policy under the default.
    score
        Which score counts where a log has several: a scorer (Inspect), a metric (lm-evaluation-harness, HELM), a test
        suite (EvalPlus: base or plus).
    field
        The field of a score that is a dictionary.
    filter
        The filter of lm-evaluation-harness.
    part
        The board of a file that holds several: the name of a leaderboard.
    manifest
        All tasks of the benchmark: their names, or a file that lists them. Needed by formats that name only some.
    attempts
        Of the attempts at one run (retries, in the order of the column ``attempt``): the ``"first"`` with a score, the
        ``"best"``, or each as one of several ``"runs"``.
    duplicates
        Rows of one run that say different things: ``"raise"``, or keep the ``"first"`` or the ``"last"``. Copies that
        agree are dropped and counted.
    measures
        Further columns of numbers to keep as means of cells, beside cost, tokens, time and the like.
    config, task, run, shard, attempt, outcome, successes, trials, error_count, status, reducer, published
        The column of each role. None: the format's own, or looked for by the usual names. ``""``: there is none.
        Several config columns are joined: ``config=["model", "task_args"]``.
    threshold, outcome_map, config_map, task_map
        As in `outcomes.from_table`, which says what each column may hold.
    progress
        Called with a short text now and then, when there are many files.

    Returns
    -------
    xarray.Dataset
        A board; see `evalbayes.outcomes`.

    Raises
    ------
    OutcomesError
        In one line that names the file, the place in it and the remedy.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Path(folder) / "runs.csv"
    ...     _ = log.write_text("model,task_id,passed\na,001,yes\na,1,no\n")
    ...     board = read(log)
    >>> board.task.values.tolist(), board.successes.values.tolist()
    (['001', '1'], [[1, 0]])
    """
    check_policy(errors)
    measures = [measures] if isinstance(measures, str) else list(measures)
    if format is not None and format not in formats.NAMES:
        raise OutcomesError(f"{_name(source)}: format {format!r} is unknown; use one of {', '.join(formats.NAMES)}")
    columns: table.Named = {
        "config": config,
        "task": task,
        "run": run,
        "shard": shard,
        "attempt": attempt,
        "outcome": outcome,
        "successes": successes,
        "trials": trials,
        "error_count": error_count,
        "status": status,
        "reducer": reducer,
        "published": published,
    }
    rules: Rules = {
        "threshold": threshold,
        "outcome_map": outcome_map,
        "config_map": config_map,
        "task_map": task_map,
        "errors": errors,
        "attempts": attempts,
        "duplicates": duplicates,
        "measures": measures,
    }
    _check_kinds(columns, rules)
    tasks = None if manifest is None else read_manifest(manifest)
    options = Options(score=score, field=field, filter=filter, part=part, manifest=tasks)
    files = find(source)
    parts, boards, skipped = _opened(files, format, options, columns, progress or (lambda _: None))
    formats.check_taken(options, [part.format for part in parts] + ["board"] * bool(boards))
    if not parts:
        _refuse_rules(rules, columns)
    if parts:
        boards.append(board_of(parts, rules, Asked(_name(source), len(files) > 1, tasks, config is not None)))
    board = _one(boards, errors)
    return _with_skipped(board, skipped)


def _check_kinds(columns: table.Named, rules: Rules) -> None:
    """Refuse arguments of another kind than they are documented with."""
    for role, column in columns.items():
        if not isinstance(column, str | list | tuple | None):
            raise ArgumentError(f"{role}={column!r}: give the name of a column")
    for name in ("outcome_map", "config_map", "task_map"):
        value: Any = rules.get(name)
        if not isinstance(value, Mapping | None):
            raise ArgumentError(f"{name}={value!r}: give a mapping, such as {{'old': 'new'}}")
        if name != "outcome_map" and not all(isinstance(new, str) for new in (value or {}).values()):
            raise ArgumentError(f"{name}={value!r}: new names are text")
    if not isinstance(rules.get("threshold"), int | float | None):
        raise ArgumentError(f"threshold={rules.get('threshold')!r}: give a number in (0, 1]")


def _refuse_rules(rules: Rules, columns: table.Named) -> None:
    """Refuse rules for saved boards alone: they were read under their own."""
    usual: dict[str, Any] = {"attempts": "first", "duplicates": "raise", "measures": [], "errors": rules.get("errors")}
    given = [name for name, value in rules.items() if value is not None and value != usual.get(name)]
    if given := [*given, *(role for role, column in columns.items() if column is not None)]:
        raise OutcomesError(f"{given[0]}= has no effect on a saved board, which was read already; read its logs again")


def _opened(
    files: Sequence[File],
    format: str | None,
    options: Options,
    columns: table.Named,
    say: Callable[[str], None],
) -> tuple[list[Part], list[xr.Dataset], list[tuple[str, str]]]:
    """Every file's attempts, or board; and what was passed over, with the reason."""
    parts: list[Part] = []
    boards: list[xr.Dataset] = []
    skipped: list[tuple[str, str]] = []
    same, said = copies(files), time.monotonic()
    for i, (path, name, asked) in enumerate(files, 1):
        if time.monotonic() > said + SECONDS_BETWEEN:
            said = time.monotonic()
            say(f"reading file {i:,} of {len(files):,}: {name}")
        try:
            read = _one_file(path, name, format, options, columns, asked=asked)
        except NoAttempts as error:
            if asked:
                raise
            skipped.append((name, str(error).removeprefix(str(path)).lstrip(":, ")))
            continue
        if path in same and _is_copy(read, same[path], parts, columns):
            skipped.append((name, f"a copy of {same[path]}"))
        elif isinstance(read, Part):
            parts.append(read)
            skipped += [(f"{name}: {what}" if len(files) > 1 else what, why) for what, why in read.attempts.skipped]
        else:
            boards.append(read)
    if not (parts or boards):
        raise OutcomesError(f"{files[0].path.parent}: no log that can be read here; {skipped_lines(skipped[:5])}")
    return parts, boards, _without_companions(skipped, files, parts)


def _one_file(
    path: Path, name: str, format: str | None, options: Options, columns: table.Named, *, asked: bool
) -> Part | xr.Dataset:
    """The attempts of a file, or the board that it is; NoAttempts if it is of another format than the one named."""
    found, content = (format, None) if format and asked else formats.sniff(path)
    if found != (format or found):
        raise NoAttempts(f"{path}: a log of format {found}, not {format}")
    if found == "board":
        return load(path)
    return part_of(str(path), name, found, formats.open_attempts(path, found, content, options, columns), columns)


def _is_copy(read: Part | xr.Dataset, earlier: str, parts: Sequence[Part], columns: table.Named) -> bool:
    """Whether a file of the same bytes as an earlier one says the same.

    It need not: the config may be in the name of the file or its folder, and the file may be what tells runs apart.
    """
    if not isinstance(read, Part):
        return True
    if any(FILE in listed(column) for column in columns.values()):
        return False
    return any(read.attempts.rows.equals(part.attempts.rows) for part in parts if part.name == earlier)


def _without_companions(
    skipped: Sequence[tuple[str, str]], files: Sequence[File], parts: Sequence[Part]
) -> list[tuple[str, str]]:
    """What was passed over, but for files that belong to a log in their folder and were read with it."""
    folders, paths = {Path(part.path).parent for part in parts}, {file.name: file.path for file in files}

    def beside(name: str) -> bool:
        path = paths.get(name)
        return path is not None and path.parent in folders and any(map(path.match, formats.COMPANIONS))

    return [(name, why) for name, why in skipped if not beside(name)]


def _name(source: Source) -> str:
    """What the board is called by: the last part of the path, or of each."""
    sources = [source] if isinstance(source, str | PathLike) else list(source)
    return ", ".join(
        Path(fspath(one)).resolve().name if fspath(one) in (".", "..") else Path(fspath(one)).name for one in sources
    )


def _with_skipped(board: xr.Dataset, skipped: Sequence[tuple[str, str]]) -> xr.Dataset:
    """Keep what was passed over, after what a saved board already says of it."""
    lines = [line for line in (board.attrs.get("skipped", ""), skipped_lines(skipped)) if line]
    return board.assign_attrs(skipped="\n".join(lines)) if lines else board


def _one(boards: Sequence[xr.Dataset], errors: str) -> xr.Dataset:
    if errors != "missing":
        boards = [apply_error_policy(board, errors) for board in boards]
    return boards[0] if len(boards) == 1 else combine(boards)
