r"""Crossed configuration and task effects, beta-binomial runs: cells that depart from additivity.

    p_ct | . ~ Beta(mu_ct kappa_c, (1 - mu_ct) kappa_c)       the cell's success probability
    k_ct | . ~ Binomial(n_ct, p_ct)                           with p_ct integrated out: a beta-binomial
    logit mu_ct = b + a_c + t_t
    a        ~ ZeroSumNormal(sigma_a)                         configs
    t_t      = sigma_t z_t,  z_t ~ a standard normal mixture   tasks
    log kappa_c ~ Normal(m, s)                                configs again
    score_c  = E_z expit(b + a_c + sigma_t z)                 success probability on a new task

Each cell has one success probability, drawn around the additive mean, and runs are independent given it. So kappa_c
*is* the interaction of config and task: infinite where the additive mean says all (the crossed model), near zero where
every cell always passes or never does. 1 / (1 + kappa_c) is the correlation of two runs of a cell, given mu. To see it
takes cells with two runs or more: with one, a beta-binomial is a Bernoulli whatever kappa is.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pymc.dims as pmd
import xarray as xr

from evalbayes.models import effects, groups, interaction, overdispersion


def crossed_beta_binomial(
    outcomes: xr.Dataset,
    *,
    intercept: float = 1.5,
    config_sd: float = 1.5,
    task_sd: float = 2.5,
    log_kappa_mean: float = 1.5,
    log_kappa_sd: float = 0.5,
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
    """Return the crossed beta-binomial model of a board.

    Parameters
    ----------
    outcomes
        A board: ``successes`` and ``trials`` over (config, task). One config has no config effect.
    intercept, config_sd, task_sd
        Priors as in `evalbayes.models.crossed`.
    log_kappa_mean
        Standard deviation of the normal prior on m, with mean 0: the correlation 1 / (1 + kappa) of two runs of a cell
        is then near uniform between 0 and 1. A much wider one puts its mass on 0 and 1.
    log_kappa_sd
        Scale of the half-normal prior on s: configs of one board differ in kappa by a factor of two or so.
    task_density, task_weight, task_separation, task_scale_ratio
        The density of task effects, as in `evalbayes.models.crossed`.
    config_groups, task_groups, group_sd
        Groups of configs and of tasks and the scale of their standard deviations, as in `evalbayes.models.crossed`.
    interaction_group, interaction_sd
        Configs that share a residual on every task, and the scale of its sd, as in `evalbayes.models.crossed`.
    marginal
        Integrate the task effects out on a grid (`effects.integrate_out`) instead of sampling them.

    Returns
    -------
    pymc.Model
        Variables ``intercept, config_sd, config_effect, task_sd, log_kappa_mean, log_kappa_sd, log_kappa`` (config),
        deterministics ``ability`` and ``score`` (config), ``task_weight, task_mean, task_scale`` (component), and
        ``task_effect`` (task) in the latent form; of groups and families as in `evalbayes.models.crossed`.

    Raises
    ------
    ValueError
        If ``task_density`` is not ``"mixture"`` or ``"normal"``, or a group is none.

    Examples
    --------
    >>> from evalbayes import simulate
    >>> crossed_beta_binomial(simulate.board(configs=4, tasks=10, runs=3))["log_kappa"].type.dims
    ('config',)
    """
    with pm.Model(coords=effects.coords(outcomes, task_density, config_groups, task_groups)) as model:
        k, n, z = effects.data(outcomes)
        steps = overdispersion.earlier_runs(outcomes)
        b = pmd.Normal("intercept", 0.0, np.float64(intercept))
        a = effects.config_effect(outcomes, config_sd) + groups.of_configs(outcomes, config_groups, group_sd)
        at = pmd.Deterministic("ability", b + a)
        sigma_t = pmd.HalfNormal("task_sd", np.float64(task_sd))
        shape = effects.task_shape(task_density, task_weight, task_separation, task_scale_ratio)
        effects.register_shape(sigma_t, shape)
        group, group_variance = groups.of_tasks(outcomes, task_groups, group_sd)
        family = interaction.families(outcomes, interaction_group, interaction_sd)
        shared_variance = group_variance + family.variance
        log_kappa = overdispersion.log_kappa(outcomes, log_kappa_mean, log_kappa_sd)

        pmd.Deterministic("score", effects.mean_rate(at, sigma_t, shape, shared_variance))
        if marginal:
            t, residual = effects.grid(z, sigma_t, group, shared_variance)

            def log_mass(k: Any, n: Any, constant: Any) -> Any:
                return constant + overdispersion.log_mass_of_tasks(k, n, at + t, log_kappa, steps)

            loglik = interaction.integrate_out(family, log_mass, k, n, effects.log_coefficient(outcomes), t)
            effects.integrate_out(loglik, t, effects.node_logweight(residual, shape))
        else:
            t = effects.latent_effect(sigma_t, shape, group) + interaction.latent_effect(family)
            overdispersion.observe(k, n, at + t, log_kappa, steps)
    return model
