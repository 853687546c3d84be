r"""Interaction by groups: configs of one family share a residual on every task.

    logit mu_ct = b + a_c + lambda_c (t_t + w_{f(c),t})      w_ft ~ Normal(0, omega)     lambda_c = 1 if there is none

What one config finds hard another of its family finds hard too, beyond what is hard for all: two of one family agree
more than the additive logit says, and two of different families less. The residual stands beside the task's effect,
inside the discrimination, so that a config sees one effect x = t + w of a task: that of its own family.

Given t families are independent of each other, and in the marginal form each is integrated by itself, on t's own grid::

    p(task | t_j) = prod over f of M_f(j)      M_f(j) = sum over i of K_ji exp L_f(i)

with L_f(i) the log-likelihood of the family's configs at effect x_i, and K_ji proportional to exp(-(x_i - x_j)^2 /
(2 omega^2)), its rows summing to one. As omega goes to 0 K goes to the identity: no interaction. For omega of 0.7
spacings or more the sum over i is exact as the trapezoidal rule is; below that K is narrower than omega says (its
variance is 0.86 omega^2 at half a spacing): no more than half the sd of the narrowest effect that the grid resolves,
and a matter of the prior near 0 alone. A density takes families x tasks x nodes^2 multiplications.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pymc.dims as pmd
import xarray as xr

from evalbayes.models.labels import labels

LEVEL = "interaction_group"
TINY = 1e-100
"""Floor of a likelihood as a share of its largest over the grid: the square of its inverse is finite, and with it the
second derivatives of its logarithm."""


class Families(NamedTuple):
    """Which configs share a residual, ``member`` (config, interaction_group), and its sd and variance; 0 if none do."""

    member: Any = None
    sd: Any = 0.0
    variance: Any = 0.0


def families(outcomes: xr.Dataset, interaction_group: str, interaction_sd: float) -> Families:
    """Register ``interaction_sd``, omega, and ``interaction_group_of_config``: 1 where a config is of a family, else 0.

    Parameters
    ----------
    outcomes
        The board.
    interaction_group
        A coord along ``config``; "" for no interaction. One of a single level is none: its residual is the task's.
    interaction_sd
        Scale of the half-normal prior on omega.

    Raises
    ------
    ValueError
        If the group is not one coord along configs, has blank labels, or has a level for every config.
    """
    if not isinstance(interaction_group, str):
        raise ValueError(f"interaction_group={interaction_group!r}: give the name of one coord of the configs")
    name = interaction_group.strip()
    if not name:
        return Families()
    mine = labels(outcomes, name, "config", option="interaction_group")
    levels = np.unique(mine)
    if levels.size < 2:
        return Families()
    pm.modelcontext(None).add_coord(LEVEL, levels)
    member = pmd.Data(f"{LEVEL}_of_config", (mine[:, None] == levels).astype(float), dims=("config", LEVEL))
    sd = pmd.HalfNormal("interaction_sd", np.float64(interaction_sd))
    return Families(member, sd, sd**2)


def latent_effect(of: Families) -> Any:
    """Register ``interaction_effect`` (interaction_group, task) as a random variable; return each config's w, or 0."""
    if of.member is None:
        return 0.0
    return pmd.Normal("interaction_effect", 0.0, of.sd, dims=(LEVEL, "task")).dot(of.member, dim=LEVEL)


def integrate_out(
    of: Families, log_mass: Callable[[Any, Any, Any], Any], k: Any, n: Any, constant: Any, effect: Any
) -> Any:
    """Return the log-likelihood of every task at every effect, (task, node), with the residuals integrated out.

    Registers ``interaction_loglik`` (interaction_group, task, node), L_f, from which w is drawn back.

    Parameters
    ----------
    of
        From `families`; without any, the result is ``log_mass(k, n, constant)``.
    log_mass
        Of successes and trials (task, config) and a term to begin with: the sum over configs of their log-likelihood.
        It is given those of one family at a time, with no runs of any other's.
    k, n
        Successes and trials (task, config).
    constant
        Over task: what no parameter changes.
    effect
        Of the task at every node, equally spaced.
    """
    if of.member is None:
        return log_mass(k, n, constant)
    count = len(pm.modelcontext(None).coords[LEVEL])
    members = [of.member.isel({LEVEL: level}) for level in range(count)]
    own = pmd.concat([log_mass(k * m, n * m, 0.0).expand_dims(LEVEL) for m in members], dim=LEVEL)
    own = pmd.Deterministic("interaction_loglik", own, dims=(LEVEL, "task", "node"))
    most = own.max("node")
    there = pmd.math.exp(own - most).rename(node="there")
    shared = pmd.math.maximum(there.dot(_kernel(effect, of.sd), dim="there"), TINY)
    return constant + (most + pmd.math.log(shared)).sum(LEVEL)


def _kernel(effect: Any, sd: Any) -> Any:
    """Return K (node, there), the chance that a family's effect is at ``there`` given the task's."""
    distance = (effect.rename(node="there") - effect) / sd
    near = pmd.math.exp(-0.5 * distance**2)
    return near / near.sum("there")
