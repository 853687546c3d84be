"""Berkeley Function Calling Leaderboard: ``BFCL_v4_<category>_score.json``, JSON lines of a summary and the failures.

The config is ``model_name`` of the failures, or the folder of the model where nothing failed. The task is the id of the
test, whose beginning is its category: ``<category>_<n>``, ``live_simple_<n>-<function>-<prompt>``,
``memory_kv_<n>-<scenario>-<k>``, ``format_sensitivity_<n>:<format>:<id>``. What passed is only counted: **which tests
passed has to be said with manifest=**. The result file of the same model and category will do, for its lines have the
ids; a manifest of all categories will do too. Numbers of a category alone do not name tests (a model may have been
evaluated on some), so that without a manifest a file with a pass is refused. There is one exception: in the files of
2024, ``<category>_score.json``, an id is the place from 1 to ``total_count``, and the task ``<category>_<id>``.

Where the call of the model broke, its answer is the text "Error during inference: ..." and the leaderboard counts a
failure; here it is an attempt without a score. In the irrelevance categories the same text is a pass (nothing was
called), which the file does not tell from others.

Evidence: ShishirPatil/gorilla berkeley-function-call-leaderboard/bfcl_eval/eval_checker/eval_runner.py (0dc53e31),
bfcl_eval/utils.py (d858a2a9), bfcl/eval_checker/eval_runner.py (02003a62), eval_checker/eval_runner.py (03cd5369, where
an id is a place) and the package bfcl-eval 2026.3.23.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, NoAttempts, Options, from_records, need

SUMMARY = ("accuracy", "correct_count", "total_count")
GROUPS = frozenset(
    {"non_live", "live", "multi_turn", "agentic", "format_sensitivity", "memory", "kv", "vector", "rec_sum"}
)
"""Folders between that of the model and the file."""
BROKEN = "Error during inference"
"""What an answer begins with where the call of the model broke."""
_NAME = re.compile(r"(?:BFCL_v\d+_)?(?P<category>.+)_(?P<kind>score|result)\.json(\.gz)?")


class Failure(NamedTuple):
    """A test in the list: its line, its id as written, what went wrong, and whether there was an answer at all."""

    line: int
    id: str | int
    error: str | None
    broken: bool


def recognises(content: Any, path: Path) -> bool:
    """Whether a first line is a summary, or an answer in a file of results."""
    if not isinstance(content, dict):
        return False
    if {*SUMMARY} <= content.keys():
        return True
    return {"id", "result"} <= content.keys() and path.name.startswith("BFCL_") and "_result.json" in path.name


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a score file; see `evalbayes.read.attempts`.

    ``options.manifest`` names the tests that were evaluated, perhaps with those of other categories.

    Raises
    ------
    NoAttempts
        If nothing was evaluated, or this is a file of results, which says nothing of scores.
    OutcomesError
        If tests passed and no manifest names them, the manifest has more or fewer tests than were evaluated, or the
        list is not as long as the summary says.
    """
    lines = iter([(1, content)] if isinstance(content, dict) else content)
    first, summary = next(lines, (1, {}))
    if "result" in summary and "accuracy" not in summary:
        raise NoAttempts(f"{path}: these are answers; read the score file, with this one as manifest=")
    place = f"{path}, line {first}"
    correct, total = need(summary, "correct_count", int, place), need(summary, "total_count", int, place)
    accuracy = need(summary, "accuracy", (int, float), place)
    failures, model, category = _failures(lines, path)
    if len(failures) != total - correct:
        counts = f"{total - correct} of {total} tests failed and {len(failures)} are listed"
        raise OutcomesError(f"{place}: {counts}; the list is cut short or of another file, write it again")
    passed = _passed(failures, category, total, correct, options.manifest, path)
    config = model or _folder(path)
    broken = sum(one.broken for one in failures)
    return from_records(
        [
            *({**_row(config, category, _task(one.id, category), 0), **_unscored(one)} for one in failures),
            *(_row(config, category, name, 1) for name in passed),
        ],
        [*(f"line {one.line}" for one in failures), *(f"{name}, not in its list" for name in passed)],
        path,
        rule="failures are listed",
        header={config: {"successes": correct, "trials": total, "rate": accuracy}},
        notes=_notes(summary, broken, category, path),
    )


def _failures(lines: Iterable[tuple[int, Any]], path: Path) -> tuple[list[Failure], str | None, str]:
    """The tests in the list, each once, with the model and the category that it names."""
    found: dict[str, Failure] = {}
    models: dict[str, None] = {}
    match = _NAME.fullmatch(path.name)
    categories: dict[str, None] = {}
    for line, row in lines:
        place = f"{path}, line {line}"
        name = need(row, "id", (str, int), place)
        if need(row, "valid", bool, place) if "valid" in row else False:
            raise OutcomesError(f"{place}: {name} is valid, in a list of failures; write the file again")
        found.setdefault(str(name), Failure(line, name, _error(row), _is_broken(row)))
        models[need(row, "model_name", str, place)] = None
        categories[need(row, "test_category", str, place)] = None
        if len(models) > 1 or len(categories) > 1:
            several = words.shown(models if len(models) > 1 else categories)
            raise OutcomesError(f"{place}: {several} in one file, where one is expected; write a file for each")
    if not (categories or match):
        raise OutcomesError(f"{path}: its name does not say the category; call it BFCL_v4_<category>_score.json")
    return list(found.values()), next(iter(models), None), next(iter(categories), match["category"] if match else "")


def _error(row: Mapping[str, Any]) -> str | None:
    """What went wrong: older and single-turn failures say it beside the error, others in it."""
    error = row.get("error")
    found = row.get("error_type") or (error.get("error_type") if isinstance(error, Mapping) else None)
    return str(found) if found else None


def _is_broken(row: Mapping[str, Any]) -> bool:
    answer = row.get("model_result_raw", row.get("model_result"))
    return isinstance(answer, str) and answer.startswith(BROKEN)


def _folder(path: Path) -> str:
    parents = (folder.name for folder in path.absolute().parents)
    return next((name for name in parents if name not in GROUPS), path.name)


def _passed(
    failures: Sequence[Failure],
    category: str,
    total: int,
    correct: int,
    manifest: Sequence[str] | None,
    path: Path,
) -> list[str]:
    """The tests that passed: those of the category that are not in the list."""
    failed = {_task(one.id, category) for one in failures}
    if correct == 0:
        return []
    if failures and all(isinstance(one.id, int) for one in failures):
        names = [_task(i, category) for i in range(1, total + 1)]
        source = f"ids from 1 to {total}"
    elif manifest is None:
        result = path.name.replace("_score", "_result")
        counts = f"{correct} of {total} tests passed, and only those that failed are named"
        raise OutcomesError(f"{path}: {counts}; name all with manifest=, such as the result file {result}")
    else:
        names, source = [name for name in manifest if category_of(name) == category], "manifest"
    if len(names) != total:
        counts = f"{total} tests were evaluated, and the manifest has {len(names)} of category {category}"
        raise OutcomesError(f"{path}: {counts}; give those that were, such as the ids of the result file")
    if strange := sorted(failed - set(names)):
        raise OutcomesError(f"{path}: {words.shown(strange, 3)} failed and is not in the {source}; correct one of them")
    return [name for name in names if name not in failed]


def category_of(name: str) -> str:
    """Return the category that the id of a test begins with.

    >>> [category_of(name) for name in ("simple_python_12", "live_simple_19-3-15", "format_sensitivity_0:x:simple_2")]
    ['simple_python', 'live_simple', 'format_sensitivity']
    """
    return name.partition(":")[0].rpartition("_")[0]


def _task(name: str | int, category: str) -> str:
    return name if isinstance(name, str) else f"{category}_{name}"


def _row(config: str, category: str, task: str, outcome: int) -> dict[str, Any]:
    return {"config": config, "task": task, "run": "1", "outcome": outcome, "status": "ok", "suite": category}


def _unscored(failure: Failure) -> dict[str, Any]:
    told = {"outcome": None, "status": "error"} if failure.broken else {}
    return {"error_type": failure.error, **told}


def _notes(summary: Mapping[str, Any], broken: int, category: str, path: Path) -> list[str]:
    said = []
    correct, total, accuracy = (summary[key] for key in ("correct_count", "total_count", "accuracy"))
    if total and abs(accuracy - correct / total) > 1e-6:
        said.append(f"its summary says accuracy {accuracy:g} and {correct} of {total}")
    if broken:
        said.append(f"{broken} calls of the model broke, which the leaderboard counts as failures: no score here")
    if "irrelevance" in category and correct:
        said.append("a call of the model that broke is a pass in this category, and is not told from others")
    return [f"{path.name}: {sentence}" for sentence in said]
