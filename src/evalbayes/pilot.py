"""What a small pilot of repeated runs would have said of a board that has many."""

from collections.abc import Iterable

import numpy as np
import xarray as xr

from evalbayes import components
from evalbayes.errors import ArgumentError, NotIdentifiedError, check_whole
from evalbayes.frequentist import bootstrap, moments
from evalbayes.frequentist.bootstrap import Floats
from evalbayes.schema import require_board

QUANTITIES = ("ceiling", "icc")


def pilot(outcomes: xr.Dataset, *, runs: int | Iterable[int] = (2, 3), draws: int = 200, seed: int = 0) -> xr.Dataset:
    """Return how well a few runs of half the tasks predict the ceiling and the ICC of the other half.

    Each draw splits the tasks at random. On one half R' runs of every cell are kept, chosen among those it has, and
    both quantities are estimated by moments; ``error`` is the mean distance to the estimates from all runs of the other
    half. ``floor`` is that of all runs of the first half: what no number of runs would mend, for the halves hold other
    tasks (arXiv 2606.00920). Cells with fewer runs keep those they have.

    Parameters
    ----------
    outcomes
        A board, of cells with more runs than the pilot's.
    runs
        R', each from 2 to the most runs of a cell.
    draws, seed
        How many splits, and from where.

    Returns
    -------
    xarray.Dataset
        Over ``(quantity, runs, config)``: ``error``, ``floor``, and ``used``, the share of the splits in which both
        halves gave a finite value, over which the two are means: where it is well below 1 an error can be held against
        the floor beside it, and against no other. Over ``(quantity, runs)``: ``mean_error`` and
        ``mean_floor``, over configs and splits, and ``error_se``, the Monte Carlo standard error of the first.

    Raises
    ------
    NotIdentifiedError
        If the board has fewer than four tasks, or no cell of two runs.
    ArgumentError
        If a number of runs is not between 2 and the most of a cell.

    Examples
    --------
    >>> from evalbayes import datasets
    >>> found = pilot(datasets.load("repeated_runs"), runs=[2], draws=50)
    >>> bool((found.mean_error > found.mean_floor).all())
    True
    """
    check_whole("draws", draws, 2)
    check_whole("seed", seed, 0)
    counts = [int(runs)] if isinstance(runs, int | np.integer) else list(runs)
    tasks, most = require_board(outcomes).sizes["task"], int(outcomes["trials"].max())
    if tasks < 4 or most < 2:
        lacks = components.ONE_RUN if most < 2 else f"{tasks} tasks: each half needs two or more"
        raise NotIdentifiedError(f"pilot: {lacks}")
    if not counts or not all(isinstance(one, int | np.integer) and 2 <= one <= most for one in counts):
        raise ArgumentError(f"runs={counts}: give the pilot's runs of a cell, each from 2 to {most}, the board's most")
    rng = np.random.default_rng(seed)
    first = (rng.random((draws, tasks)).argsort(axis=1) < tasks // 2).astype(float)
    whole = moments.estimator(bootstrap.cells(outcomes), None)
    mine, other = (_values(*whole.at(half)) for half in (first, 1 - first))
    with np.errstate(invalid="ignore"):
        floor = np.abs(mine - other)
        errors = np.stack([np.abs(_piloted(outcomes, count, first, rng) - other) for count in counts], axis=1)
    return _summary(errors, floor, counts, outcomes["config"].values)


def _values(raw: Floats, within: Floats) -> Floats:
    """Return both quantities, (quantity, draw, config)."""
    between = np.maximum(raw, 0.0)
    return np.stack([components.function_of(quantity)(between, within) for quantity in QUANTITIES])


def _piloted(outcomes: xr.Dataset, runs: int, first: Floats, rng: np.random.Generator) -> Floats:
    """Return both quantities from ``runs`` runs of the tasks in each first half, (quantity, draw, config)."""
    k, n = (outcomes[name].transpose("config", "task") for name in ("successes", "trials"))
    kept = n.clip(max=runs)
    parts = []
    for half in first:
        some = rng.hypergeometric(k.values, (n - k).values, kept.values)
        board = bootstrap.cells(outcomes.assign(successes=k.copy(data=some), trials=kept))
        parts.append(_values(*moments.estimator(board, None).at(half[None])))
    return np.concatenate(parts, axis=1)


def _summary(errors: Floats, floor: Floats, runs: list[int], configs: Floats) -> xr.Dataset:
    """Average errors (quantity, runs, draw, config) and floors (quantity, draw, config) where both are finite."""
    floor = np.broadcast_to(floor[:, None], errors.shape)
    used = np.isfinite(errors) & np.isfinite(floor)
    coords = {"quantity": list(QUANTITIES), "runs": runs, "config": configs}
    dims = ("quantity", "runs", "draw", "config")
    with np.errstate(invalid="ignore"):
        parts = {
            "error": xr.DataArray(errors, dims=dims, coords=coords).where(used),
            "floor": xr.DataArray(floor, dims=dims, coords=coords).where(used),
        }
    result = xr.Dataset({name: part.mean("draw") for name, part in parts.items()})
    by_draw = parts["error"].mean("config")
    result = result.assign(
        used=xr.DataArray(used, dims=dims, coords=coords).mean("draw"),
        mean_error=parts["error"].mean(("draw", "config")),
        mean_floor=parts["floor"].mean(("draw", "config")),
        error_se=by_draw.std("draw", ddof=1) / np.sqrt(by_draw.notnull().sum("draw")),
    )
    return result.assign_coords(tasks="sampled", configs="fixed")
