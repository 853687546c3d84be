"""Two entries side by side: their difference by the model and by the bootstrap, and how sure its sign is."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from evalbayes import frequentist, links, posterior
from evalbayes.errors import NotIdentifiedError
from evalbayes.report import population_of
from evalbayes.report.board import policies_of
from evalbayes.report.numbers import plain, rows_of


class Versus(NamedTuple):
    """What is said of the pairs: lines, a table with a row a pair, and both as JSON holds them."""

    lines: list[str]
    table: dict[str, list[Any]]
    numbers: dict[str, Any]


def versus(
    board: xr.Dataset,
    pairs: Mapping[str, tuple[str, str]],
    *,
    tasks: str,
    model: str | None,
    method: str,
    prob: float,
    seed: int,
    progress: Callable[[str], None],
) -> Versus:
    """Fit a board and compare pairs of its configs, each named by its key.

    Raises
    ------
    OutcomesError
        If a config is not on the board.
    NotIdentifiedError
        If a pair shares no task.
    SamplingError
        If the fit fails its checks.
    """
    from evalbayes.fit import fit
    from evalbayes.posterior.draws import check_on_board

    labels = board["config"].values.tolist()
    for name in [name for pair in pairs.values() for name in pair]:
        check_on_board(name, labels)
    for pair in pairs.values():
        _refuse_apart(board["trials"], *pair)
    tree = fit(board, model, method=method, seed=seed, progress=progress)
    target: dict[str, Any] = {"tasks": tasks, "prob": prob}
    rows = [_row(board, tree, pair, target, seed) for pair in pairs.values()]
    table = {name: [plain(row[name]) for row in rows] for name in rows[0]}
    if not any(table["reason"]):
        del table["reason"]
    where = "new tasks like these" if tasks == "sampled" else "these tasks, new runs"
    policies = policies_of(board)
    lines = [
        f"a less b on {where} (tasks={tasks}), model {tree.attrs['model']} by {tree.attrs['method']}, {100 * prob:g}% "
        "intervals; bootstrap: of the tasks that both ran",
        *policies,
    ]
    who = {"quantity": "difference", "tasks": tasks, "configs": "fixed", "ci_prob": prob}
    return Versus(lines, table, {**who, "policies": policies, "values": rows_of(table)})


def _refuse_apart(trials: xr.DataArray, first: str, second: str) -> None:
    """Refuse a pair that shares no task, before a fit takes its time."""
    at = {"config": first, "opponent": second}
    if links.unshared(trials).sel(at):
        remedy = "ask `evalbayes answer difference` with --assume no_interaction, or run some tasks with both"
        raise NotIdentifiedError(f"compare: {first} and {second}: {links.NOT_SHARED}; {remedy}")
    if why := links.why_apart(trials).sel(at).item():
        raise NotIdentifiedError(f"compare: {why}; run some tasks with both")


def _row(
    board: xr.Dataset, tree: xr.DataTree, pair: tuple[str, str], target: dict[str, Any], seed: int
) -> dict[str, Any]:
    first, second = pair
    more: dict[str, Any] = {"population": population_of(tree)}
    model = posterior.difference(tree, reference=second, **target, **more).sel(config=[first])
    chance = posterior.win_probability(tree, **target, **more).sel(config=first, opponent=second)
    boot = frequentist.difference(board, reference=second, seed=seed, **target).sel(config=[first])
    shared = int(((board["trials"].sel(config=list(pair)) > 0).all("config")).sum())
    low, high = model.interval.values[0]
    boot_low, boot_high = boot.interval.values[0]
    return {
        "a": first,
        "b": second,
        "difference": model.estimate.item(),
        "lower": low,
        "upper": high,
        "p_a_above_b": chance.estimate.item(),
        "observed": boot.estimate.item(),
        "bootstrap_lower": boot_low,
        "bootstrap_upper": boot_high,
        "shared_tasks": shared,
        "verdict": _verdict(low, high, first, second),
        "reason": "; ".join(dict.fromkeys(text for text in (*model.reason.values, *boot.reason.values) if text)),
    }


def _verdict(low: float, high: float, first: str, second: str) -> str:
    if np.isnan(low):
        return "not known"
    return f"{first} is better" if low > 0 else f"{second} is better" if high < 0 else "not resolved"
