"""Saving is exact and atomic."""

import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from evalbayes import OutcomesError, outcomes, read, simulate

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)


@settings(max_examples=15, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=3, unique=True), st.lists(NAMES, min_size=1, max_size=4, unique=True))
def test_any_board_comes_back_as_it_was(tmp_path_factory, configs, tasks):
    path = tmp_path_factory.mktemp("boards") / "board.nc"
    drawn = simulate.board(len(configs), len(tasks), 2, missing=0.3, errors=0.2)
    board = drawn.assign_coords(config=configs, task=tasks, repo=("task", np.array(tasks, object)))
    back = outcomes.load(outcomes.save(board, path))
    assert back.identical(board)
    assert back.config.values.tolist() == configs
    assert read(path).identical(board)


def test_a_saved_board_keeps_its_policy_unless_another_is_asked_for(tmp_path):
    board = simulate.board(2, 4, 2, errors=0.5)
    path = outcomes.save(outcomes.apply_error_policy(board, "failure"), tmp_path / "b.nc")
    assert read(path).attrs["error_policy"] == "failure"
    with pytest.raises(OutcomesError, match="errors='raise'"):
        read(path, errors="raise")
    assert read(outcomes.save(board, path), errors="failure").attrs["error_policy"] == "failure"


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = outcomes.save(simulate.board(2, 3), tmp_path / "b.nc")
    before = path.read_bytes()
    with pytest.raises(OutcomesError, match="errors missing"):
        outcomes.save(simulate.board(2, 3, seed=1).drop_vars("errors"), path)

    def full(self, content):
        with self.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutcomesError, match="No space left"):
        outcomes.save(simulate.board(2, 3, seed=1), path)
    assert [p.name for p in tmp_path.iterdir()] == ["b.nc"]
    assert path.read_bytes() == before


def test_places_that_cannot_be_written_are_named(tmp_path):
    for path in (tmp_path, tmp_path / "no" / "b.nc"):
        with pytest.raises(OutcomesError, match="cannot write"):
            outcomes.save(simulate.board(2, 3), path)


def test_files_that_are_no_boards_are_refused(tmp_path):
    path = tmp_path / "b.nc"
    with pytest.raises(OutcomesError, match="no such file"):
        outcomes.load(path)
    saved = outcomes.save(simulate.board(4, 50, 3), path).read_bytes()
    for content in (b"", b"text", saved[: len(saved) // 2], saved[:-10]):
        path.write_bytes(content)
        with pytest.raises(OutcomesError, match=r"b\.nc: .*not a readable netCDF file"):
            outcomes.load(path)
    xr.Dataset({"x": ("y", [1.0])}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(OutcomesError, match=r"b\.nc: .*not a board"):
        outcomes.load(path)


def test_a_device_or_a_pipe_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutcomesError, match="a device"):
        outcomes.save(simulate.board(2, 3), pipe)
    assert pipe.is_fifo()
