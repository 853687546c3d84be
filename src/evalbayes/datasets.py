"""Packaged example boards, each with its provenance in ``attrs["provenance"]``."""

import xarray as xr

from evalbayes import simulate
from evalbayes.errors import OutcomesError


def names() -> list[str]:
    """Names of the packaged boards.

    Examples
    --------
    >>> names()
    ['simulated']
    """
    return ["simulated"]


def load(name: str) -> xr.Dataset:
    """Load a packaged board by name.

    ``simulated``: 12 configs x 100 tasks x 5 runs drawn by `simulate.board` from the crossed beta-binomial
    model with two humps of tasks, so that every truth is known (see there); nothing is missing.

    Raises
    ------
    OutcomesError
        If there is no board of that name; lists those there are.

    Examples
    --------
    >>> dict(load("simulated").sizes)
    {'config': 12, 'task': 100, 'run': 5}
    """
    if name != "simulated":
        raise OutcomesError(f"no packaged board {name!r}; those there are: {', '.join(names())}")
    board = simulate.board(
        12, 100, 5, seed=20, intercept=-0.3, config_sd=0.8, task_sd=2.2, kappa=8.0, task_density="mixture"
    )
    provenance = "drawn by evalbayes.simulate.board, seed 20; no measurement of any real system; public domain"
    return board.assign_attrs(source="datasets:simulated", provenance=provenance)
