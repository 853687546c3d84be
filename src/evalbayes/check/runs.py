"""Whether the runs of a board are alike: does one of them stand out, do they drift, and how much does that weigh.

If the runs of a cell are exchangeable and cells are independent given their rates, then which n_t scored runs of a task
hold its k_t passes is a draw without replacement. For one config, with m_tr = 1 where run r of task t was scored,
v_t = k_t (n_t - k_t) / (n_t (n_t - 1)), and w_r the place of run r in the order of the board::

    D_r = sum_t m_tr (x_tr - k_t / n_t)            A = sum_t (diag m_t - m_t m_t' / n_t)
    V = Var D = sum_t v_t (diag m_t - m_t m_t' / n_t)
    spread: Q = D' V^- D, about chi-square on rank V           trend: z = w'D / sqrt(w'V w), about normal
    slope = w'D / w'A w                            run variance = (D'D - tr V) / (tr A^2 - sum_t (n_t - 1))

Where every run of every task was scored, Q is Cochran's (Biometrika 37, 1950) and the run variance that of the two-way
analysis of variance, (MS_runs - MS_residual) / T. Where not, Q is the generalised Cochran-Mantel-Haenszel statistic
with tasks as strata, and z the one of Mantel's trend test (Landis, Heyman and Koch, International Statistical Review
46, 1978). V does not change when a cell's outcomes change places, so both have an exact permutation test.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy import special

from evalbayes.cells import BLOCK
from evalbayes.coverage import observed_score
from evalbayes.errors import check_whole
from evalbayes.frequentist import between_variance
from evalbayes.schema import ERROR, FAIL, PASS, require_board
from evalbayes.simulate import Floats
from evalbayes.tabulate import NUMBERED
from evalbayes.textbook import holm

Bools = npt.NDArray[np.bool_]

LEVEL = 0.05
"""A run effect is called one at this familywise level over configs, in each of the two tests."""
TESTS = ("spread", "trend")
NO_OUTCOME = "no run identity: the board holds counts alone; read a log that has a run column"
NO_IDENTITY = f"no run identity: runs are {NUMBERED}; give a run column whose names recur over tasks"
ONE_RUN = "one run of each task: nothing to compare it with"
NOT_MIXED = "no cell has both a pass and a fail: every order of its runs looks the same"
TIED = 1e-9
"""Statistics closer than this, relative to their size, are the same one, differently rounded."""


class Sums(NamedTuple):
    """What the two tests need of one config, or of the sum of several: D (run), V and A (run, run)."""

    deviation: Floats
    variance: Floats
    design: Floats


def runs(outcomes: xr.Dataset, *, draws: int = 2000, seed: int = 0) -> xr.Dataset:
    """Test whether runs of one name differ from the others, and whether outcomes drift along the order of runs.

    Both tests permute the outcomes of every cell among its own scored runs, which is exact whatever is missing, as long
    as what is missing has nothing to do with the outcomes. That cells are independent is part of the hypothesis: a day
    on which everything went worse is what is looked for. The order of runs is that of the board.

    The pooled tests add up over configs and look for what all share: they take run 1 of one config and run 1 of another
    for the same round. Where names mean no such thing they raise no false alarm and find nothing.

    Parameters
    ----------
    outcomes
        A board with ``outcome`` over (config, task, run). Errored runs count as its error policy says.
    draws
        Permutations. The least p-value is 1 / (draws + 1).
    seed
        Of the permutations, which depend on it and the names of configs alone.

    Returns
    -------
    xarray.Dataset
        In proportions (0 to 1) except for ``statistic``, ``z``, ``df`` and the p-values:

        - over (config, run): ``mean`` over the tasks scored in that run; ``difference``, the mean over these tasks of
          the run less the config's own mean on that task, which is the run's mean less the config's where all tasks
          were scored; ``z``, the difference in its standard errors if runs are alike;
        - over config: ``observed``; ``range`` and ``sd`` (ddof 1) of the run means, and ``sd_expected``, the root of
          what their variance would be on average if runs were alike; ``slope`` (change of the pass rate from one run
          to the next, within tasks) and ``slope_se``; ``df``; ``mixed_cells``; ``reason``, blank where tested;
        - over (config, test), test being ``"spread"`` and ``"trend"``: ``statistic`` (Q and z), ``p_asymptotic``,
          ``p`` (by permutation, two-sided), and ``p_holm``, adjusted over configs within each test (Holm,
          Scandinavian Journal of Statistics 6, 1979), not over the two tests;
        - ``run_variance`` (config), the variance of a round shared by all tasks, cut at 0, and ``run_variance_raw``;
          ``run_part`` and ``task_part``, what rounds and what tasks add to the variance of a score: run variance / R
          (where runs are missing, times the sum of squared weights of runs) and between variance / T;
        - ``pooled_statistic``, ``pooled_p`` and ``pooled_p_asymptotic`` (test), ``pooled_slope``,
          ``pooled_slope_se``, ``pooled_df``, and ``pooled_difference`` and ``pooled_z`` (run).

        attrs: ``verdict`` (text), ``level``, ``draws`` and ``seed``. Without run identity there are no runs, and all
        is NaN with the reason.

    Raises
    ------
    ArgumentError
        If draws or seed are no whole numbers.

    Examples
    --------
    >>> from evalbayes import simulate
    >>> seen = runs(simulate.board(configs=3, tasks=30, runs=4, seed=1), draws=199)
    >>> seen.p_holm.dims, bool((seen.p_holm > 0.05).all())
    (('config', 'test'), True)
    """
    check_whole("draws", draws, 1)
    check_whole("seed", seed, 0)
    board = identified(outcomes)
    passed, scored = scored_runs(board)
    found, sums = [], []
    pooled = np.zeros((draws, board.sizes["run"]))
    for config, x, m in zip(board["config"].values, passed, scored, strict=True):
        sums.append(_sums(x, m))
        permuted = _permuted(x, m, draws, np.random.default_rng([seed, *str(config).encode()]))
        found.append(_described(x, m, sums[-1]) | _tested(sums[-1], permuted))
        pooled += permuted
    result = _labelled(board, found)
    total = Sums(*(np.sum(part, axis=0) for part in zip(*sums, strict=True)))
    result = result.assign(_pooled(total, _tested(total, pooled), scored))
    reason = {"reason": ("config", _reasons(outcomes, passed, scored))}
    result = result.assign(_parts(outcomes, result, scored) | reason)
    result["p_holm"] = result["p"].copy(data=np.stack([holm(p) for p in result["p"].values.T], axis=1))
    result.attrs = {"verdict": _verdict(result, draws), "level": LEVEL, "draws": draws, "seed": seed}
    return result


def identified(outcomes: xr.Dataset) -> xr.Dataset:
    """Return the board with tasks in the order of their names, and no runs where their names mean nothing."""
    board = require_board(outcomes).sortby("task")
    if no_identity(outcomes):
        names = np.array([], dtype=object)
        empty = np.zeros((board.sizes["config"], board.sizes["task"], 0), np.int8)
        board = board.drop_dims("run", errors="ignore").assign_coords(run=names)
        return board.assign(outcome=(("config", "task", "run"), empty))
    return board


def no_identity(outcomes: xr.Dataset) -> str:
    """Say why runs of one name have nothing in common, or nothing if they may."""
    if "outcome" not in outcomes:
        return NO_OUTCOME
    return NO_IDENTITY if NUMBERED in str(outcomes.attrs.get("run_rule", "")) else ""


def scored_runs(board: xr.Dataset) -> tuple[Bools, Bools]:
    """Return which runs passed and which count, each (config, task, run), under the board's error policy."""
    state = board["outcome"].transpose("config", "task", "run").values
    counts = state >= (ERROR if board.attrs.get("error_policy") == "failure" else FAIL)
    return state == PASS, counts


def _sums(x: Bools, m: Bools) -> Sums:
    k, n = x.sum(axis=1), m.sum(axis=1)
    v = k * (n - k) / np.maximum(n * (n - 1.0), 1.0)
    share = 1 / np.maximum(n, 1.0)
    mask = m.astype(float)
    deviation = (x - (k * share)[:, None] * mask).sum(axis=0)
    variance, design = (np.diag(weight @ mask) - (mask.T * weight * share) @ mask for weight in (v, np.ones(len(n))))
    return Sums(deviation, variance, design)


def _permuted(x: Bools, m: Bools, draws: int, rng: np.random.Generator) -> Floats:
    """Draw D with the outcomes of every mixed cell in a random order, (draw, run)."""
    total = np.zeros((draws, x.shape[1]))
    k, n = x.sum(axis=1), m.sum(axis=1)
    for t in np.flatnonzero((k > 0) & (k < n)):
        where = np.flatnonzero(m[t])
        step = max(1, BLOCK // where.size)
        for start in range(0, draws, step):
            block = total[start : start + step]
            order = rng.permuted(np.tile(np.arange(where.size) < k[t], (len(block), 1)), axis=1)
            block[:, where] += order - k[t] / n[t]
    return total


def _tested(sums: Sums, permuted: Floats) -> dict[str, Any]:
    """Return both statistics and their p-values, NaN where V is 0."""
    none = np.full(2, np.nan)
    if not sums.variance.any():
        return {"statistic": none, "p": none, "p_asymptotic": none, "df": 0, "slope": np.nan, "slope_se": np.nan}
    place = np.arange(sums.deviation.size) - (sums.deviation.size - 1) / 2
    inverse = np.linalg.pinv(sums.variance, rcond=1e-10, hermitian=True)
    df = int(np.linalg.matrix_rank(sums.variance @ inverse, tol=0.5))
    sd, leverage = np.sqrt(place @ sums.variance @ place), place @ sums.design @ place
    both = np.vstack([sums.deviation, permuted])
    q, z = np.einsum("dr,rs,ds->d", both, inverse, both, optimize=True), both @ place / sd
    extreme = [np.mean(every >= every[0] - TIED * (1 + every[0])) for every in (q, np.abs(z))]
    return {
        "statistic": np.array([q[0], z[0]]),
        "p": np.array(extreme),
        "p_asymptotic": np.array([special.chdtrc(df, q[0]), 2 * special.ndtr(-abs(z[0]))]),
        "df": df,
        "slope": z[0] * sd / leverage,
        "slope_se": sd / leverage,
    }


def _described(x: Bools, m: Bools, sums: Sums) -> dict[str, Any]:
    """Return the run means of one config, how they vary, and how they would if runs were alike."""
    k, n, size = x.sum(axis=1), m.sum(axis=1), m.sum(axis=0).astype(float)
    size[size == 0] = np.nan
    mean, own = x.sum(axis=0) / size, (k / np.maximum(n, 1)) @ m / size
    used = ~np.isnan(size)
    several = used.sum() > 1
    centre = np.eye(used.sum()) - 1 / max(used.sum(), 1)
    noise = centre @ (sums.variance / np.outer(size, size))[np.ix_(used, used)]
    spare = float((sums.design**2).sum() - np.maximum(n - 1, 0).sum())
    raw = (sums.deviation @ sums.deviation - np.trace(sums.variance)) / spare if spare > TIED else np.nan
    return {
        "mean": mean,
        "difference": sums.deviation / size,
        "z": _standardised(sums),
        "range": np.ptp(mean[used]) if several else np.nan,
        "sd": mean[used].std(ddof=1) if several else np.nan,
        "sd_expected": np.sqrt(own[used].var(ddof=1) + np.trace(noise) / (used.sum() - 1)) if several else np.nan,
        "mixed_cells": int(((k > 0) & (k < n)).sum()),
        "run_variance_raw": raw,
        "run_variance": np.maximum(raw, 0.0),
    }


def _standardised(sums: Sums) -> Floats:
    sd = np.sqrt(np.diag(sums.variance))
    return np.asarray(sums.deviation / np.where(sd > 0, sd, np.nan))


def _labelled(board: xr.Dataset, found: list[dict[str, Any]]) -> xr.Dataset:
    over = {"mean": ("run",), "difference": ("run",), "z": ("run",)}
    over |= dict.fromkeys(("statistic", "p", "p_asymptotic"), ("test",))
    data = {name: (("config", *over.get(name, ())), np.stack([one[name] for one in found])) for name in found[0]}
    names = {"config": board["config"].values, "run": board["run"].values, "test": list(TESTS)}
    return xr.Dataset(data, coords=names)


def _pooled(total: Sums, tested: dict[str, Any], scored: Bools) -> dict[str, Any]:
    size = scored.sum(axis=(0, 1)).astype(float)
    with np.errstate(invalid="ignore"):
        difference = total.deviation / size
    dims = dict.fromkeys(("statistic", "p", "p_asymptotic"), "test")
    named = {f"pooled_{name}": (dims.get(name, ()), value) for name, value in tested.items()}
    return named | {"pooled_difference": ("run", difference), "pooled_z": ("run", _standardised(total))}


def _parts(outcomes: xr.Dataset, result: xr.Dataset, scored: Bools) -> dict[str, Any]:
    """Return what rounds and tasks add to the variance of a score, and the score."""
    board = outcomes.reset_coords(drop=True)[["successes", "trials"]]
    n = scored.sum(axis=2, keepdims=True)
    # The weight of a run in the mean over tasks of task means: 1 / R each where all were scored.
    weight = (scored / np.maximum(n, 1)).sum(axis=1) / np.maximum((n > 0).sum(axis=1), 1)
    between = between_variance(board, tasks="fixed", method="moments")["estimate"].reset_coords(drop=True)
    return {
        "observed": observed_score(board),
        "run_part": result["run_variance"] * (weight**2).sum(axis=1),
        "task_part": between / (board["trials"] > 0).sum("task"),
    }


def _reasons(outcomes: xr.Dataset, passed: Bools, scored: Bools) -> npt.NDArray[np.object_]:
    k, n = passed.sum(axis=2), scored.sum(axis=2)
    reason = np.where(((k > 0) & (k < n)).any(axis=1), "", NOT_MIXED).astype(object)
    reason[n.max(axis=1, initial=0) == 1] = ONE_RUN
    reason[n.max(axis=1, initial=0) == 0] = no_identity(outcomes) or "no scored run"
    return reason


def _verdict(result: xr.Dataset, draws: int) -> str:
    tested = result.isel(config=np.flatnonzero(result["reason"] == ""))
    count = tested.sizes["config"]
    if not count:
        return "nothing to test: " + "; ".join(sorted(set(result["reason"].values.tolist())))
    spread, drift = ((tested["p_holm"].sel(test=test) <= LEVEL).values for test in TESTS)
    odd = [_odd_run(tested.isel(config=i)) for i in np.flatnonzero(spread)]
    moved = [f"{one['config'].item()!r} ({float(one['slope']):+.3f} a run)" for one in _each(tested, drift)]
    text = [
        f"runs differ in {len(odd)} of {count} configs tested" + (": " + ", ".join(odd) if odd else ""),
        f"they drift in {len(moved)}" + (": " + ", ".join(moved) if moved else ""),
        "pooled over configs, runs of one name taken for one round: p = {:.3g} for a spread, {:.3g} for a drift".format(
            *result["pooled_p"].values.tolist()
        ),
    ]
    if count > LEVEL * (draws + 1):
        text.append(f"{draws} draws are too few for {count} configs; ask for draws={int(count / LEVEL)}")
    return "; ".join(text)


def _each(result: xr.Dataset, which: Bools) -> list[xr.Dataset]:
    return [result.isel(config=i) for i in np.flatnonzero(which)]


def _odd_run(one: xr.Dataset) -> str:
    far = one.isel(run=int(np.nanargmax(np.abs(one["z"].values))))
    who, run = one["config"].item(), far["run"].item()
    return f"{who!r} (run {run!r} {float(far['difference']):+.3f}, z {float(far['z']):.1f})"
