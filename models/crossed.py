r"""Crossed configuration and task effects, binomial runs.

    k_ct | . ~ Binomial(n_ct, expit(b + a_c + t_t))
    a        ~ ZeroSumNormal(sigma_a)                        configs
    t_t      = sigma_t z_t,  z_t ~ a standard normal mixture  tasks
    score_c  = E_z expit(b + a_c + sigma_t z)                success probability on a new task

Configs and tasks may have groups: the effects of theirs are then added to a_c and to t_t (`evalbayes.models.groups`).
Configs of one family may share a residual w_ft, added to t_t (`evalbayes.models.interaction`).

Runs of one cell are independent given its probability, and cells follow the additive logit exactly: there is no
interaction of config and task but that of families. Where cells with repeated runs show one, differences and ranks come
out too narrow; `evalbayes.check.additivity` measures it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pymc.dims as pmd
import xarray as xr

from evalbayes.models import effects, groups, interaction


def crossed(
    outcomes: xr.Dataset,
    *,
    intercept: float = 1.5,
    config_sd: float = 1.5,
    task_sd: float = 2.5,
    task_density: str = "mixture",
    task_weight: float = 2.0,
    task_separation: float = 2.0,
    task_scale_ratio: float = 0.5,
    config_groups: str | Sequence[str] = (),
    task_groups: str | Sequence[str] = (),
    group_sd: float = 1.0,
    interaction_group: str = "",
    interaction_sd: float = 0.5,
    marginal: bool = False,
) -> pm.Model:
    """Return the crossed binomial model of a board.

    Parameters
    ----------
    outcomes
        A board: ``successes`` and ``trials`` over (config, task).
    intercept
        Standard deviation of the normal prior on b: 1.5 is near uniform on the probability scale.
    config_sd
        Scale of the half-normal prior on sigma_a: boards span from a third of a logit (prompts of one model)
        to two (five years of agents).
    task_sd
        Scale of the half-normal prior on sigma_t: benchmarks mix tasks that nearly all solve with tasks that
        nearly none does, two to four logits apart.
    task_density
        ``"mixture"`` (two normals) or ``"normal"``. A normal biases the scores for new tasks where the tasks are
        not normal, and more tasks do not help: on one public board of 134 x 500 by three points.
    task_weight, task_separation, task_scale_ratio
        Priors of the mixture, see `effects.mixture_shape`. Beta(2, 2) keeps both components in use; log r of
        standard deviation 0.5 lets one be up to about three times as wide as the other.
    config_groups, task_groups
        Coords along ``config`` (its agent, its model) and along ``task`` (its repository) with an effect of their own.
    group_sd
        Scale of the half-normal prior on every group's standard deviation: smaller than that of what it groups, as
        there are few levels to learn it from.
    interaction_group
        A coord along ``config`` (its model, its lab) whose configs share a residual on every task
        (`evalbayes.models.interaction`); "" for no interaction.
    interaction_sd
        Scale of the half-normal prior on omega, the sd of those residuals: at 0.5 families differ on a task by less
        than tasks differ among themselves, and no residual at all is as likely as any.
    marginal
        Integrate the task effects out on a grid (`effects.integrate_out`) instead of sampling them.

    Returns
    -------
    pymc.Model
        Variables ``intercept, config_sd, config_effect, task_sd``, deterministics ``ability`` and ``score`` (config),
        ``task_weight, task_mean, task_scale`` (component), and ``task_effect`` (task) in the latent form;
        ``GROUP_sd, GROUP_effect`` of every group, and ``task_group_effect`` (task) where tasks have one;
        ``interaction_sd`` with families, and ``interaction_effect`` (interaction_group, task) in the latent form.

    Raises
    ------
    ValueError
        If ``task_density`` is not one of the two, or a group is none: see `evalbayes.models.labels.coords`.

    Examples
    --------
    >>> from evalbayes import simulate
    >>> crossed(simulate.board(configs=4, tasks=10), marginal=True)["score"].type.dims
    ('config',)
    """
    with pm.Model(coords=effects.coords(outcomes, task_density, config_groups, task_groups)) as model:
        k, n, z = effects.data(outcomes)
        # float64 by name: PyTensor narrows a Python float, and a constant would be good to seven digits only.
        b = pmd.Normal("intercept", 0.0, np.float64(intercept))
        a = effects.config_effect(outcomes, config_sd) + groups.of_configs(outcomes, config_groups, group_sd)
        at = pmd.Deterministic("ability", b + a)
        sigma_t = pmd.HalfNormal("task_sd", np.float64(task_sd))
        shape = effects.task_shape(task_density, task_weight, task_separation, task_scale_ratio)
        effects.register_shape(sigma_t, shape)
        group, group_variance = groups.of_tasks(outcomes, task_groups, group_sd)
        family = interaction.families(outcomes, interaction_group, interaction_sd)
        shared_variance = group_variance + family.variance

        pmd.Deterministic("score", effects.mean_rate(at, sigma_t, shape, shared_variance))
        if marginal:
            t, residual = effects.grid(z, sigma_t, group, shared_variance)

            def log_mass(k: Any, n: Any, constant: Any) -> Any:
                # k (b + a + t) - n log(1 + exp(b + a + t)), summed over configs: one matrix product per density.
                passed = constant + k.dot(at, dim="config") + k.sum("config") * t
                return passed - n.dot(effects.softplus(at + t), dim="config")

            loglik = interaction.integrate_out(family, log_mass, k, n, effects.log_coefficient(outcomes), t)
            effects.integrate_out(loglik, t, effects.node_logweight(residual, shape))
        else:
            t = effects.latent_effect(sigma_t, shape, group) + interaction.latent_effect(family)
            pmd.Binomial("successes_observed", n, logit_p=at + t, observed=k)
    return model
