"""Set a posterior answer beside the frequentist one for the same question, and say in words how they compare."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from evalbayes import components
from evalbayes.answer import IDENTITY, SCHEMA, check
from evalbayes.errors import ArgumentError, OutcomesError
from evalbayes.schema import require_board

AGREE_WITHIN = 0.05
"""Two simulated probabilities this close are called the same; their intervals only hold simulation error."""

NARROW = 2 / 3
"""An interval less than this share as wide as the other does not agree with it, wherever its centre is."""

FEW = 30
"""Runs beyond the first of each task, over a config's tasks, below which its moments are noisy."""
NO_SPREAD = "by moments tasks spread no more than their runs explain, which they cut at no spread at all"
NO_FLIPS = "no task had runs of both kinds, which moments take for certainty"

BORROWS = "the fit lets configs inform each other"
NORMAL = "the fit takes abilities of future entries to be normal, whatever those on the board look like"

PROBABILITIES = ("win_probability", "top_k")

FIT_ONLY = ("population", "assume", "scores", "panel_tasks", "panel_runs", "entries")
"""What only a posterior answer can be asked: a board has no fitted population, no model and no panel but its own."""
BOARD_ONLY = ("panel", "cluster", "copies", "blocks", "weights")
"""What only an answer from counts can be asked, of near ties. Its coords say it, and an answer about other clusters or
other pairs than the fit's is refused."""


def compare(
    quantity: str,
    fit: xr.DataTree,
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    seed: int = 0,
    method: str | None = None,
    **keyword: Any,
) -> xr.Dataset:
    """Answer one question twice, from the fit and from the outcomes, and set the answers side by side.

    Parameters
    ----------
    quantity
        A name that both `evalbayes.posterior` and `evalbayes.frequentist` answer, such as ``"score"``; or
        ``"near_tie"``, with ``margin``, which `evalbayes.pairs` answers from the board.
    fit, outcomes
        The fit, and the board it was fitted to.
    tasks, configs, prob
        The target and the level, for both.
    seed, method
        Of the frequentist answer.
    keyword
        What the quantity needs besides, for both: ``k`` of `top_k`, ``reference`` of `difference`, ``margin`` of
        `near_tie`. ``population`` and ``assume`` are for the fit alone, and so are ``scores``, ``panel_tasks``,
        ``panel_runs`` and ``entries`` of `near_tie`; ``panel``, ``cluster``, ``copies``, ``blocks`` and ``weights`` are
        for the board alone.

    Returns
    -------
    xarray.Dataset
        As `side_by_side` gives it. Where variance components, or what follows from them, part, ``why`` says why, and
        the verdict with it: moments at the edge of what is possible, few runs, or configs that inform each other; where
        near ties of future entries do, that a fit takes their abilities to be normal.

    Notes
    -----
    Near ties are one question on both sides where something is sampled and the panels are alike: future entries on the
    board's tasks, on as many new ones, or these entries on as many new tasks, with the board's number of runs each. For
    ``configs="fixed", tasks="fixed"`` they are not: the board's share is of the runs that it holds (``new_runs`` is
    False), the posterior's of new ones. Nor are latent scores, or a board whose cells differ in their number of runs or
    lack some, of which a simulated panel has the same for all: these are refused, and the coord that differs is named.

    Raises
    ------
    ValueError
        If the quantity is not answered on both sides, or the answers are not about the same thing.
    OutcomesError
        If the board is not the fit's.
    NotIdentifiedError
        Whatever either side cannot answer.

    Examples
    --------
    >>> compare("charm", xr.DataTree(), xr.Dataset())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    evalbayes.errors.ArgumentError: compare: no 'charm' on both sides; choose from ...
    """
    of_posterior, of_board = _sides(quantity)
    _check_same_board(fit, outcomes)
    own, counted = ({name: keyword.pop(name) for name in names if name in keyword} for names in (FIT_ONLY, BOARD_ONLY))
    target: dict[str, Any] = {"tasks": tasks, "configs": configs, "prob": prob, **keyword}
    bayesian = of_posterior(fit, **target, **own)
    joined = side_by_side(bayesian, of_board(outcomes, seed=seed, method=method, **target, **counted))
    if quantity == "near_tie" and configs == "sampled":
        return _because(joined, xr.full_like(joined.verdict, NORMAL))
    return _explained(joined, outcomes, keyword) if quantity in components.QUANTITIES else joined


def _sides(quantity: str) -> tuple[Callable[..., xr.Dataset], Callable[..., xr.Dataset]]:
    """Return the functions that answer from a fit and from a board."""
    posterior, frequentist = (importlib.import_module(f"evalbayes.{side}") for side in ("posterior", "frequentist"))
    both = [name for name in frequentist.__all__ if hasattr(posterior, name)]
    if quantity == "near_tie":
        frequentist = importlib.import_module("evalbayes.pairs")
    elif quantity not in both:
        raise ArgumentError(f"compare: no {quantity!r} on both sides; choose from {', '.join(both)}")
    return getattr(posterior, quantity), getattr(frequentist, quantity)


def _check_same_board(fit: xr.DataTree, outcomes: xr.Dataset) -> None:
    """Refuse a board that the fit was not made of: two answers about two boards are no comparison."""
    require_board(outcomes)
    if not isinstance(fit, xr.DataTree) or "constant_data" not in fit.children:
        return
    trials, mine = (
        one.reset_coords(drop=True).transpose("config", "task")
        for one in (fit["constant_data"].to_dataset()["trials"], outcomes["trials"])
    )
    for dim in ("config", "task"):
        other = set(map(str, trials[dim].values)) ^ set(map(str, mine[dim].values))
        if other:
            raise OutcomesError(f"compare: {dim} {min(other)!r} is on one side alone; give the fit's own board")
    if not bool((trials == mine).all()):
        raise OutcomesError("compare: the fit was made of other runs than the board has; give the fit's own board")


def _explained(joined: xr.Dataset, outcomes: xr.Dataset, keyword: dict[str, Any]) -> xr.Dataset:
    """Add ``why`` the two sides part on variance components, or on what follows from them, to the verdicts too."""
    needs = {name: keyword[name] for name in ("runs", "cost_ratio") if name in keyword}
    function = components.function_of(joined.quantity.item(), **needs)
    moments = joined.estimate.isel(method=1, drop=True)
    spare = (outcomes["trials"] - 1).clip(min=0).sum("task").reset_coords(drop=True)
    if "config" not in moments.dims:
        spare = spare.median()
    why = xr.where(joined.width_ratio < NARROW, BORROWS, xr.full_like(joined.verdict, ""))
    why = xr.where(spare < FEW, f"fewer than {FEW} runs beyond the first of a task: moments are noisy; {BORROWS}", why)
    # Components of 1 and 0 stand for any of which one is nil.
    for edge, said in (((0.0, 1.0), NO_SPREAD), ((1.0, 0.0), NO_FLIPS)):
        why = xr.where(moments == function(*map(np.float64, edge)), said, why)
    return _because(joined, why)


def _because(joined: xr.Dataset, why: xr.DataArray) -> xr.Dataset:
    """Add reasons to the verdicts that say the sides differ."""
    why = why.where(joined.verdict.str.startswith("differ"), "").astype(object)
    verdict = joined.verdict + xr.where(why == "", "", "; ") + why
    return joined.assign(verdict=verdict, why=why.transpose(*joined.verdict.dims))


def side_by_side(bayesian: xr.Dataset, frequentist: xr.Dataset) -> xr.Dataset:
    """Join two answers over ``method``, the Bayesian first, with the ratio of their widths and a verdict.

    Parameters
    ----------
    bayesian, frequentist
        Answers to the same question: every scalar coord but ``method`` and ``ci_kind`` must agree, and so
        must the labels along every dim. Only the variables of the schema are kept.

    Returns
    -------
    xarray.Dataset
        Over ``method`` and the quantity's dims, with ``width_ratio`` (Bayesian / frequentist width; NaN where
        one is unknown or the frequentist one is 0, and for probabilities, whose intervals only hold simulation error),
        ``verdict``, a sentence for each entry, and attr ``summary``, one for all. Answers agree when each
        interval holds the other's estimate and neither is less than two thirds as wide as the other; probabilities
        when they are within 0.05.

    Raises
    ------
    ValueError
        If the answers are of different quantities, targets or levels, or not about the same configs.

    Examples
    --------
    >>> from evalbayes.frequentist import score
    >>> from evalbayes.outcomes import from_matrix
    >>> board = from_matrix([[1, 1, 0, 0]], configs=["a"], tasks=list("wxyz"))
    >>> both = side_by_side(score(board), score(board, method="clustered_normal"))
    >>> both.verdict.item()
    'agree: 0.500 and 0.500, the Bayesian interval 1.00 times as wide'
    """
    answers = [check(bayesian), check(frequentist)]
    common = _same_question(*answers)
    kept = [_schema_only(one, common) for one in answers]
    # exact: a label missing on one side must not become a silent NaN.
    joined: xr.Dataset = xr.concat(
        kept, "method", join="exact", coords="different", compat="equals", combine_attrs="drop"
    )
    joined["width_ratio"] = _width_ratio(joined)
    joined["verdict"] = _verdicts(joined)
    joined.attrs["summary"] = _summary(joined)
    return joined


def _same_question(bayesian: xr.Dataset, frequentist: xr.Dataset) -> list[str]:
    """Scalar coords that both answers have, which must agree: what differs is a different question."""
    common = [str(name) for name, coord in bayesian.coords.items() if coord.ndim == 0 and name in frequentist.coords]
    for name in common:
        mine, theirs = bayesian[name].item(), frequentist[name].item()
        if name not in ("method", "ci_kind") and mine != theirs:
            differ = f"{name} is {mine!r} on one side and {theirs!r} on the other"
            raise ArgumentError(f"compare: {differ}; ask both the same")
    if bayesian.method.item() == frequentist.method.item():
        raise ArgumentError(f"compare: both answers are by {bayesian.method.item()!r}; nothing to compare")
    return common


def _schema_only(one: xr.Dataset, common: list[str]) -> xr.Dataset:
    keep = {*IDENTITY, *common, *one.interval.dims}
    return one[list(SCHEMA)].drop_vars([name for name in one.coords if name not in keep])


def _width_ratio(joined: xr.Dataset) -> xr.DataArray:
    width = joined.interval.sel(ci_bound="upper", drop=True) - joined.interval.sel(ci_bound="lower", drop=True)
    if joined.quantity.item() in PROBABILITIES:
        width = width * np.nan
    mine, theirs = (width.isel(method=side, drop=True) for side in (0, 1))
    ratio: xr.DataArray = mine / theirs.where(theirs > 0)
    return ratio


def _verdicts(joined: xr.Dataset) -> xr.DataArray:
    dims = joined.width_ratio.dims
    ends = joined.interval.transpose("method", ..., "ci_bound").values
    values = joined.estimate.transpose("method", ...).values
    if joined.quantity.item() in PROBABILITIES:
        agree = abs(values[0] - values[1]) <= AGREE_WITHIN
    else:
        other = values[::-1]
        agree = ((ends[..., 0] <= other) & (other <= ends[..., 1])).all(axis=0)
    reasons = joined.reason.transpose("method", ...).values
    unknown = np.isnan(values) | np.isnan(ends).any(axis=-1)
    words = np.empty(agree.shape, dtype=object)
    for at in np.ndindex(*agree.shape):
        side = (slice(None), *at)
        words[at] = _words(values[side], bool(agree[at]), joined.width_ratio.values[at], unknown[side], reasons[side])
    return xr.DataArray(words, dims=dims, coords={dim: joined[dim] for dim in dims})


def _words(values: Any, agree: bool, ratio: float, unknown: Any, reasons: Any) -> str:
    if unknown.all():
        return f"no interval on either side: {reasons[0]}"
    if unknown.any():
        side = "Bayesian" if unknown[0] else "frequentist"
        return f"no {side} interval: {reasons[0] if unknown[0] else reasons[1]}"
    wide = f", the Bayesian interval {ratio:.2f} times as wide" if np.isfinite(ratio) else ""
    verdict = "differ" if not agree else "differ in width" if ratio < NARROW or ratio > 1 / NARROW else "agree"
    return f"{verdict}: {values[0]:.3f} and {values[1]:.3f}{wide}"


def _summary(joined: xr.Dataset) -> str:
    first = [str(text).split(":")[0] for text in joined.verdict.values.ravel()]
    agree, compared = first.count("agree"), sum(word in ("agree", "differ", "differ in width") for word in first)
    ratios = joined.width_ratio.values[np.isfinite(joined.width_ratio.values)]
    wide = f"; the Bayesian intervals are {np.median(ratios):.2f} times as wide (median)" if ratios.size else ""
    missing = len(first) - compared
    return f"{agree} of {compared} entries agree{wide}" + (f"; {missing} cannot be compared" if missing else "")
