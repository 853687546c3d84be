"""What `evalbayes audit` prints: what does not add up, and each entry with its standard errors and its group."""

from typing import Any, NamedTuple

import xarray as xr

from evalbayes import board as leaderboard
from evalbayes.errors import NotIdentifiedError
from evalbayes.frequentist.paired import why_unranked
from evalbayes.report.board import policies_of
from evalbayes.report.numbers import plain, rows_of


class Audited(NamedTuple):
    """Lines and a table of findings, lines and a table of entries, and all of it as JSON holds it."""

    lines: list[str]
    findings: dict[str, list[Any]]
    entry_lines: list[str]
    entries: dict[str, list[Any]]
    numbers: dict[str, Any]


def audited(board: xr.Dataset, *, level: float, correction: str | None, reduce: str | None) -> Audited:
    """Audit a board, and say what each entry's standard errors and significance group are, or why there is none."""
    found = leaderboard.audit(board)
    policies = policies_of(board)
    errors, warnings, notes = (found.attrs[name] for name in ("errors", "warnings", "notes"))
    said = f"{errors} errors, {warnings} warnings, {notes} notes; checked {found.attrs['checked']}"
    table = {name: plain(found[name].values) for name in ("severity", "kind", "config", "detail")}
    entries, lines = _entries(board, level, correction, reduce)
    numbers = {
        "audit": said,
        "policies": policies,
        "findings": rows_of(table),
        "entry_lines": lines,
        "entries": rows_of(entries),
    }
    return Audited([said, *policies], table, lines, entries, numbers)


def _entries(board: xr.Dataset, level: float, correction: Any, reduce: Any) -> tuple[dict[str, list[Any]], list[str]]:
    se = leaderboard.standard_errors(board)
    table = {name: plain(se[name].values) for name in ("config", "observed", "tasks")}
    kinds = ["binomial", "tasks_sampled"] + ["tasks_fixed"] * bool((board["trials"] > 1).any())
    table |= {f"se_{kind}": plain(se["se"].sel(kind=kind).values) for kind in kinds}
    reasons = se["reason"].sel(kind=kinds).transpose("config", "kind").values
    why = [dict.fromkeys(text for text in row if text) for row in reasons]
    said = {kind: (se["heading"].sel(kind=kind).item(), se["assumes"].sel(kind=kind).item()) for kind in kinds}
    lines = [
        "observed: the mean of task means, an exact fact about these runs",
        *(f"se_{kind}: {heading}: {assumes}" for kind, (heading, assumes) in said.items()),
    ]
    try:
        groups = leaderboard.mcnemar_groups(board, level=level, correction=correction, reduce=reduce)
    except NotIdentifiedError as refused:
        return _ordered(table, why), [*lines, f"no groups: {refused}"]
    adjusted = ["p_anchor_adjusted"] if correction else []
    shown = ("rank", "group", "anchor", "p_anchor", *adjusted, "verdict", "anchor_tied")
    table |= {name: plain(groups[name].values) for name in shown}
    # Codes for "none" in the Dataset, whose columns are whole numbers; in a table what is not known is blank.
    table |= {name: [value or None for value in table[name]] for name in ("rank", "group")}
    apart = why_unranked(board)
    table["rank"] = [None if text else rank for rank, text in zip(table["rank"], apart, strict=True)]
    if not any(table["anchor_tied"]):
        del table["anchor_tied"]
    about = "; ".join(str(groups.attrs[name]) for name in ("test", "correction", "note", "object"))
    lines.append(f"group: entries that the test does not separate at {level:g} from the group's best; {about}")
    alone = [f"{text}: no rank, and its group says nothing of the two" if text else "" for text in apart]
    for more in (groups["reason"].values, alone):
        why = [one | dict.fromkeys([text] if text else []) for one, text in zip(why, more, strict=True)]
    return _ordered(table, why), lines


def _ordered(table: dict[str, list[Any]], why: list[dict[str, None]]) -> dict[str, list[Any]]:
    """Return the entries best first, as observed, those without a run last, and why a number of theirs is missing."""
    if any(why):
        table = table | {"reason": ["; ".join(texts) for texts in why]}
    observed = [-1.0 if value is None else value for value in table["observed"]]
    order = sorted(range(len(observed)), key=lambda i: (-observed[i], table["config"][i]))
    return {name: [values[i] for i in order] for name, values in table.items()}
