"""Task effects: the shapes their density may take, and the likelihood integrated over them.

A task effect is ``t = task_sd * z`` with z from a *standard shape*: a normal mixture with mean zero and
variance one, so that the intercept stays the mean logit and task_sd the standard deviation whatever the
shape. `normal_shape` has one component, `mixture_shape` two.

The contract of a marginal model, on which the grid check, the recovery of task effects and leave-task-out
rest, is four names:

- data ``node_position`` over ``node``: equally spaced values of z (whoever compiles the model may replace
  them by more);
- ``node_effect`` over ``node``: the task effect at each node;
- ``node_logweight`` over ``node``, or ``(task, node)`` where tasks have groups: the trapezoidal rule's log weights,
  summing to one;
- ``task_loglik`` over ``(task, node)``: log p(outcomes of the task | its effect at the node, the rest).

Where families of configs share residuals (`evalbayes.models.interaction`) there is ``interaction_loglik`` besides.

The marginal log-likelihood of a task is then ``logsumexp(task_loglik + node_logweight, "node")``: on an
equally spaced grid the trapezoidal rule errs by about 2 exp(-2 pi^2 (sd / h)^2) for a conditional density of
standard deviation sd at spacing h (Trefethen and Weideman 2014, SIAM Review 56, 385-458).
"""

from collections.abc import Sequence
from math import lgamma
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pymc.dims as pmd
import xarray as xr

from evalbayes.models import labels

SHAPES = ("mixture", "normal")
NODES = np.linspace(-8.0, 8.0, 257)


class Shape(NamedTuple):
    """A standard normal mixture: weights, means and scales over ``component``, mean 0 and variance 1."""

    weight: Any
    mean: Any
    scale: Any


def coords(
    outcomes: xr.Dataset,
    task_density: str,
    config_groups: str | Sequence[str] = (),
    task_groups: str | Sequence[str] = (),
) -> dict[str, Any]:
    """Return the coords of a model with task effects: configs, tasks and groups by name, nodes, components by number.

    Raises
    ------
    ValueError
        If ``task_density`` is not one of `SHAPES`, or a group is refused by `evalbayes.models.labels.coords`.
    """
    if task_density not in SHAPES:
        raise ValueError(f"task_density={task_density!r}: choose one of {', '.join(SHAPES)}")
    components = 2 if task_density == "mixture" else 1
    nodes = {"node": np.arange(NODES.size), "component": np.arange(components)}
    return board_coords(outcomes) | nodes | labels.coords(outcomes, config_groups, task_groups)


def board_coords(outcomes: xr.Dataset) -> dict[str, Any]:
    """Return the coords of a board: configs and tasks by name."""
    return {"config": outcomes["config"].values, "task": outcomes["task"].values}


def data(outcomes: xr.Dataset) -> tuple[Any, Any, Any]:
    """Register ``successes``, ``trials`` (task, config) and ``node_position`` (node) in the open model."""
    return *counts(outcomes), pmd.Data("node_position", NODES, dims=("node",))


def counts(outcomes: xr.Dataset) -> tuple[Any, Any]:
    """Register ``successes`` and ``trials`` (task, config) in the open model."""
    cells = outcomes[["successes", "trials"]].transpose("task", "config")
    k = pmd.Data("successes", cells["successes"].values, dims=("task", "config"))
    return k, pmd.Data("trials", cells["trials"].values, dims=("task", "config"))


def config_effect(outcomes: xr.Dataset, config_sd: float) -> Any:
    """Register ``config_sd`` and ``config_effect`` (config), which sums to zero.

    The scale is that of the normals before their mean is taken off: M of them have standard deviation
    config_sd sqrt(1 - 1/M). One config has nothing to differ from: its effect is the datum 0, ``no_config_effect``, and
    neither is there.
    """
    if outcomes.sizes["config"] == 1:
        return pmd.Data("no_config_effect", np.zeros(1), dims=("config",))
    sigma = pmd.HalfNormal("config_sd", np.float64(config_sd))
    return pmd.ZeroSumNormal("config_effect", sigma=sigma, core_dims="config")


def discrimination(outcomes: xr.Dataset, discrimination_sd: float) -> Any:
    """Register ``discrimination_sd`` and ``log_discrimination`` (config), which sums to zero; return lambda (config).

    One config's is 1: the scale of the task effects already is its own.
    """
    if outcomes.sizes["config"] == 1:
        return pmd.Data("no_discrimination", np.ones(1), dims=("config",))
    sigma = pmd.HalfNormal("discrimination_sd", np.float64(discrimination_sd))
    return pmd.math.exp(pmd.ZeroSumNormal("log_discrimination", sigma=sigma, core_dims="config"))


def log_coefficient(outcomes: xr.Dataset) -> Any:
    """Register ``log_coefficient`` (task): sum over configs of log C(n, k).

    Constant in the parameters, but a likelihood without it cannot be compared with another model's.
    """
    cells = outcomes[["successes", "trials"]].transpose("task", "config")
    k, n = cells["successes"].values, cells["trials"].values
    log_gamma = np.vectorize(lgamma, otypes=[float])
    log_binomial = log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1)
    return pmd.Data("log_coefficient", log_binomial.sum(axis=1), dims=("task",))


def task_shape(task_density: str, task_weight: float, task_separation: float, task_scale_ratio: float) -> Shape:
    """Return the standard shape that ``task_density`` names, with the priors of its parameters."""
    if task_density == "normal":
        return normal_shape()
    return mixture_shape(task_weight, task_separation, task_scale_ratio)


def normal_shape() -> Shape:
    """Return the standard normal: one component."""
    one = pmd.as_xtensor(np.ones(1), dims=("component",))
    return Shape(weight=one, mean=0.0 * one, scale=one)


def mixture_shape(task_weight: float, task_separation: float, task_scale_ratio: float) -> Shape:
    """Return two normals, ordered by their means, with overall mean 0 and variance 1.

    w of the upper component, the share rho of the variance that lies between the components, and the ratio r
    of the upper scale to the lower fix the rest::

        m_1 = -sqrt(rho w / (1 - w))        s_1^2 = (1 - rho) / (1 - w + w r^2)
        m_2 =  sqrt(rho (1 - w) / w)        s_2   = r s_1

    rho -> 0 and r = 1 is the standard normal, so the normal is inside the family, and m_1 < m_2 identifies
    the components.

    Parameters
    ----------
    task_weight, task_separation
        Both parameters of a symmetric Beta prior on w and on rho.
    task_scale_ratio
        Standard deviation of log r.
    """
    w = pmd.Beta("upper_weight", np.float64(task_weight), np.float64(task_weight))
    rho = pmd.Beta("separation", np.float64(task_separation), np.float64(task_separation))
    r = pmd.math.exp(pmd.Normal("log_scale_ratio", 0.0, np.float64(task_scale_ratio)))
    s = pmd.math.sqrt((1 - rho) / (1 - w + w * r**2))
    return Shape(
        weight=_pair(1 - w, w),
        mean=_pair(-pmd.math.sqrt(rho * w / (1 - w)), pmd.math.sqrt(rho * (1 - w) / w)),
        scale=_pair(s, r * s),
    )


def _pair(low: Any, high: Any) -> Any:
    return pmd.concat([low.expand_dims("component"), high.expand_dims("component")], dim="component")


def mean_rate(ability: Any, task_sd: Any, shape: Shape, group_variance: Any = 0.0, slope: Any = 1.0) -> Any:
    """Return the success probability on a new task: the mean of expit(ability + slope t) over the density of t.

    ``group_variance`` is that of the groups a new task may come from (`evalbayes.models.groups`). By the trapezoidal
    rule on each component, and not on the nodes, which a narrow component far out may lie beyond.
    """
    z = np.linspace(-8.0, 8.0, 129)
    density = np.exp(-0.5 * z**2)
    at, share = (pmd.as_xtensor(part, dims=("quadrature",)) for part in (z, density / density.sum()))
    scale = task_sd * shape.scale
    if not isinstance(group_variance, float):
        scale = pmd.math.sqrt(scale**2 + group_variance)
    rate = pmd.math.sigmoid(ability + slope * (task_sd * shape.mean + scale * at))
    return rate.dot(shape.weight * share, dim=("component", "quadrature"))


def register_shape(task_sd: Any, shape: Shape) -> None:
    """Register ``task_weight``, ``task_mean``, ``task_scale`` over ``component``, on the logit scale."""
    pmd.Deterministic("task_weight", shape.weight)
    pmd.Deterministic("task_mean", task_sd * shape.mean)
    pmd.Deterministic("task_scale", task_sd * shape.scale)


def grid(z: Any, task_sd: Any, group_effect: Any = 0.0, group_variance: Any = 0.0) -> tuple[Any, Any]:
    """Return the task effect at every node z, and what is left of it there for the residual, in units of ``task_sd``.

    With groups of tasks (`evalbayes.models.groups.of_tasks`) the grid is one of whole effects: its unit is their
    standard deviation over new groups, and the residual (task, node) is a task's own.
    """
    if isinstance(group_variance, float):
        return task_sd * z, z
    t = pmd.math.sqrt(task_sd**2 + group_variance) * z
    return t, (t - group_effect) / task_sd


def node_logweight(z: Any, shape: Shape) -> Any:
    """Return the trapezoidal rule's log weights: log density of z at the nodes, normalised over them.

    On a grid that resolves the density its sum times the spacing is one already; normalising keeps the likelihood
    of a component narrower than the spacing from growing without bound where it happens to meet a node.
    """
    standardised = (z - shape.mean) / shape.scale
    log_component = pmd.math.log(shape.weight) - pmd.math.log(shape.scale) - 0.5 * standardised**2
    log_density = pmd.math.logsumexp(log_component, dim="component")
    return log_density - pmd.math.logsumexp(log_density, dim="node")


def latent_effect(task_sd: Any, shape: Shape, group_effect: Any = 0.0) -> Any:
    """Register ``task_effect`` (task) as a random variable about the effects of its groups: the model as written."""
    mean = task_sd * shape.mean + group_effect
    effect = pm.NormalMixture(
        "task_effect",
        w=shape.weight.values,
        mu=(mean.transpose("task", "component") if "task" in mean.type.dims else mean).values,
        sigma=(task_sd * shape.scale).values,
        dims="task",
    )
    return pmd.as_xtensor(effect, dims=("task",))


def integrate_out(task_loglik: Any, node_effect: Any, node_logweight: Any) -> None:
    """Register the marginal likelihood: the sum over tasks of log sum over nodes."""
    pmd.Deterministic("node_effect", node_effect)
    dims = ("task", "node") if "task" in node_logweight.type.dims else ("node",)
    node_logweight = pmd.Deterministic("node_logweight", node_logweight, dims=dims)
    task_loglik = pmd.Deterministic("task_loglik", task_loglik, dims=("task", "node"))
    pmd.Potential("marginal_loglik", pmd.math.logsumexp(task_loglik + node_logweight, dim="node").sum("task"))


def softplus(x: Any) -> Any:
    """Return log(1 + exp(x)), finite with its derivatives for every finite x.

    PyTensor's own is piecewise, and the branch not taken overflows: its derivative in JAX is NaN above 709.
    """
    return pmd.math.maximum(x, 0) + pmd.math.log1p(pmd.math.exp(-abs(x)))
