"""A gate for continuous integration: whether a new version of a system became worse by more than is allowed.

Both versions are put on one board and fitted together, so that what is hard for both cancels. With d the score of the
new version less that of the old and m the regression allowed, the gate looks at P(d < -m) under the posterior::

    P(d < -m) >= probability    fail: worse than allowed
    P(d >= -m) >= probability   pass: not worse than allowed
    else                        insufficient: these runs do not tell; run more tasks or, for fixed tasks, more runs

A gate that passed whatever it could not condemn would reward small test sets.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.answer import check_prob, from_draws
from evalbayes.errors import ArgumentError, OutcomesError, SamplingError
from evalbayes.outcomes import combine

BASE, NEW = " (base)", " (new)"
VERDICTS = ("fail", "insufficient", "pass")
"""Worst first."""


def gate(
    base: xr.Dataset,
    new: xr.Dataset,
    *,
    max_regression: float = 0.02,
    probability: float = 0.95,
    tasks: str = "sampled",
    prob: float = 0.95,
    model: str | None = None,
    method: str = "auto",
    draws: int = 4000,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Judge whether configs became worse from one board to another.

    Parameters
    ----------
    base, new
        Boards of the old and of the new version. Configs of one name are compared; a board of one config each is
        compared whatever the names.
    max_regression
        m, the loss that is allowed, as a proportion: 0.02 is two points.
    probability
        How probable a verdict has to be, from 0.5 to 1.
    tasks
        ``"sampled"``: the score on new tasks; ``"fixed"``: on these, which takes repeated runs.
    prob
        Coverage of the interval of the difference.
    model, method, draws, seed, progress
        Of the fit of both boards together, as in `evalbayes.fit`.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``: the difference new less base with its interval, ``regression`` (P(d < -m)),
        ``verdict`` (``"pass"``, ``"fail"``, ``"insufficient"``), ``base``, ``new`` (posterior mean scores) and
        ``shared_tasks``; attrs ``verdict``, the worst of them, and ``sentence``.

    Raises
    ------
    OutcomesError
        If no config is on both boards, or one that is shares no task with itself.
    ArgumentError
        If a regression or a probability is out of range.
    SamplingError
        If the fit fails its checks.

    Examples
    --------
    >>> from evalbayes import simulate
    >>> old, new = (simulate.board(1, 80, 1, seed=1, intercept=b) for b in (1.0, -1.5))
    >>> gate(old, new, method="laplace").attrs["verdict"]                            # doctest: +SKIP
    'fail'
    """
    check_prob(prob)
    _check(max_regression, probability)
    board, pairs, shared = joined(base, new)
    tree = _fitted(board, model, method=method, draws=draws, seed=seed, progress=progress)
    result = _changes(tree, list(pairs), tasks, prob, max_regression)
    result = result.assign(verdict=_verdict(result.regression, probability), shared_tasks=shared)
    return _summed_up(result.assign_coords(max_regression=max_regression, probability=probability))


def joined(
    base: xr.Dataset, new: xr.Dataset, labels: tuple[str, str] = (BASE, NEW)
) -> tuple[xr.Dataset, dict[str, tuple[str, str]], xr.DataArray]:
    """Return one board of both versions, under each name its configs on it (new, base), and the tasks they share.

    ``labels`` are what tells the names of the base's and of the new configs apart.
    """
    pairs, shared = _pairs(base, new)
    first, second = ([both[side] for both in pairs.values()] for side in (0, 1))
    board = combine([_side(base, first, pairs, labels[0]), _side(new, second, pairs, labels[1])])
    return board, {name: (name + labels[1], name + labels[0]) for name in pairs}, shared


def _changes(tree: xr.DataTree, names: list[str], tasks: str, prob: float, max_regression: float) -> xr.Dataset:
    """Answer with the difference of every config, new less base, and how probable a regression is."""
    from evalbayes.posterior.draws import effective, score_draws
    from evalbayes.posterior.score import withhold
    from evalbayes.report import population_of

    population = population_of(tree)
    scores, why = score_draws(tree, tasks=tasks, population=population)
    (old, old_why), (new, new_why) = (
        [part.sel(config=[name + side for name in names]).assign_coords(config=names) for part in (scores, why)]
        for side in (BASE, NEW)
    )
    reason = xr.where(old_why == "", new_why, old_why)
    method = str(tree.attrs["method"]) + ("_reweighted" if population == "reweighted" and tasks == "sampled" else "")
    who: dict[str, Any] = {"quantity": "difference", "tasks": tasks, "configs": "fixed", "method": method, "prob": prob}
    result = withhold(from_draws(new - old, ess=effective(tree), **who), reason)
    worse = (new - old < -max_regression).mean("draw").where(reason == "")
    return result.assign(base=old.mean("draw"), new=new.mean("draw"), regression=worse)


def _fitted(board: xr.Dataset, model: str | None, **options: Any) -> xr.DataTree:
    """Fit, with a normal density of task effects where the fit of a flexible one fails its checks.

    Two versions run once that differ on a handful of tasks leave the shape of that density open; their difference
    hardly depends on it.
    """
    from evalbayes.fit import fit

    try:
        return fit(board, model, **options)
    except SamplingError:
        if model not in (None, "crossed", "crossed_beta_binomial"):
            raise
        return fit(board, model, task_density="normal", **options)


def _check(max_regression: float, probability: float) -> None:
    if not 0 <= max_regression < 1:
        raise ArgumentError(
            f"max_regression={max_regression}: give the loss that is allowed, such as 0.02 for two points"
        )
    if not 0.5 < probability < 1:
        raise ArgumentError(f"probability={probability}: give how sure a verdict has to be, such as 0.95; above 0.5")


def _pairs(base: xr.Dataset, new: xr.Dataset) -> tuple[dict[str, tuple[str, str]], xr.DataArray]:
    """Return which config of one board is held against which of the other, by name, and the tasks that both ran."""
    old, late = (board["config"].values.tolist() for board in (base, new))
    pairs = {name: (name, name) for name in late if name in old}
    if len(old) == len(late) == 1:
        pairs = {late[0]: (old[0], late[0])}
    if not pairs:
        raise OutcomesError(
            f"gate: no config is on both boards: {', '.join(map(str, old[:3]))}, ... on one and "
            f"{', '.join(map(str, late[:3]))}, ... on the other; give boards of one config each, or name them alike"
        )
    shared = []
    for name, (one, other) in pairs.items():
        ran = [
            board.task.values[(board.trials.sel(config=who) > 0).values] for board, who in ((base, one), (new, other))
        ]
        shared.append(np.intersect1d(*ran).size)
        if not shared[-1]:
            raise OutcomesError(f"gate: {name!r} shares no task with its base; run both versions on the same tasks")
    return pairs, xr.DataArray(shared, dims="config", coords={"config": list(pairs)})


def _side(board: xr.Dataset, members: list[str], pairs: dict[str, tuple[str, str]], side: str) -> xr.Dataset:
    """Return the configs that are compared, named so that both versions fit on one board."""
    return board.sel(config=members).assign_coords(config=[name + side for name in pairs])


def _verdict(worse: xr.DataArray, probability: float) -> xr.DataArray:
    verdict: xr.DataArray = xr.where(
        worse >= probability, "fail", xr.where(1 - worse >= probability, "pass", "insufficient")
    )
    return verdict.astype(object)


def _summed_up(result: xr.Dataset) -> xr.Dataset:
    """Add the worst verdict, and one sentence for all."""
    counts = {verdict: int((result.verdict == verdict).sum()) for verdict in VERDICTS}
    worst = next(verdict for verdict in VERDICTS if counts[verdict])
    points = f"{100 * float(result.max_regression):g} points"
    meaning = {
        "fail": f"worse by more than {points} with a probability of {float(result.probability):g} or more",
        "insufficient": f"these runs do not tell whether a score fell by more than {points}",
        "pass": f"not worse by more than {points}, with a probability of {float(result.probability):g} or more",
    }[worst]
    said = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    said += [reason for reason in dict.fromkeys(result.reason.values.tolist()) if reason]
    return result.assign_attrs(verdict=worst, sentence=f"{worst}: {meaning} ({'; '.join(said)})")
