"""Pictures of pair summaries: interval widths over margins, and coverage over the number of configs."""

from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from evalbayes.errors import ArgumentError
from evalbayes.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS = {
    "pair_iid": ("s", VERMILLION, ":"),
    "hoeffding": ("o", BLUE, "-"),
    "dyadic": ("^", GREEN, "-"),
    "jackknife": ("v", ORANGE, "-"),
    "config_bootstrap": ("D", SKY, "-"),
    "block_bootstrap": ("d", SKY, "-"),
    "task_bootstrap": ("P", PURPLE, "--"),
    "cluster_bootstrap": ("X", PURPLE, "--"),
    "joint_bootstrap": ("*", "black", "-."),
}
"""Marker, colour and line of methods for pairs of configs; the line says the target: solid is of other configs on these
tasks, dashed of these configs on other tasks, dash-dotted of both, dotted of neither but for reference."""


def widths(result: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the width of the interval of the share of near ties against the margin, a line for each method.

    A line breaks where a method has no interval. Lines of one target have one style.

    Parameters
    ----------
    result
        From `evalbayes.pairs.widths`.
    ax
        Axes to draw on; new ones when not given.

    Returns
    -------
    matplotlib.axes.Axes
        Margin and width in percentage points.

    Raises
    ------
    ArgumentError
        If ``result`` is something else.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.plots.widths(eb.pairs.widths(board, [0.01, 0.02, 0.05, 0.1]))             # doctest: +SKIP
    """
    if not isinstance(result, xr.Dataset) or not {"width", "margin", "method"} <= {*map(str, result.variables)}:
        raise ArgumentError(f"result is a {type(result).__name__}; give what evalbayes.pairs.widths returned")
    ax = ax or new_axes(7.5, 4.5)
    for name in result["method"].values.tolist():
        marker, colour, line = METHODS[name]
        one = result.sel({"method": name})
        ax.plot(
            100 * one["margin"], 100 * one["width"], color=colour, marker=marker, ls=line, lw=1.5, label=_words(name)
        )
    ax.set_ylim(bottom=0)
    ax.set_xlabel("margin, percentage points of score")
    ax.set_ylabel(f"width of the {result['ci_prob'].item():.0%} interval, points")
    ax.set_title("share of near ties among all pairs: interval widths", loc="left")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=3)
    return ax


def coverage(table: pd.DataFrame, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the exact coverage of intervals of a pair summary against the number of configs, by method and kernel.

    Filled marks on full lines are of the equality kernel, open ones on thin lines of the constant kernel. Methods that
    cover in the same states are set side by side; the line across is the nominal level.

    Parameters
    ----------
    table
        From `evalbayes.pairs.coverage_table`, or `evalbayes.pairs.coverage_states` put together.
    ax
        Axes to draw on; new ones when not given.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ArgumentError
        If ``table`` is something else, or of more than one nominal level.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.plots.coverage(eb.pairs.coverage_table())                                 # doctest: +SKIP
    """
    columns = {"M", "kernel", "method", "prob", "weight", "covered"}
    if not isinstance(table, pd.DataFrame) or not columns <= {*table.columns} or len({*table["prob"]}) != 1:
        raise ArgumentError(
            f"table is a {type(table).__name__}; give what evalbayes.pairs.coverage_table returned, of one level"
        )
    ax = ax or new_axes(7.5, 4.5)
    names = [name for name in METHODS if name in {*table["method"]}]
    for kernel in sorted({*table["kernel"]}, key=lambda kernel: (kernel == "constant", kernel)):
        for place, name in enumerate(names):
            rows = table[(table["kernel"] == kernel) & (table["method"] == name)]
            share = (rows["weight"] * rows["covered"]).groupby(rows["M"]).sum()
            _draw_coverage(ax, share, kernel, name, place - (len(names) - 1) / 2)
    nominal = table["prob"].iloc[0]
    ax.axhline(nominal, color=GREY, lw=1, ls="--", zorder=0, label=f"nominal, {nominal:g}")
    sizes = sorted({*table["M"]})
    ax.set_xscale("log")
    ax.minorticks_off()
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.set_ylim(0, 1.03)
    ax.set_xlabel("configs on the board, M")
    ax.set_ylabel("coverage of the mean over pairs")
    ax.set_title("exact coverage of intervals over pairs that share configs", loc="left")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=3)
    return ax


def _draw_coverage(ax: "Axes", share: pd.Series, kernel: str, method: str, place: float) -> None:
    marker, colour, line = METHODS[method]
    thin = kernel == "constant"
    # Methods may have one coverage: each stands a little to the side, by a share of M as the axis is logarithmic.
    ax.plot(
        share.index.to_numpy() * 1.04**place,
        share.to_numpy(),
        color=colour,
        marker=marker,
        ls=line,
        lw=0.6 if thin else 1.5,
        markerfacecolor="white" if thin else colour,
        label=f"{_words(method)}, {kernel}",
    )


def _words(method: str) -> str:
    return method.replace("_", " ")
