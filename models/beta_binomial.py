r"""Beta-binomial runs, tasks exchangeable within a config: each config on its own population of tasks.

    p_ct | . ~ Beta(mu_c kappa_c, (1 - mu_c) kappa_c)     success probabilities of a config's tasks
    k_ct | . ~ Binomial(n_ct, p_ct)                       with p_ct integrated out: a beta-binomial
    logit mu_c = b + a_c
    a        ~ ZeroSumNormal(sigma_a)                     configs
    log kappa_c ~ Normal(m, s)                            configs again
    score_c  = mu_c                                       success probability on a new task

1 / (1 + kappa_c) is the ICC on the probability scale: the share of a run's variance that lies between tasks. It is the
model for one config, where no other says which tasks are hard. For several it forgets that they were run on the same
tasks, and differences come out too wide; there the crossed models are the ones to use.
"""

import numpy as np
import pymc as pm
import pymc.dims as pmd
import xarray as xr

from evalbayes.models import effects, overdispersion


def beta_binomial(
    outcomes: xr.Dataset,
    *,
    intercept: float = 1.5,
    config_sd: float = 1.5,
    log_kappa_mean: float = 1.5,
    log_kappa_sd: float = 0.5,
    marginal: bool = False,
) -> pm.Model:
    """Return the beta-binomial model of a board.

    Parameters
    ----------
    outcomes
        A board: ``successes`` and ``trials`` over (config, task). One config has no config effect.
    intercept
        Standard deviation of the normal prior on b: 1.5 is near uniform on the probability scale.
    config_sd
        Scale of the half-normal prior on sigma_a, as in `evalbayes.models.crossed`.
    log_kappa_mean
        Standard deviation of the normal prior on m, with mean 0: the ICC 1 / (1 + kappa) is then near uniform.
    log_kappa_sd
        Scale of the half-normal prior on s.
    marginal
        Accepted for the sake of one signature: there are no task effects, and both forms are the same.

    Returns
    -------
    pymc.Model
        Variables ``intercept, config_sd, config_effect, log_kappa_mean, log_kappa_sd, log_kappa`` (config),
        deterministic ``score`` (config). One config has ``intercept`` and ``log_kappa`` alone.

    Examples
    --------
    >>> from evalbayes import simulate
    >>> sorted(v.name for v in beta_binomial(simulate.board(configs=1, tasks=10, runs=3)).free_RVs)
    ['intercept', 'log_kappa']
    """
    with pm.Model(coords=effects.board_coords(outcomes)) as model:
        k, n = effects.counts(outcomes)
        steps = overdispersion.earlier_runs(outcomes)
        b = pmd.Normal("intercept", 0.0, np.float64(intercept))
        a = effects.config_effect(outcomes, config_sd)
        log_kappa = overdispersion.log_kappa(outcomes, log_kappa_mean, log_kappa_sd)
        pmd.Deterministic("score", pmd.math.sigmoid(b + a))
        overdispersion.observe(k, n, b + a, log_kappa, steps)
    return model
