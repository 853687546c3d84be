"""Answers from outcomes, without a model: the cross-checks of `evalbayes.posterior`, under the same names."""

from evalbayes.frequentist.attempts import agreement_rate, flip_rate, pass_all_k, pass_at_k
from evalbayes.frequentist.difference import difference
from evalbayes.frequentist.leaders import adjacent, best_set
from evalbayes.frequentist.partition import variance_components
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
    "adjacent",
    "agreement_rate",
    "aleatoric_share",
    "best_set",
    "between_variance",
    "ceiling",
    "design_effect",
    "design_factor",
    "difference",
    "flip_rate",
    "icc",
    "optimal_runs",
    "pass_all_k",
    "pass_at_k",
    "rank",
    "score",
    "top_k",
    "variance_components",
    "win_probability",
    "within_variance",
]
