"""Which configs a board lets one compare: the graph in which a scored run joins its config and its task.

Two configs that share a task are compared on it: how hard it is cancels. Two that share none, but are linked through
others (a with b on some tasks, b with c on others), are compared by adding up, which supposes that config and task
effects do add up from one set of tasks to another. Between connected components of the graph nothing adds up: whether
one side's configs are better or its tasks easier, the runs do not say, and a model that answers nonetheless has it from
its prior alone, which makes all tasks one population.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy import sparse

from evalbayes.errors import NotIdentifiedError
from evalbayes.words import Bools, Floats, shown

NAMES = 3
"""Of configs, of tasks and of groups that a sentence gives before it counts the rest."""
PRIOR_ALONE = "only the prior that makes their tasks one population would compare them"
NOT_SHARED = "no shared task: only additivity links them, through other configs"
EXCHANGEABLE = f"no shared task, and a model without task effects links by no other: {PRIOR_ALONE}"


def components(trials: xr.DataArray) -> xr.DataArray:
    """Return the connected component of every config: 0, 1, ... in the order of the board, -1 where nothing was scored.

    Parameters
    ----------
    trials
        Scored runs of every cell, (config, task).

    Returns
    -------
    xarray.DataArray
        Whole numbers over ``config``.

    Examples
    --------
    >>> trials = xr.DataArray([[1, 1, 0, 0], [0, 2, 0, 0], [0, 0, 0, 3], [0, 0, 0, 0]], dims=("config", "task"))
    >>> components(trials).values.tolist()
    [0, 0, 1, -1]
    """
    scored = _scored(trials)
    configs, (rows, columns) = len(scored), scored.nonzero()
    size = sum(scored.shape)
    graph = sparse.coo_array((np.ones(rows.size), (rows, configs + columns)), shape=(size, size))
    _, label = sparse.csgraph.connected_components(graph, directed=False)
    number, ran = np.full(configs, -1), scored.any(axis=1)
    _, first, which = np.unique(label[:configs][ran], return_index=True, return_inverse=True)
    number[ran] = first.argsort().argsort()[which]
    return xr.DataArray(number, dims="config", coords=_coords(trials, "config"))


def shares_task(trials: xr.DataArray) -> xr.DataArray:
    """Return whether a scored task is common to two configs, (config, opponent).

    Parameters
    ----------
    trials
        Scored runs of every cell, (config, task).

    Examples
    --------
    >>> trials = xr.DataArray([[1, 1, 0], [0, 2, 1], [0, 0, 3]], dims=("config", "task"))
    >>> shares_task(trials).values.tolist()
    [[True, True, False], [True, True, True], [False, True, True]]
    """
    # In floats, which multiply many times faster; counts stay exact.
    scored: Floats = _scored(trials).astype(float)
    return _pairs(trials, scored @ scored.T > 0)


def unshared(trials: xr.DataArray) -> xr.DataArray:
    """Return whether two configs share no task, but are linked through other configs, (config, opponent)."""
    number = components(trials).values
    linked = (number[:, None] == number) & (number >= 0)
    shared = shares_task(trials)
    return shared.copy(data=linked & ~shared.values)


def why_apart(trials: xr.DataArray) -> xr.DataArray:
    """Return over (config, opponent) why nothing on the board links a pair, "" where a chain of shared tasks does.

    A config without a scored run is in no component, and has a reason of its own.
    """
    number, groups = components(trials).values, _groups(trials)
    said = np.full((len(groups) + 1,) * 2, "", dtype=object)
    for one in range(len(groups)):
        for other in range(one + 1, len(groups)):
            said[one, other] = said[other, one] = _sentence([groups[one], groups[other]])
    # Number -1 is the last row and column, which stay empty.
    return _pairs(trials, said[np.ix_(number, number)])


def apart(trials: xr.DataArray) -> str:
    """Return the sentence that names a board's components, "" where there is one.

    Examples
    --------
    >>> names = {"config": ["a", "b", "c"], "task": ["t1", "t2", "t3", "t4", "t5"]}
    >>> trials = xr.DataArray([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 1]], coords=names)
    >>> apart(trials).partition(":")[0]
    'no chain of shared tasks links a, b (tasks t1, t2, t3 and 1 more) and c (task t5)'
    """
    groups = _groups(trials)
    return _sentence(groups) if len(groups) > 1 else ""


def refuse_apart(quantity: str, trials: xr.DataArray) -> None:
    """Raise NotIdentifiedError, naming the components, where a question about all configs at once joins several."""
    if why := apart(trials):
        raise NotIdentifiedError(
            f"{quantity}: {why}; ask about each group on a board of its own, or run some tasks with both"
        )


def _sentence(groups: Sequence[str]) -> str:
    rest = len(groups) - NAMES
    more = [f"{rest} more such group{'s' if rest > 1 else ''}"] if rest > 0 else []
    return f"no chain of shared tasks links {' and '.join([*groups[:NAMES], *more])}: {PRIOR_ALONE}"


def _groups(trials: xr.DataArray) -> list[str]:
    """Return the components in words, in their order: some of their configs, and of their tasks."""
    number, scored = components(trials).values, _scored(trials)
    groups = []
    for one in range(number.max(initial=-1) + 1):
        tasks = trials["task"].values[scored[number == one].any(axis=0)]
        configs = shown(map(str, trials["config"].values[number == one]), NAMES)
        groups.append(f"{configs} (task{'s' if tasks.size > 1 else ''} {shown(map(str, tasks), NAMES)})")
    return groups


def _scored(trials: xr.DataArray) -> Bools:
    return np.asarray(trials.transpose("config", "task").values > 0)


def _pairs(trials: xr.DataArray, values: npt.NDArray[Any]) -> xr.DataArray:
    return xr.DataArray(values, dims=("config", "opponent"), coords=_coords(trials, "config", "opponent"))


def _coords(trials: xr.DataArray, *dims: str) -> dict[str, npt.NDArray[Any]]:
    """Return the configs' names under each dim, without the board's own coords."""
    return dict.fromkeys(dims, trials["config"].values)
