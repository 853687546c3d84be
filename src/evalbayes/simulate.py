"""Boards with known truth: outcomes drawn from the models this package fits.

a_c  = raw_c - mean(raw),  raw_c ~ Normal(0, config_sd)         config effects, zero-sum
t_t  ~ task density with mean 0 and sd task_sd                   task effects
p_ct ~ Beta(mu_ct kappa_c, (1 - mu_ct) kappa_c),  logit mu_ct = intercept + a_c + t_t
k_ct ~ Binomial(runs, p_ct);                                     kappa = inf means p_ct = mu_ct
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.errors import OutcomesError
from evalbayes.schema import ABSENT, ERROR, FAIL, PASS, Int8, assemble

Density = Literal["normal", "mixture"]
Floats = npt.NDArray[np.float64]

# Weights, means and scales of the standardised mixture: two humps, mean 0, variance 1. A benchmark's tasks
# are often many hard ones and a lump of easy ones, and this is the shape on which a normal density is biased.
_MIXTURE_WEIGHT = np.array([0.6, 0.4])
_MIXTURE_MEAN = np.array([-0.7, 1.05])
_MIXTURE_SCALE = np.sqrt((1 - _MIXTURE_WEIGHT @ _MIXTURE_MEAN**2) / (_MIXTURE_WEIGHT @ np.array([0.49, 1.0])))
_MIXTURE_SD = _MIXTURE_SCALE * np.array([0.7, 1.0])


def board(
    configs: int = 12,
    tasks: int = 100,
    runs: int = 1,
    *,
    seed: int = 0,
    intercept: float = 0.0,
    config_sd: float = 1.0,
    task_sd: float = 2.0,
    kappa: float | Sequence[float] = np.inf,
    task_density: Density = "normal",
    missing: float = 0.0,
    errors: float = 0.0,
    ragged: bool = False,
) -> xr.Dataset:
    """Draw a board whose truth is known.

    Parameters
    ----------
    configs, tasks, runs
        Sizes; ``runs`` per cell.
    seed
        Effects, cell probabilities, runs and gaps each have their own stream, so a board with more runs has
        the same effects.
    intercept, config_sd, task_sd
        On the logit scale.
    kappa
        Concentration of a cell's probability around its mean, one value or one for each config; inf: none.
    task_density
        ``"normal"``, or ``"mixture"`` of two normals with the same mean 0 and sd ``task_sd``.
    missing
        Share of cells never attempted, independent of everything else.
    errors
        Share of attempts that end without a score, independent of everything else.
    ragged
        Number of attempts per cell uniform on 1..runs in place of ``runs``.

    Returns
    -------
    xarray.Dataset
        A board with ``outcome``; the truth in coords ``true_config_effect``, ``true_kappa``, ``true_score``
        (mean of p over new tasks, by quadrature), ``true_between_variance``, ``true_within_variance``,
        ``true_fixed_score`` (mean of p over these tasks), all over config, ``true_task_effect`` over task,
        and attrs ``true_intercept, true_config_sd, true_task_sd, true_task_density, seed``.

    Raises
    ------
    OutcomesError
        If a size is below 1, a share is outside [0, 1], or a scale is negative.

    Examples
    --------
    >>> b = board(configs=3, tasks=20, runs=2, seed=1)
    >>> dict(b.sizes), bool((b.trials == 2).all())
    ({'config': 3, 'task': 20, 'run': 2}, True)
    """
    kappas = _check(configs, tasks, runs, intercept, config_sd, task_sd, kappa, missing, errors)
    rng_config, rng_task, rng_cell, rng_run, rng_gap = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(5))
    a = config_sd * rng_config.standard_normal(configs)
    a -= a.mean()
    t = task_sd * _standard_task_effects(rng_task, tasks, task_density)
    p = _cell_probability(rng_cell, intercept + a[:, None] + t, kappas)
    outcome = (rng_run.random((configs, tasks, runs)) < p[..., None]).astype(np.int8)
    outcome = _with_gaps(rng_gap, outcome, missing, errors, ragged)
    truth = _population(intercept + a, task_sd, kappas, task_density) | {"true_config_effect": a, "true_kappa": kappas}
    truth["true_fixed_score"] = p.mean(axis=1)
    return assemble(
        {
            "successes": (outcome == PASS).sum(-1),
            "trials": (outcome >= FAIL).sum(-1),
            "errors": (outcome == ERROR).sum(-1),
        },
        configs=_labels("config", configs),
        tasks=_labels("task", tasks),
        runs=_labels("run", runs),
        outcome=outcome,
        policy="missing",
        coords={name: ("config", values) for name, values in truth.items()} | {"true_task_effect": ("task", t)},
        attrs={
            "source": f"simulate.board(seed={seed})",
            "reader": "simulate",
            "score_rule": "drawn",
            "seed": seed,
            "true_intercept": float(intercept),
            "true_config_sd": float(config_sd),
            "true_task_sd": float(task_sd),
            "true_task_density": task_density,
        },
    )


def _check(
    configs: int,
    tasks: int,
    runs: int,
    intercept: float,
    config_sd: float,
    task_sd: float,
    kappa: float | Sequence[float],
    missing: float,
    errors: float,
) -> Floats:
    for name, size in (("configs", configs), ("tasks", tasks), ("runs", runs)):
        if size < 1:
            raise OutcomesError(f"simulate.board: {name}={size}; give at least 1")
    for name, share in (("missing", missing), ("errors", errors)):
        if not 0 <= share <= 1:
            raise OutcomesError(f"simulate.board: {name}={share} is not a share; give a number in [0, 1]")
    for name, sd in (("config_sd", config_sd), ("task_sd", task_sd)):
        if not 0 <= sd < np.inf:
            raise OutcomesError(f"simulate.board: {name}={sd} is not a scale; give a finite number of at least 0")
    if not np.isfinite(intercept):
        raise OutcomesError(f"simulate.board: intercept={intercept}; give a finite number, on the logit scale")
    kappas = np.asarray(kappa, float)
    if kappas.ndim > 1 or kappas.size not in (1, configs) or not (kappas > 0).all():
        raise OutcomesError(f"simulate.board: kappa={kappa}; give one positive number, or one for each config")
    return np.broadcast_to(kappas, configs).copy()


def _labels(role: str, size: int) -> list[str]:
    width = len(str(size))
    return [f"{role}-{i:0{width}d}" for i in range(1, size + 1)]


def _standard_task_effects(rng: np.random.Generator, size: int, density: str) -> Floats:
    z = rng.standard_normal(size)
    if density == "normal":
        return z
    if density != "mixture":
        raise OutcomesError(f"simulate.board: task_density={density!r} is unknown; use 'normal' or 'mixture'")
    component = rng.choice(2, size, p=_MIXTURE_WEIGHT)
    return np.asarray(_MIXTURE_MEAN[component] + _MIXTURE_SD[component] * z)


def _cell_probability(rng: np.random.Generator, logit: Floats, kappa: Floats) -> Floats:
    mu = _expit(logit)
    k = np.where(np.isinf(kappa), 1.0, kappa)[:, None]
    return np.where(np.isinf(kappa)[:, None], mu, scattered(rng, mu, k))


def scattered(rng: np.random.Generator, mu: Floats, kappa: Floats) -> Floats:
    """Draw cell probabilities around their means; Beta's shapes are kept above 0, where its draw is 0 or 1."""
    return rng.beta(np.maximum(mu * kappa, 1e-300), np.maximum((1 - mu) * kappa, 1e-300))


def _with_gaps(rng: np.random.Generator, outcome: Int8, missing: float, errors: float, ragged: bool) -> Int8:
    configs, tasks, runs = outcome.shape
    absent_cell, errored = rng.random((configs, tasks, 1)) < missing, rng.random(outcome.shape) < errors
    attempts = rng.integers(1, runs + 1, (configs, tasks, 1)) if ragged else np.full((configs, tasks, 1), runs)
    absent = absent_cell | (np.arange(runs) >= attempts)
    return np.select([absent, errored], [ABSENT, ERROR], outcome).astype(np.int8)


def _population(location: Floats, task_sd: float, kappa: Floats, density: str) -> dict[str, Floats]:
    """Mean, between and within variance of p over new tasks: DESIGN's m, V + W/(1+kappa), W kappa/(1+kappa)."""
    z, weight = _quadrature(density)
    mu = _expit(location[:, None] + task_sd * z)
    m, w = mu @ weight, (mu * (1 - mu)) @ weight
    v = (mu - m[:, None]) ** 2 @ weight
    share = 1 / (1 + kappa)
    return {"true_score": m, "true_between_variance": v + w * share, "true_within_variance": w * (1 - share)}


def _quadrature(density: str) -> tuple[Floats, Floats]:
    """Trapezoidal nodes and weights of the standard task density; spectrally accurate for these integrands."""
    z = np.linspace(-12, 12, 4001)
    if density == "normal":
        f = np.exp(-(z**2) / 2)
    else:
        unit = (z[:, None] - _MIXTURE_MEAN) / _MIXTURE_SD
        f = np.exp(-(unit**2) / 2) @ (_MIXTURE_WEIGHT / _MIXTURE_SD)
    return z, f / f.sum()


def _expit(x: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))
