"""What repetition buys, on both sides: closed forms, brute force, published figures, and what has no answer."""

import inspect

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from evalbayes import (
    ArgumentError,
    NotIdentifiedError,
    OutcomesError,
    SamplingError,
    compare,
    comparison,
    fit,
    frequentist,
    posterior,
    simulate,
)
from evalbayes import components as formulas
from evalbayes.answer import check
from evalbayes.cells import ability
from evalbayes.outcomes import from_counts
from evalbayes.posterior.draws import flat
from evalbayes.posterior.variances import component_draws

NEEDS = {
    "between_variance": {},
    "within_variance": {},
    "icc": {},
    "ceiling": {},
    "aleatoric_share": {"runs": 5},
    "design_effect": {"runs": 5},
    "design_factor": {"runs": 5},
    "optimal_runs": {"cost_ratio": 10.0},
}
DESCRIBED = ("between_variance", "within_variance", "icc")
"""What has a value for these tasks as they are; the rest is about new ones."""
TRIALS = np.array([[3] * 8, [3] * 8, [0, 0, 1, 2, 3, 3, 4, 3], [2] * 8])
SUCCESSES = np.random.default_rng(0).binomial(TRIALS, [[0.8], [0.5], [0.6], [0.3]])


def board_of(successes, trials) -> xr.Dataset:
    successes, trials = np.broadcast_arrays(successes, trials)
    configs, tasks = (
        [f"config-{i}" for i in range(trials.shape[0])],
        [f"task-{i:02}" for i in range(trials.shape[1])],
    )
    return from_counts(successes, trials, configs=configs, tasks=tasks)


@pytest.fixture(scope="module")
def made(fabricate) -> xr.DataTree:
    """A fit with kappa, of additive means, whose draws no sampler has seen."""
    fit = fabricate(SUCCESSES, TRIALS)
    log_kappa = np.random.default_rng(5).normal(1.0, 0.8, fit["posterior"]["config_effect"].shape)
    fit["posterior"] = fit["posterior"].to_dataset().assign(log_kappa=(("chain", "draw", "config"), log_kappa))
    return fit


def by_hand(successes, trials, opponent=None) -> list[tuple[float, float]]:
    """Moments of every config, or of its difference from one, in loops over tasks."""
    rows = []
    for config in range(len(trials)):
        sides = [config] if opponent is None else [config, opponent]
        own = {
            c: [k / n * (1 - k / n) * n / (n - 1) for k, n in zip(successes[c], trials[c], strict=True) if n > 1]
            for c in sides
        }
        rate, noise, within = [], [], []
        for t in range(trials.shape[1]):
            if any(trials[c][t] == 0 for c in sides):
                continue
            p = [successes[c][t] / trials[c][t] for c in sides]
            v = [
                q * (1 - q) * trials[c][t] / (trials[c][t] - 1) if trials[c][t] > 1 else float(np.mean(own[c]))
                for c, q in zip(sides, p, strict=True)
            ]
            rate.append(p[0] - (p[1] if len(p) > 1 else 0.0))
            noise.append(sum(one / trials[c][t] for c, one in zip(sides, v, strict=True)))
            if all(trials[c][t] > 1 for c in sides):
                within.append(sum(v))
        rows.append((float(np.var(rate, ddof=1) - np.mean(noise)), float(np.mean(within))))
    return rows


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), tasks=st.integers(3, 9), opponent=st.sampled_from([None, 1]))
def test_moments_are_those_of_loops(seed, tasks, opponent):
    rng = np.random.default_rng(seed)
    trials = rng.integers(0, 5, (3, tasks))
    trials[:, :2] = 2
    successes = rng.binomial(trials, 0.5)
    board = board_of(successes, trials)
    reference = None if opponent is None else "config-1"
    between = frequentist.between_variance(board, reference=reference, draws=2)
    within = frequentist.within_variance(board, reference=reference, draws=2)
    for config, (raw, mu_w) in enumerate(by_hand(successes, trials, opponent)):
        if config == opponent:
            assert between.reason[config].item() == formulas.ITSELF
            continue
        assert between.raw[config].item() == pytest.approx(raw, abs=1e-12)
        assert between.estimate[config].item() == pytest.approx(max(raw, 0.0), abs=1e-12)
        assert within.estimate[config].item() == pytest.approx(mu_w, abs=1e-12)


def test_moments_are_unbiased_where_the_number_of_runs_goes_with_difficulty():
    """2,000 boards of 30 tasks, hard ones run twice and easy ones six times: within 4 standard errors (1 in 8,000)."""
    rng = np.random.default_rng(1)
    p = rng.beta(0.8, 0.6, (2000, 30))
    trials = np.where(p < 0.5, 2, 6)
    board = board_of(rng.binomial(trials, p), trials)
    truth = {"between_variance": p.var(axis=1, ddof=1), "within_variance": (p * (1 - p)).mean(axis=1)}
    for quantity, true in truth.items():
        result = getattr(frequentist, quantity)(board, draws=2)
        found = result.raw.values if quantity == "between_variance" else result.estimate.values
        error = (found - true).mean() / ((found - true).std() / np.sqrt(2000))
        print(f"{quantity}: mean error {error:+.2f} standard errors")
        assert abs(error) < 4


def test_published_formulas():
    """arXiv 2606.00920: from mu_w / sigma_b^2 = 0.28 and 0.34, as printed; 25 / 88 and 25 / 73 are behind R = 5."""
    assert f"{formulas.optimal_runs(0.28, 1.0):.2f}" == "0.53"
    assert f"{formulas.optimal_runs(0.34, 1.0):.2f}" == "0.58"
    assert formulas.optimal_runs(25 / 88, 88) == pytest.approx(5)
    assert formulas.optimal_runs(25 / 73, 73) == pytest.approx(5)
    assert f"{formulas.design_factor(1 / 0.744 - 1, 5):.2f}" == "1.99"
    assert [f"{100 * (1 - 1 / np.sqrt(c)):.0f}%" for c in (1.34, 1.71)] == ["14%", "24%"]


@pytest.mark.parametrize(("cost_ratio", "loss"), [(880.0, 1.3), (8.8, 9.0)])
def test_the_optimum_is_flat(cost_ratio, loss):
    """R = 5, best at a cost ratio of 88, costs 1.3% and 9% in width where tasks are ten times dearer and cheaper."""
    r = 25 / 88

    def width(runs: float) -> float:
        return float(np.sqrt((1 + r / runs) * (cost_ratio + runs)))

    best = formulas.optimal_runs(r, cost_ratio)
    assert 100 * (width(5) / width(best) - 1) == pytest.approx(loss, abs=0.05 if loss < 5 else 0.5)


@given(r=st.floats(0.001, 50), cost_ratio=st.floats(0.01, 500))
def test_the_whole_number_of_runs_is_the_best_by_trial(r, cost_ratio):
    runs = np.arange(1, 400)
    cost = (1 + r / runs) * (cost_ratio + runs)
    found = int(formulas.whole_runs(r, cost_ratio))
    assert cost[found - 1] <= cost.min() * (1 + 1e-12)


def new_tasks(fit: xr.DataTree, draw: int, tasks: int, rng: np.random.Generator) -> np.ndarray:
    """Success probabilities of new cells at one draw of the parameters, (config, task), by simulation."""
    one = flat(fit).isel(draw=draw)
    component = rng.random(tasks) < float(one["task_weight"][1])
    mean, scale = (np.where(component, *one[f"task_{name}"].values[::-1]) for name in ("mean", "scale"))
    effect = mean + scale * rng.standard_normal(tasks)
    mu = 1 / (1 + np.exp(-(ability(flat(fit)).values[draw][:, None] + effect)))
    kappa = np.exp(one["log_kappa"].values)[:, None]
    return rng.beta(mu * kappa, (1 - mu) * kappa)


@pytest.mark.parametrize("reference", [None, "config-1"])
def test_components_of_new_tasks_are_those_of_simulated_ones(made, reference):
    """200,000 new tasks at each of five draws: within 4.5 standard errors, 40 comparisons (1 in 3,600)."""
    between, within, *_ = component_draws(made, tasks="sampled", reference=reference)
    rng, tasks = np.random.default_rng(3), 200_000
    for draw in (0, 17, 60, 111, 199):
        p = new_tasks(made, draw, tasks, rng)
        noise = p * (1 - p)
        if reference is not None:
            p, noise = p - p[1], noise + noise[1]
        square = (p - p.mean(axis=1, keepdims=True)) ** 2
        for config in (0, 2, 3):
            for draws, terms in ((between, square[config]), (within, noise[config])):
                error = float(draws[draw, config]) - terms.mean()
                assert abs(error) < 4.5 * terms.std() / np.sqrt(tasks)


def test_these_tasks_are_described_by_moments_of_their_own_probabilities(fabricate):
    additive = fabricate(SUCCESSES, TRIALS)
    between, within, *_ = component_draws(additive, tasks="fixed")
    one = flat(additive).isel(draw=7)
    mu = 1 / (1 + np.exp(-(ability(flat(additive)).values[7][:, None] + one["task_effect"].values)))
    np.testing.assert_allclose(between[7], mu.var(axis=1, ddof=1))
    np.testing.assert_allclose(within[7], (mu * (1 - mu)).mean(axis=1))


@pytest.mark.parametrize("quantity", NEEDS)
@pytest.mark.parametrize("tasks", ["sampled", "fixed"])
@pytest.mark.parametrize("reference", [None, "config-1"])
def test_both_sides_keep_one_contract(made, quantity, tasks, reference):
    own = NEEDS[quantity]
    mine, theirs = getattr(posterior, quantity), getattr(frequentist, quantity)
    for name in ("tasks", "configs", "prob", "reference", *own):
        assert inspect.signature(mine).parameters[name].default == inspect.signature(theirs).parameters[name].default
    asked = {"tasks": tasks, "reference": reference, **own}
    for result in (mine(made, **asked), theirs(board_of(SUCCESSES, TRIALS), draws=200, **asked)):
        assert check(result).estimate.dims == ("config",)
        assert (result.quantity.item(), result.tasks.item(), result.configs.item()) == (quantity, tasks, "fixed")
        known = [i for i in range(4) if reference is None or i != 1]
        if tasks == "fixed" and quantity not in DESCRIBED:
            assert result.estimate.isnull().all()
            assert set(result.reason.values[known]) == {formulas.SAMPLED_ONLY}
        else:
            assert result.estimate[known].notnull().all()
        assert all(result[name].item() == value for name, value in own.items())


@pytest.mark.parametrize("quantity", NEEDS)
def test_one_run_of_each_task_gives_a_reason_and_the_score_still_an_interval(fabricate, quantity):
    successes = np.random.default_rng(2).integers(0, 2, (3, 10))
    fit, board = fabricate(successes, np.ones((3, 10), int)), board_of(successes, np.ones((3, 10), int))
    for result in (
        getattr(posterior, quantity)(fit, **NEEDS[quantity]),
        getattr(frequentist, quantity)(board, draws=50, **NEEDS[quantity]),
    ):
        assert result.estimate.isnull().all()
        assert result.interval.isnull().all()
        assert set(result.reason.values) == {formulas.ONE_RUN}
    for result in (posterior.score(fit), frequentist.score(board, draws=50)):
        assert result.interval.notnull().all()


def test_edges_of_the_ratio():
    """Tasks that never differ: nothing between, no end to what runs buy. Runs that never differ: one is enough."""
    alike = board_of([[1, 1, 1, 1], [2, 0, 2, 0], [2, 2, 2, 2]], 2)
    result = frequentist.ceiling(alike, draws=100)
    assert result.estimate.values[:2].tolist() == [np.inf, 1.0]
    assert result.interval.values[:2].tolist() == [[np.inf, np.inf], [1.0, 1.0]]
    assert "no variance to share out" in result.reason[2].item()
    assert frequentist.icc(alike, draws=100).estimate.values[:2].tolist() == [0.0, 1.0]
    assert frequentist.aleatoric_share(alike, runs=3, draws=100).estimate.values[:2].tolist() == [1.0, 0.0]
    assert frequentist.optimal_runs(alike, cost_ratio=4, draws=100).whole.values[:2].tolist() == [np.inf, 1.0]
    assert frequentist.between_variance(alike, draws=100).raw[0].item() == pytest.approx(-0.25)


def test_wrong_questions_are_refused(made):
    board = board_of(SUCCESSES, TRIALS)
    for runs in (0, 2.5, True, "3"):
        with pytest.raises(ArgumentError, match="runs="):
            posterior.design_effect(made, runs=runs)
        with pytest.raises(ArgumentError, match="runs="):
            frequentist.aleatoric_share(board, runs=runs)
    for cost_ratio in (-0.1, -1.0, np.inf, None):
        with pytest.raises(ArgumentError, match="cost_ratio="):
            frequentist.optimal_runs(board, cost_ratio=cost_ratio)
    with pytest.raises(ArgumentError, match="method='anova'"):
        frequentist.icc(board, method="anova")
    for side, subject in ((posterior, made), (frequentist, board)):
        with pytest.raises(NotIdentifiedError, match="configs='sampled'"):
            side.icc(subject, configs="sampled")
        with pytest.raises(ArgumentError, match="tasks='some'"):
            side.icc(subject, tasks="some")
        with pytest.raises(OutcomesError, match="'nobody' is not on the board"):
            side.icc(subject, reference="nobody")
    failed = made.copy()
    failed.attrs = made.attrs | {"gate": "failed", "mean_gap": 0.05, "mean_gap_se": 3.0, "worst_gap": 0.1}
    with pytest.raises(SamplingError, match="reweighted"):
        posterior.icc(failed)
    assert posterior.icc(failed, population="reweighted").method.item() == "laplace_reweighted"


def test_compare_sets_them_side_by_side(made):
    both = compare("ceiling", made, board_of(SUCCESSES, TRIALS))
    assert both.method.values.tolist() == ["laplace", "moments"]
    assert "entries agree" in both.attrs["summary"]


def test_one_config_alone_has_the_closed_forms_of_its_beta():
    """All of a cell's spread is then kappa's: ICC 1 / (1 + kappa), ceiling 1 + kappa, R* sqrt(kappa c_p / c_g)."""
    fitted = fit(simulate.board(1, 30, 4, seed=6, kappa=2.0), draws=400)
    assert fitted.attrs["model"] == "beta_binomial"
    kappa = np.exp(flat(fitted)["log_kappa"].values[:, 0])
    for name, values in (("icc", 1 / (1 + kappa)), ("ceiling", 1 + kappa)):
        assert getattr(posterior, name)(fitted).estimate.item() == pytest.approx(np.median(values))
    best = posterior.optimal_runs(fitted, cost_ratio=10)
    assert best.estimate.item() == pytest.approx(np.median(np.sqrt(10 * kappa)))
    assert best.whole.item() == formulas.whole_runs(best.estimate.item() ** 2, 1.0)


@pytest.mark.parametrize("quantity", NEEDS)
def test_pooled_medians_are_medians_of_draws(quantity, made):
    """Of the configs named, draw by draw: every draw's median in a loop, and the median at the data."""
    board, names = board_of(SUCCESSES, TRIALS), ["config-0", "config-2", "config-3"]
    options = NEEDS[quantity]
    mine = getattr(frequentist, quantity)(board, pooled=names, draws=200, **options)
    each = getattr(frequentist, quantity)(board, draws=2, **options).estimate.sel(config=names)
    assert mine.estimate.dims == ()
    assert float(mine.estimate) == pytest.approx(float(np.median(each)))
    assert int(mine.configs_used) == 3
    theirs = getattr(posterior, quantity)(made, pooled=names, **options)
    found = component_draws(made, tasks="sampled")
    draws = formulas.function_of(quantity, **options)(found.between, found.within).sel(config=names)
    expected = [np.median(one) for one in draws.transpose("draw", "config").values]
    summary = np.mean if "variance" in quantity else np.median
    assert float(theirs.estimate) == pytest.approx(float(summary(expected)))
    np.testing.assert_allclose(theirs.interval, np.quantile(expected, [0.025, 0.975]))
    assert compare(quantity, made, board, pooled=names, **options).verdict.item()


def test_pooling_leaves_out_what_has_no_value_and_says_so(made):
    trials = TRIALS.copy()
    trials[1] = 1
    board = board_of(np.minimum(SUCCESSES, trials), trials)
    mine = frequentist.icc(board, pooled=board.config.values, draws=20)
    assert int(mine.configs_used) == 3
    none = frequentist.icc(board, pooled=["config-1"], draws=20)
    assert np.isnan(none.estimate)
    assert none.reason.item() == formulas.ONE_RUN
    described = frequentist.icc(board, pooled=board.config.values, tasks="fixed")
    assert float(described.estimate) == pytest.approx(float(mine.estimate))
    assert np.isnan(described.interval).all()
    assert np.isnan(frequentist.ceiling(board, pooled=board.config.values, tasks="fixed").estimate)
    with pytest.raises(OutcomesError, match="no-one"):
        frequentist.icc(board, pooled=["no-one"])
    with pytest.raises(ArgumentError, match="name the configs"):
        posterior.icc(made, pooled=[])


def test_configs_run_once_have_bounds(fabricate):
    """Every kappa gives an ICC between the two that additive cells and cells that never vary would give."""
    trials = np.ones((3, 8), int)
    trials[2] = 3
    successes = np.random.default_rng(2).binomial(trials, 0.5)
    made = fabricate(successes, trials)
    found = component_draws(made, tasks="sampled")
    v, w = found.common, found.within
    icc, ceiling = posterior.icc(made), posterior.ceiling(made)
    for config in range(2):
        one = {"config": config}
        assert np.isnan(icc.estimate[one])
        assert "one run" in icc.reason[one].item()
        assert float(icc.lowest[one]) == pytest.approx(float(np.median(v[one] / (v[one] + w[one]))))
        assert float(icc.highest[one]) == 1.0
        assert float(ceiling.lowest[one]) == 1.0
        assert float(ceiling.highest[one]) == pytest.approx(float(np.median(1 + w[one] / v[one])))
        for kappa in (0.1, 1.0, 10.0):
            share = np.median((v + w / (1 + kappa))[one] / (v + w)[one])
            assert float(icc.lowest[one]) < share < 1
    assert icc.lowest.isnull().values.tolist() == [False, False, True]
    assert posterior.between_variance(made).lowest[0] == pytest.approx(float(v[{"config": 0}].median()))
    assert float(posterior.within_variance(made).lowest[0]) == 0.0
    assert "lowest" not in posterior.icc(fabricate(successes * 2, trials * 2))


def test_where_the_sides_part_the_verdict_says_why(fabricate):
    """Moments at either edge, and few runs: tasks that never flip, tasks that are all alike, and eight spare runs."""
    trials = np.full((3, 40), 4)
    trials[2] = [2] * 8 + [1] * 32
    successes = np.random.default_rng(4).binomial(trials, 0.5)
    successes[0], successes[1] = np.tile([0, 4], 20), 2
    successes[2, :8] = [2, 2, 0, 0, 1, 2, 0, 2]
    made, board = fabricate(successes, trials), board_of(successes, trials)
    for quantity, options in (("icc", {}), ("design_effect", {"runs": 5}), ("optimal_runs", {"cost_ratio": 3.0})):
        both = compare(quantity, made, board, **options)
        assert both.verdict.values[0].startswith("differ")
        assert both.why.values[0] == comparison.NO_FLIPS
        assert both.verdict.values[0].endswith(comparison.NO_FLIPS)
        assert both.why.values[1] == comparison.NO_SPREAD
        assert both.verdict.values[2].startswith("differ")
        assert "runs beyond the first" in both.why.values[2]
    agree = compare("icc", made, board).verdict.str.startswith("agree")
    assert (compare("icc", made, board).why.where(agree, "") == "").all()
    assert "why" not in compare("score", made, board)


def test_rounding_is_no_variance_and_a_withheld_answer_has_no_shape():
    """A spread that the noise explains to the last digit is none: the ceiling is inf, not 1e16."""
    trials = np.array([[1, 1, 2, 1, 3, 0, 2, 1], [1] * 8])
    board = board_of(np.array([[0, 1, 1, 1, 2, 0, 0, 0], [1] * 8]), trials)
    assert frequentist.between_variance(board, draws=50).raw[0].item() == 0.0
    assert frequentist.ceiling(board, draws=50).estimate[0].item() == np.inf
    shaped = frequentist.icc(board, method="beta_binomial_ml", draws=50)
    assert np.isnan([shaped.alpha[1], shaped.beta[1]]).all()
    many = board_of(np.array([[3000, 1]]), np.array([[5000, 2]]))
    with pytest.raises(ArgumentError, match=r"5,000 runs.*moments"):
        frequentist.icc(many, method="beta_binomial_ml")


@pytest.mark.filterwarnings("error")
def test_where_only_runs_cost_and_tasks_are_alike_one_run_is_best():
    alike = board_of(np.full((1, 8), 1), np.full((1, 8), 2))
    best = frequentist.optimal_runs(alike, cost_ratio=0, draws=50)
    assert (best.estimate.item(), best.whole.item(), best.reason.item()) == (0.0, 1.0, "")


def test_another_board_than_the_fits_is_refused(made):
    board = board_of(SUCCESSES, TRIALS)
    with pytest.raises(OutcomesError, match="on one side alone"):
        compare("icc", made, board.isel(task=slice(0, 7)))
    with pytest.raises(OutcomesError, match="other runs"):
        compare("icc", made, board_of(SUCCESSES, TRIALS + 1))
    for wrong in ("runs.csv", xr.Dataset()):
        with pytest.raises(ArgumentError, match="give a board"):
            frequentist.icc(wrong)
    for option, value in (("draws", 1), ("seed", -1), ("prob", 1.5), ("pooled", 3)):
        with pytest.raises(ArgumentError, match=option):
            frequentist.icc(board, **{option: value})
