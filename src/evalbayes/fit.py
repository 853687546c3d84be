"""Fit a model to a board: outcomes x model -> `xarray.DataTree`.

`fit` tries the fastest method that passes its own check and says which. All methods give the same posterior group,
task effects included. The density is always the model file's own.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

from evalbayes import __version__
from evalbayes.chains import by_latent, by_nuts
from evalbayes.check.additivity import additivity
from evalbayes.check.population import population
from evalbayes.check.sampler import refuse_failed, sampler
from evalbayes.choice import ModelFunction, check_identified, check_priors, chosen, notes
from evalbayes.errors import ArgumentError, SamplingError, check_whole
from evalbayes.importance import by_laplace
from evalbayes.marginal import Progress, Settled, settle
from evalbayes.schema import validate
from evalbayes.storage import load_fit as load_fit
from evalbayes.storage import save_fit as save_fit

METHODS = ("auto", "laplace", "nuts", "latent")
LEAST_DRAWS = 100


def fit(
    outcomes: xr.Dataset,
    model: str | ModelFunction | None = None,
    *,
    method: str = "auto",
    draws: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
    **priors: Any,
) -> xr.DataTree:
    """Fit a model to a board and return its posterior with everything needed to judge it.

    Parameters
    ----------
    outcomes
        A board: ``successes``, ``trials``, ``errors`` over (config, task).
    model
        The name of a model in `evalbayes.models`, a function like those, or ``"file.py:function"``. When not given it
        is chosen from the data: ``"crossed_beta_binomial"`` where cells were run again, ``"crossed"`` where none was,
        ``"beta_binomial"`` for one config.
    method
        ``"laplace"`` (importance-weighted Laplace approximation of the marginal model: seconds), ``"nuts"`` (NUTS in
        coordinates made by that approximation), ``"latent"`` (NUTS on the model as written: the reference), or
        ``"auto"``: the first of them that passes its own checks.
    draws
        Posterior draws returned; NUTS returns at least 1,000 a chain.
    seed
        Same seed, same numbers, whatever the number of cores.
    progress
        Called with one short line at each stage.
    priors
        Passed to the model function: its prior scales and options, such as ``task_density="normal"``.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (chain, draw, ...), ``population`` (the gate, see `check.population`), ``observed_data``,
        ``constant_data``, and ``importance`` (weights of all proposals) or ``sample_stats``. Root attrs: ``model,
        model_why, method, why, note, seed, draws, gate, mean_gap, worst_gap, seconds``, ``dispersion`` where cells were
        run again, and the values of `check.sampler`: ``k_hat, weight_ess, grid_error`` or ``r_hat, ess_bulk, ess_tail,
        divergences, bfmi, stuck``.

    Raises
    ------
    OutcomesError
        If the board is not valid.
    NotIdentifiedError
        If the board has one task, no scored run, or no repeated cell for a model that is about those.
    SamplingError
        If the method asked for (or, with ``"auto"``, every method) fails its own check.
    ArgumentError
        If there is no such model, method or prior, or draws or seed are out of range.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.fit(eb.datasets.load("simulated")).attrs["method"]                        # doctest: +SKIP
    'laplace'
    """
    _check_arguments(outcomes, method, draws, seed)
    validate(outcomes)
    say = progress or (lambda _: None)
    started = time.perf_counter()
    name, function, model_why = chosen(outcomes, model)
    check_priors(name, function, priors)
    check_identified(outcomes, name, priors)
    say(f"model {name}: {model_why}")
    with threadpool_limits(1):
        # Parallel work is over draws and chains; BLAS threads beside it would only get in the way.
        tree, why = _sampled(outcomes, function, method, draws=draws, seed=seed, say=say, priors=priors)
    say("checking the population against the observed means")
    gate = population(tree["posterior"].to_dataset(), outcomes, seed=seed)
    tree["population"] = xr.DataTree(gate)
    tree["observed_data"] = xr.DataTree(outcomes[["successes"]])
    tree["constant_data"] = xr.DataTree(outcomes[["trials", "errors"]])
    tree.attrs.update(
        {"model": name, "model_why": model_why, "why": why, "seed": seed, "draws": _count(tree)}
        | {"evalbayes_version": __version__, "note": notes(outcomes, tree["posterior"].to_dataset(), priors)}
        | {f"prior_{key}": _kept(value) for key, value in priors.items()}
        | {key: gate.attrs[key] for key in ("gate", "mean_gap", "worst_gap", "mean_gap_se")}
        | {key: value for key, value in outcomes.attrs.items() if key in ("source", "error_policy", "score_rule")}
        | additivity(tree["posterior"].to_dataset(), outcomes)
        | {"seconds": round(time.perf_counter() - started, 2)}
    )
    return tree


def _kept(value: Any) -> Any:
    """Return a prior or option as an attribute that files hold: the names of groups as one text, a flag as 0 or 1."""
    if isinstance(value, bool):
        return int(value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _count(tree: xr.DataTree) -> int:
    """Return how many posterior draws there are: chains may have more than were asked for."""
    return int(tree["posterior"].sizes["chain"] * tree["posterior"].sizes["draw"])


def _check_arguments(outcomes: Any, method: str, draws: int, seed: int) -> None:
    if not isinstance(outcomes, xr.Dataset):
        raise ArgumentError(f"outcomes is a {type(outcomes).__name__}: give a board, such as evalbayes.read(path)")
    if method not in METHODS:
        raise ArgumentError(f"method={method!r}: choose one of {', '.join(METHODS)}")
    check_whole("draws", draws, LEAST_DRAWS, f"an interval needs {LEAST_DRAWS} or more, a whole number")
    check_whole("seed", seed, 0)


def _sampled(
    outcomes: xr.Dataset,
    function: ModelFunction,
    method: str,
    *,
    draws: int,
    seed: int,
    say: Progress,
    priors: dict[str, Any],
) -> tuple[xr.DataTree, str]:
    """Return the fit by the method asked for, or by the first that passes its checks, and why it is that one."""
    methods = _methods(outcomes, function, draws=draws, seed=seed, say=say, priors=priors)
    if method != "auto":
        return methods[method](), "asked for"
    failures: list[str] = []
    for name, run in methods.items():
        try:
            tree = run()
        except SamplingError as failure:
            failures.append(str(failure).partition("; try ")[0])
            say(f"{failures[-1]}: trying the next method")
            continue
        return tree, "; ".join([*failures, f"{name} passed its checks"])
    raise SamplingError(f"{'; '.join(failures)}; look at the board: too few runs for this model, or try other priors")


def _methods(
    outcomes: xr.Dataset, function: ModelFunction, *, draws: int, seed: int, say: Progress, priors: dict[str, Any]
) -> dict[str, Callable[[], xr.DataTree]]:
    """Return the methods, fastest first, each a function that returns a fit that passes its checks."""

    @cache
    def settled() -> Settled:
        return settle(outcomes, function, priors, say)

    def guarded(name: str, run: Callable[[], xr.DataTree]) -> xr.DataTree:
        try:
            return checked(run())
        except np.linalg.LinAlgError as broken:
            raise SamplingError(f"{name}: the linear algebra broke down ({broken}); try method='latent'") from None

    def checked(tree: xr.DataTree) -> xr.DataTree:
        checks = sampler(tree)
        refuse_failed(checks, tree.attrs["method"])
        tree.attrs |= {str(name): checks["value"].sel(check=name).item() for name in checks["check"].values}
        return tree

    options: Any = {"draws": draws, "seed": seed, "say": say}
    latent: Any = {"outcomes": outcomes, "function": function, "priors": priors} | options
    return {
        "laplace": lambda: guarded("laplace", lambda: by_laplace(settled(), **options)),
        "nuts": lambda: guarded("nuts", lambda: by_nuts(settled(), **latent)),
        "latent": lambda: guarded("latent", lambda: by_latent(**latent)),
    }
