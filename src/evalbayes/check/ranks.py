"""Boards drawn from a model's own prior, fitted, and where the truth stands among the posterior draws of each.

A row is one board. Its parameters come from the prior of the model as written (`evalbayes.predictive`), and it has a
seed of its own, so that any row can be made again alone. Truth and draws are laid end to end before anything is
computed of them: what is ranked is the same function of both.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import special

from evalbayes import components
from evalbayes.cells import BLOCK, concentration, logits, task_effects, thinned
from evalbayes.check.coverage import board_seeds
from evalbayes.errors import ArgumentError, SamplingError, check_whole
from evalbayes.outcomes import from_counts
from evalbayes.posterior.variances import component_draws
from evalbayes.simulate import Floats
from evalbayes.textbook import standing

if TYPE_CHECKING:
    from evalbayes.choice import ModelFunction

FACTS = ("row", "seed", "method", "k_hat", "weight_ess", "seconds", "reason")
"""What a row says besides its ranks."""
LEAST_RATE = 1e-300
"""Of a success probability: its logarithm stays finite."""


class Design(NamedTuple):
    """What boards are like and how they are fitted: cells and runs, and the priors of the fit and of the truth."""

    name: str
    model: "str | ModelFunction"
    outcomes: xr.Dataset
    seed: int
    method: str
    draws: int
    priors: dict[str, Any]
    true_priors: dict[str, Any]


class Drawn(NamedTuple):
    """One board drawn from the prior: its number and seed, its parameters (draw, of one), and the board."""

    row: int
    seed: int
    truth: xr.Dataset
    board: xr.Dataset


def grid(configs: int, tasks: int, runs: int) -> xr.Dataset:
    """Return a board without a pass, of so many configs, tasks, and runs a cell: what others are drawn like.

    Examples
    --------
    >>> dict(grid(2, 10, 3).sizes), grid(2, 10, 3)["task"].values[-1]
    ({'config': 2, 'task': 10}, 'task-09')
    """
    for name, size, least in (("configs", configs, 1), ("tasks", tasks, 2), ("runs", runs, 1)):
        check_whole(name, size, least)
    names, others = ([f"{role}-{i:02}" for i in range(n)] for role, n in (("config", configs), ("task", tasks)))
    board = from_counts(np.zeros((configs, tasks), int), np.full((configs, tasks), runs), configs=names, tasks=others)
    return board.assign_attrs(source=f"boards of {configs} configs x {tasks} tasks x {runs} runs")


def design(
    model: "str | ModelFunction",
    outcomes: xr.Dataset,
    *,
    seed: int = 0,
    method: str = "auto",
    draws: int = 199,
    true_priors: Mapping[str, Any] | None = None,
    **priors: Any,
) -> Design:
    """Return what `ranked` works from; the parameters are those of `evalbayes.check.calibration`."""
    # Models need PyMC, and this package is imported where nothing is fitted.
    from evalbayes.choice import check_priors, chosen
    from evalbayes.fit import METHODS

    check_whole("seed", seed, 0)
    check_whole("draws", draws, 1)
    if method not in METHODS:
        raise ArgumentError(f"method={method!r}: choose one of {', '.join(METHODS)}")
    true = priors | dict(true_priors or {})
    name, function, _ = chosen(outcomes, model)
    check_priors(name, function, true)
    cells = outcomes.drop_vars("outcome", errors="ignore").assign(errors=0 * outcomes["errors"])
    return Design(name, model, cells, seed, method, draws, priors, true)


def ranked(plan: Design, which: Sequence[int], *, executor: Executor | None = None) -> Iterator[dict[str, Any]]:
    """Draw the boards of the rows named, fit them, and yield the ranks of their truths, a row at a time.

    Parameters
    ----------
    plan
        From `design`.
    which
        Numbers of rows, from 0: each row is the same whichever others are made with it.
    executor
        Any `concurrent.futures.Executor`; None works through the rows in turn.

    Yields
    ------
    dict
        ``row, seed, method, k_hat, weight_ess, seconds, reason``, and the rank of every quantity, a whole number from 0
        to L, or NaN where the fit failed. ``method`` is "" then and ``reason`` says why; it also says what failed
        before a fit that is not by laplace.

    Examples
    --------
    >>> list(ranked(design("beta_binomial", grid(1, 8, 3)), [7]))                    # doctest: +SKIP
    [{'row': 7, 'seed': ..., 'method': 'laplace', ..., 'intercept': 121, ...}]
    """
    for row in which:
        check_whole("row", row, 0)
    if which:
        work, boards = partial(_row, plan), _drawn(plan, which)
        yield from map(work, boards) if executor is None else executor.map(work, boards)


def _drawn(plan: Design, which: Sequence[int]) -> Iterator[Drawn]:
    """Draw all rows up to the last, a moment's work, and yield those named: a longer study begins like a shorter."""
    from evalbayes.predictive import prior_predictive

    rows = max(which) + 1
    prior = prior_predictive(plan.outcomes, plan.model, draws=rows, seed=plan.seed, **plan.true_priors)
    truths, boards, seeds = prior["prior"].to_dataset(), prior["prior_predictive"], board_seeds(plan.seed, rows)
    for row in which:
        successes = boards["successes"].isel(draw=row, drop=True)
        yield Drawn(row, seeds[row], truths.isel(draw=[row]), plan.outcomes.assign(successes=successes))


def _row(plan: Design, drawn: Drawn) -> dict[str, Any]:
    # The module of fits imports this package's checks.
    from evalbayes.fit import LEAST_DRAWS, fit

    started, count = time.perf_counter(), max(plan.draws, LEAST_DRAWS)
    facts: dict[str, Any] = {"method": "", "k_hat": np.nan, "weight_ess": np.nan}
    try:
        tree = fit(drawn.board, plan.model, method=plan.method, draws=count, seed=drawn.seed, **plan.priors)
    except (SamplingError, np.linalg.LinAlgError) as failure:
        # The second is none of the package's own, and would end a study of hours at its first strange board.
        reason, ranks = str(failure), dict.fromkeys(quantities(drawn.board, drawn.truth), np.nan)
    else:
        posterior = thinned(tree["posterior"].to_dataset(), plan.draws)
        names = [name for name in drawn.truth.data_vars if name in posterior]
        both = xr.concat([drawn.truth[names], posterior[names]], "draw", join="exact")
        rng = np.random.default_rng([drawn.seed, 1])
        ranks = {name: rank(values, rng) for name, values in quantities(drawn.board, both).items()}
        facts |= {name: tree.attrs[name] for name in facts if name in tree.attrs}
        reason = "" if facts["method"] == plan.method or "; " not in tree.attrs["why"] else str(tree.attrs["why"])
    facts |= {"seconds": round(time.perf_counter() - started, 2), "reason": " ".join(reason.split())}
    return {"row": drawn.row, "seed": drawn.seed, **facts, **ranks}


def rank(values: Floats, rng: np.random.Generator) -> int:
    """Return how many of the values after the first are below it, a random number of those equal to it counted.

    What is not a number (the ICC where runs of no task vary) is below everything.

    Examples
    --------
    >>> rank(np.array([2.0, 1.0, 3.0, 1.5]), np.random.default_rng(0))
    2
    """
    known = np.where(np.isnan(values), -np.inf, values)
    return int((known[1:] < known[0]).sum() + rng.integers((known[1:] == known[0]).sum() + 1))


def quantities(board: xr.Dataset, flat: xr.Dataset) -> dict[str, Floats]:
    """Return what is ranked, (draw,) each: parameters, functions of several, and one of parameters and data.

    Of a vector the first element stands for all: the prior does not tell them apart. What is over ``component`` is left
    out, being a function of scalars that are here.

    Parameters
    ----------
    board
        With ``successes`` and ``trials``.
    flat
        Draws (draw, ...) under the names of `evalbayes.models`.
    """
    found = {}
    # In the order of their names: PyMC's own differs from one process to the next, and ties are broken in turn.
    for name in sorted(map(str, flat.data_vars)):
        variable = flat[name]
        if "component" not in variable.dims:
            elements = variable.transpose("draw", ...).values.reshape(flat.sizes["draw"], -1)
            found[name if variable.ndim == 1 else f"{name}[0]"] = elements[:, 0]
    found["icc[0]"] = _icc(board, flat)
    if board.sizes["config"] > 1:
        found["rank[0]"] = standing(flat["score"].transpose("draw", "config").values)[0][:, 0].astype(float)
    return found | {"log_likelihood": log_likelihood(board, flat)}


def _icc(board: xr.Dataset, flat: xr.Dataset) -> Floats:
    """Return the ICC of the first config on new tasks, by the formulas of `evalbayes.posterior.icc`."""
    groups = {
        "posterior": flat.expand_dims("chain"),
        "observed_data": board[["successes"]],
        "constant_data": board[["trials", "errors"]],
    }
    # Without a population gate: one that failed refuses an answer, and here none is given.
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {"seed": 0}
    parts = component_draws(tree, tasks="sampled")
    return np.asarray(components.icc(components.ratio(parts.between, parts.within)).isel(config=0).values, float)


def log_likelihood(board: xr.Dataset, flat: xr.Dataset) -> Floats:
    """Return log p(board | parameters, task effects) less the sum of log C(n, k), (draw,).

    With psi = 1 / kappa, 0 where cells are additive, a cell of k passes in n runs has the terms log(mu + j psi) for
    j < k, log(1 - mu + j psi) for j < n - k, and -log(1 + j psi) for j < n (`evalbayes.models.overdispersion`).

    Examples
    --------
    >>> flat = xr.Dataset({"intercept": ("draw", [0.0]), "score": (("draw", "config"), [[0.5]])}, {"config": ["a"]})
    >>> log_likelihood(grid(1, 2, 3).assign_coords(config=["a"]), flat).round(3).tolist()
    [-4.159]
    """
    k, n = (board[name].transpose("config", "task").values for name in ("successes", "trials"))
    kappa, effect = concentration(flat), task_effects(flat, board.sizes["task"])
    psi, total = np.zeros((len(effect), 1)) if kappa is None else 1 / kappa, np.zeros(len(effect))
    for some, eta in logits(flat, effect, max(1, BLOCK // n.size)):
        more = psi[some, :, None]
        passing, failing = (np.maximum(special.expit(side), LEAST_RATE) for side in (eta, -eta))
        for j in range(int(n.max())):
            drawn = (j < k) * np.log(passing + j * more) + (j < n - k) * np.log(failing + j * more)
            total[some] += (drawn - (j < n) * np.log1p(j * more)).sum(axis=(1, 2))
    return total
