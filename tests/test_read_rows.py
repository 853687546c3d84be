"""Files to rows: every format, and every way a file is broken."""

import gzip
import json
import warnings

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalbayes import OutcomesError, read
from evalbayes.read import rows

HEADER = "config,task,run,outcome\n"


def csv_of(*lines: str, header: str = HEADER) -> str:
    return header + "".join(line + "\n" for line in lines)


# -- formats


FORMATS = ("csv", "tsv", "jsonl", "parquet")


def write_as(frame: pd.DataFrame, path, form: str):
    if form == "parquet":
        frame.to_parquet(path)
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in frame.to_dict("records")))
    else:
        frame.to_csv(path, index=False, sep="\t" if form == "tsv" else ",")
    return path


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_makes_the_same_board_whatever_the_file_is_called(tmp_path, form, zipped):
    frame = pd.DataFrame(
        {"config": ["None", 'b "x", y'], "task": ["001", "é\n1e5"], "outcome": ["1", ""], "tag": "x[1]"}
    )
    path = write_as(frame, tmp_path / f"a[1]*.{form}", form)
    if zipped:
        (tmp_path / f"z.{form}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path = tmp_path / f"z.{form}.gz"
    board = read(path)
    assert board.config.values.tolist() == ["None", 'b "x", y']
    assert board.task.values.tolist() == ["001", "é\n1e5"]
    assert board.trials.values.tolist() == [[1, 0], [0, 0]]
    assert board.errors.values.tolist() == [[0, 0], [0, 1]]
    bare = tmp_path / "bare"
    bare.write_bytes(path.read_bytes())
    if not (zipped and form == "parquet"):
        assert read(bare).equals(board)
    assert read(bare, format=form).equals(board)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_names_survive_any_format(tmp_path_factory, data):
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n\ufeff"), min_size=1)
    names = data.draw(st.lists(text.filter(str.strip), min_size=1, max_size=4, unique=True))
    frame = pd.DataFrame({"config": "c", "task": names, "outcome": "1"})
    form = data.draw(st.sampled_from(FORMATS))
    path = write_as(frame, tmp_path_factory.mktemp("any") / f"x.{form}", form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read(path).task.values.tolist() == names


def test_json_numbers_keep_their_text_and_null_is_blank(write):
    lines = ['{"config": "a", "task": 1e5, "outcome": true}', '{"task": 100000.0, "config": "a", "outcome": null}']
    board = read(write("\n\n".join([*lines, '{"config": "a", "task": "é", "extra": {"b": [1]}}']), "x.jsonl"))
    assert board.task.values.tolist() == ["1e5", "100000.0", "é"]
    assert board.trials.values.tolist() == [[1, 0, 0]]
    assert board.errors.values.tolist() == [[0, 1, 1]]


def test_other_delimiters_are_found_and_a_byte_order_mark_is_not_part_of_a_name(write):
    for mark in ";\t|":
        assert read(write("\ufeff" + csv_of("a,t,1,1").replace(",", mark))).config.values.tolist() == ["a"]


def test_a_log_in_chunks_is_the_log_in_one(write, monkeypatch):
    lines = [f"c{i % 7},t{i % 11},{i},{i % 2}" for i in range(500)]
    objects = [dict(zip(["config", "task", "run", "outcome"], line.split(","), strict=True)) for line in lines]
    jsonl = "".join(json.dumps(row) + "\n" for row in objects)
    paths = write(csv_of(*lines)), write(jsonl, "runs.jsonl")
    whole = [read(path) for path in paths]
    monkeypatch.setattr(rows, "CHUNK", 64)
    assert all(read(path).identical(board) for path, board in zip(paths, whole, strict=True))


# -- files that are broken


GOOD = csv_of("a,t,1,1", "a,u,1,0").encode()


@pytest.mark.parametrize(
    ("content", "name", "fault"),
    [
        (b"", "x.csv", "the file is empty"),
        (b"\n \n", "x.csv", "empty"),
        (b"", "x.jsonl", "the file is empty"),
        (b"", "x", "the file is empty"),
        (b"", "x.parquet", "not a readable parquet file"),
        (HEADER.encode(), "x.csv", "no rows below the header"),
        (GOOD.replace(b"outcome", b"result"), "x.csv", "no outcome column.*config, task, run, result"),
        (GOOD.replace(b"run", b"task"), "x.csv", "task, task could each be the task"),
        (GOOD + b"a,v,1\n", "x.csv", "line 4: 3 fields where the header has 4"),
        (GOOD + b'a,"v\nw",1,1\na,w,1,1,1\n', "x.csv", "line 6: 5 fields where the header has 4"),
        (GOOD + b'a,"v,1,1\n', "x.csv", "line 4: .*quotes"),
        (GOOD + "a,é,1,1\n".encode("latin-1"), "x.csv", "line 4: not UTF-8 text; save the file as UTF-8"),
        (GOOD.decode().encode("utf-16"), "x.csv", "line 1: not UTF-8"),
        (GOOD + b"a,v\0w,1,1\n", "x.csv", "line 4: task 'v.x00w' contains a NUL"),
        (GOOD + b"a,,1,1\n", "x.csv", "line 4: task '' is blank"),
        (GOOD + b" ,v,1,1\n", "x.csv", "line 4: config ' ' is blank"),
        (GOOD + b"a,v,,1\n", "x.csv", "line 4: run '' is blank"),
        (GOOD + b'\n\na,"v\nw",1,1\na,x,1,maybe\n', "x.csv", "line 8: outcome 'maybe'"),
        (gzip.compress(GOOD * 99)[:-20], "x.csv.gz", "gzip"),
        (gzip.compress(GOOD)[:12] + b"xxxxxx", "x.csv.gz", "gzip"),
        (b"not gzip", "x.csv.gz", "the columns are not gzip"),
        (b"PAR1 but not", "x.parquet", "not a readable parquet file"),
        (b'"con\nfig",x\n1,2\n', "x.csv", r"the columns are 'con\\nfig', x$"),
        (b"PK\x03\x04", "x.zip", "the archive ends early or is damaged"),
        (b'[{"config": "a", "task": "t", "outcome": 1}, 2]', "x", "entry 2: not a JSON object; write one object a row"),
        (b'[{"config": "a", "task": "t", "outcome": 2}]', "x", r"entry 1: scores outside"),
        (b'{"config": "a", "\\ud800": 1}\n', "x.jsonl", "key .* lone surrogate"),
        (b'{"config": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "x.jsonl", "line 1: not JSON"),
        (b'{"config": "a"}\n[1]\n', "x.jsonl", "line 2: not a JSON object"),
        (b'{"config": "a"}\n\n{"conf', "x.jsonl", "line 3: not JSON"),
        (b'{"config": "a", "task": "t", "outcome": NaN}\n', "x.jsonl", "line 1: outcome 'NaN'"),
        (b'{"config": "a", "task": "\\ud800", "outcome": 1}\n', "x.jsonl", "line 1: task .* lone surrogate"),
        (b'{"config": "a", "task": null, "outcome": 1}\n', "x.jsonl", "line 1: the task is blank"),
        (b'{"config": "a", "task": true, "outcome": 1}\n', "x.jsonl", "line 1: task True is not text"),
    ],
)
def test_a_broken_file_is_one_line_that_names_it(write, content, name, fault):
    path = write(content, name)
    with pytest.raises(OutcomesError, match=fault) as caught:
        read(path)
    assert str(caught.value).startswith((str(path), path.name))
    assert "\n" not in str(caught.value)


def test_what_is_not_a_file_or_not_a_format_is_refused(tmp_path, write):
    for source, fault in {"no.csv": "no such file", "": "no file in this folder", "*.x": "no file matches"}.items():
        with pytest.raises(OutcomesError, match=fault):
            read(tmp_path / source)
    with pytest.raises(OutcomesError, match="format 'xml' is unknown"):
        read(write(GOOD), format="xml")


def test_a_field_longer_than_the_csv_limit_is_read(write):
    board = read(write(csv_of("a,t,1,1," + "x" * 200_000, header="config,task,run,outcome,transcript\n")))
    assert board.trials.item() == 1
