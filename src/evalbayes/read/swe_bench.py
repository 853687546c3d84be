"""SWE-bench reports: which instances were resolved, as the harness lists them, and the older lists of its experiments.

The config is the name of the file, ``<model>.<run_id>.json`` as the harness writes it, whole: a dot in a model's name
is not to be told from the one before the run. ``config="model", run="run_id"`` splits at the last dot. Of a file with a
name that says nothing (``results.json``) it is the folder's. The task is the instance, its repository a column.

=========================================================  ============================================
list                                                       an instance in it
=========================================================  ============================================
``resolved_ids``, ``resolved``                             passed
``unresolved_ids``, ``empty_patch_ids``                    failed
``no_generation``, ``no_apply``                            failed: no patch, or one that does not apply
``error_ids``                                              no score: the harness did not grade it
``no_logs``, ``install_fail``, ``reset_failed``,           no score
``test_errored``, ``test_timeout``
``incomplete_ids``                                         a task without an attempt
=========================================================  ============================================

Where no list says what failed, it is what was graded (``applied``, ``completed_ids``) or, where there is no such list,
what else is in the manifest.

Evidence: SWE-bench/SWE-bench swebench/harness/reporting.py (09749dc0), the packages swebench 1.1.0, 2.0.0, 3.0.0 and
5.0.2, and analysis/get_results.py of the experiments repository (in liauto-siada/SWE-bench-experiments, c14f62e5).
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbayes import words
from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, Options, from_records, need

PASSED, FAILED, UNSCORED = (1, "ok"), (0, "ok"), (None, "error")
LISTS: Mapping[str, tuple[int | None, str]] = {
    "resolved_ids": PASSED,
    "unresolved_ids": FAILED,
    "empty_patch_ids": FAILED,
    "error_ids": UNSCORED,
    "resolved": PASSED,
    "no_generation": FAILED,
    "no_apply": FAILED,
    "no_logs": UNSCORED,
    "install_fail": UNSCORED,
    "reset_failed": UNSCORED,
    "test_errored": UNSCORED,
    "test_timeout": UNSCORED,
}
GRADED = ("applied", "completed_ids")
"""Lists of what was graded, whatever became of it."""
WITH_RESOLVED = ("no_generation", "no_logs", "generated", "with_logs", "applied", "no_apply")
"""Lists of which at least one is beside ``resolved`` in the older form."""
COUNTS = ("submitted", "completed", "incomplete", "resolved", "unresolved", "empty_patch", "error")
"""The header gives ``<count>_instances`` beside the list ``<count>_ids``."""
NAMELESS = frozenset({"results", "result", "report", "final_report", "eval_results", "output.report"})
"""Names of files and folders that do not name a config."""
_INSTANCE = re.compile(r"(?P<owner>.+?)__(?P<name>.+)-\d+")


def recognises(content: Any, path: Path) -> bool:
    """Whether a document is a report of the harness, or the older lists."""
    if not isinstance(content, dict) or "results" in content:
        return False
    if isinstance(content.get("resolved_ids"), list):
        others = {*LISTS, *GRADED, "submitted_ids"} - {"resolved_ids"}
        return any(isinstance(content.get(key), list) for key in others)
    resolved = content.get("resolved")
    if not isinstance(resolved, list):
        return False
    alone = bool(resolved) and all(isinstance(name, str) and repository(name) for name in resolved)
    return alone or any(isinstance(content.get(key), list) for key in WITH_RESOLVED)


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of a report; see `evalbayes.read.attempts`.

    ``options.manifest`` names all tasks, where the report lists only the solved ones.

    Raises
    ------
    NoAttempts
        If nothing was submitted.
    OutcomesError
        If a list is missing or damaged, an instance is in two of them, or a manifest is needed.
    """
    older = isinstance(content, dict) and "resolved" in content and "resolved_ids" not in content
    need(content, "resolved" if older else "resolved_ids", list, str(path))
    lists = {key: _ids(content, key, path) for key in LISTS if key in content}
    graded = set(_ids(content, "applied", path)) if "applied" in content else set()
    for key in ("test_errored", "test_timeout"):  # the harness of 2024 went on to grade some of these
        lists = {**lists, key: [name for name in lists[key] if name not in graded]} if key in lists else lists
    incomplete = _ids(content, "incomplete_ids", path) if "incomplete_ids" in content else []
    found = _apart({**lists, "incomplete_ids": incomplete}, path)
    outcome = {key: LISTS[key] for key in lists}
    if "unresolved_ids" not in lists:
        source, rest = _rest(content, found, options.manifest, path)
        lists[source], outcome[source] = rest, FAILED
        found |= dict.fromkeys(rest, source)
    left = _left(content, found, path)
    if "generated" in content:
        lists["generated"], outcome["generated"] = left, UNSCORED
    config = config_of(path)
    reasons = content.get("failure_reasons")
    records, places = [], []
    for key, names in lists.items():
        for i, name in enumerate(names, 1):
            records.append({**config, **_row(name, *outcome[key], reasons)})
            places.append(f"{key}, entry {i}")
    return from_records(
        records,
        places,
        path,
        rule="resolved",
        tasks=[*incomplete, *(options.manifest or ())],
        skipped=[] if "generated" in content else [(name, "submitted, but in no list of outcomes") for name in left],
        header=_header(content, config["config"]),
        notes=_notes(content, lists, path),
    )


def config_of(path: Path) -> dict[str, str]:
    """Return the config that a file is of, and the model and run where the name of the file has both.

    >>> config_of(Path("gpt-4.1.first.json"))
    {'config': 'gpt-4.1.first', 'model': 'gpt-4.1', 'run_id': 'first'}
    >>> config_of(Path("20240402_agent/results/results.json"))
    {'config': '20240402_agent'}
    """
    stem = re.sub(r"(\.json)?(\.gz)?$", "", path.name)
    if stem not in NAMELESS:
        model, _, run_id = stem.rpartition(".")
        return {"config": stem} | ({"model": model, "run_id": run_id} if model and run_id else {})
    folders = [folder.name for folder in path.absolute().parents if folder.name not in NAMELESS]
    return {"config": folders[0] or stem}


def repository(instance: str) -> str | None:
    """Return the repository that an instance's name begins with.

    >>> repository("scikit-learn__scikit-learn-14087"), repository("task-1")
    ('scikit-learn/scikit-learn', None)
    """
    match = _INSTANCE.fullmatch(instance)
    return f"{match['owner']}/{match['name']}" if match else None


def _row(name: str, outcome: int | None, status: str, reasons: Any) -> dict[str, Any]:
    return {
        "task": name,
        "run": "1",
        "outcome": outcome,
        "status": status,
        "repository": repository(name),
        "failure_reason": reasons.get(name) if isinstance(reasons, Mapping) else None,
    }


def _ids(content: Any, key: str, path: Path) -> list[str]:
    names = need(content, key, list, str(path))
    for i, name in enumerate(names, 1):
        if not isinstance(name, str) or not name.strip():
            raise OutcomesError(f"{path}, {key}, entry {i}: {name!r} is not the id of an instance; check the file")
    return list(names)


def _apart(lists: Mapping[str, Sequence[str]], path: Path) -> dict[str, str]:
    """The list that each instance is in, which must be one, once."""
    found: dict[str, str] = {}
    for key, names in lists.items():
        for name in names:
            if name in found:
                where = f"in {key} twice" if found[name] == key else f"in {found[name]} and in {key}"
                raise OutcomesError(f"{path}: {name} is {where}; an instance has one outcome, correct the file")
            found[name] = key
    return found


def _rest(content: Any, found: Mapping[str, str], manifest: Sequence[str] | None, path: Path) -> tuple[str, list[str]]:
    """Instances that were graded and are in no list of outcomes, with the list that says so."""
    for key in GRADED:
        if key in content:
            return key, [name for name in _ids(content, key, path) if name not in found]
    if manifest is None:
        raise OutcomesError(f"{path}: no list says which tasks failed, only which were solved; name all with manifest=")
    return "manifest", [name for name in manifest if name not in found]


def _left(content: Any, found: Mapping[str, str], path: Path) -> list[str]:
    """Instances with a prediction and no outcome."""
    key = "generated" if "generated" in content else "submitted_ids"
    return [name for name in _ids(content, key, path) if name not in found] if key in content else []


def _header(content: Mapping[str, Any], config: str) -> dict[str, dict[str, int]]:
    of = {"successes": "resolved_instances", "trials": "submitted_instances", "errors": "error_instances"}
    figures = {name: content[key] for name, key in of.items() if type(content.get(key)) is int}
    return {config: figures} if figures else {}


def _notes(content: Mapping[str, Any], lists: Mapping[str, Sequence[str]], path: Path) -> list[str]:
    said = []
    for count in COUNTS:
        stated, listed = content.get(f"{count}_instances"), content.get(f"{count}_ids")
        if type(stated) is int and isinstance(listed, list) and stated != len(listed):
            said.append(f"{path.name}: its header says {stated} {count}, its list has {len(listed)}")
    known = {name for names in lists.values() for name in names} | set(content.get("incomplete_ids") or ())
    total = content.get("total_instances")
    if type(total) is int and total != len(known):
        said.append(f"{path.name}: its header says {total} instances, its lists name {len(known)}")
    if (absent := content.get("incomplete_ids")) and type(total) is int and isinstance(absent, list):
        solved = len(lists.get("resolved_ids", ()))
        said.append(
            f"{path.name}: {len(absent)} of {total} instances were not submitted and are tasks without an attempt; the "
            f"harness counts them as unresolved ({solved}/{total})"
        )
    if errors := lists.get("error_ids"):
        said.append(
            f"{path.name}: {len(errors)} instances have no score, which for this harness may also be a patch that "
            "does not apply or tests that ran too long; errors='failure' counts them as failures"
        )
    infra = content.get("infra_failure_ids")
    failed = set(lists.get("unresolved_ids", ()))
    if flagged := [name for name in infra if name in failed] if isinstance(infra, list) else []:
        said.append(
            f"{path.name}: {words.shown(flagged, 3)} failed where the environment may have; they count as "
            "failures, as in the harness"
        )
    return said
