"""Checks of fits: whether to believe one before anything is read off it."""

from evalbayes.check.additivity import additivity as additivity
from evalbayes.check.population import population as population
from evalbayes.check.sampler import sampler as sampler

__all__ = ["additivity", "population", "sampler"]
