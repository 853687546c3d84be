"""The plan of a next board: what repetition is worth, what it costs, and what this board can resolve."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from evalbayes import components, design, frequentist, posterior
from evalbayes.errors import OutcomesError
from evalbayes.report import open_board
from evalbayes.report.ask import open_fit
from evalbayes.report.board import policies_of
from evalbayes.report.numbers import columns, numbers, plain


class Plan(NamedTuple):
    """A plan's table over configs and its table over numbers of runs, lines above each, and all of it for JSON."""

    lines: list[str]
    configs: dict[str, list[Any]]
    curve_lines: list[str]
    curve: dict[str, list[Any]]
    numbers: dict[str, Any]


def plan(
    source: str,
    *,
    method: str | None,
    cost_ratio: float,
    width: float,
    prob: float,
    seed: int,
    errors: str,
    given: Mapping[str, Any],
    progress: Callable[[str], None],
) -> Plan:
    """Plan from a saved fit, from a board by moments, or from a board that is fitted first by ``method``.

    Raises
    ------
    OutcomesError, ArgumentError, SamplingError
        As reading, the answers and the fit do.
    """
    components.check_cost_ratio(cost_ratio)
    design.check_width(width)
    board, asked = _opened(source, method, seed, errors, given, progress)
    side: Any = posterior if isinstance(asked, xr.DataTree) else frequentist
    answers = [
        side.icc(asked, prob=prob),
        side.ceiling(asked, prob=prob),
        side.optimal_runs(asked, cost_ratio=cost_ratio, prob=prob),
    ]
    pooled: dict[str, Any] = {"prob": prob, "pooled": board["config"].values.tolist()}
    curve = design.cost_curve(asked, cost_ratio=cost_ratio, **pooled)
    needed = design.tasks_needed(asked, width=width, **pooled)
    return _written(board, answers, curve, needed, design.resolution(board, prob=prob))


def _opened(
    source: str, method: str | None, seed: int, errors: str, given: Mapping[str, Any], progress: Callable[[str], None]
) -> tuple[xr.Dataset, xr.Dataset | xr.DataTree]:
    """Return the counts, and what the components come from: the board itself, or a fit."""
    tree = open_fit(source)
    if tree is not None:
        if method not in (None, "auto", tree.attrs.get("method")):
            raise OutcomesError(
                f"--method {method}: {source} is a fit by {tree.attrs.get('method')}; plan from its board"
            )
        counts = [tree[group].to_dataset() for group in ("observed_data", "constant_data")]
        return xr.merge(counts).assign_attrs(tree.attrs), tree
    board = open_board(source, errors=errors, reading=given, progress=progress)
    if method in (None, "moments"):
        return board, board
    from evalbayes.fit import fit

    return board, fit(board, method=method, seed=seed, progress=progress)


def _written(
    board: xr.Dataset, answers: Sequence[xr.Dataset], curve: xr.Dataset, needed: xr.Dataset, resolved: xr.Dataset
) -> Plan:
    icc, ceiling, best = answers
    policies = policies_of(board)
    table = {
        "config": plain(best["config"].values),
        "icc": plain(icc.estimate.values),
        "ceiling": plain(ceiling.estimate.values),
        "best_runs": plain(best.estimate.values),
        "best_lower": plain(best.interval.values[:, 0]),
        "best_upper": plain(best.interval.values[:, 1]),
        "whole": plain(best.whole.values),
        "reason": plain(best.reason.values),
    }
    if not any(table["reason"]):
        del table["reason"]
    tasks = columns(needed)
    over_runs = {
        "runs": plain(curve["runs"].values),
        "relative_width": columns(curve)["estimate"],
        "tasks": tasks["estimate"],
        "tasks_lower": tasks["lower"],
        "tasks_upper": tasks["upper"],
    }
    ratio, share = best.cost_ratio.item(), 100 * best.ci_prob.item()
    said = [
        f"plan for new tasks, by {best.method.item()}: one more task costs {ratio:g} times one more run of a task",
        _resolution(resolved),
    ]
    curve_said = [
        f"tasks: how many make a {share:g}% interval {100 * needed.width.item():g} points wide; relative_width: of an "
        "interval, over that at the best number of runs for the same cost; both medians over configs",
    ]
    unknown = [reason for reason in dict.fromkeys(columns(curve)["reason"]) if reason]
    if unknown:
        curve_said, over_runs = [f"no curve over runs: {reason}" for reason in unknown], {}
    everything = {str(one.quantity.item()): numbers(one) for one in (*answers, curve, needed)}
    whole = {"lines": said, "policies": policies, **everything, **_gaps(resolved)}
    return Plan([*said, *policies], table, curve_said, over_runs, whole)


def _gaps(resolved: xr.Dataset) -> dict[str, Any]:
    gaps = {name: resolved[name].values[np.isfinite(resolved[name].values)] for name in ("paired", "unpaired")}
    return {
        "smallest_gap": {
            name: {"median": float(np.median(values)), "least": float(values.min()), "most": float(values.max())}
            for name, values in gaps.items()
            if values.size
        }
    }


def _resolution(resolved: xr.Dataset) -> str:
    gaps = _gaps(resolved)["smallest_gap"]
    if "paired" not in gaps:
        return "no two configs differ from task to task on tasks they share: what gap this board resolves is not known"
    paired, unpaired = gaps["paired"], gaps["unpaired"]
    power = f"{100 * resolved.power.item():g}% power"
    if paired["least"] >= 1:
        return f"this board is too small to resolve any gap between two configs with {power}"
    return (
        f"this board resolves a gap of {100 * paired['median']:.1f} points between two configs, paired by task "
        f"({100 * paired['least']:.1f} to {100 * paired['most']:.1f} over pairs; unpaired "
        f"{100 * unpaired['median']:.1f}), with {power}"
    )
