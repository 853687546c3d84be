"""The exceptions of evalbayes: one family, each message one line that names the place and the remedy.

>>> raise OutcomesError("runs.csv, row 7: outcome 'maybe' is not a pass or a fail; map it with outcome_map=")
Traceback (most recent call last):
evalbayes.errors.OutcomesError: runs.csv, row 7: outcome 'maybe' is not a pass or a fail; map it with outcome_map=
"""

from numbers import Integral
from typing import Any


class EvalbayesError(Exception):
    """Base of every error that evalbayes raises on purpose; its text is one readable line."""


class ArgumentError(EvalbayesError, ValueError):
    """An argument is not one of the words or numbers that a function takes: names those it does."""


class OutcomesError(EvalbayesError):
    """The data are wrong: names the file, row, config, task, run or value, and the remedy."""


class NotIdentifiedError(EvalbayesError):
    """The question has no answer in these data: names what is missing."""


class SamplingError(EvalbayesError):
    """A fit failed its own checks: names the check, by how much, and what to try."""


def check_whole(name: str, value: Any, least: int, remedy: str = "") -> None:
    """Refuse what is not a whole number from ``least`` to 2**63 - 1."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (whole and least <= value < 2**63):
        raise ArgumentError(f"{name}={value!r}: {remedy or f'give a whole number from {least} to 2**63 - 1'}")
