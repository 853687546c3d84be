"""Significance groups of a leaderboard: exact McNemar tests on shared tasks, and the anchored sweep that reads them.

On the tasks that two entries share, b are solved by the first alone and c by the second alone. If neither is better, b
is Binomial(b + c, 1/2) given their sum; tasks that both or neither solve say nothing, so dead tasks change no p-value::

    exact   min(1, 2 P(X <= min(b, c)))
    mid-p   P(X <= m) + P(X < m), m = min(b, c);   1 - P(X = m) / 2 where b = c
            (Fagerland, Lydersen and Laake, BMC Medical Research Methodology 13:91, 2013)

and 1 where there is no discordant task, whichever the version.
"""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy import special, stats

from evalbayes.board.published import honesty_gate
from evalbayes.board.standard_errors import SILENT, disagreement
from evalbayes.check.runs import scored_runs
from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.frequentist.targets import needs_two
from evalbayes.textbook import Floats, Integers, holm, standing

Bools = npt.NDArray[np.bool_]

CORRECTIONS = {"holm": "Holm", "fdr_bh": "Benjamini-Hochberg"}
REDUCTIONS = ("majority", "first")
LOWER_BOUND = "without a multiplicity correction group sizes are a lower bound"
PAIRED = "paired comparison on shared tasks: neither a standard error of a score nor its repeatability"


def mcnemar_p(wins: npt.ArrayLike, losses: npt.ArrayLike, *, mid_p: bool = False) -> Floats:
    """Return two-sided p-values of McNemar's exact test from discordant counts, of one shape.

    Parameters
    ----------
    wins, losses
        Tasks that only the first, and only the second, of two entries solved.
    mid_p
        Count half the probability of the observed table: less conservative, and above the level now and then.

    Examples
    --------
    >>> mcnemar_p([29, 10, 0], [24, 3, 0]).round(6).tolist(), mcnemar_p(10, 3, mid_p=True).round(4).item()
    ([0.583132, 0.092285, 1.0], 0.0574)
    """
    b, c = np.broadcast_arrays(np.asarray(wins, np.int64), np.asarray(losses, np.int64))
    if (b < 0).any() or (c < 0).any():
        raise ArgumentError("wins, losses: give counts of tasks, 0 or more")
    few, total = np.minimum(b, c), b + c
    tail = special.bdtr(few.astype(float), total, 0.5)
    if not mid_p:
        return np.asarray(np.minimum(2 * tail, 1.0))
    below = np.where(few > 0, special.bdtr(np.maximum(few - 1.0, 0), total, 0.5), 0.0)
    return np.where(total == 0, 1.0, np.where(b == c, 1 - (tail - below) / 2, tail + below))


def mcnemar_groups(
    outcomes: xr.Dataset,
    *,
    level: float = 0.05,
    mid_p: bool = False,
    correction: Literal["holm", "fdr_bh"] | None = None,
    reduce: Literal["majority", "first"] | None = None,
    decimals: int | None = None,
) -> xr.Dataset:
    """Group the entries of a leaderboard by what the exact McNemar test cannot tell from the group's best.

    The highest entry with per-task results anchors group 1; every entry that the test does not separate from it
    (p > level) joins, in one sweep over all; the highest of the rest anchors group 2, and so on. Entries stand in the
    order of their per-task rates; where two are equal, of their published rates, then of their names. Two entries that
    share no task are not compared: neither joins the other. An entry that fails `honesty_gate` has no group and
    anchors none.

    Members of one group are not shown to be equal, and two members need not be inseparable from each other. Where the
    discordant tasks are so few that no outcome reaches the level (fewer than 6 at 0.05), the pair is not testable, and
    says so: that is no tie.

    Parameters
    ----------
    outcomes
        A board of one run a task; others must be reduced, or tested by `sign_flip`.
    level
        At which an entry is separated from an anchor, in (0, 1).
    mid_p
        Use the mid-p version of the test.
    correction
        None, or over all pairs of entries that share a task and have a group: ``"holm"`` (familywise error rate) or
        ``"fdr_bh"`` (false discovery rate; Benjamini and Hochberg, Journal of the Royal Statistical Society B 57,
        1995). All pairs, because which entries become anchors depends on the data.
    reduce
        How several runs of a task become one outcome: ``"majority"`` (more than half pass; half is a failure) or
        ``"first"`` (the first scored run in the board's order of runs).
    decimals
        Of the published rates: see `honesty_gate`.

    Returns
    -------
    xarray.Dataset
        - over config: ``rate`` (of the outcomes tested), ``rank`` (1 is best, ties share it, 0 without results),
          ``group`` (1, 2, ...; 0 where withheld), ``anchor`` (its name), ``p_anchor`` (raw; NaN for the anchor itself)
          and with a correction ``p_anchor_adjusted``; ``wins_anchor`` and ``losses_anchor`` (tasks that the entry, and
          the anchor, solved alone), ``shared_anchor``, all three NaN where withheld; ``verdict``: ``"anchor"``,
          ``"not separated"``, ``"not testable"``, ``"no discordant task"`` or ``"withheld"``; ``anchor_tied`` (another
          entry of the group has the anchor's rate: published rate or name chose between them); ``silent_above``
          (higher entries that publish nothing per task); ``gate``; ``reason``, why there is no group;
        - over (config, opponent): ``wins`` (tasks that config alone solved; its transpose are the losses), ``shared``,
          ``p`` (NaN where either is withheld or no task is shared), ``p_adjusted`` (with a correction: what the groups
          were made of) and ``testable``, whether so many discordant tasks can reach the level, uncorrected.

        attrs: ``level``, ``test``, ``correction``, ``reduce``, ``pairs`` (tested), ``groups``, ``largest_group``,
        ``note`` and ``object``, and the target, ``tasks`` and ``configs``.

    Raises
    ------
    ArgumentError
        If level, correction or reduce is not one of those.
    NotIdentifiedError
        If a task was run more than once and not reduced, there are fewer than two entries, or none has results.

    Examples
    --------
    >>> from evalbayes.outcomes import from_matrix
    >>> rows = [[1] * 8 + [0] * 2, [1] * 5 + [0] * 5, [0] * 9 + [1]]
    >>> seen = mcnemar_groups(from_matrix(rows, configs=list("abc"), tasks=list("qrstuvwxyz")))
    >>> seen.group.values.tolist(), seen.verdict.values.tolist()
    ([1, 1, 2], ['anchor', 'not testable', 'anchor'])
    """
    _check(level, correction, reduce)
    needs_two("mcnemar_groups", outcomes)
    gate = honesty_gate(outcomes, decimals=decimals)
    if not gate["tasks"].any():
        raise NotIdentifiedError("mcnemar_groups: no entry has per-task results")
    passed, scored = one_outcome(outcomes, reduce)
    wins, shared = _discordant(passed, scored), (scored.astype(float) @ scored.T).astype(np.int64)
    known = (gate["gate"] != "failed").values & scored.any(axis=1)
    told = known[:, None] & known & (shared > 0)
    p = np.where(told, mcnemar_p(wins, wins.T, mid_p=mid_p), np.nan)
    family = np.triu(told, 1)
    used = p if correction is None else _adjusted(p, family, correction)
    rate = passed.sum(axis=1) / np.where(scored.any(axis=1), scored.sum(axis=1), np.nan)
    order = _order(rate, gate, known)
    anchor, group = _sweep(order, (used <= level) | (shared == 0))
    floor = (1.0 if mid_p else 2.0) * 0.5 ** (wins + wins.T)
    pairs = {"wins": wins, "shared": shared, "p": p, "testable": (floor <= level) & told}
    pairs |= {} if correction is None else {"p_adjusted": used}
    facts = _facts(rate, gate, anchor, group, pairs)
    names = gate["config"].values
    data: dict[str, Any] = {name: ("config", value) for name, value in facts.items()}
    data |= {name: (("config", "opponent"), value) for name, value in pairs.items()}
    result = xr.Dataset(data | {"gate": gate["gate"]}, coords={"config": names, "opponent": names})
    result.attrs = _attrs(level, mid_p, correction, reduce, int(family.sum()), group)
    return result


def _check(level: float, correction: Any, reduce: Any) -> None:
    if not 0 < level < 1:
        raise ArgumentError(f"level={level}: give a share between 0 and 1, such as 0.05")
    for name, value, offered in (("correction", correction, tuple(CORRECTIONS)), ("reduce", reduce, REDUCTIONS)):
        if value is not None and value not in offered:
            raise ArgumentError(f"{name}={value!r} is not one of None, {', '.join(map(repr, offered))}")


def one_outcome(outcomes: xr.Dataset, reduce: str | None) -> tuple[Bools, Bools]:
    """Return which tasks each entry passed and which it was scored on, (config, task), one outcome for each.

    Raises
    ------
    NotIdentifiedError
        If a task was run more than once and ``reduce`` is None, or the first run is asked of a board of counts.
    """
    k, n = (outcomes[name].transpose("config", "task").values for name in ("successes", "trials"))
    if reduce is None and (n > 1).any():
        c, t = np.argwhere(n > 1)[0]
        raise NotIdentifiedError(
            f"mcnemar_groups: config {str(outcomes['config'].values[c])!r} has {n[c, t]} runs of task "
            f"{str(outcomes['task'].values[t])!r}, and McNemar's test takes one outcome a task: "
            "say reduce='majority' or 'first', or test task means with board.sign_flip"
        )
    if reduce != "first":
        return 2 * k > n, n > 0
    if (n > 1).any() and "outcome" not in outcomes:
        raise NotIdentifiedError("mcnemar_groups: a board of counts has no first run; use reduce='majority'")
    if "outcome" not in outcomes:
        return k > 0, n > 0
    runs, counted = scored_runs(outcomes)
    first = counted.argmax(axis=2)[..., None]
    return np.take_along_axis(runs, first, axis=2)[..., 0], counted.any(axis=2)


def _discordant(passed: Bools, scored: Bools) -> Integers:
    """Return how many tasks each config solved that the opponent, scored on them too, did not: (config, opponent)."""
    counts: Integers = (passed.astype(float) @ (scored & ~passed).T.astype(float)).astype(np.int64)
    return counts


def _adjusted(p: Floats, family: Bools, correction: str) -> Floats:
    """Adjust the p-values of a family of pairs, a part of the upper triangle; others are NaN, the diagonal is 1."""
    raw = p[family]
    adjusted = holm(raw) if correction == "holm" else stats.false_discovery_control(raw) if raw.size else raw
    result = np.full(p.shape, np.nan)
    result[family] = adjusted
    result[family.T] = result.T[family.T]
    np.fill_diagonal(result, 1.0)
    return result


def _order(rate: Floats, gate: xr.Dataset, known: Bools) -> Integers:
    """Return positions of the entries that may be grouped, the highest first."""
    published = np.nan_to_num(gate["published"].values, nan=-1.0)
    names = gate["config"].values
    ordered = sorted(np.flatnonzero(known).tolist(), key=lambda c: (-rate[c], -published[c], names[c]))
    return np.array(ordered, dtype=np.int64)


def _sweep(order: Integers, apart: Bools) -> tuple[Integers, Integers]:
    """Return each entry's anchor (-1 without) and group (0 without), by the anchored sweep."""
    anchor, group = np.full(len(apart), -1), np.zeros(len(apart), np.int64)
    while order.size:
        head, rest = order[0], order[1:]
        joins = np.append(head, rest[~apart[head, rest]])
        anchor[joins], group[joins] = head, group.max() + 1
        order = rest[apart[head, rest]]
    return anchor, group


def _facts(rate: Floats, gate: xr.Dataset, anchor: Integers, group: Integers, pairs: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of each entry, (config)."""
    names, own = gate["config"].values, np.arange(len(rate))
    grouped, leads = group > 0, anchor == own
    rank, _ = standing(np.where(np.isnan(rate), -1.0, rate))
    published, silent = gate["published"].values, (gate["gate"] == SILENT).values
    shown = np.where(np.isnan(published), rate, published)
    verdict = np.where(pairs["testable"][own, anchor], "not separated", "not testable").astype(object)
    verdict[(pairs["wins"] + pairs["wins"].T)[own, anchor] == 0] = "no discordant task"
    verdict[leads], verdict[~grouped] = "anchor", "withheld"
    level_with = grouped & (rate == rate[anchor])
    tied = np.bincount(group, weights=level_with)[group] > 1
    reason = np.full(len(rate), "", dtype=object)
    for c in np.flatnonzero(~grouped):
        reason[c] = SILENT if silent[c] else disagreement(gate.isel(config=c))
    facts = {
        "p_anchor": np.where(grouped & ~leads, pairs["p"][own, anchor], np.nan),
        "wins_anchor": np.where(grouped, pairs["wins"][own, anchor], np.nan),
        "losses_anchor": np.where(grouped, pairs["wins"][anchor, own], np.nan),
        "shared_anchor": np.where(grouped, pairs["shared"][own, anchor], np.nan),
    }
    if "p_adjusted" in pairs:
        facts["p_anchor_adjusted"] = np.where(grouped & ~leads, pairs["p_adjusted"][own, anchor], np.nan)
    return facts | {
        "rate": rate,
        "rank": np.where(np.isnan(rate), 0, rank),
        "group": group,
        "anchor": np.where(grouped, names[anchor], "").astype(object),
        "anchor_tied": grouped & tied,
        "verdict": verdict,
        "silent_above": (silent & (published > shown[:, None])).sum(axis=1),
        "reason": reason,
    }


def _attrs(
    level: float, mid_p: bool, correction: str | None, reduce: str | None, pairs: int, group: Integers
) -> dict[str, Any]:
    how = "uncorrected" if correction is None else f"{CORRECTIONS[correction]} over all {pairs} pairs"
    return {
        "level": level,
        "test": f"McNemar, two-sided, {'mid-p' if mid_p else 'exact'}",
        "correction": how,
        "reduce": reduce or "one run a task",
        "pairs": pairs,
        "groups": int(group.max()),
        "largest_group": int(np.bincount(group)[1:].max(initial=0)),
        "note": LOWER_BOUND if correction is None else f"p-values adjusted: {how} that share a task and have a group",
        "object": PAIRED,
        "tasks": "sampled",
        "configs": "fixed",
    }
