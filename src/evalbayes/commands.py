"""The commands that decide something: plan a board, compare two entries, let a change through.

Nothing heavy is imported until one runs.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from evalbayes.console import open_source, progress
from evalbayes.errors import ArgumentError
from evalbayes.options import (
    ColumnOption,
    Correction,
    Errors,
    ErrorsOption,
    Form,
    FormatOption,
    JsonOption,
    ModelOption,
    Planner,
    ProbOption,
    QuietOption,
    ReadOption,
    Reduction,
    Sampler,
    SamplerOption,
    SeedOption,
    SourceArgument,
    Target,
    check_model,
    check_prob,
    columns_of,
    form_of,
    reading_of,
    whole_numbers,
)


def design(
    source: Annotated[str, typer.Argument(metavar="BOARD|FIT", help="A board, or a fit saved by `evalbayes fit`.")],
    cost_ratio: Annotated[float, typer.Option(help="The cost of one more task over that of one more run of a task.")],
    width: Annotated[float, typer.Option(help="The interval wanted, end to end: 0.1 is ten points.")] = 0.1,
    method: Annotated[
        Planner | None, typer.Option(help="moments need no fit; the others fit a board first.", show_default="moments")
    ] = None,
    prob: ProbOption = 0.95,
    seed: SeedOption = 0,
    errors: ErrorsOption = Errors.missing,
    column: ColumnOption = None,
    reading: ReadOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Plan the next board: how many runs and tasks are worth their cost, and what gap this one resolves."""
    from evalbayes.report.numbers import dumps
    from evalbayes.report.plan import plan
    from evalbayes.report.terminal import show

    check_prob(prob)
    found = plan(
        source,
        method=method and method.value,
        cost_ratio=cost_ratio,
        width=width,
        prob=prob,
        seed=seed,
        errors=errors.value,
        given=columns_of(column) | reading_of(reading),
        progress=progress(quiet),
    )
    if as_json:
        print(dumps(found.numbers))
    else:
        if not found.curve:
            found.lines.extend(found.curve_lines)
        show(found.lines, found.configs)
        if found.curve:
            show(found.curve_lines, found.curve)


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A config of SOURCE; or a source, when there are two.")],
    second: Annotated[str, typer.Argument(metavar="B", help="What A is compared with.")],
    source: Annotated[str | None, typer.Argument(help="The board of both configs; left out for two sources.")] = None,
    tasks: Annotated[Target, typer.Option(help="These tasks, or new tasks like them.")] = Target.sampled,
    model: ModelOption = None,
    method: SamplerOption = Sampler.auto,
    prob: ProbOption = 0.95,
    seed: SeedOption = 0,
    errors: ErrorsOption = Errors.missing,
    column: ColumnOption = None,
    reading: ReadOption = None,
    form: FormatOption = Form.text,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare two configs of a board, or two sources: A less B, by the model and by the bootstrap."""
    from evalbayes.report.terminal import show
    from evalbayes.report.versus import versus

    check_prob(prob)
    options: dict[str, Any] = {
        "tasks": tasks.value,
        "model": check_model(model),
        "method": method.value,
        "prob": prob,
        "seed": seed,
    }
    boards = [open_source(one, errors, column, reading, quiet) for one in ([source] if source else [first, second])]
    if source:
        found = versus(boards[0], {first: (first, second)}, progress=progress(quiet), **options)
    else:
        from evalbayes.gate import joined, paired

        same = Path(first).name == Path(second).name
        old, new = (one if same else Path(one).name for one in (second, first))
        if first == second:
            raise ArgumentError(f"compare: {first} and {second} are one source; give two")
        pairs, _ = paired(boards[1], boards[0])
        board = joined(boards[1], boards[0], pairs, (f" ({old})", f" ({new})"))
        # Each side under its own name: where each source has one config, the two may be called differently.
        own = {f"{name} ({old})": f"{base} ({old})" for name, (base, _) in pairs.items()}
        board = board.assign_coords(config=[own.get(name, name) for name in board["config"].values.tolist()])
        names = {name: (f"{name} ({new})", f"{base} ({old})") for name, (base, _) in pairs.items()}
        found = versus(board, names, progress=progress(quiet), **options)
        for at, whose, side in ((0, second, boards[1]), (1, first, boards[0])):
            compared = {both[at] for both in pairs.values()}
            alone = [name for name in side["config"].values.tolist() if name not in compared]
            found.lines.extend([f"in {whose} alone, and not compared: {', '.join(alone)}"] * bool(alone))
    show(found.lines, found.table, form_of(form, as_json), found.numbers)


def gate(
    base: Annotated[str, typer.Argument(metavar="BASE", help="The outcomes of the old version.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Those of the new version, on the same tasks.")],
    max_regression: Annotated[float, typer.Option(help="The loss that is allowed: 0.02 is two points.")] = 0.02,
    probability: Annotated[float, typer.Option(help="How probable a verdict has to be.")] = 0.95,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 also when the runs do not tell.")] = False,
    tasks: Annotated[Target, typer.Option(help="These tasks, or new tasks like them.")] = Target.sampled,
    model: ModelOption = None,
    method: SamplerOption = Sampler.auto,
    prob: ProbOption = 0.95,
    seed: SeedOption = 0,
    errors: ErrorsOption = Errors.missing,
    column: ColumnOption = None,
    reading: ReadOption = None,
    form: FormatOption = Form.text,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Let a new version pass, or not: exit 1 when it is probably worse by more than is allowed."""
    from evalbayes.gate import gate as judge
    from evalbayes.report.board import policies_of
    from evalbayes.report.numbers import columns, numbers
    from evalbayes.report.terminal import show

    check_prob(prob)
    boards = [open_source(one, errors, column, reading, quiet) for one in (base, new)]
    result = judge(
        *boards,
        max_regression=max_regression,
        probability=probability,
        tasks=tasks.value,
        prob=prob,
        model=check_model(model),
        method=method.value,
        seed=seed,
        progress=progress(quiet),
    )
    kept = ("config", "base", "new", "estimate", "lower", "upper", "regression", "verdict", "shared_tasks")
    extra = ("lost_tasks", "more_errors", "reason")
    table = columns(result)
    table = {name: table[name] for name in (*kept, *extra) if name in kept or any(table[name])}
    sides = zip(("base", "new"), boards, strict=True)
    policies = [f"{side}: {said}" for side, board in sides for said in policies_of(board)]
    lines = [
        str(result.attrs["sentence"]),
        f"estimate: new less base on {'new tasks' if tasks is Target.sampled else 'these tasks'}, {100 * prob:g}% "
        f"interval; regression: the probability of a loss of more than {100 * max_regression:g} points",
        *policies,
    ]
    said = {name: result.attrs[name] for name in ("verdict", "sentence", "only_base", "only_new")}
    show(lines, table, form_of(form, as_json), {**said, "policies": policies, **numbers(result)})
    if result.attrs["verdict"] == "fail" or (strict and result.attrs["verdict"] == "insufficient"):
        raise typer.Exit(1)


def audit(
    source: SourceArgument,
    level: Annotated[float, typer.Option(help="Of the tests that separate an entry from its group's best.")] = 0.05,
    correction: Annotated[Correction | None, typer.Option(help="Of all pairs of entries.", show_default="none")] = None,
    reduce: Annotated[
        Reduction | None, typer.Option(help="How several runs of a task become one outcome.", show_default="refused")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 when there are errors.")] = False,
    errors: ErrorsOption = Errors.missing,
    column: ColumnOption = None,
    reading: ReadOption = None,
    form: FormatOption = Form.text,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what does not add up on a board, and give each entry its standard errors and its significance group."""
    from evalbayes.report.audited import audited
    from evalbayes.report.terminal import show

    board = open_source(source, errors, column, reading, quiet)
    found = audited(board, level=level, correction=correction and correction.value, reduce=reduce and reduce.value)
    how = form_of(form, as_json)
    if how is not Form.json and found.findings["kind"]:
        show(found.lines, found.findings, how)
    elif how is not Form.json:
        found.entry_lines[:0] = found.lines
    show(found.entry_lines, found.entries, how, found.numbers)
    if strict and any(severity == "error" for severity in found.findings["severity"]):
        raise typer.Exit(1)


def pairs(
    source: SourceArgument,
    margin: Annotated[str, typer.Option(help="Two scores this close are a near tie: 0.05 is five points.")],
    cluster: Annotated[str | None, typer.Option(help="A column of the tasks: their repository, or suite.")] = None,
    blocks: Annotated[
        str | None, typer.Option(help="A column of the configs: only pairs between blocks count.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Of each bootstrap.", min=100)] = 2000,
    prob: ProbOption = 0.95,
    seed: SeedOption = 0,
    errors: ErrorsOption = Errors.missing,
    column: ColumnOption = None,
    reading: ReadOption = None,
    form: FormatOption = Form.text,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Count near ties among all pairs of configs, and say what the count is worth for every target."""
    from evalbayes.report.all_pairs import all_pairs
    from evalbayes.report.terminal import show

    check_prob(prob)
    board = open_source(source, errors, column, reading, quiet)
    found = all_pairs(board, margin, cluster=cluster, blocks=blocks, prob=prob, seed=seed, draws=draws)
    show(found.lines, found.table, form_of(form, as_json), found.numbers)


def calibrate(
    model: Annotated[str, typer.Argument(help="A model's name, or FILE.py:FUNCTION.")],
    fits: Annotated[int, typer.Option(help="Boards drawn from the prior, and fitted.", min=1)] = 100,
    configs: Annotated[int, typer.Option(help="Of every board.", min=1)] = 6,
    tasks: Annotated[int, typer.Option(help="Of every board.", min=2)] = 20,
    runs: Annotated[int, typer.Option(help="Of every cell.", min=1)] = 3,
    seed: SeedOption = 0,
    rows: Annotated[str | None, typer.Option(help="Only these, as 3,17: what they are in any longer study.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A csv to add rows to; what it has is not made again.")
    ] = None,
    method: SamplerOption = Sampler.auto,
    draws: Annotated[int, typer.Option(help="Of each posterior, which the truth is ranked among.", min=1)] = 199,
    prob: Annotated[float, typer.Option(help="One less the probability of a false alarm.")] = 0.95,
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="The scheduler of a Dask cluster.")] = None,
    form: FormatOption = Form.text,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit boards drawn from a model's own prior: are posteriors as wide as they should be? Exit 1 when they are not."""
    from evalbayes.report.calibrated import calibrated
    from evalbayes.report.numbers import check_output
    from evalbayes.report.terminal import show

    check_prob(prob)
    check_output([output] if output else [])
    found = calibrated(
        str(check_model(model)),
        whole_numbers("--rows", rows) if rows is not None else range(fits),
        sizes=(configs, tasks, runs),
        seed=seed,
        method=method.value,
        draws=draws,
        prob=prob,
        output=output,
        show_rows=rows is not None,
        workers=workers,
        dask=dask,
        progress=progress(quiet),
    )
    show(found.lines, found.table, form_of(form, as_json), found.numbers)
    if found.verdict == "failed" or not found.numbers["fits"] > found.numbers["failed"]:
        raise typer.Exit(1)


ALL = (design, compare, gate, audit, pairs, calibrate)
