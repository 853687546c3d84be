"""What rows of several files are of: copies of one attempt, another config under one name, another version of a task.

Each of these, mixed up, is a wrong number that looks right; so each is told apart, or refused.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from evalbayes.errors import OutcomesError
from evalbayes.tallies import listed

VERSION, UUID, INVOCATION = "task_version", "_uuid", "_invocation"


def without_copies(
    df: pd.DataFrame, place: Callable[[int], str], columns: Mapping[str, Any]
) -> tuple[pd.DataFrame, Callable[[int], str], int]:
    """Rows without those that carry the name of an attempt above and say the same of the same run."""
    if UUID not in df:
        return df, place, 0
    known = df[UUID].notna() & (as_text(df[UUID]).map(len) > 0)
    facts = [UUID, *listed(columns["config"]), columns["task"], *listed(columns.get("run")), columns["outcome"]]
    again = df[facts].apply(as_text).duplicated() & known
    kept = np.flatnonzero(~again.to_numpy())
    return df.iloc[kept].reset_index(drop=True), lambda row: place(int(kept[row])), int(again.sum())


def check_variants(
    df: pd.DataFrame, columns: Mapping[str, Any], place: Callable[[int], str], variants: list[str]
) -> None:
    """Refuse two configs under one name: rows of a cell that differ in what makes a config."""
    there = [name for name in variants if name in df]
    cell = df.groupby([*listed(columns["config"]), columns["task"]], sort=False, dropna=False)
    for name in there:
        text = as_text(df[name].fillna(""))
        first = text.groupby(cell.ngroup()).transform("first")
        other = (text != first).to_numpy()
        if other.any():
            row = int(other.argmax())
            keys = ", ".join(map(repr, [*listed(columns["config"]), name]))
            raise OutcomesError(
                f"{place(row)}: {name} {text[row] or 'none'} where the same config and task have "
                f"{first[row] or 'none'} elsewhere; keep them apart with config=[{keys}], or call them one config with "
                f"config={listed(columns['config'])[0]!r}"
            )


def as_text(column: pd.Series) -> pd.Series:
    """Values as Python text, which holds what pandas' own text cannot, such as a lone surrogate."""
    return pd.Series([str(value) for value in column], index=column.index, dtype=object)


def numbered_invocations(df: pd.DataFrame, columns: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Where a cell was evaluated more than once, each evaluation's number within the cell becomes part of the run."""
    if INVOCATION not in df or "shard" in columns:
        return df, columns
    cell = df.groupby([*listed(columns["config"]), columns["task"]], sort=False, dropna=False).ngroup()
    name = pd.factorize(as_text(df[INVOCATION]).to_numpy(object))[0]
    order = as_text(df[columns["attempt"]]) if "attempt" in columns else pd.Series(np.arange(len(df)), df.index)
    rows = pd.DataFrame({"cell": cell, "when": order.groupby(name).transform("min"), "name": name})
    found = rows.drop_duplicates(["cell", "name"]).sort_values(["cell", "when", "name"])
    found["number"] = found.groupby("cell").cumcount() + 1
    if found["number"].max() == 1:
        return df, columns
    number = rows.merge(found[["cell", "name", "number"]], on=["cell", "name"], how="left")["number"]
    return df.assign(evaluation=number.map(str).to_numpy()), {**columns, "shard": "evaluation"}


def several_versions(frames: Iterable[tuple[pd.DataFrame, str]]) -> set[str]:
    """Return the tasks that are there in more than one version, from rows and the name of their task column."""
    found: dict[str, set[str]] = {}
    for df, column in frames:
        if VERSION in df:
            for task, version in zip(as_text(df[column]), df[VERSION], strict=True):
                if _is_version(version):
                    found.setdefault(task, set()).add(str(version))
    return {task for task, versions in found.items() if len(versions) > 1}


def versions_apart(df: pd.DataFrame, columns: Mapping[str, Any], split: set[str]) -> pd.DataFrame:
    """A task of two versions is two tasks: the names of those in ``split`` end in @version.

    Raises
    ------
    OutcomesError
        If there is a task of such a name already.
    """
    if VERSION not in df or not split:
        return df
    pairs = list(zip(as_text(df[columns["task"]]), df[VERSION], strict=True))
    taken = {task for task, _ in pairs}
    names = [f"{task}@{version}" if task in split and _is_version(version) else task for task, version in pairs]
    if met := sorted({name for name, (task, _) in zip(names, pairs, strict=True) if name != task and name in taken}):
        raise OutcomesError(f"task {met[0]!r} is there, and is the name of a version of another task; use task_map=")
    return df.assign(**{columns["task"]: pd.Series(names, index=df.index, dtype=object)})


def _is_version(version: object) -> bool:
    return version is not None and version == version and version != ""
