"""Answers from a fit; the names, the leading arguments and the schema are those of `evalbayes.frequentist`."""

from evalbayes.posterior.difference import difference
from evalbayes.posterior.ranking import rank, top_k, win_probability
from evalbayes.posterior.repeatability import (
    aleatoric_share,
    between_variance,
    ceiling,
    design_effect,
    design_factor,
    icc,
    optimal_runs,
    within_variance,
)
from evalbayes.posterior.score import score

__all__ = [
    "aleatoric_share",
    "between_variance",
    "ceiling",
    "design_effect",
    "design_factor",
    "difference",
    "icc",
    "optimal_runs",
    "rank",
    "score",
    "top_k",
    "win_probability",
    "within_variance",
]
