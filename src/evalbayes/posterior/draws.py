"""Posterior draws of every config's score, for each target; what the answers are summarised from.

- ``tasks="sampled"``: new tasks from the same population, by integration over the density of task effects. Refused when
  the fit's population disagrees with the observed means (`evalbayes.check.population`), unless
  ``population="reweighted"`` takes the run tasks themselves as the population: sum over tasks of w_t p_ct with
  w ~ Dirichlet(1, ..., 1), the Bayesian bootstrap (Rubin 1981, Annals of Statistics 9, 130-134).
- ``tasks="fixed"``: new runs of these tasks, the mean over all tasks of the cells' probabilities p_ct
  (`evalbayes.cells`). A config with one run per cell shows nothing of how its cells depart from the additive mean, so
  its draws are given only on ``assume="no_interaction"``.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy import special

from evalbayes.answer import TARGETS
from evalbayes.cells import BLOCK, ability, flattened, mean_rates
from evalbayes.errors import ArgumentError, NotIdentifiedError, OutcomesError, SamplingError
from evalbayes.simulate import Floats

POPULATIONS = ("model", "reweighted")
NO_INTERACTION = "no_interaction"
NO_RUN = "no scored run: its effect is the prior's alone"
NODES = 129
"""Of each component of the task effects' density."""


def score_draws(
    fit: xr.DataTree, *, tasks: str, population: str = "model", assume: str | None = None
) -> tuple[xr.DataArray, xr.DataArray]:
    """Return draws (draw, config) of the score and, over config, why a config's are not to be used ("" where they are).

    Parameters
    ----------
    fit
        From `evalbayes.fit`.
    tasks
        ``"sampled"`` or ``"fixed"``.
    population
        ``"model"`` or ``"reweighted"``, for sampled tasks.
    assume
        ``"no_interaction"`` to accept the model's word for cells run once, for fixed tasks.

    Raises
    ------
    SamplingError
        If tasks are sampled from the model's population and the fit failed the population gate.
    ValueError
        If a word is not one of those above.
    """
    one_of("tasks", tasks, TARGETS)
    one_of("population", population, POPULATIONS)
    one_of("assume", assume, (None, NO_INTERACTION))
    posterior, (successes, trials) = flat(fit), counts(fit)
    rng = np.random.default_rng(int(fit.attrs["seed"]))
    reason = xr.where(trials.sum("task") == 0, NO_RUN, "")
    if tasks == "fixed":
        if assume is None:
            once = "one run per cell: nothing shows how its cells would vary; give assume='no_interaction'"
            reason = xr.where((trials.max("task") <= 1) & (reason == ""), once, reason)
        return mean_rates(posterior, successes, trials, rng), reason.astype(object)
    if population == "reweighted":
        weight = dirichlet(rng, posterior.sizes["draw"], trials.sizes["task"])
        return mean_rates(posterior, successes, trials, rng, weight), reason.astype(object)
    refuse_failed_population(fit)
    return posterior["score"].transpose("draw", "config"), reason.astype(object)


def refuse_failed_population(fit: xr.DataTree) -> None:
    """Raise SamplingError, with the gap and the way out, if the fit's population failed its gate."""
    if fit.attrs.get("gate") == "failed":
        seen = fit.attrs
        raise SamplingError(
            f"tasks='sampled': the fitted population misses the observed means by {100 * seen['mean_gap']:+.1f} points "
            f"on average ({seen['mean_gap_se']:.1f} standard errors; {100 * seen['worst_gap']:+.1f} at worst); "
            f"{population_remedy(seen)}"
        )


def population_remedy(attrs: Any) -> str:
    """Return what to do about a population that disagrees with the observed means."""
    fitted_normal = attrs.get("prior_task_density") == "normal"
    return ("fit with task_density='mixture', or " if fitted_normal else "") + "ask with population='reweighted'"


def future_score_draws(fit: xr.DataTree, *, tasks: str, population: str = "model") -> xr.DataArray:
    """Return draws (draw) of the score of a future entry from the same population of configs.

    The zero-sum effects leave out their own mean: a new effect is d + a with d ~ N(0, sigma^2 / M) for M configs and
    a ~ N(0, sigma^2), sigma being ``config_sd``.

    Raises
    ------
    NotIdentifiedError
        If tasks are fixed: what a new entry does on these very tasks rests on additivity alone.
    SamplingError, ValueError
        As `score_draws`.
    """
    one_of("tasks", tasks, TARGETS)
    one_of("population", population, POPULATIONS)
    if tasks == "fixed":
        raise NotIdentifiedError("configs='sampled' with tasks='fixed' is not offered; ask with tasks='sampled'")
    posterior, (_, trials) = flat(fit), counts(fit)
    if trials.sizes["config"] == 1:
        raise NotIdentifiedError("configs='sampled': one config shows nothing of how others vary; ask configs='fixed'")
    rng = np.random.default_rng(int(fit.attrs["seed"]))
    spread = posterior["config_sd"] * np.sqrt(1 + 1 / trials.sizes["config"])
    new = spread * rng.standard_normal(posterior.sizes["draw"])
    if population == "reweighted":
        weight = dirichlet(rng, posterior.sizes["draw"], trials.sizes["task"])
        # Nothing was run in the cells of a new entry, and nothing says what its kappa is.
        none = (trials.isel(config=[0]) * 0).assign_coords(config=["a future entry"])
        entry = posterior.drop_dims("config").assign(config_effect=new.expand_dims(config=none["config"].values))
        return mean_rates(entry, none, none, rng, weight).isel(config=0, drop=True)
    refuse_failed_population(fit)
    return _over_population(posterior["intercept"] + new, posterior)


def _over_population(ability: xr.DataArray, posterior: xr.Dataset) -> xr.DataArray:
    """Integrate expit(ability + t) over the density of t, by the trapezoidal rule on each component."""
    position, weight = population_nodes(posterior)
    p = special.expit(ability.values[:, None] + position)
    return ability.copy(data=np.einsum("dz,dz->d", p, weight))


def population_nodes(posterior: xr.Dataset) -> tuple[Floats, Floats]:
    """Return positions and weights (draw, node) of the density of task effects; one node where there are none."""
    draws = posterior.sizes["draw"]
    if "task_weight" not in posterior:
        return np.zeros((draws, 1)), np.ones((draws, 1))
    z = np.linspace(-8.0, 8.0, NODES)
    density = np.exp(-0.5 * z**2)
    weight, mean, scale = (
        posterior[name].transpose("draw", "component").values[:, :, None]
        for name in ("task_weight", "task_mean", "task_scale")
    )
    return (mean + scale * z).reshape(draws, -1), (weight * density / density.sum()).reshape(draws, -1)


def new_tasks(posterior: xr.Dataset) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield, in blocks of draws, the logits of new tasks (draw, config, node) and the nodes' weights (draw, node)."""
    at = ability(posterior).values
    position, weight = population_nodes(posterior)
    step = max(1, BLOCK // (at.shape[1] * position.shape[1]))
    for start in range(0, len(at), step):
        block = slice(start, start + step)
        yield block, at[block, :, None] + position[block, None, :], weight[block]


def dirichlet(rng: np.random.Generator, draws: int, tasks: int) -> np.ndarray:
    """Draw weights of the tasks that were run, (draw, task)."""
    return rng.dirichlet(np.ones(tasks), draws)


def flat(fit: xr.DataTree) -> xr.Dataset:
    """Return the posterior with chains laid end to end: (draw, ...)."""
    return flattened(fit["posterior"].to_dataset())


def counts(fit: xr.DataTree) -> tuple[xr.DataArray, xr.DataArray]:
    """Return successes and trials (config, task), without the board's own coords: one may be named ``method``."""
    both = (fit["observed_data"]["successes"], fit["constant_data"]["trials"])
    successes, trials = (cells.reset_coords(drop=True).transpose("config", "task") for cells in both)
    return successes, trials


def effective(fit: xr.DataTree) -> float:
    """Return the effective number of draws behind a summary.

    Importance draws lose some in their weights and some in being resampled; chains as their worst variable says.
    """
    if "weight_ess" in fit.attrs:
        return 1.0 / (1.0 / float(fit.attrs["weight_ess"]) + 1.0 / float(fit.attrs["draws"]))
    return float(fit.attrs["ess_bulk"])


def identity(
    fit: xr.DataTree, quantity: str, *, tasks: str, configs: str, population: str, assume: str | None, prob: float
) -> dict[str, Any]:
    """Return the identity coords of an answer from this fit, with what it assumes where that matters."""
    if not isinstance(fit, xr.DataTree):
        raise ArgumentError(f"{quantity}: fit is a {type(fit).__name__}; give what evalbayes.fit returned")
    one_of("configs", configs, TARGETS)
    method = str(fit.attrs["method"])
    if tasks == "sampled" and population == "reweighted":
        method = f"{method}_reweighted"
    who = {"quantity": quantity, "tasks": tasks, "configs": configs, "method": method, "prob": prob}
    return who | ({"assume": assume} if tasks == "fixed" and assume is not None else {})


def check_on_board(reference: str | None, labels: Sequence[Any]) -> None:
    """Refuse a reference that is not one of the configs."""
    if reference is not None and reference not in labels:
        raise OutcomesError(f"config {reference!r} is not on the board; it has {', '.join(map(str, labels[:5]))}, ...")


def one_of(name: str, value: Any, known: tuple[Any, ...]) -> None:
    """Refuse a word that is not one of ``known``."""
    if value not in known:
        raise ArgumentError(f"{name}={value!r}: choose one of {', '.join(map(repr, known))}")
