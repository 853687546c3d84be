"""The discordance check against loops, and what families do to it: seen by their model, missed by the one without."""

import numpy as np
import pytest
import xarray as xr
from scipy import special

import evalbayes as eb
from evalbayes.cells import ability, flattened, task_effects
from evalbayes.check import discordance, statistics
from evalbayes.errors import ArgumentError, NotIdentifiedError, OutcomesError


@pytest.fixture(scope="module")
def ragged(fabricate) -> xr.DataTree:
    """5 configs x 12 tasks, 0 to 3 runs a cell; the draws know nothing of it."""
    rng = np.random.default_rng(3)
    trials = rng.integers(0, 4, size=(5, 12))
    return fabricate(rng.binomial(trials, rng.random((5, 1))), trials, chains=1, draws=200)


@pytest.fixture(scope="module")
def families() -> xr.Dataset:
    """12 configs of 4 families x 100 tasks, 2 runs, residuals of sd 1 on each task; tasks of sd 1.5."""
    rng = np.random.default_rng(12)
    family = np.repeat(np.arange(4), 3)
    logit = rng.normal(0, 0.4, (12, 1)) + rng.normal(0, 1.5, 100) + rng.normal(0, 1.0, (4, 100))[family]
    names = {"configs": [f"c{i:02}" for i in range(12)], "tasks": [f"t{i:03}" for i in range(100)]}
    board = eb.outcomes.from_counts(rng.binomial(2, special.expit(logit)), np.full((12, 100), 2), **names)
    return board.assign_coords(family=("config", [f"f{i}" for i in family]))


def of_a_loop(p: np.ndarray, n: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean of p_a (1 - p_b) + p_b (1 - p_a) over pairs and tasks with runs of both, and of each pair."""
    every, pairs = [], np.full((len(p), len(p)), np.nan)
    for a in range(len(p)):
        for b in range(len(p)):
            tasks = [t for t in range(p.shape[1]) if n[a, t] and n[b, t] and a != b]
            terms = [p[a, t] * (1 - p[b, t]) + p[b, t] * (1 - p[a, t]) for t in tasks]
            every += terms
            pairs[a, b] = np.mean(terms) if terms else np.nan
    return float(np.mean(every)), pairs


def test_discordance_is_that_of_a_loop(ragged):
    """Observed from rates, predicted from mu draw by draw, in whatever order the configs are named."""
    configs = ["config-3", "config-0", "config-4"]
    found, which = discordance(ragged, configs=configs, draws=200), [3, 0, 4]
    k, n = ragged["observed_data"]["successes"].values[which], ragged["constant_data"]["trials"].values[which]
    observed, pairs = of_a_loop(k / np.maximum(n, 1), n)
    assert found["observed"] == pytest.approx(observed, abs=1e-12)
    np.testing.assert_allclose(found["pair_observed"], pairs, atol=1e-12)
    flat = flattened(ragged["posterior"].to_dataset())
    logit = ability(flat).values[:, which, None] + task_effects(flat, 12)[:, None]
    predicted = [of_a_loop(special.expit(one), n) for one in logit]
    chance = [one for one, _ in predicted]
    assert found["predicted"] == pytest.approx(np.mean(chance), abs=1e-12)
    np.testing.assert_allclose(found["interval"], np.quantile(chance, [0.025, 0.975]), atol=1e-12)
    np.testing.assert_allclose(found["pair_predicted"], np.mean([pair for _, pair in predicted], axis=0), atol=1e-12)
    assert found["shared"].sel(config="config-3", opponent="config-0") == ((n[0] > 0) & (n[1] > 0)).sum()


def test_boards_drawn_are_about_the_predicted_chance(ragged):
    """Their mean is that of the chances: 2,000 boards, 5 standard errors of what the cells add, one alarm in 10^6."""
    found = discordance(ragged, draws=2000)
    low, high = found["predictive"].values
    assert low < float(found["predicted"]) < high
    assert high - low > float(np.diff(found["interval"])[0])
    share = found["p_value"].item() * 2001 / 2
    assert share == pytest.approx(round(share), abs=1e-9)


def test_the_best_are_taken_by_their_mean_rate(ragged):
    k, n = ragged["observed_data"]["successes"].values, ragged["constant_data"]["trials"].values
    mean = np.array([(k[i, n[i] > 0] / n[i, n[i] > 0]).mean() for i in range(5)])
    found = discordance(ragged, top=3, draws=200)
    assert found["config"].values.tolist() == [f"config-{i}" for i in np.argsort(-mean)[:3]]
    assert discordance(ragged, top=50, draws=200).sizes["config"] == 5


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"configs": ["config-1"]}, ArgumentError, "name two configs or more"),
        ({"configs": "config-1"}, ArgumentError, "name two configs or more"),
        ({"configs": ["config-1", "config-1"]}, ArgumentError, "each once"),
        ({"configs": ["config-1", "x"]}, OutcomesError, "'x' is not on the board"),
        ({"top": 1}, ArgumentError, "top"),
        ({"draws": 10}, ArgumentError, "draws"),
    ],
)
def test_what_cannot_be_asked_is_refused(ragged, options, error, message):
    with pytest.raises(error, match=message):
        discordance(ragged, **options)


def test_configs_without_a_common_task_are_refused(fabricate):
    apart = fabricate([[1, 0, 0, 0], [0, 0, 1, 0]], [[1, 1, 0, 0], [0, 0, 1, 1]], chains=1, draws=200)
    with pytest.raises(NotIdentifiedError, match="no two of the configs share a task"):
        discordance(apart, draws=200)
    with pytest.raises(ArgumentError, match="discordance: fit is a Dataset"):
        discordance(apart["posterior"].to_dataset())


@pytest.fixture(scope="module")
def fitted(families) -> dict[str, xr.DataTree]:
    options = {"draws": 1000, "method": "laplace", "seed": 2}
    return {
        "without": eb.fit(families, "crossed", **options),
        "with": eb.fit(families, "crossed", interaction_group="family", **options),
    }


def test_omega_is_recovered(fitted):
    """The board's truth is 1. Its 95% interval misses it on one board in 20; this one is fixed, and it does not."""
    omega = fitted["with"]["posterior"]["interaction_sd"].values.ravel()
    low, high = np.quantile(omega, [0.001, 0.025])[0], np.quantile(omega, 0.975)
    print(f"omega {omega.mean():.2f}, 0.1% point {low:.2f}; k-hat {fitted['with'].attrs['k_hat']:.2f}")
    assert low > 0.5
    assert np.quantile(omega, 0.025) < 1 < high


def test_pairs_within_and_between_families_are_as_discordant_as_predicted_only_with_them(families, fitted):
    """What a crossed model without families averages over: pairs of one family agree more, those of two less."""
    within = families["family"].values[:, None] == families["family"].values
    np.fill_diagonal(within, False)
    between = families["family"].values[:, None] != families["family"].values
    gaps = {}
    for name, fit in fitted.items():
        found = discordance(fit, top=12)
        excess = (found["pair_predicted"] - found["pair_observed"]).sel(
            config=families["config"].values, opponent=families["config"].values
        )
        gaps[name] = [100 * float(excess.values[kind].mean()) for kind in (within, between)]
        print(f"{name}: predicted less observed, within families {gaps[name][0]:+.1f}, between {gaps[name][1]:+.1f}")
    # Observed means of 12 and of 54 pairs x 100 tasks have standard errors of about a point and half of one.
    assert gaps["without"][0] > 4
    assert gaps["without"][1] < -1
    assert abs(gaps["with"][0]) < 3
    assert abs(gaps["with"][1]) < 1.5


def test_the_check_names_what_is_wrong(fitted):
    """Of the family that agrees most, beyond what a model without families allows at its rates."""
    family = ["c06", "c07", "c08"]
    wrong, right = (discordance(fitted[name], configs=family) for name in ("without", "with"))
    print(wrong.attrs["sentence"])
    assert "too wide" in wrong.attrs["sentence"]
    assert wrong["p_value"] < 0.05 < right["p_value"]
    assert wrong.attrs["prob"] == statistics.PROB
