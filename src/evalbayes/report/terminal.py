"""Tables for standard output: drawn for a person at a terminal, tab-separated with `# ` lines for a pipe."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from evalbayes.options import Form
from evalbayes.report.numbers import columns, dumps, identity, numbers
from evalbayes.report.words import TARGETS, entitle

READABLE, WIDEST = 20, 10_000
"""Letters that a column of text keeps, if it has so many; and a width that no table reaches."""
APART = ("quantity", "tasks", "configs", "method", "ci_kind", "ci_prob", "set_kind", "set_meaning")
"""Coords of an answer that have a place of their own above its table."""
REPEATED = ("unresolved", "win_probability_se", "p_best")
"""Columns that JSON has and a table leaves out: others say the same."""


def show(
    lines: Sequence[str],
    table: Mapping[str, Sequence[Any]],
    form: Form = Form.text,
    numbers: Mapping[str, Any] | None = None,
) -> None:
    """Print the lines that say what the table is, then the table, given as equally long columns.

    As JSON it is ``numbers`` that are printed, whole.
    """
    if form is Form.json:
        print(dumps(numbers))
        return
    if form is Form.markdown:
        print(markdown(lines, table), end="\n\n")
        return
    if sys.stdout.isatty():
        _draw(lines, table)
        return
    for line in lines:
        print(f"# {line}")
    print("\t".join(table))
    for row in zip(*table.values(), strict=True):
        print("\t".join(_cell(value).replace("\t", " ").replace("\n", " ") for value in row))


def markdown(lines: Sequence[str], table: Mapping[str, Sequence[Any]]) -> str:
    r"""Return lines and table as Markdown, the first line in bold; names from logs are shown as they are.

    >>> print(markdown(["pass: no worse"], {"config": ["a|b"], "score": [0.5]}))
    **pass: no worse**
    <BLANKLINE>
    | config | score |
    | --- | ---: |
    | a\|b | 0.5 |
    """
    said = [_escaped(line) for line in lines]
    rule = ["---:" if _is_number(values) else "---" for values in table.values()]
    rows = [[_escaped(_cell(value)) for value in row] for row in zip(*table.values(), strict=True)]
    text = [f"**{said[0]}**", ""] if said else []
    text += [*(f"- {line}" for line in said[1:]), ""] if said[1:] else []
    return "\n".join([*text, *(f"| {' | '.join(row)} |" for row in ([*table], rule, *rows))])


def _escaped(text: str) -> str:
    """Return text that Markdown takes as it is, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#~@])", r"\\\1", " ".join(text.split()))


def _is_number(values: Sequence[Any]) -> bool:
    return all(value is None or isinstance(value, int | float) for value in values)


def _draw(lines: Sequence[str], table: Mapping[str, Sequence[Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    # Names come from logs: as Text they cannot be read as markup, nor coloured as if they were code.
    console = Console(highlight=False, markup=False)
    for line in lines:
        console.print(line)
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, values in table.items():
        number, longest = _is_number(values), max((len(_cell(value)) for value in values), default=0)
        least = None if number else min(longest, READABLE)
        head = Text(name.replace("_", "\n"))
        drawn.add_column(head, justify="right" if number else "left", no_wrap=number, min_width=least, overflow="fold")
    for row in zip(*table.values(), strict=True):
        drawn.add_row(*(Text(_cell(value)) for value in row))
    # A row that the terminal breaks can be read; columns of a letter each cannot.
    console.width = max(
        console.width, Measurement.get(console, console.options.update(max_width=WIDEST), drawn).minimum
    )
    console.print(drawn)


def _cell(value: Any) -> str:
    if value is None:
        return "NaN"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show_answer(result: xr.Dataset, policies: Sequence[str], form: Form = Form.text) -> None:
    """Print an answer: what it is an answer to, the policies behind it, its values, and why any is NaN."""
    sentence = [str(result.attrs["sentence"])] if "sentence" in result.attrs else []
    meaning = [f"{result.set_kind.item()}: {result.set_meaning.item()}"] if "set_kind" in result.coords else []
    known = identity(result)
    rest = [f"{name} {value}" for name, value in known.items() if name not in APART and value not in ("", None)]
    lines = [
        ", ".join([entitle(known["quantity"]), *rest]),
        f"tasks={known['tasks']} ({TARGETS['tasks', known['tasks']]}), "
        f"configs={known['configs']} ({TARGETS['configs', known['configs']]})",
        f"method {known['method']}, {100 * known['ci_prob']:g}% interval ({known['ci_kind']})",
        *meaning,
        *sentence,
        *policies,
    ]
    table = columns(result)
    table = {
        name: values
        for name, values in table.items()
        if not (name in ("reason", "se", "interval_mcse") and all(value in ("", None) for value in values))
        and name not in REPEATED
    }
    said = {"sentence": sentence[0]} if sentence else {}
    show(lines, table, form, {"policies": list(policies), **said, **numbers(result)})
