"""Exact coverage of intervals for a pair summary, by enumeration: no simulation.

M sampled configs are each 1 with probability p, independently, and h depends on the two values. The board is then its
number of ones, k, with weight Binomial(M, p): M + 1 states, for each an interval that covers theta or does not.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from evalbayes.answer import check_prob
from evalbayes.errors import ArgumentError, NotIdentifiedError, check_whole
from evalbayes.pairs.diagnostics import regular
from evalbayes.pairs.panel import as_fraction
from evalbayes.pairs.sums import Sums, mean, pairs_in
from evalbayes.pairs.targets import VARIANCE_METHODS
from evalbayes.pairs.variance import VARIANCES, zetas
from evalbayes.textbook import quantile

Kernel = Callable[[int, int], int]
KERNELS: dict[str, Kernel] = {"equality": lambda x, y: int(x == y), "constant": lambda x, y: 1}


def exact_coverage(
    M: int, p: Any, method: str, *, kernel: str | Kernel = "equality", edges: str = "shared", prob: float = 0.95
) -> xr.Dataset:
    """How often a normal interval for U holds the rule's mean theta over pairs of new configs, to the last digit.

    theta = p^2 h(1, 1) + 2 p (1 - p) h(0, 1) + (1 - p)^2 h(0, 0), the interval U -+ z sqrt(V) with a negative V
    taken as 0 (arXiv 2609.33012, section 5.2).

    Parameters
    ----------
    M
        Number of configs, 4 or more.
    p
        Probability that a config is 1, as text, a Fraction or a float (0.2 is 1/5).
    method
        ``"hoeffding"``, ``"dyadic"``, ``"jackknife"`` or ``"pair_iid"``.
    kernel
        ``"equality"`` (1 where the two are equal), ``"constant"`` (always 1), or a symmetric function of two values
        from {0, 1} with whole numbers out.
    edges
        ``"shared"``: pairs of M configs. ``"independent"``: as many pairs, each of two configs of its own; only
        ``"pair_iid"`` and kernels of 0 and 1, since such pairs have no configs in common.
    prob
        Nominal coverage.

    Returns
    -------
    xarray.Dataset
        ``coverage``, ``width`` (expected), ``theta``; with shared edges ``passes`` (probability that the diagnostic of
        `evalbayes.pairs.diagnostic` passes) and ``coverage_given_pass``, NaN where it never does.

    Raises
    ------
    NotIdentifiedError
        If the method needs shared configs and the edges are independent.

    Examples
    --------
    >>> [round(float(exact_coverage(40, 0.2, m).coverage), 4) for m in ("pair_iid", "hoeffding")]
    [0.3072, 0.9283]
    """
    h, theta, rate = _kernel(M, p, method, kernel, prob)
    if edges == "independent":
        return _independent(M, h, rate, theta, method, prob)
    if edges != "shared":
        raise ArgumentError(f"edges={edges!r} is not 'shared' or 'independent'")
    states = coverage_states(M, p, method, kernel=kernel, prob=prob)
    weight, covered, passed = (states[name].to_numpy() for name in ("weight", "covered", "passes"))
    passes = float(weight @ passed)
    given = float(weight @ (covered & passed)) / passes if passes > 0 else float("nan")
    return xr.Dataset(
        {
            "coverage": float(weight @ covered),
            "width": float(weight @ (states["upper"] - states["lower"]).to_numpy()),
            "theta": float(theta),
            "passes": passes,
            "coverage_given_pass": given,
        }
    )


def coverage_states(
    M: int, p: Any, method: str, *, kernel: str | Kernel = "equality", prob: float = 0.95
) -> pd.DataFrame:
    """Every state of M configs: a row for each number of ones, with its weight, interval and verdicts.

    Parameters
    ----------
    M, p, method, kernel, prob
        As in `exact_coverage`.

    Returns
    -------
    pandas.DataFrame
        ``M, kernel, method, prob, ones, weight, estimate, variance, lower, upper, covered, passes``; M + 1 rows.

    Examples
    --------
    >>> len(coverage_states(40, 0.2, "dyadic"))
    41
    """
    from scipy.stats import binom

    h, theta, rate = _kernel(M, p, method, kernel, prob)
    z, rows = quantile(prob), []
    for ones in range(M + 1):
        counted = _state(M, ones, h)
        estimate, variance = mean(counted), VARIANCES[method](counted)
        half = z * float(max(variance, 0)) ** 0.5
        covered = float(abs(estimate - theta)) <= half
        bounds = (float(estimate) - half, float(estimate) + half)
        rows.append((ones, float(estimate), float(variance), *bounds, covered, regular(M, *zetas(counted))))
    table = pd.DataFrame(rows, columns=["ones", "estimate", "variance", "lower", "upper", "covered", "passes"])
    table.insert(1, "weight", binom.pmf(np.arange(M + 1), M, float(rate)))
    name = kernel if isinstance(kernel, str) else "user"
    table.insert(0, "M", M)
    table.insert(1, "kernel", name)
    table.insert(2, "method", method)
    table.insert(3, "prob", prob)
    return table


def coverage_table(sizes: tuple[int, ...] = (40, 80, 160), p: Any = "0.2", *, prob: float = 0.95) -> pd.DataFrame:
    """Every state of every size, method and packaged kernel; 2,264 rows by default, (41 + 81 + 161) x 4 x 2.

    Examples
    --------
    >>> len(coverage_table((4, 5)))
    88
    """
    parts = [
        coverage_states(m, p, method, kernel=kernel, prob=prob)
        for m in sizes
        for method in VARIANCE_METHODS
        for kernel in KERNELS
    ]
    return pd.concat(parts, ignore_index=True)


def _kernel(M: int, p: Any, method: str, kernel: str | Kernel, prob: float) -> tuple[Kernel, Fraction, Fraction]:
    """Check the arguments; return the kernel, its mean and p."""
    check_prob(prob)
    check_whole("M", M, 4)
    if method not in VARIANCES:
        raise ArgumentError(f"exact_coverage: method={method!r} is not one of {', '.join(VARIANCE_METHODS)}")
    if isinstance(kernel, str) and kernel not in KERNELS:
        raise ArgumentError(f"kernel={kernel!r} is not one of {', '.join(KERNELS)}, nor a function of two values")
    h = KERNELS[kernel] if isinstance(kernel, str) else kernel
    if h(0, 1) != h(1, 0):
        raise ArgumentError("kernel is not symmetric: h(0, 1) and h(1, 0) differ")
    rate = as_fraction(p)
    return h, rate**2 * h(1, 1) + 2 * rate * (1 - rate) * h(0, 1) + (1 - rate) ** 2 * h(0, 0), rate


def _state(M: int, ones: int, h: Kernel) -> Sums:
    """Sums of the kernel over M configs of which so many are 1."""
    zeros = M - ones
    kinds = [(pairs_in(ones), h(1, 1)), (ones * zeros, h(0, 1)), (pairs_in(zeros), h(0, 0))]
    high = (ones - 1) * h(1, 1) + zeros * h(0, 1)
    low = (zeros - 1) * h(0, 0) + ones * h(0, 1)
    degrees = np.repeat(np.array([high, low], dtype=np.int64), [ones, zeros])
    return Sums(M, sum(n * int(v) for n, v in kinds), sum(n * int(v) ** 2 for n, v in kinds), degrees, 1)


def _independent(M: int, h: Kernel, p: Fraction, theta: Fraction, method: str, prob: float) -> xr.Dataset:
    """As many independent pairs: their number of ones is Binomial(N, theta)."""
    from scipy.stats import binom

    if method != "pair_iid":
        raise NotIdentifiedError(f"exact_coverage: {method} is about configs that pairs share; use method='pair_iid'")
    if {h(0, 0), h(0, 1), h(1, 1)} - {0, 1}:
        raise NotIdentifiedError("exact_coverage: independent edges are enumerated for kernels of 0 and 1")
    n = pairs_in(M)
    estimate = np.arange(n + 1) / n
    half = quantile(prob) * np.sqrt(estimate * (1 - estimate) / (n - 1))
    weight = binom.pmf(np.arange(n + 1), n, float(theta))
    covered = np.abs(estimate - float(theta)) <= half
    return xr.Dataset({"coverage": float(weight @ covered), "width": float(weight @ (2 * half)), "theta": float(theta)})
