"""What was read: coverage, errors and the policies behind every number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.report.words import ERRORS, percent


@dataclass(frozen=True)
class Board:
    """The facts of a board that a report prints; counts are of cells, runs and attempts."""

    source: str
    configs: int
    tasks: int
    cells: int
    scored: int
    runs: str
    trials: int
    errors: int
    policy: str
    score_rule: str
    reader: str
    provenance: str
    coverage: np.ndarray

    @property
    def covered(self) -> str:
        """The share of cells with a scored run, never rounded up to all of them."""
        return _floored(self.scored / self.cells)

    @property
    def coverage_line(self) -> str:
        """Coverage in words, with the worst config when any is incomplete."""
        said = f"{self.scored:,} of {self.cells:,} cells (config × task) have a scored run: {self.covered}"
        partial = int((self.coverage < 1).sum())
        if not partial:
            return said
        entries = "1 config lacks" if partial == 1 else f"{partial} configs lack"
        return f"{said}; {entries} some tasks, the worst is scored on {_floored(float(self.coverage.min()))} of them"

    @property
    def error_line(self) -> str:
        """The error policy in words, with the number of attempts it concerns."""
        return (
            f"errors={self.policy}: {ERRORS.get(self.policy, 'policy not recorded')} ({self.errors:,} errored attempts)"
        )

    def policies(self) -> list[str]:
        """Return the lines that every printed table carries."""
        return [f"source: {self.source}", self.error_line, f"coverage: {self.coverage_line}"]


def _floored(share: float) -> str:
    return percent(np.floor(1000 * share + 1e-9) / 1000)


def board_of(counts: xr.Dataset, attrs: Mapping[Any, Any]) -> Board:
    """Collect the facts from ``trials`` and ``errors`` over (config, task) and the attributes of outcomes or a fit."""
    trials = counts["trials"].transpose("config", "task").values
    scored = trials > 0
    low, high = (int(trials[scored].min()), int(trials[scored].max())) if scored.any() else (0, 0)
    return Board(
        source=str(attrs.get("source") or "not recorded"),
        configs=trials.shape[0],
        tasks=trials.shape[1],
        cells=trials.size,
        scored=int(scored.sum()),
        runs=str(low) if low == high else f"{low} to {high}",
        trials=int(trials.sum()),
        errors=int(counts["errors"].sum()),
        policy=str(attrs.get("error_policy", "not recorded")),
        score_rule=str(attrs.get("score_rule") or "not recorded"),
        provenance=str(attrs.get("provenance", "")),
        reader=str(attrs.get("reader") or "not recorded"),
        coverage=scored.mean(axis=1),
    )


def policies_of(board: xr.Dataset) -> list[str]:
    """Return what is printed with every table of a board: its source, error policy and coverage."""
    return board_of(board, board.attrs).policies()


def how_read(described: xr.Dataset) -> list[str]:
    """Return what a person needs to check a reading, from `outcomes.describe`: what was found, counted and left out."""
    facts = described.attrs
    size = f"{facts['n_configs']:,} configs × {facts['n_tasks']:,} tasks, {facts['n_trials']:,} scored runs"
    if facts["error_policy"] == "failure":
        size += f" and {facts['n_errors']:,} errors that count as failures"
    empty = f"{facts['n_cells_empty']:,} of {facts['n_cells']:,} cells empty"
    cells = f"{facts['n_cells_single_run']:,} with one run, {facts['n_cells_repeated']:,} with more"
    said = {
        "reader": facts["reader"],
        "score": facts["score_rule"],
        "columns": facts["column_rule"],
        "new names": facts["name_rule"],
        "runs": facts["run_rule"],
        "attempts": facts["attempt_rule"] and f"{facts['attempt_rule']}; {facts['n_attempts_set_aside']:,} set aside",
        "duplicates": facts["duplicate_rule"]
        and f"{facts['duplicate_rule']}; {facts['n_duplicates_dropped']:,} copies dropped",
        "board": f"{size}; {empty}, {cells} (at most {facts['max_trials']:,})",
    }
    lines = [f"{name}: {text}" for name, text in said.items() if text]
    lines += [f"left out: {line}" for line in facts["skipped"].splitlines()]
    lines += [f"not used: {facts['ignored_columns']}"] * bool(facts["ignored_columns"])
    return lines + [f"note: {line}" for line in facts["notes"].splitlines()]


def findings(described: xr.Dataset) -> list[str]:
    """Return what a reader should know before the numbers, from `outcomes.describe`."""
    facts = described.attrs
    said = []
    if facts.get("near_duplicate_names"):
        said.append(f"Names that may be one and the same were kept apart: {facts['near_duplicate_names']}.")
    said += facts.get("notes", "").splitlines()
    said += [f"Left out: {line}." for line in facts.get("skipped", "").splitlines()]
    if facts.get("n_attempts_set_aside"):
        said.append(f"{facts['n_attempts_set_aside']:,} further attempts were set aside: {facts['attempt_rule']}.")
    if facts.get("n_scores_overruled_by_status"):
        said.append(f"{facts['n_scores_overruled_by_status']:,} scores are of attempts that errored, and do not count.")
    if facts.get("n_duplicates_dropped"):
        said.append(f"{facts['n_duplicates_dropped']:,} identical rows were dropped.")
    if facts.get("n_tasks_unscored"):
        said.append(f"{facts['n_tasks_unscored']:,} tasks have no scored run at all and say nothing.")
    if facts.get("ignored_columns"):
        said.append(f"Columns that were not used: {facts['ignored_columns']}.")
    same = facts.get("n_tasks_all_pass", 0), facts.get("n_tasks_all_fail", 0)
    if any(same):
        said.append(f"{same[0]:,} tasks were passed and {same[1]:,} failed by every run: they order no entries.")
    return said
