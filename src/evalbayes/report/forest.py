"""The geometry of the forest plot: values to positions in percent of the plot's width. The template draws it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Tick:
    """A labelled position on an axis, in percent of its width."""

    at: float
    label: str


@dataclass(frozen=True)
class Axis:
    """A linear axis from ``low`` to ``high`` with its ticks."""

    low: float
    high: float
    ticks: tuple[Tick, ...]

    def at(self, value: float) -> float | None:
        """Return the position of ``value`` in percent of the width, None when it is not known."""
        return None if math.isnan(value) else _position(value, self.low, self.high)


def _position(value: float, low: float, high: float) -> float:
    return round(100 * (min(max(value, low), high) - low) / (high - low), 3)


def step_size(width: float, count: int) -> float:
    """Return the round number that cuts ``width`` into at most ``count`` parts.

    >>> step_size(0.63, 6), step_size(134, 8)
    (0.2, 20.0)
    """
    power = 10.0 ** math.floor(math.log10(width / count))
    return next(round(step * power, 12) for step in STEPS if step * power * count >= width * (1 - 1e-9))


def score_axis(values: Iterable[float]) -> Axis:
    """Return an axis in percent that holds every known value, ending on ticks within 0 and 1."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    step = step_size(max(high - low, 0.02), 6)
    low = max(0.0, math.floor(low / step + 1e-9) * step)
    high = min(1.0, math.ceil(high / step - 1e-9) * step)
    if high <= low:
        low, high = max(0.0, high - step), min(1.0, low + step)
    values = [low + step * i for i in range(round((high - low) / step) + 1)]
    digits = max(0, -math.floor(math.log10(step * 100)))
    return Axis(low, high, tuple(Tick(_position(v, low, high), f"{100 * v:.{digits}f}%") for v in values))


def rank_axis(count: int) -> Axis:
    """Return an axis of ranks 1 to ``count``, with half a rank of room at each end."""
    step = max(1, math.ceil(step_size(max(count, 2), 6)))
    marks = sorted({1, *range(step, count + 1, step)})
    low, high = 0.5, max(count, 2) + 0.5
    return Axis(low, high, tuple(Tick(_position(mark, low, high), str(mark)) for mark in marks))
