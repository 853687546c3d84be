"""Whether boards drawn from a fit repeat themselves as the board does: posterior predictive checks.

Each statistic of the board stands beside the same statistic of boards drawn from the fit. Two kinds are drawn:

- the same tasks, cells anew: mu_ct from the posterior's effects, p_ct ~ Beta(mu kappa, (1-mu) kappa) fresh where the
  model has a kappa (else p = mu), and runs of it. It is for what runs of one cell, and configs on one task, say of each
  other. A p_ct given the cell's own runs would fit them whatever the model, and new tasks would hide a wrong variance
  within cells behind the variance between tasks;
- new tasks from the model's density of task effects: for what the model says of the population of tasks, which the
  effects of the tasks that were run, being fitted to them, match whatever the density. Which cells were run must then
  have nothing to do with how hard they are.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import special

from evalbayes.cells import BLOCK, concentration, flattened, logits, new_effects, task_effects
from evalbayes.check import statistics
from evalbayes.check.population import CELLS, population
from evalbayes.errors import ArgumentError, check_whole
from evalbayes.posterior.draws import counts
from evalbayes.schema import Int64
from evalbayes.simulate import Floats, scattered

LEVEL = 0.005
"""A p-value up to this fails its statistic: one of the seventeen is that small for at most 1 true model in 12."""
LEAST = 200
"""Boards drawn, at least; with fewer than 400 the level is the least p-value there can be, 2 / (1 + boards)."""
KNOWN = (
    *("score", "ability", "config_effect", "task_effect", "task_group_effect", "interaction_effect"),
    *("log_discrimination", "log_kappa"),
)
"""What cells are drawn from, of all that a posterior has over configs or tasks, and their mean over new tasks."""


class Values(NamedTuple):
    """A statistic of the board, then of each drawn one: (board, config), and pooled (board)."""

    own: Floats
    pooled: Floats


def repeatability(fit: xr.DataTree, *, draws: int = 400, seed: int = 0) -> xr.Dataset:
    """Compare a board's repeatability with that of boards drawn from its fit.

    Parameters
    ----------
    fit
        From `evalbayes.fit`: any packaged model, or one whose cells have the same names.
    draws
        Boards drawn, evenly over the posterior, at least 200. Large boards get fewer, and never less than 200.
    seed
        Same seed, same numbers.

    Returns
    -------
    xarray.Dataset
        Over ``statistic`` and ``config``: ``observed``, ``predicted`` (mean over drawn boards), ``lower`` and ``upper``
        (their central 95%), ``p_value`` and ``reason`` (why NaN, else ""). Over ``statistic``: the same of all cells
        together, ``pooled_observed`` to ``pooled_reason``; config by config, ``outside`` and ``expected_outside`` (how
        many configs are outside their interval, and are on the mean drawn board), ``scatter`` (mean square distance of
        configs from their predicted values, in predictive standard deviations) and ``scatter_p_value``; ``result``
        (``"passed"``, ``"failed"``, ``"unknown"``) and ``sentence``; coords ``meaning`` and ``about`` (``"cells"``,
        ``"configs"``, ``"tasks"``, or ``"bars"``: of the histogram, on which no verdict rests). Attrs: ``verdict``,
        ``rule``, ``model``, ``boards``, ``level``, ``floor`` (the least p-value there can be), ``prob``,
        ``histogram_runs`` (0: none), ``seed``.

    Raises
    ------
    ArgumentError
        If ``fit`` is no fit, lacks what cells are drawn from or has more, or draws or seed are out of range.

    Notes
    -----
    With T of the board and T_rep of S drawn ones (Gelman, Meng and Stern 1996, Statistica Sinica 6, 733-807)::

        p = 2 min(P(T_rep >= T), P(T_rep <= T)),    P = (1 + number of drawn boards) / (1 + S)

    cut at 1; ties count in full on both sides. For the histogram's distance and the scatter only large values count
    against a model, and p = P(T_rep >= T). A statistic fails where its pooled p-value or its scatter's is at most
    ``level``; the population gap where `check.population` says so. A pooled mean can be right while configs are not:
    the scatter is for those.

    Cells of the commonest number of runs, two or more, make the histogram; the other statistics of cells take all with
    two runs or more, each with its own n. The flip rate is twice the within variance and three shares sum to one, so
    that the six of them are about three separate ones.

    Were the parameters known, a true model would fail by any one p-value on at most a share ``level`` of boards, and by
    one of all 17 on at most 17 times that, 8.5%. Parameters fitted to the same board make p-values conservative: a true
    model fails less often, and a wrong one may pass (Meng 1994, Annals of Statistics 22, 1142-1160: over the prior,
    never more than twice as often as the level). Of 38 fits of the beta-binomial model to boards drawn from it, 8 x 60
    x 5, none failed any (``tests/benchmarks/repeatability_checks.py``).

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> print(eb.check.repeatability(eb.fit(board, "crossed")).attrs["verdict"])     # doctest: +SKIP
    crossed fails mixed (0.337 observed, 0.492 predicted), ...
    """
    check_whole("draws", draws, LEAST, f"a p-value small enough takes {LEAST} boards or more, a whole number")
    check_whole("seed", seed, 0)
    posterior = checked(fit)
    successes, trials = counts(fit)
    n, flat = trials.values, flattened(posterior)
    boards = max(LEAST, min(draws, CELLS // n.size))
    # A fit of few draws lends each to several boards.
    flat = flat.isel(draw=np.arange(boards) * flat.sizes["draw"] // boards)
    gate = _gate(fit, posterior, seed)
    values = _values(flat, successes.values, n, gate, np.random.default_rng(seed))
    runs, level, model = statistics.commonest(n), max(LEVEL, 2 / (1 + boards)), str(fit.attrs.get("model", "the model"))
    table = _table(values, successes["config"].values, runs, density=_has_density(flat))
    table = _judged(table, level, str(gate.attrs["gate"]))
    return table.assign_attrs(
        verdict=_verdict(table, model, level, additive="log_kappa" not in posterior),
        rule=f"a statistic fails where its p-value, pooled or config by config, is at most {level:.4g}; a true model "
        f"fails each on at most 1 board in {1 / level:.0f}, and on fewer as predictive p-values are conservative",
        model=model,
        boards=boards,
        level=level,
        floor=2 / (1 + boards),
        prob=statistics.PROB,
        histogram_runs=runs,
        seed=seed,
    )


def checked(fit: Any, question: str = "repeatability") -> xr.Dataset:
    """Return the posterior of a fit whose cells can be drawn from it."""
    groups = {"posterior", "observed_data", "constant_data"}
    if not isinstance(fit, xr.DataTree) or not groups <= set(fit.children):
        raise ArgumentError(f"{question}: fit is a {type(fit).__name__}; give what evalbayes.fit returned")
    posterior = fit["posterior"].to_dataset()
    several = fit["constant_data"].sizes["config"] > 1
    needed = ("intercept", "score", "config_effect") if several else ("intercept", "score")
    missing = [name for name in needed if name not in posterior]
    if missing:
        raise ArgumentError(
            f"{question}: the fit has no {', '.join(missing)}; cells are drawn from intercept, config_effect, "
            "task_effect and log_kappa"
        )
    strange = [str(name) for name in posterior.data_vars if _may_enter(str(name), posterior)]
    if strange:
        raise ArgumentError(
            f"{question}: the fit has {', '.join(strange)}, and cells are drawn from {', '.join(KNOWN[1:])} and "
            "intercept alone; drop from the posterior what cells do not depend on"
        )
    return posterior


def _may_enter(name: str, posterior: xr.Dataset) -> bool:
    """Whether cells may depend on a variable that they are not drawn from; effects of groups are part of others."""
    dims = posterior[name].dims
    if name in KNOWN or ("ability" in posterior and dims[2:] == (name.removesuffix("_effect"),)):
        return False
    return name.endswith("_effect") or not {"config", "task"}.isdisjoint(dims)


def _gate(fit: xr.DataTree, posterior: xr.Dataset, seed: int) -> xr.Dataset:
    """Return the population gate that a fit carries, or what it would be."""
    if "population" in fit.children:
        return fit["population"].to_dataset()
    successes, trials = counts(fit)
    return population(posterior, xr.Dataset({"successes": successes, "trials": trials}), seed=seed)


def _values(flat: xr.Dataset, k: Int64, n: Int64, gate: xr.Dataset, rng: np.random.Generator) -> dict[str, Values]:
    """Return every statistic of the board and then of each drawn one."""
    runs = statistics.commonest(n)
    boards = (drawn for _, drawn in drawn_boards(flat, n, rng))
    values = _joined([_of_counts(cells, n, runs) for cells in (k[None], *boards)])
    if runs:
        own, pooled = (np.stack([values[bar][of] for bar in statistics.bars(runs)]) for of in (0, 1))
        cells = (n == runs).sum(axis=1)
        values["histogram"] = Values(statistics.distance(own, cells), statistics.distance(pooled, cells.sum()))
    if _has_density(flat):
        values |= _of_new_tasks(flat, k, n, gate, rng)
    empty = np.full((1 + flat.sizes["draw"], len(n)), np.nan)
    return {name: Values(empty, empty[:, 0]) for name in statistics.JUDGED} | values


def _of_counts(k: Int64, n: Int64, runs: int) -> dict[str, Values]:
    """Return the statistics of boards on the same tasks, of successes k (board, config, task)."""
    found = dict(zip(statistics.WITHIN, map(Values, *statistics.within(k, n)), strict=True))
    found["discordance"] = Values(*statistics.discordance(k, n))
    found["item_rest_slope"] = Values(*statistics.item_rest_slopes(k, n))
    if runs:
        found |= zip(statistics.bars(runs), map(Values, *statistics.histogram(k, n, runs)), strict=True)
    return found


def _of_new_tasks(
    flat: xr.Dataset, k: Int64, n: Int64, gate: xr.Dataset, rng: np.random.Generator
) -> dict[str, Values]:
    """Return the statistics for which boards are drawn on new tasks."""
    boards = drawn_boards(flat, n, rng, new=True)
    drawn = [(statistics.task_spread(cells, n), _means(mu, cells, n)) for mu, cells in boards]
    spread, means = (np.concatenate(part) for part in zip(*drawn, strict=True))
    spread = np.concatenate([statistics.task_spread(k[None], n), spread])
    # A gap is the score less a mean: the board's own as the gate has it, cells that were not run filled in.
    gap = (gate["gap"] + gate["observed"]).values - np.concatenate([gate["observed"].values[None], means])
    gap[:, np.isnan(gap[0])] = np.nan
    return {
        "task_spread": Values(np.full_like(gap, np.nan), spread),
        "population_gap": Values(gap, gap[:, ~np.isnan(gap[0])].mean(axis=1)),
    }


def _has_density(flat: xr.Dataset) -> bool:
    """Whether new tasks can be drawn: from a density, or because tasks have no effects."""
    return "task_weight" in flat or "task_effect" not in flat


def _joined(parts: list[dict[str, Values]]) -> dict[str, Values]:
    """Lay the boards of all parts end to end."""
    return {
        name: Values(*(np.concatenate(part) for part in zip(*(one[name] for one in parts), strict=True)))
        for name in parts[0]
    }


def _means(mu: Floats, k: Int64, n: Int64) -> Floats:
    """Return each config's mean over tasks (board, config); a cell without a run counts as what is expected of it."""
    return np.asarray(np.where(n > 0, statistics.rates(k, n), mu).mean(axis=2))


def drawn_boards(
    flat: xr.Dataset, n: Int64, rng: np.random.Generator, *, new: bool = False
) -> Iterator[tuple[Floats, Int64]]:
    """Yield mu and successes (board, config, task) in blocks of boards, one board a draw; ``new``: of new tasks."""
    kappa, draws, tasks = concentration(flat), flat.sizes["draw"], n.shape[1]
    effect = np.stack([new_effects(flat, i, tasks, rng) for i in range(draws)]) if new else task_effects(flat, tasks)
    for block, eta in logits(flat, effect, max(1, BLOCK // 16 // n.size), rng if new else None):
        p = mu = special.expit(eta)
        if n.max(initial=0) < 2:
            # One run of a cell is a Bernoulli with mean mu whatever kappa is.
            yield mu, (rng.random(mu.shape) < mu) * n
            continue
        if kappa is not None:
            p = scattered(rng, mu, kappa[block, :, None])
        yield mu, rng.binomial(n, p)


def _table(values: dict[str, Values], configs: Any, runs: int, *, density: bool) -> xr.Dataset:
    """Set the board beside the drawn ones, per config and pooled."""
    rows = statistics.rows(runs, density=density)
    texts = {field: ("statistic", [getattr(row, field) for row in rows.values()]) for field in ("about", "meaning")}
    reason = xr.DataArray([row.reason for row in rows.values()], dims="statistic")
    table = xr.Dataset(coords={"statistic": list(rows), "config": configs} | texts)
    for of, dims in enumerate((("statistic", "config"), ("statistic",))):
        prefix = "pooled_" * of
        columns = [statistics.summary(values[name][of], large=name == "histogram") for name in rows]
        table = table.assign({prefix + name: (dims, np.stack([c[name] for c in columns])) for name in columns[0]})
        table[f"{prefix}reason"] = xr.where(table[f"{prefix}observed"].isnull(), reason, "").astype(object)
    table["reason"].loc[{"statistic": "task_spread"}] = "a statistic of the whole board"
    columns = [statistics.by_config(values[name].own, large=name == "histogram") for name in rows]
    return table.assign({name: ("statistic", np.stack([c[name] for c in columns])) for name in columns[0]})


def _judged(table: xr.Dataset, level: float, gate: str) -> xr.Dataset:
    """Say of each statistic whether the model passes it, and in one sentence what is seen."""
    pooled, own = (table[name] <= level + statistics.TIE for name in ("pooled_p_value", "scatter_p_value"))
    result = xr.where(table["pooled_observed"].isnull(), "unknown", xr.where(pooled | own, "failed", "passed"))
    if result.sel(statistic="population_gap") != "unknown":
        result.loc[{"statistic": "population_gap"}] = gate
    table = table.assign(result=result.astype(object))
    rows = (table.sel(statistic=name) for name in table["statistic"].values)
    return table.assign(sentence=("statistic", np.array([_sentence(row) for row in rows], object)))


def _sentence(row: xr.Dataset) -> str:
    """Return what is seen of one statistic."""
    said = f"{row['statistic'].item()} {row['result'].item()}: "
    if row["result"] == "unknown":
        return said + str(row["pooled_reason"].item())
    low, high = (_short(row[f"pooled_{end}"]) for end in ("lower", "upper"))
    said += f"{_pooled(row)} ({low} to {high}), p {row['pooled_p_value'].item():.2g}"
    return said if np.isnan(row["scatter"]) else f"{said}; {_own(row)}, p {row['scatter_p_value'].item():.2g}"


def _pooled(row: xr.Dataset) -> str:
    return f"{_short(row['pooled_observed'])} observed, {_short(row['pooled_predicted'])} predicted"


def _own(row: xr.Dataset) -> str:
    of, beyond = int(row["observed"].notnull().sum()), int(row["outside"])
    return (
        f"configs {_short(row['scatter'], 1)} times as far off in mean square as predicted, {beyond} of {of} outside "
        f"where {_short(row['expected_outside'], 1)} would be"
    )


def _short(value: xr.DataArray, digits: int = 3) -> str:
    # Adding 0 turns a rounded -0.0 into 0.
    return f"{round(value.item(), digits) + 0:g}"


def _verdict(table: xr.Dataset, model: str, level: float, *, additive: bool) -> str:
    """Return which statistics a model passes, which it fails and how, and what to do."""
    rows = {name: table.sel(statistic=name) for name in statistics.JUDGED}
    said = []
    for result, verb in (("failed", "fails"), ("passed", "passes"), ("unknown", "leaves unknown")):
        named = [name + _how(row, level) for name, row in rows.items() if row["result"] == result]
        said += [f"{verb} {', '.join(named)}"] if named else []
    variance = rows["within_variance"]
    if additive and variance["result"] == "failed" and variance["pooled_observed"] < variance["pooled_predicted"]:
        said.append("runs of a cell agree more than it allows: fit model='crossed_beta_binomial'")
    return f"{model} {'; '.join(said)}"


def _how(row: xr.Dataset, level: float) -> str:
    """Return how a statistic fails, in brackets; nothing if it does not."""
    if row["result"] != "failed":
        return ""
    pooled = row["pooled_p_value"] <= level + statistics.TIE or row["statistic"] == "population_gap"
    return f" ({_pooled(row) if pooled else _own(row)})"
