"""The leaderboards of the SWE-bench site, ``leaderboards.json``: published rates, and instances where there are any.

``leaderboards[].results[]`` are entries: the config is ``name``, and ``per_instance_details`` its attempts, instance to
``resolved``, ``cost`` and ``api_calls``. The published rate, ``resolved`` in percent, is the column ``published``, a
proportion with the decimals it was printed with. Which leaderboard is read is for ``part`` to say.

Evidence: SWE-bench/swe-bench.github.io data/leaderboards.json (0c77a6cb, bdcd3ddd), data/info_for_leaderboard.json
(81430ddc) and data/combine_per_instance_details.py (193160a4), which writes the details into the entries;
data/leaderboard_statistics.py (6f74bfa7) for ``n_instances`` and ``resolved_se``.
"""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from evalbayes.errors import OutcomesError
from evalbayes.read.attempts import Attempts, Options, from_records, need, pick
from evalbayes.read.swe_bench import repository
from evalbayes.tallies import Columns

FACTS = ("date", "folder", "agent", "reasoning_effort", "model_release_date", "mini-swe-agent_version", "checked")
"""Fields of an entry that are kept under their names."""
COSTS = ("cost", "instance_cost", "instance_calls")
"""Fields that are kept with ``entry_`` before them: they are of the whole entry."""
TAGS = {"Model": "model", "Org": "org"}
ATTEMPTS = "System: Attempts - "
COLUMNS: Columns = {
    "config": "config",
    "task": "task",
    "run": "run",
    "outcome": "outcome",
    "status": "status",
    "published": "published",
}


def recognises(content: Any, path: Path) -> bool:
    """Whether a document is a list of leaderboards."""
    boards = content.get("leaderboards") if isinstance(content, dict) else content
    return (
        isinstance(boards, list)
        and bool(boards)
        and isinstance(boards[0], dict)
        and isinstance(boards[0].get("name"), str)
        and isinstance(boards[0].get("results"), list)
    )


def attempts(content: Any, path: Path, options: Options) -> Attempts:
    """Return the attempts of one leaderboard; see `evalbayes.read.attempts`.

    ``options.part`` is the name of the leaderboard, needed where there are several.

    Raises
    ------
    NoAttempts
        If no entry has results by instance.
    OutcomesError
        If the leaderboard has to be chosen, or an entry is damaged.
    """
    entries, name = _board(content, path, options.part)
    records: list[dict[str, Any]] = []
    places: list[str] = []
    skipped: list[tuple[str, str]] = []
    header: dict[str, dict[str, Any]] = {}
    for i, entry in enumerate(entries, 1):
        place = f"leaderboard {name}, entry {i}"
        config = need(entry, "name", str, f"{path}, {place}")
        rate = _proportion(entry, "resolved", f"{path}, {place} ({config})")
        details = entry.get("per_instance_details")
        if not details:
            skipped.append((config, f"no results by instance, published rate {rate or 'none'}"))
            continue
        about = {"config": config, "published": rate, **_facts(entry)}
        for instance in need(entry, "per_instance_details", dict, f"{path}, {place} ({config})"):
            records.append({**about, **_row(details, instance, f"{path}, {place} ({config}), {instance}")})
            places.append(f"{place} ({config}), {instance}")
        header |= _header(entry, config, f"{path}, {place} ({config})")
    rule = f"resolved, of the leaderboard {name!r}"
    made = from_records(records, places, path, rule=rule, skipped=skipped, header=header)
    columns = {role: column for role, column in COLUMNS.items() if column in made.rows}
    return made._replace(columns=columns)  # type: ignore[arg-type]


def _board(content: Any, path: Path, part: str | None) -> tuple[list[Any], str]:
    boards = need(content, "leaderboards", list, str(path)) if isinstance(content, dict) else content
    if not isinstance(boards, list):
        raise OutcomesError(f"{path}: neither leaderboards nor a list of them; check the file")
    names = [need(board, "name", str, f"{path}, leaderboard {i}") for i, board in enumerate(boards, 1)]
    name = pick(names, part, "part", "leaderboards", str(path))
    if names.count(name) > 1:
        raise OutcomesError(f"{path}: {names.count(name)} leaderboards are called {name!r}; rename one in the file")
    return need(boards[names.index(name)], "results", list, f"{path}, leaderboard {name}"), name


def _proportion(entry: Mapping[str, Any], key: str, place: str) -> str | None:
    """A percentage as a proportion, in text: 65.0 is 0.650."""
    if entry.get(key) is None:
        return None
    return format(Decimal(str(need(entry, key, (int, float), place))).scaleb(-2), "f")


def _facts(entry: Mapping[str, Any]) -> dict[str, Any]:
    facts = {key: entry.get(key) for key in FACTS if isinstance(entry.get(key), str | int | float)}
    tags = entry.get("tags")
    tags = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    for start, column in TAGS.items():
        found = [tag.removeprefix(f"{start}: ") for tag in tags if tag.startswith(f"{start}: ")]
        facts |= {column: ", ".join(found)} if found else {}
    attempted = [tag.removeprefix(ATTEMPTS) for tag in tags if tag.startswith(ATTEMPTS)]
    cost = {f"entry_{key}": entry[key] for key in COSTS if isinstance(entry.get(key), int | float)}
    return facts | ({"attempts": attempted[0]} if attempted else {}) | cost


def _row(details: Mapping[str, Any], instance: str, place: str) -> dict[str, Any]:
    detail = details[instance]
    resolved = need(detail, "resolved", (bool, type(None)), place)
    return {
        "task": instance,
        "run": "1",
        "outcome": None if resolved is None else int(resolved),
        "status": "error" if resolved is None else "ok",
        "repository": repository(instance),
        "cost": detail.get("cost"),
        "api_calls": detail.get("api_calls"),
    }


def _header(entry: Mapping[str, Any], config: str, place: str) -> dict[str, dict[str, Any]]:
    figures: dict[str, Any] = {}
    if type(entry.get("n_instances")) is int:
        figures["trials"] = entry["n_instances"]
    if error := _proportion(entry, "resolved_se", place):
        figures["se"] = error
    return {config: figures} if figures else {}
