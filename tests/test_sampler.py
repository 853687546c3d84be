"""check.sampler: each check by name, on chains and weights made by hand, and what a failed one says."""

import numpy as np
import pytest
import xarray as xr

from evalbayes import SamplingError, report
from evalbayes.check import sampler
from evalbayes.check.sampler import K_HAT, LEAST_BFMI, LEAST_ESS, R_HAT, refuse_failed

CHAINS, DRAWS = 4, 1000


def chains(**changed) -> xr.DataTree:
    """Four chains of independent draws with energies that mix, some variable or statistic replaced."""
    rng = np.random.default_rng(0)
    both = ("chain", "draw")
    posterior = {
        "intercept": (both, rng.standard_normal((CHAINS, DRAWS))),
        "score": ((*both, "config"), rng.standard_normal((CHAINS, DRAWS, 3))),
        "task_weight": ((*both, "component"), np.ones((CHAINS, DRAWS, 1))),
    }
    stats = {
        "diverging": (both, np.zeros((CHAINS, DRAWS), bool)),
        "energy": (both, rng.standard_normal((CHAINS, DRAWS))),
    }
    for name, values in changed.items():
        (stats if name in stats else posterior)[name] = (both, values)
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(posterior), "sample_stats": xr.Dataset(stats)})
    tree.attrs = {"method": "nuts", "gate": "passed"}
    return tree


def weights(**changed) -> xr.DataTree:
    tree = xr.DataTree.from_dict({"posterior": chains()["posterior"].to_dataset()})
    tree.attrs = {"method": "laplace", "k_hat": 0.2, "weight_ess": 1500.0, "grid_error": 1e-9, "grid_limit": 1e-5}
    tree.attrs |= changed
    return tree


def failed(checks: xr.Dataset) -> list[str]:
    return checks["check"].values[~checks["passed"].values].tolist()


def test_good_chains_pass_every_check():
    checks = sampler(chains())
    assert checks["check"].values.tolist() == [
        "r_hat",
        "ess_bulk",
        "ess_tail",
        "divergences",
        "bfmi",
        "stuck",
        "population",
    ]
    assert failed(checks) == []
    refuse_failed(checks, "nuts")


def test_what_is_constant_by_design_is_counted_apart():
    """Case 60: R-hat of a constant is NaN; it is neither hidden nor taken for a failure."""
    checks = sampler(chains(always=np.ones((CHAINS, DRAWS))))
    assert checks.attrs == {"quantities": 6, "constant": 2}
    assert failed(checks) == []
    assert np.isfinite(checks["value"]).all()


def test_a_quantity_stuck_within_chains_is_a_failure():
    """Case 60: constant within each chain and different between them also has no R-hat, and is not constant."""
    stuck = np.repeat(np.arange(CHAINS, dtype=float)[:, None], DRAWS, axis=1)
    checks = sampler(chains(frozen=stuck))
    assert "stuck" in failed(checks) or "r_hat" in failed(checks)
    with pytest.raises(SamplingError):
        refuse_failed(checks, "nuts")


MORE, OTHER = "try more draws, or method='latent'", "try method='latent'"
"""More draws mend what is noisy; they do not mend a place that the sampler cannot follow."""


def drawn(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((CHAINS, DRAWS))


@pytest.mark.parametrize(
    ("changed", "name", "side", "limit", "remedy"),
    [
        ({"intercept": drawn(1) + np.arange(CHAINS)[:, None]}, "r_hat", "below", R_HAT, MORE),
        ({"intercept": np.cumsum(drawn(2), axis=1)}, "ess_bulk", "at least", LEAST_ESS, MORE),
        ({"diverging": np.arange(CHAINS * DRAWS).reshape(CHAINS, DRAWS) == 7}, "divergences", "at most", 0, OTHER),
        ({"energy": np.cumsum(drawn(3), axis=1)}, "bfmi", "at least", LEAST_BFMI, OTHER),
    ],
)
def test_a_failed_check_names_itself_its_value_its_limit_and_the_remedy(changed, name, side, limit, remedy):
    checks = sampler(chains(**changed))
    assert name in failed(checks)
    one = checks.sel(check=name)
    assert (one.side.item(), float(one.limit)) == (side, limit)
    with pytest.raises(SamplingError, match=f"{name} .* \\({side} {limit:g} needed\\).*; {remedy}$") as refused:
        refuse_failed(checks, "nuts")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changed", "name"),
    [({"k_hat": K_HAT}, "k_hat"), ({"k_hat": np.nan}, "k_hat"), ({"weight_ess": 399.0}, "weight_ess")],
)
def test_weights_have_their_own_checks_and_no_r_hat(changed, name):
    assert failed(sampler(weights())) == []
    checks = sampler(weights(**changed))
    assert failed(checks) == [name]
    assert not {"r_hat", "ess_bulk"} & set(checks["check"].values)
    with pytest.raises(SamplingError, match="try method='nuts'"):
        refuse_failed(checks, "laplace")


def test_a_grid_that_errs_is_refused():
    assert failed(sampler(weights(grid_error=2e-5))) == ["grid_error"]


def test_checks_of_the_model_are_shown_and_do_not_refuse_the_fit():
    """The gate and the dispersion say which answers to believe; the draws are what they should be."""
    checks = sampler(weights(gate="failed", dispersion=1.9, dispersion_limit=1.2))
    assert failed(checks) == ["population", "dispersion"]
    assert "crossed_beta_binomial" not in str(checks.sel(check="dispersion").remedy.item())
    crossed = sampler(weights(model="crossed", dispersion=1.9, dispersion_limit=1.2))
    assert "crossed_beta_binomial" in str(crossed.sel(check="dispersion").remedy.item())
    assert set(checks["about"].values[~checks["passed"].values]) == {"model"}
    refuse_failed(checks, "laplace")


def test_values_are_arvizs():
    import arviz_stats as azs

    tree = chains()
    checks = sampler(tree)["value"]
    varying = tree["posterior"].to_dataset()[["intercept", "score"]]
    assert float(checks.sel(check="r_hat")) == max(float(v.max()) for v in azs.rhat(varying).data_vars.values())
    bulk, tail = (azs.ess(varying, method=method) for method in ("bulk", "tail"))
    assert float(checks.sel(check="ess_bulk")) == min(float(v.min()) for v in bulk.data_vars.values())
    assert float(checks.sel(check="ess_tail")) == min(float(v.min()) for v in tail.data_vars.values())


def test_a_failed_fit_never_reaches_a_report(small_board, small_fit, tmp_path):
    poor = small_fit.copy()
    poor.attrs = small_fit.attrs | {"k_hat": 0.8}
    with pytest.raises(SamplingError, match=r"k_hat 0\.8 \(below 0\.5 needed\)"):
        report(small_board, tmp_path / "report.html", fit=poor)
    assert list(tmp_path.iterdir()) == []
