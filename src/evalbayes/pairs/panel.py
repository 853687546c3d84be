"""The panel that pairs are scored on: which tasks, and every config's score as an integer.

Two configs are compared on scores, and a score belongs to tasks. ``panel="shared"`` takes the tasks that every config
was scored on, so that all pairs stand on the same ones; ``panel="own"`` scores each config on its own tasks, which is
another estimand and is named as one.

A score is a sum over tasks of k / n on one common denominator, an integer; so is a margin. Two scores that differ by
exactly the margin are a near tie on any machine.
"""

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.frequentist.bootstrap import BLOCK, EXACT, Bools, Floats, Integers

TRILLION = 10**12
"""Parts of 1 that a score is rounded to where its exact denominator is too large."""

CACHED = 2**17
"""Cells that a processor's cache holds: read twice, they come from memory once."""

REPEATS = 16
"""Sums stay exact up to so many times the panel's tasks: clusters drawn with replacement may hold more than it has."""


@dataclass(frozen=True)
class Panel:
    """Configs in the order of their labels, and their counts (config, task) on the panel's tasks.

    k / n is k ``scale`` / n in whole numbers, and the whole panel ``out_of``; scores given as counts have one column.
    ``exact`` is False where k / n is rounded to parts of a trillion.
    """

    configs: list[Any]
    tasks: list[Any]
    successes: Integers
    trials: Integers
    scale: int
    out_of: int
    exact: bool
    kind: str
    on_board: int
    coverage: float
    runs: str

    @property
    def size(self) -> int:
        """How many configs."""
        return len(self.configs)

    @property
    def width(self) -> int:
        """How many tasks, one where scores were given as counts."""
        return int(self.successes.shape[1])

    @cached_property
    def solved(self) -> Floats:
        """K / n on the common denominator, whole numbers: (config, task)."""
        return self._whole(slice(None)).astype(float)

    @cached_property
    def scored(self) -> Bools:
        """Where a cell has a run: (config, task)."""
        return self.trials > 0

    @cached_property
    def total(self) -> Integers:
        """Sum of ``solved`` over tasks, (config), without holding it."""
        step = max(1, BLOCK // self.width)
        blocks = (self._whole(slice(start, start + step)) for start in range(0, self.size, step))
        # einsum takes half the time of sum(axis=1); whole numbers come out the same.
        return np.concatenate([np.einsum("ct->c", block) for block in blocks])

    def _whole(self, rows: slice) -> Integers:
        if self.exact and self.scale == 1:
            return self.successes[rows]
        k, n = self.successes[rows], np.maximum(self.trials[rows], 1)
        if self.exact:
            whole: Integers = k * (self.scale // n)
            return whole
        rounded: Integers = np.rint(k / n * self.scale).astype(np.int64)
        return rounded


def as_fraction(margin: Any) -> Fraction:
    """Return a margin as the decimal that was written: 0.05 is 1/20, not the double nearest to it.

    >>> as_fraction(0.05), as_fraction("0.05"), as_fraction(Fraction(1, 20))
    (Fraction(1, 20), Fraction(1, 20), Fraction(1, 20))

    Raises
    ------
    ArgumentError
        If it is not a number from 0 to 1.
    """
    kinds = (str, int, float, Fraction, Decimal, np.number)
    try:
        value = Fraction(str(margin)) if isinstance(margin, kinds) and not isinstance(margin, bool) else None
    except (ValueError, ZeroDivisionError):
        value = None
    if value is None or not 0 <= value <= 1:
        raise ArgumentError(f"margin={margin!r}: give a difference of scores from 0 to 1, such as 0.05")
    return value


def panel_of(outcomes: xr.Dataset, kind: str = "shared") -> Panel:
    """Score the configs of a board on a panel of tasks.

    Parameters
    ----------
    outcomes
        Over ``config`` and ``task``.
    kind
        ``"shared"``: the tasks that every config was scored on. ``"own"``: each config's own scored tasks.

    Raises
    ------
    NotIdentifiedError
        If the board has one config, a config has no scored run, or configs share no task.
    """
    if kind not in ("shared", "own"):
        raise ArgumentError(f"panel={kind!r} is not 'shared' or 'own'")
    if outcomes.sizes["config"] < 2:
        raise NotIdentifiedError("pairs: the board has one config; a pair needs two")
    counts = [outcomes[name].transpose("config", "task").values for name in ("successes", "trials")]
    fewest, most = _extent(counts[1])
    use = _panel_tasks(counts[1], kind, outcomes["config"].values, fewest)
    rows, columns = (np.argsort(outcomes[dim].values, kind="stable") for dim in ("config", "task"))
    columns = columns[use[columns]]
    k, n = (_ordered(table, rows, columns) for table in counts)
    configs, tasks = outcomes["config"].values[rows].tolist(), outcomes["task"].values[columns].tolist()
    if kind == "own":
        _check_overlap(configs, n > 0)
    if fewest == 0:
        fewest, most = _extent(n)
    scale, exact = _scale(n, fewest, most)
    coverage = len(tasks) / len(use) if kind == "shared" else float((n > 0).sum(axis=1).min() / len(use))
    out_of = scale * len(tasks)
    return Panel(configs, tasks, k, n, scale, out_of, exact, kind, len(use), coverage, _range(n, fewest, most))


def panel_of_counts(solved: xr.DataArray, out_of: Any) -> Panel:
    """Take scores that are already sums: whole numbers of tasks solved, (config), ``out_of`` tasks in all."""
    whole = np.issubdtype(solved.dtype, np.integer)
    if solved.dims != ("config",) or not whole or not isinstance(out_of, int | np.integer) or out_of < 1:
        raise ArgumentError("pairs: give a board, or solved tasks as whole numbers over config with out_of= tasks")
    if solved.sizes["config"] < 2:
        raise NotIdentifiedError("pairs: there is one config; a pair needs two")
    if bool((solved < 0).any() | (solved > out_of).any()):
        raise ArgumentError(f"pairs: solved tasks lie outside 0 to out_of={out_of}")
    labels = solved["config"].values
    order = np.argsort(labels, kind="stable")
    column, out_of = solved.values[order, None].astype(np.int64), int(out_of)
    once = np.ones_like(column)
    return Panel(labels[order].tolist(), [], column, once, 1, out_of, True, "shared", out_of, 1.0, "not recorded")


def take(panel: Panel, members: Integers) -> Panel:
    """Return the panel of some of its configs, on the same tasks."""
    return replace(
        panel,
        configs=[panel.configs[i] for i in members],
        successes=panel.successes[members],
        trials=panel.trials[members],
    )


def keys(panel: Panel, margin: Fraction, counts: Floats | None = None) -> tuple[Integers, Integers]:
    """Return scores as integers, (draw, config), and the margin on the same denominator, (draw).

    Parameters
    ----------
    panel, margin
        As built here.
    counts
        How often each task is drawn, (draw, task); once each when not given, in one row.

    Notes
    -----
    On a shared panel the denominator is that of the draw. On own tasks it differs by config: the observed scores are
    brought to a common one where that is an integer below 2**62, draws are rounded to parts of a trillion, and a
    difference within two of those parts of the margin counts as a near tie. So does one within one part for each task
    where k / n itself had to be rounded.
    """
    if panel.kind == "shared":
        rows = panel.total[None] if counts is None else np.rint(counts @ panel.solved.T).astype(np.int64)
        ones = np.array([panel.out_of]) if counts is None else (panel.scale * counts.sum(axis=1)).astype(np.int64)
        slack = [0] * len(ones) if panel.exact else [int(total) // panel.scale for total in ones]
        limit = [math.floor(margin * int(total)) + extra for total, extra in zip(ones, slack, strict=True)]
        return rows, np.array(limit, dtype=np.int64)
    return _own_keys(panel, margin, counts)


def _own_keys(panel: Panel, margin: Fraction, counts: Floats | None) -> tuple[Integers, Integers]:
    once = np.ones((1, panel.solved.shape[1])) if counts is None else counts
    solved, scored = once @ panel.solved.T, once @ panel.scored.T.astype(float)
    common = math.lcm(*np.unique(scored.astype(int)).tolist()) if counts is None else 0
    if counts is None and panel.exact and common * panel.scale < 2**62:
        whole = np.rint(solved).astype(np.int64) * (common // scored.astype(np.int64))
        return whole, np.array([math.floor(margin * common * panel.scale)], dtype=np.int64)
    if (scored == 0).any():
        raise NotIdentifiedError(
            "pairs: a draw of tasks holds none of some config's own tasks; use panel='shared', or leave that config out"
        )
    rounded = np.rint(TRILLION * (solved / (panel.scale * scored))).astype(np.int64)
    return rounded, np.full(len(once), math.floor(margin * TRILLION) + 2, dtype=np.int64)


def exact_keys(panel: Panel) -> bool:
    """Whether observed scores are compared without any rounding."""
    if panel.kind == "shared" or not panel.exact:
        return panel.exact
    return math.lcm(*np.unique(panel.scored.sum(axis=1)).tolist()) * panel.scale < 2**62


def _extent(n: Integers) -> tuple[int, int]:
    """Fewest and most runs of a cell, the table read once; 0 and 0 where it is empty."""
    step = max(1, CACHED // max(n.shape[1], 1))
    blocks = [n[start : start + step] for start in range(0, len(n) if n.size else 0, step)]
    ends = [(int(block.min()), int(block.max())) for block in blocks]
    return min((low for low, _ in ends), default=0), max((high for _, high in ends), default=0)


def _panel_tasks(n: Integers, kind: str, labels: npt.NDArray[Any], fewest: int) -> Bools:
    """Which tasks make the panel, (task)."""
    if fewest > 0:
        return np.ones(n.shape[1], dtype=bool)
    empty = labels[~(n > 0).any(axis=1)]
    if len(empty):
        raise NotIdentifiedError(f"pairs: config {str(empty[0])!r} has no scored run; leave it out")
    use: Bools = (n > 0).all(axis=0) if kind == "shared" else (n > 0).any(axis=0)
    if not use.any():
        raise NotIdentifiedError(
            "pairs: no task was scored for every config, so there is no common panel; "
            "leave out the configs with few tasks, or use panel='own' if each pair shares some"
        )
    return use


def _ordered(table: Integers, rows: Integers, columns: Integers) -> Integers:
    """Rows and columns in an order, without a copy where they are in it."""
    if table.shape == (len(rows), len(columns)) and all(np.all(np.diff(places) == 1) for places in (rows, columns)):
        return table
    return table[np.ix_(rows, columns)]


def _scale(n: Integers, low: int, high: int) -> tuple[int, bool]:
    """Return a common denominator of k / n, and whether it is exact: parts of a trillion where that is too large."""
    scale = high if low == high else math.lcm(*np.unique(n[n > 0]).tolist())
    if scale * n.shape[1] * REPEATS < EXACT:
        return scale, True
    return min(TRILLION, EXACT // (REPEATS * n.shape[1])), False


def _check_overlap(configs: list[Any], scored: Bools) -> None:
    kinds, first = np.unique(scored, axis=0, return_index=True)
    apart = np.argwhere((kinds.astype(float) @ kinds.T) == 0)
    if len(apart):
        a, b = (str(configs[i]) for i in sorted(first[apart[0]]))
        raise NotIdentifiedError(f"pairs: configs {a!r} and {b!r} share no task and cannot be compared; leave one out")


def _range(n: Integers, low: int, high: int) -> str:
    low = low or int(n[n > 0].min())
    return f"{low}" if low == high else f"{low} to {high}"
