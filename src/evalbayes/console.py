"""What every command does at a terminal: open what it is asked about, and say on standard error what it is doing."""

import re
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from evalbayes.options import READING, ROLES, Errors, columns_of, reading_of

if TYPE_CHECKING:
    import xarray as xr


_NAMED = re.compile(r"\b(\w+)=(\[[^\]]*\]|'[^']*'|)")


def as_typed(text: str) -> str:
    """Return a message with arguments of `evalbayes.read` as they are typed at a terminal.

    >>> as_typed("tell them apart with shard='file', or duplicates='first'; which passes: threshold=")
    'tell them apart with --column shard=file, or --read duplicates=first; which passes: --read threshold='
    >>> as_typed("use errors='missing', or config=['a', 'b']")
    'use --errors missing, or --column config=a,b'
    """

    def typed(found: re.Match[str]) -> str:
        name, value = found.groups()
        value = ",".join(part.strip(" '") for part in value.strip("[]").split(",")) if value else ""
        before = found.string[: found.start()]
        if before.endswith(("--read ", "--column ", "--prior ")):
            return found.group()
        if name == "errors" and value:
            return f"--errors {value}"
        option = "--read" if name in READING else "--column" if name in ROLES else ""
        return f"{option} {name}={value}" if option else found.group()

    return _NAMED.sub(typed, text)


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
