"""What a report of a pair summary has to say, filled in from the answer."""

import xarray as xr

from evalbayes.errors import ArgumentError

WORDS = {
    "near_tie": "share of pairs of configs whose observed scores differ by at most {margin:g}",
    "equality": "share of pairs of configs whose observed scores are equal",
    "discordance": "mean over pairs of configs and over tasks of their disagreement",
    "pair_rule": "mean over pairs of configs of the user's rule",
}
ORDER = {
    "near_tie": "runs within a task, tasks within a config, the rule on each pair of scores, the mean over pairs",
    "equality": "runs within a task, tasks within a config, the rule on each pair of scores, the mean over pairs",
    "discordance": "the rule on each pair within a task (a run of each), tasks within a pair, the mean over pairs",
    "pair_rule": "runs within a task, the user's rule on each pair of configs, the mean over pairs",
}
TIES = {
    "near_tie": "a difference equal to the margin is a near tie; scores compared {how}",
    "equality": "equal as fractions; scores compared {how}",
    "discordance": "two passes or two failures agree",
    "pair_rule": "as the user's rule has them",
}
DESIGNS = {
    "exact": "none: the value of the board itself",
    "hoeffding": "normal interval, first-order projection of a U-statistic over sampled configs",
    "dyadic": "normal interval, dyadic sandwich: pairs that share a config are dependent",
    "jackknife": "normal interval, leaving out one config at a time",
    "pair_iid": "normal interval as if pairs were independent, for reference only: they share configs",
    "config_bootstrap": "configs drawn with replacement",
    "block_bootstrap": "whole blocks of configs drawn with replacement",
    "task_bootstrap": "tasks drawn with replacement, the same for all configs, with their runs as they are",
    "cluster_bootstrap": "clusters of tasks drawn with replacement, the same for all configs",
    "joint_bootstrap": "configs and {units} drawn with replacement, independently of each other",
}


def checklist(result: xr.Dataset) -> dict[str, str]:
    """Fill in the reporting checklist of arXiv 2609.33012 from an answer of this package.

    Parameters
    ----------
    result
        From `near_tie`, `equality`, `discordance` or `summary`.

    Returns
    -------
    dict
        Texts under ``target, fixed, sampled, aggregation order, weights, ties, missing outcomes, uncertainty design``,
        in that order.

    Raises
    ------
    ArgumentError
        If it is not such an answer.

    Examples
    --------
    >>> from evalbayes.pairs import near_tie
    >>> print(checklist(near_tie(xr.DataArray([0, 1, 9], dims="config"), 0.1, out_of=10))["sampled"])
    nothing
    """
    quantity = str(result["quantity"].item()) if "quantity" in result.coords else ""
    if quantity not in WORDS or "panel_tasks" not in result.coords:
        raise ArgumentError("checklist: give one answer of evalbayes.pairs, such as that of near_tie")
    said = {str(name): result[name].item() for name in result.coords if result[name].ndim == 0}
    units = {kind: [name for name in ("configs", "tasks") if said[name] == kind] for kind in ("fixed", "sampled")}
    how = "in integers" if result["fraction"].item() else "after rounding"
    return {
        "target": f"{WORDS[quantity].format(**said)}, {said['inclusion']} ({result['pairs'].item()})",
        "fixed": _listed(units["fixed"], said),
        "sampled": _listed(units["sampled"], said),
        "aggregation order": ORDER[quantity],
        "weights": f"{said['weights']}; tasks of a config count the same",
        "ties": TIES[quantity].format(how=how) + _copies(said),
        "missing outcomes": _missing(said),
        "uncertainty design": _design(said, result),
    }


def _listed(names: list[str], said: dict[str, object]) -> str:
    counts = {"configs": said["panel_configs"], "tasks": said["panel_tasks"]}
    return " and ".join(f"the {counts[name]} {name}" for name in names) or "nothing"


def _copies(said: dict[str, object]) -> str:
    return f"; pairs of copies of one config in a draw are {said['copies']}" if said["copies"] else ""


def _missing(said: dict[str, object]) -> str:
    policy = f"runs that errored: {said['error_policy']}"
    if said["panel"] == "own":
        return f"each config scored on its own tasks, at least {said['panel_coverage']:.1%} of the board's; {policy}"
    every = "" if said["panel_tasks"] == said["board_tasks"] else f", of {said['board_tasks']} on the board"
    return f"{said['panel_tasks']} tasks on which every config was scored{every}; {policy}"


def _design(said: dict[str, object], result: xr.Dataset) -> str:
    units = f"clusters of tasks by {said['cluster']}" if said["cluster"] else "tasks"
    text = DESIGNS[str(said["method"])].format(units=units)
    if said["method"] == "cluster_bootstrap":
        text = text.replace("clusters of tasks", units)
    if said["resamples"]:
        text += f"; {said['resamples']} draws, central {said['ci_prob']:g} of them"
    elif said["method"] != "exact":
        text += f", level {said['ci_prob']:g}"
    if "regular" in result:
        verdict = "passed" if result["regular"].item() else "not passed"
        text += f"; regularity diagnostic {verdict}, first-order share {result['first_order_share'].item():.3f}"
    return text + (f"; no interval: {result['reason'].item()}" if result["reason"].item() else "")
