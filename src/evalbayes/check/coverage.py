"""How often an interval covers the truth: any procedure, Bayesian ones included, on boards whose truth is known."""

import pickle
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from evalbayes.answer import BOUNDS, IDENTITY, check
from evalbayes.errors import ArgumentError, NotIdentifiedError, SamplingError, check_whole
from evalbayes.simulate import Floats

Procedure = Callable[[Any], xr.Dataset]
Design = Callable[..., xr.Dataset]
Truth = Callable[[xr.Dataset, xr.Dataset], Mapping[str, xr.DataArray]]

SCORES = {"sampled": "true_score", "fixed": "true_fixed_score"}
"""The coord of a simulated board that holds the true score, for each target."""
REASONS = 3
"""Reasons named in the result, the commonest first."""


class _Tried(NamedTuple):
    """What one procedure gave on one board: an interval a row (lower, upper), or why it was refused."""

    identity: dict[str, Any]
    ends: Floats
    truth: dict[str, Floats]
    reasons: list[str]
    apart: bool
    refusal: str = ""


def true_scores(board: xr.Dataset, answer: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return the true scores of a simulated board, or their differences, for each target.

    Parameters
    ----------
    board
        With coords ``true_score`` and ``true_fixed_score`` over config.
    answer
        A score or a difference, over config (and opponent).

    Returns
    -------
    dict
        ``"sampled"`` and ``"fixed"``, over the answer's dims.

    Raises
    ------
    ArgumentError
        If the answer is another quantity or does not name its reference, or the board has no such coords.

    Examples
    --------
    >>> from evalbayes import frequentist, simulate
    >>> board = simulate.board(3, 20, 2)
    >>> true_scores(board, frequentist.difference(board))["fixed"].dims
    ('config', 'opponent')
    """
    quantity = answer["quantity"].item()
    if quantity not in ("score", "difference") or answer["configs"].item() != "fixed":
        raise ArgumentError(
            f"the truth of {quantity!r} for configs={answer['configs'].item()!r} is not known here; "
            "give truth=, a function of board and answer"
        )
    if missing := [name for name in SCORES.values() if name not in board.coords]:
        raise ArgumentError(f"design: its board has no coord {', '.join(missing)}; use a design such as simulate.board")
    at = {target: board[name].reset_coords(drop=True) for target, name in SCORES.items()}
    if quantity == "score":
        return at
    if "opponent" in answer.dims:
        return {target: value - value.rename(config="opponent") for target, value in at.items()}
    if "reference" not in answer.coords:
        raise ArgumentError("procedure: its differences do not name their reference; leave reference= out: every pair")
    return {target: value - value.sel(config=answer["reference"].item(), drop=True) for target, value in at.items()}


def coverage(
    procedure: Procedure | Mapping[str, Procedure],
    design: Design,
    *,
    fit: Callable[[xr.Dataset], Any] | None = None,
    boards: int = 1000,
    seed: int = 0,
    truth: Truth = true_scores,
    executor: Executor | None = None,
) -> xr.Dataset:
    """Return how often intervals cover the truth of simulated boards, for each target, and how wide they are.

    With c_i = 1 where interval i covers and m_b the sum over board b of c_i - C, the coverage C is the mean of c_i and
    its Monte Carlo standard error sqrt(B / (B - 1) sum_b m_b^2) / n, for n intervals on B boards: configs of one board
    share its tasks and are not independent (clustered by board: Cameron and Miller 2015, Journal of Human Resources 50,
    317-372, section II). Where every interval covers, or none, it is sqrt(q (1 - q) / B) with q = (B + 1) / (B + 2),
    Laplace's rule. The mean width has the same error.

    Parameters
    ----------
    procedure
        Board -> answer over config, or over config and opponent (each pair is taken once), such as
        ``functools.partial(frequentist.score, method="clustered_normal")``; or several by name, asked on the same
        boards. A pool of processes has to pickle it, and a lambda cannot be.
    design
        Called with ``seed=``, returns a board whose truth is in coords: `check.designs.rates`, or
        ``functools.partial(simulate.board, 8, 60, 3)``. Every config is a data set.
    fit
        What is done to a board once, before the procedures, which then get its result in place of the board:
        `evalbayes.fit` for those of `evalbayes.posterior`.
    boards
        How many to draw. With one, the configs are taken to be independent if its attr ``true_tasks`` is ``"own"``,
        and the error is not known otherwise.
    seed
        Each board has its own, spawned from this (`numpy.random.SeedSequence`): same numbers for every executor.
    truth
        (board, answer) -> true value for each target, over the answer's dims; the default knows scores and differences.
    executor
        Any `concurrent.futures.Executor`, such as Dask's ``client.get_executor()``; None works through the boards in
        turn. Fits in a pool of processes need one that does not fork, because JAX has threads:
        ``ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))``.

    Returns
    -------
    xarray.Dataset
        Over ``target``: ``coverage``, ``coverage_se``, ``too_low`` and ``too_high`` (share of intervals that lie wholly
        below, or above, the truth). Besides ``width`` and ``width_se``; ``intervals``, how many these numbers are of;
        ``no_interval``, how many were NaN, and ``failed``, the number of boards on which a fit or answer was refused
        (SamplingError, NotIdentifiedError), neither counted as covering or not; ``reason``, the commonest reasons.
        Coords ``claims`` (the target that the procedure says it covers), ``quantity, configs, method, ci_kind,
        ci_prob`` (the nominal coverage). All over ``procedure`` too if there are several. Attrs ``boards``, ``seed``.

    Raises
    ------
    ArgumentError
        If an argument is not as above, or cannot be pickled for a pool of processes.

    Examples
    --------
    >>> from evalbayes import frequentist
    >>> from evalbayes.check.designs import rates
    >>> found = coverage(partial(frequentist.score, method="clustered_normal"), rates(0.6, 0.7, configs=500), boards=1)
    >>> found.coverage.round(2).values.tolist(), found.claims.item()
    ([0.96, 1.0], 'sampled')
    """
    check_whole("boards", boards, 1)
    check_whole("seed", seed, 0)
    named = dict(procedure) if isinstance(procedure, Mapping) else {"": procedure}
    if not named:
        raise ArgumentError("procedure is an empty mapping; give one function of a board, or several by name")
    work = partial(_tried, named, design, fit, truth)
    _check_picklable(work, executor)
    seeds = board_seeds(seed, boards)
    rows = list(map(work, seeds) if executor is None else executor.map(work, seeds))
    targets = next((list(one.truth) for row in rows for one in row.values() if not one.refusal), list(SCORES))
    results = [_summary([row[name] for row in rows], targets) for name in named]
    result = results[0]
    if isinstance(procedure, Mapping):
        result = xr.concat(results, "procedure", coords="all", join="exact").assign_coords(procedure=list(named))
    return result.assign_attrs(boards=boards, seed=seed)


def board_seeds(seed: int, boards: int) -> list[int]:
    """Return the seed of every board that `coverage` draws, so that one of them can be looked at alone.

    Examples
    --------
    >>> board_seeds(0, 2) == board_seeds(0, 3)[:2]
    True
    """
    # Whole numbers below 2**63, so that a design may write its seed into a board's attributes.
    return [
        int(one.generate_state(1, np.uint64)[0] >> np.uint64(1)) for one in np.random.SeedSequence(seed).spawn(boards)
    ]


def _check_picklable(work: Callable[..., Any], executor: Executor | None) -> None:
    if not isinstance(executor, ProcessPoolExecutor):
        return
    try:
        pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ArgumentError(
            f"a pool of processes cannot pickle procedure, design, fit or truth ({error}); take a function from the "
            "top of a module, or functools.partial of one, in place of a lambda"
        ) from error


def _tried(
    procedures: Mapping[str, Procedure],
    design: Design,
    fit: Callable[[xr.Dataset], Any] | None,
    truth: Truth,
    seed: int,
) -> dict[str, _Tried]:
    """Draw one board and put it to every procedure."""
    board = design(seed=seed)
    subject, refusal = (board, "") if fit is None else _attempt(fit, board)
    found = {}
    for name, procedure in procedures.items():
        answer, why = (None, refusal) if refusal else _attempt(procedure, subject)
        if why:
            found[name] = _Tried({}, np.empty((0, 2)), {}, [], False, why)
            continue
        if not isinstance(answer, xr.Dataset):
            raise ArgumentError(f"procedure {name!r} returned a {type(answer).__name__}; it has to return an answer")
        found[name] = _scored(check(answer), truth(board, answer), own=board.attrs.get("true_tasks") == "own")
    return found


def _attempt(function: Callable[[Any], Any], subject: Any) -> tuple[Any, str]:
    try:
        return function(subject), ""
    except (SamplingError, NotIdentifiedError) as refusal:
        return None, str(refusal)


def _scored(answer: xr.Dataset, truth: Mapping[str, xr.DataArray], *, own: bool) -> _Tried:
    """Lay an answer and its truth out in rows, one an interval; a config less itself is none, and a pair is one."""
    estimate = answer["estimate"]
    rows = np.ones(estimate.shape, bool)
    if "opponent" in estimate.dims:
        rows = np.triu(rows, 1)
    elif "reference" in answer.coords:
        rows = (estimate["config"] != answer["reference"]).values
    values = {target: _like(value, estimate, target)[rows] for target, value in truth.items()}
    return _Tried(
        identity={name: answer[name].item() for name in IDENTITY},
        ends=answer["interval"].transpose(*estimate.dims, "ci_bound").sel(ci_bound=list(BOUNDS)).values[rows],
        truth=values,
        reasons=answer["reason"].transpose(*estimate.dims).values[rows].tolist(),
        apart=own and "opponent" not in estimate.dims and "reference" not in answer.coords,
    )


def _like(value: xr.DataArray, estimate: xr.DataArray, target: str) -> Floats:
    """Return true values in the order of an estimate's labels, over all its dims."""
    if not set(value.dims) <= set(estimate.dims):
        raise ArgumentError(f"truth: {target!r} is over {value.dims}, the answer over {estimate.dims}")
    full = value.reindex_like(estimate).broadcast_like(estimate).transpose(*estimate.dims)
    if bool(full.isnull().any()):
        raise ArgumentError(f"truth: {target!r} is NaN, or not there, for some of the answer's {estimate.dims}")
    return np.asarray(full.values, float)


def _summary(tried: list[_Tried], targets: list[str]) -> xr.Dataset:
    """Reduce the intervals of one procedure on all boards to coverage and width."""
    answered = [one for one in tried if not one.refusal]
    ends = np.concatenate([np.empty((0, 2)), *(one.ends for one in answered)])
    known = ~np.isnan(ends).any(axis=1)
    alone = len(tried) == 1 and all(one.apart for one in answered)
    unit = np.arange(len(ends)) if alone else np.repeat(np.arange(len(answered)), [len(one.ends) for one in answered])
    ends, unit = ends[known], np.unique(unit[known], return_inverse=True)[1]
    found: dict[str, Any] = {}
    for target in targets:
        true = np.concatenate([np.empty(0), *(one.truth[target] for one in answered)])[known]
        low, high = ends[:, 1] < true, ends[:, 0] > true
        share, se = _mean(~(low | high), unit)
        found[target] = (share, _never_nil(share, se, unit), _mean(low, unit)[0], _mean(high, unit)[0])
    columns: dict[str, Any] = {
        name: ("target", [found[target][i] for target in targets])
        for i, name in enumerate(("coverage", "coverage_se", "too_low", "too_high"))
    }
    columns["width"], columns["width_se"] = _mean(ends[:, 1] - ends[:, 0], unit)
    columns |= {"intervals": len(ends), "no_interval": int((~known).sum()), "failed": len(tried) - len(answered)}
    columns["reason"] = _said(tried, one_unit=not alone and len(tried) == 1)
    return xr.Dataset(columns, {"target": targets} | _identity(answered))


def _mean(values: np.ndarray, unit: np.ndarray) -> tuple[float, float]:
    """Return a mean and its standard error clustered by unit; NaN where there is none to be had."""
    if not len(values):
        return np.nan, np.nan
    mean, units = float(np.mean(values)), int(unit.max()) + 1
    if units < 2 or np.isinf(mean):
        return mean, np.nan
    squared = float((np.bincount(unit, values - mean) ** 2).sum())
    return mean, float(np.sqrt(units / (units - 1) * squared) / len(values))


def _never_nil(share: float, se: float, unit: np.ndarray) -> float:
    """Return the standard error of a share, that of Laplace's rule where every interval covers, or none."""
    if share not in (0.0, 1.0) or np.isnan(se):
        return se
    units = int(unit.max()) + 1
    return float(np.sqrt(units + 1) / (units + 2) / np.sqrt(units))


def _said(tried: list[_Tried], *, one_unit: bool) -> str:
    """Return why intervals or errors are missing, commonest first: one text of those that differ in numbers alone."""
    given = [text for one in tried for text in (*one.reasons, one.refusal) if text]
    kinds: dict[str, list[str]] = {}
    for text in given:
        kinds.setdefault(re.sub(r"[-+]?\d[\d.,]*", "", text), []).append(text)
    parts = [f"{len(texts)} x {texts[0]}" for texts in sorted(kinds.values(), key=len, reverse=True)[:REASONS]]
    if len(kinds) > REASONS:
        parts.append(f"{len(kinds) - REASONS} other reasons")
    if one_unit:
        parts.append("one board whose configs share its tasks: no Monte Carlo error; draw more boards")
    return "; ".join(parts)


def _identity(answered: list[_Tried]) -> dict[str, Any]:
    """Return what the answers say they are; a method that differs between boards is named with the others."""
    seen = {name: sorted({one.identity[name] for one in answered}) for name in IDENTITY}
    prob = seen.pop("ci_prob")
    words = {("claims" if name == "tasks" else name): ", ".join(values) for name, values in seen.items()}
    return words | {"ci_prob": prob[0] if len(prob) == 1 else np.nan}
