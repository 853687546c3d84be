"""Rows that repeat a run: copies of a row, and attempts that were made again after an error or a failure.

A retry is made because the one before it failed or broke, so that attempts are no independent runs: their mean depends
on when one stops. By default the first attempt with a score is the run.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from evalbayes.errors import ArgumentError
from evalbayes.schema import Int64
from evalbayes.tallies import Tally
from evalbayes.words import Bools, Place, factor, refuse

ATTEMPTS = ("first", "best", "runs")
DUPLICATES = ("raise", "first", "last")


def check_choice(name: str, value: str, known: tuple[str, ...]) -> str:
    """Return one of the words that an option takes, or say which those are.

    Raises
    ------
    ArgumentError
        If it is none of them.
    """
    if value not in known:
        raise ArgumentError(f"{name}={value!r} is unknown; use {', '.join(map(repr, known))}")
    return value


def first_row(key: Int64) -> Int64:
    """For each row, the first row with the same key.

    >>> first_row(np.array([7, 3, 7])).tolist()
    [0, 1, 0]
    """
    codes = pd.factorize(key)[0]
    first = np.empty(codes.max() + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return np.asarray(first[codes])


def distinct(
    key: Int64, counts: Tally, split: Int64, policy: str, place: Place, say: Callable[[int, int, bool], str]
) -> Bools:
    """Rows to keep of those with one key: the first of identical copies.

    Parameters
    ----------
    key
        Of each row; rows of one key say the same run.
    counts
        What each row says.
    split
        (column, row): codes of columns that tell apart the parts a log was written in. A copy from another part is a
        run whose number restarted: dropping it would lose data.
    policy
        Of rows that say different things: ``"raise"``, or keep the ``"first"`` or the ``"last"``.
    place, say
        For the refusal: the row's place, and what is wrong with a row given the one before it and whether their
        outcomes differ.

    Raises
    ------
    OutcomesError
        If rows of one key differ and the policy is to raise.
    """
    origin = first_row(key)
    again = origin != np.arange(len(key))
    if policy == "last":
        return np.asarray(first_row(key[::-1])[::-1] == np.arange(len(key))[::-1])
    if policy == "raise" and again.any():
        facts = np.stack([counts.successes, counts.trials, counts.errors])
        conflict, restarted = (facts != facts[:, origin]).any(0), (split != split[:, origin]).any(0)
        refuse(conflict | restarted, place, lambda row: say(row, int(origin[row]), bool(conflict[row])))
    return np.asarray(~again)


def chosen(key: Int64, attempt: pd.Series, counts: Tally, keep: Bools, policy: str) -> Bools:
    """Rows to keep of the attempts at one run: the first scored one, or the best.

    Where no attempt has a score the first stands for the run, as an error.

    Parameters
    ----------
    key
        Run of each row.
    attempt
        What orders the attempts of a run: numbers, or text that sorts as they were made.
    counts, keep
        What each row says, and the rows that are no copies.
    policy
        ``"first"`` or ``"best"``.

    Examples
    --------
    >>> counts = Tally(np.array([0, 1]), np.array([0, 1]), np.array([1, 0]), "", False)
    >>> chosen(np.array([0, 0]), pd.Series([1, 2]), counts, np.array([True, True]), "first").tolist()
    [False, True]
    """
    scored = counts.trials > 0
    worth = scored.astype(np.int64) + (counts.successes if policy == "best" else 0)
    order = np.lexsort((rank(attempt), -worth, key))
    order = order[keep[order]]
    best = np.zeros(len(key), bool)
    best[order[np.flatnonzero(np.diff(key[order], prepend=-1))]] = True
    return best


def rank(attempt: pd.Series) -> Int64:
    """Order of the attempts: as numbers where all that are not blank are, else as text; a blank comes first.

    >>> rank(pd.Series(["10", "2", "", "2.0"])).tolist()
    [2, 1, 0, 1]
    """
    codes, found = factor(attempt)
    text = [str(value).strip() for value in found]
    try:
        values: list[Any] = [float(value) if value else "" for value in text]
    except ValueError:
        values = text
    order = {value: i + 1 for i, value in enumerate(sorted({value for value in values if value != ""}))} | {"": 0}
    return np.array([*(order[value] for value in values), 0], np.int64)[codes]
