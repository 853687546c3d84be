"""Answers from a fit; the names, the leading arguments and the schema are those of `evalbayes.frequentist`."""

from evalbayes.posterior.difference import difference
from evalbayes.posterior.ranking import rank, top_k, win_probability
from evalbayes.posterior.score import score

__all__ = ["difference", "rank", "score", "top_k", "win_probability"]
