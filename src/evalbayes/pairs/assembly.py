"""From a rule and a target to an answer: the estimate, its interval, and the identity that goes with both."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes.answer import answer, check_prob, from_draws
from evalbayes.errors import ArgumentError, NotIdentifiedError, check_whole
from evalbayes.frequentist.bootstrap import NO_SPREAD, Floats, Integers, hold
from evalbayes.outcomes import clusters
from evalbayes.pairs import diagnostics
from evalbayes.pairs.inclusion import Inclusion, inclusion, pair_weights
from evalbayes.pairs.panel import exact_keys
from evalbayes.pairs.resample import ON_CONFIGS, ON_TASKS, Design, draw_means
from evalbayes.pairs.rules import Rule, matrix, sums
from evalbayes.pairs.sums import Sums, mean, pairs_in
from evalbayes.pairs.targets import VARIANCE_METHODS, choose
from evalbayes.pairs.variance import FEWEST, VARIANCES, weighted_dyadic
from evalbayes.textbook import quantile

NOTHING_SAMPLED = "nothing is sampled: this is the value of the board itself, without sampling error"
FEWEST_DRAWN = 4
"""Configs or clusters without which a bootstrap of them is not offered."""


def ask(
    rule: Rule,
    outcomes: xr.Dataset | xr.DataArray,
    *,
    quantity: str | None = None,
    configs: str = "fixed",
    tasks: str = "fixed",
    method: str | None = None,
    prob: float = 0.95,
    seed: int = 0,
    draws: int = 2000,
    copies: str = "out",
    cluster: str | None = None,
    blocks: Any = None,
    weights: Any = None,
) -> xr.Dataset:
    """Answer for a rule; arguments as in `evalbayes.pairs.near_tie`."""
    quantity = quantity or {"user": "pair_rule"}.get(rule.name, rule.name)
    check_prob(prob)
    check_whole("draws", draws, 2)
    check_whole("seed", seed, 0)
    included = inclusion(rule, outcomes, blocks, weights)
    clustered = cluster is not None
    method = choose(quantity, method, configs=configs, tasks=tasks, inclusion=included.kind, clustered=clustered)
    _check_design(rule, included, method, copies)
    codes, cluster = _clusters(rule, outcomes, cluster, method)
    design = Design(included.blocks, _floats(included.of_configs), codes, copies)
    if included.of_pairs is not None:
        design = design._replace(weights=None)
    counted = None if included.kind != "all" else sums(rule)
    exact = mean(counted) if counted else _weighted_mean(rule, included)
    identity = {"quantity": quantity, "tasks": tasks, "configs": configs, "method": method, "prob": prob}
    said = _said(rule, outcomes, included, method, design, cluster)
    said |= _exact(rule, exact, included)
    if configs == "sampled" and counted:
        share, passed = diagnostics.of_sums(counted)
        said |= {"first_order_share": xr.DataArray(share), "regular": xr.DataArray(passed)}
    if method == "exact":
        return _without_interval(exact, NOTHING_SAMPLED, identity, said)
    few = _too_few(rule, included, method, design)
    if few:
        return _without_interval(exact, few, identity, said)
    if method in (*ON_CONFIGS, *ON_TASKS):
        return _from_bootstrap(rule, included, method, design, exact, draws, seed, identity, said)
    return _from_variance(exact, _variance(rule, included, counted, method), identity, said)


def _check_design(rule: Rule, included: Inclusion, method: str, copies: str) -> None:
    if copies not in ("out", "ties"):
        raise ArgumentError(f"copies={copies!r} is not 'out' or 'ties'")
    if copies == "ties" and method in ON_CONFIGS and (included.kind != "all" or rule.tie is None):
        raise ArgumentError("copies='ties' is for near tie, equality and discordance over all pairs with equal weights")
    if method in ON_TASKS and rule.values is not None:
        raise NotIdentifiedError("pairs: a user's rule is known on the board's own tasks only; use tasks='fixed'")
    if method in ON_TASKS and not rule.panel.tasks:
        raise NotIdentifiedError("pairs: scores alone say nothing of tasks='sampled'; give the board")
    if method in ON_TASKS and included.of_pairs is not None:
        raise NotIdentifiedError("pairs: weights of pairs serve tasks='fixed'; give weights of configs")


def _clusters(
    rule: Rule, outcomes: xr.Dataset | xr.DataArray, cluster: str | None, method: str
) -> tuple[Integers | None, str]:
    """Code of each panel task's cluster, and the coord's name; none where tasks are drawn one by one."""
    if method not in ON_TASKS or method == "task_bootstrap":
        return None, ""
    if cluster is None and method == "joint_bootstrap":
        return None, ""
    if isinstance(outcomes, xr.DataArray) or (cluster is None and "cluster" not in outcomes.coords):
        raise ArgumentError("cluster_bootstrap: name the task coord with cluster=, such as 'repo'")
    cluster = cluster or "cluster"
    labels = clusters(outcomes, cluster).sel(task=rule.panel.tasks).values
    return np.unique(labels.astype(str), return_inverse=True)[1], cluster


def _floats(values: npt.NDArray[Any] | None) -> Floats | None:
    return None if values is None else values.astype(float)


def _weighted_mean(rule: Rule, included: Inclusion) -> Any:
    """Mean under pair weights: a Fraction where values and weights are whole numbers or Fractions."""
    values, scale = matrix(rule)
    weights = pair_weights(included)
    inexact = any(np.issubdtype(part.dtype, np.floating) for part in (values, weights))
    if inexact:
        total, weight = (values.astype(float) * weights.astype(float)).sum() / scale, weights.astype(float).sum()
        return float(total / weight)
    weights = weights.astype(object)
    return Fraction((values.astype(object) * weights).sum()) / (Fraction(weights.sum()) * scale)


def _variance(rule: Rule, included: Inclusion, counted: Sums | None, method: str) -> float:
    if counted is not None:
        return float(VARIANCES[method](counted))
    values, scale = matrix(rule)
    weights = pair_weights(included).astype(float)
    return weighted_dyadic(values.astype(float) / scale, weights / weights.max())[1]


def _too_few(rule: Rule, included: Inclusion, method: str, design: Design) -> str:
    """Say why there are too few units for a method, or nothing."""
    size, least = rule.panel.size, FEWEST.get(method, FEWEST_DRAWN)
    units = size if included.blocks is None or method == "dyadic" else int(included.blocks.max()) + 1
    if method in (*ON_CONFIGS, *VARIANCE_METHODS) and units < least:
        return f"{units} {'configs' if units == size else 'blocks'}: {method} needs {least} or more"
    if method in ON_TASKS:
        drawn = len(rule.panel.tasks) if design.clusters is None else int(design.clusters.max()) + 1
        what = "tasks" if design.clusters is None else "clusters"
        return f"{drawn} {what}: {method} needs {FEWEST_DRAWN} or more" if drawn < FEWEST_DRAWN else ""
    return ""


def _said(
    rule: Rule,
    outcomes: xr.Dataset | xr.DataArray,
    included: Inclusion,
    method: str,
    design: Design,
    cluster: str,
) -> dict[str, Any]:
    """Scalar coords that say what was asked, the same names for every method."""
    board = rule.panel
    return {
        "margin": float(rule.margin) if rule.margin is not None else float("nan"),
        "scores": "observed",
        "new_runs": method != "exact",
        "inclusion": included.words[0],
        "weights": included.words[1],
        "copies": {"out": "left out", "ties": "counted as ties"}[design.copies] if method in ON_CONFIGS else "",
        "panel": board.kind,
        "panel_tasks": len(board.tasks) or board.on_board,
        "board_tasks": board.on_board,
        "panel_coverage": board.coverage,
        "panel_configs": board.size,
        "runs": board.runs,
        "cluster": cluster,
        "resamples": 0,
        "error_policy": str(outcomes.attrs.get("error_policy", "not recorded")),
    }


def _exact(rule: Rule, exact: Any, included: Inclusion) -> dict[str, Any]:
    """The estimate as a fraction, where it is one."""
    whole = isinstance(exact, Fraction) and (exact_keys(rule.panel) or rule.values is not None)
    size = rule.panel.size
    if included.blocks is not None:
        pairs = pairs_in(size) - sum(pairs_in(int(m)) for m in np.bincount(included.blocks))
    else:
        weights = None if included.kind == "all" else pair_weights(included)
        pairs = pairs_in(size) if weights is None else int(np.count_nonzero(weights)) // 2
    parts = (exact.numerator, exact.denominator) if whole else (float("nan"), float("nan"))
    # Beyond int64 the text alone holds the fraction.
    numbers = [part if not whole or max(parts) < 2**63 else float("nan") for part in parts]
    return {
        "numerator": xr.DataArray(numbers[0]),
        "denominator": xr.DataArray(numbers[1]),
        "fraction": xr.DataArray(f"{parts[0]}/{parts[1]}" if whole else ""),
        "pairs": xr.DataArray(int(pairs)),
    }


def _without_interval(exact: Any, reason: str, identity: dict[str, Any], said: dict[str, Any]) -> xr.Dataset:
    nothing = xr.DataArray([np.nan, np.nan], dims="ci_bound")
    kind = "none" if reason == NOTHING_SAMPLED else "eti"
    return answer(xr.DataArray(float(exact)), np.nan, nothing, ci_kind=kind, reason=reason, **identity, **said)


def _from_variance(exact: Any, variance: float, identity: dict[str, Any], said: dict[str, Any]) -> xr.Dataset:
    if variance <= NO_SPREAD**2:
        none = "negative" if variance < -(NO_SPREAD**2) else "0"
        reason = f"the estimate of the variance is {none}, which says nothing of new configs; see the diagnostic"
        return _without_interval(exact, reason, identity, said)
    se = variance**0.5
    half = quantile(identity["prob"]) * se
    interval = xr.DataArray([float(exact) - half, float(exact) + half], dims="ci_bound")
    return answer(xr.DataArray(float(exact)), se, interval, ci_kind="wald", **identity, **said)


def _from_bootstrap(
    rule: Rule,
    included: Inclusion,
    method: str,
    design: Design,
    exact: Any,
    draws: int,
    seed: int,
    identity: dict[str, Any],
    said: dict[str, Any],
) -> xr.Dataset:
    if included.of_pairs is not None:
        means = _pair_weighted_draws(rule, included, draws, seed)
    else:
        means = draw_means(rule, method, design, draws=draws, seed=seed)
    means = means[np.isfinite(means)]
    if len(means) < draws / 2 or means.std() < NO_SPREAD:
        reason = "most draws hold no pair that counts" if len(means) < draws / 2 else "every draw has the same value"
        return _without_interval(exact, f"{method}: {reason}", identity, said)
    said["resamples"] = len(means)
    table = xr.DataArray(means, dims="draw")
    return hold(from_draws(table, estimate=xr.DataArray(float(exact)), **identity, **said))


def _pair_weighted_draws(rule: Rule, included: Inclusion, draws: int, seed: int) -> Floats:
    """Config bootstrap under weights of pairs: both sums are those of a rule given by its values."""
    values, scale = matrix(rule)
    weights = pair_weights(included).astype(float)
    parts = [
        draw_means(Rule("user", rule.panel, values=table), "config_bootstrap", Design(), draws=draws, seed=seed)
        for table in (values.astype(float) / scale * weights, weights)
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        result: Floats = np.where(parts[1] > 0, parts[0] / parts[1], np.nan)
    return result
