"""What `evalbayes pairs` prints: the share of near ties for every target, by every method, and the checklist."""

from typing import Any, NamedTuple

import xarray as xr

from evalbayes import pairs
from evalbayes.report.board import policies_of
from evalbayes.report.numbers import numbers, plain

ASKED = {
    ("fixed", "fixed"): ("exact",),
    ("sampled", "fixed"): ("hoeffding", "dyadic", "jackknife", "config_bootstrap", "pair_iid"),
    ("fixed", "sampled"): ("task_bootstrap",),
    ("sampled", "sampled"): ("joint_bootstrap",),
}
"""Methods for each target, configs first."""
BETWEEN = ("dyadic", "block_bootstrap")
"""Those for sampled configs where only pairs between blocks count."""


REFERENCE = "for reference: pairs share configs, and are not independent"


class AllPairs(NamedTuple):
    """Lines, a table with a row a method, and both as JSON holds them."""

    lines: list[str]
    table: dict[str, list[Any]]
    numbers: dict[str, Any]


def all_pairs(
    board: xr.Dataset, margin: str, *, cluster: str | None, blocks: str | None, prob: float, seed: int, draws: int
) -> AllPairs:
    """Ask for near ties within a margin under every target.

    Raises
    ------
    ArgumentError, NotIdentifiedError
        As `pairs.near_tie`.
    """
    options: dict[str, Any] = {"cluster": cluster, "blocks": blocks, "prob": prob, "seed": seed, "draws": draws}
    answers = [
        pairs.near_tie(board, margin, configs=configs, tasks=tasks, method=method, **options)
        for (configs, tasks), methods in _asked(cluster, blocks).items()
        for method in methods
    ]
    exact = answers[0]
    count = exact.fraction.item() or exact.estimate.item()
    said = [
        f"near ties within {margin}: {count} of {exact.pairs.item():,} pairs of configs",
        *(f"{name}: {text}" for name, text in pairs.checklist(exact).items()),
        *_regularity(answers),
    ]
    policies = policies_of(board)
    whole = {"lines": said, "policies": policies, "answers": [numbers(one) for one in answers]}
    return AllPairs([*said, *policies], _table(answers), whole)


def _asked(cluster: str | None, blocks: str | None) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the methods for each target that the design allows."""
    asked = dict(ASKED)
    if blocks:
        asked["sampled", "fixed"] = BETWEEN
    if cluster:
        asked["fixed", "sampled"] += ("cluster_bootstrap",)
    return asked


def _table(answers: list[xr.Dataset]) -> dict[str, list[Any]]:
    names = ("configs", "tasks", "method", "estimate")
    table: dict[str, list[Any]] = {name: [plain(one[name].item()) for one in answers] for name in names}
    ends = [one.interval.values for one in answers]
    table |= {"lower": [plain(low) for low, _ in ends], "upper": [plain(high) for _, high in ends]}
    table |= {"width": [plain(high - low) for low, high in ends]}
    return table | {"reason": [REFERENCE if one.method == "pair_iid" else one.reason.item() for one in answers]}


def _regularity(answers: list[xr.Dataset]) -> list[str]:
    seen = next((one for one in answers if "regular" in one), None)
    if seen is None:
        return []
    share = float(seen.first_order_share)
    said = "regular" if bool(seen.regular) else "not regular: intervals by hoeffding are too narrow"
    return [f"first-order share of the variance over configs {share:.3f}: {said}"]
