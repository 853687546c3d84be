"""Pictures of pair summaries: what the artists hold is what the tables say."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib import pyplot as plt

from boards import counted
from evalbayes import ArgumentError, pairs, plots
from evalbayes.plots_pairs import METHODS

mpl.use("Agg")
MARGINS = (0.3, 0.05, 0.1)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def board() -> xr.Dataset:
    rng = np.random.default_rng(2)
    return counted(rng.binomial(1, rng.uniform(0.2, 0.8, (12, 1)), (12, 40)), 1)


@pytest.fixture(scope="module")
def found(board) -> xr.Dataset:
    return pairs.widths(board, MARGINS, draws=100)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pairs.coverage_table((8, 16), prob=0.9)


def test_widths_are_those_of_near_tie(board, found):
    assert found.margin.values.tolist() == sorted(MARGINS)
    for name in found.method.values.tolist():
        for margin in MARGINS:
            target = {part: found[part].sel({"method": name}).item() for part in ("configs", "tasks")}
            one = pairs.near_tie(board, margin, method=name, draws=100, **target)
            here = found.sel({"margin": margin, "method": name})
            np.testing.assert_array_equal(here.interval, one.interval)
            np.testing.assert_array_equal(here.width, one.interval[1] - one.interval[0])
            assert here.estimate == one.estimate
            assert here.reason == one.reason
    assert found.ci_prob == 0.95


def test_widths_without_an_interval_have_their_reason():
    found = pairs.widths(xr.DataArray([1, 1, 1], dims="config"), [0.1], methods=["hoeffding", "dyadic"], out_of=5)
    assert np.isnan(found.width).all()
    assert "needs 4" in found.reason.values[0, 0]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"margins": []}, "margins: give one or more"),
        ({"margins": [0.05, "1/20"]}, "each once"),
        ({"margins": "0.05"}, "a sequence"),
        ({"margins": [2]}, "margin=2"),
        ({"methods": ["dyadic", "dyadic"]}, "methods: give one or more, each once"),
        ({"methods": ["exact"]}, "'exact' gives no interval"),
    ],
)
def test_bad_widths_are_named(board, how, words):
    with pytest.raises(ArgumentError, match=words):
        pairs.widths(board, **({"margins": [0.1]} | how))


def test_the_picture_of_widths_has_a_line_for_each_method_in_points(found):
    _, mine = plt.subplots()
    ax = plots.widths(found, ax=mine)
    assert ax is mine
    names = found.method.values.tolist()
    assert [line.get_label() for line in ax.lines] == [name.replace("_", " ") for name in names]
    for name, line in zip(names, ax.lines, strict=True):
        np.testing.assert_allclose(line.get_xdata(), [5, 10, 30])
        np.testing.assert_allclose(line.get_ydata(), 100 * found.width.sel({"method": name}))
    assert "points" in ax.get_xlabel()
    assert "95%" in ax.get_ylabel()
    ax.figure.draw_without_rendering()


def test_no_two_methods_look_alike_without_their_colour():
    assert len({marker for marker, _, _ in METHODS.values()}) == len(METHODS)
    assert {*METHODS} == {*pairs.targets.METHODS} - {"exact"}


def test_the_picture_of_coverage_has_both_kernels_and_the_nominal_level(table):
    ax = plots.coverage(table)
    lines = {line.get_label(): line for line in ax.lines}
    assert len(lines) == 2 * 4 + 1
    for kernel in ("equality", "constant"):
        for name in ("pair_iid", "hoeffding", "dyadic", "jackknife"):
            line = lines[f"{name.replace('_', ' ')}, {kernel}"]
            exact = [float(pairs.exact_coverage(m, 0.2, name, kernel=kernel, prob=0.9).coverage) for m in (8, 16)]
            np.testing.assert_allclose(line.get_ydata(), exact, atol=1e-12)
            np.testing.assert_allclose(line.get_xdata() / [8, 16], line.get_xdata()[0] / 8)
            assert abs(line.get_xdata()[0] / 8 - 1) < 0.1
            assert (line.get_markerfacecolor() == "white") == (kernel == "constant")
    assert lines["nominal, 0.9"].get_ydata() == [0.9, 0.9]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["8", "16"]
    assert ax.get_ylim()[1] > 1
    ax.figure.draw_without_rendering()


def test_methods_of_one_coverage_stand_beside_each_other(table):
    at = [line.get_xdata()[0] for line in plots.coverage(table).lines if line.get_label().endswith("equality")]
    assert len({round(x, 6) for x in at}) == 4


def test_pictures_of_something_else_are_refused(board, table):
    with pytest.raises(ArgumentError, match=r"evalbayes\.pairs\.widths"):
        plots.widths(board)
    both = pd.concat([table, pairs.coverage_table((8,))])
    for other in (board, table.drop(columns="weight"), both):
        with pytest.raises(ArgumentError, match=r"evalbayes\.pairs\.coverage_table"):
            plots.coverage(other)
