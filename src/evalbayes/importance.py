"""Fits by importance-weighted draws from Laplace's approximation."""

import numpy as np
import xarray as xr

from evalbayes import laplace, nodes, proposal
from evalbayes.check.sampler import K_HAT, LEAST_ESS
from evalbayes.density import Data
from evalbayes.errors import SamplingError
from evalbayes.expansion import Expansion
from evalbayes.marginal import Progress, Settled
from evalbayes.tree import labelled, reported

TARGET_ESS = 1000
FLATTER, MORE_SKEWED = 1.3, 1.5
"""For separated boards: k-hat over ten seeds on three of them is 0.36, 0.27, 0.46 there, 0.59, 0.42, 0.55 without."""


def by_laplace(settled: Settled, *, draws: int, seed: int, say: Progress) -> xr.DataTree:
    """Fit by weighted draws, resampled to ``draws``; task effects are drawn back from the grid.

    Raises
    ------
    SamplingError
        Unless the weights pass.
    """
    rng = np.random.default_rng(seed)
    settled, weighted, points = _drawn(settled, rng, draws=draws, say=say)
    density, data, seen = settled.density, settled.data, settled.seen
    names = reported(settled.model)
    values = laplace.draws_of(density, names, points, data)
    if seen is not None:
        say("drawing task effects")
        values |= nodes.drawn_back(density, points, data, rng)
    importance = xr.Dataset({"weight": ("proposal", weighted.weight)})
    tree = xr.DataTree.from_dict({"posterior": labelled(settled.model, values), "importance": importance})
    tree.attrs = {"method": "laplace", "k_hat": weighted.k_hat, "weight_ess": weighted.ess}
    tree.attrs["proposals"] = len(weighted.x)
    if seen is not None:
        tree.attrs |= nodes.grid_attrs(data["node_position"], seen)
    return tree


def _drawn(
    settled: Settled, rng: np.random.Generator, *, draws: int, say: Progress
) -> tuple[Settled, laplace.Weighted, np.ndarray]:
    """Return weighted draws that pass and ``draws`` of them resampled, on a grid that passes at those too."""
    for _ in range(nodes.GRIDS):
        settled, weighted = _weighted(settled, rng, target=max(TARGET_ESS, draws / 2), say=say)
        points = weighted.x[proposal.resample(weighted.weight, draws, rng)]
        checked = _resolved(settled, points, say)
        if checked.data is settled.data:
            return checked, weighted, points
        settled = checked
    raise SamplingError("laplace: no grid resolves the task effects at all draws; try method='nuts'")


def _resolved(settled: Settled, points: np.ndarray, say: Progress) -> Settled:
    """Return the board on a grid that passes at draws: the present one, checked there, if it does."""
    if settled.seen is None:
        return settled
    data, seen = nodes.resolved(settled.density, settled.data, points[: nodes.CHECKED_DRAWS], say)
    if not seen.passed(nodes.SLACK):
        raise SamplingError(f"laplace: the grid {seen.fault()} at the draws; try method='nuts'")
    return settled._replace(data=data, seen=seen)


def _weighted(
    settled: Settled, rng: np.random.Generator, *, target: float, say: Progress
) -> tuple[Settled, laplace.Weighted]:
    """Return draws whose weights pass, and the board on the grid on which they were weighed."""

    def resolved(pilots: laplace.Weighted) -> Data:
        nonlocal settled
        points = pilots.x[proposal.resample(pilots.weight, nodes.CHECKED_DRAWS, rng)]
        settled = _resolved(settled, points, say)
        return settled.data

    def sample(expansion: Expansion) -> laplace.Weighted:
        return laplace.sample(
            settled.density, settled.data, expansion, rng, target_ess=target, resolved=resolved, progress=say
        )

    weighted = sample(settled.expansion)
    if not _acceptable(weighted) and _separated(settled.data):
        # A config that fails or passes everything has a long tail: a flatter and more skewed likelihood covers it.
        at = settled.expansion
        weighted = sample(at._replace(curvature=at.curvature / FLATTER, skewness=at.skewness * MORE_SKEWED))
    if not _acceptable(weighted):
        raise SamplingError(
            f"laplace: k-hat {weighted.k_hat:.2f} (below {K_HAT} needed) with {weighted.ess:.0f} effective draws "
            f"({LEAST_ESS} needed) after {len(weighted.x)} proposals; try method='nuts'"
        )
    return settled, weighted


def _separated(data: Data) -> bool:
    """Return whether a config passed or failed every run it had."""
    k, n = np.asarray(data["successes"]).sum(axis=0), np.asarray(data["trials"]).sum(axis=0)
    return bool(((n > 0) & ((k == 0) | (k == n))).any())


def _acceptable(weighted: laplace.Weighted) -> bool:
    return weighted.k_hat < K_HAT and weighted.ess >= LEAST_ESS
