"""Damage to a log of every format: one line that names the file, exit 2, no traceback, and nothing written."""

import gzip
import pickle
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from samples import FORMATS

from evalbayes import OutcomesError, read
from evalbayes.read import formats

BINARY = ("table (parquet)", "board", "inspect")
NOT_GZIPPED = ("board", "inspect", "inspect (json)")
NAME_PROMISES = (".csv", ".jsonl", ".eval", ".parquet")
"""Endings that say what is in a file: one that holds something else is an error, if it cannot be read all the same."""

Good = Callable[[str], Path]


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Good:
    """Return a good log of a format, made once."""
    made: dict[str, Path] = {}

    def good(name: str) -> Path:
        if name not in made:
            made[name] = FORMATS[name](tmp_path_factory.mktemp("good"))
        return made[name]

    return good


def copy(good: Path, folder: Path, content: bytes, name: str | None = None) -> Path:
    """A copy with other bytes, and what lies beside the good one."""
    for beside in good.parent.iterdir():
        if beside != good:
            (folder / beside.name).write_bytes(beside.read_bytes())
    path = folder / (name or good.name)
    path.write_bytes(content)
    return path


def cut(whole: bytes, part: float) -> bytes:
    """The first part of a file, ending within a line: at a line's end nothing shows that others are missing."""
    end = int(part * len(whole))
    while end and whole[end - 1 : end] in (b"\n", b",", b"\t", b"1", b"0", b"}"):
        end -= 1
    return whole[:end]


def test_every_format_has_a_sample():
    tables = {f"table ({name})" for name in formats.table.FORMATS}
    assert {*FORMATS} == tables | ({*formats.NAMES} - {*formats.table.FORMATS}) | {"inspect (json)"}


@pytest.mark.parametrize("name", FORMATS)
def test_a_good_log_reads_in_its_format(good, name):
    board = read(good(name))
    assert board.trials.sum() > 0
    assert board.attrs["reader"] == {"board": "from_counts", "inspect (json)": "inspect"}.get(name, name)


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.8, 0.97])
@pytest.mark.parametrize("name", FORMATS)
def test_a_truncated_log_exits_2_with_one_line_and_leaves_nothing(good, tmp_path, run, name, part):
    path = good(name)
    broken = copy(path, tmp_path, cut(path.read_bytes(), part))
    before = sorted(tmp_path.rglob("*"))
    done = run("read", broken, "-o", tmp_path / "out.nc", "--quiet")
    assert done.code == 2, done
    assert done.out == ""
    assert done.err.startswith(f"evalbayes: {broken}")
    assert len(done.err.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
@pytest.mark.parametrize("name", [name for name in FORMATS if name not in BINARY])
def test_another_encoding_is_named(good, tmp_path, name, encoding):
    path = good(name)
    broken = copy(path, tmp_path, path.read_text(encoding="utf-8").encode(encoding))
    with pytest.raises(OutcomesError, match=r"not UTF-8|Inspect log") as caught:
        read(broken)
    assert str(caught.value).startswith(str(broken))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".eval", ".parquet", ".log2", ""])
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_in_a_file_decides_whatever_its_name(good, tmp_path, run, name, suffix):
    path = good(name)
    other = copy(path, tmp_path, path.read_bytes(), f"renamed{suffix}")
    done = run("describe", other, "--quiet", "--json")
    if done.code == 2:
        assert suffix in NAME_PROMISES or name == "lm_eval"  # whose task is in the name alone
        assert done.err.startswith(f"evalbayes: {other}")
        assert len(done.err.splitlines()) == 1
    else:
        assert done.json["board"]["n_trials"] == int(read(path).trials.sum())


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in NOT_GZIPPED])
def test_a_gzipped_log_is_the_log(good, tmp_path, name):
    path = good(name)
    packed = copy(path, tmp_path, gzip.compress(path.read_bytes()), f"{path.name}.gz")
    assert read(packed).successes.sum() == read(path).successes.sum()


@pytest.mark.parametrize("name", FORMATS)
def test_a_log_is_not_read_as_another_format(good, name):
    path = good(name)
    own = {name, name.partition(" ")[0], name.rpartition("(")[2].rstrip(")")}
    own |= {"csv"} if name == "table (tsv)" else set()  # whose delimiter is found out
    for format in set(formats.NAMES) - own:
        with pytest.raises(OutcomesError) as caught:
            read(path, format=format)
        assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_fetched_and_nothing_unpickled(good, monkeypatch, name):
    def refuse(*_, **__):
        raise AssertionError("not while reading")

    path = good(name)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "loads", refuse)
    assert read(path).trials.sum() > 0


def test_no_reader_imports_pickle():
    sources = [path.read_text(encoding="utf-8") for path in Path(str(formats.__file__)).parent.glob("*.py")]
    assert len(sources) > 10
    assert not any("import pickle" in source or "allow_pickle" in source for source in sources)


@pytest.mark.parametrize("name", FORMATS)
def test_a_folder_with_one_broken_log_names_it_and_saves_nothing(good, tmp_path, run, name):
    path = good(name)
    broken = copy(path, tmp_path, cut(path.read_bytes(), 0.5))
    (tmp_path / "fine.csv").write_text("config,task,run,outcome\na,t,1,1\n")
    done = run("read", tmp_path, "-o", tmp_path / "out.nc", "--quiet")
    assert done.code == 2
    assert str(broken) in done.err
    assert not (tmp_path / "out.nc").exists()
