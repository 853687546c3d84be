"""Who is above whom: the table of P(row > column) of the page, a cell for each pair of the best entries."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from evalbayes.report.words import probability, shorten

MOST = 30
"""Entries that a page shows pairs of: a table of more cannot be read."""
BINS = 5
"""Shades on each side of one half."""


@dataclass(frozen=True)
class Pair:
    """One cell: its text, its shade (w5 is a sure win of the row, l5 a sure loss), and what a pointer says of it."""

    text: str
    shade: str
    said: str


@dataclass(frozen=True)
class Line:
    """One row: the entry's place among those shown, its name, and its cells."""

    place: int
    name: str
    short: str
    pairs: list[Pair]


def lines(wins: xr.Dataset) -> list[Line]:
    """Return the rows of the table; ``wins`` is `posterior.win_probability` of the entries shown, best first."""
    names, level = [str(name) for name in wins["config"].values], float(wins["ci_prob"])
    chance = wins["estimate"].transpose("config", "opponent").values
    return [
        Line(i + 1, name, shorten(name), [_pair(name, other, chance[i, j], level) for j, other in enumerate(names)])
        for i, name in enumerate(names)
    ]


def _pair(name: str, other: str, chance: float, level: float) -> Pair:
    if name == other:
        return Pair("", "self", "")
    if np.isnan(chance):
        return Pair("–", "none", f"{name} and {other}: nothing compares them")
    above, below = chance > (1 + level) / 2, chance < (1 - level) / 2
    verdict = "above" if above else "below" if below else "not resolved from"
    shade = int(np.ceil(BINS * abs(2 * chance - 1)))
    side = "w" if chance >= 0.5 else "l"
    said = f"{name} is {verdict} {other}: {probability(float(chance))}"
    return Pair(_whole(float(chance)) + "?" * (not above and not below), f"{side}{shade}", said)


def _whole(chance: float) -> str:
    """A probability in whole percent, never rounded to a certainty.

    >>> _whole(0.512), _whole(0.9999), _whole(0.002)
    ('51', '>99', '<1')
    """
    return ">99" if chance > 0.99 else "<1" if chance < 0.01 else f"{100 * chance:.0f}"
