"""Several runs of one task, from counts: pass@k, pass^k, agreement and flip rate; formulas in `evalbayes.attempts`.

Each is the mean over tasks of that task's unbiased estimate. Tasks with fewer runs than are asked about have none: they
are left out, ``coverage`` says how many are in, and ``lowest`` and ``highest`` bound what the board would have shown
had every task been run that often.
"""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from evalbayes import attempts
from evalbayes.answer import answer, from_draws
from evalbayes.frequentist import bootstrap
from evalbayes.frequentist.bootstrap import NO_SPREAD, Floats
from evalbayes.frequentist.normal import wald
from evalbayes.frequentist.targets import choose

METHODS = ("one_level_bootstrap", "clustered_normal", "unbiased")
NO_INTERVAL = "new runs of these tasks: the unbiased estimate has no interval of its own; ask a fit"


class Asked(NamedTuple):
    """What is asked of how many runs, of which target, and how."""

    quantity: str
    runs: int
    tasks: str
    configs: str
    prob: float
    method: str | None
    seed: int
    draws: int


def pass_at_k(
    outcomes: xr.Dataset,
    *,
    k: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Chance that at least one of k runs of a task passes (pass@k): mean over tasks of 1 - C(n - s, k) / C(n, k).

    Parameters
    ----------
    outcomes
        Over ``config`` and ``task``; s of a cell's n runs passed.
    k
        Runs of a task.
    tasks
        ``"sampled"``: new tasks from the same population. ``"fixed"``: new runs of these.
    configs
        ``"fixed"``: the configs on the board.
    prob
        Coverage of the interval.
    method
        For sampled tasks ``"one_level_bootstrap"`` (quantiles over resampled tasks, the default) or
        ``"clustered_normal"`` (sd over tasks / sqrt(tasks)); for fixed ones ``"unbiased"``, which has no interval.
    seed, draws
        Of the bootstrap.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``, in [0, 1], with ``coverage`` (the share of the board's tasks that were run k times or
        more, over which the mean is taken) and ``lowest`` and ``highest``, between which it would lie had all been.
        NaN with its reason where no task was.

    Raises
    ------
    NotIdentifiedError
        If future configs are asked for, or the method does not cover the target.
    ArgumentError
        If k is no whole number from 1, or a word is not one of those above.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[1, 0]], [[4, 4]], configs=["a"], tasks=["x", "y"])
    >>> [pass_at_k(board, k=k).estimate.item() for k in (1, 4)]
    [0.125, 0.5]
    """
    runs = attempts.check_count("k", k)
    return _answered(outcomes, Asked("pass_at_k", runs, tasks, configs, prob, method, seed, draws))


def pass_all_k(
    outcomes: xr.Dataset,
    *,
    k: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Chance that all of k runs of a task pass (pass^k): mean over tasks of C(s, k) / C(n, k).

    At the number of runs that each task has it is the share of tasks solved in all of them, the perfect-stability rate.

    Parameters
    ----------
    outcomes, k, tasks, configs, prob, method, seed, draws
        As in `pass_at_k`.

    Returns
    -------
    xarray.Dataset
        As `pass_at_k`.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[3, 2]], [[4, 4]], configs=["a"], tasks=["x", "y"])
    >>> round(pass_all_k(board, k=2).estimate.item(), 4)
    0.3333
    """
    runs = attempts.check_count("k", k)
    return _answered(outcomes, Asked("pass_all_k", runs, tasks, configs, prob, method, seed, draws))


def agreement_rate(
    outcomes: xr.Dataset,
    *,
    runs: int,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Chance that so many runs of a task all agree, passed or failed.

    It falls with the number of runs, so one without that number says nothing; at two it is 1 - `flip_rate`.

    Parameters
    ----------
    outcomes, tasks, configs, prob, method, seed, draws
        As in `pass_at_k`.
    runs
        Runs of a task.

    Returns
    -------
    xarray.Dataset
        As `pass_at_k`.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[4, 2, 0]], [[4] * 3], configs=["a"], tasks=["x", "y", "z"])
    >>> round(agreement_rate(board, runs=4).estimate.item(), 4)
    0.6667
    """
    runs = attempts.check_count("runs", runs)
    return _answered(outcomes, Asked("agreement_rate", runs, tasks, configs, prob, method, seed, draws))


def flip_rate(
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    method: str | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Chance that two runs of a task differ: mean over tasks of 2 s (n - s) / (n (n - 1)).

    Over the tasks that were run twice or more; it is twice the within variance.

    Parameters
    ----------
    outcomes, tasks, configs, prob, method, seed, draws
        As in `pass_at_k`.

    Returns
    -------
    xarray.Dataset
        As `pass_at_k`.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[4, 2, 0]], [[4] * 3], configs=["a"], tasks=["x", "y", "z"])
    >>> round(flip_rate(board).estimate.item(), 4)
    0.2222
    """
    return _answered(outcomes, Asked("flip_rate", 2, tasks, configs, prob, method, seed, draws))


def _answered(outcomes: xr.Dataset, asked: Asked) -> xr.Dataset:
    method = choose(asked.quantity, asked.method, tasks=asked.tasks, configs=asked.configs, offered=METHODS)
    board = bootstrap.cells(outcomes)
    k, n = board.successes, board.trials
    all_pass, all_fail = (attempts.share_of_picks(count, n, asked.runs) for count in (k, n - k))
    each = attempts.value(asked.quantity, all_pass, all_fail)
    able = ~np.isnan(each)
    filled, used = np.nan_to_num(each), able.sum(axis=1)
    mean = filled.sum(axis=1) / np.maximum(used, 1)
    result = _summary(outcomes, asked, method, filled, able, mean)
    low, high = _bounds(asked, filled, able, np.stack([k == n, k == 0]))
    result = result.assign(
        coverage=bootstrap.along(outcomes, used / n.shape[1]),
        lowest=bootstrap.along(outcomes, low),
        highest=bootstrap.along(outcomes, high),
    )
    flat = (result.se.values < NO_SPREAD) & (method != "unbiased")
    result = bootstrap.withhold(result, bootstrap.along(outcomes, _no_interval(used, flat, method)))
    none = f"no task has {asked.runs} runs or more: no unbiased estimate exists from fewer; ask a fit, or fewer runs"
    return bootstrap.withhold(result, bootstrap.along(outcomes, np.where(used == 0, none, "")), estimate=True)


def _summary(outcomes: xr.Dataset, asked: Asked, method: str, each: Floats, able: Any, mean: Floats) -> xr.Dataset:
    who: dict[str, Any] = {"quantity": asked.quantity, "tasks": asked.tasks, "configs": asked.configs}
    who |= {"method": method, "prob": asked.prob, "runs": asked.runs}
    estimate = bootstrap.along(outcomes, mean)
    if method == "one_level_bootstrap":
        blocks = []
        for drawn in bootstrap.task_draws(each.shape[1], asked.draws, asked.seed):
            counts = bootstrap.task_counts(drawn)
            with np.errstate(invalid="ignore"):
                blocks.append(counts @ each.T / (counts @ able.T.astype(float)))
        # Zeros keep the quantiles of a config without such tasks quiet until they are blanked.
        spread = np.where(able.any(axis=1), np.concatenate(blocks), 0.0)
        draws = xr.DataArray(spread, dims=("draw", "config"), coords=estimate.coords)
        return bootstrap.hold(from_draws(draws, estimate=estimate, **who))
    used = np.maximum(able.sum(axis=1), 1)
    squares = np.where(able, (each - mean[:, None]) ** 2, 0.0).sum(axis=1)
    se = np.sqrt(squares / np.maximum(used - 1, 1) / used)
    ends = xr.DataArray(wald(mean, se, asked.prob, (0, 1)), dims=("config", "ci_bound"), coords=estimate.coords)
    return answer(estimate, bootstrap.along(outcomes, se), ends, ci_kind="wald", **who)


def _bounds(asked: Asked, each: Floats, able: Any, alike: Any) -> tuple[Floats, Floats]:
    """Return the least and the most that the mean over all tasks could be once each has as many runs as are asked of.

    A task whose runs so far all passed may yet pass all or not; one that passed and failed is settled.
    """
    passes, fails = (np.where(able, 0.0, part.astype(float)) for part in alike)
    ways = [
        attempts.value(asked.quantity, a, f)
        for a, f in ((0 * passes, 0 * fails), (passes, 0 * fails), (0 * passes, fails))
    ]
    low, high = (np.where(able, each, pick(ways, axis=0)).mean(axis=1) for pick in (np.min, np.max))
    return low, high


def _no_interval(used: Any, flat: Any, method: str) -> Any:
    reason = np.full(used.shape, NO_INTERVAL if method == "unbiased" else "", dtype=object)
    reason[flat] = "every task has the same value: a spread of 0 is no certainty; ask a fit"
    if method != "unbiased":
        reason[used == 1] = "one task with so many runs: the spread over tasks needs two or more"
    return reason
