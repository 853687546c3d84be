"""A paired test for repeated runs: flip the signs of the per-task differences.

For two entries with task means p_at and p_bt, let d_t = p_at - p_bt. If on every shared task the two are exchangeable
(the same system under two names, say), d_t is as likely as -d_t, and the sum of d_t is a draw from its 2^m sign
patterns, m being the tasks where d_t is not 0. The test is exact for that hypothesis, whatever the number of runs
(Fisher, The Design of Experiments, 1935, section 21); on one run a task it is McNemar's exact test.
"""

from typing import Any

import numpy as np
import xarray as xr

from evalbayes.cells import BLOCK
from evalbayes.errors import check_whole
from evalbayes.frequentist import bootstrap
from evalbayes.frequentist.normal import task_means
from evalbayes.frequentist.paired import labelled, pairs_of, shared_tasks, square
from evalbayes.frequentist.targets import needs_two
from evalbayes.textbook import Floats, Integers

TIED = 1e-9
"""Sums of differences closer than this are the same one, differently rounded."""
ASSUMES = "on every shared task the two entries are exchangeable if neither is better; tasks are independent"


def sign_flip(outcomes: xr.Dataset, *, reference: str | None = None, draws: int = 9999, seed: int = 0) -> xr.Dataset:
    """Test whether two entries differ, from the signs of the differences of their task means on shared tasks.

    p is the share of sign patterns whose |sum d_t| is at least the observed one, equal sums counted. Where there are
    no more than ``draws`` of them up to a flip of all signs, 2^(m-1), every one is gone through; otherwise p is
    (1 + count) / (1 + draws) over random patterns (Davison and Hinkley, Bootstrap Methods and their Application, 1997,
    section 4.2), the same for every pair and a function of the seed alone. No correction for the number of pairs.

    A difference may come from chance in the runs or from tasks that suit one entry: p does not say which. It is a test
    of these two on tasks like these, and no measure of repeatability.

    Parameters
    ----------
    outcomes
        A board; tasks may have any number of runs, and those that only one of the two was scored on are left out.
    reference
        A config to test the others against; None tests all pairs.
    draws, seed
        Of the random sign patterns.

    Returns
    -------
    xarray.Dataset
        Over ``config`` and ``opponent``, or over ``config`` with a reference: ``difference`` (mean d_t over the shared
        tasks, config minus opponent, in [-1, 1]) and ``se``, sd(d_t) / sqrt(T), NaN where there is no spread; ``p``;
        ``shared`` tasks; ``informative`` (m); ``least_p``, 2^(1-m) (or 1 / (draws + 1)), below which no outcome gets;
        ``exact``, whether every pattern was gone through; ``reason``, blank where there is a p-value: a config is not
        compared with itself, nor two that share no task. attrs ``draws``, ``seed``, ``pairs`` (tested), ``assumes``,
        and the target, ``tasks`` and ``configs``.

    Raises
    ------
    ArgumentError
        If draws or seed are no whole numbers.
    NotIdentifiedError
        If there is one config.
    OutcomesError
        If the reference is not on the board.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[5, 4, 4, 3, 5], [3, 2, 4, 0, 4]], [[5] * 5] * 2, configs=["a", "b"], tasks=list("vwxyz"))
    >>> seen = sign_flip(board).sel(config="a", opponent="b")
    >>> seen.p.item(), seen.informative.item(), bool(seen.exact)
    (0.125, 4, True)
    """
    check_whole("draws", draws, 1)
    check_whole("seed", seed, 0)
    needs_two("sign_flip", outcomes)
    ordered = outcomes.sortby("config")
    board, pairs = bootstrap.cells(ordered), pairs_of(ordered, reference)
    means, shared = task_means(board), shared_tasks(board, pairs)
    tested = (pairs[:, 0] != pairs[:, 1]) & (shared > 0)
    found = _tested(means, pairs[tested], draws, seed)
    parts = {name: _spread(values, tested) for name, values in found.items()}
    facts: dict[str, Any] = parts | {"shared": shared}
    facts["informative"] = np.nan_to_num(parts["informative"]).astype(np.int64)
    facts["exact"] = tested & (facts["least_p"] > 1 / (draws + 1))
    facts["reason"] = np.where(tested, "", np.where(shared == 0, "no shared task", "a config and itself")).astype(
        object
    )
    dims: tuple[str, ...] = ("config",) if reference is not None else ("config", "opponent")
    if reference is None:
        facts = {name: square(values, pairs) for name, values in facts.items()}
        facts["difference"][tuple(pairs.T[::-1])] = -parts["difference"]
    result = xr.Dataset({name: labelled(values, dims, ordered) for name, values in facts.items()})
    result = result.reindex(dict.fromkeys(dims, outcomes["config"].values))
    result.attrs = {"draws": draws, "seed": seed, "pairs": int(tested.sum()), "assumes": ASSUMES}
    result.attrs |= {"tasks": "sampled", "configs": "fixed"}
    return result if reference is None else result.assign_attrs(reference=reference)


def _spread(values: Floats, tested: Any) -> Floats:
    full = np.full(len(tested), np.nan)
    full[tested] = values
    return full


def _tested(means: Floats, pairs: Integers, draws: int, seed: int) -> dict[str, Floats]:
    """Return of every pair the mean difference and its se, the p-value, the informative tasks and the least p."""
    size, tasks = len(pairs), means.shape[1]
    names = ("difference", "se", "p", "informative", "least_p")
    found = {name: np.empty(size) for name in names}
    most = int(np.log2(draws)) + 1
    step = max(1, BLOCK // (8 * max(tasks, 1)))
    for start in range(0, size, step):
        block = slice(start, start + step)
        gaps = means[pairs[block, 0]] - means[pairs[block, 1]]
        gaps[np.abs(gaps) < TIED] = 0.0
        here = _described(gaps)
        gaps, m = np.nan_to_num(gaps), here["informative"].astype(int)
        p = np.empty(len(gaps))
        few = m <= most
        for count in np.unique(m[few]):
            p[m == count] = _enumerated(gaps[m == count], count)
        if not few.all():
            p[~few] = _drawn(gaps[~few], draws, np.random.default_rng([seed, tasks]))
        least = np.where(few, 2.0 ** (1 - np.maximum(m, 1)), 1 / (draws + 1))
        for name, values in (here | {"p": p, "least_p": least}).items():
            found[name][block] = values
    return found


def _described(gaps: Floats) -> dict[str, Floats]:
    shared = (~np.isnan(gaps)).sum(axis=1)
    mean = np.nansum(gaps, axis=1) / shared
    squares = np.nansum((gaps - mean[:, None]) ** 2, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.sqrt(squares / (shared - 1) / shared)
    informative = (np.nan_to_num(gaps) != 0).sum(axis=1).astype(float)
    return {"difference": mean, "se": np.where(squares > TIED, se, np.nan), "informative": informative}


def _enumerated(gaps: Floats, count: int) -> Floats:
    """Go through the sign patterns of pairs that have ``count`` informative tasks each; the first sign stays."""
    if count == 0:
        return np.ones(len(gaps))
    values = gaps[gaps != 0].reshape(len(gaps), count)
    codes = np.arange(2 ** (count - 1))
    signs = 1.0 - 2.0 * ((codes[:, None] >> np.arange(count)) & 1)
    p = np.empty(len(gaps))
    step = max(1, BLOCK // len(codes))
    for start in range(0, len(gaps), step):
        block = values[start : start + step]
        p[start : start + step] = _reached(signs @ block.T, block).mean(axis=0)
    return p


def _drawn(gaps: Floats, draws: int, rng: np.random.Generator) -> Floats:
    hits = np.zeros(len(gaps))
    step = max(1, BLOCK // max(gaps.shape))
    for start in range(0, draws, step):
        signs = 2.0 * rng.integers(2, size=(min(step, draws - start), gaps.shape[1])) - 1.0
        hits += _reached(signs @ gaps.T, gaps).sum(axis=0)
    return np.asarray((1 + hits) / (1 + draws))


def _reached(sums: Floats, gaps: Floats) -> Any:
    return np.abs(sums) >= np.abs(gaps.sum(axis=1)) - TIED
