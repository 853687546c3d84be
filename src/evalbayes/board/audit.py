"""What does not add up on a board: published figures against rows, names, and entries that are one entry."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from evalbayes.board.published import (
    Fraction,
    beyond_a_task,
    fits,
    fractions,
    honesty_gate,
    printed,
    rounding,
    whole_counts,
)
from evalbayes.board.standard_errors import SILENT, standard_errors
from evalbayes.board.triples import FORMS, impossible_triples
from evalbayes.check import copies
from evalbayes.check.copies import CAUTION
from evalbayes.coverage import near_names
from evalbayes.errors import ArgumentError
from evalbayes.schema import scored_trials

SEVERITIES = ("error", "warning", "note")
COUNTED = ("successes", "trials", "errors", "tasks")
TRIPLE = ("stable", "variance", "runs")
WHOLE = (*COUNTED, "runs")
HEADER = (*COUNTED, "rate", "se", *TRIPLE)

Header = Mapping[str, Mapping[str, Any]]


class Finding(NamedTuple):
    """One thing that does not add up; ``config`` is blank where it is about tasks or several entries."""

    severity: str
    kind: str
    config: str
    detail: str


def audit(outcomes: xr.Dataset, *, header: Header | None = None, decimals: int | None = None) -> xr.Dataset:
    """Hold a board's published figures and the headers of its files against its rows, and look for doubles.

    ========================  ========  ======================================================================
    kind                      severity  found where
    ========================  ========  ======================================================================
    published_rate            error     the published rate is more than one task, and its rounding, off the
                                        rows (`honesty_gate`)
    denominator               warning   it is the rate of the rows under another denominator than the board's
    impossible_rate           warning   no whole number of passes, out of any denominator, prints as it
    header_count              error     a header's successes, trials, errors or tasks are not those of the rows
    header_rate               error     as published_rate, of the header's rate
    standard_error            error     a header's standard error is 0 inside (0, 1), or is none that the rows
                                        give
    impossible_triple         error     no table of runs prints as the header's rate, stable and variance
    identical_entries         warning   the counts of two entries agree on every task, beyond chance; a note
                                        where chance would do it (`check.copies`)
    copied_runs               warning   runs of an entry agree too often, or never differ where others' do
                                        (`check.copies`): a question, not a charge
    near_duplicate_names      warning   names that may be one (`outcomes.near_duplicates`)
    rounding                  note      a rate within one task of the rows that none of their denominators gives
    no_per_task_results       note      an entry is published and has no rows: nothing of it can be checked
    ========================  ========  ======================================================================

    Parameters
    ----------
    outcomes
        A board, perhaps with ``published`` (config), rates in [0, 1].
    header
        What a source says of an entry beside its rows; by default what `evalbayes.read` found in the log, the attribute
        ``header``. Config to any of ``successes``, ``trials``, ``errors``,
        ``tasks`` (counts); ``rate`` and ``se`` (proportions); and ``stable`` (share of tasks that all runs passed) and
        ``variance`` (mean p (1 - p)) with ``runs``. Proportions as text keep their trailing zeros and their rounding.
    decimals
        Of the published proportions: see `honesty_gate`.

    Returns
    -------
    xarray.Dataset
        Over ``finding``, worst first, then by kind and config: ``severity``, ``kind``, ``config`` and ``detail``, text.
        attrs ``errors``, ``warnings`` and ``notes``, how many, and ``checked``, what there was to hold against the
        rows. No finding is not a proof: a figure may be wrong and add up.

    Raises
    ------
    ArgumentError
        If a header names a config or a figure that does not exist, or a figure is not a number.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[1] * 388 + [0] * 112], [[1] * 500], configs=["a"], tasks=[f"t{i}" for i in range(500)])
    >>> seen = audit(board.assign(published=("config", [0.792])))
    >>> print(seen.kind.item(), "-", seen.detail.item())
    published_rate - published 0.792 implies 396 of 500 tasks, the rows have 388 (0.776, -1.6 points)
    """
    header = _kept(outcomes) if header is None else header
    _check(header, outcomes)
    found = [
        *_published(outcomes, decimals),
        *_of_headers(outcomes, header),
        *_doubles(outcomes),
        *_names(outcomes),
    ]
    found.sort(key=lambda one: (SEVERITIES.index(one.severity), one[1:]))
    columns = zip(Finding._fields, zip(*found, strict=True) if found else [()] * 4, strict=True)
    result = xr.Dataset({name: ("finding", np.array(list(values), dtype=object)) for name, values in columns})
    counts = {f"{severity}s": sum(one.severity == severity for one in found) for severity in SEVERITIES}
    rates = int(outcomes["published"].notnull().sum()) if "published" in outcomes else 0
    result.attrs = counts | {"checked": f"{rates} published rates, {len(header)} headers, names and counts of entries"}
    return result


def _kept(outcomes: xr.Dataset) -> Header:
    """Return the header figures that reading kept, of configs that are still on the board."""
    found = json.loads(outcomes.attrs.get("header", "{}"))
    there = set(outcomes["config"].values.tolist())
    return {config: figures for config, figures in found.items() if config in there}


def _check(header: Header, outcomes: xr.Dataset) -> None:
    if not isinstance(header, Mapping) or not all(isinstance(figures, Mapping) for figures in header.values()):
        raise ArgumentError("header: give a mapping from config to its figures, such as {'a': {'rate': '0.792'}}")
    configs = set(outcomes["config"].values.tolist())
    for config, figures in header.items():
        if config not in configs:
            raise ArgumentError(f"header: config {config!r} is not on the board")
        for name, figure in figures.items():
            if name not in HEADER:
                raise ArgumentError(f"header of {config!r}: {name!r} is not one of {', '.join(HEADER)}")
            _check_figure(config, name, figure)


def _check_figure(config: str, name: str, figure: Any) -> None:
    try:
        value, _ = printed(figure)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"header of {config!r}: {name} {figure!r} is not a number") from None
    if not math.isfinite(value) or value < 0:
        raise ArgumentError(f"header of {config!r}: {name} {figure!r}: give a finite number of 0 or more")
    if name in WHOLE and value != int(value):
        raise ArgumentError(f"header of {config!r}: {name} {figure!r} is not a whole number")
    if name not in WHOLE and value > 1:
        raise ArgumentError(f"header of {config!r}: {name} {figure!r} is no proportion; divide percentages by 100")


def _published(outcomes: xr.Dataset, decimals: int | None) -> Iterator[Finding]:
    gate = honesty_gate(outcomes, decimals=decimals)
    rates, tasks, count = (gate[name].values for name in ("published", "tasks", "count"))
    half = rounding(rates, decimals)
    for c in np.flatnonzero(~np.isnan(rates)):
        if not (tasks[c] and fits(rates[c], half[c], Fraction(count[c], tasks[c], ""))):
            yield from _of_rate(outcomes, str(gate["config"].values[c]), float(rates[c]), float(half[c]), "published")


def _of_rate(outcomes: xr.Dataset, config: str, rate: float, half: float, source: str) -> Iterator[Finding]:
    """Hold a stated rate against the rows of an entry, under every denominator."""
    said, found = f"{source} {rate:.10g}", fractions(outcomes, config)
    if not found:
        runs = max(int(outcomes["trials"].max()), 1) * outcomes.sizes["task"]
        if not whole_counts(rate, half, runs):
            yield Finding("warning", "impossible_rate", config, f"{said} is no whole number of passes out of {runs}")
        yield Finding("note", "no_per_task_results", config, f"{said}, {SILENT}: nothing to hold it against")
        return
    own = found[0]
    if fits(rate, half, own):
        return
    gap = own.passes / own.total - rate
    off = beyond_a_task(rate, half, own.passes, own.total)
    if off:
        implied = f"implies {rate * own.total:.6g} of {own.total} tasks, the rows have {own.passes:.6g}"
        detail = f"{said} {implied} ({own.passes / own.total:.6g}, {100 * gap:+.1f} points)"
        yield Finding("error", f"{source}_rate", config, detail)
    other = next((fraction for fraction in found[1:] if fits(rate, half, fraction)), None)
    if other is not None:
        detail = f"{said} is {_shown(other)}, not {_shown(own)} = {own.passes / own.total:.6g}"
        yield Finding("warning", "denominator", config, detail)
    elif not any(whole_counts(rate, half, total) for total in _totals(outcomes, config, found)):
        totals = ", ".join(map(str, sorted({fraction.total for fraction in found})))
        yield Finding("warning", "impossible_rate", config, f"{said} is no whole number of passes out of {totals}")
    elif not off:
        yield Finding("note", "rounding", config, f"{said} is within one task of {_shown(own)}, and not that rate")


def _shown(fraction: Fraction) -> str:
    return f"{fraction.passes:.6g}/{fraction.total} ({fraction.of})"


def _totals(outcomes: xr.Dataset, config: str, found: list[Fraction]) -> list[int]:
    """Return what a whole number of passes may be out of: tasks, and runs where tasks have several."""
    one = outcomes.sel(config=config)
    runs = np.unique([one["trials"].values, (scored_trials(one) + one["errors"]).values])
    scale = math.lcm(*runs[runs > 0].tolist())
    return [fraction.total * (scale if "tasks" in fraction.of else 1) for fraction in found]


def _of_headers(outcomes: xr.Dataset, header: Header) -> Iterator[Finding]:
    errors = standard_errors(outcomes.drop_vars("published", errors="ignore"))["se"] if _any(header, "se") else None
    for config, figures in header.items():
        yield from _counts(outcomes, config, figures)
        if "rate" in figures:
            yield from _of_rate(outcomes, config, *_stated(figures["rate"]), "header")
        if errors is not None and "se" in figures:
            yield from _standard_error(outcomes, config, figures["se"], errors.sel(config=config))
        if all(name in figures for name in ("rate", *TRIPLE)):
            yield from _triple(outcomes, config, figures)


def _stated(rate: Any) -> tuple[float, float]:
    """Return a stated rate and its rounding: that of its text, or of a number as for a published rate."""
    return printed(rate) if isinstance(rate, str) else (float(rate), float(rounding(np.array([rate], float))[0]))


def _any(header: Header, name: str) -> bool:
    return any(name in figures for figures in header.values())


def _counts(outcomes: xr.Dataset, config: str, figures: Mapping[str, Any]) -> Iterator[Finding]:
    """Hold counts against rows; ``trials`` may be scored runs or attempts, ``tasks`` those scored or all."""
    one = outcomes.sel(config=config)
    scored, errors = int(scored_trials(one).sum()), int(one["errors"].sum())
    rows = {
        "successes": {int(one["successes"].sum()): "passes"},
        "trials": {scored + errors: "attempts", scored: "scored runs"},
        "errors": {errors: "attempts without a score"},
        "tasks": {one.sizes["task"]: "tasks of the board", int((one["trials"] > 0).sum()): "scored tasks"},
    }
    for name in COUNTED:
        if name in figures and float(figures[name]) not in rows[name]:
            have = " and ".join(f"{count} {of}" for count, of in sorted(rows[name].items()))
            yield Finding("error", "header_count", config, f"header says {figures[name]} {name}, the rows have {have}")


def _standard_error(outcomes: xr.Dataset, config: str, figure: Any, errors: xr.DataArray) -> Iterator[Finding]:
    value, half = printed(figure)
    known = {str(name): float(se) for name, se in zip(errors["kind"].values, errors.values, strict=True)}
    close = [name for name, se in known.items() if abs(se - value) <= half + 1e-9]
    if np.isnan(known["binomial"]) if value == 0 else close:
        return
    recomputed = ", ".join(f"{name} {se:.6f}" for name, se in known.items() if not np.isnan(se))
    why = "0 although the rate is inside (0, 1)" if value == 0 else f"{figure}, which is none that the rows give"
    detail = f"header's standard error is {why}; recomputed: {recomputed or 'none can be had'}"
    yield Finding("error", "standard_error", config, detail)


def _triple(outcomes: xr.Dataset, config: str, figures: Mapping[str, Any]) -> Iterator[Finding]:
    tasks = int(figures.get("tasks", (outcomes["trials"].sel(config=config) > 0).sum())) or outcomes.sizes["task"]
    triple = [figures[name] for name in ("rate", "stable", "variance")]
    seen = impossible_triples(*([figure] for figure in triple), tasks=tasks, runs=int(figures["runs"])).isel(row=0)
    if (seen["possible"] != 0).any():
        return
    said = "rate {}, stable {}, variance {}".format(*triple)
    alone = [name for name in ("rate", "stable") if seen[f"{name}_possible"] == 0]
    alone += ["variance"] * (not seen["variance_possible"].any())
    why = f"not even {' and '.join(alone)} alone" if alone else "each could be, not together"
    detail = f"no {tasks} tasks of {figures['runs']} runs print as {said}, with {' or '.join(FORMS)}: {why}"
    yield Finding("error", "impossible_triple", config, detail)


def _doubles(outcomes: xr.Dataset) -> Iterator[Finding]:
    seen = copies(outcomes)
    level = 1 - seen.attrs["prob"]
    for config, why, steady, pairs in zip(
        seen["config"].values.tolist(),
        seen["why"].values.tolist(),
        seen["steady_p_holm"].values.tolist(),
        (seen["p_holm"] <= level).any("pair").values.tolist(),
        strict=True,
    ):
        if pairs or steady <= level:
            yield Finding("warning", "copied_runs", config, f"{why}; {CAUTION}")
    for config, twin, p in zip(
        *(seen[name].values.tolist() for name in ("config", "twin", "twin_p_adjusted")), strict=True
    ):
        if twin:
            severity = "warning" if p <= level else "note"
            detail = f"the counts of {twin!r} on every task; by chance with p = {p:.2g}, over all pairs of entries"
            yield Finding(severity, "identical_entries", config, detail)


def _names(outcomes: xr.Dataset) -> Iterator[Finding]:
    for dim in ("config", "task"):
        for group in near_names(outcomes[dim].values.tolist()):
            detail = f"{dim} names {', '.join(map(repr, group))} may be one; merge them with {dim}_map= if they are"
            yield Finding("warning", "near_duplicate_names", group[0] if dim == "config" else "", detail)
