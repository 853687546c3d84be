"""Save boards and fits to netCDF files and load them back, atomically and exactly."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.errors import OutcomesError
from evalbayes.schema import COUNTS, validate


def save(ds: xr.Dataset, path: str | PathLike[str]) -> Path:
    """Write a valid board to ``path`` (.nc): all of it, or nothing and the old file stays.

    Raises
    ------
    OutcomesError
        If the board is not valid, or the folder cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> from evalbayes import outcomes
    >>> board = outcomes.from_counts([[1]], [[2]], configs=["a"], tasks=["t"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load(save(board, folder + "/board.nc")).identical(board)
    True
    """
    return _write(path, lambda: validate(ds).to_netcdf(engine="h5netcdf", encoding=_packed(ds)))


def save_fit(fit: xr.DataTree, path: str | PathLike[str]) -> Path:
    """Write a fit to ``path`` (.nc): all of it, or nothing and the old file stays.

    Raises
    ------
    OutcomesError
        If the folder cannot be written to, or netCDF cannot hold a variable or an attribute.
    """
    for node in fit.subtree:
        for name, value in node.attrs.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float | np.integer | np.floating):
                raise OutcomesError(f"{path}: attribute {name!r} is {value!r}; only text and numbers are kept")
    groups = {node.path: _packed(node.to_dataset()) for node in fit.subtree}
    return _write(path, lambda: fit.to_netcdf(engine="h5netcdf", encoding=groups))


def load_fit(path: str | PathLike[str]) -> xr.DataTree:
    """Load a fit that `save_fit` wrote, into memory.

    Raises
    ------
    OutcomesError
        If there is no such file, or it is not a saved fit.
    """
    source = Path(fspath(path))
    with _reading(source, "fit again"), xr.open_datatree(source, engine="h5netcdf") as opened:
        fit = opened.load()
    if "posterior" not in fit.children:
        raise OutcomesError(f"{source}: no posterior in it; it is not a saved fit")
    return fit


def _packed(ds: xr.Dataset) -> dict[Any, dict[str, Any]]:
    """Return the encoding that compresses whatever has more than one dim."""
    return {
        name: {"compression": "gzip", "compression_opts": 4}
        for name, variable in ds.data_vars.items()
        if variable.ndim > 1 and variable.dtype.kind in "iuf"
    }


def _write(path: str | PathLike[str], content: Callable[[], Any]) -> Path:
    """Write bytes to a file beside the target, then put it in the target's place.

    HDF5 itself cannot be trusted with a disk that fills up: it crashes on closing. So the file is made in memory.
    """
    target = Path(fspath(path))
    if not target.parent.is_dir() or (target.exists() and not target.is_file()):
        raise OutcomesError(f"{target}: cannot write there (a folder, a device, or in no folder); choose another path")
    # The unfinished file is in the same folder, for a rename is atomic only within one file system.
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        part.write_bytes(content())
        os.replace(part, target)
    except OSError as error:
        raise OutcomesError(f"{target}: cannot write there ({_line(error)}); choose another path") from None
    except (TypeError, ValueError) as error:
        raise OutcomesError(f"{target}: netCDF cannot hold it ({_line(error)}); drop that coord") from None
    finally:
        part.unlink(missing_ok=True)
    return target


def load(path: str | PathLike[str]) -> xr.Dataset:
    """Load a board that `save` wrote, into memory.

    Raises
    ------
    OutcomesError
        If there is no such file, or it is not a saved board.
    """
    source = Path(fspath(path))
    with _reading(source, "save the board again"):
        ds = xr.load_dataset(source, engine="h5netcdf")
    if "gate" in ds.attrs:
        raise OutcomesError(f"{source}: a saved fit, not a board; ask it with `evalbayes answer`, or use load_fit")
    # netCDF cannot mark a coord whose name has a space, and gives it back as a variable.
    # What lies along cells is no coord: the means of measures, the file of each cell.
    known = (*COUNTS, "outcome", "published")
    extra = [name for name in ds.data_vars if name not in known and ds[name].ndim < 2]
    try:
        return validate(ds.set_coords(extra))
    except OutcomesError as error:
        raise OutcomesError(f"{source}: {error}") from None


@contextmanager
def _reading(source: Path, remedy: str) -> Iterator[None]:
    """Turn what goes wrong in reading a netCDF file into one error that names it."""
    if not source.is_file():
        raise OutcomesError(f"{source}: there is no such file; check the path")
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        raise OutcomesError(f"{source}: not a readable netCDF file ({_line(error)}); {remedy}") from None


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
