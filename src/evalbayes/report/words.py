"""The words a reader meets: what targets and policies mean, and how numbers are written."""

import math

TARGETS = {
    ("tasks", "fixed"): "these tasks as they stand, new runs",
    ("tasks", "sampled"): "new tasks like these",
    ("configs", "fixed"): "these entries",
    ("configs", "sampled"): "future entries like these",
}
ERRORS = {
    "missing": "attempts that errored are left out of the denominator",
    "failure": "attempts that errored count as failures",
    "raise": "no attempt errored (any would have been refused)",
}


def entitle(quantity: str) -> str:
    """Return a quantity's name as text: ``win_probability`` is "win probability"."""
    return quantity.replace("_", " ")


def percent(value: float, digits: int = 1) -> str:
    """Write a proportion in percent; what is not known is a dash.

    >>> percent(0.5), percent(float("nan"))
    ('50.0%', '–')
    """
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f}%"


def probability(value: float) -> str:
    """Write a probability estimated from draws, never as a false certainty.

    >>> probability(0.0), probability(0.123), probability(1.0)
    ('<0.1%', '12.3%', '>99.9%')
    """
    if math.isnan(value):
        return "–"
    if value < 0.001:
        return "<0.1%"
    return ">99.9%" if value > 0.999 else percent(value)


def span(low: float, high: float) -> str:
    """Write an interval of proportions in percent.

    >>> span(0.25, 0.5)
    '25.0–50.0%'
    """
    return "–" if math.isnan(low) or math.isnan(high) else f"{100 * low:.1f}–{100 * high:.1f}%"


def ranks(low: float, high: float) -> str:
    """Write an interval of ranks.

    >>> ranks(1, 3), ranks(2, 2)
    ('1–3', '2')
    """
    if math.isnan(low) or math.isnan(high):
        return "–"
    return f"{low:g}" if low == high else f"{low:g}–{high:g}"


def shorten(name: str, length: int = 36) -> str:
    """Cut a long name in its middle: names of one board often share their beginning, or differ by their end.

    >>> shorten("vendor/agent-with-model-2025-01-01", 16)
    'vendor/…25-01-01'
    """
    if len(name) <= length:
        return name
    tail = length // 2
    return f"{name[: length - tail - 1]}…{name[-tail:]}"
