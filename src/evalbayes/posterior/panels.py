"""Panels that a fit would produce: tasks that entries run together, and every entry's score on them, as an integer.

Entries are the configs of the board, or future ones from the population that these came from. All of a panel's entries
meet the same tasks, so that a hard panel is hard for all of them. Latent scores, those of endless runs, need no panel.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import special

from evalbayes.cells import BLOCK, ability, concentration, discrimination, new_effects, rates, task_effects, thinned
from evalbayes.errors import ArgumentError, NotIdentifiedError, check_whole
from evalbayes.frequentist.bootstrap import Integers
from evalbayes.pairs.panel import TRILLION
from evalbayes.posterior.draws import config_population, counts, population_nodes, task_weights
from evalbayes.simulate import Floats, scattered

SIDE = 16
"""Entries on each side of a panel of new tasks: beyond it more panels say more than more entries on one."""

Halves = Iterator[tuple[Integers, Integers]]


class Panel(NamedTuple):
    """How many tasks and runs of each, and what is said of them; kind ``none``, and no tasks, for latent scores."""

    kind: str
    tasks: int
    runs: int
    said: str

    @property
    def out_of(self) -> int:
        """What a full score is as an integer."""
        return self.tasks * self.runs or TRILLION


class Setting(NamedTuple):
    """What is drawn for whom: words as in `evalbayes.posterior.near_tie`."""

    fit: xr.DataTree
    configs: str
    tasks: str
    population: str
    clusters: str | None
    panel: Panel
    entries: int


def panel_of(trials: xr.DataArray, tasks: str, scores: str, panel_tasks: int | None, panel_runs: int | None) -> Panel:
    """Return the panel asked for, the board's own where it is not said.

    Raises
    ------
    ArgumentError
        If a size is not a whole number, latent scores are given a panel, or the tasks of the board another number.
    """
    for name, size in (("panel_tasks", panel_tasks), ("panel_runs", panel_runs)):
        if size is not None:
            check_whole(name, size, 1)
            if scores == "latent":
                raise ArgumentError(f"{name}={size}: latent scores are of endless runs and have no panel; leave it out")
    if scores == "latent":
        return Panel("none", 0, 0, "")
    on_board = trials.sizes["task"]
    if tasks == "fixed" and panel_tasks not in (None, on_board):
        raise ArgumentError(f"panel_tasks={panel_tasks}: tasks='fixed' are the board's own {on_board}; leave it out")
    runs, said = _runs(trials.values) if panel_runs is None else (int(panel_runs), f"{panel_runs}")
    return Panel("shared", int(panel_tasks or on_board), runs, said)


def _runs(trials: Integers) -> tuple[int, str]:
    scored = trials[trials > 0]
    low, high, typical = int(scored.min()), int(scored.max()), round(float(scored.mean()))
    return typical, f"{low}" if low == high else f"{typical}, the rounded mean of {low} to {high}"


def of_future_entries(setting: Setting, draws: int, rng: np.random.Generator) -> Halves:
    """Yield, for each posterior draw, two independent sets of panels: scores (panel, side, entry).

    Entries of one side have abilities from equally probable slices of their population, one from each; the two sides
    are independent, so that pairs of one from either are pairs of future entries.
    """
    thin = thinned(setting.fit["posterior"].to_dataset(), draws)
    future, places = _future(setting.fit, thin, rng), _places(setting, thin, rng)
    latent = setting.panel.kind == "none"
    for draw in range(thin.sizes["draw"]):
        first, second = (
            _latent(setting, future, places, draw, rng)
            if latent and places is not None
            else _observed(setting, thin, future, places, draw, rng)
            for _ in range(2)
        )
        yield first, second


class Places(NamedTuple):
    """Task effects that are known before a panel is drawn, (draw, place), and their weights, None for one of each."""

    effect: Floats
    weight: Floats | None


def _places(setting: Setting, thin: xr.Dataset, rng: np.random.Generator) -> Places | None:
    """Return the board's tasks, weighted or each once, or for latent scores the density's nodes; None where new."""
    effect = task_effects(thin, counts(setting.fit)[1].sizes["task"])
    if setting.tasks == "fixed":
        return Places(effect, None)
    if setting.population == "reweighted":
        return Places(effect, task_weights(setting.fit, rng, setting.clusters)[: len(effect)])
    return Places(*population_nodes(thin, setting.clusters)) if setting.panel.kind == "none" else None


def _shape(setting: Setting) -> tuple[int, int]:
    """How many panels each half has, and how many entries are on each side of one."""
    most, quarter = max(1, BLOCK // (2 * max(setting.panel.tasks, 1))), setting.entries // 4
    if setting.tasks == "fixed" or setting.panel.kind == "none":
        return 1, min(quarter, most)
    side = min(SIDE, most)
    return max(1, min(quarter, most) // side), side


class Future(NamedTuple):
    """Where future entries come from, (draw): logit ability, log discrimination and log kappa, None where all are 1."""

    ability: tuple[Floats, Floats]
    slope: tuple[Floats, Floats] | None
    kappa: tuple[Floats, Floats] | None


def _future(fit: xr.DataTree, thin: xr.Dataset, rng: np.random.Generator) -> Future:
    """Mean and standard deviation of future entries at each draw.

    The zero-sum effects of M configs leave out their own mean, which all future entries share: N(0, sigma^2 / M).
    """
    if "config_sd" not in thin:
        raise NotIdentifiedError(
            "configs='sampled': the fit has no config_sd, no population of configs; ask the board's"
        )
    population = config_population(fit, thin)
    off = np.sqrt(sum(sd**2 / levels for sd, levels in population.values()))
    shift = off * rng.standard_normal(thin.sizes["draw"])
    slope = kappa = None
    if "log_discrimination" in thin:
        spread = thin["discrimination_sd"].values
        slope = spread / np.sqrt(population["config"][1]) * rng.standard_normal(spread.size), spread
    if "log_kappa_mean" in thin:
        kappa = thin["log_kappa_mean"].values, thin["log_kappa_sd"].values
    return Future(
        (thin["intercept"].values + shift, np.sqrt(sum(sd**2 for sd, _ in population.values()))), slope, kappa
    )


def _entries(future: Future, draw: int, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Floats, Any, Any]:
    """Draw entries of one posterior draw: ability and discrimination, and 1 / kappa or None, each (*shape, 1)."""
    slices = (np.arange(shape[-1]) + rng.random(shape)) / shape[-1]
    centre, spread = (part[draw] for part in future.ability)
    slope, psi = (
        None if of is None else np.exp(sign * (of[0][draw] + of[1][draw] * rng.standard_normal(shape)))[..., None]
        for of, sign in ((future.slope, 1), (future.kappa, -1))
    )
    return (centre + spread * special.ndtri(slices))[..., None], 1.0 if slope is None else slope, psi


def _latent(setting: Setting, future: Future, places: Places, draw: int, rng: np.random.Generator) -> Integers:
    """Latent scores (1, side, entry): a weighted mean, or on the board's tasks the mean of cells' own rates."""
    panels, side = _shape(setting)
    at, slope, psi = _entries(future, draw, (panels, 2, side), rng)
    p = special.expit(at + slope * places.effect[draw])
    if places.weight is not None:
        return rounded(p @ places.weight[draw])
    return rounded((p if psi is None else scattered(rng, p, 1 / psi)).mean(axis=-1))


def rounded(score: Floats) -> Integers:
    """Latent scores as integers, parts of a trillion."""
    return np.rint(TRILLION * score).astype(np.int64)


def _observed(
    setting: Setting, thin: xr.Dataset, future: Future, places: Places | None, draw: int, rng: np.random.Generator
) -> Integers:
    """Scores (panel, side, entry) of new entries on panels of their own."""
    panels, side = _shape(setting)
    at, slope, psi = _entries(future, draw, (panels, 2, side), rng)
    effect = _tasks(setting, thin, places, draw, panels, rng)[:, None, None, :]
    return passes(rng, special.expit(at + slope * effect), psi, setting.panel.runs)


def _tasks(
    setting: Setting, thin: xr.Dataset, places: Places | None, draw: int, panels: int, rng: np.random.Generator
) -> Floats:
    """Effects of the tasks of so many panels at one posterior draw, (panel, task)."""
    shape = (panels, setting.panel.tasks)
    if places is not None and places.weight is None:
        return places.effect[[draw]]
    if places is not None and places.weight is not None:
        return np.asarray(rng.choice(places.effect[draw], shape, p=places.weight[draw]))
    if setting.clusters is None:
        return new_effects(thin, draw, panels * setting.panel.tasks, rng).reshape(shape)
    return _clustered(thin, draw, shape, setting.clusters, rng)


def _clustered(thin: xr.Dataset, draw: int, shape: tuple[int, int], clusters: str, rng: np.random.Generator) -> Floats:
    """Effects (panel, task) of new tasks, of the board's clusters or of as many new ones of the same sizes."""
    panels, tasks = shape
    own = new_effects(thin.drop_vars("task_group_effect"), draw, panels * tasks, rng).reshape(shape)
    level, cluster = np.unique(thin["task_group_effect"].values[draw], return_inverse=True)
    cluster = np.broadcast_to(cluster, shape) if cluster.size == tasks else rng.choice(cluster, shape)
    if clusters == "sampled":
        level = thin["task_group_sd"].values[draw] * rng.standard_normal((panels, level.size))
    of_panel = np.broadcast_to(level, (panels, level.shape[-1]))
    return np.asarray(own + np.take_along_axis(of_panel, cluster, axis=1))


def of_board(setting: Setting, draws: int, rng: np.random.Generator) -> Halves:
    """Yield, for each posterior draw, two independent sets of panels of the board's own configs: (panel, config)."""
    thin, (successes, trials) = thinned(setting.fit["posterior"].to_dataset(), draws), counts(setting.fit)
    size = trials.sizes["config"]
    panels = max(1, min(setting.entries // (2 * size), BLOCK // (size * setting.panel.tasks)))
    if setting.tasks == "sampled" and setting.population == "model":
        yield from _on_new_tasks(setting, thin, trials, panels, rng)
        return
    weight = task_weights(setting.fit, rng, setting.clusters) if setting.tasks == "sampled" else None
    for block, p in rates(thin, successes, trials, rng):
        for draw, cells in enumerate(p, start=block.start):
            of_task = None if weight is None else weight[draw]
            first, second = (_run_again(cells, of_task, panels, setting.panel, rng) for _ in range(2))
            yield first, second


def _run_again(p: Floats, weight: Floats | None, panels: int, panel: Panel, rng: np.random.Generator) -> Integers:
    """Scores (panel, config) in new runs of cells with these rates (config, task), all tasks or a draw of them."""
    shape = (panels, panel.tasks)
    which = np.broadcast_to(np.arange(p.shape[1]), shape) if weight is None else rng.choice(p.shape[1], shape, p=weight)
    return passes(rng, p[:, which], None, panel.runs).T


def _on_new_tasks(
    setting: Setting, thin: xr.Dataset, trials: xr.DataArray, panels: int, rng: np.random.Generator
) -> Halves:
    at, slope, kappa = ability(thin).values[..., None], discrimination(thin)[..., None], concentration(thin)
    # As in evalbayes.cells: a config with one run a cell shows nothing of its kappa.
    psi = None if kappa is None else np.where(trials.max("task") > 1, 1 / kappa, 0.0)[..., None]
    for draw in range(len(at)):
        effects = (_tasks(setting, thin, None, draw, panels, rng)[:, None, :] for _ in range(2))
        pull = None if psi is None else psi[draw]
        first, second = (
            passes(rng, special.expit(at[draw] + slope[draw] * effect), pull, setting.panel.runs) for effect in effects
        )
        yield first, second


def passes(rng: np.random.Generator, mu: Floats, psi: Any, runs: int) -> Integers:
    """Draw how many runs pass over the last axis, cells having rates mu or, around it, of their own.

    psi = 1 / kappa is how runs of a cell pull on each other, None where they do not: by Polya's urn a beta-binomial's
    next run passes with probability (mu + psi k) / (1 + psi j) after k passes in j runs.

    >>> passes(np.random.default_rng(0), np.ones((2, 5)), None, 3).tolist()
    [15, 15]
    """
    first = rng.random(mu.shape) < mu
    if runs == 1:
        return np.asarray(first.sum(axis=-1))
    k = first.astype(float)
    for earlier in range(1, runs):
        k += rng.random(mu.shape) < (mu if psi is None else (mu + psi * k) / (1 + psi * earlier))
    return k.sum(axis=-1).astype(np.int64)
