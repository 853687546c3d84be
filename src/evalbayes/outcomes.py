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

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.errors import OutcomesError
from evalbayes.schema import Int64, apply_error_policy, assemble, scored_trials, validate

__all__ = ["apply_error_policy", "from_counts", "from_matrix", "observed_score", "scored_trials", "validate"]


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
    array = np.asarray(values)
    if array.shape != shape:
        raise OutcomesError(f"{source}: {name} has shape {array.shape}, not (configs, tasks) = {shape}")
    if array.dtype.kind in "iu" and array.size and array.max() < 2**53:
        return array.astype(np.int64)
    if array.dtype.kind not in "iufb":
        raise OutcomesError(f"{source}: {name} is of type {array.dtype}; give whole numbers below 2**53")
    wrong = ~(np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2**53))
    if wrong.any():
        c, t = np.argwhere(wrong)[0]
        raise OutcomesError(f"{source}: {name} of config {c}, task {t} is {array[c, t]}; give a whole number, 0 for none")
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
        raise OutcomesError(f"{source}: the matrix is not numeric ({error}); give 1, 0 and NaN") from None
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


def observed_score(ds: xr.Dataset, *, weights: Literal["task", "micro"] = "task") -> xr.DataArray:
    """Score of each config as observed: an exact fact about these runs, (config).

    ``weights="task"``: the mean over tasks with a trial of successes/trials, so that every task counts
    the same. ``weights="micro"``: all successes over all trials. NaN where no task has a trial.

    Examples
    --------
    >>> board = from_counts([[1, 3]], [[1, 4]], configs=["a"], tasks=["t", "u"])
    >>> float(observed_score(board).item()), float(observed_score(board, weights="micro").item())
    (0.875, 0.8)
    """
    k, n = ds["successes"], ds["trials"]
    if weights == "micro":
        total = n.sum("task")
        return (k.sum("task") / total.where(total > 0)).rename("observed_micro")
    if weights != "task":
        raise OutcomesError(f"weights={weights!r} is unknown; use 'task' or 'micro'")
    return (k / n.where(n > 0)).mean("task").rename("observed")
