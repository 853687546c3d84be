r"""Crossed configuration and task effects, binomial runs.

    k_ct | . ~ Binomial(n_ct, expit(b + a_c + t_t))
    a        ~ ZeroSumNormal(sigma_a)                        configs
    t_t      = sigma_t z_t,  z_t ~ a standard normal mixture  tasks
    score_c  = E_z expit(b + a_c + sigma_t z)                success probability on a new task

Runs of one cell are independent given its probability, and cells follow the additive logit exactly: there is no
interaction of config and task. Where cells with repeated runs show one, differences and ranks come out too narrow;
`evalbayes.check.additivity` measures it.
"""

import numpy as np
import pymc as pm
import pymc.dims as pmd
import xarray as xr

from evalbayes.models import effects


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
    marginal
        Integrate the task effects out on a grid (`effects.integrate_out`) instead of sampling them.

    Returns
    -------
    pymc.Model
        Variables ``intercept, config_sd, config_effect, task_sd``, deterministics ``score`` (config),
        ``task_weight, task_mean, task_scale`` (component), and ``task_effect`` (task) in the latent form.

    Raises
    ------
    ValueError
        If ``task_density`` is not one of the two.

    Examples
    --------
    >>> from evalbayes import simulate
    >>> crossed(simulate.board(configs=4, tasks=10), marginal=True)["score"].type.dims
    ('config',)
    """
    with pm.Model(coords=effects.coords(outcomes, task_density)) as model:
        k, n, z = effects.data(outcomes)
        # float64 by name: PyTensor narrows a Python float, and a constant would be good to seven digits only.
        b = pmd.Normal("intercept", 0.0, np.float64(intercept))
        a = effects.config_effect(outcomes, config_sd)
        sigma_t = pmd.HalfNormal("task_sd", np.float64(task_sd))
        shape = effects.task_shape(task_density, task_weight, task_separation, task_scale_ratio)
        effects.register_shape(sigma_t, shape)

        pmd.Deterministic("score", effects.mean_rate(b + a, sigma_t, shape))
        t = sigma_t * z
        if marginal:
            log_weight = effects.node_logweight(z, shape)
            # k (b + a + t) - n log(1 + exp(b + a + t)), summed over configs: one matrix product per density.
            loglik = effects.log_coefficient(outcomes) + k.dot(b + a, dim="config") + k.sum("config") * t
            effects.integrate_out(loglik - n.dot(effects.softplus(b + a + t), dim="config"), t, log_weight)
        else:
            t = effects.latent_effect(sigma_t, shape)
            pmd.Binomial("successes_observed", n, logit_p=b + a + t, observed=k)
    return model
