"""Outcomes: build a board from rows, counts or a matrix, combine boards, and score them.

A board is an `xarray.Dataset` with dims ``config`` and ``task`` (names, unique text) and

- ``successes``, ``trials``, ``errors`` (config, task), int64: ``trials`` counts scored runs, ``errors``
  attempts that produced no score; a cell with neither is unobserved. Under ``errors="failure"`` the
  errored attempts are in ``trials`` as well;
- optional ``outcome`` (config, task, run), int8 with CF ``flag_values``: -2 absent, -1 error, 0 fail, 1 pass;
- optional ``published`` (config), the source's own rate in [0, 1];
- further coords along ``config`` (model, agent, date) or ``task`` (cluster, difficulty);
- attrs, text or numbers: ``source, score_rule, error_policy, reader, evalbayes_version, ...``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from evalbayes.combination import combine
from evalbayes.coverage import describe, describe_tasks, near_duplicates, observed_score
from evalbayes.errors import OutcomesError
from evalbayes.schema import Int64, apply_error_policy, assemble, scored_trials, validate
from evalbayes.storage import load, save
from evalbayes.tabulate import from_rows
from evalbayes.tallies import Columns, Rules
from evalbayes.words import LARGEST

__all__ = [
    "apply_error_policy",
    "clusters",
    "combine",
    "describe",
    "describe_tasks",
    "from_counts",
    "from_matrix",
    "from_table",
    "load",
    "near_duplicates",
    "observed_score",
    "save",
    "scored_trials",
    "validate",
]


def from_table(
    df: pd.DataFrame,
    *,
    config: str | Sequence[str] = "config",
    task: str = "task",
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
    errors: str = "missing",
    attempts: str = "first",
    duplicates: str = "raise",
    measures: Sequence[str] = (),
    source: str = "table",
) -> xr.Dataset:
    """Build a board from a table: one row for each run (``outcome``), or for each cell (``successes``, ``trials``).

    Every config and task in the rows is on the board, whether or not it has a score. Rows that repeat a run
    are dropped when they agree and refused when they do not. Without ``run`` no row can be known to repeat
    another, so every row of a cell is its own run: dropping rows that look alike would lose real runs, and
    averaging them would hide the noise between runs. The attribute ``run_rule`` says which rule was used.

    Parameters
    ----------
    df
        The rows; column names as below.
    config, task
        Names, text or integers, kept as written. Several config columns are joined by " + ".
    run, shard
        What tells the runs of a cell apart. ``shard`` is for run numbers that start again in each part.
    attempt
        What orders the attempts at one run: retries after an error or a failure.
    outcome
        1, 0, true, false, yes, no, pass, fail, passed, failed, C, I in any case, or a score in [0, 1]; blank is
        an attempt without a score.
    successes, trials, error_count
        Counts of a cell. ``outcome`` with ``trials`` is a mean of that many runs.
    status
        ok, error, infra_error, timeout, ...: marks attempts without a score, whatever ``outcome`` says there
        (the attribute ``n_scores_overruled_by_status`` counts such rows).
    reducer
        mean, mode or first: what ``outcome`` is of ``trials`` runs. Mode and first count as one run.
    published
        The source's own rate for the config, in [0, 1].
    threshold
        A score of at least this much, less 1e-6, passes; needed when scores are not 0 or 1.
    outcome_map
        Score of further outcome words or numbers; None for no score.
    config_map, task_map
        New names, to merge variants of a name.
    errors
        What an attempt without a score counts as: ``"missing"``, ``"failure"`` or ``"raise"``.
    attempts
        Which attempt at a run counts: the ``"first"`` with a score, the ``"best"``, or all of them as ``"runs"``.
    duplicates
        Rows of one run that say different things: ``"raise"``, or keep the ``"first"`` or the ``"last"``.
    measures
        Columns of numbers to keep as means of cells, beside cost, tokens, time and the like (`evalbayes.facts`).
    source
        Where the rows come from, for the attribute and for messages.

    Returns
    -------
    xarray.Dataset
        A board. Other columns become coords along ``config`` or ``task`` if they are constant there (config
        first, but for facts of tasks such as repository), variables of cells if they are measures, and are listed
        in the attribute ``ignored_columns`` if they are none of these.

    Raises
    ------
    OutcomesError
        In one line that names the row, what is wrong, and the remedy.

    Warns
    -----
    UserWarning
        If two names may be variants of one; they are not merged.

    Examples
    --------
    >>> rows = pd.DataFrame({"model": ["a", "a"], "task": ["t", "u"], "passed": ["yes", ""]})
    >>> board = from_table(rows, config="model", outcome="passed")
    >>> board.trials.values.tolist(), board.errors.values.tolist()
    ([[1, 0]], [[0, 1]])
    """
    columns: Columns = {
        "config": config if isinstance(config, str) else list(config),
        "task": task,
        "run": run if run is None or isinstance(run, str) else list(run),
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
    return from_rows(
        df, columns, rules, place=lambda row: f"{source}, row {row + 1}", source=source, reader="from_table"
    )


def from_counts(
    successes: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    configs: Sequence[str],
    tasks: Sequence[str],
    errors: npt.ArrayLike | None = None,
    error_policy: str = "missing",
    source: str = "counts",
) -> xr.Dataset:
    """Build a board from counts.

    Parameters
    ----------
    successes, trials
        (config, task), whole numbers; ``trials`` counts scored runs, and 0 trials is an unobserved cell.
    configs, tasks
        Names along the two dims.
    errors
        (config, task), attempts without a score; by default none.
    error_policy
        What an errored attempt counts as: ``"missing"``, ``"failure"`` or ``"raise"``.
    source
        Where the counts come from, kept as an attribute and named in errors.

    Raises
    ------
    OutcomesError
        If shapes differ, a count is not a whole number, or successes exceed trials.

    Examples
    --------
    >>> board = from_counts([[2, 0]], [[5, 0]], configs=["a"], tasks=["t", "u"])
    >>> board.trials.values.tolist()
    [[5, 0]]
    """
    shape = (len(configs), len(tasks))
    given = {"successes": successes, "trials": trials, "errors": np.zeros(shape, int) if errors is None else errors}
    counts = {name: _whole(values, name, shape, source) for name, values in given.items()}
    attrs = {"source": source, "reader": "from_counts", "score_rule": "counts as given"}
    return assemble(counts, configs=configs, tasks=tasks, policy=error_policy, attrs=attrs)


def _whole(values: npt.ArrayLike, name: str, shape: tuple[int, int], source: str) -> Int64:
    try:
        array = np.asarray(values)
    except ValueError:
        raise OutcomesError(f"{source}: {name} has rows of different lengths, not shape {shape}") from None
    if array.shape != shape:
        raise OutcomesError(f"{source}: {name} has shape {array.shape}, not (configs, tasks) = {shape}")
    if array.dtype.kind not in "iufb":
        raise OutcomesError(f"{source}: {name} is of type {array.dtype}; give whole numbers below 10**12")
    wrong = ~(np.isfinite(array) & (array == np.floor(array)) & (np.abs(array.astype(float)) < LARGEST))
    if wrong.any():
        c, t = np.argwhere(wrong)[0]
        raise OutcomesError(
            f"{source}: {name} of config {c}, task {t} is {array[c, t]}; give a whole number below 10**12, 0 for none"
        )
    return array.astype(np.int64)


def from_matrix(
    matrix: npt.ArrayLike, *, configs: Sequence[str], tasks: Sequence[str], source: str = "matrix"
) -> xr.Dataset:
    """Build a board of single runs from a matrix of 1 (pass), 0 (fail) and NaN (absent).

    Parameters
    ----------
    matrix
        (config, task).
    configs, tasks
        Names along the two dims.
    source
        Where the matrix comes from.

    Raises
    ------
    OutcomesError
        If the shape is wrong or a value is not 0, 1 or NaN.

    Examples
    --------
    >>> from_matrix([[1, float("nan")]], configs=["a"], tasks=["t", "u"]).trials.values.tolist()
    [[1, 0]]
    """
    try:
        values = np.asarray(matrix, dtype=float)
    except (TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise OutcomesError(f"{source}: the matrix is not numeric ({reason}); give 1, 0 and NaN") from None
    shape = (len(configs), len(tasks))
    if values.shape != shape:
        raise OutcomesError(f"{source}: the matrix has shape {values.shape}, not (configs, tasks) = {shape}")
    present = ~np.isnan(values)
    wrong = present & (values != 0) & (values != 1)
    if wrong.any():
        c, t = np.argwhere(wrong)[0]
        raise OutcomesError(
            f"{source}: config {configs[c]!r}, task {tasks[t]!r} is {values[c, t]:g}; give 1, 0 or NaN, or counts"
        )
    counts = {
        "successes": (values == 1).astype(np.int64),
        "trials": present.astype(np.int64),
        "errors": np.zeros(shape, np.int64),
    }
    attrs = {"source": source, "reader": "from_matrix", "score_rule": "1 passes, 0 fails, NaN is absent"}
    return assemble(counts, configs=configs, tasks=tasks, policy="missing", attrs=attrs)


def clusters(ds: xr.Dataset, coord: str, *, blank: Literal["raise", "own", "one"] = "raise") -> xr.DataArray:
    """Cluster of each task, (task), with a decision about tasks whose cluster is blank.

    Parameters
    ----------
    ds
        A board with ``coord`` along task.
    coord
        Name of the coord: repository, task family, ...
    blank
        ``"raise"``: refuse; ``"own"``: each such task is a cluster of its own; ``"one"``: they are one cluster.

    Raises
    ------
    OutcomesError
        If there is no such coord along task, or a cluster is blank and ``blank="raise"``.

    Examples
    --------
    >>> ds = from_matrix([[1, 0]], configs=["a"], tasks=["t", "u"]).assign_coords(repo=("task", ["x", ""]))
    >>> clusters(ds, "repo", blank="own").values.tolist()
    ['x', '(u)']
    """
    source = ds.attrs.get("source") or "outcomes"
    found = [str(name) for name in ds.coords if ds[name].dims == ("task",) and name != "task"]
    if coord not in found:
        raise OutcomesError(f"{source}: no task coord {coord!r}; those there are: {', '.join(found) or 'none'}")
    names = ds[coord].astype(object).fillna("").astype(str)
    missing = names.str.strip() == ""
    if blank == "raise" and bool(missing.any()):
        first, count = str(ds["task"].values[missing.values][0]), int(missing.sum())
        raise OutcomesError(
            f"{source}: {count} of {ds.sizes['task']} tasks have no {coord} (first {first!r}); "
            "fill it in, or use blank='own' or blank='one'"
        )
    own = "(" + ds["task"].astype(str) + ")" if blank == "own" else "(blank)"
    return names.where(~missing, own).astype(object).rename(coord)
