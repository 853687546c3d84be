"""Fit a model to a board: outcomes x model -> `xarray.DataTree`.

`fit` tries the fastest method that passes its own check and says which. All methods give the same posterior group,
task effects included. The density is always the model file's own.
"""

import importlib
import importlib.util
import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytensor.tensor as pt
import xarray as xr
from scipy import special
from threadpoolctl import threadpool_limits

from evalbayes import __version__, laplace, nodes
from evalbayes.check.additivity import additivity
from evalbayes.check.population import population
from evalbayes.density import KEPT, Data, Density, available_cores, compile_density, data_of, flatten
from evalbayes.errors import ArgumentError, NotIdentifiedError, SamplingError
from evalbayes.schema import validate
from evalbayes.storage import load_fit as load_fit
from evalbayes.storage import save_fit as save_fit

METHODS = ("auto", "laplace", "latent")
MODELS = ("crossed",)
K_HAT = 0.5
"""Pareto k-hat below which importance weights have a usable variance (Vehtari et al. 2024)."""
LEAST_ESS = 400
"""Effective draws below which a fit is refused."""
TARGET_ESS = 1000
LEAST_DRAWS = 100
CHAINS = 4
TUNE, LEAST_CHAIN_DRAWS = 1000, 1000
R_HAT = 1.01
GRIDS = 4
"""Grids tried before giving up."""
CHECKED_DRAWS = 64
NODE_QUANTITIES = ("task_loglik", "node_logweight", "node_effect")

_COMPILED: dict[tuple[Any, ...], Density] = {}

ModelFunction = Callable[..., pm.Model]
Progress = Callable[[str], None]


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
        The name of a model in `evalbayes.models`, a function like those, or ``"file.py:function"``; ``"crossed"``
        when not given.
    method
        ``"laplace"`` (importance-weighted Laplace approximation of the marginal model: seconds), ``"latent"``
        (NUTS on the model as written: the reference), or ``"auto"``: laplace if its weights pass, else latent.
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
        method, why, seed, draws, gate, mean_gap, worst_gap, seconds``, ``dispersion`` where cells were run again, and
        ``k_hat, weight_ess, grid_error`` or ``r_hat, ess_bulk, ess_tail, divergences``.

    Raises
    ------
    OutcomesError
        If the board is not valid.
    NotIdentifiedError
        If the board has one config or one task, or no scored run.
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
    _identified(outcomes)
    name, function = _model_function(model)
    _check_priors(name, function, priors)
    with threadpool_limits(1):
        # Parallel work is over draws and chains; BLAS threads beside it would only get in the way.
        tree, why = _choose(outcomes, function, method, draws=draws, seed=seed, say=say, priors=priors)
    say("checking the population against the observed means")
    gate = population(tree["posterior"].to_dataset(), outcomes, seed=seed)
    tree["population"] = xr.DataTree(gate)
    tree["observed_data"] = xr.DataTree(outcomes[["successes"]])
    tree["constant_data"] = xr.DataTree(outcomes[["trials", "errors"]])
    tree.attrs.update(
        {"model": name, "why": why, "seed": seed, "draws": draws, "evalbayes_version": __version__}
        | {f"prior_{key}": value for key, value in priors.items()}
        | {key: gate.attrs[key] for key in ("gate", "mean_gap", "worst_gap", "mean_gap_se")}
        | {key: value for key, value in outcomes.attrs.items() if key in ("source", "error_policy", "score_rule")}
        | additivity(tree["posterior"].to_dataset(), outcomes)
        | {"seconds": round(time.perf_counter() - started, 2)}
    )
    return tree


def _check_arguments(outcomes: Any, method: str, draws: int, seed: int) -> None:
    if not isinstance(outcomes, xr.Dataset):
        raise ArgumentError(f"outcomes is a {type(outcomes).__name__}: give a board, such as evalbayes.read(path)")
    if method not in METHODS:
        raise ArgumentError(f"method={method!r}: choose one of {', '.join(METHODS)}")
    if draws < LEAST_DRAWS:
        raise ArgumentError(f"draws={draws}: an interval needs {LEAST_DRAWS} or more")
    if not 0 <= seed < 2**63:
        raise ArgumentError(f"seed={seed}: give a whole number from 0 to 2**63 - 1")


def _check_priors(name: str, function: ModelFunction, priors: dict[str, Any]) -> None:
    known = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return
    for prior in priors:
        if prior not in known or prior == "marginal":
            options = ", ".join(option for option in list(known)[1:] if option != "marginal")
            raise ArgumentError(f"{name} has no prior or option {prior!r}; it has {options}")


def _choose(
    outcomes: xr.Dataset,
    function: ModelFunction,
    method: str,
    *,
    draws: int,
    seed: int,
    say: Progress,
    priors: dict[str, Any],
) -> tuple[xr.DataTree, str]:
    """Return the fit by the method asked for, or by the first that passes its check, and why."""
    if method == "latent":
        return _latent(outcomes, function, draws=draws, seed=seed, say=say, priors=priors), "latent: asked for"
    try:
        tree = _laplace(outcomes, function, draws=draws, seed=seed, say=say, priors=priors)
    except SamplingError as failure:
        if method == "laplace":
            raise
        say(f"{failure}; sampling the latent model instead")
        tree = _latent(outcomes, function, draws=draws, seed=seed, say=say, priors=priors)
        return tree, f"latent, because laplace failed its check ({failure})"
    found = f"k-hat {tree.attrs['k_hat']:.2f}, {tree.attrs['weight_ess']:.0f} effective draws"
    return tree, "laplace: asked for" if method == "laplace" else f"laplace: its weights pass ({found})"


def _identified(outcomes: xr.Dataset) -> None:
    """Refuse boards on which configs or tasks cannot be told apart."""
    source = outcomes.attrs.get("source", "the board")
    for dim, remedy in (
        ("config", "add another config, or read its score with evalbayes.frequentist.score"),
        ("task", "add tasks: one task says nothing about new ones"),
    ):
        if outcomes.sizes[dim] < 2:
            raise NotIdentifiedError(
                f"{source}: {outcomes.sizes[dim]} {dim}, and a crossed model needs two or more; {remedy}"
            )
    if not int(outcomes["trials"].sum()):
        raise NotIdentifiedError(f"{source}: no run was scored; look at the errors before fitting")


def _model_function(model: str | ModelFunction | None) -> tuple[str, ModelFunction]:
    """Return a name and the function of a model given by name, as ``file.py:function``, or itself."""
    if callable(model):
        return f"{model.__module__}:{getattr(model, '__name__', 'model')}", model
    name = model or MODELS[0]
    if ":" in name:
        return name, _from_file(name)
    if name not in MODELS:
        raise ArgumentError(f"model={name!r}: choose one of {', '.join(MODELS)}, or give 'file.py:function'")
    return name, getattr(importlib.import_module(f"evalbayes.models.{name}"), name)


def _from_file(name: str) -> ModelFunction:
    path, _, function = name.rpartition(":")
    if not Path(path).is_file():
        raise ArgumentError(f"model={name!r}: no file {path}")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"model={name!r}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, function, None)):
        raise ArgumentError(f"model={name!r}: {path} has no function {function}")
    return getattr(module, function)  # type: ignore[no-any-return]


def _laplace(
    outcomes: xr.Dataset, function: ModelFunction, *, draws: int, seed: int, say: Progress, priors: dict[str, Any]
) -> xr.DataTree:
    """Fit by importance-weighted Laplace on the marginal model; raise SamplingError unless its weights pass."""
    say("building the marginal model")
    model = function(outcomes, marginal=True, **priors)
    density = _density(function, model, priors)
    rng = np.random.default_rng(seed)
    weighted, points, data, seen = _weighted_on_a_grid(density, model, outcomes, rng, draws=draws, say=say)
    say("drawing task effects")
    names = [v.name for v in model.unobserved_RVs if v.name not in NODE_QUANTITIES]
    values = laplace.draws_of(density, names, points, data)
    values["task_effect"] = nodes.task_effects(density, points, data, rng)
    importance = xr.Dataset({"weight": ("proposal", weighted.weight)})
    tree = xr.DataTree.from_dict({"posterior": _posterior(model, values), "importance": importance})
    tree.attrs = {"method": "laplace", "k_hat": weighted.k_hat, "weight_ess": weighted.ess}
    tree.attrs |= {"proposals": len(weighted.x), "grid_nodes": data["node_position"].size}
    tree.attrs |= {"grid_error": seen.error, "grid_limit": nodes.SLACK * nodes.TOLERANCE}
    return tree


def _density(function: ModelFunction, model: pm.Model, priors: dict[str, Any]) -> Density:
    """Compile a model's density, or return the one compiled for the last board of its shape.

    Only for the package's own models, whose every datum is a data variable; what a user's model holds as a constant
    cannot be seen.
    """
    if not function.__module__.startswith("evalbayes.models."):
        return compile_density(model)
    shape = (len(model.coords["config"]), len(model.coords["task"]))
    key = (function, shape, repr(sorted(priors.items())))
    if key not in _COMPILED:
        while len(_COMPILED) >= KEPT:
            _COMPILED.pop(next(iter(_COMPILED)))
        _COMPILED[key] = compile_density(model)
    return _COMPILED[key]


def _weighted_on_a_grid(
    density: Density, model: pm.Model, outcomes: xr.Dataset, rng: np.random.Generator, *, draws: int, say: Progress
) -> tuple[laplace.Weighted, np.ndarray, Data, nodes.GridCheck]:
    """Return importance draws, ``draws`` of them resampled, the data with the grid that served, and its check.

    The grid is checked at the expansion point before anything is drawn, and at draws afterwards.
    """
    check, z = nodes.grid_check(density), nodes.first_nodes(outcomes)
    x = flatten(density, _start(model, outcomes))
    for _ in range(GRIDS):
        data = data_of(model, node_position=z)
        say(f"finding the mode: {density.size} parameters, {z.size} nodes (compiling first)")
        expansion = laplace.expand(density, data, x)
        seen = check(expansion.x, data)
        if seen.passed():
            target = max(TARGET_ESS, draws / 2)
            weighted = laplace.sample(density, data, expansion, rng, target_ess=target, progress=say)
            if not _acceptable(weighted):
                # A config that fails or passes everything has a long tail, which a flatter likelihood covers.
                flatter = expansion._replace(curvature=expansion.curvature / 2)
                weighted = laplace.sample(density, data, flatter, rng, target_ess=target, progress=say)
            _accept(weighted)
            points = weighted.x[laplace.resample(weighted.weight, draws, rng)]
            seen = check(points[:CHECKED_DRAWS], data)
            if seen.passed(nodes.SLACK):
                return weighted, points, data, seen
        x, z = expansion.x, nodes.refined(z, seen, outcomes.sizes["task"])
    raise SamplingError(f"laplace: the grid errs by {seen.error:.1g} at {z.size} nodes; try method='latent'")


def _start(model: pm.Model, outcomes: xr.Dataset) -> dict[str, np.ndarray]:
    """Return an initial point with config effects at their smoothed logits, so that no scale starts at zero."""
    k, n = outcomes["successes"].sum("task").values, outcomes["trials"].sum("task").values
    logit = special.logit((k + 0.5) / (n + 1.0))
    guess = {"config_effect": logit - logit.mean(), "config_sd": max(float(logit.std()), 0.3)}
    point: dict[str, np.ndarray] = model.initial_point()
    for name, value in guess.items():
        if name in model.named_vars:
            point[model.rvs_to_values[model[name]].name] = _unconstrained(model, model[name], value)
    return point


def _unconstrained(model: pm.Model, variable: Any, value: Any) -> np.ndarray:
    """Return a value of a random variable on its unconstrained scale."""
    transform = model.rvs_to_transforms[variable]
    dims = getattr(variable.type, "dims", None)
    constant = pt.as_tensor(np.asarray(value, float)) if dims is None else pmd.as_xtensor(np.asarray(value), dims=dims)
    moved = constant if transform is None else transform.forward(constant, *variable.owner.inputs)
    return np.asarray(moved.eval(mode="FAST_COMPILE"))


def _acceptable(weighted: laplace.Weighted) -> bool:
    return weighted.k_hat < K_HAT and weighted.ess >= LEAST_ESS


def _accept(weighted: laplace.Weighted) -> None:
    if not _acceptable(weighted):
        raise SamplingError(
            f"laplace: k-hat {weighted.k_hat:.2f} (below {K_HAT} needed) with {weighted.ess:.0f} effective draws "
            f"({LEAST_ESS} needed) after {len(weighted.x)} proposals; try method='latent'"
        )


def _posterior(model: pm.Model, values: dict[str, Any]) -> xr.Dataset:
    """Label arrays of draws (draw, ...) with the model's dims and coords, as one chain."""
    dims = {name: tuple(model.named_vars_to_dims.get(name) or ()) for name in values} | {"task_effect": ("task",)}
    used = {dim for name in values for dim in dims[name]}
    coords = {dim: np.asarray(model.coords[dim]) for dim in used}
    variables = {name: (("chain", "draw", *dims[name]), value[None]) for name, value in values.items()}
    draws = len(next(iter(values.values())))
    return xr.Dataset(variables, coords | {"chain": [0], "draw": np.arange(draws)})


def _latent(
    outcomes: xr.Dataset, function: ModelFunction, *, draws: int, seed: int, say: Progress, priors: dict[str, Any]
) -> xr.DataTree:
    """Fit by NUTS on the model as written; raise SamplingError unless its chains pass."""
    import nutpie

    say("compiling the latent model")
    model = function(outcomes, marginal=False, **priors)
    compiled = nutpie.compile_pymc_model(model, backend="jax", gradient_backend="jax")
    say(f"sampling {CHAINS} chains")
    tree = nutpie.sample(
        compiled,
        draws=max(-(-draws // CHAINS), LEAST_CHAIN_DRAWS),
        tune=TUNE,
        chains=CHAINS,
        cores=available_cores(),
        seed=seed,
        target_accept=0.95,
        # The intercept and the mean of the task effects trade places: a ridge that a diagonal metric does not see.
        adaptation="low_rank",
        save_warmup=False,
        progress_bar=False,
    )
    posterior = tree["posterior"].to_dataset()
    stats = tree["sample_stats"].to_dataset()
    stats = stats.drop_vars([name for name in stats.data_vars if stats[name].dtype == object])
    result = xr.DataTree.from_dict({"posterior": posterior, "sample_stats": stats})
    result.attrs = {"method": "latent"} | _chain_checks(posterior, stats)
    return result


def _chain_checks(posterior: xr.Dataset, stats: xr.Dataset) -> dict[str, float]:
    """Return R-hat, bulk and tail ESS and divergences; raise SamplingError naming the one that fails."""
    import arviz_stats as azs

    # What is constant by design (the one weight of a normal density) has no R-hat.
    varying = posterior[[name for name, v in posterior.data_vars.items() if float(v.std(("chain", "draw")).min()) > 0]]
    seen = {
        "r_hat": float(max(v.max() for v in azs.rhat(varying).data_vars.values())),
        "ess_bulk": float(min(v.min() for v in azs.ess(varying, method="bulk").data_vars.values())),
        "ess_tail": float(min(v.min() for v in azs.ess(varying, method="tail").data_vars.values())),
        "divergences": int(stats["diverging"].sum()),
    }
    wrong = []
    if seen["r_hat"] >= R_HAT:
        wrong.append(f"R-hat {seen['r_hat']:.3f} (below {R_HAT} needed)")
    if seen["ess_bulk"] < LEAST_ESS:
        wrong.append(f"bulk ESS {seen['ess_bulk']:.0f} ({LEAST_ESS} needed)")
    if seen["divergences"]:
        wrong.append(f"{seen['divergences']} divergences (none allowed)")
    if wrong:
        raise SamplingError(f"latent: {', '.join(wrong)}; try more draws, or method='laplace'")
    return seen
