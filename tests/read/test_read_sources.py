"""Files, folders and globs: what is found, how files are joined, what is passed over, and where each row is from."""

import json
import os

import numpy as np
import pytest

from evalbayes import OutcomesError, outcomes, read
from evalbayes.read.manifest import read_manifest
from evalbayes.read.sources import find

HEADER = "config,task,run,outcome\n"


@pytest.fixture
def folder(tmp_path):
    """Two logs in folders, and what lies beside logs."""
    for name, text in {
        "a/one.csv": HEADER + "x,t,1,1\nx,u,1,0\n",
        "b/two.jsonl": '{"config": "y", "task": "t", "run": 1, "outcome": true}\n',
        "README.md": "# logs",
        "package.json": '{"name": "logs"}',
        ".hidden/three.csv": HEADER + "z,t,1,1\n",
        "a/.four.csv": HEADER + "z,t,1,1\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_folder_is_every_log_in_it_and_says_what_it_passed_over(folder):
    board = read(folder)
    assert board.config.values.tolist() == ["x", "y"]
    assert board.task.values.tolist() == ["t", "u"]
    assert board.trials.values.tolist() == [[1, 1], [1, 0]]
    assert board.source_file.values.tolist() == ["a/one.csv", "b/two.jsonl"]
    assert board.attrs["reader"] == "table (csv): 1 file, table (jsonl): 1 file"
    assert board.attrs["source"] == folder.name
    assert board.attrs["n_files"] == 2
    skipped = board.attrs["skipped"].splitlines()
    assert "README.md" in skipped[0]
    assert "no known format" in skipped[1]
    assert "package.json" in skipped[1]


@pytest.mark.parametrize("pattern", ["*/*", "**/*.csv", "**", "a", "b/two.jsonl"])
def test_globs_and_single_files_find_what_they_say(folder, pattern):
    found = {"*/*": "xy", "**/*.csv": "x", "**": "xy", "a": "x", "b/two.jsonl": "y"}[pattern]
    assert read(f"{folder}/{pattern}").config.values.tolist() == list(found)


def test_several_sources_are_one_board_and_none_counts_twice(folder):
    board = read([folder / "a", folder / "a" / "one.csv", f"{folder}/b/*"])
    assert board.trials.values.tolist() == [[1, 1], [1, 0]]
    assert [file.name for file in find([folder / "b", folder / "a" / "one.csv"])] == ["b/two.jsonl", "a/one.csv"]


def test_a_link_that_goes_round_ends(folder):
    os.symlink(folder, folder / "a" / "round")
    assert read(folder).config.values.tolist() == ["x", "y"]


def test_a_broken_log_in_a_folder_is_an_error_and_not_passed_over(folder):
    (folder / "c.csv").write_text(HEADER + "z,t,1,maybe\n")
    with pytest.raises(OutcomesError, match=r"c\.csv, line 2: outcome 'maybe'"):
        read(folder)


def test_a_folder_of_no_logs_says_so(tmp_path):
    (tmp_path / "README.md").write_text("x")
    with pytest.raises(OutcomesError, match=r"no log that can be read here; README\.md: a \.md file is no log"):
        read(tmp_path)
    with pytest.raises(OutcomesError, match="there is no source"):
        read([])


def test_a_pickle_is_never_opened(tmp_path):
    """Its bytes would run a command; the named file is refused by its name and by its content."""
    payload = b"cposix\nsystem\n(S'touch " + str(tmp_path / "ran").encode() + b"'\ntR."
    for name in ("x.pkl", "x.pickle", "x", "x.json"):
        (tmp_path / name).write_bytes(payload)
        with pytest.raises(OutcomesError):
            read(tmp_path / name)
    assert not (tmp_path / "ran").exists()


def test_no_network_is_used(folder, monkeypatch):
    import socket

    def refuse(*_, **__):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    assert read(folder).sizes["config"] == 2


# -- one run, several files


def test_case_8_a_conflict_between_files_names_both(tmp_path):
    (tmp_path / "1.csv").write_text(HEADER + "m,t,1,1\n")
    (tmp_path / "2.csv").write_text(HEADER + "m,t,1,0\n")
    with pytest.raises(OutcomesError, match=r"2\.csv, line 2: config 'm', .* is on .*1\.csv, line 2 too"):
        read(tmp_path)
    assert read(tmp_path, duplicates="first").successes.item() == 1
    assert read(tmp_path, duplicates="last").successes.item() == 0
    assert read(tmp_path, shard="source_file").trials.item() == 2
    kept = read(tmp_path, duplicates="last")
    assert kept.attrs["n_duplicates_dropped"] == 1
    assert kept.attrs["duplicate_rule"] == "rows of one run that differ: last"
    with pytest.raises(ValueError, match="duplicates='mean' is unknown; use 'raise', 'first', 'last'"):
        read(tmp_path, duplicates="mean")


def test_case_9_runs_that_restart_in_each_file_are_not_dropped_as_copies(tmp_path):
    for name, outcome in (("s1", 1), ("s2", 0)):
        (tmp_path / f"{name}.csv").write_text(HEADER + f"m,t,1,1\nm,t,2,{outcome}\n")
    with pytest.raises(OutcomesError, match=r"with another source_file; .*shard='source_file'"):
        read(tmp_path)
    board = read(tmp_path, shard="source_file")
    assert (board.successes.item(), board.trials.item()) == (3, 4)


def test_case_17_files_are_joined_by_task_and_never_by_position(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "a,task-1,1,1\na,task-2,1,0\na,task-3,1,1\na,task-4,1,1\n")
    (tmp_path / "b.csv").write_text(HEADER + "b,task-2,1,0\nb,task-1,1,1\nb,task-3,1,1\nb,task-4,1,0\n")
    first, second = read(tmp_path).successes.values
    assert (int((first > second).sum()), int((first < second).sum())) == (1, 0)


def test_columns_of_other_names_meet_under_their_role(tmp_path):
    (tmp_path / "a.csv").write_text("model,task_id,passed,seed\nm,t,yes,1\n")
    (tmp_path / "b.csv").write_text("agent,instance_id,resolved,run,model\nn,t,false,1,big\n")
    board = read([tmp_path / "a.csv"])
    assert board.config.values.tolist() == ["m"]
    with pytest.raises(OutcomesError, match=r"b\.csv: columns agent, model could each be the config"):
        read(tmp_path)
    (tmp_path / "b.csv").write_text("agent,instance_id,resolved,run,config_\nn,t,false,1,big\n")
    board = read(tmp_path)
    assert board.config.values.tolist() == ["m", "n"]
    assert board.successes.values.tolist() == [[1], [0]]
    assert board.trials.values.tolist() == [[1], [1]]


def test_counts_and_runs_in_one_folder_are_combined(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "a,t,1,1\n")
    (tmp_path / "b.csv").write_text("config,task,successes,trials\nb,t,3,5\n")
    board = read(tmp_path)
    assert board.successes.values.tolist() == [[1], [3]]
    assert board.trials.values.tolist() == [[1], [5]]
    assert [board.file.values[i] for i in board.source_file.values[:, 0]] == ["a.csv", "b.csv"]


def test_a_saved_board_joins_logs_and_keeps_its_files(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "a,t,1,1\n")
    (tmp_path / "b.csv").write_text(HEADER + "b,t,1,0\n")
    outcomes.save(read([tmp_path / "a.csv", tmp_path / "b.csv"]), tmp_path / "ab.nc")
    (tmp_path / "c.csv").write_text(HEADER + "c,u,1,1\n")
    board = read([tmp_path / "ab.nc", tmp_path / "c.csv"])
    names = [[board.file.values[i] if i >= 0 else "" for i in row] for row in board.source_file.values]
    found = dict(zip(board.config.values, names, strict=True))
    assert found == {"a": ["a.csv", ""], "b": ["b.csv", ""], "c": ["", "c.csv"]}


# -- attempts, measures, manifest


ATTEMPTS = "config,task,run,attempt,outcome,status\n"


def test_the_first_scored_attempt_of_a_run_counts(write):
    rows = ["a,t,1,1,,timeout", "a,t,1,2,0,ok", "a,t,1,3,1,ok", "a,u,1,1,1,ok", "a,v,1,10,0,ok", "a,v,1,9,,error"]
    path = write(ATTEMPTS + "\n".join(rows) + "\n")
    board = read(path)
    assert board.successes.values.tolist() == [[0, 1, 0]]
    assert board.trials.values.tolist() == [[1, 1, 1]]
    assert board.errors.sum().item() == 0
    assert board.attrs["n_attempts_set_aside"] == 3
    best = read(path, attempts="best")
    assert best.successes.values.tolist() == [[1, 1, 0]]
    assert best.attrs["attempt_rule"] == "the best attempt of a run counts"
    runs = read(path, attempts="runs")
    assert runs.trials.values.tolist() == [[2, 1, 1]]
    assert runs.errors.values.tolist() == [[1, 0, 1]]


def test_attempts_none_of_which_has_a_score_are_one_error(write):
    board = read(write(ATTEMPTS + "a,t,1,1,,error\na,t,1,2,,error\n"))
    assert (board.trials.item(), board.errors.item()) == (0, 1)


def test_attempts_that_say_two_things_are_refused(write):
    with pytest.raises(OutcomesError, match=r"line 3: config 'a', .* is on line 2 too, with another outcome"):
        read(write(ATTEMPTS + "a,t,1,1,0,ok\na,t,1,1,1,ok\n"))


def test_attempts_alone_are_no_runs_unless_they_are_called_so(write):
    path = write("config,task,attempt,outcome\na,t,1,0\na,t,2,1\n")
    assert read(path).trials.item() == 1
    assert read(path, run="attempt", attempt="").trials.item() == 2


def test_measures_are_means_of_cells(write):
    text = "config,task,run,outcome,cost,latency_ms\na,t,1,1,0.5,10\na,t,2,0,1.5,20\na,u,1,1,,\nb,t,1,1,2,30\n"
    board = read(write(text))
    assert np.array_equal(board.cost.values, [[1.0, np.nan], [2.0, np.nan]], equal_nan=True)
    assert board.attrs["ignored_columns"] == "latency_ms"
    assert read(write(text), measures=["latency_ms"]).latency_ms.values[0, 0] == 15
    with pytest.raises(OutcomesError, match="no column 'watts'"):
        read(write(text), measures=["watts"])
    again = outcomes.combine([board, read(write(text.replace("a,", "c,").replace("b,", "d,")))])
    assert np.array_equal(again.cost.values[:2], board.cost.values, equal_nan=True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("all.txt", "t\nu\n\nw\n"),
        ("all.json", '["t", "u", "w"]'),
        ("all.json", '[{"instance_id": "t"}, {"instance_id": "u"}, {"instance_id": "w"}]'),
        ("all.jsonl", '{"task_id": "t"}\n{"task_id": "u"}\n{"task_id": "w"}\n'),
        ("all.csv", "id,x\nt,1\nu,2\nw,3\n"),
    ],
)
def test_a_manifest_names_all_tasks(folder, tmp_path_factory, name, text):
    path = tmp_path_factory.mktemp("manifest") / name
    path.write_text(text)
    board = read(folder, manifest=path)
    assert board.task.values.tolist() == ["t", "u", "w"]
    assert board.trials.values.tolist() == [[1, 1, 0], [1, 0, 0]]
    assert read_manifest(path) == ("t", "u", "w")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "empty"),
        ("t\nt\n", "'t' is in the manifest twice"),
        ('[{"x": 1}]', "none of task"),
        ("[[1]]", "not the name"),
    ],
)
def test_a_manifest_that_is_none_is_refused(folder, write, text, fault):
    with pytest.raises(OutcomesError, match=fault):
        read(folder, manifest=write(text, "all.txt"))


def test_a_task_beyond_the_manifest_is_named(folder):
    with pytest.raises(OutcomesError, match=r"one\.csv, line 3: task 'u' is not in the manifest"):
        read(folder, manifest=["t"])
    with pytest.raises(OutcomesError, match="there is no such manifest"):
        read(folder, manifest="no.txt")


def test_a_list_of_objects_is_a_table(write):
    rows = [{"config": "a", "task": "001", "outcome": True}, {"config": "a", "task": "1", "outcome": 0.0}]
    board = read(write(json.dumps(rows), "x.json"))
    assert board.task.values.tolist() == ["001", "1"]
    assert board.successes.values.tolist() == [[1, 0]]
    assert board.attrs["reader"] == "table (json)"


def test_letters_of_one_format_are_not_those_of_another(folder, tmp_path):
    """Inspect's N is no answer; in a table it is a word like any other."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.scorer import Score

    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="t", model="m", dataset=EvalDataset(), config=EvalConfig()
    )
    samples = [EvalSample(id="1", epoch=1, input="q", target="a", scores={"s": Score(value="N")})]
    write_eval_log(EvalLog(eval=spec, status="success", samples=samples), str(folder / "log.eval"))
    assert read(folder).sel(config="m", task="t/1").trials.item() == 1
    (folder / "a" / "one.csv").write_text(HEADER + "x,t,1,N\n")
    with pytest.raises(OutcomesError, match=r"one\.csv, line 2: outcome 'N' is not a pass or a fail"):
        read(folder)


def test_a_table_may_have_columns_of_any_name(write):
    text = "config,task,successes,trials,uuid,invocation\na,t,1,2,u1,x\na,u,1,2,u1,x\n"
    board = read(write(text))
    assert board.trials.values.tolist() == [[2, 2]]
    assert {"uuid", "invocation"} <= set(board.coords)


def test_a_manifest_and_new_names_of_tasks(write):
    path = write(HEADER + "a,T1,1,1\n")
    for manifest in (["t1", "t2"], ["T1", "t2"]):
        board = read(path, manifest=manifest, task_map={"T1": "t1"})
        assert sorted(board.task.values) == ["t1", "t2"]
        assert int(board.trials.sum()) == 1


def test_a_format_that_was_named_picks_the_logs_of_a_folder(folder):
    board = read(folder, format="csv")
    assert board.config.values.tolist() == ["x"]
    assert "b/two.jsonl: a log of format jsonl, not csv" in board.attrs["skipped"]


def test_the_same_bytes_of_two_configs_are_two_configs(tmp_path):
    """The config is the folder's name: equal results are no copy of one another."""
    for name in ("m1", "m2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "eval_results.json").write_text(json.dumps({"owner__repo-1": True, "owner__repo-2": False}))
    board = read(tmp_path)
    assert board.config.values.tolist() == ["m1", "m2"]
    assert board.successes.values.tolist() == [[1, 0], [1, 0]]
    (tmp_path / "m1" / "copy.json").write_bytes((tmp_path / "m1" / "eval_results.json").read_bytes())
    again = read(tmp_path)
    assert again.trials.values.tolist() == [[1, 1], [1, 1]]
    assert "a copy of m1/copy.json" in again.attrs["skipped"]


@pytest.mark.parametrize("name", ["score", "field", "filter", "part"])
def test_an_option_that_nothing_takes_is_refused(folder, name):
    with pytest.raises(OutcomesError, match=f"{name}= has no effect on csv, jsonl: takes none of score="):
        read(folder, **{name: "x"})


@pytest.mark.parametrize(
    "how", [{"threshold": 0.5}, {"attempts": "best"}, {"duplicates": "last"}, {"config": "model"}, {"measures": "x"}]
)
def test_a_saved_board_is_not_read_again_under_other_rules(folder, tmp_path_factory, how):
    path = tmp_path_factory.mktemp("saved") / "board.nc"
    outcomes.save(read(folder), path)
    with pytest.raises(OutcomesError, match=f"{next(iter(how))}= has no effect on a saved board"):
        read(path, **how)
    assert read(path, errors="failure").attrs["error_policy"] == "failure"


def test_what_was_decided_is_on_the_board(write):
    path = write("model,question,correct,latency\nGPT,1,yes,3\nb,1,maybe,4\n")
    names = {"GPT": "gpt", "X": "y"}
    board = read(path, task="question", outcome_map={"maybe": None}, config_map=names, measures="latency")
    assert board.attrs["column_rule"] == "task is question, config is model, outcome is correct"
    assert board.attrs["score_rule"] == "1 passes, 0 fails; maybe is None"
    assert board.attrs["name_rule"] == "GPT is gpt, X is y"
    assert board.attrs["notes"] == "config_map: 'X' is the name of no config"
    assert board.latency.values.tolist() == [[3], [4]]


def test_what_is_no_path_is_refused(tmp_path):
    import pandas as pd

    for source in (pd.DataFrame({"config": ["a"]}), 3, [3]):
        with pytest.raises(ValueError, match=r"is no path; .*outcomes\.from_table"):
            read(source)
