"""The formats, and which one a file is of: found out from what is in it, and from its name only for tables.

A new format is a module with `recognises` and `attempts` (see `evalbayes.read.attempts`), named below.
"""

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from evalbayes.errors import OutcomesError
from evalbayes.read import (
    bfcl,
    evalplus,
    every_eval_ever,
    hal,
    harbor,
    helm,
    inspect_log,
    lm_eval,
    metr,
    rows,
    swe_bench,
    swe_bench_pro,
    swe_bench_site,
    table,
    tau2_bench,
    tau_bench,
    terminal_bench,
)
from evalbayes.read.attempts import Attempts, NoAttempts, Options

DOCUMENTS: dict[str, ModuleType] = {
    "swe_bench": swe_bench,
    "swe_bench_site": swe_bench_site,
    "swe_bench_pro": swe_bench_pro,
    "terminal_bench": terminal_bench,
    "harbor": harbor,
    "evalplus": evalplus,
    "tau_bench": tau_bench,
    "tau2_bench": tau2_bench,
    "hal": hal,
    "helm": helm,
    "lm_eval": lm_eval,
    "bfcl": bfcl,
    "every_eval_ever": every_eval_ever,
}
"""Formats of one JSON document a file; the first that recognises a document reads it."""
LINES: dict[str, ModuleType] = {
    "every_eval_ever": every_eval_ever,
    "metr": metr,
    "lm_eval": lm_eval,
    "bfcl": bfcl,
}
"""Formats of JSON lines."""
NAMES = (*table.FORMATS, "board", "inspect", *dict.fromkeys([*DOCUMENTS, *LINES]))

TAKES: dict[str, tuple[str, ...]] = {
    "inspect": ("score", "field"),
    "lm_eval": ("score", "filter"),
    "helm": ("score", "part"),
    "every_eval_ever": ("score", "field", "part"),
    "evalplus": ("score",),
    "hal": ("score",),
    "harbor": ("score",),
    "metr": ("score",),
    "swe_bench_site": ("part",),
}
"""Which of score, field, filter and part a format takes; tables and the others take none."""

COMPANIONS = ("run_metadata.json", "run_spec.json", "results_*.json", "results.json", "*_result.json")
"""Names of files that belong to a log beside them, and are read with it."""

_OTHER = (
    *(".md", ".txt", ".py", ".ipynb", ".html", ".log", ".yaml", ".yml", ".toml", ".png", ".svg", ".pdf", ".sh"),
    *(".pkl", ".pickle", ".pt", ".npy", ".npz", ".jpg", ".jpeg", ".gif", ".webp", ".css", ".js", ".lock", ".xml"),
)
"""Names of files that are no logs; pickles are never opened, for they can run code."""


_TEXTS = (".json", ".jsonl", ".ndjson", ".csv", ".tsv")


def sniff(path: Path) -> tuple[str, Any]:
    """Return the format of a file, and its content where that had to be read to know.

    Raises
    ------
    NoAttempts
        If it is none of the formats.
    OutcomesError
        If it cannot be read.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    suffix = suffixes[-1] if suffixes else ""
    if suffix in _OTHER:
        raise NoAttempts(f"{path}: a {suffix} file is no log of a known format")
    with path.open("rb") as file:
        magic = file.read(8)
    if magic.startswith(b"PK\x03\x04") or suffix == ".eval":
        return _archive(path), None
    if magic.startswith(b"PAR1") or suffix in (".parquet", ".pq"):
        return "parquet", None
    if magic.startswith(b"\x89HDF") or suffix == ".nc":
        return "board", None
    if suffix in (".csv", ".tsv") and not magic.lstrip(b"\xef\xbb\xbf \r\n").startswith((b"{", b"[")):
        return suffix[1:], None
    return _text(path, suffix)


def _archive(path: Path) -> str:
    """Inspect's logs are archives; of others only the list of names is looked at, nothing is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            locked = any(entry.flag_bits & 1 for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError) as error:
        raise OutcomesError(f"{path}: the archive ends early or is damaged ({error}); copy it again") from None
    if inspect_log.is_archive(names):
        return "inspect"
    what = "an encrypted archive; decrypt it" if locked else "an archive; unpack it"
    raise NoAttempts(f"{path}: {what} first, and name the logs in it")


def _text(path: Path, suffix: str) -> tuple[str, Any]:
    try:
        first = rows.first_line(path)
    except OutcomesError as error:
        # A file of no known ending that is no text is no damaged log: a picture, say.
        raise (error if suffix in _TEXTS else NoAttempts(str(error))) from None
    start = first.lstrip()
    if not start:
        raise (OutcomesError if suffix in _TEXTS else NoAttempts)(f"{path}: the file is empty; copy it again")
    if not start.startswith(("{", "[")):
        if suffix not in _TEXTS and not table.is_header(first):
            raise NoAttempts(
                f"{path}: its first line names no config, task or outcome; format=csv reads it all the same"
            )
        return ("tsv" if "\t" in first else "csv"), None
    if inspect_log.is_document(path):
        return "inspect", None
    if _holds_lines(path):
        head = _head(start)
        return next((name for name, module in LINES.items() if module.recognises(head, path)), "jsonl"), None
    content = rows.document(path)
    for name, module in DOCUMENTS.items():
        if module.recognises(content, path):
            return name, content
    if isinstance(content, dict) and (name := _lone_line(content, path)):
        return name, None
    if isinstance(content, list) and content and isinstance(content[0], dict) and _is_row(content[0]):
        return "json", None
    raise NoAttempts(f"{path}: a JSON document of no known format; format= names one, if it is")


def _head(line: str) -> Any:
    try:
        return json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        return None


def _holds_lines(path: Path) -> bool:
    """Whether a file is of JSON lines: by its name, or because its first line is an object and another follows."""
    first = rows.first_line(path).lstrip()
    if {".jsonl", ".ndjson"} & {suffix.lower() for suffix in path.suffixes}:
        return not first.startswith("[")  # some writers keep a JSON list under that name
    if not isinstance(_head(first), dict):
        return False
    with rows.open_text(path) as file:
        found = (line for line in file if line.strip())
        return next(found, None) is not None and next(found, None) is not None


def _lone_line(content: dict[str, Any], path: Path) -> str:
    """The format of JSON lines that a single line is of."""
    found = next((name for name, module in LINES.items() if module.recognises(content, path)), "")
    return found or ("jsonl" if _is_row(content) else "")


def _is_row(content: dict[str, Any]) -> bool:
    try:
        table.find_columns(list(content), {}, "")
    except OutcomesError:
        return False
    return True


def check_taken(options: Options, found: Iterable[str]) -> None:
    """Refuse an option that no format of the files takes: it would have no effect.

    Raises
    ------
    OutcomesError
        Naming the option, the formats, and what they take.
    """
    read = list(dict.fromkeys(found))
    taken = {name for format in read for name in TAKES.get(format, ())}
    for name in ("score", "field", "filter", "part"):
        if getattr(options, name) is not None and name not in taken:
            takes = ", ".join(f"{one}=" for one in sorted(taken)) or "none of score=, field=, filter=, part="
            raise OutcomesError(f"{name}= has no effect on {', '.join(read)}: takes {takes}; leave it out")


def open_attempts(path: Path, format: str, content: Any, options: Options, named: table.Named) -> Attempts:
    """Return the attempts of a file whose format is known.

    Raises
    ------
    OutcomesError
        Naming the file, the place in it and the remedy.
    """
    if format in table.FORMATS:
        return table.attempts(path, format, named)
    if format == "inspect":
        return inspect_log.attempts(path, options)
    if format in DOCUMENTS and not (format in LINES and _holds_lines(path)):
        content = rows.document(path) if content is None else content
        return _asked(DOCUMENTS[format], content, content, path, format, options)
    head = _head(rows.first_line(path))
    return _asked(LINES[format], head, rows.objects(path), path, format, options)


def _asked(
    module: ModuleType, head: Any, content: Any | Iterable[Any], path: Path, format: str, options: Options
) -> Attempts:
    if not module.recognises(head, path):
        raise OutcomesError(f"{path}: this is no {format} log; leave format= out to have its format found")
    made: Attempts = module.attempts(content, path, options)
    return made
