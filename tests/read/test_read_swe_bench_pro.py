"""SWE-bench Pro, rebuilt from scaleapi/SWE-bench_Pro-os: swe_bench_pro_eval.py (0875a8af) writes both files.

traj/claude-sonnet-4-paper/eval_results.json (70ad75d8) shows the older form, without infra_errors.json beside it.
"""

import json
from pathlib import Path

import pytest

from evalbayes import OutcomesError
from evalbayes.read import swe_bench_pro
from evalbayes.read.attempts import NoAttempts, Options
from evalbayes.tabulate import from_rows

COLUMNS = {name: name for name in ("config", "task", "run", "outcome", "status")}
A = f"instance_element-hq__element-web-{'0a' * 20}-vnan"
B = f"instance_NodeBB__NodeBB-{'1b' * 20}-v{'2c' * 20}"
C = f"instance_flipt-io__flipt-{'3d' * 20}"


def read(content, name="traj/model-a/eval_results.json"):
    return swe_bench_pro.attempts(json.loads(json.dumps(content)), Path(name), Options())


def test_the_folder_is_the_config_and_every_key_a_task():
    made = read({A: True, B: False})
    board = from_rows(made.rows, COLUMNS, {}, place=made.where, source="x", reader="x")
    assert board.config.values.tolist() == ["model-a"]
    assert board.successes.sel(task=[A, B]).values.tolist() == [[1, 0]]
    assert board.repository.sel(task=[A, B]).values.tolist() == ["element-hq/element-web", "NodeBB/NodeBB"]
    assert made.where(1) == B


def test_instances_that_never_ran_are_attempts_without_a_score():
    made = read({C: "Image is arm64, not amd64"}, "traj/model-a/infra_errors.json")
    assert made.rows[["config", "task", "outcome", "status"]].values.tolist() == [["model-a", C, None, "error"]]


def test_what_is_recognised_is_strict():
    path, infra = Path("eval_results.json"), Path("a/infra_errors.json")
    assert swe_bench_pro.recognises({A: True, B: False, C: True}, path)
    assert swe_bench_pro.recognises({"django__django-123": True}, path)
    assert swe_bench_pro.recognises({A: "could not start"}, infra)
    for other in (
        *(None, 3, "x", [], {}, [True], {A: 1}, {A: "true"}, {A: None}, {A: True, B: 0}),
        *({"checked": True}, {"os_model": True, A: True}, {"a__b": True}, {"__-123": True}, {A: {"resolved": True}}),
    ):
        assert not swe_bench_pro.recognises(other, path)
    assert not swe_bench_pro.recognises({A: True}, infra)
    assert not swe_bench_pro.recognises({}, infra)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({A: True, B: None}, f"^traj/model-a/eval_results.json, {B}: None is not true or false"),
        ({A: 1}, f"^traj/model-a/eval_results.json, {A}: 1 is not true or false"),
        ([A], r"^traj/model-a/eval_results.json: a list where instances"),
        (None, r"^traj/model-a/eval_results.json: a NoneType where instances"),
    ],
)
def test_damage_is_one_line_that_names_the_file_and_the_place(content, message):
    with pytest.raises(OutcomesError, match=message):
        read(content)


def test_nothing_evaluated_has_no_attempt():
    with pytest.raises(NoAttempts, match="no attempt"):
        read({})


def test_names_of_folders_and_tasks_stay_as_written(tmp_path):
    made = read({"an odd / naïve task": True}, str(tmp_path / "modèle 1, é" / "eval_results.json"))
    assert made.rows[["config", "task"]].values.tolist() == [["modèle 1, é", "an odd / naïve task"]]
    assert "repository" not in made.rows
