"""What tests share: the folder of real boards, a writer of small files, one real fit, and posteriors made by hand."""

import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy import special

from command_line import Done, Run


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real boards: EVALBAYES_SHARED/data, or ../shared/data beside the repository."""
    shared = Path(os.environ.get("EVALBAYES_SHARED") or Path(__file__).parents[2] / "shared")
    folder = shared / "data"
    if not folder.is_dir():
        reason = f"no real boards at {folder}; set EVALBAYES_SHARED"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def needs() -> Callable[..., dict[str, object]]:
    """Return what an answer's function has to be told besides its target: a number of runs, or a ratio of costs."""
    values = {"runs": 5, "k": 3, "cost_ratio": 10.0}

    def needs(function: Callable[..., object]) -> dict[str, object]:
        parameters = inspect.signature(function).parameters.values()
        return {p.name: values[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty}

    return needs


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write text or bytes to a file of the test's own and return its path."""

    def write(content: str | bytes, name: str = "runs.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command line in this process."""
    from evalbayes import cli

    def call(*words: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["evalbayes", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        seen = capsys.readouterr()
        return Done(code, seen.out, seen.err)

    return call


@pytest.fixture(scope="session")
def small_board() -> xr.Dataset:
    """The board of the one real fit: 8 configs, 40 tasks, 3 runs a cell."""
    from evalbayes import simulate

    return simulate.board(configs=8, tasks=40, runs=3, seed=1)


@pytest.fixture(scope="session")
def small_fit(small_board: xr.Dataset) -> xr.DataTree:
    """One real fit of the crossed model, for the whole session; copy before changing it."""
    from evalbayes import fit

    return fit(small_board, "crossed", method="laplace")


@pytest.fixture(scope="session")
def fabricate() -> Callable[..., xr.DataTree]:
    """Return a maker of fits that no sampler has seen: any counts, any draws, in milliseconds."""
    return _fabricate


def _fabricate(successes, trials, *, chains=2, draws=100, seed=0, scores=None, **attrs) -> xr.DataTree:
    """A fit of the crossed model's shape whose draws are random numbers around the configs' logits.

    ``scores`` (chain x draw, config) replaces the draws of the population scores, to set ties and orders.
    """
    successes, trials = np.broadcast_arrays(np.asarray(successes, int), np.asarray(trials, int))
    m, tasks = successes.shape
    rng, at = np.random.default_rng(seed), (chains, draws)
    centre = special.logit((successes.sum(1) + 0.5) / (trials.sum(1) + 1))
    effect = centre - centre.mean() + 0.4 * rng.standard_normal((*at, m))
    sd, upper = rng.uniform(1, 3, at), rng.uniform(0.3, 0.7, at)
    weight = np.stack([1 - upper, upper], -1)
    mean = sd[..., None] * np.stack([-np.sqrt(0.6 * upper / (1 - upper)), np.sqrt(0.6 * (1 - upper) / upper)], -1)
    scale = sd[..., None] * np.sqrt(0.4) * np.ones(2)
    both = ("chain", "draw")
    posterior = xr.Dataset(
        {
            "intercept": (both, centre.mean() + 0.3 * rng.standard_normal(at)),
            "config_sd": (both, rng.uniform(0.5, 1.5, at)),
            "config_effect": ((*both, "config"), effect - effect.mean(-1, keepdims=True)),
            "task_sd": (both, sd),
            "task_weight": ((*both, "component"), weight),
            "task_mean": ((*both, "component"), mean),
            "task_scale": ((*both, "component"), scale),
            "task_effect": ((*both, "task"), sd[..., None] * rng.standard_normal((*at, tasks))),
        },
        coords={
            "chain": range(chains),
            "draw": range(draws),
            "config": [f"config-{i}" for i in range(m)],
            "task": [f"task-{i:02}" for i in range(tasks)],
            "component": [0, 1],
        },
    )
    made = _by_trapezoid(posterior) if scores is None else np.reshape(scores, (*at, m))
    posterior["score"] = ((*both, "config"), made)
    names = {"config": posterior["config"].values, "task": posterior["task"].values}
    cell = ("config", "task")
    counts = xr.Dataset({"trials": (cell, trials), "errors": (cell, np.zeros_like(trials))}, coords=names)
    groups = {
        "posterior": posterior,
        "observed_data": xr.Dataset({"successes": (cell, successes)}, coords=names),
        "constant_data": counts,
    }
    fit = xr.DataTree.from_dict(groups)
    count = chains * draws
    fit.attrs = {"model": "crossed", "method": "laplace", "seed": 0, "draws": count, "weight_ess": float(count)}
    fit.attrs |= {"k_hat": 0.1, "gate": "passed", "mean_gap": 0.0, "mean_gap_se": 0.0, "worst_gap": 0.0} | attrs
    return fit


def _by_trapezoid(posterior: xr.Dataset) -> np.ndarray:
    """Population scores by a grid far wider and finer than any in the package: (chain, draw, config)."""
    z = np.linspace(-12, 12, 1201)
    density = np.exp(-0.5 * z**2)
    ability = (posterior["intercept"] + posterior["config_effect"]).transpose("chain", "draw", "config").values
    total = np.zeros_like(ability)
    for component in (0, 1):
        part = posterior.isel(component=component)
        weight, mean, scale = (part[f"task_{name}"].values for name in ("weight", "mean", "scale"))
        p = special.expit(ability[..., None] + mean[..., None, None] + scale[..., None, None] * z)
        total += weight[..., None] * (p @ density) / density.sum()
    return total
