"""What the page says: answers and a fit's own checks, turned into the texts and positions that the template prints."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.report.forest import Axis, rank_axis, score_axis
from evalbayes.report.words import entitle, percent, probability, ranks, shorten, span


@dataclass(frozen=True)
class Answers:
    """The answers on the page; where no cell was run twice ``fixed`` is None and ``repetition`` empty.

    ``adjacent``, ``best_set`` and ``wins`` are None where entries are not ranked; ``wins`` is of those that are shown.

    ``repetition`` holds what `compare` says of the ICC and of the ceiling.
    """

    observed: xr.DataArray
    score: xr.Dataset
    bootstrap: xr.Dataset
    rank: xr.Dataset
    best: xr.Dataset
    top: xr.Dataset
    fixed: xr.Dataset | None
    repetition: tuple[xr.Dataset, ...] = ()
    adjacent: xr.Dataset | None = None
    best_set: xr.Dataset | None = None
    wins: xr.Dataset | None = None

    def all(self) -> tuple[xr.Dataset, ...]:
        """Return those that are answers, in the order of the page."""
        found = (self.score, self.bootstrap, self.fixed, self.rank, self.best, self.top)
        more = (self.adjacent, self.best_set, self.wins)
        return tuple(result for result in (*found, *more) if result is not None)


@dataclass(frozen=True)
class Span:
    """An interval on an axis, in percent of its width; None where it is not known."""

    low: float | None
    high: float | None
    at: float | None

    @property
    def known(self) -> bool:
        """Whether there is an interval to draw."""
        return self.low is not None and self.high is not None


@dataclass(frozen=True)
class Row:
    """One config as the table and the forest show it."""

    place: str
    name: str
    short: str
    observed: str
    coverage: str
    score: str
    interval: str
    fixed: str
    bootstrap: str
    rank: str
    best: str
    top: str
    drawn: Span
    resampled: Span
    ranked: Span
    observed_at: float | None


@dataclass(frozen=True)
class Check:
    """One line of the sampler checks."""

    name: str
    value: str
    limit: str
    verdict: str
    meaning: str


def places(score: np.ndarray) -> list[str]:
    """Return the place of each score, highest first, ties sharing the best place: 1, 1, 3; NaN has none.

    >>> places(np.array([0.5, 0.7, 0.7, np.nan]))
    ['3', '1', '1', '–']
    """
    known = score[~np.isnan(score)]
    return ["–" if math.isnan(value) else str(1 + int((known > value).sum())) for value in score]


def order(answers: Answers) -> np.ndarray:
    """Return the order of the rows: by score, then observed proportion, then name, the unknown last."""
    score = np.where(answers.score.estimate.isnull(), answers.observed, answers.score.estimate)
    names = answers.score.config.values.astype(str)
    return np.lexsort((names, -np.nan_to_num(answers.observed.values, nan=-1), -np.nan_to_num(score, nan=-1)))


def rows(answers: Answers, coverage: np.ndarray) -> tuple[list[Row], Axis, Axis]:
    """Return the rows of the table and the forest, best first, and the forest's two axes."""
    score, low, high = _parts(answers.score)
    _, boot_low, boot_high = _parts(answers.bootstrap)
    _, fixed_low, fixed_high = (
        _parts(answers.fixed) if answers.fixed is not None else (np.full(len(score), np.nan),) * 3
    )
    rank, rank_low, rank_high = _parts(answers.rank)
    best, top = answers.best.estimate.values, answers.top.estimate.values
    observed = answers.observed.values
    place, names = places(score), answers.score.config.values.astype(str).tolist()
    x = score_axis(np.concatenate([low, high, boot_low, boot_high, observed, score]).tolist())
    y = rank_axis(len(score))
    table = [
        Row(
            place=place[i],
            name=names[i],
            short=shorten(names[i]),
            observed=percent(observed[i]),
            coverage="" if coverage[i] == 1 else f"{percent(coverage[i])} of tasks",
            score=percent(score[i]),
            interval=span(low[i], high[i]),
            fixed=span(fixed_low[i], fixed_high[i]),
            bootstrap=span(boot_low[i], boot_high[i]),
            rank=ranks(rank_low[i], rank_high[i]),
            best=probability(best[i]),
            top=probability(top[i]),
            drawn=Span(x.at(low[i]), x.at(high[i]), x.at(score[i])),
            resampled=Span(x.at(boot_low[i]), x.at(boot_high[i]), None),
            ranked=Span(y.at(rank_low[i]), y.at(rank_high[i]), y.at(rank[i])),
            observed_at=x.at(observed[i]),
        )
        for i in order(answers)
    ]
    return table, x, y


def _parts(result: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lower, upper = result.interval.transpose("ci_bound", "config").values
    return result.estimate.values, lower, upper


def reasons(answers: Answers) -> list[str]:
    """Return why values on the page are missing, each reason once, with the quantity it concerns."""
    found: list[str] = []
    for result in answers.all():
        missing = result.estimate.isnull()
        if result is not answers.best and result is not answers.top:  # shown with their interval
            missing = missing | result.interval.isnull().any("ci_bound")
        what = f"{entitle(result.quantity.item())}, tasks={result.tasks.item()}, {result.method.item()}"
        found += [f"{what}: {reason}" for reason in result.reason.values[missing.values]]
    return list(dict.fromkeys(found))


def headline(answers: Answers) -> list[str]:
    """Return what a reader should take away, in one to three sentences."""
    count = answers.score.sizes["config"]
    if bool(answers.rank.estimate.isnull().all()):
        return [f"Entries are not ranked: {answers.rank.reason.values[0]}."] if count > 1 else []
    lower = answers.rank.interval.sel(ci_bound="lower").values
    width = np.ptp(answers.rank.interval.transpose("ci_bound", "config").values, axis=0)
    leader = int(np.nanargmax(answers.best.estimate.values))
    level = 100 * float(answers.rank.ci_prob)
    first = int((lower <= 1).sum())
    said = [
        f"{first} of {count} entries can be first on new tasks: their {level:g}% rank interval includes rank 1."
        if first > 1
        else f"One entry is clearly first: no other's {level:g}% rank interval includes rank 1.",
        f"The most probable best is {answers.score.config.values[leader]}, "
        f"with probability {probability(float(answers.best.estimate[leader]))}.",
    ]
    if count > 2:
        said.append(f"A typical (median) rank interval spans {np.nanmedian(width) + 1:.0f} of {count} places.")
    return said


def unresolved(answers: Answers) -> str:
    """Return which neighbours in the table are unresolved and who may be best, or nothing where none are ranked."""
    if answers.adjacent is None or answers.best_set is None:
        return ""
    level, pairs = f"{100 * float(answers.best_set.ci_prob):g}%", str(answers.adjacent.attrs["sentence"])
    return f"{pairs[0].upper()}{pairs[1:]}. Best with {level}: {answers.best_set.attrs['members']}."


def widths(answers: Answers) -> str:
    """Return, in plain words, how the posterior's intervals compare with the bootstrap's."""
    _, low, high = _parts(answers.score)
    _, boot_low, boot_high = _parts(answers.bootstrap)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (high - low) / (boot_high - boot_low)
    ratio = ratio[np.isfinite(ratio)]
    if not ratio.size:
        return "There are no two intervals to compare."
    middle = float(np.median(ratio))
    verdict = "about as wide as" if 0.9 <= middle <= 1.1 else "narrower than" if middle < 0.9 else "wider than"
    return (
        f"The model's intervals are {verdict} the bootstrap's: the ratio of widths is {middle:.2f} at the median, "
        f"{ratio.min():.2f} to {ratio.max():.2f} over all entries."
    )


def repetition(answers: Answers) -> list[list[str]]:
    """Return a row for each config, in the table's order: name, ICC and ceiling by both sides, and where they part."""
    if not answers.repetition:
        return []
    icc, ceiling = answers.repetition
    lines = []
    for i in order(answers):
        one = [result.isel(config=i) for result in (icc, ceiling)]
        values = [_value(result.isel(method=side)) for result in one for side in (0, 1)]
        lines.append([str(icc.config.values[i]), *values, _parting(one)])
    return lines


def _value(result: xr.Dataset) -> str:
    if math.isnan(result.estimate):
        return "–"
    low, high = result.interval.values
    ends = "" if math.isnan(low) else f" ({low:.2f}–{_end(high)})"
    return f"{_end(float(result.estimate))}{ends}"


def _end(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.2f}"


def _parting(compared: list[xr.Dataset]) -> str:
    """Return where the two sides differ, if they do, and each reason once."""
    said, why = [], []
    for result in compared:
        verdict, what = str(result.verdict.item()).split(":")[0], entitle(result.quantity.item())
        if verdict == "differ":
            said.append(f"{what}: estimates outside each other's interval")
        elif verdict == "differ in width":
            said.append(f"{what}: the model's interval {float(result.width_ratio):.2f} times as wide")
        why += [str(result.why.item())] if verdict.startswith("differ") else []
    return "; ".join([*said, *(reason for reason in dict.fromkeys(why) if reason)])


WORDS = {
    "k_hat": ("Pareto k-hat", ".2f"),
    "weight_ess": ("Weight ESS", ",.0f"),
    "grid_error": ("Grid error", ".1e"),
    "r_hat": ("R-hat, worst", ".3f"),
    "ess_bulk": ("Bulk ESS, least", ",.0f"),
    "ess_tail": ("Tail ESS, least", ",.0f"),
    "divergences": ("Divergences", ".0f"),
    "bfmi": ("BFMI, worst chain", ".2f"),
    "stuck": ("Quantities stuck", ".0f"),
    "dispersion": ("Dispersion of repeated cells", ".2f"),
}
"""What each check of `check.sampler` is called on the page, and how its value is written."""


def checks(seen: xr.Dataset, attrs: Mapping[Any, Any], score: xr.Dataset) -> list[Check]:
    """Return what `check.sampler` found as the page shows it, with the Monte Carlo error and the population gap."""
    lines = [_line(seen.sel(check=name)) for name in seen["check"].values if name in WORDS]
    mcse = float(score.interval_mcse.max()) if "interval_mcse" in score else math.nan
    if math.isfinite(mcse):
        width = float((score.interval.sel(ci_bound="upper") - score.interval.sel(ci_bound="lower")).median())
        meaning = f"the largest over entries; a typical interval is {100 * width:.1f} points wide"
        value = f"{100 * mcse:.2f} points"
        lines.append(Check("Monte Carlo error of an interval end", value, "–", "reported", meaning))
    if "mean_gap" in attrs:
        lines.append(_population_gap(attrs))
    return lines


def _line(check: xr.Dataset) -> Check:
    name, form = WORDS[str(check["check"].item())]
    verdict = "passed" if bool(check.passed) else "failed"
    limit = f"{check.side.item()} {float(check.limit):.3g}"
    return Check(name, format(float(check.value), form), limit, verdict, str(check.meaning.item()))


def _population_gap(attrs: Mapping[Any, Any]) -> Check:
    gap, worst = 100 * float(attrs["mean_gap"]), 100 * float(attrs.get("worst_gap", math.nan))
    value = f"{gap:+.2f} points on average, {worst:+.2f} at worst".replace("-", "−")
    limit = "mean within half a standard error, each inside its predictive range"
    meaning = "score for new tasks minus observed proportion: a wrong distribution of task effects shows here"
    return Check("Population gap", value, limit, str(attrs.get("gate", "reported")), meaning)
