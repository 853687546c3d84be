"""The command line: what it prints, what it writes, how it fails."""

import contextlib
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
import xarray as xr

from command_line import Done, Run
from evalbayes import board as leaderboard
from evalbayes import datasets, design, frequentist, outcomes, pairs, posterior, read, report, simulate
from evalbayes.errors import SamplingError
from evalbayes.storage import load_fit, save_fit

NAMES = ["plain", "<b>bold</b>", "naïve 模型", "001", "None"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def runs(folder: Path) -> Path:
    """A log of five configs, 40 tasks and two runs of each."""
    board = simulate.board(configs=5, tasks=40, runs=2, seed=3)
    counts = board.successes.values
    lines = ["config,task,run,outcome"]
    lines += [
        f"{name},t{t},{r},{int(r < counts[c, t])}" for c, name in enumerate(NAMES) for t in range(40) for r in range(2)
    ]
    path = folder / "runs.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fitted(folder: Path, runs: Path) -> Path:
    """The fit of `runs`, made once through the command line."""
    path = folder / "fit.nc"
    done = subprocess.run(
        [sys.executable, "-m", "evalbayes", "fit", str(runs), "-o", str(path), "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    attrs = json.loads(done.stdout)
    assert attrs["seed"] == 0
    assert attrs["method"] in ("laplace", "latent")
    return path


def no_traceback(done: Done) -> None:
    assert "Traceback" not in done.err
    assert done.err.strip().splitlines()[-1].startswith("evalbayes: ")


def test_describe_prints_policies_and_every_config(run: Run, runs: Path) -> None:
    done = run("describe", runs)
    assert done.code == 0
    lines = done.out.splitlines()
    assert any(line.startswith("# errors=missing") for line in lines)
    assert any(line.startswith("# coverage: 200 of 200 cells") for line in lines)
    table = [line.split("\t") for line in lines if not line.startswith("#")]
    assert [row[0] for row in table[1:]] == NAMES
    assert "reading" in done.err
    assert run("describe", runs, "--quiet").err == ""


def test_describe_json(run: Run, runs: Path) -> None:
    found = run("describe", runs, "--json").json
    observed = {row["config"]: row["observed"] for row in found["configs"]}  # type: ignore[attr-defined]
    truth = simulate.board(configs=5, tasks=40, runs=2, seed=3).successes.sum("task").values / 80
    assert observed == pytest.approx(dict(zip(NAMES, truth, strict=True)))


def test_read_saves_a_board_that_every_command_reads(run: Run, runs: Path, tmp_path: Path) -> None:
    board = tmp_path / "board.nc"
    assert run("read", runs, "-o", board, "--errors", "failure").code == 0
    loaded = outcomes.load(board)
    assert loaded.sizes == {"config": 5, "task": 40, **({"run": 2} if "run" in loaded.sizes else {})}
    assert run("describe", board, "--json").json["attrs"]["error_policy"] == "failure"  # type: ignore[index]


def test_read_combines_logs(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"config,task,outcome\n{name},t,1\n{name},u,0\n")
    board = tmp_path / "both.nc"
    done = run("read", tmp_path / "a.csv", tmp_path / "b.csv", "-o", board)
    assert done.code == 0, done.err
    assert outcomes.load(board).config.values.tolist() == ["a", "b"]


def test_columns_can_be_named(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "odd.csv"
    log.write_text("who,what,how\na,t,1\na,u,0\nb,t,0\nb,u,0\n")
    assert run("describe", log).code == 2
    named = ("--column", "config=who", "--column", "task=what", "--column", "outcome=how")
    assert [row["config"] for row in run("describe", log, "--json", *named).json["configs"]] == ["a", "b"]  # type: ignore[attr-defined]
    done = run("describe", log, "--column", "color=who")
    assert done.code == 2
    assert "ROLE one of config" in " ".join(done.err.split())


def test_answer_without_a_model(run: Run, runs: Path) -> None:
    done = run("answer", "score", runs, "--method", "two_level_bootstrap", "--json", "--seed", "1")
    found = done.json
    assert (found["quantity"], found["tasks"], found["configs"]) == ("score", "sampled", "fixed")
    assert (found["method"], found["ci_prob"]) == ("two_level_bootstrap", 0.95)
    assert any(line.startswith("errors=missing") for line in found["policies"])  # type: ignore[attr-defined]
    assert {row["config"] for row in found["values"]} == {*NAMES}  # type: ignore[attr-defined]
    again = run("answer", "score", runs, "--method", "two_level_bootstrap", "--json", "--seed", "1")
    assert again.out == done.out


def test_answer_prints_target_and_method(run: Run, runs: Path) -> None:
    out = run("answer", "rank", runs, "--method", "two_level_bootstrap").out
    assert "# tasks=sampled (new tasks like these), configs=fixed (these entries)" in out
    assert "# method two_level_bootstrap, 95% interval (eti)" in out


def test_an_unknown_number_is_null_with_its_reason(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "once.csv"
    log.write_text(
        "config,task,outcome\n" + "".join(f"{c},t{t},{(t + (c == 'a')) % 2}\n" for c in "ab" for t in range(6))
    )
    found = run("answer", "score", log, "--method", "fixed_normal", "--tasks", "fixed", "--json").json
    row = found["values"][0]  # type: ignore[index]
    assert row["lower"] is None
    assert "run" in row["reason"]
    out = run("answer", "score", log, "--method", "fixed_normal", "--tasks", "fixed").out
    assert "NaN" in out
    assert row["reason"] in out


def test_answers_from_a_saved_fit(run: Run, fitted: Path) -> None:
    found = run("answer", "top_k", fitted, "--k", "2", "--json").json
    values = found["values"]
    assert sum(row["estimate"] for row in values) == pytest.approx(2)  # type: ignore[attr-defined]
    assert found["policies"][1].startswith("errors=missing")  # type: ignore[index]
    pairs = run("answer", "win_probability", fitted, "--config", "001", "--config", "None", "--json").json["values"]
    assert {(row["config"], row["opponent"]) for row in pairs} >= {("001", "None"), ("None", "001")}  # type: ignore[attr-defined]


def test_questions_that_make_no_sense_are_refused(run: Run, fitted: Path, runs: Path) -> None:
    for words, said in (
        (("answer", "scores", fitted), "no quantity 'scores'"),
        (("answer", "score", fitted, "--k", "3"), "score has no option --k"),
        (("answer", "score", fitted, "--cost-ratio", "3"), "score has no option --cost-ratio"),
        (("answer", "design_effect", "repeated_runs"), "design_effect needs --runs"),
        (("answer", "optimal_runs", fitted), "optimal_runs needs --cost-ratio"),
        (("answer", "score", fitted, "--method", "two_level_bootstrap"), "is a fit by"),
        (("answer", "score", fitted, "--config", "nobody"), "no such config"),
        (("answer", "top_k", fitted, "--k", "6"), "the board has 5 configs"),
        (("answer", "score", fitted, "--tasks", "fixed", "--configs", "sampled"), "not offered"),
        (("answer", "score", runs, "--method", "magic"), "magic"),
        (("answer", "difference", fitted, "--reference", "nobody"), "not on the board"),
        (("fit", runs, "-o", "x.nc", "--model", "magic"), "no such model"),
        (("fit", runs, "-o", "x.nc", "--model", "none.py:model"), "no file none.py"),
    ):
        done = run(*words)
        assert done.code == 2, words
        assert said in done.err
        no_traceback(done)


def test_report_writes_a_page_and_its_numbers(run: Run, runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("report", runs, "-o", page, "--seed", "4", "--model", "crossed")
    assert done.code == 0, done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "page.json"]
    text, content = page.read_text(encoding="utf-8"), json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert "<b>bold</b>" not in text
    assert "naïve 模型" in text
    assert content["fit"]["seed"] == 4
    answers = {(a["quantity"], a.get("tasks"), a.get("method")) for a in content["answers"]}
    assert ("score", "sampled", "two_level_bootstrap") in answers
    assert "--seed 4" in text
    assert re.search(r"^Pareto k-hat\t0\.\d\d\tbelow 0.5\tpassed$", done.out, re.MULTILINE)
    assert re.search(r"^Weight ESS\t[\d,]+\tat least 400\tpassed$", done.out, re.MULTILINE)
    assert any(line.startswith("# errors=missing") for line in done.out.splitlines())
    for stage in ("reading", "mode", "answering", "writing"):
        assert stage in done.err


def test_compare_of_two_files_names_each_side_by_its_own_config(run: Run, write: Callable[..., Path]) -> None:
    rows = "config,task,run,outcome\n"
    old = write(rows + "".join(f"v1,t{i},1,{int(i % 3 == 0)}\n" for i in range(30)), "old.csv")
    new = write(rows + "".join(f"v2,t{i},1,{int(i % 3 != 1)}\n" for i in range(30)), "new.csv")
    done = run("compare", new, old, "--json", "--quiet")
    assert done.code == 0, done.err
    (value,) = done.json["values"]
    assert (value["a"], value["b"]) == ("v2 (new.csv)", "v1 (old.csv)")


def test_compare_names_the_configs_that_only_one_source_has(run: Run, write: Callable[..., Path]) -> None:
    rows = "config,task,run,outcome\n"
    tasks = [f"{name},t{i},1,{int((i + at) % 3 == 0)}\n" for at, name in enumerate(("a", "b", "c")) for i in range(30)]
    both, one = write(rows + "".join(tasks), "both.csv"), write(rows + "".join(tasks[:30]), "one.csv")
    done = run("compare", one, both, "--quiet")
    assert done.code == 0, done.err
    assert f"in {both} alone, and not compared: b, c" in done.out


def test_remedies_are_as_typed_on_the_command_line(run: Run, write: Callable[..., Path]) -> None:
    rows = "config,task,run,outcome\na,t,1,0.5\n"
    assert "say which pass with --read threshold=" in run("describe", write(rows)).err
    assert "name it with --column task=" in run("describe", write(rows.replace("task", "thing"))).err
    twice = write("config,task,run,outcome\na,t,1,1\na,t,1,0\n")
    assert "with --column shard=COLUMN, or keep one with --read duplicates=first" in run("describe", twice).err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("config,task\na,t\n", "outcome"),
        ("config,task,outcome\na,t,maybe\n", "maybe"),
        ("config,task,outcome\na,t,1.5\n", "1.5"),
        ("config,task,run,outcome\na,t,1,1\na,t,1,0\n", "line 3"),
        ("config,task,outcome\na\0,t,1\n", "NUL"),
        ("config,task,outcome\na,t,1\nb,t,0\n", "1 task"),
    ],
    ids=["empty", "no column", "word", "range", "conflict", "NUL", "one task"],
)
def test_bad_input_is_one_line_and_leaves_no_file(run: Run, tmp_path: Path, text: str, said: str) -> None:
    log, target = tmp_path / "log.csv", tmp_path / "out"
    log.write_text(text)
    target.mkdir()
    for words in (("report", log, "-o", target / "page.html"), ("fit", log, "-o", target / "fit.nc")):
        done = run(*words, "--quiet")
        assert done.code == 2, done.err
        assert len(done.err.strip().splitlines()) == 1
        assert said in done.err
        assert "log.csv" in done.err
        no_traceback(done)
        assert list(target.iterdir()) == []


def test_a_failed_gate_exits_1(run: Run, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise SamplingError("laplace: k-hat 0.9 (below 0.5 needed); try method='latent'")

    monkeypatch.setattr(importlib.import_module("evalbayes.fit"), "fit", refuse)
    done = run("report", runs, "-o", tmp_path / "page.html")
    assert done.code == 1
    no_traceback(done)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_no_file(run: Run, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("evalbayes.fit"), "fit", interrupt)
    done = run("report", runs, "-o", tmp_path / "page.html")
    assert done.code == 130
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_there(run: Run, runs: Path, tmp_path: Path) -> None:
    for words in (
        ("describe", tmp_path / "none.csv"),
        ("describe", tmp_path),
        ("report", runs, "-o", tmp_path / "none" / "page.html"),
        ("report", runs, "-o", tmp_path),
        ("read", runs, "-o", runs),
    ):
        done = run(*words)
        assert done.code == 2, words
        no_traceback(done)


def test_usage_errors_exit_2(run: Run, runs: Path) -> None:
    for words in (
        ("describe",),
        ("nothing",),
        ("answer", "score", runs, "--prob", "95"),
        ("fit", runs, "-o", "x", "--seed", "a"),
    ):
        done = run(*words)
        assert done.code == 2, words
        assert "Traceback" not in done.err


def test_packaged_boards_go_by_name_and_files_come_first(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [line.split("\t")[0] for line in run("datasets").out.splitlines()[1:]]
    assert "simulated" in names
    assert json.loads(run("datasets", "--json").out)[0]["name"] == names[0]
    packaged = run("describe", "simulated", "--json").json["configs"]
    Path("simulated").write_text("config,task,outcome\nmine,t,1\nmine,u,0\n")
    assert [row["config"] for row in run("describe", "simulated", "--json").json["configs"]] == ["mine"]  # type: ignore[attr-defined]
    assert len(packaged) > 1  # type: ignore[arg-type]


def test_a_reader_that_stops_early_is_no_error(runs: Path) -> None:
    """As `evalbayes describe runs.csv | head -1`: the pipe is closed before anything is written."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    words = [sys.executable, "-m", "evalbayes", "describe", str(runs), "--quiet"]
    try:
        done = subprocess.run(words, stdout=write_end, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(write_end)
    assert done.stderr == ""


def test_tables_on_a_terminal_are_drawn(runs: Path) -> None:
    pty = pytest.importorskip("pty", reason="no pseudo-terminals here")
    read_end, write_end = pty.openpty()
    words = [sys.executable, "-m", "evalbayes", "describe", str(runs), "--quiet"]
    subprocess.run(words, stdout=write_end, check=True, env={**os.environ, "COLUMNS": "200", "TERM": "xterm"})
    os.close(write_end)
    seen = b""
    with contextlib.suppress(OSError):
        while block := os.read(read_end, 65536):
            seen += block
    os.close(read_end)
    text = seen.decode()
    assert "───" in text
    assert "<b>bold</b>" in text
    assert not np.any([line.startswith("#") for line in text.splitlines()])


def test_a_failed_population_gate_is_said_and_new_tasks_are_reweighted(
    fitted: Path, runs: Path, tmp_path: Path
) -> None:
    fit = load_fit(fitted)
    fit.attrs["gate"] = "failed"
    page = report(runs, tmp_path / "page.html", fit=fit)
    assert "failed its check" in page.read_text(encoding="utf-8")
    content = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    methods = {a["method"] for a in content["answers"] if a.get("tasks") == "sampled"}
    assert methods == {f"{fit.attrs['method']}_reweighted", "two_level_bootstrap"}


def test_repeatability_is_asked_without_a_fit(run):
    """Qwen-Plus under the detailed prompt: ICC 0.748, r = 0.337, so R* = sqrt(88 r) = 5.45 and the best whole is 5."""
    one = ("repeated_runs", "--method", "moments", "--config", "Qwen-Plus (detailed)", "-q")
    icc = run("answer", "icc", *one)
    assert re.search(r"^Qwen-Plus \(detailed\)\t0\.7478\t", icc.out, re.MULTILINE)
    best = run("answer", "optimal_runs", *one, "--cost-ratio", "88")
    assert re.search(r"^Qwen-Plus \(detailed\)\t5\.448\t.*\t5$", best.out, re.MULTILINE)
    assert "tasks=sampled" in best.out


def test_describe_tasks_names_the_dead_and_the_flaky(run):
    """Counted by hand from the board's cells, in the table and in JSON."""
    board = datasets.load("simulated")
    mixed = ((board.successes > 0) & (board.successes < board.trials)).any("config")
    found = run("describe", "simulated", "--tasks", "--json", "-q").json["tasks"]
    assert [row["task"] for row in found] == board.task.values.tolist()
    assert [row["kind"] == "flaky" for row in found] == mixed.values.tolist()
    assert [row["kind"] == "dead" for row in found] == (board.successes.sum("config") == 0).values.tolist()
    printed = run("describe", "simulated", "--tasks", "-q").out.splitlines()
    assert [line.split("\t")[0] for line in printed if not line.startswith("#")][1:] == board.task.values.tolist()


def test_pass_all_k_is_asked_without_a_fit(run):
    """GPT-4.1-mini under the detailed prompt solved half of its tasks in all five runs, as published."""
    one = ("repeated_runs", "--method", "one_level_bootstrap", "--config", "GPT-4.1-mini (detailed)", "-q")
    found = run("answer", "pass_all_k", *one, "--k", "5")
    assert re.search(r"^GPT-4.1-mini \(detailed\)\t0\.5\t", found.out, re.MULTILINE)
    assert "runs 5" in found.out
    assert "needs --k" in run("answer", "pass_at_k", *one).err


def test_design_plans_from_a_board_without_a_fit(run: Run) -> None:
    """The numbers of the package's own functions, at once and without a model."""
    done = run("design", "repeated_runs", "--cost-ratio", "88", "--json")
    assert done.code == 0
    board = datasets.load("repeated_runs")
    best = frequentist.optimal_runs(board, cost_ratio=88)
    found = done.json
    assert [one["estimate"] for one in found["optimal_runs"]["values"]] == pytest.approx(best.estimate.values.tolist())
    curve = design.cost_curve(board, cost_ratio=88, pooled=board.config.values)
    assert [one["estimate"] for one in found["cost_curve"]["values"]] == pytest.approx(curve.estimate.values.tolist())
    gaps = design.resolution(board).paired.values
    assert found["smallest_gap"]["paired"]["median"] == pytest.approx(np.nanmedian(gaps))
    said = run("design", "repeated_runs", "--cost-ratio", "88", "--quiet")
    lines = said.out.splitlines()
    assert said.code == 0
    assert said.err == ""
    table = lines[lines.index(next(line for line in lines if line.startswith("config\t"))) :]
    assert len(table) == 33 + 1 + 1 + len(design.RUNS)
    assert f"{best.estimate.values[0]:.4g}" in table[1]


def test_design_of_a_board_run_once_says_what_it_lacks(run: Run, write: Callable[..., Path]) -> None:
    log = write("config,task,outcome\n" + "".join(f"{c},{t},{int(c == t)}\n" for c in "ab" for t in "abcd"))
    done = run("design", log, "--cost-ratio", "5", "--quiet")
    assert done.code == 0
    assert "no curve over runs: one run of each task" in done.out
    assert "relative_width" not in done.out
    assert "resolves" in done.out or "too small" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--cost-ratio", "-1"), "cost_ratio"), (("--cost-ratio", "2", "--width", "5"), "width"), ((), "--cost-ratio")],
)
def test_design_refuses_what_it_cannot_plan_with(run: Run, words: tuple[str, ...], said: str) -> None:
    done = run("design", "simulated", *words)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_pooled_answers_on_the_command_line(run: Run) -> None:
    names = ["GPT-4.1 (detailed)", "o4-mini (detailed)"]
    words = [word for name in names for word in ("--pooled", name)]
    done = run("answer", "ceiling", "repeated_runs", "--method", "moments", *words, "--json")
    expected = frequentist.ceiling(datasets.load("repeated_runs"), pooled=names)
    (one,) = done.json["values"]
    assert one["estimate"] == pytest.approx(float(expected.estimate))
    assert done.json["configs_used"] == 2
    assert run("answer", "ceiling", "repeated_runs", "--method", "moments", "--pooled", "none").code == 2


@pytest.fixture
def versions(write: Callable[..., Path]) -> Callable[[float, str], Path]:
    """Write a log of one config, 60 tasks run once, at an intercept."""

    def versions(intercept: float, name: str) -> Path:
        board = simulate.board(1, 60, 1, seed=3, intercept=intercept, config_sd=0.0)
        rows = [f"agent,{t},{k}\n" for t, k in zip(board.task.values, board.successes.values[0], strict=True)]
        return write("config,task,outcome\n" + "".join(rows), name)

    return versions


def test_the_gate_fails_a_regression_and_says_so_in_markdown(run: Run, versions: Callable[[float, str], Path]) -> None:
    base, worse = versions(0.8, "base.csv"), versions(-1.2, "new.csv")
    done = run("gate", base, worse, "--format", "markdown", "--quiet")
    assert done.code == 1
    assert done.out.startswith("**fail: worse by more than 2 points")
    assert "| agent |" in done.out
    assert done.err == ""
    same = run("gate", base, base, "--max-regression", "0.001", "--quiet")
    assert same.code == 0
    assert "insufficient" in same.out
    assert run("gate", base, base, "--max-regression", "0.001", "--strict", "--quiet").code == 1


def test_compare_sets_two_configs_or_two_files_side_by_side(
    run: Run, runs: Path, versions: Callable[[float, str], Path]
) -> None:
    done = run("compare", NAMES[0], NAMES[2], runs, "--model", "crossed", "--json", "--quiet")
    (row,) = done.json["values"]
    board = read(runs)
    observed = frequentist.difference(board, reference=NAMES[2]).sel(config=NAMES[0])
    assert row["observed"] == pytest.approx(observed.estimate.item())
    assert row["shared_tasks"] == int((board.trials.sel(config=[NAMES[0], NAMES[2]]) > 0).all("config").sum())
    assert row["lower"] < row["difference"] < row["upper"]
    files = run("compare", versions(0.8, "one.csv"), versions(-1.2, "two.csv"), "--json", "--quiet")
    (row,) = files.json["values"]
    assert (row["a"], row["b"]) == ("agent (one.csv)", "agent (two.csv)")
    assert row["verdict"] == "agent (one.csv) is better"


@pytest.mark.parametrize("words", [("config-01", "none", "simulated"), ("no-such.csv", "simulated")])
def test_compare_refuses_what_is_not_there(run: Run, words: tuple[str, ...]) -> None:
    done = run("compare", *words, "--quiet")
    assert done.code == 2
    assert done.err.startswith("evalbayes: ")
    assert done.err.count("\n") == 1


def test_audit_prints_findings_first_and_groups_that_the_package_gives(run: Run, write: Callable[..., Path]) -> None:
    rows = "".join(f"{c},t{t},{int(t < solved)},0.9\n" for c, solved in (("a", 30), ("b", 12)) for t in range(40))
    log = write("config,task,outcome,published\n" + rows)
    done = run("audit", log, "--quiet")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("# 2 errors")
    assert next(line for line in lines if line.startswith("error\tpublished_rate\ta"))
    assert run("audit", log, "--quiet", "--strict").code == 1
    withheld = run("audit", log, "--json", "--quiet").json["entries"]
    assert [(row["group"], row["verdict"]) for row in withheld] == [(None, "withheld")] * 2
    assert all(row["reason"].startswith("withheld: published 90%") for row in withheld)
    clean = run("audit", "repeated_runs", "--reduce", "majority", "--json", "--quiet")
    entries = clean.json["entries"]
    groups = leaderboard.mcnemar_groups(datasets.load("repeated_runs"), reduce="majority")
    assert {row["config"]: row["group"] for row in entries} == dict(
        zip(groups.config.values.tolist(), groups.group.values.tolist(), strict=True)
    )
    assert [row["observed"] for row in entries] == sorted((row["observed"] for row in entries), reverse=True)
    holm = run("audit", "repeated_runs", "--reduce", "majority", "--correction", "holm", "--json", "--quiet")
    (row,) = (row for row in holm.json["entries"] if row["config"] == "GPT-4.1 (detailed)")
    adjusted = leaderboard.mcnemar_groups(datasets.load("repeated_runs"), reduce="majority", correction="holm")
    assert row["p_anchor_adjusted"] == pytest.approx(adjusted.p_anchor_adjusted.sel(config=row["config"]).item())
    refused = run("audit", "repeated_runs", "--quiet")
    assert refused.code == 0
    assert "no groups: mcnemar_groups" in refused.out


def test_pairs_prints_every_target_with_the_packages_numbers(run: Run) -> None:
    done = run("pairs", "repeated_runs", "--margin", "0.05", "--draws", "200", "--json", "--quiet")
    assert done.code == 0
    board = datasets.load("repeated_runs")
    found = {one["method"]: one["values"][0] for one in done.json["answers"]}
    assert found["exact"]["fraction"] == pairs.near_tie(board, "0.05").fraction.item()
    dyadic = pairs.near_tie(board, "0.05", configs="sampled", method="dyadic")
    assert [found["dyadic"][end] for end in ("lower", "upper")] == pytest.approx(dyadic.interval.values.tolist())
    between = run("pairs", "repeated_runs", "--margin", "0.05", "--blocks", "prompt", "--format", "markdown", "--quiet")
    assert between.out.startswith("**near ties within 0.05: ")
    assert "2 blocks: block\\_bootstrap needs 4 or more" in between.out
    assert run("pairs", "repeated_runs", "--margin", "wide", "--quiet").code == 2
    assert run("pairs", "repeated_runs", "--margin", "0.05", "--cluster", "none", "--quiet").code == 2


@pytest.mark.parametrize("quantity", ["adjacent", "best_set", "rank", "top_k", "win_probability"])
def test_answers_about_leaders_in_every_form(run: Run, runs: Path, quantity: str) -> None:
    """JSON has the package's numbers and its sentence; text and Markdown have a line and a row for each of them."""
    asked = ("answer", quantity, runs, "--method", "two_level_bootstrap", "--quiet")
    right = getattr(frequentist, quantity)(read(runs))
    found = run(*asked, "--json").json
    assert run(*asked, "--format", "json").json == found
    rows = found["values"]
    estimates = [row["estimate"] for row in rows]  # type: ignore[attr-defined]
    assert estimates == pytest.approx(right.estimate.values.ravel().tolist())
    assert found.get("sentence") == right.attrs.get("sentence")
    text = [line for line in run(*asked).out.splitlines() if not line.startswith("#")]
    markdown = run(*asked, "--format", "markdown").out
    assert len(text) == 1 + len(estimates)
    assert markdown.startswith(f"**{quantity.replace('_', ' ')}")
    assert markdown.count("\n| ") == 2 + len(estimates)
    if quantity == "adjacent":
        cells = [dict(zip(text[0].split("\t"), line.split("\t"), strict=True)) for line in text[1:]]
        for name in ("config", "opponent", "verdict"):
            assert [row[name] for row in cells] == right[name].values.tolist()
        assert [float(row["rank"]) for row in cells] == right["rank"].values.tolist()
        assert [row["unresolved"] for row in rows] == right.unresolved.values.tolist()  # type: ignore[attr-defined]
        some = run(*asked, "--config", right.config.values[0], "--json").json["values"]
        assert [row["config"] for row in some] == [right.config.values[0]]  # type: ignore[attr-defined]
        assert f"# {right.attrs['sentence']}" in run(*asked).out
    if quantity == "best_set":
        assert "# confidence set: of boards like this one" in run(*asked).out
        assert [row["in_set"] for row in rows] == right.in_set.values.tolist()  # type: ignore[attr-defined]


def test_leaders_and_near_ties_of_a_fit(run: Run, fitted: Path) -> None:
    fit = load_fit(fitted)
    found = run("answer", "adjacent", fitted, "--json").json
    right = posterior.adjacent(fit)
    assert [row["config"] for row in found["values"]] == right.config.values.tolist()  # type: ignore[attr-defined]
    assert found["sentence"] == right.attrs["sentence"]
    best = run("answer", "best_set", fitted, "--prob", "0.8", "--format", "markdown").out
    assert posterior.best_set(fit, prob=0.8).attrs["sentence"].split(":")[0] in best
    assert "posterior set: given data and model" in best
    near = ("answer", "near_tie", fitted, "--margin", "0.05", "--configs", "fixed", "--tasks", "fixed", "--json")
    (row,) = run(*near).json["values"]  # type: ignore[misc]
    tie = posterior.near_tie(fit, "0.05", configs="fixed", tasks="fixed")
    assert [row["estimate"], row["lower"], row["upper"]] == pytest.approx(
        [tie.estimate.item(), *tie.interval.values.tolist()]
    )
    assert run("answer", "near_tie", fitted).err.startswith("evalbayes: near_tie needs --margin")
    assert "rank has no option --margin" in run("answer", "rank", fitted, "--margin", "0.05").err


@pytest.mark.parametrize(
    ("method", "configs", "tasks"),
    [
        ("exact", "fixed", "fixed"),
        ("hoeffding", "sampled", "fixed"),
        ("dyadic", "sampled", "fixed"),
        ("jackknife", "sampled", "fixed"),
        ("pair_iid", "sampled", "fixed"),
        ("config_bootstrap", "sampled", "fixed"),
        ("task_bootstrap", "fixed", "sampled"),
        ("joint_bootstrap", "sampled", "sampled"),
    ],
)
def test_near_ties_by_every_method_without_a_fit(run: Run, method: str, configs: str, tasks: str) -> None:
    """A method names its target; the other way round a target must be one that the method serves."""
    asked = ("answer", "near_tie", "simulated", "--margin", "0.05", "--method", method, "--quiet")
    found = run(*asked, "--json").json
    right = pairs.near_tie(datasets.load("simulated"), "0.05", configs=configs, tasks=tasks, method=method)
    assert (found["configs"], found["tasks"], found["method"]) == (configs, tasks, method)
    (row,) = found["values"]  # type: ignore[misc]
    assert row["fraction"] == right.fraction.item()
    ends = [np.nan if row[end] is None else row[end] for end in ("lower", "upper")]
    assert ends == pytest.approx(right.interval.values.tolist(), nan_ok=True)
    assert f"method {method}" in run(*asked).out
    if method == "dyadic":
        wrong = run(*asked, "--tasks", "sampled")
        assert wrong.code == 2
        assert "does not cover" in wrong.err


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int], Path]:
    """Write a log of agent-a and agent-b, which share no task, and of agent-c, which shares tasks with both."""
    folder = tmp_path_factory.mktemp("apart")
    rng = np.random.default_rng(11)
    tasks = {"agent-a": (range(12), 0.8), "agent-b": (range(12, 24), 0.4), "agent-c": (range(24), 0.6)}

    def apart(configs: int, runs: int) -> Path:
        path = folder / f"{configs}-{runs}.csv"
        rows = [
            f"{name},t{t:02},{r},{int(rng.random() < rate)}\n"
            for name, (ran, rate) in list(tasks.items())[:configs]
            for t in ran
            for r in range(runs)
        ]
        path.write_text("config,task,run,outcome\n" + "".join(rows))
        return path

    return apart


COMPARED = ("estimate", "se", "lower", "upper", "win_probability", "tie", "rank", "opponent_rank", "mid_rank")
"""What would be a comparison of two entries, or of one with others."""


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("configs", [2, 3])
def test_no_command_compares_two_entries_without_a_shared_task(
    run: Run, apart: Callable[[int, int], Path], configs: int, runs: int
) -> None:
    """Every command that compares and needs no fit: null with a reason that names the other, or one line and exit 2."""
    log, both = apart(configs, runs), {"agent-a", "agent-b"}
    for quantity in ("rank", "top_k", "difference", "win_probability", "adjacent"):
        rows = run("answer", quantity, log, "--method", "two_level_bootstrap", "--quiet", "--json").json["values"]
        if quantity in ("rank", "top_k"):
            alone = [row for row in rows if row["config"] in both]  # type: ignore[attr-defined]
        else:
            alone = [row for row in rows if {row["config"], row["opponent"]} == both]  # type: ignore[attr-defined]
        assert quantity == "adjacent" or len(alone) == 2
        for row in alone:
            assert "no shared task" in row["reason"]
            assert [row[name] for name in COMPARED if name in row] == [None for name in COMPARED if name in row]
    for words in (
        ("answer", "best_set", log, "--method", "two_level_bootstrap"),
        ("compare", "agent-a", "agent-b", log),
        ("answer", "near_tie", log, "--margin", "0.05", "--method", "exact"),
        ("pairs", log, "--margin", "0.05"),
    ):
        done = run(*words, "--quiet")
        assert (done.code, done.out) == (2, ""), words
        no_traceback(done)
    assert (
        "'agent-a' has no shared task with 'agent-b'"
        in run("answer", "best_set", log, "--method", "two_level_bootstrap", "--quiet").err
    )
    entries = run("audit", log, "--reduce", "majority", "--json", "--quiet").json["entries"]
    for row in entries:  # type: ignore[attr-defined]
        if row["config"] in both:
            other = (both - {row["config"]}).pop()
            assert (row["rank"], row["p_anchor"], row["anchor"]) == (None, None, row["config"])
            assert f"no shared task with '{other}'" in row["reason"]
    if configs == 2:
        assert "what gap this board resolves is not known" in run("design", log, "--cost-ratio", "9", "--quiet").out


def test_a_gate_refuses_versions_without_a_shared_task(run: Run, write: Callable[..., Path]) -> None:
    old, new = (
        write("config,task,outcome\n" + "".join(f"agent,{t},1\n" for t in tasks), name)
        for tasks, name in (("abcdef", "old.csv"), ("uvwxyz", "new.csv"))
    )
    for words in (("gate", old, new), ("compare", new, old)):
        done = run(*words, "--quiet")
        assert (done.code, done.out) == (2, "")
        assert "'agent' shares no task with its base" in done.err


REPEATED = {
    **dict.fromkeys(("icc", "ceiling", "between_variance", "within_variance", "flip_rate"), ()),
    **dict.fromkeys(("aleatoric_share", "design_effect", "design_factor", "agreement_rate"), ("--runs", "2")),
    **dict.fromkeys(("pass_at_k", "pass_all_k"), ("--k", "2")),
    "optimal_runs": ("--cost-ratio", "9"),
}
"""What only repeated runs show, and what the command has to be told."""
OF_ATTEMPTS = ("agreement_rate", "flip_rate", "pass_at_k", "pass_all_k")


def test_a_board_run_once_prints_no_repeatability(
    run: Run, apart: Callable[[int, int], Path], fabricate: Callable[..., xr.DataTree], tmp_path: Path
) -> None:
    """No ICC, ceiling, variance within, design effect, R*, flip or agreement rate, by counts or by a fit."""
    log, saved = apart(3, 1), tmp_path / "once.nc"
    save_fit(fabricate([[1, 0, 1, 1], [0, 0, 1, 0]], 1), saved)
    for source, words in ((log, ("--method",)), (saved, ())):
        for quantity, more in REPEATED.items():
            method = (*words, "one_level_bootstrap" if quantity in OF_ATTEMPTS else "moments") if words else ()
            done = run("answer", quantity, source, *method, *more, "--json", "--quiet")
            assert done.code == 0, done.err
            for row in done.json["values"]:  # type: ignore[attr-defined]
                assert [row["estimate"], row["lower"], row["upper"]] == [None] * 3, (quantity, source)
                assert "run" in row["reason"]
    audited = run("audit", log, "--json", "--quiet").json["entries"]
    assert not any("se_tasks_fixed" in row for row in audited)  # type: ignore[attr-defined]
    described = run("describe", log, "--tasks", "--json", "--quiet").json["tasks"]
    assert not any(row["kind"] == "flaky" for row in described)  # type: ignore[attr-defined]
    planned = run("design", log, "--cost-ratio", "9", "--json", "--quiet").json
    for name in ("icc", "ceiling", "optimal_runs", "cost_curve"):
        assert [row["estimate"] for row in planned[name]["values"]] == [None] * len(planned[name]["values"])  # type: ignore[call-overload, index]
    fixed = run("answer", "score", log, "--method", "fixed_normal", "--tasks", "fixed", "--json", "--quiet").json
    assert [row["lower"] for row in fixed["values"]] == [None] * 3  # type: ignore[attr-defined]


def test_priors_are_numbers_flags_and_names():
    """What names a column is text, whatever it looks like."""
    from evalbayes.options import priors_of

    given = ["task_sd=2", "overdispersion=true", "task_density=normal", "config_groups=1,agent", "interaction_group=2"]
    assert priors_of(given) == {
        "task_sd": 2.0,
        "overdispersion": True,
        "task_density": "normal",
        "config_groups": "1,agent",
        "interaction_group": "2",
    }
    for wrong in ("task_sd", "=2", "task_sd="):
        with pytest.raises(typer.BadParameter, match="give NAME=VALUE"):
            priors_of([wrong])
