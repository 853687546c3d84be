"""Where the variance of a run's outcome comes from: configs and their groups, tasks and theirs, cells, and chance.

A run of a new config on a new task passes with probability p_ct about mu = expit(A + lambda T), with A the intercept
and the config's effects and T the task's. On the probability scale the variance of its outcome is, exactly,

    m (1 - m) = sum over factors g of Var E[mu | g]     what each factor does by itself
              + what is left of Var mu                  factors together: the logit is additive, probabilities are not
              + E mu (1 - mu) E 1 / (1 + kappa)         cells: config and task together, beyond that
              + the rest of E mu (1 - mu)               runs: chance

The first are the first-order terms of the functional analysis of variance (Sobol' 1993, Mathematical Modelling and
Computational Experiments 1, 407-414; Efron and Stein 1981, Annals of Statistics 9, 586-596). On the latent scale they
are the variances of the effects themselves, those of lambda T being (E lambda)^2 Var T for the task and
Var(lambda) Var T for config and task together, and a run's is pi^2 / 3, that of a standard logistic (Nakagawa and
Schielzeth 2010, Biological Reviews 85, 935-956). Residuals that families share on a task
(`evalbayes.models.interaction`) are a factor of their own, ``interaction_group``, and one of config and task both.
"""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import special

from evalbayes.answer import from_draws
from evalbayes.cells import BLOCK
from evalbayes.components import share_of_side
from evalbayes.errors import NotIdentifiedError
from evalbayes.posterior.draws import (
    config_groups,
    config_population,
    effective,
    flat,
    identity,
    one_of,
    refuse_failed_population,
)
from evalbayes.posterior.score import withhold
from evalbayes.simulate import Floats

SCALES = ("probability", "latent")
POINTS, SLOPES = 41, 9
"""Nodes of a normal, by the trapezoidal rule on 7.5 standard deviations, and of a log discrimination, by Gauss's."""
LOGISTIC = np.pi**2 / 3
CELLS_LATENT = "kappa is a spread of probabilities: it has no variance on the logit scale"


class Logit(NamedTuple):
    """Draws of what makes up a logit: ``configs`` and ``tasks`` are sds (draw) by factor, ``weight, mean, scale`` the
    density of the task's own effect (draw, component), ``slope`` nodes of lambda (draw, node) with ``share`` (node).
    """

    intercept: Floats
    configs: dict[str, Floats]
    tasks: dict[str, Floats]
    weight: Floats
    mean: Floats
    scale: Floats
    slope: Floats
    share: Floats


def variance_components(
    fit: xr.DataTree,
    *,
    scale: str = "probability",
    tasks: str = "sampled",
    configs: str = "sampled",
    prob: float = 0.95,
) -> xr.Dataset:
    """Variance of one run's outcome, for a new config on a new task, by where it comes from.

    Is it the model or the scaffold? Fitted with ``config_groups=("agent", "model")``, each is a component.

    Parameters
    ----------
    fit
        From `evalbayes.fit`.
    scale
        ``"probability"``: of the outcome itself, 0 or 1, as this module's formula has it. ``"latent"``: of its logit.
    tasks, configs
        ``"sampled"``: components are those of the populations. No other is offered.
    prob
        Coverage of the equal-tailed intervals.

    Returns
    -------
    xarray.Dataset
        An answer over ``component``: every group of configs and of tasks under its name, ``config`` and ``task`` what
        is left for those themselves, ``discrimination`` where the model has it, ``interaction_group`` where families
        share residuals on tasks, ``interaction``, ``cell`` where the model has kappa, and ``run``. Estimates are
        medians. ``side`` says what varies (configs, tasks, both, runs), ``share`` and ``share_interval`` are a
        component's part of all that its side has by itself (means, which add up), ``scale`` is a coord, and attr
        ``sentence`` says which of the configs' components is the largest.

    Raises
    ------
    NotIdentifiedError
        If the board has one config, or another target is asked for.
    SamplingError
        If the fit's population failed its gate.
    ArgumentError
        If a word is not one of those above.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> fit = eb.fit(board, config_groups=("agent", "model"))                        # doctest: +SKIP
    >>> eb.posterior.variance_components(fit).share.to_series()                      # doctest: +SKIP
    """
    one_of("scale", scale, SCALES)
    who = identity(fit, "variance_components", tasks=tasks, configs=configs, population="model", assume=None, prob=prob)
    if (tasks, configs) != ("sampled", "sampled"):
        raise NotIdentifiedError("variance_components: ask with tasks='sampled', configs='sampled': of populations")
    if fit["posterior"].sizes["config"] < 2:
        raise NotIdentifiedError("variance_components: one config shows nothing of how others vary")
    refuse_failed_population(fit, "ask frequentist.variance_components, which needs no density of task effects")
    parts = _on_latent_scale(fit) if scale == "latent" else _on_probability_scale(fit)
    names = list(parts)
    draws = xr.DataArray(
        np.stack(list(parts.values()), axis=1), dims=("draw", "component"), coords={"component": names}
    )
    side = xr.DataArray([_side(fit, name) for name in names], dims="component", coords={"component": names})
    share = share_of_side(draws, side)
    known = draws.notnull().all("draw")
    parts_of_side = from_draws(share.fillna(0.0), **who)
    extra: dict[str, Any] = {"side": side} | {
        name: parts_of_side[part].where(known) for name, part in (("share", "estimate"), ("share_interval", "interval"))
    }
    result = from_draws(draws.fillna(0.0), point="median", ess=effective(fit), **who, **extra)
    result = withhold(result, xr.where(known, "", CELLS_LATENT).astype(object)).assign_coords(scale=scale)
    return result.assign_attrs(sentence=_sentence(result, share, scale))


def _side(fit: xr.DataTree, component: str) -> str:
    """Return what varies in a component."""
    if component in ("interaction", "interaction_group", "cell"):
        return "both"
    if component == "run":
        return "runs"
    return "configs" if component in ("config", "discrimination", *config_groups(fit)) else "tasks"


def _sentence(result: xr.Dataset, share: xr.DataArray, scale: str) -> str:
    """Say which component of the configs' variance is the largest, with its interval and how sure that is."""
    of = result["component"].values[result["side"].values == "configs"]
    if of.size < 2:
        return f"configs have one component, {of[0]}; fit with config_groups= to tell parts of it apart"
    shares = share.sel(component=of)
    first = str(of[int(np.argmax(shares.mean("draw").values))])
    sure = float((shares.transpose("draw", "component").values.argmax(axis=1) == list(of).index(first)).mean())
    said = []
    for name in sorted(of, key=lambda name: name != first):
        one = result.sel(component=name)
        low, high = (100 * float(one["share_interval"].sel(ci_bound=bound)) for bound in ("lower", "upper"))
        said.append(f"{name} {100 * float(one['share']):.0f}% [{low:.0f}, {high:.0f}]")
    at = f"{100 * result['ci_prob'].item():g}% intervals, {scale} scale, future configs on new tasks"
    return (
        f"of the variance between configs: {', '.join(said)} ({at}); {first} is the largest with probability {sure:.3f}"
    )


def _parts(fit: xr.DataTree) -> Logit:
    """Return the logit of a new config on a new task, by its parts."""
    posterior = flat(fit)
    draws, population = posterior.sizes["draw"], config_population(fit, posterior)
    configs = {name: sd for name, (sd, _) in population.items()}
    rng = np.random.default_rng(int(fit.attrs["seed"]))
    off = np.sqrt(sum(sd**2 / levels for sd, levels in population.values()))
    theirs = [name for name in _effects(posterior) if name not in (*configs, "task", "task_group", "interaction")]
    tasks = {name: posterior[f"{name}_sd"].values for name in theirs if f"{name}_sd" in posterior}
    if "interaction_sd" in posterior:
        # To one config a residual is what a group's effect is: a part of what it sees of a task.
        tasks["interaction_group"] = posterior["interaction_sd"].values
    slope, share = np.ones((draws, 1)), np.ones(1)
    if "discrimination_sd" in posterior:
        z, share = np.polynomial.hermite_e.hermegauss(SLOPES)
        slope, share = np.exp(posterior["discrimination_sd"].values[:, None] * z), share / share.sum()
    density: Any = (np.ones((draws, 1)), np.zeros((draws, 1)), np.zeros((draws, 1)))
    if "task_weight" in posterior:
        density_of = ("task_weight", "task_mean", "task_scale")
        density = (posterior[name].transpose("draw", "component").values for name in density_of)
    weight, mean, scale = density
    return Logit(
        posterior["intercept"].values + off * rng.standard_normal(draws),
        configs,
        tasks,
        weight,
        mean,
        scale,
        slope,
        share,
    )


def _effects(posterior: xr.Dataset) -> list[str]:
    names = map(str, posterior.data_vars)
    return [name.removesuffix("_effect") for name in names if name.endswith("_effect")]


def _on_latent_scale(fit: xr.DataTree) -> dict[str, Floats]:
    """Return variances of effects (draw), by component."""
    logit = _parts(fit)
    variance = (logit.weight * (logit.scale**2 + logit.mean**2)).sum(axis=1)
    task = {name: sd**2 for name, sd in logit.tasks.items()} | {"task": variance}
    first, second = (logit.slope**power @ logit.share for power in (1, 2))
    parts = {name: sd**2 for name, sd in logit.configs.items()}
    parts |= {name: first**2 * value for name, value in task.items()}
    if logit.share.size > 1:
        parts["interaction"] = (second - first**2) * np.sum(list(task.values()), axis=0)
    if "log_kappa" in fit["posterior"]:
        parts["cell"] = np.full(variance.shape, np.nan)
    return parts | {"run": np.full(variance.shape, LOGISTIC)}


def _on_probability_scale(fit: xr.DataTree) -> dict[str, Floats]:
    """Return parts of the variance of an outcome (draw), by component."""
    logit = _parts(fit)
    given = _given(logit)
    draws = len(logit.intercept)
    nodes = max(mean.shape[1] * mean.shape[2] for _, mean, _, _ in given.values())
    step = max(1, BLOCK // (nodes * POINTS))
    parts = {name: np.empty(draws) for name in given if name != "all"}
    mean, square = np.empty(draws), np.empty(draws)
    for block in (slice(start, start + step) for start in range(0, draws, step)):
        for name, (weight, at, sd, share) in given.items():
            p, pp = _expected(at[block] + logit.intercept[block, None, None], sd[block], share[block])
            if name == "all":
                mean[block], square[block] = p[:, 0], pp[:, 0]
            else:
                middle = (weight[block] * p).sum(axis=1)
                parts[name][block] = (weight[block] * (p - middle[:, None]) ** 2).sum(axis=1)
    parts["interaction"] = np.maximum(square - mean**2 - np.sum(list(parts.values()), axis=0), 0.0)
    noise, psi = mean - square, _share_of_cells(fit)
    if psi is not None:
        parts["cell"] = noise * psi
    return parts | {"run": noise * (1.0 if psi is None else 1 - psi)}


def _share_of_cells(fit: xr.DataTree) -> Floats | None:
    """Return E 1 / (1 + kappa) over new configs (draw), or None where cells are additive."""
    posterior = flat(fit)
    if "log_kappa_mean" not in posterior:
        return None
    z, share = np.polynomial.hermite_e.hermegauss(POINTS)
    log_kappa = posterior["log_kappa_mean"].values[:, None] + posterior["log_kappa_sd"].values[:, None] * z
    return np.asarray(special.expit(-log_kappa) @ (share / share.sum()))


def _given(logit: Logit) -> dict[str, tuple[Floats, Floats, Floats, Floats]]:
    """Return, for every factor, what mu is given each of its values.

    A value's weight (draw, value), and the logit's normal mixture given it: means less the intercept (draw, value,
    part), sds and weights (draw, 1, part) or (draw, value, part). ``"all"`` is the mixture given nothing.
    """
    z, normal = _normal()
    slope = logit.slope[:, None, :, None]
    variance = np.sum([sd**2 for sd in logit.configs.values()], axis=0)
    grouped = np.sum([sd**2 for sd in logit.tasks.values()], axis=0) + np.zeros_like(variance)
    own = logit.scale[:, None, None, :] ** 2
    centre = logit.mean[:, None, None, :]
    share = logit.share[:, None] * logit.weight[:, None, None, :]

    def flatly(at: Floats, square: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
        shape = np.broadcast_shapes(at.shape, square.shape, weight.shape)
        return tuple(np.broadcast_to(part, shape).reshape(*shape[:2], -1) for part in (at, np.sqrt(square), weight))  # type: ignore[return-value]

    def column(values: Floats) -> Floats:
        return values[:, None, None, None]

    equally = np.broadcast_to(normal, (len(variance), normal.size))
    whole = slope**2 * (own + column(grouped))
    found = {"all": (np.ones((len(variance), 1)), *flatly(slope * centre, column(variance) + whole, share))}
    for name, sd in logit.configs.items():
        value = column(sd) * z[:, None, None]
        found[name] = (equally, *flatly(value + slope * centre, column(variance - sd**2) + whole, share))
    if logit.share.size > 1:
        value = logit.slope[:, :, None, None]
        weight = np.broadcast_to(logit.share, logit.slope.shape)
        rest = column(variance) + value**2 * (own + column(grouped))
        found["discrimination"] = (weight, *flatly(value * centre, rest, logit.weight[:, None, None, :]))
    for name, sd in logit.tasks.items():
        value = column(sd) * z[:, None, None]
        rest = column(variance) + slope**2 * (own + column(grouped - sd**2))
        found[name] = (equally, *flatly(slope * (value + centre), rest, share))
    at = (logit.mean[:, :, None] + logit.scale[:, :, None] * z).reshape(len(variance), -1)
    weight = (logit.weight[:, :, None] * normal).reshape(len(variance), -1)
    rest = column(variance) + slope**2 * column(grouped)
    found["task"] = (weight, *flatly(slope * at[:, :, None, None], rest, logit.share[:, None]))
    return found


def _normal() -> tuple[Floats, Floats]:
    z = np.linspace(-7.5, 7.5, POINTS)
    density = np.exp(-0.5 * z**2)
    return z, density / density.sum()


def _expected(at: Floats, sd: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Return mean of p = expit(at + sd z) and of p^2 over a normal mixture of parts: (draw, value) each."""
    z, normal = _normal()
    p = special.expit(at[..., None] + sd[..., None] * z)
    weight: Any = share
    return ((p @ normal) * weight).sum(axis=-1), ((p**2 @ normal) * weight).sum(axis=-1)
