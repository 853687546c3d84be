"""Whether repeated runs look like copies: of one another, or of another entry's.

Three questions, none of them a charge. A deterministic system (temperature 0) agrees with itself as a cached answer
does, one system under two names agrees with itself, and runs that share a round agree a little more than others.

1. Do two runs of a config agree on too many tasks? Of a cell's n_t scored runs k_t passed. If runs are exchangeable,
   two of them disagree with probability f_t = 2 k_t (n_t - k_t) / (n_t (n_t - 1)), and the number of tasks on which
   they do is Poisson-binomial: the p-value P(X <= disagreements) is exact. It takes three runs.
2. Does no cell of a config vary, where those of the others do? Two runs of theirs disagree at a rate of
   2 (1 - ICC) s (1 - s), s being a config's score. At the same ICC and its own s, none of N cells would vary with a
   chance of at most (1 - 2 (1 - ICC) s (1 - s))^N: a product is at most a power of the mean.
3. Do two configs have the same counts on every task? If they had nothing in common but how hard tasks are, a config's
   counts could change places among tasks that are as hard for the others (strata of five tasks or more): the chance
   that they all fall together is the product over strata of (product of m_j!) / m!, with m_j tasks of each count. And
   if both were one system, a cell's passes would fall on the two entries as in a draw without replacement.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy import special

from evalbayes.answer import check_prob
from evalbayes.cells import BLOCK
from evalbayes.check.runs import Bools, identified, no_identity, scored_runs
from evalbayes.simulate import Floats
from evalbayes.textbook import holm

Integers = npt.NDArray[np.int64]

STRATUM = 5
"""Tasks of like difficulty that are compared with one another, at least."""
NOT_REPEATED = "no task has two scored runs: nothing to compare"
MOST = 3
"""Pairs of runs of one config that are spelled out."""
STILL = "no cell of any config varies: copies and steady systems look the same here"
CAUTION = "a question, not a charge: a deterministic system (temperature 0) looks the same"


class Twin(NamedTuple):
    """A config's first double, how many tasks were expected to agree, and two chances that all do."""

    name: str = ""
    expected: float = np.nan
    unrelated: float = np.nan
    rerun: float = np.nan


def copies(outcomes: xr.Dataset, *, prob: float = 0.95) -> xr.Dataset:
    """Look for runs that agree as copies would, configs whose runs never differ, and entries that are one entry.

    Parameters
    ----------
    outcomes
        A board. Runs are compared pair by pair only where it has ``outcome`` with run names that recur over tasks.
    prob
        Level of the upper bound. Each of the three questions has a familywise false-alarm rate of 1 - prob at most:
        the first exactly, the second for configs as steady as the others, the third for entries that have nothing
        in common but the difficulty of tasks.

    Returns
    -------
    xarray.Dataset
        Over config:

        - ``repeated``, cells with two scored runs or more; ``varied``, those with a pass and a fail; ``share_upper``,
          the exact one-sided upper bound on the share of cells that would vary in so many runs (Clopper and Pearson,
          Biometrika 26, 1934): no flips seen is not no noise;
        - ``flip_rate``, how often two runs of a cell disagree, and ``flip_rate_elsewhere``, what the others lead one to
          expect at this config's score; ``steady_p``, the chance that no cell would vary then, where none does, and
          ``steady_p_holm``. They take this config's ICC to be that of the others, which a steadier system's is not;
        - ``twin``, the first other config with the same counts on every task, and ``twin_expected``, the number of
          tasks on which unrelated configs of these margins would agree; ``twin_p`` that they would on all,
          ``twin_p_adjusted`` for the number of pairs of configs (Bonferroni); ``twin_rerun_p``, that one system run
          afresh would (1 where no cell varies);
        - ``suspicious`` and ``why``, ``reason`` where repeats say nothing.

        Over (config, pair), with coords ``run_a`` and ``run_b``: ``shared`` tasks scored in both; ``disagreements``;
        ``expected`` (from the config's other pairs of runs on these tasks; NaN without) and ``expected_elsewhere``
        (from ``flip_rate_elsewhere``); ``p`` and ``p_holm`` (over all pairs of the board), NaN without a third run.

        attrs: ``verdict`` (text), ``pairs`` (blank, or why no pair of runs was compared) and ``prob``.

    Raises
    ------
    ArgumentError
        If prob is not between 0 and 1.

    Examples
    --------
    >>> from evalbayes.outcomes import from_counts
    >>> board = from_counts([[2, 2, 0, 0, 2, 0, 2, 0]], [[2] * 8], configs=["a"], tasks=list("stuvwxyz"))
    >>> seen = copies(board)
    >>> seen.varied.item(), round(seen.share_upper.item(), 3), bool(seen.suspicious.item())
    (0, 0.312, False)
    """
    check_prob(prob)
    board = identified(outcomes)
    result = xr.Dataset(_steadiness(board, prob) | _twins(board), coords={"config": board["config"].values})
    result = result.assign(_pairs(board, result["flip_rate_elsewhere"].values))
    ends = np.triu_indices(board.sizes["run"], 1)
    names = [board["run"].values[end] for end in ends]
    labels = np.array([f"{a} and {b}" for a, b in zip(*names, strict=True)], dtype=object)
    result = result.assign_coords(pair=labels, run_a=("pair", names[0]), run_b=("pair", names[1]))
    result["reason"] = result["repeated"].copy(data=np.where(result["repeated"] > 0, "", NOT_REPEATED).astype(object))
    why = [_why(result.isel(config=i), 1 - prob) for i in range(result.sizes["config"])]
    result = result.assign(suspicious=("config", [bool(text) for text in why]), why=("config", np.array(why, object)))
    result.attrs = {"verdict": _verdict(result), "pairs": _no_pairs(outcomes), "prob": prob}
    return result


def _counts(board: xr.Dataset) -> tuple[Integers, Integers]:
    cells = board[["successes", "trials"]].transpose("config", "task")
    return cells["successes"].values, cells["trials"].values


def _flips(k: Integers, n: Integers) -> Floats:
    """Return how often two of a cell's runs disagree, 0 where it has fewer."""
    return 2 * k * (n - k) / np.maximum(n * (n - 1.0), 1.0)


def _steadiness(board: xr.Dataset, prob: float) -> dict[str, Any]:
    k, n = _counts(board)
    repeated, varied = (n > 1).sum(axis=1), ((k > 0) & (k < n)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = _flips(k, n).sum(axis=1) / repeated
        score = np.where(n > 1, k / n, 0).sum(axis=1) / repeated
        most = np.nan_to_num(2 * score * (1 - score))
        # Of the others, cell by cell: 1 - ICC is the disagreements of run pairs over those of unrelated runs.
        flips, unrelated = ((part * repeated).sum() - part * repeated for part in (np.nan_to_num(own), most))
        elsewhere = np.where(repeated > 0, np.minimum(most * flips / unrelated, 1), np.nan)
    chance = np.where(varied == 0, (1 - elsewhere) ** repeated, np.nan)
    # Those that vary belong to the family of configs all the same.
    family = np.where((varied > 0) & ~np.isnan(elsewhere), 1.0, chance)
    bound = special.betaincinv(varied + 1, np.maximum(repeated - varied, 1), prob)
    return {
        "repeated": ("config", repeated),
        "varied": ("config", varied),
        "share_upper": ("config", np.where(repeated == 0, np.nan, np.where(varied == repeated, 1.0, bound))),
        "flip_rate": ("config", own),
        "flip_rate_elsewhere": ("config", elsewhere),
        "steady_p": ("config", chance),
        "steady_p_holm": ("config", np.where(varied == 0, holm(family), np.nan)),
    }


def _twins(board: xr.Dataset) -> dict[str, Any]:
    k, n = _counts(board)
    groups: dict[bytes, list[int]] = {}
    for scored in np.flatnonzero(n.any(axis=1)).tolist():
        groups.setdefault(k[scored].tobytes() + n[scored].tobytes(), []).append(scored)
    found = [Twin()] * len(k)
    for group in groups.values():
        if len(group) > 1:
            chances = _coincidence(k, n, group)
            for c in group:
                other = group[1] if c == group[0] else group[0]
                found[c] = Twin(str(board["config"].values[other]), *chances)
    name, expected, unrelated, rerun = (np.array(part) for part in zip(*found, strict=True))
    return {
        "twin": ("config", name.astype(object)),
        "twin_expected": ("config", expected),
        "twin_p": ("config", unrelated),
        "twin_p_adjusted": ("config", np.minimum(unrelated * len(k) * (len(k) - 1) / 2, 1)),
        "twin_rerun_p": ("config", rerun),
    }


def _coincidence(k: Integers, n: Integers, group: list[int]) -> tuple[float, float, float]:
    """Return the tasks expected to agree, and the chances that all do of unrelated configs and of one system."""
    others = np.delete(np.arange(len(k)), group)
    seen = n[group[0]] > 0
    mine, trials = k[group[0], seen], n[group[0], seen]
    stratum = _strata(k[others].sum(axis=0), n[others].sum(axis=0))[seen]
    # Counts change places among tasks of one stratum that were run as often.
    _, block, size = np.unique(np.stack([stratum, trials]), axis=1, return_inverse=True, return_counts=True)
    kinds, alike = np.unique(np.stack([block, mine]), axis=1, return_counts=True)
    expected = float((alike**2 / size[kinds[0]]).sum())
    unrelated = float(np.exp(special.gammaln(alike + 1).sum() - special.gammaln(size + 1).sum()))
    rerun = special.binom(trials, mine) ** 2 / special.binom(2 * trials, 2 * mine)
    return expected, unrelated, float(rerun.prod())


def _strata(k: Integers, n: Integers) -> Integers:
    """Number tasks by difficulty, ties together and at least `STRATUM` to a stratum (all in one if there are fewer)."""
    rate = np.where(n > 0, k / np.maximum(n, 1), -1.0)
    _, place, counts = np.unique(rate, return_inverse=True, return_counts=True)
    label, current, filled = np.empty(counts.size, np.int64), 0, 0
    for i, count in enumerate(counts.tolist()):
        label[i], filled = current, filled + count
        if filled >= STRATUM:
            current, filled = current + 1, 0
    if filled:
        label[label == current] = max(current - 1, 0)
    return np.asarray(label[place])


def _pairs(board: xr.Dataset, elsewhere: Floats) -> dict[str, Any]:
    passed, scored = scored_runs(board)
    found = [_compared(x, m) for x, m in zip(passed, scored, strict=True)]
    shared, disagreements, expected, p = (np.stack(part) for part in zip(*found, strict=True))
    values = {
        "shared": shared,
        "disagreements": disagreements,
        "expected": expected,
        "expected_elsewhere": np.where(shared > 0, shared * elsewhere[:, None], np.nan),
        "p": p,
        "p_holm": holm(p.ravel()).reshape(p.shape),
    }
    return {name: (("config", "pair"), value) for name, value in values.items()}


def _compared(x: Bools, m: Bools) -> tuple[Integers, Integers, Floats, Floats]:
    """Return of every pair of one config's runs the tasks shared, disagreements, those expected, and the p-value."""
    a, b = np.triu_indices(m.shape[1], 1)
    k, n = x.sum(axis=1), m.sum(axis=1)
    third = n > 2

    def over(weight: Any) -> Floats:
        """Sum a weight of tasks over the tasks that each pair shares."""
        mask = m.astype(float)
        return np.asarray(((mask.T * weight) @ mask)[a, b])

    def differ(weight: Any) -> Floats:
        won, lost = x.astype(float), (m & ~x).astype(float)
        one_way = (won.T * weight) @ lost
        return np.asarray((one_way + one_way.T)[a, b])

    shared, disagreements = over(np.ones(len(n))), differ(np.ones(len(n)))
    # A task's other pairs of runs: k (n - k) of its n (n - 1) / 2 disagree, this pair's own left out.
    rest = third / np.where(third, n * (n - 1) / 2 - 1, 1)
    with np.errstate(invalid="ignore"):
        expected = (over(rest * k * (n - k)) - differ(rest)) * shared / over(third)
    p = _low_tail(_flips(k, n), m[:, a] & m[:, b], disagreements)
    tested = over(third & (k > 0) & (k < n)) > 0
    return shared.astype(np.int64), disagreements.astype(np.int64), expected, np.where(tested, p, np.nan)


def _low_tail(chance: Floats, both: Bools, at_most: Floats) -> Floats:
    """Return P(X <= at_most) of the number of disagreements of each pair, a sum of one Bernoulli for each task."""
    mixed = np.flatnonzero(chance > 0)
    tail = np.empty(both.shape[1])
    step = max(1, BLOCK // (mixed.size + 1))
    for start in range(0, tail.size, step):
        block = slice(start, start + step)
        pmf = np.zeros((tail[block].size, mixed.size + 1))
        pmf[:, 0] = 1
        for t in mixed:
            flip = (chance[t] * both[t, block])[:, None]
            pmf[:, 1:] += flip * (pmf[:, :-1] - pmf[:, 1:])
            pmf[:, 0] *= 1 - flip[:, 0]
        reached = np.arange(mixed.size + 1) <= at_most[block, None]
        tail[block] = (pmf * reached).sum(axis=1)
    return tail


def _no_pairs(outcomes: xr.Dataset) -> str:
    if "outcome" in outcomes and outcomes.sizes["run"] < 3:
        return "fewer than three runs: a pair of runs has no other pair to be held against"
    return no_identity(outcomes)


def _why(one: xr.Dataset, level: float) -> str:
    said = [_alike(one.isel(pair=i)) for i in np.flatnonzero(one["p_holm"].values <= level)]
    if len(said) > MOST:
        said[MOST:] = [f"and {len(said) - MOST} more pairs of runs like these"]
    if one["steady_p_holm"] <= level:
        said.append(
            f"none of {one['repeated'].item()} cells varies, which were it as steady as the others would have "
            f"a chance of at most {one['steady_p'].item():.2g}"
        )
    if one["twin_p_adjusted"] <= level:
        said.append(
            f"the counts of {one['twin'].item()!r} on every task: unrelated configs would agree on "
            f"{one['twin_expected'].item():.1f} (p = {one['twin_p'].item():.2g}), and one system run afresh would "
            f"repeat them with a chance of {one['twin_rerun_p'].item():.2g}"
        )
    return "; ".join(said)


def _alike(pair: xr.Dataset) -> str:
    return (
        f"runs {pair['run_a'].item()!r} and {pair['run_b'].item()!r} disagree on {pair['disagreements'].item()} of "
        f"{pair['shared'].item()} tasks where its other runs lead to {pair['expected'].item():.1f} "
        f"(p = {pair['p'].item():.2g})"
    )


def _verdict(result: xr.Dataset) -> str:
    said = [f"{c!r}: {why}" for c, why in zip(result["config"].values, result["why"].values, strict=True) if why]
    still = bool((result["repeated"] > 0).any()) and not bool((result["varied"] > 0).any())
    text = "; ".join([*said, CAUTION]) if said else STILL if still else "nothing looks copied"
    steady = result.isel(config=np.flatnonzero((result["repeated"] > 0) & (result["varied"] == 0)))
    if steady.sizes["config"]:
        bounds = zip(steady["config"].values, steady["share_upper"].values, strict=True)
        shown = [f"{c!r} (at most {share:.1%} of its cells would)" for c, share in bounds]
        text += "; no cell varies in " + ", ".join(shown)
    return text
