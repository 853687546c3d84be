"""Bayesian hierarchical analysis of evaluation outcomes: configurations x tasks x runs, pass or fail.

>>> import evalbayes as eb
>>> board = eb.datasets.load("simulated")
>>> board.sizes["config"]
12

Importing evalbayes loads nothing heavy: each name below is imported when it is first used.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalbayes import answer as answer
    from evalbayes import board as board
    from evalbayes import check as check
    from evalbayes import datasets as datasets
    from evalbayes import design as design
    from evalbayes import frequentist as frequentist
    from evalbayes import models as models
    from evalbayes import outcomes as outcomes
    from evalbayes import pairs as pairs
    from evalbayes import plots as plots
    from evalbayes import posterior as posterior
    from evalbayes import simulate as simulate
    from evalbayes.comparison import compare as compare
    from evalbayes.errors import ArgumentError as ArgumentError
    from evalbayes.errors import NotIdentifiedError as NotIdentifiedError
    from evalbayes.errors import OutcomesError as OutcomesError
    from evalbayes.errors import SamplingError as SamplingError
    from evalbayes.fit import fit as fit
    from evalbayes.gate import gate as gate
    from evalbayes.outcomes import combine as combine
    from evalbayes.outcomes import describe as describe
    from evalbayes.outcomes import describe_tasks as describe_tasks
    from evalbayes.outcomes import load as load
    from evalbayes.outcomes import save as save
    from evalbayes.read import read as read
    from evalbayes.report import report as report

__version__ = "0.1.0"

_MODULES = (
    "answer",
    "board",
    "check",
    "datasets",
    "design",
    "frequentist",
    "models",
    "outcomes",
    "pairs",
    "plots",
    "posterior",
    "simulate",
)
_FUNCTIONS = {
    "combine": "evalbayes.outcomes",
    "compare": "evalbayes.comparison",
    "describe": "evalbayes.outcomes",
    "describe_tasks": "evalbayes.outcomes",
    "fit": "evalbayes.fit",
    "gate": "evalbayes.gate",
    "load": "evalbayes.outcomes",
    "read": "evalbayes.read",
    "report": "evalbayes.report",
    "save": "evalbayes.outcomes",
    "ArgumentError": "evalbayes.errors",
    "NotIdentifiedError": "evalbayes.errors",
    "OutcomesError": "evalbayes.errors",
    "SamplingError": "evalbayes.errors",
}
__all__ = sorted([*_MODULES, *_FUNCTIONS, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"evalbayes.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)
    raise AttributeError(f"module 'evalbayes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps `evalbayes.fit`, `.gate`, `.read` and `.report` functions although modules of those names exist.

    Importing a submodule binds it on its package; without this, `import evalbayes.read.table` anywhere
    would turn `eb.read` from the function into the module.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _FUNCTIONS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
