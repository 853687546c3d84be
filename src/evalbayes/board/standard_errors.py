"""Standard errors for a leaderboard: each with what it takes to be exchangeable, none that would claim certainty."""

from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from evalbayes.board.published import honesty_gate
from evalbayes.errors import NotIdentifiedError
from evalbayes.frequentist import score
from evalbayes.frequentist.bootstrap import NO_SPREAD
from evalbayes.outcomes import clusters as clusters_of
from evalbayes.textbook import Floats

SILENT = "no per-task results"
NO_SPREAD_TEXT = "no spread was seen: a standard error of 0 is no certainty"
BOUNDARY = (
    "withheld at 0% and 100%, where the formula gives 0 and that is no certainty; "
    "print an interval (frequentist.score, method='pooled_wilson')"
)


class Kind(NamedTuple):
    """What a standard error is called in a table, and what it assumes."""

    heading: str
    assumes: str


KINDS = {
    "binomial": Kind(
        "binomial SE (model-based)",
        "all scored runs are exchangeable: independent, with one success probability whatever the task",
    ),
    "tasks_sampled": Kind(
        "SE for new tasks (task-clustered)",
        "tasks are exchangeable draws from a population of tasks; runs of one task may be alike",
    ),
    "tasks_fixed": Kind(
        "repeatability: SE over new runs of these tasks",
        "runs of one task are exchangeable, tasks are fixed; one run a task cannot show it",
    ),
    "clusters_sampled": Kind(
        "SE for new clusters of tasks",
        "clusters are exchangeable draws from a population of clusters; tasks of one cluster may be alike",
    ),
    "clusters_fixed": Kind(
        "SE for new tasks of these clusters (stratified)",
        "tasks of one cluster are exchangeable; clusters and their shares of the board are fixed",
    ),
}
BY_SCORE = {"binomial": "pooled_wilson", "tasks_sampled": "clustered_normal", "tasks_fixed": "fixed_normal"}


def standard_errors(
    outcomes: xr.Dataset,
    *,
    clusters: str | None = None,
    blank: Literal["raise", "own", "one"] = "raise",
    decimals: int | None = None,
) -> xr.Dataset:
    """Return the observed proportion of each entry, and its standard errors side by side, each for its own question.

    With p the mean over the T scored tasks of p_t = k_t / n_t, N = sum n_t, and for clusters h of T_h tasks,
    r_h = sum_{t in h} (p_t - p) and s_h^2 the variance of p_t within h (over T_h - 1)::

        binomial          sqrt(p (1 - p) / N)
        tasks_sampled     sd(p_t) / sqrt(T)
        tasks_fixed       sqrt(sum_t p_t (1 - p_t) / (n_t - 1)) / T
        clusters_sampled  sqrt(G / (G - 1) sum_h r_h^2) / T       (CR1; Miller 2024, arXiv 2411.00640, section 2.2)
        clusters_fixed    sqrt(sum_h T_h s_h^2) / T               (Cochran, Sampling Techniques, 1977, section 5.4)

    On one run a task, binomial and tasks_sampled differ by the factor sqrt(T / (T - 1)) alone. None of them compares
    two entries: for that see `mcnemar_groups`.

    Parameters
    ----------
    outcomes
        A board. Where it has ``published`` rates, an entry that fails `honesty_gate` gets no standard error.
    clusters
        A coord along task (repository, stratum of a suite): adds the last two.
    blank
        What to do about tasks whose cluster is blank: see `outcomes.clusters`.
    decimals
        Of the published rates: see `honesty_gate`.

    Returns
    -------
    xarray.Dataset
        In proportions. Over config: ``observed`` (exact), ``tasks`` and ``runs`` scored, ``imputed`` (tasks of one run
        that borrow the entry's mean run variance for tasks_fixed), ``gate``, and ``clusters``, their number, where
        asked for. Over (config, kind): ``se`` and ``reason``, blank where it is known. Over kind: the coords
        ``heading`` and ``assumes``, for tables and tooltips. attrs ``observed`` and ``paired`` say the same of the
        other two objects.

    Raises
    ------
    NotIdentifiedError
        If no entry has a scored run.
    OutcomesError
        If there is no such cluster coord, or a cluster is blank.

    Examples
    --------
    >>> from evalbayes.outcomes import from_matrix
    >>> board = from_matrix([[1] * 263 + [0] * 44], configs=["a"], tasks=[f"t{i}" for i in range(307)])
    >>> standard_errors(board).se.sel(kind=["binomial", "tasks_sampled"]).values.round(6).tolist()
    [[0.019998, 0.020031]]
    """
    gate = honesty_gate(outcomes, decimals=decimals)
    if not gate["tasks"].any():
        raise NotIdentifiedError("standard_errors: no entry has a scored run; an empty sample has no standard error")
    found = {name: score(outcomes, tasks=_target(name), method=method) for name, method in BY_SCORE.items()}
    parts = {name: (seen["se"].values, _reasons(name, seen)) for name, seen in found.items()}
    again = found["tasks_fixed"]
    facts: dict[str, Any] = {
        "observed": gate["observed"],
        "tasks": gate["tasks"],
        "runs": outcomes["trials"].reset_coords(drop=True).sum("task"),
        "imputed": ("config", np.where(np.isnan(again["se"].values), 0, again["imputed"].values)),
        "gate": gate["gate"],
    }
    if clusters is not None:
        clustered, facts["clusters"] = _clustered(outcomes, clusters, blank)
        parts |= clustered
    return _table(facts, parts, gate)


def _target(name: str) -> str:
    return "fixed" if name == "tasks_fixed" else "sampled"


def _reasons(name: str, seen: xr.Dataset) -> Any:
    reason = seen["reason"].values.copy()
    unknown = np.isnan(seen["se"].values) & (reason == "")
    reason[unknown] = BOUNDARY
    if name == "tasks_sampled":
        # There the answer has an interval by other means, and says so; the standard error has none.
        reason[np.isnan(seen["se"].values) & np.isin(seen["estimate"].values, (0.0, 1.0))] = NO_SPREAD_TEXT
    return reason


def _clustered(outcomes: xr.Dataset, coord: str, blank: Any) -> tuple[dict[str, Any], Any]:
    """Return both standard errors over clusters, with reasons, and the number of clusters of each entry."""
    labels = clusters_of(outcomes, coord, blank=blank).values.astype(str)
    belongs = (np.unique(labels)[:, None] == labels).astype(float)
    k, n = (outcomes[name].transpose("config", "task").values for name in ("successes", "trials"))
    scored, p = n > 0, k / np.maximum(n, 1)
    tasks = np.maximum(scored.sum(axis=1), 1)
    apart = np.where(scored, p - (p.sum(axis=1) / tasks)[:, None], 0.0)
    size, sums, squares = scored @ belongs.T, apart @ belongs.T, apart**2 @ belongs.T
    count = (size > 0).sum(axis=1)
    sampled = np.sqrt((sums**2).sum(axis=1) * count / np.maximum(count - 1, 1)) / tasks
    within = np.maximum(squares - sums**2 / np.maximum(size, 1), 0) / np.maximum(size - 1, 1)
    fixed = np.sqrt((size * within).sum(axis=1)) / tasks
    reasons = [
        _first((count == 0, SILENT), (count == 1, "one cluster: the spread over clusters needs two or more")),
        _first((count == 0, SILENT), ((size == 1).any(axis=1), "a cluster of one task shows no spread within it")),
    ]
    both = {
        name: _known(se, why)
        for name, se, why in zip(("clusters_sampled", "clusters_fixed"), (sampled, fixed), reasons, strict=True)
    }
    return both, ("config", count)


def _first(*cases: tuple[Any, str]) -> Any:
    reason = np.full(len(cases[0][0]), "", dtype=object)
    for where, text in reversed(cases):
        reason[where] = text
    return reason


def _known(se: Floats, reason: Any) -> tuple[Floats, Any]:
    reason[(reason == "") & (se < NO_SPREAD)] = NO_SPREAD_TEXT
    return np.where(reason == "", se, np.nan), reason


def _table(facts: dict[str, Any], parts: dict[str, Any], gate: xr.Dataset) -> xr.Dataset:
    se, reason = (np.stack([part[i] for part in parts.values()], axis=1) for i in (0, 1))
    failed = (gate["gate"] == "failed").values
    for c in np.flatnonzero(failed):
        reason[c] = disagreement(gate.isel(config=c))
    coords = {
        "config": gate["config"].values,
        "kind": np.array(list(parts), dtype=object),
        "heading": ("kind", np.array([KINDS[name].heading for name in parts], dtype=object)),
        "assumes": ("kind", np.array([KINDS[name].assumes for name in parts], dtype=object)),
    }
    se = np.where(failed[:, None], np.nan, se)
    table = {"se": (("config", "kind"), se), "reason": (("config", "kind"), reason)}
    result = xr.Dataset(facts | table, coords=coords)
    result.attrs = {
        "observed": "observed proportion: an exact fact about these runs, without an error",
        "paired": "paired comparison on shared tasks: not here, see mcnemar_groups or frequentist.difference",
    }
    return result


def disagreement(one: xr.Dataset) -> str:
    """Say how one entry's rows disagree with its published rate, in tasks and points; one row of `honesty_gate`."""
    gap = 100 * (one["observed"].item() - one["published"].item())
    return (
        f"withheld: published {100 * one['published'].item():.6g}% implies {one['claimed'].item():.6g} of "
        f"{one['tasks'].item()} tasks, the rows have {one['count'].item():.6g} "
        f"({100 * one['observed'].item():.6g}%, {gap:+.1f} points)"
    )
