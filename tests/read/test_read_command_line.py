"""Reading on the command line: what describe says of a reading, --read, and that bad input leaves nothing behind."""

import json

import pytest

HEADER = "config,task,run,attempt,outcome,grader,cost\n"


@pytest.fixture
def folder(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.csv").write_text(HEADER + "a,t,1,1,,x,1\na,t,1,2,0.6,x,2\na,u,1,1,0.2,y,3\na,u,1,1,0.2,y,3\n")
    (logs / "b.csv").write_text(HEADER + "b,t,1,1,0.9,z,1\n")
    (logs / "notes.txt").write_text("nothing")
    return logs


def test_describe_is_a_summary_that_a_person_can_check(run, folder):
    done = run("describe", folder, "--read", "threshold=0.5", "--quiet")
    assert done.code == 0
    said = [line.removeprefix("# ") for line in done.out.splitlines() if line.startswith("#")]
    assert said[0] == "source: logs"
    assert said[1].startswith("errors=missing")
    assert said[3:] == [
        "reader: table (csv): 2 files",
        "score: a score of at least 0.5 (less 1e-6) passes",
        "columns: config is config, task is task, run is run, attempt is attempt, outcome is outcome",
        "runs: a row is identified by config, task, run",
        "attempts: the first scored attempt of a run counts; 1 set aside",
        "duplicates: rows of one run that differ: raise; 1 copies dropped",
        "board: 2 configs × 2 tasks, 3 scored runs; 1 of 4 cells empty, 3 with one run, 0 with more (at most 1)",
        said[10],
        "not used: grader",
    ]
    assert said[10].startswith("left out: notes.txt: a .txt file is no log")
    facts = run("describe", folder, "--read", "threshold=0.5", "--json").json
    assert facts["board"]["n_attempts_set_aside"] == 1
    assert facts["attrs"]["skipped"].startswith("notes.txt")


def test_several_sources_and_every_policy(run, folder, tmp_path):
    a, b = folder / "a.csv", folder / "b.csv"
    board = tmp_path / "board.nc"
    done = run(
        "read", a, b, "-o", board, "--read", "threshold=0.5", "--read", "attempts=best", "--read", "config_map=b=B"
    )
    assert done.code == 0
    assert board.exists()
    assert "attempts: the best attempt of a run counts" in run("describe", board).out
    assert "\nB\t" in run("describe", board).out
    mapped = run("describe", a, b, "--read", "outcome_map=0.6=1,0.2=0,0.9=")
    assert [line.split("\t")[4:6] for line in mapped.out.splitlines()[-2:]] == [["2", "0"], ["0", "1"]]
    names = tmp_path / "names.json"
    names.write_text(json.dumps({"a": "A, the first", "b": "A, the second"}))
    assert "A, the first" in run("describe", folder, "--read", "threshold=1", "--read", f"config_map={names}").out


def test_a_config_may_be_several_columns(run, write):
    path = write("agent,model,task,outcome\nx,m,t,1\nx,n,t,0\n")
    done = run("describe", path, "--column", "config=agent,model", "--quiet")
    assert [line.split("\t")[0] for line in done.out.splitlines()[-2:]] == ["x + m", "x + n"]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("threshold=high", "give a number"),
        ("tresh=1", "NAME one of format"),
        ("threshold", "NAME one of format"),
        ("config_map=a", "give OLD=NEW"),
        ("attempts=last", "use 'first', 'best', 'runs'"),
        ("duplicates=mean", "use 'raise', 'first', 'last'"),
        ("format=xml", "format 'xml' is unknown"),
        ("manifest=no.txt", "there is no such manifest"),
        ("measures=watts", "no column 'watts'"),
    ],
)
def test_a_policy_that_is_none_exits_2_and_writes_nothing(run, folder, tmp_path, how, said):
    done = run("read", folder, "-o", tmp_path / "board.nc", "--read", "threshold=1", "--read", how)
    assert done.code == 2
    assert said in " ".join(done.err.replace("│", " ").split())
    assert "Traceback" not in done.err
    assert not (tmp_path / "board.nc").exists()


def test_the_report_says_how_it_was_read_and_can_be_made_again(run, folder, tmp_path):
    for name in "abc":
        rows = "".join(f"{name},t{t},{r},{(t * 7 + r + ord(name)) % 3 / 2}\n" for t in range(20) for r in (1, 2))
        (folder / f"{name}.csv").write_text("config,task,run,outcome\n" + rows)
    page = tmp_path / "page.html"
    done = run("report", folder, "-o", page, "--read", "threshold=0.5", "--column", "run=run", "--quiet")
    assert done.code == 0, done.err
    text = page.read_text()
    assert "--read threshold=0.5" in text
    assert "--column run=run" in text
    assert "notes.txt" in text
