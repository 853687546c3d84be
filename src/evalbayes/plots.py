"""Pictures of results, one function each: takes a result, draws on the axes given or on new ones, returns the axes.

What a colour says a shape says too (`evalbayes.palette`). Nothing is shown or saved: in a notebook a picture appears by
itself, elsewhere ``axes.figure.savefig(path)`` keeps it.
"""

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from evalbayes.errors import ArgumentError, OutcomesError
from evalbayes.palette import BLUE, GREY, VERMILLION, new_axes
from evalbayes.plots_calibration import calibration as calibration
from evalbayes.plots_pairs import coverage as coverage
from evalbayes.plots_pairs import widths as widths

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (10, 115)
"""Where the numbers of a row stand, in points from the axes."""
MARKS = {"passed": ("o", BLUE), "failed": ("X", VERMILLION)}


def repeatability(result: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw every statistic of `evalbayes.check.repeatability` beside what the model predicts.

    Each row has its own scale, on which the predictive interval runs from -1 to 1 about the predicted mean; the axis is
    linear up to 1 and logarithmic beyond. Large marks are all cells together, small ones the configs; a cross inside
    the interval has failed by its configs.

    Parameters
    ----------
    result
        From `evalbayes.check.repeatability`.
    ax
        Axes to draw on; new ones when not given.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ArgumentError
        If ``result`` is something else.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.plots.repeatability(eb.check.repeatability(fit))                          # doctest: +SKIP
    """
    _check_repeatability(result)
    rows = result.isel(statistic=(result["about"] != "bars").values)
    names = [str(name) for name in rows["statistic"].values]
    ax = ax or new_axes(10.0, 1.5 + 0.4 * len(names))
    ax.axvspan(-1, 1, color=BLUE, alpha=0.12, lw=0, zorder=0)
    ax.axvline(0, color=BLUE, alpha=0.5, lw=1, zorder=0)
    far = [_draw_statistic(ax, y, rows.sel(statistic=name)) for y, name in enumerate(names)]
    for y in np.flatnonzero(rows["about"].values[1:] != rows["about"].values[:-1]):
        ax.axhline(y + 0.5, color=GREY, lw=0.6, alpha=0.6, zorder=0)
    reach = 1.4 * max(3.0, *far)
    ticks = [tick for power in (1, 10, 100, 1000) for tick in (power, 3 * power) if tick < reach]
    ax.set_xscale("symlog", linthresh=1)
    ax.minorticks_off()
    ax.set_xticks([-tick for tick in ticks] + [0, *ticks], [f"{t:g}" for t in [-tick for tick in ticks] + [0, *ticks]])
    ax.set_xlim(-reach, reach)
    ax.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlabel(f"observed minus predicted, in halves of the {result.attrs['prob']:.0%} predictive interval")
    ax.set_title(f"{result.attrs['model']}, and {result.attrs['boards']} boards drawn from the fit", loc="left")
    _add_legend(ax)
    return ax


def successes(result: xr.Dataset, *, config: str | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw the histogram of successes per cell, observed and predicted, of one config or of all.

    Parameters
    ----------
    result
        From `evalbayes.check.repeatability`.
    config
        A config of the board; all cells together when not given.
    ax
        Axes to draw on; new ones when not given.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ArgumentError
        If ``result`` is something else.
    OutcomesError
        If there is no such config, or it has no cell that the histogram is of.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.plots.successes(eb.check.repeatability(fit))                              # doctest: +SKIP
    """
    _check_repeatability(result)
    if config is not None and config not in result["config"].values:
        raise OutcomesError(
            f"config {config!r} is not on the board; it has {', '.join(result['config'].values[:5])}, ..."
        )
    bars = result.isel(statistic=(result["about"] == "bars").values)
    seen, mean, low, high = (
        (bars[f"pooled_{name}"] if config is None else bars[name].sel(config=config)).values
        for name in ("observed", "predicted", "lower", "upper")
    )
    if not np.isfinite(seen).any():
        raise OutcomesError(f"{config or 'the board'}: no cell was run twice or more, and a histogram needs them")
    ax, at = ax or new_axes(6.0, 4.0), np.arange(seen.size)
    ax.bar(at, seen, width=0.8, color=GREY, alpha=0.45, label="observed")
    ax.errorbar(
        at,
        mean,
        [mean - low, high - mean],
        fmt="o",
        color=BLUE,
        capsize=4,
        lw=2,
        label=f"predicted, {result.attrs['prob']:.0%}",
    )
    ax.set_xticks(at, [name.split("_")[1] for name in bars["statistic"].values])
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_xlabel(f"passes in {result.attrs['histogram_runs']} runs")
    ax.set_ylabel("share of cells")
    ax.set_title(f"{result.attrs['model']}: {config or 'all configs'}", loc="left")
    ax.legend(frameon=False)
    return ax


def _check_repeatability(result: xr.Dataset) -> None:
    if not isinstance(result, xr.Dataset) or "pooled_observed" not in result:
        raise ArgumentError(f"result is a {type(result).__name__}; give what evalbayes.check.repeatability returned")


def _draw_statistic(ax: "Axes", y: int, row: xr.Dataset) -> float:
    """Draw one row of the picture of repeatability; return how far from the middle it goes."""
    if row["result"] == "unknown":
        ax.text(0, y, row["pooled_reason"].item(), ha="center", va="center", color=GREY, style="italic")
        return 0.0
    own = _in_half_intervals(*(row[name].values for name in ("observed", "predicted", "lower", "upper")))
    # Spread over the row by the golden ratio: the same place at every drawing, and no two near each other.
    lift = ((np.arange(own.size) * 0.618) % 1 - 0.5) * 0.5
    ax.scatter(own, y + lift, s=8, color=GREY, alpha=0.6, lw=0, zorder=2)
    seen, mean, low, high = (row[f"pooled_{name}"].item() for name in ("observed", "predicted", "lower", "upper"))
    at = float(_in_half_intervals(np.array(seen), np.array(mean), np.array(low), np.array(high)))
    marker, colour = MARKS[row["result"].item()]
    ax.scatter(at, y, s=90, marker=marker, color=colour, edgecolor="white", zorder=3)
    said = [f"{_short(seen)} ({_short(mean)})"]
    if np.isfinite(own).any():
        said.append(f"{row['outside'].item()} ({row['expected_outside'].item():.1f})")
    for left, words in zip(COLUMNS, said, strict=False):
        ax.annotate(words, (1, y), (left, 0), ax.get_yaxis_transform(), "offset points", va="center", color=colour)
    return float(np.nanmax(np.abs([at, *own])))


def _short(value: float) -> str:
    # Adding 0 turns a rounded -0.0 into 0.
    return f"{round(value, 3) + 0:.3f}" if abs(value) < 10 else f"{value:.1f}"


def _in_half_intervals(seen: np.ndarray, mean: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return where values are on the scale on which the predictive interval runs from -1 to 1."""
    half = np.where(seen > mean, high - mean, mean - low)
    # Where drawn boards do not vary at all, the board is either the same or as far away as the picture goes.
    return np.where(
        half > 1e-12, (seen - mean) / np.maximum(half, 1e-12), np.where(abs(seen - mean) < 1e-9, 0.0, np.nan)
    )


def _add_legend(ax: "Axes") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks = [
        Line2D(
            [],
            [],
            ls="",
            marker=marker,
            color=colour,
            markersize=9,
            markeredgecolor="white",
            label=f"{word}, all cells",
        )
        for word, (marker, colour) in MARKS.items()
    ]
    one = Line2D([], [], ls="", marker="o", color=GREY, alpha=0.6, markersize=3, label="one config")
    band = Patch(color=BLUE, alpha=0.12, lw=0, label="predicted")
    ax.legend(handles=[*marks, one, band], frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    for left, words in zip(COLUMNS, ("observed\n(predicted)", "configs outside\n(predicted)"), strict=True):
        ax.annotate(words, (1, 1), (left, 0), ax.transAxes, "offset points", va="bottom", color=GREY)
