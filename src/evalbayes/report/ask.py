"""One question put to a board or to a saved fit: which function answers it, and with what options."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.errors import OutcomesError
from evalbayes.options import Sampler

FITTED = tuple(Sampler)
NEAR_TIE = "near_tie"
"""Asked of all pairs at once: without a fit in `evalbayes.pairs`, whose methods are others."""

Asked = tuple[xr.Dataset, Mapping[Any, Any]]


def ask(
    quantity: str,
    source: str,
    *,
    method: str,
    options: Mapping[str, Any],
    seed: int,
    errors: str,
    reading: Mapping[str, Any],
    progress: Callable[[str], None],
) -> tuple[Asked, xr.Dataset]:
    """Answer ``quantity``, and return with it the counts and attributes of what was asked.

    A saved fit is asked as it is; a board is fitted first when ``method`` is one of `FITTED`, and else answered
    without a model. Options that are None are left to the function's own defaults.

    Raises
    ------
    OutcomesError
        If the quantity, the method or an option is not known there, or ``k`` exceeds the configs.
    """
    from evalbayes import frequentist, pairs, posterior
    from evalbayes.report import open_board

    tree = open_fit(source)
    if tree is not None:
        if method not in ("auto", tree.attrs.get("method")):
            raise OutcomesError(f"--method {method}: {source} is a fit by {tree.attrs.get('method')}; ask its board")
        asked: Asked = (tree["constant_data"].to_dataset(), tree.attrs)
        return asked, _call(posterior, quantity, tree, options)
    if method not in FITTED:
        board = open_board(source, errors=errors, reading=reading, progress=progress)
        drawn = (
            "seed" in inspect.signature(_function(pairs if quantity == NEAR_TIE else frequentist, quantity)).parameters
        )
        options = {**options, "method": method, **({"seed": seed} if drawn else {})}
        if quantity == NEAR_TIE:
            return (board, board.attrs), _call(pairs, quantity, board, _targeted(options))
        return (board, board.attrs), _call(frequentist, quantity, board, options)
    from evalbayes.fit import fit

    # A fit takes its time: what is wrong with the question is said before it.
    _given(_function(posterior, quantity), quantity, options)
    board = open_board(source, errors=errors, reading=reading, progress=progress)
    tree = fit(board, method=method, seed=seed, progress=progress)
    return (board, board.attrs), _call(posterior, quantity, tree, options)


def _targeted(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a near tie with the target that its method serves, where none is named."""
    from evalbayes.pairs.targets import SERVES

    served = [target for target, methods in SERVES.items() if options["method"] in methods]
    if served and options.get("configs") is None and options.get("tasks") is None:
        return {**options, **dict(zip(("configs", "tasks"), served[0], strict=True))}
    return dict(options)


def open_fit(source: str) -> xr.DataTree | None:
    """Return a saved fit, or None when ``source`` is anything else."""
    if not (Path(source).is_file() and Path(source).suffix == ".nc"):
        return None
    import h5py

    if not h5py.is_hdf5(source):
        return None
    with h5py.File(source) as file:
        fitted = "posterior" in file
    if not fitted:
        return None
    from evalbayes.storage import load_fit

    return load_fit(source)


def _function(module: ModuleType, quantity: str) -> Callable[..., xr.Dataset]:
    known = sorted({*module.__all__, NEAR_TIE})
    if quantity not in known:
        raise OutcomesError(f"no quantity {quantity!r} in {module.__name__}; there are {', '.join(known)}")
    function: Callable[..., xr.Dataset] = getattr(module, quantity)
    return function


def _call(module: ModuleType, quantity: str, data: Any, options: Mapping[str, Any]) -> xr.Dataset:
    function = _function(module, quantity)
    given = _given(function, quantity, options)
    counts = data if isinstance(data, xr.Dataset) else data["constant_data"]
    if quantity == "top_k" and given.get("k", 1) > counts.sizes["config"]:
        raise OutcomesError(f"--k {given['k']}: the board has {counts.sizes['config']} configs; give 1 to that many")
    try:
        return function(data, **given)
    except ValueError as error:  # how the functions refuse a word they do not know, such as a method
        raise OutcomesError(str(error)) from error


def _given(function: Callable[..., xr.Dataset], quantity: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are given, or refuse one that the function does not have or the lack of one it needs."""
    given = {name: getattr(value, "value", value) for name, value in options.items() if value is not None}
    parameters = inspect.signature(function).parameters
    keywords = list(parameters.values())[1:]
    unknown = [_flag(name) for name in sorted(given.keys() - parameters.keys())]
    if unknown:
        raise OutcomesError(f"{quantity} has no option {', '.join(unknown)}; leave it out")
    needed = [p.name for p in keywords if p.default is p.empty]
    missing = [_flag(name) for name in needed if name not in given]
    if missing:
        raise OutcomesError(f"{quantity} needs {', '.join(missing)}; give a number")
    return given


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def narrow(result: xr.Dataset, configs: Sequence[str]) -> xr.Dataset:
    """Return an answer over the configs named only, in that order; all of it when none is.

    Of neighbours it is the pairs that one of the names is in.
    """
    if not configs:
        return result
    sides = [result[name].values for name in ("config", "opponent") if name in result.coords]
    known = {name for side in sides for name in side.tolist()}
    missing = [name for name in configs if name not in known]
    if missing:
        raise OutcomesError(f"--config {missing[0]}: no such config in the answer; see `evalbayes describe`")
    if "pair" in result.dims:
        return result.isel(pair=np.any([np.isin(side, list(configs)) for side in sides], axis=0))
    dims = {dim: list(configs) for dim in ("config", "opponent") if dim in result.dims}
    return result.sel(dims)
