"""Symmetric pair rules on a panel: near tie, equality, discordance, and a user's own.

Each rule can give its sums over all pairs, its values as a matrix (small boards), and its weighted total over pairs in
many resampled boards at once. Boards are never built: configs enter a draw by count weights, tasks by a matrix product.

Discordance of two configs is the mean over tasks of p (1 - q) + q (1 - p), p and q their rates: how often they
disagree on a task, one run of each. Given the task, its weighted total over pairs is a polynomial of sums over configs:

    sum_{i<j} v_i v_j (p_i + p_j - 2 p_i p_j) = V A - B - A^2 + C,
    V = sum v_i,  A = sum v_i p_i,  B = sum v_i^2 p_i,  C = sum v_i^2 p_i^2.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.errors import ArgumentError, OutcomesError
from evalbayes.frequentist.bootstrap import Floats, Integers
from evalbayes.pairs import panel as panels
from evalbayes.pairs.panel import Panel
from evalbayes.pairs.sums import Sums, fits, matrix_sums, tied_sums, tied_weight

LARGEST = 4096
"""Configs whose matrix of pairs is still built; near ties and equality need none."""


@dataclass(frozen=True)
class Rule:
    """A rule on a panel: by its margin (near tie, equality), by its tasks (discordance) or by its values (user)."""

    name: str
    panel: Panel
    margin: Fraction | None = None
    values: npt.NDArray[Any] | None = None

    @property
    def tie(self) -> float | None:
        """The rule's value for two configs that are the same, None where only its user knows."""
        return {"near_tie": 1.0, "equality": 1.0, "discordance": 0.0}.get(self.name)


def sums(rule: Rule) -> Sums:
    """Sums of the rule over all pairs of the observed board."""
    if rule.margin is not None:
        keys, limit = panels.keys(rule.panel, rule.margin)
        return tied_sums(keys[0], int(limit[0]))
    return matrix_sums(*matrix(rule))


def matrix(rule: Rule) -> tuple[npt.NDArray[Any], int]:
    """The rule's values times ``scale``, (config, config), and the scale; whole numbers where they can be.

    Raises
    ------
    ArgumentError
        If the board has more than `LARGEST` configs.
    """
    check_size(rule.panel.size)
    if rule.values is not None:
        return rule.values, 1
    if rule.margin is not None:
        keys, limit = panels.keys(rule.panel, rule.margin)
        return (np.abs(keys[0][:, None] - keys[0][None]) <= limit[0]).astype(np.int64), 1
    p, scale = rule.panel.solved, rule.panel.scale
    passes = p @ (scale - p).T
    apart = passes + passes.T
    unit = scale * rule.panel.out_of
    if rule.panel.exact and fits(2 * unit):
        return np.rint(apart).astype(np.int64), unit
    return apart / unit, 1


def check_size(size: int) -> None:
    """Refuse to build a matrix of pairs for very many configs."""
    if size > LARGEST:
        raise ArgumentError(
            f"pairs: this needs the value of every pair, and {size} configs are more than {LARGEST}; "
            "near_tie and equality over all pairs have no limit"
        )


def weighted_total(rule: Rule, weights: Floats, counts: Floats | None = None) -> Floats:
    """Sum over i < j of v_i v_j h_ij in each draw, (draw).

    Parameters
    ----------
    rule
        The rule and its panel.
    weights
        v, (draw, config), or one row for all draws.
    counts
        How often each task is drawn, (draw, task); the board's own tasks when not given.
    """
    if rule.margin is not None:
        return tied_weight(*panels.keys(rule.panel, rule.margin, counts), weights)
    if rule.values is not None:
        off = rule.values.astype(float)
        np.fill_diagonal(off, 0)
        result: Floats = ((weights @ off) * weights).sum(axis=1) / 2
        return result
    return _discordant_weight(rule.panel, weights, counts)


def _discordant_weight(panel: Panel, weights: Floats, counts: Floats | None) -> Floats:
    p = panel.solved / panel.scale
    once = np.ones((1, p.shape[1])) if counts is None else counts
    first, second, third = weights @ p, weights**2 @ p, weights**2 @ p**2
    by_task = weights.sum(axis=1, keepdims=True) * first - second - first**2 + third
    result: Floats = (once * by_task).sum(axis=1) / once.sum(axis=1)
    return result


def take(rule: Rule, members: Integers) -> Rule:
    """Return the rule among some of its configs."""
    values = None if rule.values is None else rule.values[np.ix_(members, members)]
    return replace(rule, panel=panels.take(rule.panel, members), values=values)


def discordance_rule(panel: Panel) -> Rule:
    """Discordance, on tasks that both configs of every pair were scored on."""
    if panel.kind == "own" or not panel.tasks:
        raise ArgumentError("discordance: needs a board and panel='shared': two configs disagree on a task of both")
    return Rule("discordance", panel)


def user_rule(
    panel: Panel, rule: Callable[[Floats, Floats], Any] | xr.DataArray | npt.NDArray[Any], labels: npt.NDArray[Any]
) -> Rule:
    """A user's rule: a function of two configs' rates over the panel's tasks, or its values as a square.

    Raises
    ------
    OutcomesError
        If the rule is not symmetric or gives something other than finite numbers.
    """
    check_size(panel.size)
    values = _called(panel, rule) if callable(rule) else square(panel.configs, rule, "rule", labels)
    if values.dtype == bool:
        values = values.astype(np.int64)
    return Rule("user", panel, values=values)


def square(configs: list[Any], given: Any, name: str, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers of pairs, (config, config), brought from the board's order of ``labels`` to the panel's.

    An array with labels of its own is read by them.
    """
    if isinstance(given, xr.DataArray) and given.ndim == 2 and all(dim in given.coords for dim in given.dims):
        given = given.sel(dict.fromkeys(given.dims, configs))
    elif np.shape(given) == (len(labels),) * 2:
        order = np.argsort(labels, kind="stable")
        given = np.asarray(given)[np.ix_(order, order)]
    values = np.asarray(given)
    if values.shape != (len(configs), len(configs)):
        raise OutcomesError(f"pairs: {name} has shape {values.shape}, not {len(configs)} x {len(configs)} configs")
    if values.dtype != object and not np.isfinite(values.astype(float)).all():
        raise OutcomesError(f"pairs: {name} has a value that is not a finite number")
    uneven = np.argwhere(values != values.T)
    if len(uneven):
        a, b = (str(configs[i]) for i in uneven[0])
        raise OutcomesError(f"pairs: {name} is not symmetric: it differs between ({a!r}, {b!r}) and ({b!r}, {a!r})")
    return values


def _called(panel: Panel, rule: Callable[[Floats, Floats], Any]) -> npt.NDArray[Any]:
    with np.errstate(invalid="ignore"):
        rates = np.where(panel.scored, panel.solved / panel.scale, np.nan)
    table = [[0 if i == j else rule(a, b) for j, b in enumerate(rates)] for i, a in enumerate(rates)]
    values = np.array(table)
    if values.dtype.kind not in "biufO":
        raise OutcomesError(f"pairs: the rule gives {type(table[0][1]).__name__}, not a number")
    return square(panel.configs, values, "rule", np.array(panel.configs))
