"""What every command does at a terminal: open what it is asked about, and say on standard error what it is doing."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from evalbayes.options import Errors, columns_of, reading_of

if TYPE_CHECKING:
    import xarray as xr


def progress(quiet: bool) -> Callable[[str], None]:
    """Return a function that prints what is being done, with the seconds so far, or nothing."""
    start = time.perf_counter()

    def say(text: str) -> None:
        if not quiet:
            print(f"[{time.perf_counter() - start:5.1f} s] {text}", file=sys.stderr, flush=True)

    return say


def open_source(
    source: str | list[str], errors: Errors, column: list[str] | None, reading: list[str] | None, quiet: bool
) -> "xr.Dataset":
    """Return the board that a SOURCE is, or several together."""
    from evalbayes.report import open_board

    how = columns_of(column) | reading_of(reading)
    return open_board(source, errors=errors.value, reading=how, progress=progress(quiet))
