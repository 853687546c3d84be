"""Who leads, as formulas: neighbours in the order of the estimates, and the entries that may be best.

`evalbayes.posterior` and `evalbayes.frequentist` ask; here is what both do with their answers.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from evalbayes.errors import NotIdentifiedError
from evalbayes.textbook import standing
from evalbayes.words import shown

ROUNDING = 1e-12
"""Probabilities this close to a limit are at it."""
SIDES = {"config": "rank", "opponent": "opponent_rank"}
SHOWN = 5
"""Names that a sentence spells out."""

POSTERIOR_SET: dict[str, Any] = {
    "set_kind": "posterior set",
    "set_meaning": "given data and model, the best entry is in the set with this probability; no confidence set",
}
CONFIDENCE_SET: dict[str, Any] = {
    "set_kind": "confidence set",
    "set_meaning": "of boards like this one, this share or more give a set that holds the best entry; no posterior set",
}


def neighbours(score: xr.DataArray, ranked: xr.DataArray) -> dict[str, Any]:
    """Return the coords of every two entries that stand next to each other when the best comes first.

    Entries of equal score share a rank (1, 1, 3) and stand in the order of their names; one whose score is NaN stands
    nowhere.

    Parameters
    ----------
    score
        Over ``config``.
    ranked
        Over ``config``, whether an entry may be ranked with the others.

    Returns
    -------
    dict
        Over ``pair`` (labelled "a over b"): ``config`` and ``opponent``, the upper and the lower one, their ranks
        ``rank`` and ``opponent_rank`` (NaN for an entry that may not be ranked).

    Raises
    ------
    NotIdentifiedError
        If fewer than two entries have a score.

    Examples
    --------
    >>> score = xr.DataArray([0.5, 0.7, 0.7], dims="config", coords={"config": ["c", "b", "a"]})
    >>> found = neighbours(score, score > 0)
    >>> found["pair"], found["rank"][1].tolist(), found["opponent_rank"][1].tolist()
    (['a over b', 'b over c'], [1.0, 1.0], [1.0, 3.0])
    """
    known = score.dropna("config")
    names, values = known["config"].values, known.values
    if names.size < 2:
        raise NotIdentifiedError("adjacent: fewer than two configs have a scored run; a pair needs two")
    order = np.lexsort((names.astype(str), -values))
    names, rank = names[order], standing(values[order][None])[0][0].astype(float)
    rank[~ranked.sel(config=names).values] = np.nan
    labels = [f"{one} over {other}" for one, other in pairwise(names)]
    sides = {"config": names[:-1], "opponent": names[1:], "rank": rank[:-1], "opponent_rank": rank[1:]}
    return {"pair": labels} | {name: ("pair", side) for name, side in sides.items()}


def judged(result: xr.Dataset, chances: Mapping[str, xr.DataArray], score: xr.DataArray) -> xr.Dataset:
    """Add to the differences of neighbours how probable their order is, what that resolves, and a sentence.

    Unresolved is |P - 1/2| < prob / 2. Where P is beyond that and the difference has no interval (a variance of 0 over
    the shared tasks is no certainty), the pair is withheld.

    Parameters
    ----------
    result
        An answer over ``pair``, with the coords of `neighbours`.
    chances
        Over ``pair``: ``win_probability`` (config above opponent, half a tie counted), ``win_probability_se`` (its
        simulation error) and ``tie``, NaN where withheld; ``shared_tasks``.
    score
        Over ``config``, what the entries are ordered by.
    """
    prob, win = float(result.ci_prob), chances["win_probability"]
    unresolved = abs(win - 0.5) < prob / 2 - ROUNDING
    known = unresolved | (win.notnull() & result.interval.notnull().all("ci_bound"))
    verdict = xr.where(known, xr.where(unresolved, "unresolved", "resolved"), "withheld").astype(object)
    result = result.assign({**chances, "unresolved": unresolved, "verdict": verdict})
    count = {word: int((verdict == word).sum()) for word in ("resolved", "unresolved", "withheld")}
    unranked = [str(name) for name in score["config"].values[score.isnull().values]]
    result.attrs = {
        "pairs": count["resolved"] + count["unresolved"],
        "unresolved": count["unresolved"],
        "withheld": count["withheld"],
        "unranked": ", ".join(unranked),
    }
    return result.assign_attrs(sentence=_sentence(result, score, unranked))


def _sentence(result: xr.Dataset, score: xr.DataArray, unranked: Sequence[str]) -> str:
    """Say which neighbours are unresolved, which are not compared, and where names made the order."""
    level = f"{100 * float(result.ci_prob):g}%"
    open_, pairs, withheld = (result.attrs[name] for name in ("unresolved", "pairs", "withheld"))
    names = _pairs(result.isel(pair=result.verdict.values == "unresolved"))
    said = [f"{open_} of {pairs} adjacent pairs are unresolved at {level}" + (f": {names}" if names else "")]
    if not pairs:
        said = ["no adjacent pair can be compared"]
    if withheld:
        aside = result.isel(pair=result.verdict.values == "withheld")
        why = ", ".join(dict.fromkeys(str(reason).split(":")[0] for reason in aside.reason.values))
        said.append(f"not compared: {_pairs(aside, ranks=False)} ({why})")
    values = score.sel(config=np.append(result["config"].values, result["opponent"].values[-1:])).values
    if (values[1:] == values[:-1]).any():
        said.append("equal estimates share a rank and stand in the order of their names")
    if unranked:
        said.append(f"without a rank, for want of a scored run: {shown(unranked, SHOWN)}")
    return "; ".join(said)


def _pairs(result: xr.Dataset, *, ranks: bool = True) -> str:
    upper, lower = (
        [
            f"{name} ({place:g})" if ranks and not np.isnan(place) else str(name)
            for name, place in zip(*side, strict=True)
        ]
        for side in ((result[name].values, result[rank].values) for name, rank in SIDES.items())
    )
    return shown([f"{one} and {other}" for one, other in zip(upper, lower, strict=True)], SHOWN, "; ")


def smallest_set(p_best: xr.DataArray, prob: float) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the cumulative probability, best first, and which entries are in the smallest set that reaches ``prob``.

    Entries of equal probability are taken in the order of their names.

    >>> p = xr.DataArray([0.25, 0.625, 0.125], dims="config", coords={"config": ["a", "b", "c"]})
    >>> [part.values.tolist() for part in smallest_set(p, 0.8)]
    [[0.875, 0.625, 1.0], [True, True, False]]
    """
    values, names = p_best.values, p_best["config"].values.astype(str)
    order = np.lexsort((names, -np.nan_to_num(values, nan=-1.0)))
    total = np.cumsum(np.nan_to_num(values[order]))
    reached, before = np.empty_like(total), np.empty_like(total)
    reached[order], before[order] = total, np.append(0.0, total[:-1])
    known = p_best.notnull()
    cumulative = p_best.copy(data=np.minimum(reached, 1.0)).where(known)
    return cumulative, p_best.copy(data=before < prob - ROUNDING) & known


def said_of_set(result: xr.Dataset) -> xr.Dataset:
    """Add, as attrs of a best set, how many entries are in it and a sentence with their names, most probable first.

    Their probabilities are said of a posterior set, which is made of them.
    """
    chosen = result.isel(config=result.in_set.values)
    order = np.lexsort((chosen["config"].values.astype(str), -chosen.p_best.values))
    share = [f" ({100 * p:.1f}%)" if "cumulative" in result else "" for p in chosen.p_best.values]
    names = [f"{chosen['config'].values[i]}{share[i]}" for i in order]
    level = f"{100 * float(result.ci_prob):g}% {result.set_kind.item()}"
    known = int(result.p_best.notnull().sum())
    members = shown(names, SHOWN)
    sentence = f"{len(names)} of {known} entries may be best ({level}): {members}"
    return result.assign_attrs(size=len(names), configs_ranked=known, members=members, sentence=sentence)
