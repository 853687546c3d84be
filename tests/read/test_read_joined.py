"""Rows of several files as one board: what is one run, one attempt, one task, one config; boards saved and joined."""

import json
import os

import numpy as np
import pytest

from evalbayes import OutcomesError, outcomes, read

HEADER = "config,task,run,outcome\n"


@pytest.fixture
def files(tmp_path):
    """Write files into a folder and return it."""

    def files(**contents):
        for name, text in contents.items():
            (tmp_path / name.replace("__", ".")).write_text(text)
        return tmp_path

    return files


def tau2(*runs, **info):
    about = {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "d"}, **info}
    keys = ("id", "task_id", "trial")
    simulations = [dict(zip(keys, run, strict=False)) | {"reward_info": {"reward": run[3]}} for run in runs]
    return json.dumps({"timestamp": "2026-01-01", "info": about, "simulations": simulations})


# -- copies, attempts, runs


def test_files_of_the_same_bytes_are_runs_where_the_file_is_the_run(files):
    rows = "config,task,outcome\na,t,1\na,u,0\n"
    folder = files(r1__csv=rows, r2__csv=rows, r3__csv=rows)
    assert read(folder, run="source_file").trials.values.tolist() == [[3, 3]]
    assert read(folder, config=["config", "source_file"]).sizes["config"] == 3


def test_a_tables_own_source_file_is_kept_beside_the_name_of_the_file(files):
    own = "config,task,run,outcome,source_file\na,t,1,1,s1\na,t,1,1,s2\n"
    folder = files(a__csv=own, b__csv=HEADER + "b,t,1,1\n")
    with pytest.raises(OutcomesError, match="with another source_file"):
        read(folder)
    assert read(folder, shard="source_file").sel(config="a").trials.item() == 2


def test_a_blank_attempt_is_before_the_numbered_ones_and_10_after_2(files):
    rows = "config,task,run,attempt,outcome,status\na,t,1,,,error\na,t,1,10,1,ok\na,t,1,2,0,ok\n"
    assert read(files(a__csv=rows)).successes.item() == 0


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_attempts_1_and_1_0_are_one(files, order):
    rows = ["a,t,1,1,1", "a,t,1,1.0,0"]
    text = "config,task,run,attempt,outcome\n" + "\n".join(rows[i] for i in order) + "\n"
    with pytest.raises(OutcomesError, match="too, with another outcome"):
        read(files(a__csv=text))


@pytest.mark.parametrize("names", [("", ""), ("x", "x"), (None, None)])
def test_trials_whose_id_is_blank_or_repeats_are_runs(files, names):
    board = read(files(r__json=tau2((names[0], "1", 0, 1.0), (names[1], "1", 1, 1.0))))
    assert board.trials.item() == 2


def test_a_simulation_that_is_in_two_files_counts_once(files):
    runs = [(f"id{i}", str(i), 0, 1.0) for i in range(4)]  # four rows: as many as there are facts of a copy
    board = read(files(a__json=tau2(*runs), b__json=tau2(*runs, ("id9", "9", 0, 0.0))))
    assert board.trials.values.tolist() == [[1] * 5]
    assert board.attrs["n_duplicates_dropped"] == 4


def test_columns_of_a_table_are_no_identities(files):
    rows = "config,task,run,outcome,_uuid,_invocation\na,t,1,1,x,i\na,t,2,1,x,j\n"
    assert read(files(a__csv=rows)).trials.item() == 2


# -- versions and names


def test_versions_are_told_apart_over_all_files(files):
    rows = "config,task,outcome,task_version\n"
    folder = files(
        a__csv=rows + "a,t,1,1\n",
        b__csv="config,task,run,outcome,task_version\nb,t,1,1,2\n",
        c__csv=rows + "c,t,0,3\n",
    )
    assert sorted(read(folder).task.values) == ["t@1", "t@2", "t@3"]


def test_a_task_that_is_called_like_a_version_is_refused(files):
    rows = "config,task,outcome,task_version\na,t,1,1\na,t,0,2\na,t@1,1,\n"
    with pytest.raises(OutcomesError, match="'t@1' is there, and is the name of a version"):
        read(files(a__csv=rows))


def test_the_file_may_be_the_config(files):
    folder = files(a__csv=HEADER + "m,t,1,1\n", b__csv=HEADER + "m,t,1,0\n")
    assert read(folder, config="source_file").config.values.tolist() == ["a.csv", "b.csv"]


def test_a_column_that_is_there_twice_or_under_two_names(files):
    twice = "config,task,outcome,x,x\na,t,1,1,2\n"
    named = "model,task,outcome,config_\nb,t,0,big\n"
    board = read(files(a__csv=twice, b__csv=named))
    assert board.successes.values.tolist() == [[1], [0]]


# -- measures, saved boards


def test_measures_of_boards_joined_are_those_of_one_reading(files):
    head = "config,task,run,outcome,cost\n"
    folder = files(a__csv=head + "a,t,1,1,1\na,u,1,0,1\n", b__csv=head + "b,t,1,1,2\nb,u,1,0,\n")
    whole = read(folder)
    parts = outcomes.combine([read(folder / "a.csv"), read(folder / "b.csv")])
    assert whole.cost.dims == ("config", "task")
    np.testing.assert_array_equal(whole.cost, [[1, 1], [2, np.nan]])
    np.testing.assert_array_equal(parts.cost, whole.cost)
    mixed = read(files(c__csv="config,task,outcome,cost\nc,t,1,5\n"))
    assert mixed.cost.sel(config="c", task="t").item() == 5


def test_measures_weigh_each_attempt_once_whatever_the_policy(files):
    head = "config,task,run,outcome,status,cost\n"
    folder = files(a__csv=head + "a,t,1,1,ok,1\na,t,2,,error,1\n", b__csv=head + "a,t,3,1,ok,4\na,t,4,1,ok,4\n")
    for errors in ("missing", "failure"):
        boards = [read(folder / name, errors=errors) for name in ("a.csv", "b.csv")]
        assert outcomes.combine(boards).cost.item() == 2.5


@pytest.mark.parametrize("name", ["run", "errors", "published", "x/y", "file"])
def test_a_measure_needs_a_name_that_a_board_can_have(files, name):
    folder = files(a__csv=f"config,task,outcome,{name}\na,t,1,3\n")
    how = {"run": ""} if name == "run" else {"published": ""} if name == "published" else {}
    with pytest.raises(OutcomesError, match=f"measures: '{name}' is no name"):
        read(folder, measures=[name], **how)


def test_a_board_of_several_files_comes_back_and_joins_others(files, tmp_path_factory):
    head = "config,task,run,outcome,cost\n"
    folder = files(a__csv=head + "a,t,1,1,1\nb,t,1,0,2\n", b__csv=head + "a,u,1,1,3\nb,u,1,1,4\n")
    (folder / "c.csv").write_text(head + "c,u,1,1,5\n")
    board = read([folder / "a.csv", folder / "b.csv"])
    path = tmp_path_factory.mktemp("saved") / "ab.nc"
    outcomes.save(board, path)
    again = outcomes.load(path)
    assert set(again.data_vars) == set(board.data_vars)
    assert again.equals(board)
    joined = read([path, folder / "c.csv"])
    short = [name.rpartition("/")[2] for name in joined.file.values]
    names = [[short[i] if i >= 0 else "" for i in row] for row in joined.source_file.values]
    assert names == [["a.csv", "b.csv"], ["a.csv", "b.csv"], ["", "c.csv"]]
    np.testing.assert_array_equal(joined.cost, [[1, 3], [2, 4], [np.nan, 5]])


# -- what lies around


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("LICENSE", b"Apache License\nVersion 2.0, January 2004\n"),
        ("Makefile", b"test:\n\tpytest\n"),
        ("photo.bmp", b"BM\xff\xfe\x00"),
        ("picture.jpg", b"\xff\xd8"),
        ("prices.csv", b"item,price\nx,1\n"),
        ("events.jsonl", b'{"event": "start"}\n'),
        ("empty", b""),
    ],
)
def test_what_is_no_log_is_passed_over_in_a_folder_and_an_error_where_named(files, name, content):
    folder = files(a__csv=HEADER + "a,t,1,1\n")
    (folder / name).write_bytes(content)
    board = read(folder)
    assert board.trials.item() == 1
    assert name in board.attrs["skipped"]
    with pytest.raises(OutcomesError):
        read(folder / name)


def test_a_glob_follows_no_links_back_and_passes_over_those_that_lead_nowhere(files):
    folder = files(a__csv=HEADER + "a,t,1,1\n")
    for name in ("one", "two"):
        os.symlink(folder, folder / name)
    os.symlink(folder / "nowhere.csv", folder / "b.csv")
    assert read(f"{folder}/**").trials.item() == 1
    assert read(f"{folder}/*.csv").trials.item() == 1


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"threshold": "x"}, "give a number"),
        ({"outcome_map": [1]}, "give a mapping"),
        ({"config_map": {"a": 3}}, "new names are text"),
        ({"config": 3}, "give the name of a column"),
        ({"manifest": 3}, "give a file, or the names"),
    ],
)
def test_arguments_of_another_kind_are_named(files, how, said):
    with pytest.raises(ValueError, match=said):
        read(files(a__csv=HEADER + "a,t,1,1\n"), **how)


def test_a_long_manifest_is_checked_in_no_time(files):
    names = [f"task-{i}" for i in range(100_000)]
    folder = files(a__csv=HEADER + "a,task-7,1,1\n")
    assert read(folder, manifest=names).sizes["task"] == 100_000


def test_an_inspect_log_in_gzip_says_what_to_do(files):
    import gzip

    folder = files(a__csv=HEADER)
    path = folder / "log.json.gz"
    path.write_bytes(gzip.compress(b'{"version": 2, "status": "success", "eval": {"model": "m"}}'))
    with pytest.raises(OutcomesError, match="gunzip it first"):
        read(path)


def test_a_saved_board_that_is_there_twice_counts_once(files):
    folder = files(a__csv=HEADER + "a,t,1,1\n")
    outcomes.save(read(folder / "a.csv"), folder / "one.nc")
    (folder / "a.csv").unlink()
    (folder / "two.nc").write_bytes((folder / "one.nc").read_bytes())
    board = read(folder)
    assert board.trials.item() == 1
    assert board.attrs["skipped"] == "two.nc: a copy of one.nc"
