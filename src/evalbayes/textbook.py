"""Textbook pieces that several sides use: normal quantiles, Wilson's interval, competition ranks, Holm's adjustment."""

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def quantile(prob: float) -> float:
    """Two-sided standard normal quantile.

    >>> round(quantile(0.95), 4)
    1.96
    """
    return NormalDist().inv_cdf((1 + prob) / 2)


def wilson(rate: Floats, trials: Floats, prob: float) -> Floats:
    """Wilson's score interval of a binomial rate, exactly 0 or 1 at the boundary: (...) -> (..., 2).

    With z the normal quantile, (rate + z^2/2n -+ z sqrt(rate (1-rate)/n + z^2/4n^2)) / (1 + z^2/n)
    (Wilson, JASA 22, 1927; Brown, Cai and DasGupta, Statistical Science 16, 2001, equation 4).

    >>> wilson(np.array([0.0, 0.95]), np.array([10.0, 20.0]), 0.95).round(4).tolist()
    [[0.0, 0.2775], [0.7639, 0.9911]]
    """
    z2n = quantile(prob) ** 2 / np.where(trials > 0, trials, np.nan)
    half = np.sqrt(z2n * rate * (1 - rate) + z2n**2 / 4)
    ends = np.stack([rate + z2n / 2 - half, rate + z2n / 2 + half], axis=-1) / (1 + z2n)[..., None]
    ends[..., 0] = np.where(rate == 0, 0.0, ends[..., 0])
    ends[..., 1] = np.where(rate == 1, 1.0, ends[..., 1])
    result: Floats = ends
    return result


def holm(p: Floats) -> Floats:
    """Adjust p-values for their number, NaN left out (Holm 1979).

    >>> holm(np.array([0.01, np.nan, 0.04, 0.03])).round(4).tolist()
    [0.03, nan, 0.06, 0.06]
    """
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    adjusted = np.full(p.shape, np.nan)
    steps = p[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def standing(scores: Floats) -> tuple[Integers, Integers]:
    """Competition rank (1 is best) of each score in its row, and how many share it.

    >>> [part.tolist() for part in standing(np.array([[0.4, 0.4, 0.3]]))]
    [[[1, 1, 3]], [[2, 2, 1]]]
    """
    order = np.argsort(-scores, axis=-1, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=-1)
    place = np.broadcast_to(np.arange(scores.shape[-1]), scores.shape)
    new = np.ones(scores.shape, dtype=bool)
    new[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    first = np.maximum.accumulate(np.where(new, place, 0), axis=-1)
    ends = np.roll(new, -1, axis=-1)
    last = np.minimum.accumulate(np.where(ends, place, place.max())[..., ::-1], axis=-1)[..., ::-1]
    rank, tied = np.empty_like(first), np.empty_like(first)
    np.put_along_axis(rank, order, first + 1, axis=-1)
    np.put_along_axis(tied, order, last - first + 1, axis=-1)
    return rank, tied
