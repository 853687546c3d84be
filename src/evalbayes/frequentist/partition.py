"""Where the variance of a run's outcome comes from, by moments: a two-way analysis of variance, without an interval.

Effects of configs and of tasks are fitted to the cells' rates by least squares. Each side's are then taken apart by
Henderson's third method (1953, Biometrics 9, 226-252; Searle, Casella and McCulloch 1992, Variance Components, section
5.5): sums of squares of one group after all that are not nested in it, set equal to their expectations. That is
unbiased whichever agents were run with which models. What is left in cells is config and task together, less what the
runs of a cell, about its own rate, show to be chance.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy import sparse

from evalbayes.answer import answer, check_targets
from evalbayes.components import share_of_side
from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.models.labels import coords, labels, named
from evalbayes.schema import require_board
from evalbayes.words import Floats

NO_INTERVAL = "no interval by moments: posterior.variance_components has one"
NOT_SHOWN = "nothing on the board shows it: no cell was run twice, or the groups cannot be told apart"
RESIDUAL = "residual"
SCALE = "by moments on the probability scale only: ask with scale='probability'"


def variance_components(
    outcomes: xr.Dataset,
    *,
    config_groups: str | Sequence[str] = (),
    task_groups: str | Sequence[str] = (),
    scale: str = "probability",
    tasks: str = "sampled",
    configs: str = "sampled",
    method: str = "moments",
    prob: float = 0.95,
) -> xr.Dataset:
    """Variance of one run's outcome, for a new config on a new task, by where it comes from, by moments.

    Parameters
    ----------
    outcomes
        A board.
    config_groups, task_groups
        Coords of configs and of tasks with a component of their own.
    scale
        ``"probability"``: of the outcome itself, 0 or 1.
    tasks, configs
        ``"sampled"``: components are those of the populations.
    method
        ``"moments"``, as this module has it.
    prob
        Stored with the answer: there is no interval.

    Returns
    -------
    xarray.Dataset
        An answer over ``component``: the groups under their names, ``config`` and ``task`` what is left for those
        themselves, ``interaction`` (config and task together, with what `evalbayes.posterior.variance_components`
        gives to cells) and ``run``; these two are NaN where no cell was run twice. ``side`` and ``share`` as there.
        An unbiased estimate of a small component may be negative, and stays so.

    Raises
    ------
    NotIdentifiedError
        If the board has one config, or another target or scale is asked for.
    ArgumentError
        If a group is none, or the method is not known.

    Examples
    --------
    >>> from evalbayes.outcomes import from_matrix
    >>> board = from_matrix([[1, 1, 0, 1], [0, 1, 0, 0], [1, 1, 0, 1]], configs=list("abc"), tasks=list("wxyz"))
    >>> variance_components(board).estimate.sel(component=["config", "task"]).round(3).values.tolist()
    [0.056, 0.139]
    """
    board = require_board(outcomes)
    _check(board, scale, tasks, configs, method)
    found = _estimates(board, config_groups, task_groups)
    sides = {name: side for side, names in _factors(config_groups, task_groups).items() for name in names}
    sides |= {"interaction": "both", "run": "runs"}
    coords = {"component": list(found)}
    estimate = xr.DataArray(list(found.values()), dims="component", coords=coords)
    side = xr.DataArray([sides[name] for name in found], dims="component", coords=coords)
    return answer(
        estimate,
        estimate * np.nan,
        (estimate * np.nan).expand_dims(ci_bound=["lower", "upper"]),
        quantity="variance_components",
        tasks=tasks,
        configs=configs,
        method=method,
        prob=prob,
        ci_kind="none",
        reason=xr.where(estimate.isnull(), NOT_SHOWN, NO_INTERVAL).astype(object),
        side=side,
        share=share_of_side(estimate, side),
        scale=scale,
    )


def _check(board: xr.Dataset, scale: str, tasks: str, configs: str, method: str) -> None:
    check_targets(tasks, configs)
    if method != "moments":
        raise ArgumentError(f"method={method!r}: choose 'moments'")
    if scale not in ("probability", "latent"):
        raise ArgumentError(f"scale={scale!r}: choose one of 'probability', 'latent'")
    if scale == "latent":
        raise NotIdentifiedError(f"variance_components: {SCALE}")
    if (tasks, configs) != ("sampled", "sampled"):
        raise NotIdentifiedError("variance_components: ask with tasks='sampled', configs='sampled': of populations")
    if board.sizes["config"] < 2 or board.sizes["task"] < 2:
        raise NotIdentifiedError("variance_components: one config or one task shows nothing of how others vary")


def _factors(config_groups: str | Sequence[str], task_groups: str | Sequence[str]) -> dict[str, list[str]]:
    """Return the factors of each side, its groups before what they are groups of."""
    return {"configs": [*named(config_groups), "config"], "tasks": [*named(task_groups), "task"]}


def _estimates(
    board: xr.Dataset, config_groups: str | Sequence[str], task_groups: str | Sequence[str]
) -> dict[str, float]:
    """Return every component; NaN where nothing on the board shows it."""
    try:
        coords(board, config_groups, task_groups)
    except ValueError as refused:
        raise ArgumentError(str(refused)) from None
    k, n = (board[name].transpose("config", "task").values.astype(float) for name in ("successes", "trials"))
    rate = np.where(n > 0, k / np.maximum(n, 1), np.nan)
    (config_effect, task_effect), residual = _additive(rate)
    found: dict[str, float] = {}
    for side, effect, axis in (("config", config_effect, 1), ("task", task_effect, 0)):
        names = _factors(config_groups, task_groups)[f"{side}s"][:-1]
        of = {name: labels(board, name, side) for name in names}
        seen = (n > 0).sum(axis=axis)
        parts = _henderson(effect[seen > 0], {name: values[seen > 0] for name, values in of.items()})
        # An effect is the mean of so many cells, and carries a share of what varies from cell to cell.
        found |= parts | {side: parts[RESIDUAL] - residual * float((1 / seen[seen > 0]).mean())}
        del found[RESIDUAL]
    again = n > 1
    noise = (rate * (1 - rate) * n / np.maximum(n - 1, 1))[again]
    run = float(noise.mean()) if again.any() else float("nan")
    return found | {"interaction": residual - run * float((1 / n[n > 0]).mean()), "run": run}


def _additive(rate: Floats) -> tuple[tuple[Floats, Floats], float]:
    """Fit effects of configs and of tasks to a table by least squares; return both, and the residual mean square.

    NaN where a cell was not run. Of a whole table the effects are the means of rows and of columns.
    """
    rows, columns = np.nonzero(~np.isnan(rate))
    configs, tasks = rate.shape
    design = sparse.coo_array(
        (np.ones(2 * rows.size), (np.tile(np.arange(rows.size), 2), np.concatenate([rows, configs + columns]))),
        shape=(rows.size, configs + tasks),
    ).tocsr()
    values = rate[rows, columns]
    normal, moment = (design.T @ design).toarray(), design.T @ values
    effect = np.linalg.lstsq(normal, moment, rcond=None)[0]
    free = rows.size - np.linalg.matrix_rank(normal)
    residual = float(((values - design @ effect) ** 2).sum() / free) if free else float("nan")
    return (effect[:configs], effect[configs:]), residual


def _henderson(effect: Floats, labels: dict[str, Floats]) -> dict[str, float]:
    """Return the variance of every group's effects, and of the residual, by Henderson's third method.

    A group's sum of squares is what it adds to all groups that are not nested in it; set equal to its expectation,
    which is linear in the variances. With Q the quadratic form, E y'Qy = sum over h of tr(Z_h' Q Z_h) V_h + tr(Q) V.
    """
    dummies = {name: (values[:, None] == np.unique(values)).astype(float) for name, values in labels.items()}
    ones = np.ones((effect.size, 1))

    def projection(names: Sequence[str]) -> Floats:
        columns = np.hstack([ones, *(dummies[name] for name in names)])
        return np.asarray(columns @ np.linalg.pinv(columns))

    forms = {}
    for name in dummies:
        beside = [other for other in dummies if other != name and not _nested(labels[other], labels[name])]
        forms[name] = projection([*beside, name]) - projection(beside)
    forms[RESIDUAL] = np.eye(effect.size) - projection(list(dummies))
    z = {**dummies, RESIDUAL: np.eye(effect.size)}
    system = np.array([[np.einsum("ia,ij,ja->", z[h], q, z[h]) for h in forms] for q in forms.values()])
    known = np.array([effect @ q @ effect for q in forms.values()])
    if np.linalg.matrix_rank(system, tol=1e-8) < len(forms):
        return dict.fromkeys(forms, float("nan"))
    return dict(zip(forms, np.linalg.solve(system, known).tolist(), strict=True))


def _nested(finer: Floats, coarser: Floats) -> bool:
    """Return whether two of one level of the finer group always are of one of the coarser."""
    return not ((finer[:, None] == finer) & (coarser[:, None] != coarser)).any()
