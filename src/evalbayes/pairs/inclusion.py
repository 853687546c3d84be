"""Which pairs count and for how much: all pairs, pairs between blocks of configs, or a user's weights."""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.errors import ArgumentError, NotIdentifiedError, OutcomesError
from evalbayes.frequentist.bootstrap import Integers
from evalbayes.pairs.rules import Rule, square


class Inclusion(NamedTuple):
    """Which pairs count and for how much."""

    kind: str
    words: tuple[str, str]
    blocks: Integers | None = None
    of_configs: npt.NDArray[Any] | None = None
    of_pairs: npt.NDArray[Any] | None = None


def inclusion(rule: Rule, outcomes: xr.Dataset | xr.DataArray, blocks: Any, weights: Any) -> Inclusion:
    """Read ``blocks`` and ``weights``, in the panel's order of configs."""
    if blocks is not None and weights is not None:
        raise ArgumentError("pairs: give blocks= or weights=, not both: blocks set the weights of their pairs")
    if blocks is not None:
        name = blocks if isinstance(blocks, str) else "the blocks given"
        given = outcomes.coords[blocks] if isinstance(blocks, str) and _along_config(outcomes, blocks) else blocks
        labels = _in_order(rule, outcomes, given, "blocks")
        found, codes = np.unique(labels.astype(str), return_inverse=True)
        if len(found) < 2:
            raise NotIdentifiedError("pairs: all configs are in one block; pairs between blocks need two")
        return Inclusion("blocks", (f"pairs between {len(found)} blocks of {name}", "equal by pair of blocks"), codes)
    if weights is None:
        return Inclusion("all", ("all pairs", "equal"))
    if np.ndim(weights) == 2:
        table = square(rule.panel.configs, weights, "weights", outcomes["config"].values)
        _check_weights(table)
        return Inclusion("weights", ("pairs with a weight above 0", "by pair, the user's"), of_pairs=table)
    vector = _in_order(rule, outcomes, weights, "weights")
    _check_weights(vector)
    return Inclusion("weights", ("all pairs", "product of the user's weights of configs"), of_configs=vector)


def _along_config(outcomes: xr.Dataset | xr.DataArray, name: str) -> bool:
    if name in outcomes.coords and outcomes.coords[name].dims == ("config",):
        return True
    found = [str(c) for c in outcomes.coords if outcomes.coords[c].dims == ("config",) and c != "config"]
    raise OutcomesError(f"pairs: no config coord {name!r}; those there are: {', '.join(found) or 'none'}")


def _order(outcomes: xr.Dataset | xr.DataArray) -> Integers:
    """Positions on the board of configs in the order of their labels."""
    order: Integers = np.argsort(outcomes["config"].values, kind="stable")
    return order


def _in_order(rule: Rule, outcomes: xr.Dataset | xr.DataArray, given: Any, name: str) -> npt.NDArray[Any]:
    if isinstance(given, xr.DataArray) and given.dims == ("config",) and "config" in given.coords:
        return np.asarray(given.sel(config=rule.panel.configs).values)
    values = np.asarray(given)
    if values.shape != (rule.panel.size,):
        raise OutcomesError(f"pairs: {name} has shape {values.shape}; give one for each of {rule.panel.size} configs")
    return values[_order(outcomes)]


def _check_weights(weights: npt.NDArray[Any]) -> None:
    off = weights.astype(float)
    if weights.ndim == 2:
        np.fill_diagonal(off, 0)
    if not np.isfinite(off).all() or (off < 0).any() or np.count_nonzero(off) < 2:
        raise ArgumentError("pairs: weights are numbers of 0 or more, some pair's above 0")


def pair_weights(included: Inclusion) -> npt.NDArray[Any]:
    """Weights of pairs, (config, config), 0 on the diagonal; whole numbers or Fractions where they can be."""
    if included.blocks is not None:
        of_config = np.array([Fraction(1, int(m)) for m in np.bincount(included.blocks)])[included.blocks]
        common = math.lcm(*(part.denominator for part in of_config))
        whole = np.array([int(part * common) for part in of_config], dtype=object)
        between: npt.NDArray[Any] = np.multiply.outer(whole, whole) * (
            included.blocks[:, None] != included.blocks[None]
        )
        return between
    if included.of_pairs is not None:
        result = included.of_pairs.copy()
    else:
        vector = np.asarray(included.of_configs)
        result = np.multiply.outer(vector, vector)
    np.fill_diagonal(result, 0)
    return result
