"""What each row of a table says: successes, scored runs and errors, from an outcome, a mean, or counts."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pandas as pd

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.schema import Int64
from evalbayes.words import Bools, Floats, Place


class Columns(TypedDict, total=False):
    """The column of each role; a role that is missing or None has none. See `outcomes.from_table`."""

    config: str | list[str]
    task: str
    run: str | list[str] | None
    shard: str | None
    attempt: str | None
    outcome: str | None
    successes: str | None
    trials: str | None
    error_count: str | None
    status: str | None
    reducer: str | None
    published: str | None


class Rules(TypedDict, total=False):
    """How cells are read; see `outcomes.from_table`."""

    threshold: float | None
    outcome_map: Mapping[Any, float | None] | None
    config_map: Mapping[str, str] | None
    task_map: Mapping[str, str] | None
    errors: str
    attempts: str
    duplicates: str
    measures: Sequence[str]


class Tally(NamedTuple):
    """Successes, scored runs and errors of each row; the rule that made them; whether a row is several runs."""

    successes: Int64
    trials: Int64
    errors: Int64
    rule: str
    counted: bool
    n_overruled: int = 0


def listed(columns: str | Sequence[str] | None) -> list[str]:
    """Return the columns of a role, which may be one, several or none.

    >>> listed("model"), listed(["agent", "model"]), listed(None)
    (['model'], ['agent', 'model'], [])
    """
    return [columns] if isinstance(columns, str) else list(columns or ())


def tally(df: pd.DataFrame, columns: Columns, rules: Rules, place: Place, source: str) -> Tally:
    """Tally every row by the kind of table that the columns make.

    Raises
    ------
    OutcomesError
        If the columns make no one kind, or a cell is wrong (names its row).
    """
    outcome, successes, trials = columns.get("outcome"), columns.get("successes"), columns.get("trials")
    status, reducer = columns.get("status"), columns.get("reducer")
    if successes and trials and not (outcome or status or reducer):
        return _counts(df, successes, trials, columns.get("error_count"), place)
    if not outcome or successes or columns.get("error_count") or (reducer and not trials):
        raise OutcomesError(
            f"{source}: columns make no one kind of table; name outcome= (with status=), outcome= and trials= for "
            "means (with reducer=), or successes= and trials= (with error_count=)"
        )
    score = words.scores(df[outcome], place, rules.get("outcome_map"))
    failed = words.errored(df[status], place) if status else np.zeros(len(df), bool)
    overruled = int((failed & ~np.isnan(score)).sum())
    score = np.where(failed, np.nan, score)
    made = _means(df, score, trials, reducer, place) if trials else _runs(score, rules.get("threshold"), place)
    return made._replace(n_overruled=overruled)


def _runs(score: Floats, threshold: float | None, place: Place) -> Tally:
    scored = ~np.isnan(score)
    k = words.passed(score, threshold, place)
    rule = "1 passes, 0 fails" if threshold is None else f"a score of at least {threshold:g} (less 1e-6) passes"
    return Tally(k.astype(np.int64), scored.astype(np.int64), (~scored).astype(np.int64), rule, False)


def _means(df: pd.DataFrame, score: Floats, trials: str, reducer: str | None, place: Place) -> Tally:
    """Scores that reduce several runs: a mean of n gives n runs, a mode or first gives one."""
    n = words.whole(df[trials], trials, place, blank=0)
    if reducer:
        n = np.where(_is_mean(df[reducer], place), n, 1)
    scored = ~np.isnan(score)
    words.refuse(
        scored & (n < 1), place, lambda i: f"mean {score[i]:g} has no number of runs; fill in {trials} or drop the row"
    )
    n, exact = np.where(scored, n, 0), np.where(scored, score * n, 0.0)
    k = np.rint(exact)
    words.refuse(
        np.abs(exact - k) > words.TOLERANCE * np.maximum(n, 1),
        place,
        lambda i: f"score {score[i]:g} times {n[i]} runs is not a whole number; give successes= and trials= instead",
    )
    return Tally(k.astype(np.int64), n, (~scored).astype(np.int64), f"mean of {trials} runs", True)


def _is_mean(column: pd.Series, place: Place) -> Bools:
    codes, found = words.factor(column)
    text = [str(word).strip().lower() for word in [*found, ""]]
    known = np.array([word in ("mean", "mode", "first") for word in text], bool)
    words.refuse(~known[codes], place, lambda i: f"reducer {text[codes[i]]!r} is not mean, mode or first; log all runs")
    return np.asarray(np.array([word == "mean" for word in text], bool)[codes])


def _counts(df: pd.DataFrame, successes: str, trials: str, error_count: str | None, place: Place) -> Tally:
    k, n = words.whole(df[successes], successes, place), words.whole(df[trials], trials, place)
    e = words.whole(df[error_count], error_count, place, blank=0) if error_count else np.zeros(len(df), np.int64)
    words.refuse(k > n, place, lambda i: f"{k[i]} successes out of {n[i]} trials; correct the row")
    return Tally(k, n, e, "successes out of trials", True)
