"""Reading tables: names as text, words, states, copies, columns, and the real boards."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest

from evalbayes import OutcomesError, outcomes, read
from evalbayes.read import table

HEADER = "config,task,run,outcome\n"


def csv_of(*lines: str, header: str = HEADER) -> str:
    return header + "".join(line + "\n" for line in lines)


# -- names and words


def test_case_19_names_are_text_and_words_are_strict(write):
    lines = ("None,001,1,True", "None,01,1,False", "model-b,001,1,FALSE", "model-b,01,1,yes")
    path = write(csv_of(*lines, "model-b,1e5,1,0", "model-b,NA,1,1"))
    board = read(path)
    assert board.config.values.tolist() == ["None", "model-b"]
    assert board.task.values.tolist() == ["001", "01", "1e5", "NA"]
    assert board.successes.values.tolist() == [[1, 0, 0, 0], [0, 1, 0, 1]]
    assert board.trials.values.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]


@pytest.mark.parametrize("word", ["1", "1.0", "1e0", "true", "TRUE", "Yes", "pass", "Passed", "C", " 1 ", "0.9999999"])
def test_words_that_pass(write, word):
    assert read(write(csv_of(f"a,t,1,{word}"))).successes.item() == 1


@pytest.mark.parametrize("word", ["0", "0.0", "-0.0", "false", "False", "NO", "fail", "failed", "I", "1e-9"])
def test_words_that_fail(write, word):
    board = read(write(csv_of(f"a,t,1,{word}")))
    assert (board.successes.item(), board.trials.item()) == (0, 1)


@pytest.mark.parametrize(
    "word", ["maybe", "nan", "NaN", "None", "null", "inf", "P", "N", "E", "1_0", "½", "1,0", "0x1"]
)
def test_any_other_word_is_refused_with_its_line(write, word):
    path = write(csv_of("a,t,1,1", f'a,u,1,"{word}"'))
    with pytest.raises(OutcomesError, match=r"runs\.csv, line 3: outcome .* outcome_map="):
        read(path)
    board = read(path, outcome_map={word: None})
    assert (board.errors.sum().item(), board.trials.sum().item()) == (1, 1)


def test_case_4_fractional_rewards_need_a_rule(write):
    path = write(csv_of("a,task-1,1,0.5", "a,task-1,2,0.5", "a,task-2,1,1.0", "a,task-2,2,0.9999999"))
    with pytest.raises(OutcomesError, match=r"line 2: outcomes between 0 and 1: 0\.5; .*threshold="):
        read(path)
    assert read(path, threshold=1).successes.values.tolist() == [[0, 2]]
    assert read(path, threshold=0.5).successes.values.tolist() == [[2, 2]]
    for threshold in (0, -1, 1.5, float("nan")):
        with pytest.raises(OutcomesError, match="threshold"):
            read(path, threshold=threshold)


def test_case_6_scores_outside_0_and_1_are_refused_or_mapped(write):
    path = write(csv_of("a,t1,1,2.0", "a,t2,1,1.0", "a,t3,1,0.0", "a,t4,1,-1.0"))
    with pytest.raises(OutcomesError, match=r"line 2: scores outside \[0, 1\]: 2\.0, -1\.0; .*outcome_map="):
        read(path)
    board = read(path, outcome_map={2: 1, 1: 0.5, 0: 0, -1: 0}, threshold=1)
    assert board.successes.values.tolist() == [[1, 0, 0, 0]]


# -- states


def test_cases_1_and_2_status_marks_attempts_without_a_score(write):
    lines = ("a,t1,1,1,ok", "a,t2,1,,infra_error", "a,t3,1,,Timeout", "a,t4,1,0,error", "a,t5,1,,")
    board = read(write(csv_of(*lines, header="config,task,run,outcome,status\n")))
    assert board.trials.values.tolist() == [[1, 0, 0, 0, 0]]
    assert board.errors.values.tolist() == [[0, 1, 1, 1, 1]]
    assert board.attrs["n_scores_overruled_by_status"] == 1


def test_an_unknown_status_is_refused_and_the_column_can_be_left_out(write):
    path = write(csv_of("a,t1,1,1,ok", "a,t2,1,0,failed", header="config,task,run,outcome,status\n"))
    with pytest.raises(OutcomesError, match=r"line 3: status 'failed' is unknown.*status=''"):
        read(path)
    assert read(path, status="").trials.values.tolist() == [[1, 1]]


def test_case_20_blank_absent_and_zero_are_three_states(write):
    path = write(csv_of("a,t1,1,1", "a,t2,1,", "b,t1,1,1", "b,t2,1,0", "b,t3,1,1"))
    board = read(path)
    assert board.outcome.values[..., 0].tolist() == [[1, -1, -2], [1, 0, 1]]
    assert read(path, errors="failure").trials.values.tolist() == [[1, 1, 0], [1, 1, 1]]
    with pytest.raises(OutcomesError, match="errors='raise'"):
        read(path, errors="raise")


# -- runs, copies, shards


def test_case_8_copies_are_dropped_with_a_count_and_conflicts_are_named(write):
    copies = ("model-a,task-1,1,1", "model-a,task-1,1,1")
    board = read(write(csv_of(*copies, "model-a,task-3,1,0")))
    assert board.attrs["n_duplicates_dropped"] == 1
    assert board.trials.values.tolist() == [[1, 1]]
    with pytest.raises(OutcomesError, match=r"line 5: config 'model-a', task 'task-2', run '1' is on line 4 too"):
        read(write(csv_of(*copies, "model-a,task-2,1,1", "model-a,task-2,1,0", "model-a,task-3,1,0")))
    with pytest.raises(OutcomesError, match="another outcome"):
        read(write(csv_of("a,t,1,1", "a,t,1,")))  # a blank is not a copy of a pass


@pytest.mark.parametrize("last", [0, 1])
def test_case_9_runs_that_restart_in_each_shard(write, last):
    lines = ("a,t,1,1,s1", "a,t,2,1,s1", "a,t,1,1,s2", f"a,t,2,{last},s2")
    path = write(csv_of(*lines, header="config,task,run,outcome,shard\n"))
    # Even when every outcome agrees, de-duplicating would lose two of the four runs.
    with pytest.raises(OutcomesError, match=r"line 4: config 'a', task 't', run '1' .*shard='shard'"):
        read(path)
    board = read(path, shard="shard")
    assert (board.successes.item(), board.trials.item()) == (3 + last, 4)
    assert board.run.values.tolist() == ["s1/1", "s1/2", "s2/1", "s2/2"]
    assert read(path, run=["shard", "run"]).equals(board)


def test_run_numbers_are_in_numeric_order_and_other_names_in_file_order(write):
    assert read(write(csv_of("a,t,10,1", "a,t,9,0"))).run.values.tolist() == ["9", "10"]
    assert read(write(csv_of("a,t,z,1", "a,t,b,0"))).run.values.tolist() == ["z", "b"]


def test_case_16_variants_are_kept_apart_with_a_warning_and_merged_on_request(write):
    path = write(csv_of("model-a,task-1,1,1", "vendor/model-a,task-2,1,0", "model-a,Task-1,2,0", "model-a ,task-2,2,1"))
    with pytest.warns(UserWarning, match="may be one") as caught:
        board = read(path)
    assert (board.sizes["config"], board.sizes["task"], len(caught)) == (3, 3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        merged = read(
            path, config_map={"vendor/model-a": "model-a", "model-a ": "model-a"}, task_map={"Task-1": "task-1"}
        )
    assert merged.config.values.tolist() == ["model-a"]
    assert merged.outcome.sel(config="model-a").values.tolist() == [[1, 0], [0, 1]]


# -- columns


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("config,task,run,outcome", "config=config task=task run=run outcome=outcome"),
        ("Model,Instance-ID,resolved", "config=Model task=Instance-ID outcome=resolved"),
        ("config,model,task,task_id,outcome,score", "config=config task=task outcome=outcome"),
        ("agent,sample_id,epoch,correct", "config=agent task=sample_id run=epoch outcome=correct"),
        ("config,task,successes,trials,status", "config=config task=task successes=successes trials=trials"),
        ("config,task,score,n", "config=config task=task outcome=score"),
    ],
)
def test_columns_are_found_by_name(header, found):
    assert table.find_columns(header.split(","), {}, "x") == dict(pair.split("=") for pair in found.split())


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        ("a,b,c", "no config column; .*the columns are a, b, c"),
        ("config,b,outcome", "no task column; name it with task="),
        ("config,task,x", "no outcome column"),
        ("model,agent,task,outcome", r"model, agent could each be the config.*config="),
        ("config,task,passed,score", r"passed, score could each be the outcome"),
        ("config,task,outcome,successes,trials", "say the score twice"),
        ("config,task,successes", "no outcome column"),
    ],
)
def test_columns_that_are_missing_or_ambiguous_are_asked_for(header, fault):
    with pytest.raises(OutcomesError, match=fault):
        table.find_columns(header.split(","), {}, "x")


def test_a_named_column_settles_what_is_ambiguous(write):
    path = write(csv_of("m,g,t,1,0.2", header="model,agent,task,passed,score\n"))
    board = read(path, config=["agent", "model"], outcome="passed")
    assert board.config.values.tolist() == ["g + m"]
    assert read(path, config="model", outcome="score", threshold=0.1).successes.item() == 1
    with pytest.raises(OutcomesError, match="'speed' is not there; the columns are model, agent"):
        read(path, config="model", outcome="speed")


def test_case_10_a_reducer_column_makes_means_of_runs(write):
    header = "config,task,score,epochs,reducer\n"
    path = write(csv_of("a,t1,0.4,10,mean", "a,t2,0.6,10,mean", "b,t1,0,10,mode", "b,t2,,10,mean", header=header))
    board = read(path)
    assert board.successes.values.tolist() == [[4, 6], [0, 0]]
    assert board.trials.values.tolist() == [[10, 10], [1, 0]]
    assert board.errors.values.tolist() == [[0, 0], [0, 1]]
    with pytest.raises(OutcomesError, match=r"line 2: .*0\.35 has no number of runs"):
        read(write(csv_of("b,t3,0.35,,mean", header=header)))
    with pytest.raises(OutcomesError, match="reducer 'max' is not"):
        read(write(csv_of("b,t3,1,10,max", header=header)))


# -- real boards


def test_the_134_x_500_board_is_read_fast_and_right(shared_data):
    path = shared_data / "swebench_verified_134.csv.gz"
    read(path)
    start = time.perf_counter()
    board = read(path)
    seconds = time.perf_counter() - start
    print(f"read {path.name}: {seconds:.2f} s")
    assert seconds < 1
    assert (board.sizes["config"], board.sizes["task"]) == (134, 500)
    assert (board.trials.values == 1).all()
    assert board.repo.dims == ("task",)
    assert board.date.dims == ("config",)
    naive = pd.read_csv(path, dtype=str).groupby("config", sort=False)["outcome"].apply(lambda x: (x == "1").mean())
    np.testing.assert_allclose(outcomes.observed_score(board).values, naive.loc[board.config.values])


def test_the_other_real_boards_are_read(shared_data):
    counts = read(shared_data / "terminal_bench_2_counts.csv.gz")
    naive = pd.read_csv(shared_data / "terminal_bench_2_counts.csv.gz")
    assert (counts.sizes["config"], counts.sizes["task"]) == (naive.config.nunique(), naive.task.nunique())
    assert counts.successes.sum().item() == naive.successes.sum()
    assert {"agent", "model"} <= set(counts.coords)
    airline = read(shared_data / "tau_bench_airline.csv")
    assert dict(airline.sizes) == {"config": 1, "task": 50, "run": 4}
    np.testing.assert_allclose(outcomes.observed_score(airline).item(), 0.420, atol=5e-4)  # its README's pass^1
    metr = read(shared_data / "metr_all_runs.csv.gz")
    naive = pd.read_csv(shared_data / "metr_all_runs.csv.gz")
    assert metr.trials.sum().item() == len(naive)
    assert metr.successes.sum().item() == naive.outcome.sum()
