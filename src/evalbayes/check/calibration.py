"""Simulation-based calibration: are posteriors of boards drawn from the model's own prior what they should be.

Draw parameters from the prior and a board from them, and fit it. Truth and posterior draws then have one distribution
given the board, so that the rank of the truth among L draws is uniform on 0, ..., L (Talts, Betancourt, Simpson,
Vehtari and Gelman 2018, arXiv 1804.06788). That holds for any function of parameters *and data*: the log-likelihood
finds what no parameter shows, such as a posterior that has not seen all of the board (Modrak and others 2022, arXiv
2211.02383). It is a check of the whole computation, in which the model is right by construction; whether it is right
for a real board is for the other checks to say.

The loop is written here and not taken from ``simuk``: that fits by PyMC's MCMC, and what has to be calibrated is what
`evalbayes.fit` returns, importance draws of a density compiled once for all boards of a shape, and what it does
where they fail.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from evalbayes.check.ranks import FACTS, design, grid, ranked
from evalbayes.check.uniformity import p_value
from evalbayes.errors import check_whole
from evalbayes.textbook import holm

if TYPE_CHECKING:
    from evalbayes.choice import ModelFunction

LEAST_FITS = 20
"""Below this hardly anything would be found, and that nothing was says nothing."""
DISTINCT = 2.0
"""Standard errors by which the mean or the spread of ranks has to be off to be named."""


def calibration(
    model: "str | ModelFunction",
    *,
    fits: int = 100,
    configs: int = 6,
    tasks: int = 20,
    runs: int = 3,
    outcomes: xr.Dataset | None = None,
    seed: int = 0,
    method: str = "auto",
    draws: int = 199,
    prob: float = 0.95,
    true_priors: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    progress: Callable[[str], None] | None = None,
    **priors: Any,
) -> xr.Dataset:
    """Fit boards drawn from the model's prior, and test whether the ranks of the truth are uniform.

    Ranked are every scalar that a fit reports, the first element of every vector over configs, tasks or groups (the
    prior does not tell elements apart, and several from one board would not be independent), the ICC of the first
    config on new tasks, its rank by true score, and the log-likelihood. The ceiling is 1 / ICC: its ranks are those of
    the ICC from the other end. Ties are broken at random.

    A fit that fails is a row without ranks, and counted. Whether a fit passes its checks depends on the board alone and
    not on the truth behind it, so the ranks of those that pass are uniform if their posteriors are right. But a method
    that refuses just the boards on which it would be wrong looks calibrated then: the verdict is about boards that were
    fitted, and the share of those that were not belongs beside it.

    Parameters
    ----------
    model
        A name or function, as in `evalbayes.fit`.
    fits
        How many boards.
    configs, tasks, runs
        Sizes of each.
    outcomes
        A board whose cells, runs and coords every board is to have, in place of those sizes: for ragged boards, and for
        models with groups.
    seed
        Same seed, same ranks; row i is the same however many there are (`check.ranks.ranked` makes it alone).
    method
        ``"laplace"``, or ``"auto"``, which goes on to NUTS where laplace fails and says so in ``reason``; as in
        `evalbayes.fit`.
    draws
        L: how many draws of each posterior the truth is ranked among. A fit has 400 effective draws or more, by
        laplace a thousand as a rule, so that 199 of them are nearly independent.
    prob
        One less the probability that any quantity is called not uniform although all are.
    true_priors
        Priors that truths are drawn with, where these are not the fit's: a check of this check, which then has to fail.
    executor
        Any `concurrent.futures.Executor`, as in `evalbayes.check.coverage`; None works through the boards in turn.
    progress
        Called with one short line a board.
    priors
        Passed to the model, of truth and fit.

    Returns
    -------
    xarray.Dataset
        As `summary`, with attrs ``model`` and ``seed`` besides.

    Raises
    ------
    ArgumentError, NotIdentifiedError
        As `evalbayes.fit`.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.check.calibration("crossed", fits=200).attrs["sentence"]                  # doctest: +SKIP
    """
    check_whole("fits", fits, 1)
    board = grid(configs, tasks, runs) if outcomes is None else outcomes
    plan = design(model, board, seed=seed, method=method, draws=draws, true_priors=true_priors, **priors)
    rows = []
    for row in ranked(plan, range(fits), executor=executor):
        rows.append(row)
        if progress is not None:
            progress(said_of(row))
    return summary(pd.DataFrame(rows), draws=draws, prob=prob).assign_attrs(model=plan.name, seed=seed)


def said_of(row: Mapping[str, Any]) -> str:
    """Return one line about a row.

    >>> said_of({"row": 3, "method": "laplace", "k_hat": 0.213, "seconds": 0.91, "reason": ""})
    'row 3: laplace, k-hat 0.21, 0.9 s'
    """
    how = f"{row['method'] or 'failed'}" + (f", k-hat {row['k_hat']:.2f}" if row["method"] == "laplace" else "")
    return f"row {row['row']}: {how}, {row['seconds']:.1f} s{row['reason'] and ': '}{row['reason']}"


def summary(table: pd.DataFrame, *, draws: int, prob: float = 0.95) -> xr.Dataset:
    """Test ranks for uniformity, every quantity by itself and all together.

    Each quantity has its exact p-value (`evalbayes.check.uniformity`); over quantities they are adjusted by Holm's
    method: however they depend on each other, the probability that any of them is called not uniform, all being so, is
    at most 1 - prob.

    Parameters
    ----------
    table
        Rows of `evalbayes.check.ranks.ranked`.
    draws
        L, which they are ranks among.
    prob
        As in `calibration`.

    Returns
    -------
    xarray.Dataset
        ``ranks`` (fit, quantity), 0 to L, NaN where a fit failed. Over ``quantity``: ``p_value``, ``p_adjusted``,
        ``uniform`` (False where the adjusted one is 1 - prob or less); with u = (rank + 1/2) / (L + 1), ``mean`` of u
        (1/2 expected; less: posteriors are too high) and ``spread``, the mean of 12 (u - 1/2)^2 (1 expected; more:
        posteriors are too narrow); ``shape``, what the further of them says where a quantity is not uniform. Over
        ``fit``, the number of the row: ``method, k_hat, weight_ess, seconds, reason`` and coord ``fit_seed``. Attrs
        ``draws, prob, fits, failed``, ``by_nuts`` (by any method but laplace), ``verdict`` (``"passed"``, ``"failed"``,
        or ``"insufficient"`` where fewer than 20 fits passed, and none is off all the same) and ``sentence``.

    Examples
    --------
    >>> facts = {"row": range(40), "seed": 0, "method": "laplace", "k_hat": 0.2, "weight_ess": 1000.0}
    >>> facts |= {"seconds": 1.0, "reason": "", "low": np.arange(40), "even": 5 * np.arange(40)}
    >>> summary(pd.DataFrame(facts), draws=199)["shape"].values.tolist()
    ['posteriors too high', '']
    """
    table = table.sort_values("row")
    names = [name for name in table.columns if name not in FACTS]
    ranks = table[names].to_numpy(float)
    p = np.array([p_value(column, draws) for column in ranks.T])
    adjusted = holm(p)
    off = (ranks + 0.5) / (draws + 1) - 0.5
    done = (table["method"] != "").to_numpy()
    per_fit = off[done] if done.any() else np.full((1, len(names)), np.nan)
    mean, spread = 0.5 + per_fit.mean(axis=0), 12 * (per_fit**2).mean(axis=0)
    uniform = ~(adjusted <= 1 - prob)
    seen = zip(uniform.tolist(), mean.tolist(), spread.tolist(), strict=True)
    shape = ["" if fine else _shape(centre, width, int(done.sum())) for fine, centre, width in seen]
    columns: dict[str, Any] = {"ranks": (("fit", "quantity"), ranks)}
    found = {"p_value": p, "p_adjusted": adjusted, "uniform": uniform, "mean": mean, "spread": spread}
    columns |= {name: ("quantity", values) for name, values in found.items()}
    columns["shape"] = ("quantity", np.array(shape, object))
    columns |= {name: ("fit", table[name].to_numpy()) for name in FACTS[2:]}
    coords = {"fit": table["row"].to_numpy(), "quantity": names, "fit_seed": ("fit", table["seed"].to_numpy())}
    other = int((done & (table["method"] != "laplace").to_numpy()).sum())
    attrs = {"draws": draws, "prob": prob, "fits": len(table), "failed": int((~done).sum()), "by_nuts": other}
    result = xr.Dataset(columns, coords, attrs)
    verdict = "failed" if not uniform.all() else "passed" if done.sum() >= LEAST_FITS else "insufficient"
    return result.assign_attrs(verdict=verdict, sentence=_sentence(result, verdict))


def _shape(mean: float, spread: float, fits: int) -> str:
    """Return how ranks differ from uniform ones, whose u has mean 1/2 and variance 1/12, and 12 (u - 1/2)^2 0.8."""
    shift, excess = (mean - 0.5) * np.sqrt(12 * fits), (spread - 1) * np.sqrt(fits / 0.8)
    if max(abs(shift), abs(excess)) <= DISTINCT:
        return "ranks of another shape"
    # Only the further one: what is shifted far is also far from the middle.
    if abs(shift) > abs(excess):
        return "posteriors too high" if shift < 0 else "posteriors too low"
    return "posteriors too narrow" if excess > 0 else "posteriors too wide"


def _sentence(result: xr.Dataset, verdict: str) -> str:
    """Return the verdict, and what it rests on, in one sentence."""
    fits, failed, by_nuts, prob = (result.attrs[name] for name in ("fits", "failed", "by_nuts", "prob"))
    how = [f"{by_nuts} not by laplace"] if by_nuts else []
    how += [f"{failed} failed and without ranks"] if failed else []
    basis = f"{fits} fits" + (f" ({', '.join(how)})" if how else "")
    count, alarm = result.sizes["quantity"], f"a false alarm has probability {100 * (1 - prob):g}% at most"
    if verdict == "insufficient":
        return f"no verdict: {basis}, and it takes {LEAST_FITS} that passed their checks"
    if verdict == "passed":
        least = result.isel(quantity=int(result["p_value"].values.argmin()))
        name, p, adjusted = (least[key].item() for key in ("quantity", "p_value", "p_adjusted"))
        return (
            f"calibrated: over {basis} the ranks of all {count} quantities are compatible with uniform ones "
            f"(least p-value {p:.2g}, of {name}; adjusted for {count}, {adjusted:.2g}; {alarm})"
        )
    wrong = result.isel(quantity=(~result["uniform"]).values)
    shapes = zip(_texts(wrong["quantity"]), _texts(wrong["shape"]), strict=True)
    said = "; ".join(f"{name}: {shape}" for name, shape in shapes)
    return (
        f"not calibrated: over {basis} the ranks of {wrong.sizes['quantity']} of {count} quantities are not uniform "
        f"({said}; least adjusted p-value {wrong['p_adjusted'].min().item():.2g}; {alarm})"
    )


def _texts(values: xr.DataArray) -> list[str]:
    return [str(value) for value in values.values]
