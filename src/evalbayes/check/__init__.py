"""Checks of fits: whether to believe one before anything is read off it."""

from evalbayes.check.additivity import additivity as additivity
from evalbayes.check.calibration import calibration as calibration
from evalbayes.check.copies import copies as copies
from evalbayes.check.coverage import coverage as coverage
from evalbayes.check.discordance import discordance as discordance
from evalbayes.check.leave_task_out import compare_models as compare_models
from evalbayes.check.leave_task_out import leave_task_out as leave_task_out
from evalbayes.check.population import population as population
from evalbayes.check.repeatability import repeatability as repeatability
from evalbayes.check.runs import runs as runs
from evalbayes.check.sampler import sampler as sampler
from evalbayes.check.sensitivity import sensitivity as sensitivity
from evalbayes.check.task_subsets import task_subsets as task_subsets

__all__ = [
    "additivity",
    "calibration",
    "compare_models",
    "copies",
    "coverage",
    "discordance",
    "leave_task_out",
    "population",
    "repeatability",
    "runs",
    "sampler",
    "sensitivity",
    "task_subsets",
]
