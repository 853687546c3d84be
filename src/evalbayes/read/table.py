"""Tables: one row for each run, or for each (config, task) with counts; csv, tsv, jsonl or parquet.

A column that is not named is looked for by name (`CANDIDATES`, whatever the case); a role's own name wins,
and two other candidates for one role are an error that asks.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import pandas as pd

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read import rows
from evalbayes.read.attempts import Attempts, NoAttempts
from evalbayes.tallies import Columns

CANDIDATES: dict[str, tuple[str, ...]] = {
    "config": ("config", "configuration", "model", "agent", "system", "model_name", "agent_name", "model_id"),
    "task": ("task", "task_id", "instance_id", "sample_id", "problem_id", "question_id", "doc_id", "task_name"),
    "run": ("run", "trial", "epoch", "seed", "repeat", "replicate"),
    "attempt": ("attempt", "attempt_number", "retry"),
    "outcome": (
        *("outcome", "resolved", "passed", "correct", "success", "score", "is_correct", "is_resolved", "reward"),
        "score_binarized",
    ),
    "successes": ("successes", "n_successes", "n_correct", "n_passed"),
    "trials": ("trials", "n_trials", "n", "epochs"),
    "error_count": ("errors", "n_errors"),
    "status": ("status",),
    "reducer": ("reducer",),
    "published": ("published",),
}
FORMATS = ("csv", "tsv", "jsonl", "json", "parquet")
Found = dict[str, str | list[str]]
Named = Mapping[str, str | Sequence[str] | None]


def attempts(path: Path, format: str, named: Named) -> Attempts:
    """Return the rows of a table, and the column of each role.

    Parameters
    ----------
    path
        The file, gzipped or not.
    format
        One of `FORMATS`.
    named
        Column of each role. None: look for it. "": there is none.

    Raises
    ------
    OutcomesError
        If the file is not readable, or a column is not found.
    """
    frame, where = _rows(path, format)
    return Attempts(frame, where, columns=find_columns([str(name) for name in frame.columns], named, str(path)))


def is_header(line: str) -> bool:
    """Whether a line is the header of a table of outcomes: some column has the name of a role.

    >>> is_header("model,task_id,passed"), is_header("Copyright (c) 2026")
    (True, False)
    """
    names = [name.strip().strip('"').lower() for name in re.split(r"[,;\t|]", line)]
    return any(name in CANDIDATES[role] for role in ("config", "task", "outcome", "successes") for name in names)


def _rows(path: Path, format: str) -> tuple[pd.DataFrame, Callable[[int], str]]:
    """The rows of a file, and what to call one of them."""
    if format == "parquet":
        return rows.parquet(path), lambda row: f"row {row + 1}"
    if format == "jsonl":
        return rows.jsonl(path), lambda row: f"line {rows.jsonl_line(path, row)}"
    if format == "json":
        return rows.json_rows(path), lambda row: f"entry {row + 1}"
    delimiter = "\t" if format == "tsv" else _delimiter(path)
    return rows.delimited(path, delimiter), lambda row: f"line {rows.delimited_line(path, delimiter, row)}"


def _delimiter(path: Path) -> str:
    """The comma, unless the header has none and one of the other usual delimiters."""
    header = rows.first_line(path)
    others = [mark for mark in ";\t|" if mark in header]
    return others[0] if "," not in header and len(others) == 1 else ","


def find_columns(present: list[str], named: Named, source: str) -> Columns:
    """Column of each role: as named, else looked for; roles without a column are left out.

    Examples
    --------
    >>> find_columns(["model", "task_id", "resolved"], {}, "runs.csv")
    {'config': 'model', 'task': 'task_id', 'outcome': 'resolved'}
    """
    found: Found = {
        role: column if isinstance(column, str) else list(column) for role, column in named.items() if column
    }
    taken = {name for column in found.values() for name in ([column] if isinstance(column, str) else column)}
    free = [name for name in present if name not in taken]
    for role in CANDIDATES:
        if named.get(role) is None and (column := _find(role, free, source)):
            found[role] = column
    if not found.keys() & {"config", "task", "outcome", "successes"}:
        raise NoAttempts(f"{source}: no config column; nor a task or an outcome, so no outcomes; {_listed(present)}")
    for role in ("config", "task"):
        if role not in found:
            raise OutcomesError(f"{source}: no {role} column; name it with {role}=; {_listed(present)}")
    return _one_kind(found, {role for role in found if named.get(role)}, present, source)


def _one_kind(found: Found, named: set[str], present: list[str], source: str) -> Columns:
    """Keep the columns of one kind of table: outcomes of runs, means of runs, or counts."""
    counts = {"successes", "trials"} <= found.keys()
    if counts and "outcome" in found and not named & {"outcome", "successes"}:
        raise OutcomesError(
            f"{source}: columns {found['outcome']}, {found['successes']} and {found['trials']} say the score twice; "
            "name outcome=, or successes= and trials="
        )
    if counts and "outcome" not in named:
        drop = {"outcome", "status", "reducer", "attempt"}
    elif "outcome" in found:
        drop = {"successes", "error_count"}
        drop |= {"attempt"} if "reducer" in found or "trials" in named else {"trials"}
    else:
        raise OutcomesError(
            f"{source}: no outcome column; name outcome=, or successes= and trials=; {_listed(present)}"
        )
    return cast(Columns, {role: column for role, column in found.items() if role not in drop - named})


def _listed(present: list[str]) -> str:
    return f"the columns are {words.shown(present)}"


def _find(role: str, present: list[str], source: str) -> str:
    plain = {name: name.strip().lower().replace(" ", "_").replace("-", "_") for name in present}
    exact = [name for name in present if plain[name] == CANDIDATES[role][0]]
    matches = exact or [name for name in present if plain[name] in CANDIDATES[role]]
    if len(matches) > 1:
        raise OutcomesError(f"{source}: columns {words.shown(matches)} could each be the {role}; name one with {role}=")
    return matches[0] if matches else ""
