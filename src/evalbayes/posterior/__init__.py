"""Answers from a fit; the names, the leading arguments and the schema are those of `evalbayes.frequentist`."""

from evalbayes.posterior.attempts import agreement_rate, flip_rate, pass_all_k, pass_at_k
from evalbayes.posterior.difference import difference
from evalbayes.posterior.leaders import adjacent, best_set
from evalbayes.posterior.near_tie import near_tie as near_tie
from evalbayes.posterior.partition import variance_components
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
