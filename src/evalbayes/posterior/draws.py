"""Posterior draws of every config's score, for each target; what the answers are summarised from.

- ``tasks="sampled"``: new tasks from the same population, by integration over the density of task effects. Refused when
  the fit's population disagrees with the observed means (`evalbayes.check.population`), unless
  ``population="reweighted"`` takes the run tasks themselves as the population: sum over tasks of w_t p_ct with
  w ~ Dirichlet(1, ..., 1), the Bayesian bootstrap (Rubin 1981, Annals of Statistics 9, 130-134). Where tasks have
  groups (``task_groups=`` of the fit), ``clusters="sampled"`` has new tasks come from new groups, and
  ``clusters="fixed"`` from those on the board, as many from each.
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
from evalbayes.cells import BLOCK, ability, discrimination, flattened, mean_rates
from evalbayes.errors import ArgumentError, NotIdentifiedError, OutcomesError, SamplingError
from evalbayes.simulate import Floats

POPULATIONS = ("model", "reweighted")
NO_INTERACTION = "no_interaction"
NO_RUN = "no scored run: its effect is the prior's alone"
NODES, FEWER_NODES = 129, 65
"""Of each component of the task effects' density; where it stands in many places, about each group's effect, the
spacing of the fewer is still a quarter of its scale."""


def score_draws(
    fit: xr.DataTree, *, tasks: str, population: str = "model", assume: str | None = None, clusters: str | None = None
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
    clusters
        ``"sampled"`` or ``"fixed"``, for sampled tasks of a fit with groups of tasks; None is sampled.

    Raises
    ------
    SamplingError
        If tasks are sampled from the model's population and the fit failed the population gate.
    ValueError
        If a word is not one of those above, or clusters are named where there are none.
    """
    one_of("tasks", tasks, TARGETS)
    one_of("population", population, POPULATIONS)
    one_of("assume", assume, (None, NO_INTERACTION))
    clusters = clusters_of(fit, tasks, clusters)
    posterior, (successes, trials) = flat(fit), counts(fit)
    rng = np.random.default_rng(int(fit.attrs["seed"]))
    reason = xr.where(trials.sum("task") == 0, NO_RUN, "")
    if tasks == "fixed":
        if assume is None:
            once = "one run per cell: nothing shows how its cells would vary; give assume='no_interaction'"
            reason = xr.where((trials.max("task") <= 1) & (reason == ""), once, reason)
        return mean_rates(posterior, successes, trials, rng), reason.astype(object)
    if population == "reweighted":
        weight = task_weights(fit, rng, clusters)
        return mean_rates(posterior, successes, trials, rng, weight), reason.astype(object)
    refuse_failed_population(fit)
    return population_scores(posterior, clusters), reason.astype(object)


def clusters_of(fit: xr.DataTree, tasks: str, clusters: str | None) -> str | None:
    """Return the target of a fit's groups of tasks, ``"sampled"`` unless named; None where an answer has none."""
    one_of("clusters", clusters, (None, *TARGETS))
    if "task_group_effect" not in fit["posterior"]:
        if clusters is not None:
            raise ArgumentError(f"clusters={clusters!r}: the fit has no groups of tasks; fit with task_groups=")
        return None
    if tasks == "fixed":
        if clusters == "sampled":
            raise ArgumentError("clusters='sampled' with tasks='fixed': these tasks have the groups that they have")
        return None
    return clusters or "sampled"


def refuse_failed_population(fit: xr.DataTree, remedy: str | None = None) -> None:
    """Raise SamplingError, with the gap and the way out, if the fit's population failed its gate."""
    if fit.attrs.get("gate") == "failed":
        seen = fit.attrs
        raise SamplingError(
            f"tasks='sampled': the fitted population misses the observed means by {100 * seen['mean_gap']:+.1f} points "
            f"on average ({seen['mean_gap_se']:.1f} standard errors; {100 * seen['worst_gap']:+.1f} at worst); "
            f"{remedy or population_remedy(seen)}"
        )


def population_remedy(attrs: Any) -> str:
    """Return what to do about a population that disagrees with the observed means."""
    fitted_normal = attrs.get("prior_task_density") == "normal"
    return ("fit with task_density='mixture', or " if fitted_normal else "") + "ask with population='reweighted'"


def future_score_draws(
    fit: xr.DataTree, *, tasks: str, population: str = "model", clusters: str | None = None
) -> xr.DataArray:
    """Return draws (draw) of the score of a future entry from the same population of configs.

    The zero-sum effects leave out their own mean: a new effect is d + a with d ~ N(0, sigma^2 / M) for M configs and
    a ~ N(0, sigma^2), sigma being ``config_sd``; likewise for each of the groups that the entry is of.

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
    clusters = clusters_of(fit, tasks, clusters)
    trials = counts(fit)[1]
    if trials.sizes["config"] == 1:
        raise NotIdentifiedError("configs='sampled': one config shows nothing of how others vary; ask configs='fixed'")
    rng = np.random.default_rng(int(fit.attrs["seed"]))
    entry = _future_entry(fit, rng)
    if population == "reweighted":
        # Nothing was run in the cells of a new entry, and nothing says what its kappa is.
        none = (trials.isel(config=[0]) * 0).assign_coords(config=entry["config"].values)
        weight = task_weights(fit, rng, clusters)
        return mean_rates(entry, none, none, rng, weight).isel(config=0, drop=True)
    refuse_failed_population(fit)
    return _over_population(entry, clusters).isel(config=0, drop=True)


def _future_entry(fit: xr.DataTree, rng: np.random.Generator) -> xr.Dataset:
    """Return a posterior of one config, an entry of a new agent, a new model and whatever other groups there are."""
    posterior = flat(fit)
    population = config_population(fit, posterior)
    variance = sum(posterior[f"{name}_sd"] ** 2 * (1 + 1 / levels) for name, (_, levels) in population.items())
    draw = rng.standard_normal(posterior.sizes["draw"])
    label = {"config": ["a future entry"]}
    drawn = {"ability": posterior["intercept"] + np.sqrt(variance) * draw}
    if "log_discrimination" in posterior:
        spread = posterior["discrimination_sd"] * np.sqrt(1 + 1 / population["config"][1])
        drawn["log_discrimination"] = spread * rng.standard_normal(posterior.sizes["draw"])
    entry = posterior.drop_dims("config").assign({name: value.expand_dims(label) for name, value in drawn.items()})
    return _of_new_family(entry, rng).transpose("draw", ...)


def _of_new_family(entry: xr.Dataset, rng: np.random.Generator) -> xr.Dataset:
    """Put an entry in a family of its own where configs have families, with new residuals on the tasks of the board."""
    if "interaction_effect" not in entry:
        return entry
    shape = (entry.sizes["draw"], 1, entry.sizes["task"])
    residual = entry["interaction_sd"].values[:, None, None] * rng.standard_normal(shape)
    member = {"interaction_group_of_config": (("config", "interaction_group"), np.ones((1, 1)))}
    entry = entry.drop_dims("interaction_group").assign_coords(member)
    return entry.assign(interaction_effect=(("draw", "interaction_group", "task"), residual))


def config_population(fit: xr.DataTree, posterior: xr.Dataset) -> dict[str, tuple[Floats, int]]:
    """Return, for config effects and those of every group of configs, their sd (draw) and how many are on the board.

    ``posterior`` are draws of the fit, from `flat` or thinned. Effects sum to zero over those on the board: what the
    mean of their population is off by has variance sd^2 / levels.
    """
    names = ["config", *config_groups(fit)]
    return {name: (posterior[f"{name}_sd"].values, posterior.sizes[name]) for name in names}


def config_groups(fit: xr.DataTree) -> list[str]:
    """Return the groups of configs that a fit has effects of."""
    board = fit["observed_data"].to_dataset()
    names = (str(name).removesuffix("_effect") for name in fit["posterior"].data_vars if str(name).endswith("_effect"))
    return [name for name in names if name in board.coords and board[name].dims == ("config",) and name != "config"]


def population_scores(posterior: xr.Dataset, clusters: str | None) -> xr.DataArray:
    """Return every config's score on new tasks, (draw, config): the model's own, or that on new tasks of its groups."""
    if clusters != "fixed":
        return posterior["score"].transpose("draw", "config")
    return _over_population(posterior, clusters)


def _over_population(posterior: xr.Dataset, clusters: str | None) -> xr.DataArray:
    """Integrate expit(ability + discrimination t) over the density of t, by the trapezoidal rule on each component."""
    result = ability(posterior).copy()
    for block, logit, weight in new_tasks(posterior, clusters):
        result[block] = np.einsum("dcz,dz->dc", special.expit(logit), weight)
    return result


def population_nodes(
    posterior: xr.Dataset, clusters: str | None = None, *, residuals: bool = True
) -> tuple[Floats, Floats]:
    """Return positions and weights (draw, node) of the density of task effects; one node where there are none.

    Of groups of tasks, new ones widen it, and those on the board (``clusters="fixed"``) move it to where each is. The
    residuals that families share on a new task widen it, unless left out (``residuals=False``): it is the density of
    what one family sees of a task.
    """
    draws = posterior.sizes["draw"]
    if "task_weight" not in posterior:
        return np.zeros((draws, 1)), np.ones((draws, 1))
    weight, mean, scale = (
        posterior[name].transpose("draw", "component").values[:, :, None]
        for name in ("task_weight", "task_mean", "task_scale")
    )
    if "interaction_sd" in posterior and residuals:
        scale = np.sqrt(scale**2 + posterior["interaction_sd"].values[:, None, None] ** 2)
    groups: Any = np.zeros((draws, 1, 1, 1))
    tasks: Any = np.ones(1)
    if "task_group_effect" in posterior and clusters == "fixed":
        effect, tasks = np.unique(posterior["task_group_effect"].values, axis=1, return_counts=True)
        groups = effect[:, :, None, None]
    elif "task_group_effect" in posterior:
        scale = np.sqrt(scale**2 + posterior["task_group_sd"].values[:, None, None] ** 2)
    z = np.linspace(-8.0, 8.0, NODES if tasks.size == 1 else FEWER_NODES)
    density = np.exp(-0.5 * z**2)
    position = groups + (mean + scale * z)[:, None]
    share = (tasks / tasks.sum())[:, None, None] * (weight * density / density.sum())[:, None]
    return position.reshape(draws, -1), share.reshape(draws, -1)


def new_tasks(posterior: xr.Dataset, clusters: str | None = None) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield, in blocks of draws, the logits of new tasks (draw, config, node) and the nodes' weights (draw, node)."""
    at, slope = ability(posterior).values, discrimination(posterior)
    position, weight = population_nodes(posterior, clusters)
    step = max(1, BLOCK // (at.shape[1] * position.shape[1]))
    for start in range(0, len(at), step):
        block = slice(start, start + step)
        yield block, at[block, :, None] + slope[block, :, None] * position[block, None, :], weight[block]


def task_weights(fit: xr.DataTree, rng: np.random.Generator, clusters: str | None = None) -> Floats:
    """Draw weights of the tasks that were run, (draw, task), by the Bayesian bootstrap.

    With groups the tasks of each have Dirichlet weights among themselves, and the group the share of tasks that it has
    on the board (``clusters="fixed"``), or that times an exponential weight, over their sum (sampled).
    """
    posterior, (_, trials) = fit["posterior"], counts(fit)
    draws, tasks = posterior.sizes["chain"] * posterior.sizes["draw"], trials.sizes["task"]
    if clusters is None:
        return dirichlet(rng, draws, tasks)
    effect: Any = posterior["task_group_effect"].isel(chain=0, draw=0).values
    group, size = np.unique(effect, return_inverse=True, return_counts=True)[1:]
    own = rng.exponential(size=(draws, tasks))
    within = own / (own @ (group[:, None] == np.arange(size.size)))[:, group]
    share: Any = np.broadcast_to(size, (draws, size.size))
    if clusters == "sampled":
        share = share * rng.exponential(size=(draws, size.size))
    return np.asarray(within * (share / share.sum(axis=1, keepdims=True))[:, group])


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
    fit: xr.DataTree,
    quantity: str,
    *,
    tasks: str,
    configs: str,
    population: str,
    assume: str | None,
    prob: float,
    clusters: str | None = None,
) -> dict[str, Any]:
    """Return the identity coords of an answer from this fit, with what it assumes where that matters.

    A fit with groups of tasks has the target of those too.
    """
    if not isinstance(fit, xr.DataTree):
        raise ArgumentError(f"{quantity}: fit is a {type(fit).__name__}; give what evalbayes.fit returned")
    one_of("configs", configs, TARGETS)
    method = str(fit.attrs["method"])
    if tasks == "sampled" and population == "reweighted":
        method = f"{method}_reweighted"
    who = {"quantity": quantity, "tasks": tasks, "configs": configs, "method": method, "prob": prob}
    grouped = clusters_of(fit, tasks, clusters)
    who |= {} if grouped is None else {"clusters": grouped}
    return who | ({"assume": assume} if tasks == "fixed" and assume is not None else {})


def check_on_board(reference: str | None, labels: Sequence[Any]) -> None:
    """Refuse a reference that is not one of the configs."""
    if reference is not None and reference not in labels:
        raise OutcomesError(f"config {reference!r} is not on the board; it has {', '.join(map(str, labels[:5]))}, ...")


def one_of(name: str, value: Any, known: tuple[Any, ...]) -> None:
    """Refuse a word that is not one of ``known``."""
    if value not in known:
        raise ArgumentError(f"{name}={value!r}: choose one of {', '.join(map(repr, known))}")
