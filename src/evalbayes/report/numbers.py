"""Answers as plain records and JSON, and files that are written whole or not at all."""

import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.answer import BOUNDS
from evalbayes.errors import OutcomesError


def plain(value: Any) -> Any:
    """Return ``value`` as JSON can hold it: NaN as None, an unbounded end as "inf" or "-inf", text otherwise.

    >>> plain(np.float64("nan")), plain(float("inf")), plain(np.int64(3))
    (None, 'inf', 3)
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def dumps(value: Any) -> str:
    """Return valid JSON, readable by any parser."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def identity(result: xr.Dataset) -> dict[str, Any]:
    """Return what an answer is an answer to: its quantity, targets, method, interval and other scalar coords."""
    return {str(name): plain(coord.item()) for name, coord in result.coords.items() if coord.ndim == 0}


def columns(result: xr.Dataset) -> dict[str, list[Any]]:
    """Return an answer as equally long columns: its labels, estimate, se, lower, upper, extras and reason.

    Extras over further dims (the distribution of a rank) are left out: they are no column. A dim whose labels other
    coords spell out (both entries of a pair, and their ranks) is told by these.
    """
    dims = [str(dim) for dim in result.estimate.dims]
    full = result.estimate
    lower, upper = (result.interval.sel(ci_bound=bound, drop=True) for bound in BOUNDS)
    extras = {
        str(name): variable
        for name, variable in result.data_vars.items()
        if name not in ("estimate", "se", "interval", "reason") and {*map(str, variable.dims)} <= {*dims}
    }
    spelled = {str(name): coord for name, coord in result.coords.items() if coord.ndim == 1 and name not in dims}
    spelled = {name: coord for name, coord in spelled.items() if coord.dims[0] in dims}
    told = {coord.dims[0] for coord in spelled.values()}
    labels = {dim: result[dim] for dim in dims if dim not in told} | spelled
    values = {"estimate": full, "se": result.se, "lower": lower, "upper": upper, **extras, "reason": result.reason}
    return {
        name: plain(array.broadcast_like(full).transpose(*dims).values.ravel())
        for name, array in (labels | values).items()
    }


def records(result: xr.Dataset) -> list[dict[str, Any]]:
    """Return an answer as one record per value; see `columns`."""
    return rows_of(columns(result))


def rows_of(table: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return equally long columns as one record per row.

    >>> rows_of({"config": ["a", "b"], "score": [0.5, None]})
    [{'config': 'a', 'score': 0.5}, {'config': 'b', 'score': None}]
    """
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def numbers(result: xr.Dataset) -> dict[str, Any]:
    """Return an answer whole: its identity and its records."""
    return {**identity(result), "values": records(result)}


def check_output(outputs: Iterable[Path], sources: Iterable[str] = ()) -> None:
    """Raise before the work starts, rather than after it, when an output cannot or must not be written.

    Raises
    ------
    OutcomesError
        The folder does not exist or is closed, the path is a folder, or writing would replace a source.
    """
    read_from = {Path(source).resolve() for source in sources}
    for path in outputs:
        folder = path.parent
        if path.resolve() in read_from:
            raise OutcomesError(f"{path}: writing it would replace what is read; name another output with -o")
        if path.is_dir():
            raise OutcomesError(f"{path}: is a folder; name a file with -o")
        if path.exists() and not path.is_file():
            raise OutcomesError(f"{path}: is a device or a pipe, which writing would replace; name a file with -o")
        if not folder.is_dir():
            raise OutcomesError(f"{path}: the folder {folder} does not exist; make it first")
        if not os.access(folder, os.W_OK):
            raise OutcomesError(f"{path}: the folder {folder} cannot be written to")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that replaces it at the end; after a failure nothing is left."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes private files; what we publish gets the user's ordinary permissions.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_texts(texts: Mapping[Path, str]) -> None:
    """Write text files as UTF-8; every one is complete before the first takes its place."""
    with ExitStack() as stack:
        for path, text in texts.items():
            stack.enter_context(replacing(path)).write_text(text, encoding="utf-8")


def describe_columns(described: xr.Dataset) -> dict[str, list[Any]]:
    """Return what `outcomes.describe` or `describe_tasks` found as equally long columns, one line a config or task."""
    (dim,) = described.dims
    names = [str(name) for name, variable in described.data_vars.items() if variable.dims == (dim,)]
    return {str(dim): plain(described[dim].values), **{name: plain(described[name].values) for name in names}}
