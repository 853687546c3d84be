"""What a leaderboard may print: standard errors with their assumptions, significance groups, and what does not add up.

Four objects stay apart here, in names, headings and tooltips:

- the observed proportion, an exact fact about the runs that were made;
- the binomial standard error, which a model of exchangeable runs implies (`standard_errors`);
- the paired comparison of two entries on the tasks that both were scored on (`mcnemar_groups`, `sign_flip`);
- repeatability, how a score varies over new runs of these tasks, which a single run cannot show (`standard_errors`).
"""

from evalbayes.board.audit import audit as audit
from evalbayes.board.leaders import rank_sets as rank_sets
from evalbayes.board.leaders import winner as winner
from evalbayes.board.mcnemar import mcnemar_groups as mcnemar_groups
from evalbayes.board.mcnemar import mcnemar_p as mcnemar_p
from evalbayes.board.published import honesty_gate as honesty_gate
from evalbayes.board.sign_flip import sign_flip as sign_flip
from evalbayes.board.standard_errors import standard_errors as standard_errors
from evalbayes.board.triples import impossible_triples as impossible_triples

__all__ = [
    "audit",
    "honesty_gate",
    "impossible_triples",
    "mcnemar_groups",
    "mcnemar_p",
    "rank_sets",
    "sign_flip",
    "standard_errors",
    "winner",
]
