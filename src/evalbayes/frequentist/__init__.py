"""Answers from outcomes, without a model: the cross-checks of `evalbayes.posterior`, under the same names."""

from evalbayes.frequentist.difference import difference
from evalbayes.frequentist.ranking import rank, top_k, win_probability
from evalbayes.frequentist.score import score

__all__ = ["difference", "rank", "score", "top_k", "win_probability"]
