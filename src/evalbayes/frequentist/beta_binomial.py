"""Beta-binomial maximum likelihood: variance components of configs whose task rates are taken to be Beta distributed.

A config's rates are Beta(alpha, beta) over tasks, and its k of n successes beta-binomial. With m = alpha / (alpha +
beta) and rho = 1 / (1 + alpha + beta), the correlation of two runs of a task, the factors of the rising factorials are
(Griffiths 1973, Biometrics 29, 637-648)::

    log L = sum_j [P_j log(m (1 - rho) + j rho) + F_j log((1 - m) (1 - rho) + j rho) - N_j log(1 - rho + j rho)]

with P_j, F_j and N_j how many tasks have more than j passes, fails and runs: all that the data say. It is maximised by
Newton's method in the logits of m and rho, for all resampled boards at once; rho = 0 (no task differs) and rho = 1 (no
task has runs of both kinds) are found by their own conditions.
"""

from typing import NamedTuple

import numpy as np

from evalbayes.errors import ArgumentError, NotIdentifiedError
from evalbayes.frequentist.bootstrap import BLOCK, Cells, Floats, Integers
from evalbayes.frequentist.moments import Estimator

STEPS, LONGEST, CLOSE = 60, 2.0, 1e-9
"""Newton steps at most, the longest of them in logits, and the step at which to stop."""
HALVINGS = 30
MOST_RUNS = 2000
"""Of a cell: with more the likelihood takes minutes to resample."""


class Tails(NamedTuple):
    """How many tasks have more than j passes, fails and runs, (row, j), and how many have runs of both kinds, (row)."""

    passes: Floats
    fails: Floats
    runs: Floats
    mixed: Floats


def estimator(board: Cells, opponent: int | None) -> Estimator:
    """Return the estimator of every config's components.

    Raises
    ------
    ArgumentError
        If a cell has more than `MOST_RUNS` runs.
    NotIdentifiedError
        If differences from a reference are asked for: two Beta distributions say nothing of their dependence.
    """
    if opponent is not None:
        raise NotIdentifiedError(
            "method='beta_binomial_ml' fits one config at a time and has no difference of two; use method='moments'"
        )

    most = int(board.trials.max(initial=0))
    if most > MOST_RUNS:
        raise ArgumentError(
            f"method='beta_binomial_ml': a cell of {most:,} runs, and the likelihood has a term for each: "
            f"{MOST_RUNS:,} at most; use method='moments'"
        )

    def at(counts: Floats) -> tuple[Floats, Floats]:
        between, within = np.empty((2, len(counts), len(board.trials)))
        for config in range(len(board.trials)):
            m, rho = _estimates(board, config, counts)
            between[:, config], within[:, config] = m * (1 - m) * rho, m * (1 - m) * (1 - rho)
        return between, within

    whole = np.ones((1, board.trials.shape[1]))
    m, rho = np.array([_estimates(board, config, whole) for config in range(len(board.trials))])[..., 0].T
    with np.errstate(divide="ignore", invalid="ignore"):
        size = (1 - rho) / rho
        extra = {"alpha": m * size, "beta": (1 - m) * size}
    scored = board.scored.sum(axis=1)
    return Estimator(at, scored, (board.trials > 1).any(axis=1), extra)


def _estimates(board: Cells, config: int, counts: Floats) -> tuple[Floats, Floats]:
    """Return m and rho of a config where task t counts ``counts[:, t]`` times; NaN where no run is left."""
    k, n = board.successes[config], board.trials[config]
    j = np.arange(max(int(n.max(initial=0)), 1))
    passes, fails, runs = ((part[:, None] > j).astype(float) for part in (k, n - k, n))
    size = max(1, BLOCK // len(j))
    parts = []
    for start in range(0, len(counts), size):
        block = counts[start : start + size]
        parts.append(_maximum(Tails(block @ passes, block @ fails, block @ runs, block @ ((k > 0) & (k < n)))))
    m, rho = (np.concatenate(part) for part in zip(*parts, strict=True))
    return m, rho


def _maximum(tails: Tails) -> tuple[Floats, Floats]:
    """Return m and rho at the maximum of the likelihood of every row."""
    passes, fails = tails.passes.sum(axis=1), tails.fails.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        m, rho = passes / (passes + fails), np.where(tails.mixed == 0, 1.0, 0.0)
        # Runs of a task are all alike: one task is one run, whatever its number of runs.
        m = np.where(tails.mixed == 0, tails.passes[:, 0] / tails.runs[:, 0], m)
    inside = np.flatnonzero((tails.mixed > 0) & (_slope_at_zero(tails, m) > 0))
    if inside.size:
        m[inside], rho[inside] = _climbed(Tails(*(part[inside] for part in tails)), m[inside])
    return m, rho


def _slope_at_zero(tails: Tails, m: Floats) -> Floats:
    """Return the derivative of log L in rho at rho = 0 and the binomial's m: not above 0, rho = 0 is a maximum."""
    j, at = np.arange(tails.runs.shape[1]), m[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = tails.passes * (j / at - 1) + tails.fails * (j / (1 - at) - 1) - tails.runs * (j - 1)
    return np.asarray(np.nansum(terms, axis=1))


def _climbed(tails: Tails, m: Floats) -> tuple[Floats, Floats]:
    """Return the maximum inside the unit square, from m and the middle of rho, by damped Newton steps."""
    at = np.stack([np.log(m / (1 - m)), np.zeros_like(m)])
    height = _log_likelihood(tails, at)
    for _ in range(STEPS):
        step = _newton(tails, at)
        for _ in range(HALVINGS):
            reached = _log_likelihood(tails, at + step)
            worse = ~(reached >= height - 1e-12 * np.abs(height))
            if not worse.any():
                break
            step[:, worse] /= 2
        at, height = at + step, reached
        if np.abs(step).max() < CLOSE:
            break
    m, rho = _expit(at)
    return m, rho


def _parts(tails: Tails, at: Floats) -> tuple[Floats, Floats, list[Floats], Integers]:
    """Return m and rho (row, 1), the three factors (row, j), and j."""
    j = np.arange(tails.runs.shape[1])
    m, rho = (part[:, None] for part in _expit(at))
    return m, rho, [m * (1 - rho) + j * rho, (1 - m) * (1 - rho) + j * rho, 1 - rho + j * rho], j


def _log_likelihood(tails: Tails, at: Floats) -> Floats:
    *_, factors, _ = _parts(tails, at)
    signs = (1, 1, -1)
    return np.asarray(
        sum(sign * (n * np.log(f)).sum(axis=1) for sign, n, f in zip(signs, tails[:3], factors, strict=True))
    )


def _newton(tails: Tails, at: Floats) -> Floats:
    """Return Newton's step in the logits, (2, row), made to lead uphill along the axes of the Hessian."""
    m, rho, (a, b, c), j = _parts(tails, at)
    p, f, n = tails.passes / a, tails.fails / b, tails.runs / c
    up, down, over = j - m, j - 1 + m, j - 1
    slope_m = ((1 - rho) * (p - f)).sum(axis=1)
    slope_rho = (p * up + f * down - n * over).sum(axis=1)
    curve_m = -((1 - rho) ** 2 * (p / a + f / b)).sum(axis=1)
    curve_rho = (n / c * over**2 - p / a * up**2 - f / b * down**2).sum(axis=1)
    mixed = (f - p + (1 - rho) * (f / b * down - p / a * up)).sum(axis=1)
    m, rho = m[:, 0], rho[:, 0]
    v, w = m * (1 - m), rho * (1 - rho)
    gradient = np.stack([slope_m * v, slope_rho * w], axis=-1)
    hessian = np.empty((len(m), 2, 2))
    hessian[:, 0, 0] = curve_m * v**2 + slope_m * v * (1 - 2 * m)
    hessian[:, 1, 1] = curve_rho * w**2 + slope_rho * w * (1 - 2 * rho)
    hessian[:, 0, 1] = hessian[:, 1, 0] = mixed * v * w
    values, axes = np.linalg.eigh(hessian)
    along = np.einsum("rij,ri->rj", axes, gradient) / np.maximum(np.abs(values), 1e-12)
    step = np.einsum("rij,rj->ir", axes, along)
    length = np.sqrt((step**2).sum(axis=0))
    return np.asarray(step * np.minimum(1.0, LONGEST / np.maximum(length, 1e-300)))


def _expit(x: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))
