"""The bootstrap shared by every frequentist answer: draws of all configs' scores, by count weights.

One draw of the two-level bootstrap takes T tasks with replacement and, within each copy of a task, its runs
with replacement (Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). No such
board is ever built. Task t enters a draw w_t times, w ~ Multinomial(T, 1/T), so with p_ct = k_ct / n_ct

    score_c = sum_t w_t p_ct / sum_t w_t              over the tasks that c was scored on,

a matrix product for all draws and configs at once. Each of the w_t copies resamples its runs on its own, so
the copies together solve Binomial(w_t n_ct, p_ct); cells with the same (k, n) share p, so their sum is
Binomial(n sum_t w_t, k / n), one number per distinct (k, n) in place of one per cell: the exact distribution,
not an approximation. Cells that never or always succeed have no run noise and stay in the matrix product.

Solved and scored are kept as integers on a common denominator, so two scores that are equal as fractions are
equal as floats, and a tie is a tie on any machine with any number of threads.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.schema import require_board

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

BLOCK = 2**21
"""Most numbers in one temporary array: 16 MB."""

EXACT = 2**53
"""Integers below this are exact in a float64."""

NO_SPREAD = 1e-12
"""A standard error below this is rounding error of 0."""

TASK_NOISE = ("two_level_bootstrap", "one_level_bootstrap")
RUN_NOISE = ("two_level_bootstrap", "fixed_bootstrap")


@dataclass(frozen=True)
class Cells:
    """The counts of a board as arrays (config, task), tasks in the order of their labels.

    ``solved`` is k / n on the config's own common denominator ``scale``: k scale / n, an integer unless the
    denominator would be too large (``exact`` is then False and scores are rounded to 12 digits).
    """

    successes: Integers
    trials: Integers
    solved: Floats
    scale: Floats
    exact: bool

    @property
    def scored(self) -> Bools:
        """Where a cell has a run."""
        return self.trials > 0


def cells(outcomes: xr.Dataset) -> Cells:
    """Take the counts from outcomes, in an order of tasks that does not depend on how the board is sorted."""
    board = require_board(outcomes)[["successes", "trials"]].sortby("task").transpose("config", "task")
    k, n = board.successes.values.astype(np.int64), board.trials.values.astype(np.int64)
    scale = np.array([math.lcm(*np.unique(row[row > 0]).tolist()) for row in n], dtype=object)
    exact = all(common * n.shape[1] < EXACT for common in scale)
    factor = scale.astype(float) if exact else np.ones(len(scale))
    whole = (k * scale[:, None] // np.maximum(n, 1)).astype(float) if exact else k / np.maximum(n, 1)
    return Cells(k, n, whole, factor, exact)


def scores(board: Cells, counts: Floats, streams: list[np.random.Generator] | None = None) -> Floats:
    """Scores of all configs when task t is taken ``counts[:, t]`` times: (draw, task) -> (draw, config).

    Without ``streams`` the runs are as observed; with one generator per config they are resampled within each
    copy of a task. A draw that holds none of a config's tasks gives it NaN.
    """
    constant = (board.successes == 0) | (board.successes == board.trials)
    solved = counts @ np.where(constant | (streams is None), board.solved, 0.0).T
    if streams is not None and not constant.all():
        solved += _resampled_runs(board, counts, streams)
    scored = counts @ board.scored.T.astype(float)
    with np.errstate(invalid="ignore"):
        means: Floats = solved / (board.scale * scored)
    return means if board.exact else np.round(means, 12)


def _resampled_runs(board: Cells, counts: Floats, streams: list[np.random.Generator]) -> Floats:
    """Sum over tasks of resampled k / n, on each config's scale, of the cells that have run noise."""
    total = np.zeros((len(counts), len(streams)))
    # One product for many configs: a product each would spend its time starting threads.
    size = max(1, BLOCK // (8 * max(counts.shape)))
    for start in range(0, len(streams), size):
        batch = range(start, min(start + size, len(streams)))
        members, kinds = zip(*(_kinds(board, config) for config in batch), strict=True)
        copies = (counts @ np.concatenate(members, axis=1)).astype(np.int64)
        ends = np.cumsum([len(k) for k, _ in kinds])[:-1]
        for config, copy, (k, n) in zip(batch, np.split(copies, ends, axis=1), kinds, strict=True):
            total[:, config] = streams[config].binomial(copy * n, k / n) @ (board.scale[config] / n)
    return total


def _kinds(board: Cells, config: int) -> tuple[Floats, tuple[Integers, Integers]]:
    """Distinct (k, n) among a config's cells with run noise, and which tasks have each: (task, kind)."""
    k, n = board.successes[config], board.trials[config]
    noisy = np.flatnonzero((k > 0) & (k < n))
    kinds, kind = np.unique(n[noisy] * (n.max() + 1) + k[noisy], return_inverse=True)
    members = np.zeros((len(k), len(kinds)))
    members[noisy, kind] = 1
    return members, (kinds % (n.max() + 1), kinds // (n.max() + 1))


def observed(board: Cells) -> Floats:
    """Each config's mean over its scored tasks of each task's mean; NaN where it has no scored run."""
    means: Floats = scores(board, np.ones((1, board.trials.shape[1])))[0]
    return means


def task_draws(tasks: int, draws: int, seed: int) -> Iterator[Integers]:
    """Draw positions of tasks with replacement, in blocks (draw, task) of bounded size.

    >>> [block.shape for block in task_draws(3, 2, seed=0)]
    [(2, 3)]
    """
    rng = np.random.default_rng([seed, 0])
    size = max(1, BLOCK // tasks)
    for start in range(0, draws, size):
        yield rng.integers(tasks, size=(min(size, draws - start), tasks))


def task_counts(drawn: Integers) -> Floats:
    """Count how often each task was drawn: (draw, task) positions -> (draw, task) counts.

    >>> task_counts(np.array([[0, 0, 1]])).tolist()
    [[2.0, 1.0, 0.0]]
    """
    rows, tasks = drawn.shape
    flat = (drawn + tasks * np.arange(rows)[:, None]).ravel()
    return np.bincount(flat, minlength=rows * tasks).reshape(rows, tasks).astype(float)


def score_draws(
    outcomes: xr.Dataset, method: str, *, draws: int, seed: int, among: xr.DataArray | None = None
) -> xr.DataArray:
    """Bootstrap the scores of every config over the same task draws.

    Parameters
    ----------
    outcomes
        Over ``config`` and ``task``.
    method
        ``"two_level_bootstrap"``: tasks, then runs; ``"one_level_bootstrap"``: tasks, with their runs as
        they are; ``"fixed_bootstrap"``: runs, with the tasks as they are.
    draws, seed
        How many, and from where. Task draws depend on the seed and the task labels, run draws on the seed
        and the config's label: the order of the board and the number of cores change nothing.
    among
        Over ``task``, True for the tasks to score on; the draws are of all tasks all the same, so that
        draws with different ``among`` belong to the same resampled benchmarks.

    Returns
    -------
    xarray.DataArray
        Over ``draw`` and ``config``, in [0, 1]; NaN where a draw holds none of a config's scored tasks.
    """
    labels = [str(label) for label in outcomes.config.values]
    use = slice(None) if among is None else among.sortby("task").values
    board = cells(outcomes if among is None else outcomes.isel(task=np.flatnonzero(among.values)))
    streams = [_stream(seed, label) for label in labels] if method in RUN_NOISE else None
    blocks = []
    for drawn in task_draws(outcomes.sizes["task"], draws, seed):
        counts = task_counts(drawn) if method in TASK_NOISE else np.ones(drawn.shape)
        blocks.append(scores(board, counts[:, use], streams))
    return xr.DataArray(np.concatenate(blocks), dims=("draw", "config"), coords={"config": outcomes.config.values})


def _stream(seed: int, label: str) -> np.random.Generator:
    digest = hashlib.blake2b(label.encode(), digest_size=8).digest()
    return np.random.default_rng([seed, 1, int.from_bytes(digest)])


def along(outcomes: xr.Dataset, values: Any) -> xr.DataArray:
    """Label an array over the board's configs, (config) or (config, ci_bound)."""
    dims = ("config", "ci_bound")[: np.ndim(values)]
    return xr.DataArray(values, dims=dims, coords={"config": outcomes["config"].values})


def hold(result: xr.Dataset) -> xr.Dataset:
    """Move an interval's end out to the estimate where the bootstrap distribution lies to one side of it."""
    lower = np.fmin(result.interval.sel(ci_bound="lower"), result.estimate)
    upper = np.fmax(result.interval.sel(ci_bound="upper"), result.estimate)
    ends = xr.concat([lower, upper], result.ci_bound).transpose(*result.interval.dims)
    return result.assign(interval=ends.where(result.interval.notnull()))


def withhold(result: xr.Dataset, reason: xr.DataArray, *, estimate: bool = False) -> xr.Dataset:
    """Blank the se and interval (and the estimate, on request) wherever there is a reason to."""
    from evalbayes.answer import check

    known = reason == ""
    names = ["se", "interval", *(["interval_mcse"] if "interval_mcse" in result else []), *["estimate"] * estimate]
    blanked: dict[Any, xr.DataArray] = {name: result[name].where(known) for name in names}
    said = reason.astype(object).where(~known, result.reason)
    return check(result.assign({**blanked, "reason": said}))
