"""The packaged boards."""

import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from evalbayes import OutcomesError, datasets, outcomes

SCRIPT = Path(__file__).parents[1] / "scripts" / "make_repeated_runs.py"


@pytest.mark.parametrize("name", datasets.names())
def test_every_packaged_board_is_valid_and_says_where_it_is_from(name):
    board = datasets.load(name)
    assert outcomes.validate(board) is board
    assert board.attrs["source"] == f"datasets:{name}"
    assert board.attrs["provenance"]
    assert board.identical(datasets.load(name))


@pytest.mark.parametrize("name", datasets.names())
def test_a_packaged_board_is_the_same_after_a_round_trip(name, tmp_path):
    board = datasets.load(name)
    outcomes.save(board, tmp_path / "board.nc")
    assert outcomes.load(tmp_path / "board.nc").identical(board)


def test_the_simulated_board_is_the_size_it_says_and_has_repeats_and_both_outcomes():
    board = datasets.load("simulated")
    assert (board.sizes["config"], board.sizes["task"], board.sizes["run"]) == (12, 100, 5)
    scores = outcomes.observed_score(board)
    assert 0.05 < float(scores.min()) < float(scores.max()) < 0.95


def test_an_unknown_board_lists_those_there_are():
    with pytest.raises(OutcomesError, match="simulated, repeated_runs"):
        datasets.load("imagined")


def test_the_script_makes_the_packaged_file_byte_for_byte(tmp_path):
    made = tmp_path / "made.csv"
    subprocess.run([sys.executable, SCRIPT, made], check=True)
    assert made.read_bytes() == (resources.files("evalbayes") / "data" / "repeated_runs.csv").read_bytes()


def test_repeated_runs_has_two_prompts_a_model_and_five_runs_a_cell_but_one():
    board = datasets.load("repeated_runs")
    assert dict(board.sizes) == {"config": 32, "task": 100}
    names = [f"{model} ({prompt})" for model, prompt in zip(board.model.values, board.prompt.values, strict=True)]
    assert board.config.values.tolist() == names
    assert len(set(board.model.values)) == 16
    assert board.prompt.values.tolist() == ["detailed", "minimal"] * 16
    empty = board.trials.where(board.trials != 5, drop=True)
    assert (empty.config.values.tolist(), empty.task.values.tolist()) == (["GPT-4.1 (detailed)"], ["task-100"])
    assert empty.item() == 0
    assert not board.errors.any()


def test_repeated_runs_says_what_is_published_and_what_is_not():
    board = datasets.load("repeated_runs")
    assert "outcome" not in board
    assert "published in arXiv 2606.00920v1" in board.attrs["provenance"]
    assert "which task got which count is simulated and no measurement" in board.attrs["provenance"]
    assert "which run passed was not published" in board.attrs["provenance"]


def test_repeated_runs_has_configs_that_order_tasks_alike_but_not_identically():
    board = datasets.load("repeated_runs").isel(task=slice(99))
    alike = np.corrcoef(board.successes.values)
    model = board.model.values
    one_model, pairs = model[:, None] == model, ~np.eye(32, dtype=bool)
    prompts, models = alike[one_model & pairs].mean(), alike[~one_model].mean()
    print(f"correlation of rates over tasks: two prompts of a model {prompts:.2f}, two models {models:.2f}")
    assert prompts == pytest.approx(0.81, abs=0.01)
    assert models == pytest.approx(0.55, abs=0.01)


def test_repeated_runs_loads_in_a_moment_and_brings_nothing_heavy():
    def taken() -> float:
        start = time.perf_counter()
        datasets.load("repeated_runs")
        return time.perf_counter() - start

    # The least of several: the load of the machine only ever adds.
    assert min(taken() for _ in range(5)) < 0.05
    heavy = ("pymc", "pytensor", "arviz", "jax", "matplotlib", "scipy", "duckdb")
    code = "import sys; from evalbayes import datasets; datasets.load('repeated_runs')\n"
    code += f"print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
