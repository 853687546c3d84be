"""The command line: each command reads, asks one function of the package, and prints or writes the result.

Nothing heavy is imported until a command runs, so that `evalbayes --help` is immediate.
"""

import json
import os
import signal
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalbayes import __version__, commands
from evalbayes.console import as_typed, open_source, progress
from evalbayes.errors import EvalbayesError, SamplingError
from evalbayes.options import (
    Assume,
    ColumnOption,
    DrawsOption,
    Errors,
    ErrorsOption,
    Form,
    FormatOption,
    JsonOption,
    ModelOption,
    Population,
    PriorOption,
    ProbOption,
    QuietOption,
    ReadOption,
    Sampler,
    SamplerOption,
    Scale,
    SeedOption,
    SourceArgument,
    Target,
    check_model,
    check_prob,
    columns_of,
    form_of,
    priors_of,
    reading_of,
)

if TYPE_CHECKING:
    import xarray as xr

SEVERAL = "Files, folders or globs of logs, saved boards, or packaged boards: joined by names."

app = typer.Typer(
    help="Bayesian analysis of evaluation outcomes: configs x tasks x runs, pass or fail.\n\n"
    "SOURCE and BOARD are a log of any known format, a saved board, or the name of a packaged board.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def read(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help=SEVERAL)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The board to write, as netCDF.")],
    errors: ErrorsOption = Errors.missing,
    column: ColumnOption = None,
    reading: ReadOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read logs into one board, and save it."""
    from evalbayes.outcomes import save
    from evalbayes.report.numbers import check_output

    check_output([output], sources)
    board = open_source(sources, errors, column, reading, quiet)
    save(board, output)
    _describe(board, as_json)


@app.command()
def describe(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help=SEVERAL)],
    tasks: Annotated[bool, typer.Option("--tasks", help="A line for each task: always passed, dead, flaky.")] = False,
    errors: ErrorsOption = Errors.missing,
    column: ColumnOption = None,
    reading: ReadOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what a board holds: coverage, runs, errors and the observed score of every config, or of every task."""
    _describe(open_source(sources, errors, column, reading, quiet), as_json, tasks=tasks)


@app.command()
def fit(
    board: SourceArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="The fit to write, as netCDF.")],
    model: ModelOption = None,
    method: SamplerOption = Sampler.auto,
    draws: DrawsOption = 2000,
    prior: PriorOption = None,
    seed: SeedOption = 0,
    errors: ErrorsOption = Errors.missing,
    column: ColumnOption = None,
    reading: ReadOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit a model to a board, save the posterior, and print the checks of the fit."""
    from evalbayes.fit import fit as run
    from evalbayes.report.board import policies_of
    from evalbayes.report.numbers import check_output, dumps
    from evalbayes.report.terminal import show
    from evalbayes.storage import save_fit

    check_output([output], [board])
    priors, outcomes = priors_of(prior), open_source(board, errors, column, reading, quiet)
    options: dict[str, Any] = {"method": method.value, "draws": draws, "seed": seed, **priors}
    tree = run(outcomes, check_model(model), progress=progress(quiet), **options)
    save_fit(tree, output)
    if as_json:
        print(dumps(tree.attrs))
    else:
        show(policies_of(outcomes), {"name": list(map(str, tree.attrs)), "value": list(tree.attrs.values())})


@app.command()
def answer(
    quantity: Annotated[
        str,
        typer.Argument(
            help="score, difference, win_probability, rank, top_k, adjacent, best_set, near_tie, pass_at_k, icc, ..."
        ),
    ],
    source: Annotated[str, typer.Argument(metavar="BOARD|FIT", help="A board, or a fit saved by `evalbayes fit`.")],
    tasks: Annotated[Target | None, typer.Option(help="These tasks, or new tasks like them.")] = None,
    configs: Annotated[Target | None, typer.Option(help="These entries, or future entries like them.")] = None,
    method: Annotated[
        str,
        typer.Option(
            help="auto, laplace, nuts or latent fit a board first; two_level_bootstrap and such need no fit, nor do "
            "hoeffding, dyadic, task_bootstrap and the others of near_tie."
        ),
    ] = "auto",
    only: Annotated[list[str] | None, typer.Option("--config", help="Print these configs only; repeatable.")] = None,
    population: Annotated[Population | None, typer.Option(help="What new tasks are drawn from.")] = None,
    assume: Annotated[Assume | None, typer.Option(help="For cells run once and --tasks fixed.")] = None,
    clusters: Annotated[
        Target | None, typer.Option(help="Of a fit with task_groups: new tasks of these groups, or of new ones.")
    ] = None,
    scale: Annotated[Scale | None, typer.Option(help="Of variance_components.", show_default="probability")] = None,
    reference: Annotated[str | None, typer.Option(help="Compare each config with this one only.")] = None,
    k: Annotated[int | None, typer.Option(help="Places of top_k; runs of pass_at_k, pass_all_k.", min=1)] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs of each task: shares, agreement, design effects.", min=1)
    ] = None,
    pooled: Annotated[
        list[str] | None, typer.Option(help="Of variances and what follows: the median over these configs; repeatable.")
    ] = None,
    cost_ratio: Annotated[
        float | None, typer.Option(help="For optimal_runs: the cost of one more task over that of one more run.")
    ] = None,
    margin: Annotated[
        str | None, typer.Option(help="For near_tie: two scores this close; 0.05 is five points.")
    ] = None,
    prob: ProbOption = 0.95,
    seed: SeedOption = 0,
    errors: ErrorsOption = Errors.missing,
    column: ColumnOption = None,
    reading: ReadOption = None,
    form: FormatOption = Form.text,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Answer one question, with its interval, its target and the method."""
    from evalbayes.report.ask import ask, narrow
    from evalbayes.report.board import board_of
    from evalbayes.report.terminal import show_answer

    check_prob(prob)
    options = {
        "tasks": tasks,
        "configs": configs,
        "population": population,
        "assume": assume,
        "reference": reference,
        "k": k,
        "runs": runs,
        "pooled": pooled or None,
        "cost_ratio": cost_ratio,
        "margin": margin,
        "clusters": clusters,
        "scale": scale,
        "prob": prob,
    }
    data, result = ask(
        quantity,
        source,
        method=method,
        options=options,
        seed=seed,
        errors=errors.value,
        reading=columns_of(column) | reading_of(reading),
        progress=progress(quiet),
    )
    show_answer(narrow(result, only or []), board_of(*data).policies(), form_of(form, as_json))


@app.command()
def report(
    source: SourceArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="The page; its numbers go to a .json beside it.")],
    model: ModelOption = None,
    method: SamplerOption = Sampler.auto,
    draws: DrawsOption = 2000,
    seed: SeedOption = 0,
    prob: ProbOption = 0.95,
    errors: ErrorsOption = Errors.missing,
    column: ColumnOption = None,
    reading: ReadOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit a board and write a self-contained HTML page: ranked table, forest plot, checks, how to reproduce."""
    from evalbayes.report import report as write
    from evalbayes.report import sibling
    from evalbayes.report.terminal import show

    check_prob(prob)
    page = write(
        source,
        output,
        model=check_model(model),
        method=method.value,
        draws=draws,
        seed=seed,
        prob=prob,
        errors=errors.value,
        reading=columns_of(column) | reading_of(reading),
        progress=progress(quiet),
    )
    text = sibling(page).read_text(encoding="utf-8")
    if as_json:
        print(text)
        return
    content = json.loads(text)
    lines = [*content["headline"], *content["policies"], f"wrote {page} and {sibling(page)}"]
    checks = content["checks"]
    show(lines, {name: [check[name] for check in checks] for name in ("name", "value", "limit", "verdict")})


@app.command()
def datasets(as_json: JsonOption = False) -> None:
    """List the packaged boards; each name can be used where a SOURCE is asked for."""
    from evalbayes import datasets as packaged
    from evalbayes.report.numbers import dumps, rows_of
    from evalbayes.report.terminal import show

    boards = {name: packaged.load(name) for name in packaged.names()}
    table: dict[str, list[object]] = {
        "name": list(boards),
        "configs": [board.sizes["config"] for board in boards.values()],
        "tasks": [board.sizes["task"] for board in boards.values()],
        "runs": [int(board["trials"].max()) for board in boards.values()],
        "source": [str(board.attrs.get("source", "")) for board in boards.values()],
    }
    if as_json:
        print(dumps(rows_of(table)))
    else:
        show([], table)


for command in commands.ALL:
    app.command()(command)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        print(f"evalbayes {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line: exit 0 when done, 1 when a fit failed its checks, 2 when the input is at fault."""
    # One BLAS thread: sums do not depend on the machine, and the cores are left to XLA and to the chains.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    # Ended from outside, a write must still clear away its unfinished file.
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _end)
    warnings.showwarning = _warn
    try:
        app(prog_name="evalbayes")
    except EvalbayesError as error:
        _fail(as_typed(str(error)), 1 if isinstance(error, SamplingError) else 2)
    except BrokenPipeError:
        _mute()
        sys.exit(141)
    except OSError as error:
        _fail(f"{error.filename or 'input'}: {error.strerror or error}", 2)
    except KeyboardInterrupt:
        _fail("interrupted", 130)


def _warn(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Say a warning of this package as a sentence; of others' nothing, for they are about code."""
    if category is UserWarning:
        print(f"evalbayes: {as_typed(' '.join(str(message).split()))}", file=sys.stderr)


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def _fail(text: str, code: int) -> None:
    print(f"evalbayes: {' '.join(text.split())}", file=sys.stderr)
    sys.exit(code)


def _mute() -> None:
    """Point standard output at nothing, so that the interpreter's last flush does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe(board: "xr.Dataset", as_json: bool, *, tasks: bool = False) -> None:
    from evalbayes.outcomes import describe as of_configs
    from evalbayes.outcomes import describe_tasks as of_tasks
    from evalbayes.report.board import findings, how_read, policies_of
    from evalbayes.report.numbers import describe_columns, dumps, rows_of
    from evalbayes.report.terminal import show

    described = of_configs(board)
    table = describe_columns(of_tasks(board) if tasks else described)
    if as_json:
        rows = {"tasks" if tasks else "configs": rows_of(table)}
        facts = {"board": described.attrs, "findings": findings(described)}
        print(dumps({"policies": policies_of(board), "attrs": board.attrs, **facts, **rows}))
    else:
        show([*policies_of(board), *map(as_typed, how_read(described))], table)
