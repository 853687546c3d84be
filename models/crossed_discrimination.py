r"""Crossed effects with discrimination: configs that tell hard tasks from easy ones more or less sharply than others.

    logit mu_ct = b + a_c + lambda_c t_t
    a           ~ ZeroSumNormal(sigma_a)                        configs
    log lambda  ~ ZeroSumNormal(sigma_lambda)                   configs again; it fixes the sign and scale of t
    t_t         = sigma_t z_t,  z_t ~ a standard normal mixture  tasks
    k_ct | .    ~ Binomial(n_ct, mu_ct), or with overdispersion BetaBinomial(n_ct, mu_ct kappa_c, (1 - mu_ct) kappa_c)
    score_c     = E_z expit(b + a_c + lambda_c sigma_t z)        success probability on a new task

With lambda_c = 1 for all these are the crossed models: difficulty means the same to every config. A config with a
large lambda solves nearly all tasks up to some difficulty and nearly none beyond; one with a small lambda solves some
of each. In item response theory it is the two-parameter model with configs in the place of items.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pymc.dims as pmd
import xarray as xr

from evalbayes.models import effects, groups, interaction
from evalbayes.models import overdispersion as overdispersed


def crossed_discrimination(
    outcomes: xr.Dataset,
    *,
    intercept: float = 1.5,
    config_sd: float = 1.5,
    discrimination_sd: float = 0.5,
    task_sd: float = 2.5,
    overdispersion: bool = False,
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
    """Return the crossed model with discrimination of a board.

    Parameters
    ----------
    outcomes
        A board: ``successes`` and ``trials`` over (config, task). One config has neither effect nor discrimination.
    intercept, config_sd, task_sd
        Priors as in `evalbayes.models.crossed`.
    discrimination_sd
        Scale of the half-normal prior on sigma_lambda: at 0.5 two configs differ in sharpness by a factor of two or so.
    overdispersion
        Whether cells depart from the mean, as in `evalbayes.models.crossed_beta_binomial`: for repeated runs.
    log_kappa_mean, log_kappa_sd
        Priors of kappa as there; of no use without ``overdispersion``.
    task_density, task_weight, task_separation, task_scale_ratio
        The density of task effects, as in `evalbayes.models.crossed`.
    config_groups, task_groups, group_sd
        Groups of configs and of tasks and the scale of their standard deviations, as there.
    interaction_group, interaction_sd
        Configs that share a residual on every task, and the scale of its sd, as there. It is added to the task's effect
        and multiplied by lambda_c with it: lambda_c (t_t + w_ft).
    marginal
        Integrate the task effects out on a grid (`effects.integrate_out`) instead of sampling them.

    Returns
    -------
    pymc.Model
        The variables of `evalbayes.models.crossed`, or with ``overdispersion`` of
        `evalbayes.models.crossed_beta_binomial`, and ``discrimination_sd, log_discrimination`` (config).

    Raises
    ------
    ValueError
        If ``task_density`` is not ``"mixture"`` or ``"normal"``, or a group is none.

    Examples
    --------
    >>> from evalbayes import simulate
    >>> crossed_discrimination(simulate.board(configs=4, tasks=10))["log_discrimination"].type.dims
    ('config',)
    """
    with pm.Model(coords=effects.coords(outcomes, task_density, config_groups, task_groups)) as model:
        k, n, z = effects.data(outcomes)
        b = pmd.Normal("intercept", 0.0, np.float64(intercept))
        a = effects.config_effect(outcomes, config_sd) + groups.of_configs(outcomes, config_groups, group_sd)
        at = pmd.Deterministic("ability", b + a)
        slope = effects.discrimination(outcomes, discrimination_sd)
        sigma_t = pmd.HalfNormal("task_sd", np.float64(task_sd))
        shape = effects.task_shape(task_density, task_weight, task_separation, task_scale_ratio)
        effects.register_shape(sigma_t, shape)
        group, group_variance = groups.of_tasks(outcomes, task_groups, group_sd)
        family = interaction.families(outcomes, interaction_group, interaction_sd)
        shared_variance = group_variance + family.variance
        if overdispersion:
            steps = overdispersed.earlier_runs(outcomes)
            log_kappa = overdispersed.log_kappa(outcomes, log_kappa_mean, log_kappa_sd)

        pmd.Deterministic("score", effects.mean_rate(at, sigma_t, shape, shared_variance, slope))
        if marginal:
            t, residual = effects.grid(z, sigma_t, group, shared_variance)
            eta = at + slope * t

            def log_mass(k: Any, n: Any, constant: Any) -> Any:
                if overdispersion:
                    return constant + overdispersed.log_mass_of_tasks(k, n, eta, log_kappa, steps)
                passed = k.dot(at, dim="config") + k.dot(slope, dim="config") * t
                return constant + (passed - n.dot(effects.softplus(eta), dim="config"))

            loglik = interaction.integrate_out(family, log_mass, k, n, effects.log_coefficient(outcomes), t)
            effects.integrate_out(loglik, t, effects.node_logweight(residual, shape))
        else:
            x = effects.latent_effect(sigma_t, shape, group) + interaction.latent_effect(family)
            eta = at + slope * x
            if overdispersion:
                overdispersed.observe(k, n, eta, log_kappa, steps)
            else:
                pmd.Binomial("successes_observed", n, logit_p=eta, observed=k)
    return model
