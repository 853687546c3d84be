"""Tables to boards: names, coords, counts, means, copies and runs."""

import pandas as pd
import pytest
import xarray as xr

from evalbayes import OutcomesError, outcomes

COUNTS = ("successes", "trials", "errors")


def rows(text: str) -> pd.DataFrame:
    """Text of ``config task run outcome``, one row a line, '-' for a blank."""
    table = [line.split() for line in text.strip().splitlines()]
    return pd.DataFrame(table, columns=["config", "task", "run", "outcome"]).replace("-", "")


def from_runs(text: str, **options: object) -> xr.Dataset:
    return outcomes.from_table(rows(text), run="run", outcome="outcome", **options)


def test_rows_make_the_same_board_in_any_order():
    text = "a t 1 1\na t 2 0\nb t 1 1\nb u 1 -\na u 1 0"
    first = from_runs(text)
    shuffled = from_runs("\n".join(reversed(text.splitlines())))
    assert shuffled.reindex_like(first)[[*COUNTS, "outcome"]].equals(first[[*COUNTS, "outcome"]])


def test_names_of_a_table_are_text_or_whole_numbers():
    table = pd.DataFrame({"config": ["a", "b"], "task": [1, 2], "outcome": [True, False]})
    assert outcomes.from_table(table, outcome="outcome").task.values.tolist() == ["1", "2"]
    for bad, fault in ((1.0, "not text"), (None, "blank"), (True, "not text"), ("1\0", "NUL")):
        table["task"] = pd.Series(["x", bad], dtype=object)
        with pytest.raises(OutcomesError, match=f"table, row 2: .*{fault}"):
            outcomes.from_table(table, outcome="outcome")
    table["task"] = pd.Series([1, "1"], dtype=object)
    with pytest.raises(OutcomesError, match="row 2: task 1 is written as text and as a number"):
        outcomes.from_table(table, outcome="outcome")


def test_other_columns_become_coords_where_they_are_constant():
    table = rows("a t 1 1\na u 1 0\nb t 1 1\nb u 1 0").assign(
        agent=["x", "x", "y", "y"],
        minutes=[1.5, 2.0, 1.5, 2.0],
        repo=["r", None, "r", None],
        tokens=[1, 2, 3, 4],
        bench="same",
        trials="odd",
    )
    board = outcomes.from_table(table, run="run", outcome="outcome")
    assert board.agent.dims == ("config",)
    assert board.bench.dims == ("config",)
    assert board.minutes.values.tolist() == [1.5, 2.0]
    assert board.repo.values.tolist() == ["r", ""]
    assert board.tokens.values.tolist() == [[1, 2], [3, 4]]  # a measure: the mean of each cell
    assert board.attrs["ignored_columns"] == "trials"


def test_counts_of_a_table_and_the_runs_they_count_agree():
    by_run = from_runs("a t 1 1\na t 2 0\na t 3 -\na u 1 1")
    table = pd.DataFrame({"config": "a", "task": ["t", "u"], "k": [1, 1], "n": ["2", "1"], "e": [1, ""]})
    by_cell = outcomes.from_table(table, successes="k", trials="n", error_count="e")
    assert by_cell[[*COUNTS]].equals(by_run[[*COUNTS]].drop_vars("run", errors="ignore"))


@pytest.mark.parametrize(
    ("k", "n", "fault"),
    [("2", "1", "2 successes out of 1 trials"), ("x", "1", "'x'"), ("", "1", "''"), ("1", "1.5", "'1.5'")],
)
def test_counts_of_a_table_are_checked(k, n, fault):
    table = pd.DataFrame({"config": "a", "task": ["t", "u"], "k": ["0", k], "n": ["1", n]})
    with pytest.raises(OutcomesError, match=rf"row 2: .*{fault}"):
        outcomes.from_table(table, successes="k", trials="n")


def test_counts_of_one_cell_on_two_rows_need_a_shard():
    table = pd.DataFrame({"config": "a", "task": "t", "k": [1, 2], "n": [2, 3], "part": ["p", "q"]})
    with pytest.raises(OutcomesError, match=r"config 'a', task 't' is on row 1 too.*shard='part'"):
        outcomes.from_table(table, successes="k", trials="n")
    assert outcomes.from_table(table, successes="k", trials="n", shard="part").trials.item() == 5


def test_case_10_means_of_known_runs_are_counts_and_modes_are_single_runs():
    table = pd.DataFrame(
        {
            "config": ["a", "a", "a", "b", "b"],
            "task": ["t1", "t2", "t3", "t1", "t2"],
            "score": ["0.4", "0.6", "0.5", "0", "1"],
            "epochs": "10",
            "reducer": ["mean"] * 3 + ["mode", "first"],
        }
    )
    board = outcomes.from_table(table, outcome="score", trials="epochs", reducer="reducer")
    assert board.successes.values.tolist() == [[4, 6, 5], [0, 1, 0]]
    assert board.trials.values.tolist() == [[10, 10, 10], [1, 1, 0]]
    assert "outcome" not in board
    for score, epochs, fault in (("0.35", "", "no number of runs"), ("0.35", "10", "not a whole number")):
        odd = pd.DataFrame({"config": "b", "task": ["t3"], "score": [score], "epochs": [epochs], "reducer": "mean"})
        with pytest.raises(OutcomesError, match=fault):
            outcomes.from_table(odd, outcome="score", trials="epochs", reducer="reducer")


def test_runs_with_ids_of_their_own_are_numbered_within_their_cell():
    table = pd.DataFrame(
        {"config": "a", "task": [f"t{i // 2}" for i in range(20)], "run": [f"id{i:02d}" for i in range(20)]}
    ).assign(outcome=[1, 0] * 10)
    board = outcomes.from_table(table, run="run", outcome="outcome")
    assert board.run.values.tolist() == ["1", "2"]
    assert board.outcome.values.tolist() == [[[1, 0]] * 10]
    assert "numbered within each cell" in board.attrs["run_rule"]


def test_without_a_run_column_every_row_is_a_run_and_the_board_says_so():
    board = outcomes.from_table(rows("a t 1 1\na t 1 1").drop(columns="run"), outcome="outcome")
    assert board.trials.item() == 2
    assert "every row is its own run" in outcomes.describe(board).attrs["run_rule"]


def test_several_columns_can_be_the_config():
    table = rows("x t 1 1\nx t 1 0").drop(columns="config").assign(agent=["x", "x"], model=["m", "n"])
    board = outcomes.from_table(table, config=["agent", "model"], run="run", outcome="outcome")
    assert board.config.values.tolist() == ["x + m", "x + n"]
    assert board.model.values.tolist() == ["m", "n"]


def test_a_published_rate_is_one_rate_for_each_config():
    table = rows("a t 1 1\na u 1 0").assign(published=["0.5", "0.5"])
    assert outcomes.from_table(table, outcome="outcome", published="published").published.item() == 0.5
    for rates, fault in ((["0.5", "0.6"], "another published rate"), (["x", "x"], "numeric"), (["50", "50"], "100")):
        with pytest.raises(OutcomesError, match=fault):
            outcomes.from_table(table.assign(published=rates), outcome="outcome", published="published")


@pytest.mark.parametrize(
    "columns",
    [{}, {"outcome": "outcome", "successes": "run"}, {"outcome": "nope"}, {"outcome": "task"}, {"successes": "run"}],
)
def test_columns_that_make_no_table_are_refused(columns):
    with pytest.raises(OutcomesError, match="column"):
        outcomes.from_table(rows("a t 1 1"), **columns)


def test_values_without_a_hash_are_text_and_numbers_too_large_for_an_integer_are_too():
    table = pd.DataFrame({"config": "a", "task": ["t", "u"], "tags": [["x"], {"y": 1}], "size": [2**70, 1]})
    board = outcomes.from_table(table.assign(outcome=[1, 0]), outcome="outcome")
    assert board.tags.values.tolist() == ["['x']", "{'y': 1}"]
    assert board["size"].values.tolist() == [str(2**70), "1"]
    with pytest.raises(OutcomesError, match=r"row 1: outcome .* is not a pass"):
        outcomes.from_table(table, outcome="tags")


@pytest.mark.parametrize("count", ["99999999999999999999", str(10**12), "-1", "1e400"])
def test_counts_too_large_to_add_exactly_are_refused(count):
    table = pd.DataFrame({"config": "a", "task": "t", "k": ["0"], "n": [count]})
    with pytest.raises(OutcomesError, match=r"row 1: n .*whole number below 10\*\*12"):
        outcomes.from_table(table, successes="k", trials="n")


@pytest.mark.parametrize("column", ["a b", " x", "1x", "-", "é", "a/b", ".", "", "x,y", "a\nb", "x" * 300, "successes"])
def test_any_column_name_can_be_saved_as_a_coord_or_is_listed_as_ignored(tmp_path, column):
    table = pd.DataFrame({"config": ["a"], "task": ["t"], "outcome": ["1"], column: ["v"]})
    board = outcomes.from_table(table, outcome="outcome")
    assert outcomes.load(outcomes.save(board, tmp_path / "b.nc")).identical(board)
    assert ("_".join(column.split()) in board.coords) != bool(board.attrs["ignored_columns"])


@pytest.mark.parametrize("score", ["yes", 3, -1, float("nan")])
def test_an_outcome_map_is_checked(score):
    with pytest.raises(OutcomesError, match="outcome_map: 'good' maps to"):
        from_runs("a t 1 good", outcome_map={"good": score})
