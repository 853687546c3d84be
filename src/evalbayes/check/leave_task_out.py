"""Leave-task-out cross-validation: how well a model predicts a task that it has not seen, and which predicts best.

The unit left out is the task, since what one wants to know of is another one: with a cell left out, the task's other
cells still tell how hard it is, and the differences between models that matter for new tasks hardly show.

For task t the likelihood is the marginal one, with the task's effect integrated out, and::

    elpd_t = log p(y_t | y_-t) = log 1 / E[1 / p(y_t | theta)],    theta ~ p(theta | y)

with the importance ratios 1 / p(y_t | theta) Pareto-smoothed (Vehtari, Gelman and Gabry 2017, Statistics and Computing
27, 1413-1432; Vehtari, Simpson, Gelman, Yao and Gabry 2024, Journal of Machine Learning Research 25, 1-58). Their k
says for which tasks that fails; such a task can be left out in earnest, by another fit.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import special

from evalbayes.errors import ArgumentError, SamplingError, check_whole
from evalbayes.simulate import Floats

GOOD_K = 0.7
"""Pareto k up to which smoothed ratios can be relied on, however many draws there are."""
NO_RUN = "no scored run"
CLEAR = 4.0
FEW_TASKS = 100
"""A difference below the one, or tasks below the other, and its standard error is too small (arXiv 2008.10296)."""


class _Psis(NamedTuple):
    """Of every task: its log predictive density, how much less that is than with the task seen, and k.

    ``influence`` (task, draw) is what each draw adds to the Monte Carlo error of the first.
    """

    elpd: Floats
    p_loo: Floats
    k: Floats
    influence: Floats


def leave_task_out(
    fit: xr.DataTree,
    model: Any = None,
    *,
    refit: int = 0,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Estimate how well a model predicts each task from the others.

    Parameters
    ----------
    fit
        From `evalbayes.fit`, by any method. Draws that were resampled by weights are taken as they are; ``distinct``
        says how many there are, and what weights and chains have cost is in every error.
    model
        The function the fit was made with, where it is neither in the package nor in a file. It follows the contract
        of `evalbayes.models.effects`, or has no task effects and observes its cells.
    refit
        How many of the tasks whose k is too large to leave out in earnest, worst first: one fit each, without that
        task's runs.
    seed
        Of those fits.
    progress
        Called with one short line for each of them.

    Returns
    -------
    xarray.Dataset
        Over ``task``: ``elpd`` (log predictive density, in nats), ``mcse`` (its Monte Carlo standard error), ``p_loo``
        (how much higher the density is with the task seen), ``pareto_k``, ``method`` (``"psis"`` or ``"refit"``) and
        ``reason`` (why elpd is not to be relied on, or NaN); elpd is NaN for a task without a run. Attrs: ``elpd, se,
        p_loo, mcse`` of the sum over tasks, se = sqrt(T var(elpd_t)); ``tasks`` T; ``good_k`` and how many tasks are
        above it, ``above_good_k``, and ``unreliable``, those of them not refitted; ``draws, distinct,
        effective_draws``; ``unit`` (``"task"``); ``outcomes`` (``"counts"`` where the binomial constant is in,
        ``"sequences"`` where it is not, ``"unknown"`` where that cannot be told); ``board`` (a digest of its cells);
        ``model, fit_method, verdict``.

    Raises
    ------
    ArgumentError
        If the model is not to be found, is not the fit's, or does not say what a task's likelihood is.
    SamplingError
        If no grid resolves the task effects. (Where a refit fails, ``reason`` says so.)

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> fits = {name: eb.fit(board, name) for name in ("crossed", "crossed_beta_binomial")}  # doctest: +SKIP
    >>> found = {name: eb.check.leave_task_out(fit) for name, fit in fits.items()}   # doctest: +SKIP
    >>> eb.check.compare_models(found).verdict                                       # doctest: +SKIP
    """
    from evalbayes import pointwise
    from evalbayes.predictive import origin

    check_whole("refit", refit, 0)
    check_whole("seed", seed, 0)
    board, function, priors = origin(fit, model)
    form, posterior = pointwise.form_of(board, function, priors), fit["posterior"].to_dataset()
    log_lik = pointwise.log_densities(form, posterior)["likelihood"]
    run = (board["trials"].sum("config") > 0).values
    share = _efficiency(fit, log_lik.values[..., run])
    found = _psis(log_lik.values[..., run], share)
    draws = log_lik.sizes["chain"] * log_lik.sizes["draw"]
    good_k = min(1 - 1 / np.log10(draws * share), GOOD_K)
    result = _table(found, run, log_lik["task"].values, good_k)

    def again(task: Any) -> tuple[float, float]:
        if progress:
            progress(f"leaving out {task}")
        return _left_out(board, form, function, priors, task, draws=draws, seed=seed)

    result = _refitted(result, again, refit)
    result.attrs |= {
        "good_k": float(good_k),
        "above_good_k": int((result["pareto_k"] > good_k).sum()),
        "unreliable": int((result["reason"].str.startswith("k ")).sum()),
        "draws": draws,
        "distinct": pointwise.distinct(form, posterior),
        "effective_draws": draws * share,
        "unit": "task",
        "outcomes": pointwise.kind_of_outcomes(form, board, function, priors, posterior),
        "board": _digest(board),
        "model": str(fit.attrs["model"]),
        "fit_method": str(fit.attrs["method"]),
    }
    return _summed(result, found.influence, run)


def _efficiency(fit: xr.DataTree, log_lik: Floats) -> float:
    """Return how many independent draws one of these is worth, at most 1.

    Importance draws as their weights say; chains by the likelihoods themselves (as R's ``loo::relative_eff``).
    """
    from arviz_stats.base import array_stats

    from evalbayes.posterior.draws import effective

    draws = log_lik.shape[0] * log_lik.shape[1]
    if "weight_ess" in fit.attrs:
        return float(min(1.0, effective(fit) / draws))
    likelihood = np.exp(log_lik - log_lik.max(axis=(0, 1)))
    ess = array_stats.ess(likelihood, chain_axis=0, draw_axis=1, method="mean")
    return float(min(1.0, np.mean(ess) / draws))


def _psis(log_lik: Floats, share: float) -> _Psis:
    """Leave every task out by Pareto-smoothed ratios, of log likelihoods (chain, draw, task)."""
    from arviz_stats.base import array_stats

    by_task = log_lik.reshape(-1, log_lik.shape[2]).T
    log_weight, k = array_stats.psislw(by_task, r_eff=share, axis=-1)
    elpd = special.logsumexp(log_weight + by_task, axis=1)
    seen = special.logsumexp(by_task, axis=1) - np.log(by_task.shape[1])
    # The estimate is a ratio of means: its relative error is the weighted spread of likelihoods about it.
    spread = np.exp(log_weight) * np.expm1(by_task - elpd[:, None])
    return _Psis(elpd, seen - elpd, k, spread / np.sqrt(share))


def _table(found: _Psis, run: Any, tasks: Any, good_k: float) -> xr.Dataset:
    """Label the tasks, those without a run too, and say which are not to be relied on."""
    columns = {"elpd": found.elpd, "mcse": np.sqrt((found.influence**2).sum(axis=1)), "p_loo": found.p_loo}
    result = xr.Dataset(coords={"task": tasks})
    for name, values in (columns | {"pareto_k": found.k}).items():
        result[name] = ("task", np.full(len(tasks), np.nan))
        result[name][run] = values
    reason = np.where(run, "", NO_RUN).astype(object)
    for i in np.flatnonzero(result["pareto_k"] > good_k):
        k = result["pareto_k"][i].item()
        reason[i] = f"k {k:.2f}, above {good_k:.2f}: leave it out in earnest with refit="
    return result.assign(method=("task", np.full(len(tasks), "psis", object)), reason=("task", reason))


def _refitted(result: xr.Dataset, again: Callable[[Any], tuple[float, float]], most: int) -> xr.Dataset:
    """Leave out in earnest the tasks that need it, worst first, ``most`` of them at most."""
    bad = np.where(result["reason"].str.startswith("k "), -result["pareto_k"], np.inf)
    for i in np.argsort(bad)[: min(most, np.isfinite(bad).sum())]:
        one = result.isel(task=i)
        try:
            elpd, mcse = again(one["task"].item())
        except SamplingError as failed:
            result["reason"][i] = f"k {one['pareto_k'].item():.2f}; without the task {failed}"
            continue
        p_loo = one["elpd"].item() + one["p_loo"].item() - elpd
        for name, value in {"elpd": elpd, "mcse": mcse, "p_loo": p_loo, "method": "refit", "reason": ""}.items():
            result[name][i] = value
    return result


def _left_out(
    board: xr.Dataset, form: Any, function: Any, priors: dict[str, Any], task: Any, *, draws: int, seed: int
) -> tuple[float, float]:
    """Fit the board without a task's runs; return the task's log predictive density and its Monte Carlo error.

    The task stays on the board without a run: it then says nothing, and the model keeps its shape.
    """
    from evalbayes import pointwise
    from evalbayes.fit import fit

    without = board.assign({name: board[name].where(board["task"] != task, 0) for name in ("successes", "trials")})
    again = fit(without, function, draws=draws, seed=seed, **priors)
    log_lik = pointwise.log_densities(form, again["posterior"].to_dataset())["likelihood"].sel(task=task).values
    share = _efficiency(again, log_lik[..., None])
    elpd = special.logsumexp(log_lik) - np.log(log_lik.size)
    return float(elpd), float(np.expm1(log_lik - elpd).std() / np.sqrt(share * log_lik.size))


def _digest(board: xr.Dataset) -> str:
    """Return a digest of a board's cells, whatever their order."""
    cells = board[["successes", "trials"]].reset_coords(drop=True).sortby(["config", "task"])
    cells = cells.transpose("config", "task")
    names = repr([cells[dim].values.tolist() for dim in ("config", "task")]).encode()
    counts = b"".join(
        np.ascontiguousarray(cells[name].values, dtype="<i8").tobytes() for name in ("successes", "trials")
    )
    return hashlib.sha256(names + counts).hexdigest()[:16]


def _summed(result: xr.Dataset, influence: Floats, run: Any) -> xr.Dataset:
    """Add up the tasks, and say in a sentence what came of it.

    The tasks share their draws, and so the errors of their densities are not independent; those of refits are.
    """
    elpd, again = result["elpd"].values[run], (result["method"].values == "refit")[run]
    shared = influence[~again].sum(axis=0)
    error = (shared**2).sum() + (result["mcse"].values[run][again] ** 2).sum()
    attrs = result.attrs
    attrs |= {"elpd": float(elpd.sum()), "se": _se(elpd), "tasks": elpd.size}
    attrs |= {"p_loo": float(result["p_loo"].sum()), "mcse": float(np.sqrt(error))}
    said = f"{attrs['model']}: elpd {attrs['elpd']:.1f} (se {attrs['se']:.1f}) over {elpd.size} tasks left out in turn"
    if bad := attrs["unreliable"]:
        named = result["task"].values[result["reason"].str.startswith("k ").values]
        said += (
            f"; not to be relied on for {bad} of them ({', '.join(map(str, named[:3]))}{', ...' * (bad > 3)}): refit="
        )
    attrs["verdict"] = said
    return result


def _se(pointwise: Floats) -> float:
    """Return the standard error of a sum over tasks, sqrt(T var)."""
    return float(np.sqrt(pointwise.size * pointwise.var(ddof=1))) if pointwise.size > 1 else np.nan


def compare_models(results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Set models beside each other by how well they predict tasks left out.

    Differences are taken task by task, so that what makes a task hard to predict for all cancels::

        difference = sum_t (elpd_t - elpd_t of the best),    se = sqrt(T var_t(elpd_t - elpd_t of the best))

    (Vehtari, Gelman and Gabry 2017, section 5). Where models are as close as 4, tasks fewer than 100 or both models far
    from the truth, that standard error is too small (Sivula, Magnusson, Matamoros and
    Vehtari, arXiv 2008.10296).

    Parameters
    ----------
    results
        By name, what `leave_task_out` returned for the same board.

    Returns
    -------
    xarray.Dataset
        Over ``model``, best first: ``elpd``, ``se``, ``p_loo``, ``difference`` (0 for the best, others below it),
        ``difference_se``, ``difference_mcse`` (its Monte Carlo error), ``unreliable`` (tasks whose k is too large) and
        ``reason`` (what to be careful of); attrs ``unit``, ``tasks`` and ``verdict``.

    Raises
    ------
    ArgumentError
        If there are fewer than two, or they are of different boards or of different forms of the outcomes: a likelihood
        of counts is higher than one of sequences of runs by log C(n, k) a cell whatever the model.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.check.compare_models({"a": eb.check.leave_task_out(a), "b": eb.check.leave_task_out(b)})  # doctest: +SKIP
    """
    _check_comparable(results)
    order = sorted(results, key=lambda name: -results[name].attrs["elpd"])
    found = [results[name].sortby("task") for name in order]
    elpd = np.stack([one["elpd"].values for one in found])
    ran = ~np.isnan(elpd[0])
    apart = elpd[:, ran] - elpd[0, ran]
    mcse = np.array([one.attrs["mcse"] for one in found])
    columns: dict[str, Any] = {
        name: [one.attrs[name] for one in found] for name in ("elpd", "se", "p_loo", "unreliable")
    }
    columns |= {"difference": apart.sum(axis=1), "difference_se": [_se(one) for one in apart]}
    columns |= {"difference_mcse": np.where(np.arange(len(order)) > 0, np.hypot(mcse, mcse[0]), 0.0)}
    columns["reason"] = np.array([_caution(*one) for one in zip(apart, columns["unreliable"], strict=True)], object)
    table = xr.Dataset({name: ("model", values) for name, values in columns.items()}, {"model": order})
    table.attrs = {"unit": "task", "tasks": int(ran.sum())}
    table.attrs["verdict"] = _verdict(table)
    return table


def _check_comparable(results: Any) -> None:
    if not isinstance(results, Mapping) or len(results) < 2:
        raise ArgumentError("results: give two or more, {name: leave_task_out(fit), ...}")
    for name, one in results.items():
        if not (isinstance(one, xr.Dataset) and one.attrs.get("unit") == "task" and "board" in one.attrs):
            raise ArgumentError(f"results[{name!r}]: give what evalbayes.check.leave_task_out returned")
    first = next(iter(results))
    for name, one in results.items():
        if one.attrs["board"] != results[first].attrs["board"]:
            raise ArgumentError(f"{first!r} and {name!r} are of different boards; fit both to the same cells")
        if one.attrs["outcomes"] != results[first].attrs["outcomes"]:
            raise ArgumentError(
                f"{first!r} is a likelihood of {results[first].attrs['outcomes']} and {name!r} one of "
                f"{one.attrs['outcomes']}: they differ by log C(n, k) a cell whatever the models; give the one of "
                "sequences its constant, effects.log_coefficient"
            )


def _caution(apart: Floats, unreliable: int) -> str:
    """Return what to be careful of in a difference, task by task, of a model from the best."""
    said = [f"{unreliable} tasks with too large a k"] if unreliable else []
    if apart.any() and abs(apart.sum()) < CLEAR:
        said.append(f"closer than {CLEAR:g}")
    if apart.any() and apart.size < FEW_TASKS:
        said.append(f"fewer than {FEW_TASKS} tasks")
    return "; ".join(said)


def _verdict(table: xr.Dataset) -> str:
    """Return which model predicts best, and by how much."""
    best, *others = table["model"].values
    said = []
    for name in others:
        gap, se = (float(table[part].sel(model=name)) for part in ("difference", "difference_se"))
        said.append(f"{name} {-gap:.1f} below (se {se:.1f})" + ", not to be told apart" * (-gap < 2 * se))
    return f"{best} predicts tasks best; {', '.join(said)}"
