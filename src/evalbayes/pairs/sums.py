"""Sums over pairs, in integers: what every estimator of a pair rule's mean and variance is made of.

For a symmetric rule h over M configs: ``total`` a = sum_{i<j} h_ij, ``squares`` b = sum_{i<j} h_ij^2 (equal to a where
h is 0 or 1), ``degrees`` d_i = sum_{j != i} h_ij and

    Q3 = sum_i d_i^2 - 2 b        the products of two pairs that share one config, ordered.

For a near tie the degrees come from sorted scores, O(M log M): no matrix of pairs.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evalbayes.frequentist.bootstrap import EXACT, Floats, Integers


class Sums(NamedTuple):
    """Sums of ``scale`` h over M = ``size`` configs; whole numbers where the rule's values are rational."""

    size: int
    total: Any
    squares: Any
    degrees: npt.NDArray[Any]
    scale: int

    @property
    def exact(self) -> bool:
        """Whether the sums are integers and not floats."""
        return isinstance(self.total, int)


def pairs_in(size: int) -> int:
    """N = M (M - 1) / 2.

    >>> pairs_in(134)
    8911
    """
    return size * (size - 1) // 2


def tied_degrees(keys: Integers, limit: int) -> Integers:
    """With how many others each config is within the limit: (config) -> (config), by sorting.

    >>> tied_degrees(np.array([10, 0, 4, 5]), 5).tolist()
    [1, 2, 2, 3]
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    above, below = np.searchsorted(ordered, ordered + limit, "right"), np.searchsorted(ordered, ordered - limit)
    degrees = np.empty(len(keys), dtype=np.int64)
    degrees[order] = above - below - 1
    return degrees


def tied_sums(keys: Integers, limit: int) -> Sums:
    """Sums of the near-tie rule on one row of integer scores."""
    degrees = tied_degrees(keys, limit)
    total = int(degrees.sum()) // 2
    return Sums(len(keys), total, total, degrees, 1)


def tied_weight(keys: Integers, limit: Integers, weights: Floats) -> Floats:
    """Sum over i < j of v_i v_j 1{|key_i - key_j| <= limit}, for every draw: O(M log M) each.

    Parameters
    ----------
    keys, limit
        (draw, config) and (draw); one row serves every draw of the weights.
    weights
        v, (draw, config), or one row for every draw of the keys.

    >>> tied_weight(np.array([[0, 4, 5]]), np.array([4]), np.array([[1.0, 2.0, 3.0]])).tolist()
    [8.0]
    """
    size = keys.shape[1]
    order = np.argsort(keys, axis=1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=1)
    ordered -= ordered[:, :1]
    ends = [np.searchsorted(row, row + most, "right") for row, most in zip(ordered, limit, strict=True)]
    rows = max(len(keys), len(weights))
    shape = (rows, size)
    sorted_weights = np.take_along_axis(np.broadcast_to(weights, shape), np.broadcast_to(order, shape), axis=1)
    running = np.zeros((rows, size + 1))
    np.cumsum(sorted_weights, axis=1, out=running[:, 1:])
    reach = np.take_along_axis(running, np.broadcast_to(np.stack(ends), shape), axis=1)
    result: Floats = (sorted_weights * (reach - running[:, 1:])).sum(axis=1)
    return result


def matrix_sums(values: npt.NDArray[Any], scale: int = 1) -> Sums:
    """Sums of a rule given by its values, (config, config), symmetric; the diagonal is not looked at."""
    off = values.copy()
    np.fill_diagonal(off, 0)
    if np.issubdtype(off.dtype, np.integer):
        top = int(np.abs(off).max())
        wide = off.astype(object) if top**2 * off.size >= 2**62 else off.astype(np.int64)
        return Sums(len(off), int(wide.sum()) // 2, int((wide * wide).sum()) // 2, wide.sum(axis=1), scale)
    if off.dtype == object:
        common = math.lcm(*(Fraction(value).denominator for value in off.ravel()))
        whole = np.array([int(Fraction(value) * common) for value in off.ravel()], dtype=object).reshape(off.shape)
        return Sums(len(off), int(whole.sum()) // 2, int((whole * whole).sum()) // 2, whole.sum(axis=1), common * scale)
    degrees = off.sum(axis=1)
    return Sums(len(off), float(degrees.sum()) / 2, float((off**2).sum()) / 2, degrees, scale)


def square_sum(degrees: npt.NDArray[Any]) -> Any:
    """Sum of d_i^2, in integers where the degrees are."""
    if np.issubdtype(degrees.dtype, np.floating):
        return float(degrees @ degrees)
    top = int(np.abs(degrees).max(initial=0))
    wide = degrees if top**2 * max(len(degrees), 1) < 2**62 else degrees.astype(object)
    return int((wide * wide).sum())


def ratio(numerator: Any, denominator: int) -> Any:
    """A Fraction of integers, a float otherwise."""
    return Fraction(numerator, denominator) if isinstance(numerator, int) else numerator / denominator


def mean(sums: Sums) -> Any:
    """U, the mean of the rule over all pairs: a Fraction where the sums are integers.

    >>> mean(tied_sums(np.array([10, 0, 4, 5]), 5))
    Fraction(2, 3)
    """
    return ratio(sums.total, pairs_in(sums.size) * sums.scale)


def fits(value: Any) -> bool:
    """Whether a whole number is exact in a float64."""
    return bool(abs(value) < EXACT)
