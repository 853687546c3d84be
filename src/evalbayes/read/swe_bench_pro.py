"""SWE-bench Pro: ``eval_results.json``, instance to whether it was resolved, and ``infra_errors.json`` beside it.

The config is the folder's name, the task the instance with its repository as a column. Newer evaluations write the
instances that never ran to a file of their own, instance to what went wrong: those are attempts without a score. Older
ones counted them, and any instance without test output, as not resolved, which the file does not tell apart.

Evidence: scaleapi/SWE-bench_Pro-os swe_bench_pro_eval.py (0875a8af), which writes both files;
traj/claude-sonnet-4-paper/eval_results.json (70ad75d8) for the names of instances and folders.
"""

import re
from pathlib import Path
from typing import Any

from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, Options, from_records

INFRA = "infra_errors.json"
_INSTANCE = re.compile(r"(instance_)?(?P<owner>[^_].*?)__(?P<name>.+?)-([0-9a-f]{7,40}(-v\w+)?|\d+)")


def recognises(content: Any, path: Path) -> bool:
    """Whether every key is the name of an instance and every value a boolean, or a message of infra_errors.json."""
    kind = str if path.name.removesuffix(".gz") == INFRA else bool
    return (
        isinstance(content, dict)
        and bool(content)
        and all(isinstance(value, kind) for value in content.values())
        and all(_INSTANCE.fullmatch(name) for name in content)
    )


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of one evaluation; see `evalbayes.read.attempts`.

    Raises
    ------
    NoAttempts
        If there is no instance.
    OutcomesError
        If a value is neither true nor false.
    """
    if not isinstance(content, dict):
        raise OutcomesError(f"{path}: a {type(content).__name__} where instances with true or false are expected")
    infra = path.name.removesuffix(".gz") == INFRA
    config = path.absolute().parent.name
    records = [{"config": config, **_row(name, value, path, infra=infra)} for name, value in content.items()]
    return from_records(records, list(content), path, rule="resolved")


def repository(instance: str) -> str | None:
    """Return the repository that an instance's name says.

    >>> repository("instance_element-hq__element-web-6205c70462e0ce2e1e77afb3a70b55d0fdfe1b31-vnan")
    'element-hq/element-web'
    """
    match = _INSTANCE.fullmatch(instance)
    return f"{match['owner']}/{match['name']}" if match else None


def _row(name: str, value: Any, path: Path, *, infra: bool) -> dict[str, Any]:
    if not isinstance(value, str if infra else bool):
        kind = "a message" if infra else "true or false"
        raise OutcomesError(f"{path}, {name}: {value!r} is not {kind}; check the file")
    return {
        "task": name,
        "run": "1",
        "outcome": None if infra else int(value),
        "status": "error" if infra else "ok",
        "repository": repository(name),
    }
