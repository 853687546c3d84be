"""The four targets of a pair summary, and which method serves which.

=======  =======  ==========================================================================================
configs  tasks    methods, the first by default
=======  =======  ==========================================================================================
fixed    fixed    exact: the value of this board, nothing is sampled
sampled  fixed    hoeffding, dyadic, jackknife, config_bootstrap; pair_iid for reference
fixed    sampled  task_bootstrap, cluster_bootstrap
sampled  sampled  joint_bootstrap (configs x tasks, or configs x clusters of tasks)
=======  =======  ==========================================================================================

Between blocks of configs: dyadic and block_bootstrap. Under a user's weights: dyadic and config_bootstrap.
"""

from evalbayes.answer import check_targets
from evalbayes.errors import ArgumentError, NotIdentifiedError

VARIANCE_METHODS = ("hoeffding", "dyadic", "jackknife", "pair_iid")
CONFIG_METHODS = ("hoeffding", "dyadic", "jackknife", "config_bootstrap", "pair_iid")
SERVES = {
    ("fixed", "fixed"): ("exact",),
    ("sampled", "fixed"): CONFIG_METHODS,
    ("fixed", "sampled"): ("task_bootstrap", "cluster_bootstrap"),
    ("sampled", "sampled"): ("joint_bootstrap",),
}
BY_INCLUSION = {"blocks": ("dyadic", "block_bootstrap"), "weights": ("dyadic", "config_bootstrap")}
METHODS = ("exact", *CONFIG_METHODS, "block_bootstrap", "task_bootstrap", "cluster_bootstrap", "joint_bootstrap")

WHY_NOT = {
    "blocks": "pairs between blocks are not exchangeable (a config never meets its own block), so it does not apply",
    "weights": "it takes every pair to count the same",
}


def choose(
    quantity: str, method: str | None, *, configs: str, tasks: str, inclusion: str = "all", clustered: bool = False
) -> str:
    """Return the method to use: the one asked for, or the first that serves the target.

    >>> choose("near_tie", None, configs="sampled", tasks="fixed")
    'hoeffding'

    Raises
    ------
    ArgumentError
        If a target or method is not one of the words that exist.
    NotIdentifiedError
        If the method does not cover the target, or not with these weights.
    """
    check_targets(tasks, configs)
    able = SERVES[configs, tasks]
    if able == CONFIG_METHODS:
        able = BY_INCLUSION.get(inclusion, able)
    if method is None:
        return "cluster_bootstrap" if clustered and "cluster_bootstrap" in able else able[0]
    if method not in METHODS:
        raise ArgumentError(f"{quantity}: method={method!r} is not one of {', '.join(METHODS)}")
    if method not in able:
        target = f"configs={configs!r}, tasks={tasks!r}"
        known = method in SERVES[configs, tasks] and inclusion in WHY_NOT
        why = f": {WHY_NOT[inclusion]}" if known else ""
        raise NotIdentifiedError(
            f"{quantity}: method={method!r} does not cover {target}"
            f"{f' with {inclusion}' if inclusion in WHY_NOT else ''}{why}; use {' or '.join(able)}"
        )
    return method
