"""What repetition buys, as functions of one ratio: run variance over task variance.

A score over N tasks with R runs each has variance (sigma_b^2 + mu_w / R) / N, where sigma_b^2 is the variance over
tasks of the success probability and mu_w the mean over tasks of p (1 - p) (arXiv 2606.00920). With
r = mu_w / sigma_b^2::

    ICC = 1 / (1 + r)        ceiling = 1 + r        aleatoric share(R) = 1 / (1 + R / r)
    design effect(R) = 1 + (R - 1) ICC              R* = sqrt(r c_p / c_g)

c_p is the cost of one more task, c_g that of one more run of a task that is there. Every function takes r as an array
(xarray or NumPy) and is exact at r = 0 (runs never differ) and r = inf (tasks never do).
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.errors import ArgumentError, OutcomesError, check_whole

DESCRIBED = ("between_variance", "within_variance", "icc")
"""What these tasks as they are have a value of; the rest is about new ones."""
QUANTITIES = (
    *DESCRIBED,
    *("ceiling", "aleatoric_share", "design_effect", "design_factor", "optimal_runs"),
)
"""Functions of the two components."""
SAMPLED_ONLY = (
    "tasks='fixed': the variance is mu_w / (N R) and more runs lower it without end; ask with tasks='sampled'"
)
ITSELF = "a config less itself: there is no variance to share out"
ONE_RUN = "one run of each task: nothing shows how runs of one task vary; run some tasks again"


def ratio(between: Any, within: Any) -> Any:
    """Return r = within / between: inf where only tasks are alike, NaN where runs are too.

    >>> ratio(np.array([0.2, 0.0, 0.0]), np.array([0.05, 0.1, 0.0])).tolist()
    [0.25, inf, nan]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return within / between


def function_of(
    quantity: str, *, runs: int | None = None, cost_ratio: float | None = None
) -> Callable[[Any, Any], Any]:
    """Return the function of between and within variance that a quantity is.

    >>> function_of("design_effect", runs=5)(0.2, 0.05)
    4.2

    Raises
    ------
    ArgumentError
        If there is no such quantity, or what it needs besides is missing or none.
    """
    plain: dict[str, Callable[[Any, Any], Any]] = {
        "between_variance": lambda between, within: between,
        "within_variance": lambda between, within: within,
    }
    if quantity in plain:
        return plain[quantity]
    of_ratio: dict[str, Callable[[Any], Any]] = {"icc": icc, "ceiling": ceiling}
    by_runs = {"aleatoric_share": aleatoric_share, "design_effect": design_effect, "design_factor": design_factor}
    if quantity in by_runs:
        of_ratio[quantity] = partial(by_runs[quantity], runs=check_runs(runs))
    elif quantity == "optimal_runs":
        of_ratio[quantity] = partial(optimal_runs, cost_ratio=check_cost_ratio(cost_ratio))
    if quantity not in of_ratio:
        known = ", ".join([*plain, *of_ratio, *by_runs, "optimal_runs"])
        raise ArgumentError(f"quantity={quantity!r} is not one of {known}")
    return lambda between, within: of_ratio[quantity](ratio(between, within))


def icc(r: Any) -> Any:
    """Return the share of a single run's variance that lies between tasks."""
    return 1 / (1 + r)


def ceiling(r: Any) -> Any:
    """Return the variance of a score of one run a task over that of infinitely many."""
    return 1 + r


def aleatoric_share(r: Any, runs: int) -> Any:
    """Return the share of a score's variance that runs make, at ``runs`` a task.

    >>> round(float(aleatoric_share(0.34, 5)), 4)
    0.0637
    """
    with np.errstate(divide="ignore"):
        return 1 / (1 + np.divide(runs, r))


def design_effect(r: Any, runs: int) -> Any:
    """Return the variance of a score over what it would be were all runs independent."""
    return 1 + (runs - 1) * icc(r)


def design_factor(r: Any, runs: int) -> Any:
    """Return the square root of the design effect: the ratio of the two intervals' widths.

    >>> round(float(design_factor(1 / 0.744 - 1, 5)), 2)
    1.99
    """
    return np.sqrt(design_effect(r, runs))


def optimal_runs(r: Any, cost_ratio: float) -> Any:
    """Return R*, the runs a task that make the variance least at a fixed cost, as a real number."""
    # Where only runs cost one run is best, also where tasks do not differ.
    return np.sqrt(r * cost_ratio) if cost_ratio > 0 else 0.0 * np.minimum(r, 1.0)


def whole_runs(r: Any, cost_ratio: float) -> Any:
    """Return the best whole number of runs: one more than R pays while c_p / c_g > R (R + 1) / r.

    >>> whole_runs(np.array([0.0, 0.28, 0.28]), 7.0).tolist(), float(whole_runs(0.28, 88))
    ([1.0, 1.0, 1.0], 5.0)
    """
    return np.maximum(1, np.ceil((np.sqrt(1 + 4 * r * cost_ratio) - 1) / 2))


def relative_width(r: Any, runs: int, cost_ratio: float) -> Any:
    """Return an interval's width with ``runs`` runs a task over that with the best number, at the same total cost.

    The best is R*, or 1 where that is less: a task without a run says nothing. Where only runs cost (c_p = 0, as when
    generation is all there is to pay for) that is always so, and the width grows as the design factor.

    >>> [round(float(relative_width(25 / 88, 5, c)), 3) for c in (880.0, 88.0, 8.8)]
    [1.013, 1.0, 1.091]
    >>> bool(np.isclose(relative_width(0.5, 5, 0.0), design_factor(0.5, 5)))
    True
    """
    # In terms of the ICC, which is finite where r is not.
    share = icc(r)
    squared = (share + (1 - share) / runs) * (cost_ratio + runs)
    best = (np.sqrt(share * cost_ratio) + np.sqrt(1 - share)) ** 2
    return np.sqrt(squared / np.where((1 - share) * cost_ratio < share, cost_ratio + 1, best))


def check_runs(runs: Any) -> int:
    """Refuse what is not a number of runs."""
    check_whole("runs", runs, 1, "give how many runs each task gets, a whole number from 1")
    return int(runs)


def check_cost_ratio(cost_ratio: Any) -> float:
    """Refuse what is not a ratio of costs."""
    number = isinstance(cost_ratio, int | float | np.number) and not isinstance(cost_ratio, bool)
    if not (number and 0 <= cost_ratio < np.inf):
        raise ArgumentError(
            f"cost_ratio={cost_ratio!r}: give the cost of a task over that of a run, 0 where only runs cost"
        )
    return float(cost_ratio)


def pooled_names(pooled: Iterable[str] | None, labels: list[str], reference: str | None) -> list[str]:
    """Return the configs to pool, or refuse what is none; the reference itself has no difference to pool."""
    given: Any = [] if pooled is None else [pooled] if isinstance(pooled, str) else pooled
    names = np.asarray(given, dtype=object).tolist()
    if not isinstance(names, list):
        raise ArgumentError(f"pooled={pooled!r}: give the names of configs")
    missing = [name for name in names if name not in labels]
    if missing:
        raise OutcomesError(f"pooled: config {missing[0]!r} is not on the board; see evalbayes.describe")
    names = [name for name in dict.fromkeys(names) if name != reference]
    if not names:
        raise ArgumentError("pooled=[]: name the configs whose median is asked for, such as board.config.values")
    return names


def pooled_label(names: list[str]) -> str:
    """Return what a pooled answer is about, as text: it is part of the answer's identity."""
    return ", ".join(names)


def share_of_side(values: xr.DataArray, side: xr.DataArray) -> xr.DataArray:
    """Return each of ``values`` over what all of its side add up to; both over ``component``."""
    whole = values.groupby(side.rename("side")).sum("component")
    return (values / whole.sel(side=side)).drop_vars("side")


def middle(values: xr.DataArray) -> xr.DataArray:
    """Return the median over those configs that have a value, NaN where none has.

    >>> draws = [[1.0, np.inf, np.inf], [1.0, np.nan, 3.0], [np.nan] * 3]
    >>> middle(xr.DataArray(draws, dims=("draw", "config"))).values.tolist()
    [inf, 2.0, nan]
    """
    some = values.notnull().any("config")
    # xarray's own median loses its way where half of the values are inf.
    result: xr.DataArray = xr.apply_ufunc(
        np.nanmedian, values.where(some, 0.0), input_core_dims=[["config"]], kwargs={"axis": -1}
    )
    return result.where(some)
