"""Boards joined by name."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from evalbayes import OutcomesError, outcomes, simulate

COUNTS = ["successes", "trials", "errors"]


def one(config: str, results: dict[str, int], run: str | None = None) -> xr.Dataset:
    table = pd.DataFrame({"config": config, "task": list(results), "outcome": list(results.values())})
    if run:
        table["run"] = run
    return outcomes.from_table(table, outcome="outcome", run="run" if run else None, source=f"{config} {run or ''}")


def test_case_17_boards_join_by_task_name_not_by_position():
    a = one("a", {"task-1": 1, "task-2": 0, "task-3": 1, "task-4": 1})
    b = one("b", {"task-4": 1, "task-3": 0, "task-2": 0, "task-1": 1})
    board = outcomes.combine([a, b])
    first, second = board.successes.sel(config="a"), board.successes.sel(config="b")
    assert int(((first == 1) & (second == 0)).sum()) == 1  # by position it would be 2
    assert int(((first == 0) & (second == 1)).sum()) == 0  # by position it would be 1


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.randoms())
def test_a_board_taken_apart_and_combined_is_the_board(seed, random):
    board = simulate.board(3, 5, 2, seed=seed, missing=0.2, errors=0.2)
    parts = [board.isel(config=[c], task=[t]) for c in range(3) for t in range(5)]
    random.shuffle(parts)
    again = outcomes.combine(parts).reindex_like(board)
    assert (
        again[[*COUNTS, "outcome"]].reset_coords(drop=True).equals(board[[*COUNTS, "outcome"]].reset_coords(drop=True))
    )
    assert again.true_task_effect.equals(board.true_task_effect)


def test_cells_in_two_boards_are_refused_or_added():
    a, b = one("m", {"t": 1, "u": 0}), one("m", {"u": 1, "v": 1})
    with pytest.raises(OutcomesError, match=r"config 'm', task 'u' is in .* overlap='add'"):
        outcomes.combine([a, b])
    assert outcomes.combine([a, b], overlap="add").trials.values.tolist() == [[1, 2, 1]]


def test_runs_of_other_names_join_and_of_one_name_are_refused_or_added():
    first, second = one("m", {"t": 1}, "1"), one("m", {"t": 0}, "2")
    joined = outcomes.combine([first, second])
    assert joined.outcome.sel(config="m", task="t").to_series().to_dict() == {"1": 1, "2": 0}
    with pytest.raises(OutcomesError, match="overlap='add'"):
        outcomes.combine([first, first])
    added = outcomes.combine([first, first], overlap="add")
    assert added.run.values.tolist() == ["1/1", "2/1"]
    assert added.trials.item() == 2


def test_errors_and_policy_are_carried():
    boards = [
        outcomes.from_counts([[1]], [[2]], configs=[c], tasks=["t"], errors=[[1]], error_policy="failure") for c in "ab"
    ]
    both = outcomes.combine(boards)
    assert both.trials.values.tolist() == [[3], [3]]
    assert both.attrs["error_policy"] == "failure"
    with pytest.raises(OutcomesError, match="failure, missing differ"):
        outcomes.combine([boards[0], outcomes.apply_error_policy(boards[1], "missing")])


def test_coords_are_merged_by_name_and_dropped_where_boards_disagree():
    a = one("a", {"t": 1}).assign_coords(repo=("task", ["x"]), date=("config", ["1"]), size=("task", [2.0]))
    b = one("b", {"u": 1, "t": 0}).assign_coords(repo=("task", ["y", "x"]), size=("task", [3.0, 4.0]))
    both = outcomes.combine([a, b])
    assert both.repo.values.tolist() == ["x", "y"]
    assert both.date.values.tolist() == ["1", ""]
    assert "size" not in both.coords
    assert both.attrs["ignored_columns"] == "size"


def test_published_rates_are_merged():
    a = one("a", {"t": 1}).assign(published=("config", [0.5]))
    both = outcomes.combine([a, one("b", {"t": 1})])
    np.testing.assert_array_equal(both.published.values, [0.5, np.nan])
    with pytest.raises(OutcomesError, match="different rates"):
        outcomes.combine([a, one("a", {"u": 1}).assign(published=("config", [0.6]))])


def test_variants_of_a_name_in_two_boards_are_warned_of():
    with pytest.warns(UserWarning, match="'model-a', 'vendor/model-a'"):
        assert outcomes.combine([one("model-a", {"t": 1}), one("vendor/model-a", {"t": 1})]).sizes["config"] == 2


def test_nothing_to_combine_and_unknown_rules_are_refused():
    with pytest.raises(OutcomesError, match="no board"):
        outcomes.combine([])
    with pytest.raises(OutcomesError, match="overlap"):
        outcomes.combine([one("a", {"t": 1})], overlap="mean")  # type: ignore[arg-type]
