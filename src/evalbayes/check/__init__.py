"""Checks of fits: whether to believe one before anything is read off it."""

from evalbayes.check.additivity import additivity as additivity
from evalbayes.check.copies import copies as copies
from evalbayes.check.coverage import coverage as coverage
from evalbayes.check.population import population as population
from evalbayes.check.repeatability import repeatability as repeatability
from evalbayes.check.runs import runs as runs
from evalbayes.check.sampler import sampler as sampler
from evalbayes.check.task_subsets import task_subsets as task_subsets

__all__ = ["additivity", "copies", "coverage", "population", "repeatability", "runs", "sampler", "task_subsets"]
