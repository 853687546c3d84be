"""Answers from outcomes, without a model: the cross-checks of `evalbayes.posterior`, under the same names."""

from evalbayes.frequentist.difference import difference
from evalbayes.frequentist.ranking import rank, top_k, win_probability
from evalbayes.frequentist.repeatability import (
    aleatoric_share,
    between_variance,
    ceiling,
    design_effect,
    design_factor,
    icc,
    optimal_runs,
    within_variance,
)
from evalbayes.frequentist.score import score

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
