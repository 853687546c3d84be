"""Whether configs disagree on tasks as often as their fit says: the figure that an interval of a difference rests on.

Two configs are discordant on a task where one passes and the other fails. Of cells with success probabilities p the
chance is p_a (1 - p_b) + p_b (1 - p_a), and with p a cell's observed rate that is an unbiased estimate of it: cells are
independent given their probabilities. The variance of a difference on one task, run once by both, is D - d^2 with D the
discordance and d the difference. So where a fit predicts more than is seen, differences among these configs are known
better than it says, by a factor near sqrt(observed / predicted): they share what makes a task hard for them, and others
do not (`evalbayes.models.interaction`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from evalbayes.cells import flattened
from evalbayes.check import statistics
from evalbayes.check.population import CELLS
from evalbayes.check.repeatability import LEAST, checked, drawn_boards
from evalbayes.errors import ArgumentError, NotIdentifiedError, OutcomesError, check_whole
from evalbayes.posterior.draws import counts
from evalbayes.schema import Int64
from evalbayes.simulate import Floats

ENDS = [(1 - statistics.PROB) / 2, (1 + statistics.PROB) / 2]


def discordance(
    fit: xr.DataTree, *, configs: Sequence[str] | None = None, top: int = 10, draws: int = 400, seed: int = 0
) -> xr.Dataset:
    """Compare how often configs disagree on tasks with what a fit predicts of the same configs on the same tasks.

    Parameters
    ----------
    fit
        From `evalbayes.fit`: any packaged model, or one whose cells have the same names.
    configs
        Names of two configs or more; None for the ``top`` best by mean observed rate over tasks. Those were chosen by
        the outcomes that they are checked on: it is the same ten that outcomes are predicted for.
    top
        How many of the best, 2 or more; all configs with a run where there are fewer.
    draws
        Posterior draws, evenly spread, each with one board drawn from it; at least 200. Large boards get fewer.
    seed
        Same seed, same numbers.

    Returns
    -------
    xarray.Dataset
        ``observed`` and ``predicted``, mean chances over tasks and pairs of configs (of those with runs of both) that
        a run of each differs, the second a posterior mean over cells anew; ``interval`` (ci_bound), 95% and
        equal-tailed, of the posterior of that chance; ``predictive`` (ci_bound), the same of the estimate from a drawn
        board; ``p_value``, two-sided, of the observed one among those. Over (config, opponent): ``pair_observed``,
        ``pair_predicted`` and ``shared``, tasks with runs of both; NaN on the diagonal and where none are shared.
        Attrs: ``sentence``, ``boards``, ``prob``, ``model``, ``seed``.

    Raises
    ------
    ArgumentError
        If ``fit`` is no fit, a number is out of range, or fewer than two configs are named, or one twice.
    OutcomesError
        If a config is not on the board.
    NotIdentifiedError
        If no two of the configs share a task.

    Notes
    -----
    The predicted chance is exact given a draw, without simulation: cells are drawn about mu independently, so that
    E p_a (1 - p_b) = mu_a (1 - mu_b) whatever kappa is. Parameters were fitted to the same outcomes, which makes the
    p-value conservative (Meng 1994, Annals of Statistics 22, 1142-1160).

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> print(eb.check.discordance(eb.fit(board)).attrs["sentence"])                 # doctest: +SKIP
    """
    check_whole("top", top, 2)
    check_whole("draws", draws, LEAST, f"a p-value small enough takes {LEAST} boards or more, a whole number")
    check_whole("seed", seed, 0)
    posterior = checked(fit, "discordance")
    successes, trials = counts(fit)
    which = _best(successes.values, trials.values, top) if configs is None else _named(trials["config"].values, configs)
    k, n = successes.values[which], trials.values[which]
    if not ((n > 0).sum(axis=0) > 1).any():
        raise NotIdentifiedError("discordance: no two of the configs share a task; name others")
    boards = max(LEAST, min(draws, CELLS // n.size))
    flat = flattened(posterior).isel(config=which)
    # A fit of few draws lends each to several boards.
    flat = flat.isel(draw=np.arange(boards) * flat.sizes["draw"] // boards)
    found = _predicted(flat, n, np.random.default_rng(seed))
    result = _table(k, n, found).assign_coords(dict.fromkeys(("config", "opponent"), trials["config"].values[which]))
    model = str(fit.attrs.get("model", "the model"))
    attrs = {"boards": boards, "prob": statistics.PROB, "model": model, "seed": seed}
    return result.assign_attrs(sentence=_sentence(result, model), **attrs)


def _best(k: Int64, n: Int64, top: int) -> Int64:
    """Return the ``top`` configs with the largest mean of observed rates, the first on the board of equal ones."""
    run = (n > 0).sum(axis=1)
    mean = np.where(run > 0, statistics.rates(k, n).sum(axis=1) / np.maximum(run, 1), -1.0)
    return np.argsort(-mean, kind="stable")[: min(top, int((run > 0).sum()))]


def _named(labels: Any, configs: Sequence[str]) -> Int64:
    """Return the places of named configs."""
    if isinstance(configs, str) or len(set(configs)) != len(configs) or len(configs) < 2:
        raise ArgumentError(f"configs={configs!r}: name two configs or more, each once")
    place = {label: i for i, label in enumerate(labels.tolist())}
    strange = [str(name) for name in configs if name not in place]
    if strange:
        raise OutcomesError(f"config {strange[0]!r} is not on the board; it has {', '.join(list(place)[:5])}, ...")
    return np.array([place[name] for name in configs])


class Predicted(NamedTuple):
    """The chance of each draw, its estimate from a board of that draw, and the mean chance of every pair."""

    expected: Floats
    drawn: Floats
    pairs: Floats


def _predicted(flat: xr.Dataset, n: Int64, rng: np.random.Generator) -> Predicted:
    """Return what draws of the parameters say of the configs with trials n (config, task)."""
    expected, drawn, pairs = [], [], np.zeros((len(n), len(n)))
    for mu, cells in drawn_boards(flat, n, rng):
        rates: Any = mu * n
        expected.append(statistics.discordance(rates, n)[1])
        drawn.append(statistics.discordance(cells, n)[1])
        pairs += _of_pairs(mu, n).sum(axis=0)
    return Predicted(np.concatenate(expected), np.concatenate(drawn), pairs / flat.sizes["draw"])


def _table(k: Int64, n: Int64, found: Predicted) -> xr.Dataset:
    """Set the board's own beside what is predicted."""
    seen = statistics.summary(np.append(statistics.discordance(k[None], n)[1], found.drawn), large=False)
    shared = (n > 0).astype(int) @ (n > 0).T
    np.fill_diagonal(shared, 0)
    pairs = {"pair_observed": _of_pairs(statistics.rates(k[None], n), n)[0], "pair_predicted": found.pairs}
    return xr.Dataset(
        {
            "observed": seen["observed"],
            "predicted": found.expected.mean(),
            "interval": ("ci_bound", np.quantile(found.expected, ENDS)),
            "predictive": ("ci_bound", [seen["lower"], seen["upper"]]),
            "p_value": seen["p_value"],
        }
        | {name: (("config", "opponent"), values) for name, values in (pairs | {"shared": shared}).items()},
        {"ci_bound": ["lower", "upper"]},
    )


def _of_pairs(p: Floats, n: Int64) -> Floats:
    """Return the mean over shared tasks of p_a (1 - p_b) + p_b (1 - p_a), (board, config, opponent)."""
    run = (n > 0).astype(float)
    p = p * run
    one = p @ run.T
    with np.errstate(invalid="ignore"):
        chance = (one + one.swapaxes(1, 2) - 2 * p @ p.swapaxes(1, 2)) / (run @ run.T)
    chance[:, np.arange(len(n)), np.arange(len(n))] = np.nan
    return np.asarray(chance)


def _sentence(result: xr.Dataset, model: str) -> str:
    """Return what is seen, and what it means for differences."""
    low, high = result["predictive"].values
    seen, expected = result["observed"].item(), result["predicted"].item()
    said = (
        f"two of {result.sizes['config']} configs differ on {100 * seen:.1f}% of tasks where {model} predicts "
        f"{100 * expected:.1f}% ({100 * low:.1f} to {100 * high:.1f}), p {result['p_value'].item():.2g}"
    )
    if low <= seen <= high:
        return said
    wide = "wide" if seen < expected else "narrow"
    return f"{said}: differences among them come out too {wide}; families may share residuals: interaction_group="
