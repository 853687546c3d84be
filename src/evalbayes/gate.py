"""A gate for continuous integration: whether a new version of a system became worse by more than is allowed.

Both versions are put on one board and fitted together, so that what is hard for both cancels. With d the score of the
new version less that of the old and m the regression allowed, the gate looks at P(d < -m) under the posterior::

    P(d < -m) >= probability    fail: worse than allowed
    P(d >= -m) >= probability   pass: not worse than allowed, and no more of the base's tasks lost than that
    else                        insufficient: these runs do not tell; run more tasks or, for fixed tasks, more runs

A gate that passed whatever it could not condemn would reward small test sets; one that looked at scored runs alone
would reward crashes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.answer import check_prob, from_draws
from evalbayes.errors import ArgumentError, OutcomesError, SamplingError
from evalbayes.outcomes import combine
from evalbayes.schema import require_board, scored_trials

BASE, NEW = " (base)", " (new)"
VERDICTS = ("fail", "insufficient", "pass")
"""Worst first."""

LOSSES = {"lost_tasks": "of the base's tasks have no scored run", "more_errors": "more attempts errored"}


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
        ``verdict`` (``"pass"``, ``"fail"``, ``"insufficient"``), ``base``, ``new`` (posterior mean scores),
        ``shared_tasks``, ``lost_tasks`` (share of the base's scored tasks without a scored run in the new version) and
        ``more_errors`` (share of attempts that ended without a score, new less base); attrs ``verdict``, the worst of
        them, ``sentence``, and ``only_base``, ``only_new``, configs that are on one board alone.

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
    sides, shared = paired(base, new)
    board = joined(base, new, sides)
    tree = _fitted(board, model, method=method, draws=draws, seed=seed, progress=progress)
    result = _changes(tree, list(sides), tasks, prob, max_regression)
    result = result.assign(_losses(base, new, sides, shared) | {"shared_tasks": shared})
    result = result.assign(verdict=_verdict(result, max_regression, probability))
    result = result.assign_attrs(only_base=_others(base, sides, 0), only_new=_others(new, sides, 1))
    return _summed_up(result.assign_coords(max_regression=max_regression, probability=probability))


def joined(
    base: xr.Dataset, new: xr.Dataset, pairs: dict[str, tuple[str, str]], labels: tuple[str, str] = (BASE, NEW)
) -> xr.Dataset:
    """Return one board of the configs that are `paired`, each under the pair's name and the label of its side."""
    first, second = ([both[side] for both in pairs.values()] for side in (0, 1))
    return combine([_side(base, first, pairs, labels[0]), _side(new, second, pairs, labels[1])])


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


def paired(base: xr.Dataset, new: xr.Dataset) -> tuple[dict[str, tuple[str, str]], xr.DataArray]:
    """Return which config of one board is held against which of the other, by name, and the tasks that both ran."""
    old, late = (require_board(board)["config"].values.tolist() for board in (base, new))
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


def _losses(
    base: xr.Dataset, new: xr.Dataset, sides: dict[str, tuple[str, str]], shared: xr.DataArray
) -> dict[str, xr.DataArray]:
    """Return what the new version lost of the base's tasks, and how many more of its attempts had no score."""
    lost, errors = [], []
    for name, pair in sides.items():
        old, late = (board.sel(config=who) for board, who in zip((base, new), pair, strict=True))
        lost.append(1 - float(shared.sel(config=name)) / int((old["trials"] > 0).sum()))
        shares = [float(one["errors"].sum()) / int((scored_trials(one) + one["errors"]).sum()) for one in (old, late)]
        errors.append(shares[1] - shares[0])
    coords = {"config": list(sides)}
    return {
        "lost_tasks": xr.DataArray(lost, dims="config", coords=coords),
        "more_errors": xr.DataArray(errors, dims="config", coords=coords),
    }


def _others(board: xr.Dataset, sides: dict[str, tuple[str, str]], side: int) -> str:
    """Return the configs of a board that are held against none of the other."""
    used = {both[side] for both in sides.values()}
    return ", ".join(name for name in board["config"].values.tolist() if name not in used)


def _verdict(result: xr.Dataset, max_regression: float, probability: float) -> xr.DataArray:
    """Judge each config; what crashed more than is allowed does not pass by the runs that did not."""
    worse = result.regression
    crashed = (result.lost_tasks > max_regression) | (result.more_errors > max_regression)
    passed = (1 - worse >= probability) & ~crashed
    verdict: xr.DataArray = xr.where(worse >= probability, "fail", xr.where(passed, "pass", "insufficient"))
    return verdict.astype(object)


def _summed_up(result: xr.Dataset) -> xr.Dataset:
    """Add the worst verdict, and one sentence for all."""
    counts = {verdict: int((result.verdict == verdict).sum()) for verdict in VERDICTS}
    counts["insufficient"] += bool(result.attrs["only_base"])
    worst = next(verdict for verdict in VERDICTS if counts[verdict])
    points, sure = (
        f"{100 * float(result.max_regression):g} points",
        f"with a probability of {float(result.probability):g}",
    )
    meaning = {
        "fail": f"worse by more than {points} {sure} or more",
        "insufficient": f"these runs do not show, {sure}, whether a score fell by more than {points}",
        "pass": f"not worse by more than {points}, {sure} or more",
    }[worst]
    said = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    for name, what in LOSSES.items():
        far = result[name].where(result[name] > result.max_regression, drop=True)
        shown = zip(far["config"].values, far.values, strict=True)
        said += [f"{config}: {100 * value:.1f}% {what}" for config, value in shown]
    said += [f"on the base alone: {result.attrs['only_base']}"] if result.attrs["only_base"] else []
    said += [f"on the new board alone: {result.attrs['only_new']}"] if result.attrs["only_new"] else []
    said += [reason for reason in dict.fromkeys(result.reason.values.tolist()) if reason]
    return result.assign_attrs(verdict=worst, sentence=f"{worst}: {meaning} ({'; '.join(said)})")
