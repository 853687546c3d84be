"""Success probabilities of cells, from posterior draws of any packaged model.

``logit mu_ct = ability_c + discrimination_c (task_effect_t + interaction_effect_ft)``, with ability the intercept and
all effects of the config and of its groups, the task effect that of the task and of its groups, and f the family that
the config is of. An effect that a model does not have is 0, and a discrimination 1. Where it has ``log_kappa``, the
probability of a cell is drawn around mu and its own runs say more about it::

    p_ct | k, n ~ Beta(mu kappa + k, (1 - mu) kappa + n - k);      without log_kappa p_ct = mu_ct
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from scipy import special

from evalbayes.schema import Int64
from evalbayes.simulate import Floats, scattered

BLOCK = 2**22
"""Cells computed at once, at most: no array of draws x configs x tasks."""


def flattened(posterior: xr.Dataset) -> xr.Dataset:
    """Return a posterior with its chains laid end to end: (draw, ...)."""
    stacked = posterior.rename(draw="_draw").stack(draw=("chain", "_draw"), create_index=False)
    return stacked.drop_vars(["chain", "_draw"], errors="ignore").transpose("draw", ...)


def thinned(posterior: xr.Dataset, most: int) -> xr.Dataset:
    """Return at most ``most`` evenly spaced draws, laid end to end."""
    flat = flattened(posterior)
    return flat.isel(draw=np.linspace(0, flat.sizes["draw"] - 1, min(flat.sizes["draw"], most)).astype(int))


def ability(flat: xr.Dataset) -> xr.DataArray:
    """Return the mean logit of every config, (draw, config): the model's own, or intercept and config effect."""
    if "ability" in flat:
        return flat["ability"].transpose("draw", "config")
    if "config_effect" in flat:
        return (flat["intercept"] + flat["config_effect"]).transpose("draw", "config")
    return flat["intercept"].expand_dims(config=flat["score"]["config"].values).transpose("draw", "config")


def task_effects(flat: xr.Dataset, tasks: int) -> Floats:
    """Return the task effects (draw, task); zeros where tasks are exchangeable."""
    if "task_effect" in flat:
        return np.asarray(flat["task_effect"].transpose("draw", "task").values)
    return np.zeros((flat.sizes["draw"], tasks))


def family_effects(flat: xr.Dataset, block: slice) -> Floats:
    """Return what tasks have for each config beyond their effects, of some draws: (draw, config, task).

    Configs of one family have the same. Zero, (1, 1, 1), where there are no families.
    """
    if "interaction_effect" not in flat:
        return np.zeros((1, 1, 1))
    shared = flat["interaction_effect"].isel(draw=block).transpose("draw", "interaction_group", "task").values
    return np.asarray(shared[:, families(flat)])


def new_family_effects(flat: xr.Dataset, block: slice, tasks: int, rng: np.random.Generator) -> Floats:
    """Draw the same of ``tasks`` new tasks."""
    if "interaction_effect" not in flat:
        return np.zeros((1, 1, 1))
    omega = flat["interaction_sd"].values[block, None, None]
    shared = omega * rng.standard_normal((len(omega), flat.sizes["interaction_group"], tasks))
    return np.asarray(shared[:, families(flat)])


def families(flat: xr.Dataset) -> Int64:
    """Return the number of every config's family."""
    member = flat["interaction_group_of_config"].transpose("config", "interaction_group")
    return np.asarray(member.values.argmax(axis=1))


def discrimination(flat: xr.Dataset) -> Floats:
    """Return what every config multiplies task effects by, (draw, config) or (draw, 1) where all have 1."""
    if "log_discrimination" in flat:
        return np.asarray(np.exp(flat["log_discrimination"].transpose("draw", "config").values))
    return np.ones((flat.sizes["draw"], 1))


def concentration(flat: xr.Dataset) -> Floats | None:
    """Return kappa (draw, config), or None where cells are additive."""
    return np.exp(flat["log_kappa"].transpose("draw", "config").values) if "log_kappa" in flat else None


def new_effects(flat: xr.Dataset, draw: int, tasks: int, rng: np.random.Generator) -> Floats:
    """Draw the effects of ``tasks`` new tasks at one draw of the parameters; zeros where tasks are exchangeable.

    Where tasks have groups these are new tasks of the same groups, as many of each as on the board.
    """
    if "task_weight" not in flat:
        return np.zeros(tasks)
    weight, mean, scale = (flat[name].values[draw] for name in ("task_weight", "task_mean", "task_scale"))
    component = rng.choice(weight.size, size=tasks, p=weight / weight.sum())
    effect = np.asarray(mean[component] + scale[component] * rng.standard_normal(tasks))
    if "task_group_effect" not in flat:
        return effect
    group = flat["task_group_effect"].values[draw]
    return effect + (group if group.size == tasks else rng.choice(group, tasks))


def logits(
    flat: xr.Dataset, effect: Floats, step: int, rng: np.random.Generator | None = None
) -> Iterator[tuple[slice, Floats]]:
    """Yield the logits of mu in blocks of ``step`` draws: which draws, and (draw, config, task).

    Parameters
    ----------
    flat
        Draws, from `flattened`.
    effect
        Of tasks, (draw, task): those of the board, from `task_effects`, or of new ones, from `new_effects`.
    step
        Draws in a block.
    rng
        For what families share on new tasks; None for the tasks of the board.
    """
    at, slope, tasks = ability(flat).values, discrimination(flat), effect.shape[1]
    for start in range(0, len(at), step):
        block = slice(start, start + step)
        shared = family_effects(flat, block) if rng is None else new_family_effects(flat, block, tasks, rng)
        yield block, at[block, :, None] + slope[block, :, None] * (effect[block, None, :] + shared)


def expected_rates(flat: xr.Dataset, tasks: int) -> Floats:
    """Return the posterior mean of every cell's mu, (config, task)."""
    total: Any = sum(special.expit(eta[0]) for _, eta in logits(flat, task_effects(flat, tasks), 1))
    return np.asarray(total / flat.sizes["draw"])


def rates(
    flat: xr.Dataset, successes: xr.DataArray, trials: xr.DataArray, rng: np.random.Generator
) -> Iterator[tuple[slice, Floats]]:
    """Yield draws of p_ct in blocks: which draws, and (draw, config, task).

    A config none of whose cells was run twice shows nothing of its kappa: its p_ct is taken to be mu_ct.

    Parameters
    ----------
    flat
        Draws, from `flattened`.
    successes, trials
        Of the board, (config, task).
    rng
        For the draws of p_ct.
    """
    kappa, effect = concentration(flat), task_effects(flat, trials.sizes["task"])
    k, n = (cells.transpose("config", "task").values for cells in (successes, trials))
    seen = n.max(axis=1) > 1
    for block, eta in logits(flat, effect, max(1, BLOCK // n.size)):
        p = special.expit(eta)
        if kappa is not None and seen.any():
            spread = kappa[block, seen, None]
            # Beta(mu kappa + k, ...) is a Beta around another mean, with n more runs' worth of concentration.
            total = spread + n[seen]
            p[:, seen] = scattered(rng, (p[:, seen] * spread + k[seen]) / total, total)
        yield block, p


def mean_rates(
    flat: xr.Dataset,
    successes: xr.DataArray,
    trials: xr.DataArray,
    rng: np.random.Generator,
    weight: Floats | None = None,
) -> xr.DataArray:
    """Return draws (draw, config) of the mean over tasks of p_ct, under ``weight`` (draw, task) if given."""
    at = ability(flat)
    means = np.empty(at.shape)
    for block, p in rates(flat, successes, trials, rng):
        means[block] = p.mean(axis=2) if weight is None else np.einsum("dct,dt->dc", p, weight[block])
    return at.copy(data=means)
