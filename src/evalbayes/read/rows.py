"""Files to rows: csv, tsv, jsonl and parquet, gzipped or not, to a frame of text as written.

Values are never guessed at: ``001``, ``1e5`` and ``NA`` stay as they are. Every fault of a file is an
`OutcomesError` of one line that names the file, the line and the remedy. A frame holds pandas categories,
so that a large log costs a few bytes for each value.
"""

import csv
import gzip
import itertools
import json
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TextIO

import numpy as np
import pandas as pd

from evalbayes.errors import OutcomesError
from evalbayes.schema import text_fault

CHUNK = 2**18
_GZIP = b"\x1f\x8b"


def is_gzip(path: Path) -> bool:
    """Whether a file is gzipped, by its first bytes: a name can lie."""
    with path.open("rb") as file:
        return file.read(2) == _GZIP


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a text file, gzipped or not, turning what breaks on the way into OutcomesError."""
    opener: Callable[..., Any] = gzip.open if is_gzip(path) else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError:
        raise OutcomesError(f"{path}, line {_undecodable_line(path)}: not UTF-8 text; save the file as UTF-8") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise OutcomesError(f"{path}: the gzip data end early or are damaged ({error}); copy the file again") from None


def _undecodable_line(path: Path) -> int:
    opener: Callable[..., Any] = gzip.open if is_gzip(path) else open
    with opener(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def delimited(path: Path, delimiter: str) -> pd.DataFrame:
    """Read a csv or tsv file; every row must have as many fields as the header, blank lines are passed over.

    Raises
    ------
    OutcomesError
        If the file is empty, a row has more or fewer fields, or a quote is not closed.
    """
    with open_text(path) as file, _long_fields():
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            header = next(filter(None, reader), [])
            if not any(name.strip() for name in header):
                raise OutcomesError(f"{path}: the file is empty; it needs a header line and rows")
            return _frame(header, (_columns(rows, len(header)) for rows in _chunks(filter(None, reader))))
        except (csv.Error, ValueError) as error:
            if isinstance(error, UnicodeDecodeError):
                raise
            _raise_at_line(path, delimiter, error)


def _chunks(rows: Iterator[Any]) -> Iterator[tuple[Any, ...]]:
    return itertools.batched(rows, CHUNK)


def _columns(rows: tuple[list[str], ...], width: int) -> list[tuple[str, ...]]:
    if len(rows[0]) != width:
        raise ValueError("ragged")
    return list(zip(*rows, strict=True))


def _frame(names: list[str], chunks: Iterable[list[Any]]) -> pd.DataFrame:
    parts: list[list[pd.Categorical]] = [[] for _ in names]
    for columns in chunks:
        for part, column in zip(parts, columns, strict=True):
            codes, values = pd.factorize(np.array(column, dtype=object))
            part.append(pd.Categorical.from_codes(codes, pd.Index(values, dtype=object)))
    whole = [pd.api.types.union_categoricals(part) if part else pd.Categorical([]) for part in parts]
    return pd.DataFrame(dict(enumerate(whole))).set_axis(names, axis=1)


@contextmanager
def _long_fields() -> Iterator[None]:
    """Lift csv's limit of 128 kB a field, which a logged transcript exceeds, and put it back."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _raise_at_line(path: Path, delimiter: str, error: Exception) -> NoReturn:
    width = 0
    for line, row in _numbered(path, delimiter, error):
        width = width or len(row)
        if len(row) != width:
            raise OutcomesError(
                f"{path}, line {line}: {len(row)} fields where the header has {width}; correct the line"
            )
    raise OutcomesError(f"{path}: not a readable table ({error}); check its delimiter and quotes")


def _numbered(path: Path, delimiter: str, error: Exception | None = None) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of its first line, header included."""
    with open_text(path) as file, _long_fields():
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        line = 1
        try:
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as fault:
            raise OutcomesError(f"{path}, line {line}: {fault}; check the quotes of that row") from None


def delimited_line(path: Path, delimiter: str, row: int) -> int:
    """Line in the file of a row (0 for the first below the header)."""
    return next(itertools.islice(_numbered(path, delimiter), row + 1, None))[0]


def jsonl(path: Path) -> pd.DataFrame:
    """Read a file of one JSON object a line; numbers keep their text, nested values become JSON text.

    Raises
    ------
    OutcomesError
        If a line is not a JSON object, or the file has none.
    """
    with open_text(path) as file:
        lines = filter(None, map(str.strip, file))
        chunks = [pd.DataFrame(_objects(path, batch, i), dtype=object) for i, batch in enumerate(_chunks(lines))]
    if not chunks:
        raise OutcomesError(f"{path}: the file is empty; it needs one JSON object a line")
    frame = pd.concat(chunks, ignore_index=True) if len(chunks) > 1 else chunks[0]
    return frame


def _objects(path: Path, lines: tuple[str, ...], chunk: int) -> list[dict[str, Any]]:
    objects = []
    for i, line in enumerate(lines):
        try:
            value = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
        except (json.JSONDecodeError, RecursionError) as error:
            where = jsonl_line(path, chunk * CHUNK + i)
            raise OutcomesError(f"{path}, line {where}: not JSON ({error}); write one object a line") from None
        if not isinstance(value, dict):
            where = jsonl_line(path, chunk * CHUNK + i)
            raise OutcomesError(f"{path}, line {where}: not a JSON object; write one object a line")
        objects.append({k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in value.items()})
    for key in set().union(*objects):
        if fault := text_fault(key):
            raise OutcomesError(f"{path}: key {key!r} {fault}")
    return objects


def jsonl_line(path: Path, row: int) -> int:
    """Line in the file of a row (0 for the first)."""
    with open_text(path) as file:
        numbers = (number for number, line in enumerate(file, 1) if line.strip())
        return next(itertools.islice(numbers, row, None))


def parquet(path: Path) -> pd.DataFrame:
    """Read a parquet file, every value as text.

    Raises
    ------
    OutcomesError
        If DuckDB cannot read it.
    """
    import duckdb

    with _plain_copy(path) as plain, duckdb.connect() as connection:
        try:
            return connection.execute("SELECT COLUMNS(*)::VARCHAR FROM read_parquet(?)", [str(plain)]).df()
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise OutcomesError(f"{path}: not a readable parquet file ({reason}); write it again") from None


@contextmanager
def _plain_copy(path: Path) -> Iterator[Path]:
    """The file itself, or a copy where DuckDB needs one: gzipped, or named with wildcards."""
    zipped = is_gzip(path)
    if not zipped and not set(str(path)) & set("*?[]"):
        yield path
        return
    with tempfile.NamedTemporaryFile(suffix=".parquet") as copy:
        with gzip.open(path) if zipped else path.open("rb") as file:
            shutil.copyfileobj(file, copy)
        copy.flush()
        yield Path(copy.name)


def first_line(path: Path) -> str:
    """First line that is not blank; empty if there is none."""
    with open_text(path) as file:
        return next((line for line in file if line.strip()), "")
