"""Which configs differ, and by how much: paired differences of scores on the tasks that both were scored on."""

from typing import Any

import numpy as np
import xarray as xr

from evalbayes.answer import answer, from_draws
from evalbayes.frequentist import bootstrap
from evalbayes.frequentist.bootstrap import BLOCK, NO_SPREAD, Cells, Floats, Integers
from evalbayes.frequentist.normal import run_noise, task_means, wald
from evalbayes.frequentist.paired import labelled, pair_draws, pairs_of, shared_tasks, square, why_pair_unknown
from evalbayes.frequentist.targets import BOOTSTRAPS, Texts, choose, needs_two

METHODS = ("two_level_bootstrap", "one_level_bootstrap", "clustered_normal", "fixed_normal", "fixed_bootstrap")


def difference(
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    method: str | None = None,
    prob: float = 0.95,
    seed: int = 0,
    draws: int = 2000,
    reference: str | None = None,
) -> xr.Dataset:
    """Difference of scores, config minus opponent, paired by task, in [-1, 1].

    Both scores are means over the T tasks that the two share, so the difference is the mean of
    d_t = p_at - p_bt. Bootstraps use the same task draws for every config. clustered_normal has
    se = sd(d_t) / sqrt(T) (Miller 2024, arXiv 2411.00640, section 4.2), fixed_normal
    sqrt(sum_t p_at (1 - p_at) / (n_at - 1) + p_bt (1 - p_bt) / (n_bt - 1)) / T. Methods cover targets as in `score`.

    Two configs that no task tells apart, or that every task tells apart in the same way, would have an
    interval of no width: it is NaN, with its reason. A config minus itself is 0 by definition.

    Parameters
    ----------
    outcomes
        Over ``config`` and ``task``.
    tasks, configs, method, prob, seed, draws
        As in `score`.
    reference
        A config to subtract from each; None compares all pairs.

    Returns
    -------
    xarray.Dataset
        An answer over ``config`` and ``opponent``, or over ``config`` with a reference, and
        ``shared_tasks``, the number of tasks that both were scored on.

    Raises
    ------
    NotIdentifiedError
        If the board has one config, or the method does not cover the target.
    OutcomesError
        If the reference is not on the board.

    Examples
    --------
    >>> from evalbayes.outcomes import from_matrix
    >>> board = from_matrix([[1, 1, 1, 0], [1, 0, 0, 0]], configs=list("ab"), tasks=list("wxyz"))
    >>> difference(board, reference="b").estimate.values.tolist()
    [0.5, 0.0]
    """
    needs_two("difference", outcomes)
    method = choose("difference", method, tasks=tasks, configs=configs, offered=METHODS)
    # In the order of labels, and each pair once: sorting the board otherwise changes no digit.
    ordered = outcomes.sortby("config")
    pairs = pairs_of(ordered, reference)
    parts, reason = gaps(ordered, pairs, method=method, prob=prob, seed=seed, draws=draws)
    if reference is None:
        parts, reason = {name: _mirrored(name, part, pairs) for name, part in parts.items()}, square(reason, pairs)
    dims = ("config", "opponent") if reference is None else ("config",)
    arrays: dict[str, Any] = {name: labelled(part, dims, ordered) for name, part in parts.items()}
    why, arrays["shared_tasks"] = labelled(reason, dims, ordered), arrays["shared_tasks"].astype(int)
    result = answer(
        **arrays,
        quantity="difference",
        tasks=tasks,
        configs=configs,
        method=method,
        prob=prob,
        ci_kind="eti" if method in BOOTSTRAPS else "wald",
    )
    result = bootstrap.withhold(result, why)
    result = bootstrap.withhold(result, why.where(result.shared_tasks == 0, ""), estimate=True)
    result = result.reindex(dict.fromkeys(dims, outcomes.config.values))
    return result if reference is None else result.assign_coords(reference=reference)


def gaps(
    outcomes: xr.Dataset, pairs: Integers, *, method: str, prob: float, seed: int, draws: int
) -> tuple[dict[str, Floats], Texts]:
    """Return the parts of an answer about pairs (pair, 2) of positions, (pair, ...), and why an interval is unknown."""
    board = bootstrap.cells(outcomes)
    estimate = _observed(board, pairs)
    if method in BOOTSTRAPS:
        parts = _by_draws(outcomes, pairs, estimate, method=method, prob=prob, seed=seed, draws=draws)
    else:
        parts = _normal(board, pairs, estimate, method=method, prob=prob)
    parts |= {"estimate": estimate, "shared_tasks": shared_tasks(board, pairs).astype(float)}
    reason = why_pair_unknown(board, pairs, method)
    flat = (pairs[:, 0] != pairs[:, 1]) & (reason == "") & (parts["se"] < NO_SPREAD)
    reason[flat] = "the difference is the same on every shared task: a variance of 0 is no certainty"
    return parts, reason


def _observed(board: Cells, pairs: Integers) -> Floats:
    """Subtract scores on shared tasks; sums are of integers, so equal scores differ by exactly 0."""
    scored = board.scored.astype(float)
    shared = scored @ scored.T
    rate = (board.solved @ scored.T) / np.maximum(board.scale[:, None] * shared, 1)
    gap = rate - rate.T if board.exact else np.round(rate - rate.T, 12)
    result: Floats = gap[pairs[:, 0], pairs[:, 1]]
    return result


def _by_draws(
    outcomes: xr.Dataset, pairs: Integers, estimate: Floats, *, method: str, prob: float, seed: int, draws: int
) -> dict[str, Floats]:
    size = len(pairs)
    parts = {"se": np.zeros(size), "interval": np.zeros((size, 2)), "interval_mcse": np.zeros((size, 2))}
    target: dict[str, Any] = {"quantity": "difference", "tasks": "sampled", "configs": "fixed", "method": method}
    for block, first, second in pair_draws(outcomes, pairs, method, draws=draws, seed=seed):
        table = xr.DataArray(first - second, dims=("pair", "draw"))
        middle = xr.DataArray(estimate[block], dims="pair")
        found = bootstrap.hold(from_draws(table, estimate=middle, prob=prob, **target))
        for name in parts:
            parts[name][block] = found[name].transpose("pair", ...).values
    return parts


def _normal(board: Cells, pairs: Integers, estimate: Floats, *, method: str, prob: float) -> dict[str, Floats]:
    spread = _clustered if method == "clustered_normal" else _fixed
    blocks = np.array_split(pairs, max(1, pairs.shape[0] * board.trials.shape[1] // BLOCK))
    se = np.nan_to_num(np.concatenate([spread(board, block) for block in blocks]))
    return {"se": se, "interval": wald(estimate, se, prob, (-1, 1))}


def _clustered(board: Cells, pairs: Integers) -> Floats:
    means = task_means(board)
    gaps = means[pairs[:, 0]] - means[pairs[:, 1]]
    shared = np.maximum(np.isfinite(gaps).sum(axis=1), 1)
    centred = gaps - (np.nansum(gaps, axis=1) / shared)[:, None]
    result: Floats = np.sqrt(np.nansum(centred**2, axis=1) / np.maximum(shared - 1, 1) / shared)
    return result


def _fixed(board: Cells, pairs: Integers) -> Floats:
    noise, (first, second) = run_noise(board), pairs.T
    shared = board.scored[first] & board.scored[second]
    total = np.where(shared, noise[first] + noise[second], 0.0).sum(axis=1) * (first != second)
    result: Floats = np.sqrt(total) / np.maximum(shared.sum(axis=1), 1)
    return result


def _mirrored(name: str, upper: Floats, pairs: Integers) -> Floats:
    """Spread pairs over both triangles: the other way round a difference changes sign and its bounds change places."""
    full: Floats = square(upper, pairs)
    below = np.tril_indices(len(full), -1)
    if name in ("interval", "interval_mcse"):
        full[below] = full[below][:, ::-1]
    if name in ("interval", "estimate"):
        full[below] = 0.0 - full[below]
    return full
