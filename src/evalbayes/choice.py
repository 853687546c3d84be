"""Which model a board gets: by name, by function, by file, or chosen from the data and said in one line."""

import importlib
import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from evalbayes import links
from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.models import NAMES
from evalbayes.models.labels import named

ModelFunction = Callable[..., pm.Model]


def chosen(outcomes: xr.Dataset, model: str | ModelFunction | None) -> tuple[str, ModelFunction, str]:
    """Return a model's name, its function, and why it is the one.

    With no model named: one config gets ``beta_binomial``, a board without a repeated cell ``crossed``, and one with
    repeated cells ``crossed_beta_binomial``, since whether cells are additive is then for the data to say.

    Raises
    ------
    ArgumentError
        If there is no such model, file or function.
    """
    if not (model is None or callable(model) or isinstance(model, str)):
        given = f"model={model!r}" if len(repr(model)) < 60 else f"model is a {type(model).__name__}"
        raise ArgumentError(f"{given}: give a name, a function or 'file.py:function'")
    if callable(model):
        module, function = model.__module__, getattr(model, "__name__", "model")
        packaged = module == f"evalbayes.models.{function}"
        return function if packaged else f"{module}:{function}", model, "asked for"
    name, why = (model, "asked for") if model is not None else _from_data(outcomes)
    if ":" in name:
        return name, _from_file(name), why
    if name not in NAMES:
        raise ArgumentError(f"model={name!r}: choose one of {', '.join(NAMES)}, or give 'file.py:function'")
    return name, getattr(importlib.import_module(f"evalbayes.models.{name}"), name), why


def _from_data(outcomes: xr.Dataset) -> tuple[str, str]:
    trials = outcomes["trials"]
    repeated, scored = int((trials > 1).sum()), int((trials > 0).sum())
    if outcomes.sizes["config"] == 1:
        return "beta_binomial", "one config: no other says which tasks are hard"
    if not repeated:
        return "crossed", "no cell was run twice: nothing shows how cells depart from additivity"
    return (
        "crossed_beta_binomial",
        f"{repeated:,} of {scored:,} cells were run twice or more: cells need not be additive",
    )


def _from_file(name: str) -> ModelFunction:
    path, _, function = name.rpartition(":")
    if not Path(path).is_file():
        raise ArgumentError(f"model={name!r}: no file {path!r}; give 'file.py:function' or the function itself")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"model={name!r}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (SyntaxError, ImportError) as broken:
        raise ArgumentError(f"model={name!r}: {path} cannot be imported: {broken}") from None
    if not callable(getattr(module, function, None)):
        raise ArgumentError(f"model={name!r}: {path} has no function {function}")
    return getattr(module, function)  # type: ignore[no-any-return]


def built(function: ModelFunction, outcomes: xr.Dataset, priors: dict[str, Any], *, marginal: bool = False) -> pm.Model:
    """Build a model; a value that it refuses is the caller's argument, and a model without its names is none."""
    try:
        model = function(outcomes, marginal=marginal, **priors)
    except ValueError as refused:
        raise ArgumentError(str(refused)) from None
    name = getattr(function, "__name__", "model")
    if not isinstance(model, pm.Model):
        raise ArgumentError(f"{name} returned a {type(model).__name__}: a model function returns a pymc.Model")
    _check_names(name, model)
    return model


def _check_names(name: str, model: pm.Model) -> None:
    """Refuse a model that lacks what answers are made from; the whole contract is in models/README.md."""
    there = model.named_vars
    if "ability" not in there and "intercept" not in there:
        raise ArgumentError(
            f"{name} has neither intercept nor ability (config): nothing says what its cells' logits are"
        )
    known = {"score": "config", "ability": "config", "config_effect": "config", "log_kappa": "config"}
    known |= {"log_discrimination": "config", "task_effect": "task"}
    for variable, dim in known.items():
        dims = model.named_vars_to_dims.get(variable)
        if variable == "score" and variable not in there:
            raise ArgumentError(f"{name} has no score (config): register the success probability on a new task")
        if variable in there and tuple(dims or ()) != (dim,):
            raise ArgumentError(f"{name}: {variable} has dims {tuple(dims or ())}, not ({dim!r},)")


def check_priors(name: str, function: ModelFunction, priors: dict[str, Any]) -> None:
    """Refuse a prior or option that the model does not have, and a scale that is not a positive number."""
    known = inspect.signature(function).parameters
    if "marginal" not in known and not any(one.kind is one.VAR_KEYWORD for one in known.values()):
        raise ArgumentError(f"{name} takes no marginal=: a model function is called as {name}(board, marginal=False)")
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return
    for prior in priors:
        if prior not in known or prior == "marginal":
            options = ", ".join(option for option in list(known)[1:] if option != "marginal")
            raise ArgumentError(f"{name} has no prior or option {prior!r}; it has {options}")
        value, usual = priors[prior], known[prior].default
        if isinstance(usual, float) and not (isinstance(value, int | float | np.number) and 0 < value < np.inf):
            raise ArgumentError(f"{name}: {prior}={value!r}; give a positive number, such as {usual:g}")
        if isinstance(usual, bool) and value not in (0, 1):
            raise ArgumentError(f"{name}: {prior}={value!r}; give True or False")


def check_identified(outcomes: xr.Dataset, name: str, priors: dict[str, Any] | None = None) -> None:
    """Refuse a model whose parameters the board says nothing about."""
    source = outcomes.attrs.get("source", "the board")
    if not int(outcomes["trials"].sum()):
        raise NotIdentifiedError(f"{source}: no run was scored; look at the errors before fitting")
    if outcomes.sizes["task"] < 2:
        raise NotIdentifiedError(f"{source}: 1 task, and a model needs two or more: one says nothing about new ones")
    overdispersed = name == "crossed_beta_binomial" or bool((priors or {}).get("overdispersion", False))
    if overdispersed and int(outcomes["trials"].max()) < 2:
        raise NotIdentifiedError(
            f"{source}: no cell was run twice, and a beta-binomial of one run is the same for every kappa; "
            "fit model='crossed' or without overdispersion, or run some cells again"
        )


def notes(outcomes: xr.Dataset, posterior: xr.Dataset, priors: dict[str, Any] | None = None) -> str:
    """Return what a reader should know of a fit's parameters: what was dropped, and what only the prior says."""
    said = []
    if outcomes.sizes["config"] == 1:
        said.append("one config: no config effect, and no ranks")
    if apart := links.apart(outcomes["trials"]):
        said.append(apart)
    if pairs := int(links.unshared(outcomes["trials"]).sum()) // 2:
        said.append(f"pairs of configs that share no task and only others link: {pairs:,}")
    for name in (name for side in ("config_groups", "task_groups") for name in named((priors or {}).get(side, ()))):
        if f"{name}_effect" not in posterior:
            said.append(f"{name} has one level on this board: no effect of it")
    if "log_kappa" in posterior:
        once = outcomes["config"].values[(outcomes["trials"].max("task") <= 1).values]
        if once.size == outcomes.sizes["config"]:
            said.append("no cell was run twice: log_kappa is the prior's alone")
        elif once.size:
            said.append(
                f"log_kappa of {', '.join(map(str, once))} is borrowed from the other configs: no cell run twice"
            )
    return "; ".join(said)
