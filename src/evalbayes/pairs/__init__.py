"""All-pairs summaries of a board: how many pairs of configs are near ties, and what such a count is worth.

>>> import xarray as xr
>>> from evalbayes import pairs
>>> scores = xr.DataArray([51, 52, 55, 70, 71, 90], dims="config")
>>> pairs.near_tie(scores, 0.05, out_of=100).fraction.item()
'4/15'
"""

from evalbayes.pairs.checklist import checklist as checklist
from evalbayes.pairs.diagnostics import diagnostic as diagnostic
from evalbayes.pairs.diagnostics import influence as influence
from evalbayes.pairs.enumeration import coverage_states as coverage_states
from evalbayes.pairs.enumeration import coverage_table as coverage_table
from evalbayes.pairs.enumeration import exact_coverage as exact_coverage
from evalbayes.pairs.questions import discordance as discordance
from evalbayes.pairs.questions import equality as equality
from evalbayes.pairs.questions import near_tie as near_tie
from evalbayes.pairs.questions import summary as summary
from evalbayes.pairs.thinning import thinning as thinning
from evalbayes.pairs.widths import widths as widths

__all__ = [
    "checklist",
    "coverage_states",
    "coverage_table",
    "diagnostic",
    "discordance",
    "equality",
    "exact_coverage",
    "influence",
    "near_tie",
    "summary",
    "thinning",
    "widths",
]
