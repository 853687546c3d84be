"""Several runs of one task: the chance that any, all, or only some of them pass.

With A the chance that all of R runs pass and F that all fail, each a mean over tasks::

    pass@R = 1 - F        pass^R = A        agreement(R) = A + F        flip rate = 1 - A - F at R = 2

pass^R with R the runs that each task has is the perfect-stability rate of arXiv 2606.00920: tasks solved in all runs.

From counts, A of a task is C(k, R) / C(n, R) and F is C(n - k, R) / C(n, R): the share of the ways to pick R of its n
runs, and the only unbiased estimates there are (Chen et al. 2021, arXiv 2107.03374, for pass@R; Yao et al. 2024, arXiv
2406.12045, for pass^R). They need n >= R: no unbiased estimate of a polynomial of degree R exists from fewer runs.
From a probability p, A is p^R; where p is drawn around mu with concentration kappa = 1 / psi,

    A = product over j < R of (mu + j psi) / (1 + j psi).
"""

from typing import Any

import numpy as np

from evalbayes.errors import check_whole

QUANTITIES = ("pass_at_k", "pass_all_k", "agreement_rate", "flip_rate")


def value(quantity: str, all_pass: Any, all_fail: Any) -> Any:
    """Return the quantity from the chances that all runs pass and that all fail."""
    if quantity == "pass_at_k":
        return 1.0 - all_fail
    if quantity == "pass_all_k":
        return all_pass
    return all_pass + all_fail if quantity == "agreement_rate" else 1.0 - (all_pass + all_fail)


def share_of_picks(count: Any, trials: Any, runs: int) -> Any:
    """Return C(count, runs) / C(trials, runs): NaN where there are fewer trials than runs.

    >>> share_of_picks(np.array([3, 9, 3]), np.array([4, 10, 3]), 2).tolist(), share_of_picks(3, 3, 5).item()
    ([0.5, 0.8, 1.0], nan)
    """
    count, trials = np.asarray(count, float), np.asarray(trials, float)
    share = np.where(trials >= runs, 1.0, np.nan)
    # Beyond the most trials all is NaN already.
    for j in range(min(runs, int(trials.max(initial=0)))):
        share = share * np.maximum(count - j, 0.0) / np.maximum(trials - j, 1.0)
    return share


def chance_of_all(mu: Any, psi: Any, runs: int) -> Any:
    """Return the chance that all runs pass where p varies around mu, with psi = 1 / kappa (0: not at all).

    >>> float(chance_of_all(0.5, 0.0, 3)), float(chance_of_all(0.5, np.inf, 3))
    (0.125, 0.5)
    """
    # With share = psi / (1 + psi), which is 1 at psi = inf, every factor is finite.
    share = 1.0 - 1.0 / (1.0 + psi)
    chance = mu
    for j in range(1, runs):
        chance = chance * (mu * (1.0 - share) + j * share) / (1.0 - share + j * share)
    return chance


def check_count(name: str, count: Any) -> int:
    """Refuse what is not a number of runs."""
    check_whole(name, count, 1, "give a number of runs, a whole number from 1")
    return int(count)
