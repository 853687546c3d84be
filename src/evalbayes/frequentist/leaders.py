"""Who leads, by resampling: which neighbours in the order of scores are unresolved, and who may be best."""

from typing import Any

import numpy as np
import xarray as xr

from evalbayes.answer import answer
from evalbayes.frequentist import bootstrap
from evalbayes.frequentist.difference import gaps
from evalbayes.frequentist.paired import refuse_apart, why_pair_unknown, why_unranked
from evalbayes.frequentist.ranking import duels, shares, top_k
from evalbayes.frequentist.targets import BOOTSTRAPS, choose, needs_two
from evalbayes.leaders import CONFIDENCE_SET, SIDES, judged, neighbours, said_of_set


def adjacent(
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    method: str | None = None,
    prob: float = 0.95,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Set each entry against the next one down, and say which of these neighbours the data do not put in order.

    Entries stand in the order of their observed scores, so the pairs come from the data and not from a list, and are
    the same for every seed. P is the share of bootstrap boards in which the upper entry scores higher, half a tie
    counted, on the tasks that both were scored on and on the same task draws: the number of `win_probability`. The pair
    is unresolved where (1 - prob) / 2 < P < (1 + prob) / 2. That is a statement about each pair by itself: of many
    pairs, some are resolved by chance.

    Parameters
    ----------
    outcomes, tasks, configs, method, prob, seed, draws
        As in `evalbayes.frequentist.rank`.

    Returns
    -------
    xarray.Dataset
        As `evalbayes.posterior.adjacent`: an answer over ``pair``, best first, with coords ``config``, ``opponent``,
        ``rank`` and ``opponent_rank`` of the observed scores. The estimate is the difference on the tasks that both
        were scored on, as `difference` has it; where entries were scored on different tasks it may be below 0.
        Neighbours that differ alike on every shared task have no interval: level they are unresolved, else withheld,
        since a variance of 0 is no certainty.

    Raises
    ------
    NotIdentifiedError
        If fewer than two entries have runs, or the method does not cover the target.

    Examples
    --------
    >>> from evalbayes.outcomes import from_matrix
    >>> rows = [[1] * 8, [1] * 4 + [0] * 4, [1] * 3 + [0] * 5]
    >>> found = adjacent(from_matrix(rows, configs=list("abc"), tasks=list("stuvwxyz")))
    >>> found.attrs["sentence"]
    '1 of 2 adjacent pairs are unresolved at 95%: b (2) and c (3)'
    """
    needs_two("adjacent", outcomes)
    method = choose("adjacent", method, tasks=tasks, configs=configs, offered=BOOTSTRAPS)
    ordered = outcomes.sortby("config")
    board = bootstrap.cells(ordered)
    score = bootstrap.along(ordered, bootstrap.observed(board))
    coords = neighbours(score, bootstrap.along(ordered, why_unranked(ordered) == ""))
    place = {name: i for i, name in enumerate(ordered["config"].values.tolist())}
    pairs = np.array([[place[name] for name in coords[side][1]] for side in SIDES]).T
    parts, reason = gaps(ordered, pairs, method=method, prob=prob, seed=seed, draws=draws)
    arrays = {name: xr.DataArray(part, dims=("pair", "ci_bound")[: part.ndim]) for name, part in parts.items()}
    why, shared = xr.DataArray(reason, dims="pair"), arrays.pop("shared_tasks").astype(int)
    who: dict[str, Any] = {"quantity": "adjacent", "tasks": tasks, "configs": configs, "method": method, "prob": prob}
    known: dict[str, Any] = arrays
    result = bootstrap.withhold(answer(**known, **who), why)
    result = bootstrap.withhold(result, why.where(shared == 0, ""), estimate=True).assign_coords(coords)
    told = why_pair_unknown(board, pairs, method) == ""
    chances = shares(*duels(ordered, pairs, method, draws=draws, seed=seed))
    found = {
        name: xr.DataArray(np.where(told, part, np.nan), dims="pair")
        for name, part in zip(("win_probability", "tie", "win_probability_se"), chances, strict=True)
    }
    return judged(result, found | {"shared_tasks": shared}, score)


def best_set(
    outcomes: xr.Dataset,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    method: str | None = None,
    prob: float = 0.95,
    seed: int = 0,
    draws: int = 2000,
) -> xr.Dataset:
    """Return a confidence set of the best entry: those whose simultaneous rank set reaches 1.

    It is that of `evalbayes.board.rank_sets`: of boards like this one, a share of ``prob`` or more give a set that
    holds the entry with the highest score on new tasks, whichever it is. It is no posterior set: the shares of
    bootstrap boards in which an entry is the best, printed beside it, need not sum to ``prob`` over the set, which is
    not made of them.

    Parameters
    ----------
    outcomes, seed, draws
        As in `evalbayes.frequentist.rank`.
    tasks, configs
        ``"sampled"`` and ``"fixed"``: the best of these entries on new tasks.
    method
        ``two_level_bootstrap``, on the tasks that every entry was scored on.
    prob
        Confidence of the set, and coverage of the Monte Carlo intervals of the shares.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``: the estimate is the share of bootstrap boards (of the tasks that all entries share)
        in which it is the best, ties split; ``p_best``, the same; ``in_set`` (bool); ``lowest`` and ``highest``, its
        rank set; ``shared_tasks``. Scalar coords ``set_kind`` ("confidence set") and ``set_meaning``; attrs ``size``,
        ``configs_ranked``, ``sentence``. An entry without a run is never in the set, and NaN.

    Raises
    ------
    NotIdentifiedError
        If two entries share no task, there is one entry, fewer than 5 tasks were run by all, or the method does not
        cover the target.

    Examples
    --------
    >>> from evalbayes import datasets
    >>> found = best_set(datasets.load("simulated"), draws=500)
    >>> found.attrs["size"], found.set_kind.item()
    (6, 'confidence set')
    """
    from evalbayes.board.leaders import rank_sets

    needs_two("best_set", outcomes)
    method = choose("best_set", method, tasks=tasks, configs=configs, offered=("two_level_bootstrap",))
    refuse_apart("best_set", outcomes)
    sets = rank_sets(outcomes, prob=prob, seed=seed, draws=draws)
    ranked = outcomes.sel(config=sets["config"].values)
    ranked = ranked.isel(task=(ranked["trials"] > 0).all("config").values)
    best = top_k(ranked, k=1, method=method, prob=prob, seed=seed, draws=draws).drop_vars(["coverage", "k"])
    facts = {"lowest": sets.lowest, "highest": sets.highest, "in_set": sets.may_be_best}
    result = best.assign(facts | {"p_best": best.estimate, "shared_tasks": sets.lowest * 0 + ranked.sizes["task"]})
    result = result.reindex(config=outcomes["config"].values, fill_value={"in_set": False, "reason": "no scored run"})
    return said_of_set(result.assign_coords(quantity="best_set", **CONFIDENCE_SET))
