"""A report: one self-contained HTML page that a leaderboard can publish, and its numbers in a JSON file beside it."""

import base64
import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from glob import has_magic
from importlib import resources
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import xarray as xr

from evalbayes import __version__
from evalbayes.errors import OutcomesError
from evalbayes.options import ROLES
from evalbayes.report.board import Board, board_of, findings
from evalbayes.report.content import Answers, checks, headline, order, reasons, repetition, rows, unresolved, widths
from evalbayes.report.numbers import check_output, dumps, numbers, write_texts
from evalbayes.report.wins import MOST, lines

__all__ = ["report"]

Source = str | PathLike[str] | Sequence[str | PathLike[str]]

TOP = 3
REPETITION = ("icc", "ceiling")
"""What the page says of repeated runs."""


def report(
    source_or_outcomes: Source | xr.Dataset,
    path: str | Path,
    *,
    fit: xr.DataTree | None = None,
    model: str | None = None,
    method: str = "auto",
    draws: int = 2000,
    seed: int = 0,
    prob: float = 0.95,
    errors: str = "missing",
    reading: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Write a report of a board: what was read, the ranked table, the forest, the checks, how to reproduce it.

    Parameters
    ----------
    source_or_outcomes
        Logs to read (a file, glob or folder, or several), the name of a packaged board, or outcomes.
    path
        The HTML file; the numbers go to a file beside it that ends in ``.json``.
    fit
        A fit of these outcomes, to be used in place of a new one.
    model, method, draws, seed
        As in `evalbayes.fit`; the bootstrap uses ``seed`` too.
    prob
        Coverage of every interval.
    errors
        The error policy for a log: ``"missing"``, ``"failure"`` or ``"raise"``.
    reading
        How to read a log, as arguments of `evalbayes.read`: ``{"config": "agent", "threshold": 0.5}``.
    progress
        Called with a short text at each stage.

    Returns
    -------
    pathlib.Path
        Of the HTML file.

    Raises
    ------
    OutcomesError, NotIdentifiedError
        If the log cannot be read, the files cannot be written, or there is nothing to rank.
    SamplingError
        If the fit fails its own checks.

    Examples
    --------
    >>> from evalbayes import report                                                # doctest: +SKIP
    >>> report("runs.csv", "report.html")                                           # doctest: +SKIP
    PosixPath('report.html')
    """
    from evalbayes.check.sampler import refuse_failed, sampler
    from evalbayes.outcomes import describe

    say = progress or (lambda _: None)
    page, data = Path(path), sibling(Path(path))
    source = None if isinstance(source_or_outcomes, xr.Dataset) else source_or_outcomes
    check_output((page, data), sources_of(source))
    board = open_board(source_or_outcomes, errors=errors, reading=reading, progress=say)
    if fit is None:
        from evalbayes.fit import fit as run

        fit = run(board, model, method=method, draws=draws, seed=seed, progress=say)
    seen = sampler(fit)
    refuse_failed(seen, str(fit.attrs.get("method", "the fit")))
    say("answering")
    answers = gather(board, fit, seed=seed, prob=prob)
    say("writing the report")
    facts = board_of(board, board.attrs)
    command = reproduce(source, page, fit, errors=errors, prob=prob, reading=reading or {})
    found = findings(describe(board))
    texts = {
        data: dumps(content_of(facts, answers, fit, seen, found)),
        page: render(facts, answers, fit, seen, found, command=command, data=data.name),
    }
    write_texts(texts)
    return page


def sibling(page: Path) -> Path:
    """Return where the numbers of a page go: report.html -> report.json."""
    return page.with_suffix(".json") if page.suffix in (".html", ".htm") else page.with_name(f"{page.name}.json")


def sources_of(source: Source | None) -> list[str]:
    """Return the paths that a source names."""
    if source is None:
        return []
    return [fspath(source)] if isinstance(source, str | PathLike) else [fspath(one) for one in source]


def open_board(
    source: Source | xr.Dataset,
    *,
    errors: str = "missing",
    reading: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Return outcomes from logs, from a packaged board's name where no such file exists, or unchanged."""
    if isinstance(source, xr.Dataset):
        return source
    from evalbayes import datasets
    from evalbayes.outcomes import apply_error_policy, combine
    from evalbayes.read import read

    names = sources_of(source)
    if progress is not None:
        progress(f"reading {', '.join(names)}")
    packaged = [name for name in names if name in datasets.names() and not Path(name).exists()]
    logs = [name for name in names if name not in packaged]
    if len(logs) == 1 and not (packaged or Path(logs[0]).exists() or has_magic(logs[0])):
        known = ", ".join(datasets.names())
        raise OutcomesError(f"{logs[0]}: there is no such file, nor a packaged board of that name (there are {known})")
    boards = [apply_error_policy(datasets.load(name), errors) for name in packaged]
    if logs or not names:
        boards.append(read(logs, errors=errors, progress=progress, **(reading or {})))
    return boards[0] if len(boards) == 1 else combine(boards)


def gather(board: xr.Dataset, fit: xr.DataTree, *, seed: int, prob: float) -> Answers:
    """Ask every question on the page."""
    from evalbayes import frequentist, links, posterior
    from evalbayes.comparison import compare
    from evalbayes.outcomes import observed_score

    repeated = bool((board["trials"] > 1).any())
    scored = int((board["trials"] > 0).any("task").sum())
    new: dict[str, Any] = {"tasks": "sampled", "population": population_of(fit), "prob": prob}
    apart = links.apart(board["trials"])
    adjacent = best_set = wins = None
    if board.sizes["config"] > 1 and not apart:
        rank, best = posterior.rank(fit, **new), posterior.top_k(fit, k=1, **new)
        top = posterior.top_k(fit, k=min(TOP, scored), **new)
        if scored > 1:
            adjacent, best_set = posterior.adjacent(fit, **new), posterior.best_set(fit, **new)
            wins = posterior.win_probability(fit, **new)
    else:
        why = apart or "one config: there is nothing to rank it against"
        rank, best, top = (_nothing_to_rank(fit, quantity, prob, why) for quantity in ("rank", "top_k", "top_k"))
    answers = Answers(
        observed=observed_score(board),
        score=posterior.score(fit, **new),
        bootstrap=frequentist.score(board, tasks="sampled", method="two_level_bootstrap", prob=prob, seed=seed),
        rank=rank,
        best=best,
        top=top,
        fixed=posterior.score(fit, tasks="fixed", prob=prob) if repeated else None,
        repetition=tuple(compare(name, fit, board, seed=seed, **new) for name in REPETITION) if repeated else (),
        adjacent=adjacent,
        best_set=best_set,
    )
    if wins is None:
        return answers
    best_first = wins["config"].values[order(answers)][:MOST]
    return replace(answers, wins=wins.sel(config=best_first, opponent=best_first))


def _nothing_to_rank(fit: xr.DataTree, quantity: str, prob: float, why: str) -> xr.Dataset:
    from evalbayes.answer import unknown

    who: Any = {"quantity": quantity, "tasks": "sampled", "configs": "fixed", "method": str(fit.attrs["method"])}
    configs = {"config": fit["observed_data"]["config"].values}
    return unknown(configs, why, prob=prob, **who)


def population_of(fit: xr.DataTree) -> str:
    """Return what new tasks are drawn from: the tasks that were run, reweighted, where the fitted density failed."""
    return "reweighted" if fit.attrs.get("gate") == "failed" else "model"


def reproduce(
    source: Source | None, page: Path, fit: xr.DataTree, *, errors: str, prob: float, reading: Mapping[str, Any]
) -> str:
    """Return the command that makes this page again, or the Python call when the outcomes came from Python."""
    attrs = fit.attrs
    if source is None:
        return f"evalbayes.report(outcomes, {page.name!r}, seed={attrs.get('seed', 0)}, prob={prob:g})"
    options = {"model": attrs.get("model"), "draws": attrs.get("draws"), "seed": attrs.get("seed")}
    words = ["evalbayes", "report", *sources_of(source), "-o", page.name, "--errors", errors, "--prob", f"{prob:g}"]
    words += [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    for name, value in reading.items():
        words += ["--column" if name in ROLES else "--read", f"{name}={_as_typed(value)}"]
    return shlex.join(words)


def _as_typed(value: Any) -> str:
    """Return how an argument of `evalbayes.read` is written on the command line."""
    if isinstance(value, Mapping):
        return ",".join(f"{old}={'' if new is None else new}" for old, new in value.items())
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def content_of(
    facts: Board, answers: Answers, fit: xr.DataTree, seen: xr.Dataset, found: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the numbers of the page, as its JSON file holds them; ``seen`` is what `check.sampler` found."""
    observed = {
        "quantity": "observed",
        "values": [
            {"config": str(name), "estimate": value}
            for name, value in zip(answers.observed.config.values, answers.observed.values.tolist(), strict=True)
        ],
    }
    return {
        "evalbayes_version": __version__,
        "board": asdict(facts) | {"coverage": dict(zip(answers.observed.config.values, facts.coverage, strict=True))},
        "policies": facts.policies(),
        "headline": headline(answers),
        "unresolved": unresolved(answers),
        "findings": list(found),
        "fit": dict(fit.attrs),
        "checks": [asdict(check) for check in checks(seen, fit.attrs, answers.score)],
        "answers": [observed, *map(numbers, answers.all())],
        "comparisons": [numbers(both) for both in answers.repetition],
    }


def render(
    facts: Board,
    answers: Answers,
    fit: xr.DataTree,
    seen: xr.Dataset,
    found: Sequence[str] = (),
    *,
    command: str,
    data: str,
) -> str:
    """Fill the page's template; every name is escaped."""
    import jinja2

    folder = resources.files("evalbayes.report")
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in ("page.html", "page.css")}
    script = (folder / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(texts),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    table, score_axis, rank_axis = rows(answers, facts.coverage)
    return environment.get_template("page.html").render(
        script=script,
        script_hash=f"sha256-{digest}",
        title=Path(facts.source.removeprefix("datasets:")).name or "Board",
        board=facts,
        ranked=bool(answers.rank.estimate.notnull().any()),
        findings=found,
        population=population_of(fit),
        rows=table,
        score_axis=score_axis,
        rank_axis=rank_axis,
        fit=fit.attrs,
        top=int(answers.top.coords["k"]) if "k" in answers.top.coords else TOP,
        level=f"{100 * float(answers.score.ci_prob):g}%",
        bootstrap=str(answers.bootstrap.method.item()).replace("_", "-", 1).replace("_", " "),
        repeated=answers.fixed is not None,
        repetition=repetition(answers),
        headline=headline(answers),
        unresolved=unresolved(answers),
        sure=f"{50 * (1 + float(answers.score.ci_prob)):g}%",
        widths=widths(answers),
        wins=[] if answers.wins is None else lines(answers.wins),
        reasons=reasons(answers),
        checks=checks(seen, fit.attrs, answers.score),
        version=__version__,
        command=command,
        data=data,
    )
