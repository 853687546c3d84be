"""The options that commands share: what they are called, what they may hold, and the check of it before work starts."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evalbayes.errors import OutcomesError
from evalbayes.models import NAMES


class Target(StrEnum):
    """What a number is about: these tasks or entries, or new ones like them."""

    fixed = "fixed"
    sampled = "sampled"


class Errors(StrEnum):
    """What an attempt without a score counts as."""

    missing = "missing"
    failure = "failure"
    refuse = "raise"


class Population(StrEnum):
    """Where new tasks come from: the fitted density of task effects, or the tasks that were run, reweighted."""

    model = "model"
    reweighted = "reweighted"


class Assume(StrEnum):
    """What may be assumed that the data do not show."""

    no_interaction = "no_interaction"


class Sampler(StrEnum):
    """How a fit is sampled."""

    auto = "auto"
    laplace = "laplace"
    nuts = "nuts"
    latent = "latent"


class Planner(StrEnum):
    """Where the variance components of a plan come from."""

    moments = "moments"
    auto = "auto"
    laplace = "laplace"
    nuts = "nuts"
    latent = "latent"


class Scale(StrEnum):
    """What variance components are of: the outcome, or its logit."""

    probability = "probability"
    latent = "latent"


class Correction(StrEnum):
    """How p-values are adjusted for their number."""

    holm = "holm"
    fdr_bh = "fdr_bh"


class Reduction(StrEnum):
    """How several runs of a task become one outcome."""

    majority = "majority"
    first = "first"


class Form(StrEnum):
    """How a table is printed: for a person or a pipe, for a comment on a pull request, for a program."""

    text = "text"
    markdown = "markdown"
    json = "json"


ROLES = (
    *("config", "task", "run", "shard", "attempt", "outcome", "successes", "trials"),
    *("error_count", "status", "reducer", "published"),
)
"""What a column can be; see `evalbayes.read`."""

READING = (
    *("format", "score", "field", "filter", "part", "manifest", "attempts", "duplicates", "measures"),
    *("threshold", "outcome_map", "config_map", "task_map"),
)
"""How a log is read; see `evalbayes.read`."""

SourceArgument = Annotated[
    str,
    typer.Argument(help="A log, a folder or glob of logs, a saved board, or the name of a packaged board."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON; what is not known is null, with its reason.")]
ErrorsOption = Annotated[Errors, typer.Option("--errors", help="What an attempt without a score counts as.")]
ModelOption = Annotated[
    str | None, typer.Option(help="A model's name, or FILE.py:FUNCTION.", show_default="chosen from the data")
]
SamplerOption = Annotated[Sampler, typer.Option("--method", help="How to sample the posterior.")]
SeedOption = Annotated[int, typer.Option(help="Same seed, same numbers.", min=0)]
DrawsOption = Annotated[int, typer.Option(help="Posterior draws; NUTS returns 1,000 a chain or more.", min=100)]
ProbOption = Annotated[float, typer.Option(help="Coverage of the intervals, between 0 and 1.")]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="ROLE=NAME", help="The column of config, task, run, outcome, ...; repeatable."),
]
ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="NAME=VALUE",
        help="How to read logs: format, score, field, filter, part, manifest, threshold=0.5, attempts=best, "
        "duplicates=first, outcome_map=P=1,N=0, config_map=old=new or FILE.json; repeatable.",
    ),
]
PriorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--prior",
        metavar="NAME=VALUE",
        help="A prior or option of the model, such as task_sd=2 or config_groups=agent,model; repeatable.",
    ),
]
FormatOption = Annotated[Form, typer.Option("--format", help="text, markdown (for a comment), or json.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]


def columns_of(pairs: list[str] | None) -> dict[str, Any]:
    """Return the columns given as ROLE=NAME, by role; a config or run may be several, with commas between."""
    split = [pair.partition("=") for pair in pairs or []]
    for role, equals, _ in split:
        if not equals or role not in ROLES:
            known = ", ".join(ROLES)
            raise typer.BadParameter(f"{role}{equals}: give ROLE=NAME, ROLE one of {known}", param_hint="--column")
    several = {"config", "run"}
    return {role: name.split(",") if role in several and "," in name else name for role, _, name in split}


def reading_of(pairs: list[str] | None) -> dict[str, Any]:
    """Return how to read logs, given as NAME=VALUE, as arguments of `evalbayes.read`."""
    split = [pair.partition("=") for pair in pairs or []]
    for name, equals, value in split:
        if name not in READING or not equals or not value:
            known = ", ".join(READING)
            raise typer.BadParameter(
                f"{name}{equals}{value}: give NAME=VALUE, NAME one of {known}", param_hint="--read"
            )
    return {name: _how(name, value) for name, _, value in split}


def _how(name: str, value: str) -> Any:
    if name == "threshold":
        if not isinstance(number := _value(value), float):
            raise typer.BadParameter(f"threshold={value}: give a number, such as 0.5", param_hint="--read")
        return number
    if name == "measures":
        return value.split(",")
    return _mapping(name, value) if name.endswith("_map") else value


def _mapping(name: str, text: str) -> dict[str, Any]:
    """Return a mapping given as OLD=NEW,OLD=NEW or as a JSON file; a score that is blank or null is none."""
    if Path(text).is_file():
        try:
            pairs = json.loads(Path(text).read_text(encoding="utf-8"))
        except ValueError as error:
            raise OutcomesError(f"{text}: not JSON ({error}); write an object of old and new names") from None
        if not isinstance(pairs, dict):
            raise OutcomesError(f"{text}: not a JSON object; write old and new names in one")
    else:
        split = [pair.rpartition("=") for pair in text.split(",")]
        if not all(old and equals for old, equals, _ in split):
            hint = "give OLD=NEW with commas between, or a JSON file"
            raise typer.BadParameter(f"{name}={text}: {hint}", param_hint="--read")
        pairs = {old: new for old, _, new in split}
    return {old: _score(new) for old, new in pairs.items()} if name == "outcome_map" else pairs


def _score(text: Any) -> Any:
    return None if text in ("", "null", "none", None) else _value(str(text))


def priors_of(pairs: list[str] | None) -> dict[str, float | bool | str]:
    """Return the priors and options given as NAME=VALUE: numbers and true or false as such, all else as text."""
    split = [pair.partition("=") for pair in pairs or []]
    for name, equals, value in split:
        if not (name and equals and value):
            raise typer.BadParameter(f"{name}{equals}{value}: give NAME=VALUE, such as task_sd=2", param_hint="--prior")
    # What names a column is text, whatever it looks like.
    return {name: value if name.endswith(("group", "groups")) else _value(value.strip()) for name, _, value in split}


def _value(text: str) -> float | bool | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text


def form_of(form: Form, as_json: bool) -> Form:
    """Return how to print: --json is short for --format json."""
    return Form.json if as_json else form


def whole_numbers(name: str, text: str) -> list[int]:
    """Return the numbers of a list such as 3,17."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise typer.BadParameter(f"{text!r} is not whole numbers with commas between, such as 3,17", param_hint=name)
    return [int(part) for part in parts]


def check_prob(prob: float) -> None:
    """Refuse a coverage that is not between 0 and 1."""
    if not 0 < prob < 1:
        raise typer.BadParameter(f"{prob:g} is not between 0 and 1", param_hint="--prob")


def check_model(name: str | None) -> str | None:
    """Return a model's name once it is known to exist, before anything is read or compiled."""
    if name is None:
        return None
    path, _, function = name.rpartition(":")
    if path and not (Path(path).is_file() and function):
        raise OutcomesError(f"--model {name}: there is no file {path}; give FILE.py:FUNCTION")
    if not path and name not in NAMES:
        raise OutcomesError(f"--model {name}: no such model; give {', '.join(NAMES)} or FILE.py:FUNCTION")
    return name
