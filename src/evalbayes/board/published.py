"""Published rates against rows: the one-task gate, what rounding allows, and which denominator was used."""

import math
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from evalbayes.coverage import observed_score
from evalbayes.errors import check_whole
from evalbayes.schema import require_board, scored_trials
from evalbayes.textbook import Floats, Integers

WHOLE_PERCENT = 2
"""Decimals of a proportion printed in whole percent: no board rounds more coarsely."""
MOST_DECIMALS = 12
SLIP = 1e-9
"""Counts closer than this are the same one, differently rounded by the machine."""


class Fraction(NamedTuple):
    """A rate that rows can give: so many passes out of so many."""

    passes: float
    total: int
    of: str


def honesty_gate(outcomes: xr.Dataset, *, decimals: int | None = None) -> xr.Dataset:
    """Hold each published rate against the entry's own rows, which must agree to within one task.

    With n tasks scored, an entry passes where |published n - sum_t p_t| <= 1 + n 10^-decimals / 2: one task, and what
    the rounding of the published figure allows. The rule is that of a public review of a leaderboard
    (swe-bench.github.io, pull request 60).

    Parameters
    ----------
    outcomes
        A board; ``published`` over config is the source's own rate in [0, 1].
    decimals
        Of the published proportions: 3 for a percentage with one decimal. By default, those of the median figure
        of the board, at least 2, and a figure with more has its own: 0.5 on a board of 0.792 and 0.648 is 0.500.

    Returns
    -------
    xarray.Dataset
        Over config: ``observed`` (mean of task means), ``published``, ``count`` (sum of task means, in tasks),
        ``claimed`` (published n, in tasks), ``tasks`` (scored, n), ``allowance`` (1 and the rounding, in tasks) and
        ``gate``: ``"passed"``, ``"failed"``, ``"no published rate"`` or ``"no per-task results"``.

    Raises
    ------
    ArgumentError
        If decimals is not a whole number from 0 up.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[1] * 388 + [0] * 112], [[1] * 500], configs=["a"], tasks=[f"t{i}" for i in range(500)])
    >>> seen = honesty_gate(board.assign(published=("config", [0.792])))
    >>> seen["count"].item(), seen.claimed.item(), seen.gate.item()
    (388.0, 396.0, 'failed')
    """
    board = require_board(outcomes).reset_coords(drop=True)
    observed = observed_score(board)
    published = board["published"] if "published" in board else xr.full_like(observed, np.nan)
    tasks = (board["trials"] > 0).sum("task")
    count = (observed * tasks).fillna(0.0)
    half = published.copy(data=rounding(published.values, decimals))
    off = beyond_a_task(published, half, count, tasks)
    gate = np.where(off, "failed", "passed").astype(object)
    gate[published.isnull().values] = "no published rate"
    gate[(tasks == 0).values] = "no per-task results"
    facts = {"observed": observed, "published": published, "count": count, "claimed": published * tasks}
    return xr.Dataset(facts | {"tasks": tasks, "allowance": 1 + half * tasks, "gate": ("config", gate)}).drop_attrs()


def beyond_a_task(rate: Any, half: Any, passes: Any, total: Any) -> Any:
    """Say whether a rate is more than one task, and its rounding, off so many passes of so many tasks."""
    return abs(rate * total - passes) > 1 + half * total + SLIP


def rounding(rates: Floats, decimals: int | None = None) -> Floats:
    """Return half a unit of the last decimal of each published rate; NaN where there is none.

    >>> rounding(np.array([0.792, 0.5, 0.6484])).tolist()
    [0.0005, 0.0005, 5e-05]
    """
    if decimals is not None:
        check_whole("decimals", decimals, 0)
        return np.where(np.isnan(rates), np.nan, 0.5 * 10.0**-decimals)
    known = ~np.isnan(rates)
    own = _decimals(rates)
    usual = np.sort(own[known])[known.sum() // 2] if known.any() else WHOLE_PERCENT
    places = np.maximum(own, max(int(usual), WHOLE_PERCENT))
    return np.where(known, 0.5 * 10.0**-places, np.nan)


def _decimals(rates: Floats) -> Integers:
    """Return the fewest decimals that write each rate."""
    exact = [abs(rates - np.round(rates, d)) < 0.5 * 10.0**-MOST_DECIMALS for d in range(MOST_DECIMALS)]
    return np.where(np.any(exact, axis=0), np.argmax(exact, axis=0), MOST_DECIMALS)


def fractions(outcomes: xr.Dataset, config: str) -> list[Fraction]:
    """Return the rates that one entry's rows give under every denominator in use, the board's own first, none if none.

    The mean of task means counts as so many tasks passed of so many.
    """
    one = outcomes.reset_coords(drop=True).sel(config=config)
    k, errors, scored = one["successes"].values, one["errors"].values, scored_trials(one).values
    attempts, under = scored + errors, one["trials"].values
    if not under.any():
        return []
    by_task = [
        _by_task(k, scored, "scored tasks"),
        _by_task(k, attempts, "attempted tasks, errored runs as failures"),
        _by_task(k, under, "tasks of the board, those not scored as failures", one.sizes["task"]),
    ]
    own = outcomes.attrs.get("error_policy") == "failure"
    by_run = [
        Fraction(float(k.sum()), int(scored.sum()), "scored runs"),
        Fraction(float(k.sum()), int(attempts.sum()), "attempted runs, errored ones as failures"),
    ]
    found = [by_task[own], *by_task, *by_run]
    return [fraction for fraction in found if fraction.total]


def _by_task(k: Integers, n: Integers, of: str, total: int | None = None) -> Fraction:
    return Fraction(float((k / np.maximum(n, 1)).sum()), int((n > 0).sum()) if total is None else total, of)


def fits(rate: float, half: float, fraction: Fraction) -> bool:
    """Say whether a fraction prints as a rate."""
    return abs(rate * fraction.total - fraction.passes) <= half * fraction.total + SLIP


def whole_counts(rate: float, half: float, total: int) -> range:
    """Return the whole numbers out of ``total`` that print as a rate (the GRIM test of a mean of whole numbers).

    Source: Brown and Heathers, Social Psychological and Personality Science 8, 2017.

    >>> whole_counts(0.792, 0.0005, 500), len(whole_counts(0.793, 0.0005, 500))
    (range(396, 397), 0)
    """
    low, high = math.ceil((rate - half) * total - SLIP), math.floor((rate + half) * total + SLIP)
    return range(max(low, 0), max(min(high, total) + 1, max(low, 0)))


def printed(figure: Any) -> tuple[float, float]:
    """Return a printed figure and half a unit of its last decimal; text keeps its trailing zeros.

    >>> printed("49.0"), printed(0.5)
    ((49.0, 0.05), (0.5, 0.05))
    """
    if isinstance(figure, str):
        return float(figure), 0.5 * 10.0 ** -len(figure.strip().partition(".")[2])
    return float(figure), float(0.5 * 10.0 ** -_decimals(np.array([figure], float))[0])
