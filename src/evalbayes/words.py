"""What the cells of a log mean: names, scores, statuses and whole numbers, each read strictly.

Every function takes one column, decides on its distinct values, and names the first offending row through
``place``, which turns a row position into words ("runs.csv, line 7").
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalbayes.errors import OutcomesError
from evalbayes.schema import Int64, name_fault

Place = Callable[[int], str]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

PASS_WORDS = frozenset({"true", "yes", "pass", "passed", "c"})
FAIL_WORDS = frozenset({"false", "no", "fail", "failed", "i"})
OK_WORDS = frozenset({"", "ok", "success", "succeeded", "complete", "completed", "done", "finished", "scored"})
ERROR_WORDS = frozenset(
    {"error", "errored", "infra_error", "infrastructure_error", "timeout", "timed_out", "exception", "crash"}
    | {"crashed", "cancelled", "canceled", "aborted", "unscored"}
)
TOLERANCE = 1e-6
LARGEST = 10**12  # sums of counts below it are exact in double precision, and no log has more
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII)


def factor(column: pd.Series) -> tuple[Int64, list[Any]]:
    """Codes (-1 for a missing value) and distinct values, in order of appearance."""
    try:
        codes, values = pd.factorize(column)
    except TypeError:  # lists and dicts have no hash; their text tells them apart
        codes, values = pd.factorize(column.map(str, na_action="ignore"))
    return codes.astype(np.int64), list(values)


def refuse(wrong: Bools, place: Place, say: Callable[[int], str]) -> None:
    """Raise OutcomesError about the first row that is wrong, if one is."""
    if wrong.any():
        row = int(wrong.argmax())
        raise OutcomesError(f"{place(row)}: {say(row)}")


def names(
    column: pd.Series, role: str, place: Place, mapping: Mapping[str, str] | None = None
) -> tuple[Int64, list[str]]:
    """Codes and distinct names of a config, task or run column, as text exactly as written.

    Parameters
    ----------
    column
        Text or integers; a float is refused, for it is what type guessing makes of ``001``.
    role
        ``"config"``, ``"task"`` or ``"run"``, for the message.
    place
        From a row position to words.
    mapping
        New names for some of the names; two names mapped to one are merged.

    Raises
    ------
    OutcomesError
        If a name is missing, blank, not text or has a NUL, or is written both as text and as a number.

    Examples
    --------
    >>> names(pd.Series(["001", "1", "001"]), "task", str)[1]
    ['001', '1']
    """
    codes, values = factor(column)
    refuse(codes == -1, place, lambda _: f"the {role} is blank; every row needs a name")
    text = [str(value) if _is_whole(value) else value for value in values]
    faults = [name_fault(name) for name in text]
    refuse(np.array([bool(f) for f in faults], bool)[codes], place, lambda i: f"{role} {_at(text, codes, faults, i)}")
    repeated = pd.Series(text, dtype=object).duplicated().to_numpy(bool)
    refuse(repeated[codes], place, lambda i: f"{role} {text[codes[i]]} is written as text and as a number; use text")
    if not mapping:
        return codes, text
    merged, renamed = factor(pd.Series([mapping.get(name, name) for name in text], dtype=object))
    return merged[codes], renamed


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _at(text: list[Any], codes: Int64, faults: list[str], row: int) -> str:
    return f"{text[codes[row]]!r} {faults[codes[row]]}"


def scores(column: pd.Series, place: Place, mapping: Mapping[Any, float | None] | None = None) -> Floats:
    """Scores in [0, 1] of an outcome column, NaN where it is blank.

    Numbers are themselves; true, yes, pass, passed, C are 1; false, no, fail, failed, I are 0, in any case.

    Parameters
    ----------
    column
        Text, numbers or booleans.
    place
        From a row position to words.
    mapping
        Score of further words or numbers; None means blank.

    Raises
    ------
    OutcomesError
        If a value is another word, or is outside [0, 1] (all such values are named).

    Examples
    --------
    >>> scores(pd.Series(["Yes", "0.0", ""]), str).tolist()
    [1.0, 0.0, nan]
    """
    codes, words = factor(column)
    given = {_normal(word): _mapped(word, score) for word, score in (mapping or {}).items()}
    value = np.array([*(_score(word, given) for word in words), math.nan])
    unread = np.array([*(math.isinf(v) for v in value[:-1]), False], bool)
    rows, alien = int(unread[codes].sum()), [word for word, out in zip(words, unread[:-1], strict=True) if out]

    def say(i: int) -> str:
        more = f" (nor are {_short(shown(map(repr, alien), 8))}, in {rows} rows)" if rows > 1 else ""
        return f"outcome {words[codes[i]]!r} is not a pass or a fail{more}; correct it, or map it with outcome_map="

    refuse(unread[codes], place, say)
    outside = (value < 0) | (value > 1)
    found = shown(str(word) for word, out in zip(words, outside[:-1], strict=True) if out)
    refuse(outside[codes], place, lambda _: f"scores outside [0, 1]: {_short(found)}; map them with outcome_map=")
    return np.asarray(value[codes])


def _mapped(word: object, score: float | None) -> float:
    if score is None:
        return math.nan
    if not isinstance(score, int | float | np.number) or not 0 <= score <= 1:
        raise OutcomesError(f"outcome_map: {word!r} maps to {score!r}; give a score in [0, 1], or None for no score")
    return float(score)


def shown(columns: Iterable[str], most: int = 20, between: str = ", ") -> str:
    """Names for a message of one line, the first few of many.

    >>> shown(list("abcdefg"), 5)
    'a, b, c, d, e and 2 more'
    """
    names = [name if name.isprintable() and name.strip() else repr(name) for name in columns]
    return between.join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _normal(word: object) -> str:
    text = str(word).strip().lower()
    return repr(float(text)) if _NUMBER.fullmatch(text) else text


def _score(word: object, given: Mapping[str, float]) -> float:
    """Score of a word; NaN is a blank, inf is not a score."""
    text = _normal(word)
    if text in given:
        return given[text]
    if text in PASS_WORDS:
        return 1.0
    if text in FAIL_WORDS:
        return 0.0
    if text == "":
        return math.nan
    return float(text) if _NUMBER.fullmatch(text) else math.inf


def _short(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[:limit].rsplit(", ", 1)[0] + ", ..."


def passed(score: Floats, threshold: float | None, place: Place) -> Bools:
    """Which scores pass: those of at least ``threshold`` (less 1e-6), by default those that are 1.

    Raises
    ------
    OutcomesError
        If a score is neither 0 nor 1 and no threshold says which scores pass.

    Examples
    --------
    >>> passed(np.array([0.5, 0.9999999]), 1.0, str).tolist()
    [False, True]
    """
    if threshold is None:
        partial = (score > TOLERANCE) & (score < 1 - TOLERANCE)
        found = ", ".join(f"{value:g}" for value in dict.fromkeys(score[partial].tolist()))
        refuse(
            partial,
            place,
            lambda _: (
                f"outcomes between 0 and 1: {_short(found)}; say which pass with threshold= (1 for exact success), "
                "or name the number of runs behind each mean with trials="
            ),
        )
    elif not 0 < threshold <= 1:
        raise OutcomesError(f"threshold={threshold} is not in (0, 1]; every score would pass, or none")
    return np.asarray(score >= (1.0 if threshold is None else threshold) - TOLERANCE)


def errored(column: pd.Series, place: Place) -> Bools:
    """Which rows a status column marks as an attempt without a score.

    Raises
    ------
    OutcomesError
        If a status is not a known word: "failed" may be a failed task or a failed run.

    Examples
    --------
    >>> errored(pd.Series(["ok", "timeout", ""]), str).tolist()
    [False, True, False]
    """
    codes, words = factor(column)
    text = [str(word).strip().lower().replace(" ", "_").replace("-", "_") for word in words]
    unknown = np.array([*(word not in OK_WORDS | ERROR_WORDS for word in text), False], bool)
    refuse(
        unknown[codes],
        place,
        lambda i: f"status {words[codes[i]]!r} is unknown; write ok or error, or leave the column out with status=''",
    )
    return np.asarray(np.array([*(word in ERROR_WORDS for word in text), False], bool)[codes])


def whole(column: pd.Series, role: str, place: Place, blank: int | None = None) -> Int64:
    """Whole numbers of at least 0 and below 10**12; a blank is ``blank``, or refused.

    Raises
    ------
    OutcomesError
        If a value is not such a number.

    Examples
    --------
    >>> whole(pd.Series(["3", "4.0"]), "trials", str).tolist()
    [3, 4]
    """
    codes, words = factor(column)
    value = np.array([*(_whole(word, blank) for word in words), -1 if blank is None else blank], np.int64)
    found = [*map(repr, words), "is blank"]
    refuse(
        (value < 0)[codes], place, lambda i: f"{role} {found[codes[i]]}; give a whole number below 10**12, 0 for none"
    )
    return np.asarray(value[codes])


def _whole(word: object, blank: int | None) -> int:
    text = str(word).strip().lower()
    if text == "" and blank is not None:
        return blank
    if not _NUMBER.fullmatch(text):
        return -1
    number = float(text)
    return int(number) if number.is_integer() and 0 <= number < LARGEST else -1
