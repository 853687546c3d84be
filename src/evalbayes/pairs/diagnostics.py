"""Whether the normal approximation for sampled configs can be trusted, and what one config does to a pair summary."""

from typing import Any

import numpy as np
import xarray as xr

from evalbayes.errors import NotIdentifiedError
from evalbayes.pairs.panel import as_fraction, panel_of, panel_of_counts
from evalbayes.pairs.rules import Rule, sums
from evalbayes.pairs.sums import Sums, mean, pairs_in
from evalbayes.pairs.variance import zetas


def first_order_share(size: int, zeta_1: Any, zeta_2: Any) -> float:
    """4 (M - 2) zeta_1 / (4 (M - 2) zeta_1 + 2 zeta_2), NaN where the sum is not positive."""
    first = 4 * (size - 2) * zeta_1
    whole = first + 2 * zeta_2
    return float(first / whole) if whole > 0 else float("nan")


def regular(size: int, zeta_1: Any, zeta_2: Any) -> bool:
    """Whether zeta_1 > 0 and the first-order share is at least a half, decided in integers where these are."""
    first = 4 * (size - 2) * zeta_1
    return bool(zeta_1 > 0 and first + 2 * zeta_2 > 0 and 2 * first >= first + 2 * zeta_2)


def of_sums(counted: Sums) -> tuple[float, bool]:
    """First-order share and verdict from sums; NaN and False below four configs."""
    if counted.size < 4:
        return float("nan"), False
    parts = zetas(counted)
    return first_order_share(counted.size, *parts), regular(counted.size, *parts)


def near_tie_rule(outcomes: xr.Dataset | xr.DataArray, margin: Any, panel: str, out_of: int | None) -> Rule:
    """The near-tie rule on a board, or on solved counts."""
    exact = as_fraction(margin)
    if isinstance(outcomes, xr.DataArray):
        return Rule("near_tie", panel_of_counts(outcomes, out_of), exact)
    return Rule("near_tie", panel_of(outcomes, panel), exact)


def diagnostic(
    outcomes: xr.Dataset | xr.DataArray, margin: Any, *, panel: str = "shared", out_of: int | None = None
) -> xr.Dataset:
    """Say whether the near-tie share's noise over sampled configs comes from configs more than from lone pairs.

    The normal intervals for sampled configs rest on the first-order term of U's variance, 4 (M - 2) zeta_1, being the
    larger beside 2 zeta_2 (arXiv 2609.33012). The diagnostic passes where zeta_1 > 0 and the first-order share is at
    least a half. zeta_1 comes from the mean product of pairs without a common config, not from U^2.

    Parameters
    ----------
    outcomes, margin, panel, out_of
        As in `evalbayes.pairs.near_tie`.

    Returns
    -------
    xarray.Dataset
        ``zeta_1``, ``zeta_2``, ``first_order_share`` and ``passed``.

    Raises
    ------
    NotIdentifiedError
        If there are fewer than four configs.

    Examples
    --------
    >>> scores = xr.DataArray([0, 0, 0, 9, 9], dims="config")
    >>> bool(diagnostic(scores, 0, out_of=10).passed)
    False
    """
    counted = sums(near_tie_rule(outcomes, margin, panel, out_of))
    if counted.size < 4:
        raise NotIdentifiedError(f"diagnostic: {counted.size} configs; two pairs without a common config need four")
    zeta_1, zeta_2 = zetas(counted)
    share, passed = of_sums(counted)
    return xr.Dataset({"zeta_1": float(zeta_1), "zeta_2": float(zeta_2), "first_order_share": share, "passed": passed})


def influence(
    outcomes: xr.Dataset | xr.DataArray, margin: Any, *, panel: str = "shared", out_of: int | None = None
) -> xr.Dataset:
    """What leaving out each config does to the near-tie share of all pairs, the panel of tasks kept.

    Parameters
    ----------
    outcomes, margin, panel, out_of
        As in `evalbayes.pairs.near_tie`.

    Returns
    -------
    xarray.Dataset
        Over ``config``, in the order of the labels: ``without`` (the share over the other configs), ``change``
        (``without`` minus the whole board's) and ``near_ties`` (how many others it ties with); attr ``largest``, the
        largest absolute change.

    Raises
    ------
    NotIdentifiedError
        If there are fewer than three configs.

    Examples
    --------
    >>> scores = xr.DataArray([0, 1, 9], dims="config", coords={"config": list("abc")})
    >>> influence(scores, 0.1, out_of=10).without.values.tolist()
    [0.0, 0.0, 1.0]
    """
    rule = near_tie_rule(outcomes, margin, panel, out_of)
    counted = sums(rule)
    if counted.size < 3:
        raise NotIdentifiedError("influence: two configs are one pair; leaving one out leaves none")
    without = (counted.total - counted.degrees) / pairs_in(counted.size - 1)
    change = without - float(mean(counted))
    result = xr.Dataset(
        {"without": ("config", without), "change": ("config", change), "near_ties": ("config", counted.degrees)},
        coords={"config": np.array(rule.panel.configs)},
    )
    result.attrs["largest"] = float(np.abs(change).max())
    return result
