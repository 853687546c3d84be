"""Berkeley Function Calling Leaderboard: ``BFCL_v4_<category>_score.json``, JSON lines of a summary and the failures.

The config is the folder of the model, the task the id of the test, which begins with its category:
``<category>_<n>``, ``live_simple_<n>-<function>-<prompt>``, ``memory_kv_<n>-<scenario>-<k>``,
``format_sensitivity_<n>:<format>:<test>``. What passed is only counted. Which tests were evaluated, and so which
passed, is in the answers, ``BFCL_v4_<category>_result.json``: read from beside the scores or, as the evaluator lays its
files out, from under ``result/`` where the scores are under ``score/``. Else ``manifest=`` has to name them, perhaps
with those of other categories. Without either a file with a pass is refused, for a model may have been evaluated on
some of the tests, and the numbers in the ids of live tests are not to be guessed.

Until January 2025 (pull request 893) an id in the list of failures was the place of the test, from 1. With the ids of
the tests at hand it is the test at that place; without, the task is ``<category>#<place>``, which is no id.

Where the call of the model broke, its answer is the text "Error during inference: ...". The leaderboard counts a
failure and, in the irrelevance categories (nothing was called), a pass. Here it is an attempt without a score; a pass
of that kind is only to be told with the answers at hand.

Evidence: ShishirPatil/gorilla berkeley-function-call-leaderboard/bfcl_eval/eval_checker/eval_runner.py (0dc53e31),
bfcl_eval/utils.py (d858a2a9), bfcl/eval_checker/eval_runner.py (02003a62: a broken call of several turns is listed
twice), eval_checker/eval_runner.py (03cd5369: places), the package bfcl-eval 2026.3.23, and the files of
bbrowning/bfcl-vllm-results, results/2025-11-12-harmony-fixes-2 (f98223ae) and results/2025-11-12-main (604075f7).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read import rows
from evalbayes.read.attempts import Attempts, NoAttempts, Options, from_records, need

SUMMARY = ("accuracy", "correct_count", "total_count")
GROUPS = frozenset(
    {"non_live", "live", "multi_turn", "agentic", "format_sensitivity", "memory", "kv", "vector", "rec_sum"}
)
"""Folders between that of the model and the file."""
BROKEN = "Error during inference"
"""What an answer begins with where the call of the model broke."""
_NAME = re.compile(r"(?:BFCL_v\d+_)?(?P<category>.+)_(?P<kind>score|result)\.json(\.gz)?")
_NUMBER = re.compile(r"_(\d+)(-.*)?$")


class Failure(NamedTuple):
    """A test in the list: its line, its id as written, what went wrong, and whether there was no answer at all."""

    line: int
    id: str | int
    error: str | None
    broken: bool


class Listed(NamedTuple):
    """The list of failures, each test once, with the category and the model that it names."""

    failures: list[Failure]
    category: str
    model: str | None


Facts = dict[str, Any]


def recognises(content: Any, path: Path) -> bool:
    """Whether a first line is a summary, alone or in a file of its name, or an answer in a file of answers."""
    if not isinstance(content, dict):
        return False
    match = _NAME.fullmatch(path.name)
    if {*SUMMARY} <= content.keys():
        return len(content) == len(SUMMARY) or (match is not None and match["kind"] == "score")
    answers = match is not None and match["kind"] == "result" and path.name.startswith("BFCL_")
    return answers and {"id", "result"} <= content.keys()


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a score file; see `evalbayes.read.attempts`.

    ``options.manifest`` names the tests that were evaluated, where the answers are not at hand.

    Raises
    ------
    NoAttempts
        If nothing was evaluated, or this is a file of answers, which says nothing of scores.
    OutcomesError
        If tests passed and nothing names them, what names them is of more or fewer tests than were evaluated, or the
        list is not as long as the summary says.
    """
    lines = iter([(1, content)] if isinstance(content, dict) else content)  # all passed: a summary alone
    first, summary = next(lines, (1, {}))
    if "result" in summary and "accuracy" not in summary:
        raise NoAttempts(f"{path}: these are answers; read the score file, which takes the ids of the tests from here")
    place = f"{path}, line {first}"
    correct, total = (need(summary, key, int, place) for key in ("correct_count", "total_count"))
    need(summary, "accuracy", (int, float), place)
    listed = _listed(lines, path)
    if correct < 0 or len(listed.failures) != total - correct:
        counts = f"{total - correct} of {total} tests failed and {len(listed.failures)} are listed"
        raise OutcomesError(f"{place}: {counts}; the list is cut short or of another file, write it again")
    answers = _answers(path)
    failed, passed = _named(listed, total, answers, options.manifest, path)
    config = _folder(path)
    about = {"config": config, "suite": listed.category, "model": listed.model}
    scored = [*((name, 0, one.broken, one.error) for name, one in failed.items())]
    scored += [(name, 1, answers.get(name, {}).get("broken", False), None) for name in passed]
    records = [{**about, **_row(*one, answers.get(one[0], {}))} for one in scored]
    return from_records(
        records,
        [*(f"line {one.line}" for one in failed.values()), *(f"{name}, not in its list" for name in passed)],
        path,
        rule="failures are listed",
        header=_header(summary, config, sum(record["outcome"] == 1 for record in records)),
        notes=[f"{path.name}: {said}" for said in _notes(summary, listed, scored, answers, config)],
    )


def _listed(lines: Iterator[tuple[int, Any]], path: Path) -> Listed:
    found: dict[str, Failure] = {}
    models: dict[str, None] = {}
    categories: dict[str, None] = {}
    for line, row in lines:
        place = f"{path}, line {line}"
        name = need(row, "id", (str, int), place)
        if need(row, "valid", bool, place) if "valid" in row else False:
            raise OutcomesError(f"{place}: {name} is valid, in a list of failures; write the file again")
        answer = row.get("model_result_raw", row.get("model_result"))
        found.setdefault(str(name), Failure(line, name, _error(row), _is_broken(answer)))
        models[need(row, "model_name", str, place)] = None
        categories[need(row, "test_category", str, place)] = None
        if len(models) > 1 or len(categories) > 1:
            several = words.shown(models if len(models) > 1 else categories)
            raise OutcomesError(f"{place}: {several} in one file, where one is expected; write a file for each")
    match = _NAME.fullmatch(path.name)
    if not (categories or match):
        raise OutcomesError(f"{path}: its name does not say the category; call it BFCL_v4_<category>_score.json")
    category = next(iter(categories), match["category"] if match else "")
    return Listed(list(found.values()), category, next(iter(models), None))


def _error(row: Mapping[str, Any]) -> str | None:
    """What went wrong: failures of one turn say it beside the error, others in it."""
    error = row.get("error")
    found = row.get("error_type") or (error.get("error_type") if isinstance(error, Mapping) else None)
    return str(found) if found else None


def _is_broken(answer: Any) -> bool:
    return isinstance(answer, str) and answer.startswith(BROKEN)


def _answers(path: Path) -> dict[str, Facts]:
    """What the file of answers says of each test; empty where it is not at hand."""
    found = next((one for one in _places_of_answers(path) if one.is_file()), None)
    answers: dict[str, Facts] = {}
    for line, row in rows.objects(found) if found else ():
        name = str(need(row, "id", (str, int), f"{found}, line {line}"))
        tokens = [_total(row.get(key)) for key in ("input_token_count", "output_token_count")]
        answers[name] = {
            "broken": _is_broken(row.get("result")),
            "tokens": None if None in tokens else sum(filter(None, tokens)),
            "time": _total(row.get("latency")),
        }
    return answers


def _places_of_answers(path: Path) -> Iterator[Path]:
    """Beside the scores, or in the tree of results beside that of scores."""
    name = path.name.replace("_score.json", "_result.json")
    if name == path.name:
        return
    yield path.parent / name
    for folder in path.absolute().parents:
        if folder.name.startswith("score"):
            results = folder.with_name(folder.name.replace("score", "result", 1))
            yield results / path.absolute().parent.relative_to(folder) / name
            return


def _total(value: Any) -> float | None:
    """The sum of a count, or of those of turns and steps; None where one is no number."""
    if isinstance(value, list):
        parts = [_total(part) for part in value]
        return None if None in parts else sum(filter(None, parts))
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _folder(path: Path) -> str:
    parents = (folder.name for folder in path.absolute().parents)
    return next((name for name in parents if name and name not in GROUPS), path.name)


def _named(
    listed: Listed, total: int, answers: Mapping[str, Facts], manifest: Sequence[str] | None, path: Path
) -> tuple[dict[str, Failure], list[str]]:
    """The failures by the names of their tests, and the names of those that passed."""
    failures = listed.failures
    lists = {"the file of answers": list(answers), "the manifest": list(manifest or ())}
    of_category = {
        what: [name for name in names if category_of(name) == listed.category] for what, names in lists.items()
    }
    source = next((what for what, names in of_category.items() if len(names) == total), "")
    tests = of_category.get(source, [])
    if failures and all(isinstance(one.id, int) for one in failures):
        tests = sorted(tests, key=_number) or [f"{listed.category}#{i}" for i in range(1, total + 1)]
        places = dict(enumerate(tests, 1))
        failed = {places.get(int(one.id), ""): one for one in failures}
        source = source or f"places from 1 to {total}"
    else:
        failed = {str(one.id): one for one in failures}
    if not tests and len(failures) < total:
        given = [f"{what} has {len(of_category[what])}" for what, names in lists.items() if names]
        raise OutcomesError(f"{path}: {_unnamed(given, total, total - len(failures), listed.category, path)}")
    known = set(tests or failed)
    if strange := [one for name, one in failed.items() if name not in known]:
        raise OutcomesError(
            f"{path}, line {strange[0].line}: test {strange[0].id} is not in {source}; correct one of them"
        )
    return failed, [name for name in tests if name not in failed]


def _unnamed(given: Sequence[str], total: int, passed: int, category: str, path: Path) -> str:
    """Why it cannot be told which tests passed, and what to do."""
    if given:
        counts = f"{total} tests of category {category} were evaluated, and {' and '.join(given)}"
        return f"{counts}; name those that were evaluated with manifest="
    beside = [f"put the file of answers, {one.name}, beside it, or " for one in _places_of_answers(path)][:1]
    counts = f"{passed} of {total} tests passed, and only those that failed are named"
    return f"{counts}; {''.join(beside)}name all tests with manifest="


def category_of(name: str) -> str:
    """Return the category that the id of a test begins with.

    >>> [category_of(name) for name in ("simple_python_12", "live_simple_19-3-15", "format_sensitivity_0:x:simple_2")]
    ['simple_python', 'live_simple', 'format_sensitivity']
    """
    return name.partition(":")[0].rpartition("_")[0]


def _number(name: str) -> int:
    """The number of a test within its category, by which the evaluator sorts."""
    match = _NUMBER.search(name.partition(":")[0])
    return int(match[1]) if match else 0


def _row(name: str, outcome: int, broken: bool, error: str | None, facts: Mapping[str, Any]) -> dict[str, Any]:
    parts = name.split(":")
    return {
        "task": name,
        "run": "1",
        "outcome": None if broken else outcome,
        "status": "error" if broken else "ok",
        "error_type": error,
        "cluster": parts[2] if len(parts) == 3 else None,  # one test asked for in many formats
        "tokens": facts.get("tokens"),
        "time": facts.get("time"),
    }


def _header(summary: Mapping[str, Any], config: str, passes: int) -> dict[str, dict[str, Any]]:
    """The summary's own figures, unless it counts passes that are none."""
    if passes != summary["correct_count"]:
        return {}
    accuracy = float(summary["accuracy"])
    rate = {"rate": accuracy} if 0 <= accuracy <= 1 else {}
    return {config: {"successes": passes, "trials": summary["total_count"], **rate}}


def _notes(
    summary: Mapping[str, Any],
    listed: Listed,
    scored: Sequence[tuple[str, int, bool, str | None]],
    answers: Mapping[str, Facts],
    config: str,
) -> list[str]:
    said = []
    correct, total, accuracy = (summary[key] for key in ("correct_count", "total_count", "accuracy"))
    if total and abs(accuracy - correct / total) > 1e-6:
        said.append(f"its summary says accuracy {accuracy:g} and {correct} of {total}")
    if listed.model not in (None, config):
        said.append(f"its failures are of model {listed.model}, its folder is {config}, which is the config")
    if broken := [outcome for _, outcome, broken, _ in scored if broken]:
        as_counted = f"{len(broken) - sum(broken)} as failures" + f", {sum(broken)} as passes" * any(broken)
        said.append(
            f"{len(broken)} calls of the model broke and have no score here; the leaderboard counts {as_counted}"
        )
    if "irrelevance" in listed.category and correct and not answers:
        said.append("a call of the model that broke is a pass in this category, to be told only with the answers")
    if any("#" in name for name, *_ in scored):
        said.append("its ids are places, so tests are named by place; with the ids of all they would get theirs")
    return said
