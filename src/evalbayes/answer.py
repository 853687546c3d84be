"""The answer: one schema for every estimate, one check of it, one summariser of draws.

An answer is an `xarray.Dataset` with

- ``estimate``, ``se`` over the quantity's own dims (often ``config``), ``interval`` over those and
  ``ci_bound`` (lower, upper), and ``reason``, a text that is empty where the estimate or its interval is
  known and says why where it is NaN;
- scalar coords ``quantity, tasks, configs, method, ci_kind, ci_prob``: the identity of the number. They
  are coords, not attrs, so that ``xr.concat(answers, "method", join="exact")`` keeps answers apart;
- any further variables a quantity needs (``tie``, ``coverage``, ``interval_mcse``), over the same dims.

Draws (posterior or bootstrap) become an answer in `from_draws` and nowhere else.
"""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.errors import ArgumentError

SCHEMA = ("estimate", "se", "interval", "reason")
IDENTITY = ("quantity", "tasks", "configs", "method", "ci_kind", "ci_prob")
TARGETS = ("fixed", "sampled")
BOUNDS = ("lower", "upper")

Target = Literal["fixed", "sampled"]
Point = Literal["mean", "median"]


def answer(
    estimate: xr.DataArray,
    se: xr.DataArray | float,
    interval: xr.DataArray,
    *,
    quantity: str,
    tasks: str,
    configs: str,
    method: str,
    prob: float,
    ci_kind: str = "eti",
    reason: xr.DataArray | str = "",
    **extra: Any,
) -> xr.Dataset:
    """Build an answer and check it.

    Parameters
    ----------
    estimate
        The point estimate, over the quantity's dims.
    se
        Its standard error, over the same dims or a scalar.
    interval
        Over the same dims and ``ci_bound``, of length two (lower, upper).
    quantity, tasks, configs, method
        What is estimated, for which target (``"fixed"`` or ``"sampled"``), and how.
    prob
        Coverage of the interval, in (0, 1).
    ci_kind
        ``"eti"`` (equal-tailed), ``"wald"``, ``"score"``, ...: how the interval is formed.
    reason
        Why a value is NaN, over the same dims or a scalar; empty where nothing is NaN.
    extra
        Further variables over the same dims, or scalar coords when they are plain numbers or text.

    Returns
    -------
    xarray.Dataset
        As this module describes.

    Raises
    ------
    ValueError
        If the parts do not make a valid answer; see `check`.

    Examples
    --------
    >>> one = xr.DataArray([0.5], dims="config", coords={"config": ["a"]})
    >>> bounds = xr.concat([one - 0.1, one + 0.1], "ci_bound")
    >>> a = answer(one, 0.05, bounds, quantity="score", tasks="fixed", configs="fixed",
    ...            method="wald", prob=0.95)
    >>> float(a.estimate[0])
    0.5
    """
    check_prob(prob)
    plain = {k: v for k, v in extra.items() if not isinstance(v, xr.DataArray)}
    arrays = {k: v for k, v in extra.items() if isinstance(v, xr.DataArray)}
    template = xr.zeros_like(estimate, dtype=float)
    text = xr.DataArray(reason) if isinstance(reason, str) else reason
    parts: dict[str, xr.DataArray] = {
        "estimate": estimate.astype(float),
        "se": template + se,
        "interval": interval.transpose(*estimate.dims, "ci_bound").astype(float),
        "reason": text.broadcast_like(template).astype(object),
        **arrays,
    }
    result = xr.Dataset({name: part.drop_vars(IDENTITY, errors="ignore") for name, part in parts.items()})
    result = result.assign_coords(
        ci_bound=list(BOUNDS),
        quantity=quantity,
        tasks=tasks,
        configs=configs,
        method=method,
        ci_kind=ci_kind,
        ci_prob=float(prob),
        **plain,
    )
    return check(result)


def check(result: xr.Dataset) -> xr.Dataset:
    """Return an answer unchanged, or raise ValueError naming what breaks the schema.

    Checked: the variables and scalar coords are there; the targets are named; dims agree; bounds are
    ordered; a NaN estimate or bound has a reason.
    """
    missing = [name for name in SCHEMA if name not in result.data_vars]
    missing += [name for name in IDENTITY if name not in result.coords]
    if missing:
        raise ValueError(f"not an answer: {', '.join(missing)} missing")
    for target in ("tasks", "configs"):
        if result[target].item() not in TARGETS:
            raise ValueError(f"not an answer: {target}={result[target].item()!r} is not 'fixed' or 'sampled'")
    if set(result.interval.dims) != {*result.estimate.dims, "ci_bound"}:
        raise ValueError("not an answer: interval does not have the dims of estimate and ci_bound")
    lower, upper = (result.interval.sel(ci_bound=bound) for bound in BOUNDS)
    if bool((lower > upper).any()):
        raise ValueError("not an answer: a lower bound exceeds its upper bound")
    unknown = result.estimate.isnull() | result.interval.isnull().any("ci_bound")
    if bool((unknown & (result.reason == "")).any()):
        raise ValueError("not an answer: a NaN has no reason")
    return result


def check_targets(tasks: str, configs: str) -> None:
    """Raise ArgumentError unless both targets are words that exist."""
    for name, target in (("tasks", tasks), ("configs", configs)):
        if target not in TARGETS:
            raise ArgumentError(f"{name}={target!r} is not 'fixed' or 'sampled'")


def check_prob(prob: float) -> None:
    """Raise ValueError unless ``prob`` is a share between 0 and 1."""
    if not 0 < prob < 1:
        raise ArgumentError(f"prob={prob}: give a share between 0 and 1, such as 0.95")


def from_draws(
    draws: xr.DataArray,
    *,
    quantity: str,
    tasks: str,
    configs: str,
    method: str,
    prob: float,
    point: Point = "mean",
    discrete: bool = False,
    estimate: xr.DataArray | None = None,
    ess: float | None = None,
    reason: xr.DataArray | str = "",
    **extra: Any,
) -> xr.Dataset:
    """Summarise equally weighted draws: the one place where draws become an answer.

    Parameters
    ----------
    draws
        Over ``draw`` and the quantity's dims.
    point
        ``"mean"`` for scores and probabilities, ``"median"`` for ratios.
    discrete
        Interval ends are values that occur (ranks), by the inverse of the empirical distribution.
    estimate
        A point estimate that does not come from the draws (a bootstrap's full-data estimate).
    ess
        Effective number of draws, by default their number; it sets ``interval_mcse``.
    quantity, tasks, configs, method, prob, reason, extra
        As in `answer`.

    Returns
    -------
    xarray.Dataset
        An answer with equal-tailed intervals and ``interval_mcse``, the Monte Carlo standard error of each
        interval end: half the distance between the quantiles of the draws at the 16% and 84% points of a
        Beta(ess q + 1, ess (1 - q) + 1), the distribution of the end's own level q.

    Examples
    --------
    >>> draws = xr.DataArray(np.linspace(0, 1, 101)[:, None], dims=("draw", "config"), coords={"config": ["a"]})
    >>> a = from_draws(draws, quantity="score", tasks="sampled", configs="fixed", method="laplace", prob=0.9)
    >>> a.interval.values.round(2).tolist()
    [[0.05, 0.95]]
    """
    check_prob(prob)
    centre = estimate if estimate is not None else getattr(draws, point)("draw")
    levels = np.array([(1 - prob) / 2, (1 + prob) / 2])
    # Between two infinities there is nothing to interpolate.
    endless: xr.DataArray = np.isinf(draws)  # type: ignore[assignment]
    how = "inverted_cdf" if discrete or bool(endless.any()) else "linear"
    interval = _quantile(draws, levels, how)
    return answer(
        centre,
        draws.where(~endless).std("draw", ddof=1).where(~endless.any("draw"), np.inf),
        interval,
        quantity=quantity,
        tasks=tasks,
        configs=configs,
        method=method,
        prob=prob,
        reason=reason,
        interval_mcse=_quantile_mcse(draws, levels, ess or draws.sizes["draw"], how if endless.any() else "linear"),
        **extra,
    )


def from_shares(
    share: xr.DataArray,
    se: xr.DataArray,
    draws: xr.DataArray | float,
    *,
    quantity: str,
    tasks: str,
    configs: str,
    method: str,
    prob: float,
    **extra: Any,
) -> xr.Dataset:
    """Build the answer for a probability counted over draws: how often something holds in them.

    Such a share is itself the statement of uncertainty; its se and interval (Wilson's, with the draws as trials) are
    those of the simulation alone, and ``ci_kind`` says so. Split ties vary less than whole wins: draws count for as
    many trials as give their se, without end where every draw holds the same share of a tie.

    Parameters
    ----------
    share, se
        The share of draws and its Monte Carlo standard error, over the quantity's dims.
    draws
        Number of draws, or their effective number, over the same dims or a scalar.
    quantity, tasks, configs, method, prob, extra
        As in `answer`.

    Examples
    --------
    >>> half = xr.DataArray([0.5], dims="config", coords={"config": ["a"]})
    >>> a = from_shares(half, half * 0 + 0.05, 100, quantity="top_k", tasks="sampled", configs="fixed",
    ...                 method="laplace", prob=0.95)
    >>> a.interval.values.round(3).tolist()
    [[0.404, 0.596]]
    """
    from evalbayes.textbook import wilson

    check_prob(prob)
    share = share.clip(0, 1)
    spread = share * (1 - share)
    plain = (share * 0 + draws).clip(min=1)
    trials = xr.where(se > 0, spread / (se**2).where(se > 0), plain.where(spread == 0, np.inf))
    ends = xr.DataArray(
        wilson(share.values, trials.transpose(*share.dims).values, prob), dims=(*share.dims, "ci_bound")
    )
    return answer(
        share,
        se,
        ends.assign_coords(share.coords),
        quantity=quantity,
        tasks=tasks,
        configs=configs,
        method=method,
        prob=prob,
        ci_kind="monte_carlo",
        **extra,
    )


def _quantile(draws: xr.DataArray, levels: npt.ArrayLike, how: Any = "linear") -> xr.DataArray:
    # Skipping NaN goes over the quantities one by one: ten times slower where there are thousands.
    ends = draws.quantile(levels, "draw", method=how, skipna=bool(draws.isnull().any())).rename(quantile="ci_bound")
    return ends.assign_coords(ci_bound=list(BOUNDS))


def _quantile_mcse(draws: xr.DataArray, levels: np.ndarray, ess: float, how: Any) -> xr.DataArray:
    from scipy.stats import beta

    around = [beta.ppf(side, ess * levels + 1, ess * (1 - levels) + 1) for side in (0.1587, 0.8413)]
    low, high = (_quantile(draws, level, how) for level in around)
    with np.errstate(invalid="ignore"):
        mcse: xr.DataArray = (high - low) / 2
    return mcse.transpose(..., "ci_bound")


def unknown(
    dims: dict[str, Any], reason: str, *, quantity: str, tasks: str, configs: str, method: str, prob: float
) -> xr.Dataset:
    """An answer that is NaN throughout, over ``dims`` (name to labels), with its reason.

    Examples
    --------
    >>> a = unknown({"config": ["a"]}, "one run", quantity="icc", tasks="sampled", configs="fixed",
    ...             method="moments", prob=0.95)
    >>> str(a.reason.item())
    'one run'
    """
    nan = xr.DataArray(np.full([len(labels) for labels in dims.values()], np.nan), coords=dims, dims=list(dims))
    bounds = nan.expand_dims(ci_bound=list(BOUNDS))
    return answer(
        nan, nan, bounds, quantity=quantity, tasks=tasks, configs=configs, method=method, prob=prob, reason=reason
    )
