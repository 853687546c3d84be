"""How good is each config: the mean over tasks of each task's mean, with the interval its target needs."""

from typing import Any

import numpy as np
import xarray as xr

from evalbayes.answer import answer, check, from_draws
from evalbayes.frequentist import bootstrap
from evalbayes.frequentist.bootstrap import NO_SPREAD, Cells
from evalbayes.frequentist.normal import run_noise, task_means, wald
from evalbayes.frequentist.targets import BOOTSTRAPS, choose, why_unknown
from evalbayes.textbook import wilson

METHODS = (
    "two_level_bootstrap",
    "one_level_bootstrap",
    "clustered_normal",
    "fixed_normal",
    "fixed_bootstrap",
    "pooled_wilson",
)


def score(
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    method: str | None = None,
    prob: float = 0.95,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Score of each config: mean over its scored tasks of each task's success rate, in [0, 1].

    The estimate is the observed score, an exact fact; the target decides the interval, T being the number of
    tasks the config was scored on, p_t = k_t / n_t:

    ====================  =========  =====================================================================
    method                tasks      standard error or interval
    ====================  =========  =====================================================================
    two_level_bootstrap   sampled    quantiles over resampled tasks, and runs within them (default)
    one_level_bootstrap   sampled    quantiles over resampled tasks, their runs as they are
    clustered_normal      sampled    sd(p_t) / sqrt(T), the CR1 standard error by task (Miller 2024,
                                     arXiv 2411.00640, section 2.2)
    fixed_normal          fixed      sqrt(sum_t p_t (1 - p_t) / (n_t - 1)) / T (default)
    fixed_bootstrap       fixed      quantiles over resampled runs, the tasks as they are
    pooled_wilson         (neither)  Wilson's with every run counted as independent, shown for reference:
                                     too narrow for new tasks, too wide for these
    ====================  =========  =====================================================================

    Where every scored run passed, or failed, resampling shows no spread and would claim certainty. For
    tasks="sampled" the interval is then Wilson's with the T tasks as trials, valid however alike the runs of
    a task are; ``interval_kind`` says so, and the se is NaN. Any other interval of no width is NaN, with its
    reason.

    Parameters
    ----------
    outcomes
        Over ``config`` and ``task``; cells without a run are left out, not counted as failures.
    tasks, configs
        The target: ``"sampled"`` or ``"fixed"`` tasks, ``"fixed"`` configs.
    method
        As above; None takes the target's default.
    prob
        Coverage of the interval.
    seed, draws
        Of the bootstrap.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``, with ``coverage`` (tasks scored / tasks on the board), ``interval_kind``,
        and for fixed_normal ``imputed`` (cells of one run that borrow the config's mean run variance).

    Raises
    ------
    NotIdentifiedError
        If the method does not cover the target.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[4, 2, 0]], [[4] * 3], configs=["a"], tasks=["x", "y", "z"])
    >>> [round(score(board, tasks=t, method=m).se.item(), 4)
    ...  for t, m in [("sampled", "clustered_normal"), ("fixed", "fixed_normal")]]
    [0.2887, 0.0962]
    """
    method = choose("score", method, tasks=tasks, configs=configs, offered=METHODS)
    board = bootstrap.cells(outcomes)
    identity: dict[str, Any] = {"quantity": "score", "tasks": tasks, "configs": configs, "method": method, "prob": prob}
    if method in BOOTSTRAPS:
        result = _by_draws(outcomes, board, draws=draws, seed=seed, **identity)
    elif method == "pooled_wilson":
        result = _pooled(outcomes, board, **identity)
    else:
        result = _normal(outcomes, board, **identity)
    return _honest(result, outcomes, board)


def _by_draws(outcomes: xr.Dataset, board: Cells, *, draws: int, seed: int, **identity: Any) -> xr.Dataset:
    table = bootstrap.score_draws(outcomes, identity["method"], draws=draws, seed=seed)
    known = xr.DataArray(board.scored.any(axis=1), dims="config")
    # A config without a run has no draws at all: zeros keep the quantiles quiet until `_honest` blanks them.
    estimate = bootstrap.along(outcomes, bootstrap.observed(board))
    return bootstrap.hold(from_draws(table.where(known, 0.0), estimate=estimate.where(known, 0.0), **identity))


def _normal(outcomes: xr.Dataset, board: Cells, *, prob: float, **identity: Any) -> xr.Dataset:
    scored = np.maximum(board.scored.sum(axis=1), 1)
    rate = np.nan_to_num(bootstrap.observed(board))
    extra: dict[str, Any] = {}
    if identity["method"] == "clustered_normal":
        squares = np.nansum((task_means(board) - rate[:, None]) ** 2, axis=1)
        se = np.sqrt(squares / np.maximum(scored - 1, 1) / scored)
    else:
        se = np.nan_to_num(np.sqrt(run_noise(board).sum(axis=1)) / scored)
        extra["imputed"] = bootstrap.along(outcomes, (board.trials == 1).sum(axis=1))
    ends = bootstrap.along(outcomes, wald(rate, se, prob, (0, 1)))
    return answer(
        bootstrap.along(outcomes, rate),
        bootstrap.along(outcomes, se),
        ends,
        prob=prob,
        ci_kind="wald",
        **identity,
        **extra,
    )


def _pooled(outcomes: xr.Dataset, board: Cells, *, prob: float, **identity: Any) -> xr.Dataset:
    runs = board.trials.sum(axis=1).astype(float)
    rate = np.nan_to_num(bootstrap.observed(board))
    # The normal formula gives 0 at the boundary, which no one should read as certainty.
    se = np.where((rate > 0) & (rate < 1), np.sqrt(rate * (1 - rate) / np.maximum(runs, 1)), np.nan)
    ends = np.nan_to_num(wilson(rate, runs, prob))
    result = answer(
        bootstrap.along(outcomes, rate),
        bootstrap.along(outcomes, se),
        bootstrap.along(outcomes, ends),
        prob=prob,
        ci_kind="score",
        **identity,
    )
    repeated = "runs of one task counted as independent: too narrow for new tasks, too wide for these"
    single = "one run per cell: right for new tasks, too wide for new runs of these"
    result.attrs["label"] = f"for reference; {repeated if (board.trials > 1).any() else single}"
    return result


def _honest(result: xr.Dataset, outcomes: xr.Dataset, board: Cells) -> xr.Dataset:
    """Blank what the data cannot show, and give a config at 0 or 1 an interval that does not claim certainty."""
    method, scored = result.method.item(), board.scored.sum(axis=1)
    reason = why_unknown(scored, (board.trials > 1).sum(axis=1), method)
    flat = (reason == "") & (result.se.values < NO_SPREAD) & (method != "pooled_wilson")
    edge = flat & np.isin(result.estimate.values, (0.0, 1.0)) & (result.tasks.item() == "sampled")
    reason[flat & ~edge] = _no_width(method)
    kind = np.where(edge, "wilson_tasks", np.where(reason == "", result.ci_kind.item(), "none"))
    by_tasks = wilson(np.nan_to_num(result.estimate.values), scored.astype(float), result.ci_prob.item())
    result = result.assign(
        coverage=bootstrap.along(outcomes, scored / outcomes.sizes["task"]),
        interval_kind=bootstrap.along(outcomes, kind.astype(object)),
    )
    result = bootstrap.withhold(result, bootstrap.along(outcomes, reason))
    result = bootstrap.withhold(result, bootstrap.along(outcomes, np.where(scored == 0, reason, "")), estimate=True)
    return _replace(result, bootstrap.along(outcomes, edge), bootstrap.along(outcomes, by_tasks))


def _replace(result: xr.Dataset, where: xr.DataArray, interval: xr.DataArray) -> xr.Dataset:
    said = "every scored run is alike, so resampling shows no spread; the interval is Wilson's with the tasks as trials"
    names = ["se", *(["interval_mcse"] if "interval_mcse" in result else [])]
    blanked: dict[Any, xr.DataArray] = {name: result[name].where(~where) for name in names}
    interval = result.interval.where(~where, interval)
    return check(result.assign({**blanked, "interval": interval, "reason": result.reason.where(~where, said)}))


def _no_width(method: str) -> str:
    if method.startswith("fixed"):
        return "no cell has both passes and failures: a run variance of 0 is no certainty; see 'pooled_wilson'"
    return "every task has the same mean: a task variance of 0 is no certainty; use 'two_level_bootstrap'"
