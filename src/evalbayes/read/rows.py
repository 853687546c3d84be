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


def document(path: Path, *, as_text: bool = False) -> Any:
    """Read a file that is one JSON document; ``as_text`` keeps numbers as they are written.

    Raises
    ------
    OutcomesError
        If it is empty or not JSON: names the line and column where it breaks.
    """
    with open_text(path) as file:
        text = file.read()
    if not text.strip():
        raise OutcomesError(f"{path}: the file is empty; copy it again")
    try:
        return json.loads(text, **_kinds(as_text))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        end = "; it ends early, copy it again" if error.pos >= len(text.rstrip()) - 1 else "; correct the file"
        raise OutcomesError(f"{path}, {where}: not JSON ({error.msg}){end}") from None
    except RecursionError:
        raise OutcomesError(f"{path}: nested too deeply to be a log of outcomes") from None


def _kinds(as_text: bool) -> dict[str, Any]:
    return dict.fromkeys(("parse_int", "parse_float", "parse_constant"), str) if as_text else {}


def objects(path: Path, *, as_text: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each object of a file of JSON lines with the number of its line; blank lines are passed over.

    Parameters
    ----------
    path
        The file.
    as_text
        Keep numbers as they are written: 1.0 stays 1.0, and a task 001 is not 1.

    Raises
    ------
    OutcomesError
        If a line is not a JSON object.
    """
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line, **_kinds(as_text))
            except (json.JSONDecodeError, RecursionError) as error:
                raise OutcomesError(f"{path}, line {number}: not JSON ({error}); write one object a line") from None
            if not isinstance(value, dict):
                raise OutcomesError(f"{path}, line {number}: not a JSON object; write one object a line")
            yield number, value


def jsonl(path: Path) -> pd.DataFrame:
    """Read a file of one JSON object a line; numbers keep their text, nested values become JSON text.

    Raises
    ------
    OutcomesError
        If a line is not a JSON object, or the file has none.
    """
    return _table(path, (value for _, value in objects(path, as_text=True)))


def json_rows(path: Path) -> pd.DataFrame:
    """Read a file that is one JSON list of objects, as `jsonl` reads its lines.

    Raises
    ------
    OutcomesError
        If it is no such list.
    """
    content = document(path, as_text=True)
    for i, value in enumerate(content if isinstance(content, list) else [], 1):
        if not isinstance(value, dict):
            raise OutcomesError(f"{path}, entry {i}: not a JSON object; write one object a row")
    if not isinstance(content, list):
        raise OutcomesError(f"{path}: not a list of JSON objects; write one object a row")
    return _table(path, content)


def _table(path: Path, values: Iterable[dict[str, Any]]) -> pd.DataFrame:
    chunks = []
    for batch in itertools.batched(values, CHUNK):
        for key in set().union(*batch):
            if fault := text_fault(key):
                raise OutcomesError(f"{path}: key {key!r} {fault}")
        chunks.append(pd.DataFrame([_flat(value) for value in batch], dtype=object))
    if not chunks:
        raise OutcomesError(f"{path}: the file is empty; it needs one JSON object a line")
    return pd.concat(chunks, ignore_index=True) if len(chunks) > 1 else chunks[0]


def _flat(value: dict[str, Any]) -> dict[str, Any]:
    return {key: json.dumps(part) if isinstance(part, dict | list) else part for key, part in value.items()}


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
