"""The questions: near tie, equality, discordance and a user's rule over all pairs, each for four targets."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy.typing as npt
import xarray as xr

from evalbayes.frequentist.bootstrap import Floats
from evalbayes.pairs.assembly import ask
from evalbayes.pairs.diagnostics import near_tie_rule
from evalbayes.pairs.panel import panel_of
from evalbayes.pairs.rules import discordance_rule, user_rule

Labels = str | xr.DataArray | npt.NDArray[Any] | list[str]
Weights = xr.DataArray | npt.NDArray[Any] | list[float]


def near_tie(
    outcomes: xr.Dataset | xr.DataArray,
    margin: str | float | Fraction,
    *,
    configs: str = "fixed",
    tasks: str = "fixed",
    method: str | None = None,
    prob: float = 0.95,
    seed: int = 0,
    draws: int = 2000,
    copies: str = "out",
    cluster: str | None = None,
    blocks: Labels | None = None,
    weights: Weights | None = None,
    panel: str = "shared",
    out_of: int | None = None,
) -> xr.Dataset:
    """Share of pairs of configs whose observed scores differ by at most a margin.

    U = mean over i < j of 1{|score_i - score_j| <= margin}, a score being the mean over the panel's tasks of the mean
    over a task's runs. Scores and margin are compared in integers on a common denominator. What is uncertain depends
    on what is taken to be sampled:

    =======  =======  =============================================================================================
    configs  tasks    methods, the first by default
    =======  =======  =============================================================================================
    fixed    fixed    ``exact``: this board's value; no interval, since nothing is sampled
    sampled  fixed    ``hoeffding, dyadic, jackknife`` (normal intervals, not cut at 0 and 1), ``config_bootstrap``;
                      ``pair_iid`` for reference: it takes pairs for independent, and its interval is far too narrow
    fixed    sampled  ``task_bootstrap``, ``cluster_bootstrap`` (with ``cluster``)
    sampled  sampled  ``joint_bootstrap``: configs and tasks, or configs and clusters where ``cluster`` is given
    =======  =======  =============================================================================================

    Formulas are in `evalbayes.pairs.variance` and `evalbayes.pairs.resample`, after arXiv 2609.33012. A bootstrap's
    interval is equal-tailed in its draws and reaches to the estimate. Hoeffding's variance leaves out the noise of lone
    pairs, 2 zeta_2 / (M (M - 1)): where ``regular`` is False its interval is too narrow.

    Parameters
    ----------
    outcomes
        A board; or tasks solved as whole numbers over ``config``, with ``out_of`` (tasks are then fixed).
    margin
        From 0 to 1, taken as the decimal that is written: 0.05 of 500 tasks is 25 tasks.
    configs, tasks
        ``"fixed"``: those on the board; ``"sampled"``: others from where they came.
    method
        As in the table.
    prob
        Level of the interval.
    seed, draws
        Of a bootstrap.
    copies
        Pairs of copies of one config in a draw of configs: ``"out"``, or ``"ties"`` to count them as near ties.
    cluster
        A task coord: cluster_bootstrap and joint_bootstrap draw tasks by cluster (the repository, the task family);
        other methods do not look at it, and the answer's ``cluster`` is then empty.
    blocks
        A config coord, or a label for each config: only pairs between blocks count, each pair of blocks the same:
        E = 2 / (G (G - 1)) sum_{g<h} mean of h over the pairs of g and h. Methods for sampled configs are then
        ``dyadic`` (configs as units) and ``block_bootstrap`` (blocks as units).
    weights
        Of configs (config), a pair's weight being the product, or of pairs (config, config). Methods for sampled
        configs are then ``dyadic`` and ``config_bootstrap``. A plain array is in the board's order.
    panel
        ``"shared"``: the tasks that every config was scored on. ``"own"``: each config's own tasks, which are other
        tasks for other configs; refused where two configs share none.
    out_of
        Tasks in all, where ``outcomes`` are solved tasks.

    Returns
    -------
    xarray.Dataset
        An answer without dims. Besides the schema: ``numerator`` and ``denominator`` of the exact estimate and
        ``fraction``, their text (NaN and empty where weights or a rounded score make it inexact), ``pairs`` (how many
        count); for sampled configs over all pairs ``first_order_share`` and ``regular``, the diagnostic. Scalar coords
        say what was asked: ``margin, scores, new_runs, inclusion, weights, copies, panel, panel_tasks, runs, ...``;
        ``new_runs`` is whether other runs than those on the board are meant, as come with every new config or task.

    Raises
    ------
    NotIdentifiedError
        If the method does not cover the target, or there is no panel to compare configs on.
    ArgumentError
        If an argument is not one of the words or numbers above.

    Examples
    --------
    >>> scores = xr.DataArray([0, 1, 4, 9], dims="config")
    >>> near_tie(scores, 0.3, out_of=10).fraction.item()
    '1/3'
    """
    return ask(
        near_tie_rule(outcomes, margin, panel, out_of),
        outcomes,
        configs=configs,
        tasks=tasks,
        method=method,
        prob=prob,
        seed=seed,
        draws=draws,
        copies=copies,
        cluster=cluster,
        blocks=blocks,
        weights=weights,
    )


def equality(
    outcomes: xr.Dataset | xr.DataArray, *, panel: str = "shared", out_of: int | None = None, **design: Any
) -> xr.Dataset:
    """Share of pairs of configs whose observed scores are equal as fractions: a near tie at margin 0.

    Parameters
    ----------
    outcomes, panel, out_of, design
        As in `near_tie`.

    Returns
    -------
    xarray.Dataset
        As `near_tie`.

    Examples
    --------
    >>> equality(xr.DataArray([3, 3, 4], dims="config"), out_of=10).fraction.item()
    '1/3'
    """
    rule = near_tie_rule(outcomes, 0, panel, out_of)
    return ask(rule, outcomes, quantity="equality", **design)


def discordance(outcomes: xr.Dataset, **design: Any) -> xr.Dataset:
    """Mean over pairs and tasks of disagreement: one run of each config on a task, one passing and one failing.

    h_ij = mean over tasks of p_i (1 - p_j) + p_j (1 - p_i), p being the observed rates; with one run a cell, the share
    of tasks that one of the two solves and the other does not.

    Parameters
    ----------
    outcomes
        A board; the tasks that every config was scored on are used.
    design
        As in `near_tie`; ``copies="ties"`` counts copies of a config as agreeing.

    Returns
    -------
    xarray.Dataset
        As `near_tie`.

    Examples
    --------
    >>> from evalbayes.outcomes import from_matrix
    >>> board = from_matrix([[1, 1, 0], [1, 0, 1], [1, 1, 1]], configs=list("abc"), tasks=list("xyz"))
    >>> discordance(board).fraction.item()
    '4/9'
    """
    return ask(discordance_rule(panel_of(outcomes)), outcomes, **design)


def summary(
    outcomes: xr.Dataset,
    rule: Callable[[Floats, Floats], Any] | xr.DataArray | npt.NDArray[Any],
    *,
    panel: str = "shared",
    **design: Any,
) -> xr.Dataset:
    """Mean over pairs of a user's symmetric rule.

    Parameters
    ----------
    outcomes
        A board of at most 4,096 configs.
    rule
        A function of two configs' rates over the panel's tasks, NaN where one was not scored; or its values,
        (config, config), read by their labels or, in a plain array, in the board's order. Whole numbers, booleans and
        Fractions stay exact.
    panel, design
        As in `near_tie`, for fixed tasks: the values of a rule are known on the board's own tasks only. Copies of a
        config are left out.

    Returns
    -------
    xarray.Dataset
        As `near_tie`.

    Raises
    ------
    OutcomesError
        If the rule is not symmetric or not finite.

    Examples
    --------
    >>> from evalbayes.outcomes import from_matrix
    >>> board = from_matrix([[1, 1, 0], [1, 0, 1], [0, 0, 1]], configs=list("abc"), tasks=list("xyz"))
    >>> summary(board, lambda a, b: a[0] == b[0]).fraction.item()
    '1/3'
    """
    return ask(user_rule(panel_of(outcomes, panel), rule, outcomes["config"].values), outcomes, **design)
