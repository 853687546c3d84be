"""A fit comes back from its file as it was, and a write that fails leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from evalbayes import OutcomesError, posterior
from evalbayes.storage import load_fit, save_fit

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)


def assert_same(back, fit):
    """Identical, and more than xarray asks: dtypes, text as Python text, types of attributes."""
    xr.testing.assert_identical(back, fit)
    assert list(back.children) == list(fit.children)
    for node in fit.subtree:
        for name, variable in node.to_dataset().variables.items():
            other = back[node.path].to_dataset().variables[name]
            assert other.dims == variable.dims
            assert other.dtype.kind == variable.dtype.kind or {other.dtype.kind, variable.dtype.kind} <= set("OUT")
            if variable.dtype.kind in "OUT":
                assert [str(text) for text in other.values.ravel()] == [str(text) for text in variable.values.ravel()]
            else:
                assert other.dtype == variable.dtype
                assert other.values.tobytes() == variable.values.tobytes()
        assert {name: str(value) for name, value in back[node.path].attrs.items()} == {
            name: str(value) for name, value in node.attrs.items()
        }


def test_the_real_fit_comes_back_as_it_was(small_fit, needs, tmp_path):
    path = save_fit(small_fit, tmp_path / "fit.nc")
    back = load_fit(path)
    assert_same(back, small_fit)
    for name in posterior.__all__:
        # Components are of populations alone.
        for tasks in ("sampled",) if name == "variance_components" else ("fixed", "sampled"):
            function = partial(getattr(posterior, name), **needs(getattr(posterior, name)))
            xr.testing.assert_identical(function(back, tasks=tasks), function(small_fit, tasks=tasks))
    assert_same(load_fit(save_fit(back, tmp_path / "again.nc")), small_fit)


@settings(max_examples=15, deadline=None)
@given(st.lists(NAMES, min_size=2, max_size=2, unique=True), st.lists(NAMES, min_size=3, max_size=3, unique=True))
def test_any_names_come_back_as_they_were(fabricate, tmp_path_factory, configs, tasks):
    made = fabricate([[1, 0, 2], [2, 1, 0]], 2, draws=5, source=configs[0])
    named = xr.DataTree.from_dict(
        {
            name: made[name].to_dataset().assign_coords(config=np.array(configs, object), task=np.array(tasks, object))
            for name in made.children
        }
    )
    named.attrs = made.attrs
    back = load_fit(save_fit(named, tmp_path_factory.mktemp("fits") / "fit.nc"))
    assert_same(back, named)
    assert back["posterior"].config.values.tolist() == configs
    assert back["constant_data"].task.values.tolist() == tasks


@pytest.mark.parametrize("value", [None, True, [1, 2], {"a": 1}])
def test_attributes_that_would_not_come_back_are_named(fabricate, tmp_path, value):
    made = fabricate([[1, 0], [1, 1]], 1, draws=5, prior_odd=value)
    with pytest.raises(OutcomesError, match=r"attribute 'prior_odd' is .*; only text and numbers are kept"):
        save_fit(made, tmp_path / "fit.nc")
    assert list(tmp_path.iterdir()) == []


def test_not_a_number_and_infinity_come_back(fabricate, tmp_path):
    made = fabricate([[1, 0], [1, 1]], 1, draws=5)
    made["population"] = xr.DataTree(
        xr.Dataset({"gap": ("config", [np.nan, -np.inf]), "inside": ("config", [True, False])})
    )
    back = load_fit(save_fit(made, tmp_path / "fit.nc"))
    assert back["population"]["inside"].dtype == bool
    assert_same(back, made)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(fabricate, tmp_path, monkeypatch):
    made = fabricate([[1, 0], [1, 1]], 1, draws=5)
    path = save_fit(made, tmp_path / "fit.nc")
    before = path.read_bytes()
    unfit = made.copy()
    unfit["posterior"] = made["posterior"].to_dataset().assign(broken=("draw", np.array([{}] * 5, object)))
    with pytest.raises(OutcomesError, match=r"fit\.nc: netCDF cannot hold it"):
        save_fit(unfit, path)

    def full(self, content):
        with self.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutcomesError, match="No space left"):
        save_fit(made, path)
    for place in (tmp_path, tmp_path / "no" / "fit.nc"):
        with pytest.raises(OutcomesError, match="cannot write"):
            save_fit(made, place)
    assert [file.name for file in tmp_path.iterdir()] == ["fit.nc"]
    assert path.read_bytes() == before


KILLED = """
import signal, sys, time
from pathlib import Path
import xarray as xr
from evalbayes.storage import save_fit
def slow(self, content):
    self.open("wb").write(content[:10])
    print("writing", flush=True)
    time.sleep(60)
Path.write_bytes = slow
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
save_fit(xr.DataTree(), sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(fabricate, tmp_path):
    path = save_fit(fabricate([[1, 0], [1, 1]], 1, draws=5), tmp_path / "fit.nc")
    before = path.read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"writing\n"
    assert len(list(tmp_path.iterdir())) == 2
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert time.monotonic() - started < 30
    assert [file.name for file in tmp_path.iterdir()] == ["fit.nc"]
    assert path.read_bytes() == before


def test_files_that_are_no_fits_are_refused(fabricate, tmp_path):
    path = tmp_path / "fit.nc"
    with pytest.raises(OutcomesError, match="no such file"):
        load_fit(path)
    saved = save_fit(fabricate([[1, 0], [1, 1]], 1), path).read_bytes()
    for content in (b"", b"text", saved[: len(saved) // 2], saved[:-10]):
        path.write_bytes(content)
        with pytest.raises(OutcomesError, match=r"fit\.nc: not a readable netCDF file.*fit again"):
            load_fit(path)
    xr.Dataset({"x": ("y", [1.0])}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(OutcomesError, match=r"fit\.nc: no posterior in it"):
        load_fit(path)
