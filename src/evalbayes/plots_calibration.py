"""The picture of a calibration: ECDFs of ranks less that of uniform ones, and how far they may be from it."""

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from evalbayes.errors import ArgumentError, OutcomesError
from evalbayes.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILLION, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = [(colour, line) for line in ("-", "--", "-.") for colour in (VERMILLION, ORANGE, PURPLE, GREEN)]
"""Of quantities that are not uniform, one after the other."""


def calibration(result: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the ECDF of every quantity's ranks less that of uniform ranks.

    The band has the level of the verdict: uniform ranks of all quantities stay inside with probability ``prob`` or more
    (Bonferroni: a quantity leaves it if its p-value is at most (1 - prob) over their number, and if any is called not
    uniform one leaves it). Above the line in the left half truths lie low among the draws, posteriors too high; an arch
    above and then below the line is a posterior too narrow.

    Parameters
    ----------
    result
        From `evalbayes.check.calibration`.
    ax
        Axes to draw on; new ones when not given.

    Returns
    -------
    matplotlib.axes.Axes
        Rank over L + 1 against the difference of ECDFs. Quantities that are not uniform have colours and names.

    Raises
    ------
    ArgumentError
        If ``result`` is something else.
    OutcomesError
        If no fit passed.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.plots.calibration(eb.check.calibration("crossed"))                        # doctest: +SKIP
    """
    if not isinstance(result, xr.Dataset) or not {"ranks", "p_adjusted"} <= {*map(str, result.variables)}:
        raise ArgumentError(f"result is a {type(result).__name__}; give what evalbayes.check.calibration returned")
    from evalbayes.check.uniformity import band

    fits, failed, draws, prob = (result.attrs[name] for name in ("fits", "failed", "draws", "prob"))
    if fits == failed:
        raise OutcomesError("no fit passed its checks: there are no ranks to draw")
    ax, at, count = ax or new_axes(7.5, 4.5), np.arange(draws + 2) / (draws + 1), result.sizes["quantity"]
    low, high = (np.array([0.0, *edge, 1.0]) for edge in band(fits - failed, draws, 1 - (1 - prob) / count))
    ax.fill_between(at, low - at, high - at, color=BLUE, alpha=0.12, lw=0, label=f"{prob:.0%} band over all")
    ax.axhline(0, color=BLUE, alpha=0.5, lw=1)
    styles = iter(STYLES * count)
    for name in result["quantity"].values:
        one = result.sel(quantity=name)
        ranks = one["ranks"].dropna("fit").values
        line = (ranks < np.arange(draws + 2)[:, None]).mean(axis=1) - at
        if one["uniform"]:
            ax.plot(at, line, color=GREY, lw=0.8, alpha=0.7)
        else:
            colour, dashes = next(styles)
            ax.plot(at, line, color=colour, ls=dashes, lw=2, label=f"{name}: {one['shape'].item()}")
    ax.plot([], [], color=GREY, lw=0.8, label=f"{int(result['uniform'].sum())} of {count} quantities, uniform")
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"rank of the truth among {draws} draws, over {draws + 1}")
    ax.set_ylabel("ECDF less that of uniform ranks")
    ax.set_title(f"{result.attrs.get('model', 'ranks')}: {fits - failed} fits of boards from its prior", loc="left")
    ax.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    return ax
