"""Who leads: rank intervals, the probability of the top k, and of one config beating another.

All come from the same paired bootstrap boards. Ties are exact (scores are fractions of integers) and are
shared out: competition ranks 1, 1, 3; places in the top k split evenly, so that they sum to k; half a win each.
"""

from typing import Any

import numpy as np
import xarray as xr

from evalbayes.answer import from_draws, from_shares
from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.frequentist import bootstrap
from evalbayes.frequentist.bootstrap import Cells, Floats, Integers
from evalbayes.frequentist.paired import (
    labelled,
    pair_draws,
    pairs_of,
    shared_tasks,
    square,
    why_pair_unknown,
    why_unranked,
)
from evalbayes.frequentist.targets import BOOTSTRAPS, Texts, choose, needs_two, why_unknown
from evalbayes.textbook import standing


def rank(
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    method: str | None = None,
    prob: float = 0.95,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Rank of each config by its score: 1 is best, ties share the better rank (1, 1, 3).

    The estimate is the rank of the observed scores, the same for every seed; the interval holds ranks that
    occur in bootstrap boards, and the estimate. A config is ranked by the tasks it was scored on: where
    ``coverage`` is below 1, restrict the board to shared tasks to compare like with like. One that shares no
    task with some other is not ranked with it: its rank is NaN, and the reason names the other.

    Parameters
    ----------
    outcomes
        Over ``config`` and ``task``.
    tasks, configs, prob, seed, draws
        As in `evalbayes.frequentist.score`.
    method
        ``two_level_bootstrap`` or ``one_level_bootstrap`` for sampled tasks, ``fixed_bootstrap`` for fixed.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``, with ``mid_rank`` (ties share the mean of their places: 1.5, 1.5, 3) and
        ``coverage`` (tasks scored / tasks on the board).

    Raises
    ------
    NotIdentifiedError
        If the board has one config, the method does not cover the target, or most draws leave a config
        without a scored task.

    Examples
    --------
    >>> from evalbayes.outcomes import from_matrix
    >>> board = from_matrix([[1, 1, 0], [1, 0, 1], [0, 0, 0]], configs=list("abc"), tasks=list("xyz"))
    >>> rank(board).estimate.values.tolist()
    [1.0, 1.0, 3.0]
    """
    method = _method("rank", outcomes, method, tasks=tasks, configs=configs)
    board, reason, table = _boards("rank", outcomes, method, draws=draws, seed=seed)
    first, tied = standing(np.nan_to_num(bootstrap.observed(board), nan=-1.0))
    lonely = why_unranked(outcomes)
    result = from_draws(
        _along(outcomes, standing(table)[0].astype(float)),
        estimate=_along(outcomes, first),
        discrete=True,
        quantity="rank",
        tasks=tasks,
        configs=configs,
        method=method,
        prob=prob,
        mid_rank=_along(outcomes, first + (tied - 1) / 2).where(board.scored.any(axis=1) & (lonely == "")),
        coverage=_along(outcomes, board.scored.mean(axis=1)),
    )
    result = bootstrap.withhold(bootstrap.hold(result), _along(outcomes, np.where(lonely == "", reason, lonely)))
    unranked = _along(outcomes, np.where(board.scored.any(axis=1), lonely, reason))
    return bootstrap.withhold(result, unranked, estimate=True)


def top_k(
    outcomes: xr.Dataset,
    *,
    k: int = 1,
    tasks: str = "sampled",
    configs: str = "fixed",
    method: str | None = None,
    prob: float = 0.95,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Probability that each config is among the best k, as the share of bootstrap boards in which it is.

    m configs tied for places r to r + m - 1 each get min(max(k - r + 1, 0), m) / m of a place, so the
    probabilities of all configs sum to k; that of one that shares no task with some other is NaN. The se and
    interval (Wilson's, with the draws as trials) are those of the simulation: how far the share could move with
    more draws.

    Parameters
    ----------
    k
        Number of places, from 1 to the number of configs.
    outcomes, tasks, configs, method, prob, seed, draws
        As in `rank`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``, with scalar coord ``k`` and ``coverage``.

    Raises
    ------
    NotIdentifiedError
        As in `rank`, or if fewer than k configs have a scored run.
    ValueError
        If k is below 1.

    Examples
    --------
    >>> from evalbayes.outcomes import from_matrix
    >>> board = from_matrix([[1, 1, 1], [1, 1, 1], [0, 0, 1]], configs=list("abc"), tasks=list("xyz"))
    >>> round(top_k(board, k=2).estimate.sum().item(), 9)
    2.0
    """
    method = _method("top_k", outcomes, method, tasks=tasks, configs=configs)
    if k < 1:
        raise ArgumentError(f"top_k: k={k} is below 1")
    board, reason, table = _boards("top_k", outcomes, method, draws=draws, seed=seed)
    if k > board.scored.any(axis=1).sum():
        raise NotIdentifiedError(f"top_k: k={k}, but {board.scored.any(axis=1).sum()} configs have a scored run")
    first, tied = standing(table)
    share = np.clip(k - first + 1, 0, tied) / tied
    identity = {"quantity": "top_k", "tasks": tasks, "configs": configs, "method": method, "prob": prob}
    se = share.std(axis=0) / np.sqrt(len(share))
    result = _simulated(outcomes, ("config",), share.mean(axis=0), se, np.full(len(reason), len(share)), **identity)
    result = result.assign(coverage=_along(outcomes, board.scored.mean(axis=1))).assign_coords(k=k)
    lonely = why_unranked(outcomes)
    return bootstrap.withhold(result, _along(outcomes, np.where(lonely == "", reason, lonely)), estimate=True)


def win_probability(
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    method: str | None = None,
    prob: float = 0.95,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Probability that a config beats an opponent, as the share of bootstrap boards in which it does.

    Half a tie counts as half a win, so P(a beats b) + P(b beats a) = 1 and a config against itself has 0.5.
    Each pair is scored on the tasks that both were scored on. The se and interval (Wilson's, with the draws
    as trials) are those of the simulation: how far the share could move with more draws.

    Parameters
    ----------
    outcomes, tasks, configs, method, prob, seed, draws
        As in `rank`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config`` and ``opponent``, with ``tie``, the share of boards in which the two tie,
        and ``shared_tasks``.

    Raises
    ------
    NotIdentifiedError
        If the board has one config, or the method does not cover the target.

    Examples
    --------
    >>> from evalbayes.outcomes import from_matrix
    >>> board = from_matrix([[1, 1, 1], [0, 0, 0]], configs=list("ab"), tasks=list("xyz"))
    >>> win_probability(board).estimate.values.tolist()
    [[0.5, 1.0], [0.0, 0.5]]
    """
    method = _method("win_probability", outcomes, method, tasks=tasks, configs=configs)
    # In the order of labels, and each pair once: sorting the board otherwise changes no digit.
    ordered = outcomes.sortby("config")
    board, pairs, dims = bootstrap.cells(ordered), pairs_of(ordered), ("config", "opponent")
    above, level, boards = duels(ordered, pairs, method, draws=draws, seed=seed)
    first, below = square(above, pairs), np.tril_indices(ordered.sizes["config"], -1)
    first[below] = square(boards - above - level, pairs)[below]
    valid, shared = square(boards, pairs), square(shared_tasks(board, pairs), pairs)
    win, tie, se = shares(first, square(level, pairs), valid)
    reason = square(why_pair_unknown(board, pairs, method), pairs)
    identity = {"quantity": "win_probability", "tasks": tasks, "configs": configs, "method": method, "prob": prob}
    result = _simulated(ordered, dims, win, se, np.maximum(valid, 1), **identity)
    result = result.assign(tie=labelled(tie, dims, ordered), shared_tasks=labelled(shared, dims, ordered))
    result = bootstrap.withhold(result, labelled(reason, dims, ordered), estimate=True)
    result["tie"] = result.tie.where(result.estimate.notnull())
    return result.reindex(dict.fromkeys(dims, outcomes.config.values))


def shares(above: Floats, level: Floats, boards: Floats) -> tuple[Floats, Floats, Floats]:
    """Return P(win) with half a tie counted, P(tie), and the simulation error of the first, from counts of boards."""
    boards = np.maximum(boards, 1)
    win, tie = (above + level / 2) / boards, level / boards
    return win, tie, np.sqrt(np.maximum(win * (1 - win) - tie / 4, 0) / boards)


def duels(ordered: xr.Dataset, pairs: Integers, method: str, *, draws: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Count boards in which the first of a pair is above, in which the two are level, and which score both."""
    above, level, boards = np.zeros((3, len(pairs)))
    for block, first, second in pair_draws(ordered, pairs, method, draws=draws, seed=seed):
        above[block] = (first > second).sum(axis=1)
        level[block] = (first == second).sum(axis=1)
        boards[block] = np.isfinite(first + second).sum(axis=1)
    return above, level, boards


def _method(quantity: str, outcomes: xr.Dataset, method: str | None, *, tasks: str, configs: str) -> str:
    needs_two(quantity, outcomes)
    return choose(quantity, method, tasks=tasks, configs=configs, offered=BOOTSTRAPS)


def _boards(quantity: str, outcomes: xr.Dataset, method: str, *, draws: int, seed: int) -> tuple[Cells, Texts, Floats]:
    """Counts, reasons by config, and scores (draw, config) in draws that score every config that can be scored.

    A config without a run scores -1, below all others, and moves nobody's rank.
    """
    board = bootstrap.cells(outcomes)
    scored = board.scored.any(axis=1)
    reason = why_unknown(board.scored.sum(axis=1), (board.trials > 1).sum(axis=1), method)
    if method == "fixed_bootstrap" and (reason[scored] != "").any():
        # One config whose runs cannot be resampled leaves every rank without its noise.
        reason[scored] = next(text for text in reason[scored] if text)
    table = bootstrap.score_draws(outcomes, method, draws=draws, seed=seed).values
    whole = np.isfinite(table[:, scored]).all(axis=1)
    if whole.mean() < 0.5:
        config = outcomes.config.values[scored][np.isfinite(table[:, scored]).mean(axis=0).argmin()]
        raise NotIdentifiedError(f"{quantity}: most draws hold no scored task of config {config!r}; leave it out")
    return board, reason, np.where(scored, table[whole], -1.0)


def _simulated(
    outcomes: xr.Dataset, dims: tuple[str, ...], share: Floats, se: Floats, boards: Floats, **identity: Any
) -> xr.Dataset:
    """Build the answer for a probability counted over bootstrap boards."""
    return from_shares(*(labelled(part, dims, outcomes) for part in (share, se, boards)), **identity)


def _along(outcomes: xr.Dataset, values: Any) -> xr.DataArray:
    dims = ("draw", "config")[-np.ndim(values) :]
    return xr.DataArray(values, dims=dims, coords={"config": outcomes.config.values})
