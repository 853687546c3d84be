"""The packaged board of repeated runs has the published margins, and the figures derived from them, to the last digit.

Source of the margins: arXiv 2606.00920v1, table of models (100 problems, 5 runs; GPT-4.1 detailed on 99): run-level
pass rate and perfect-stability rate (here: tasks solved in all runs) in %, average variance times 100. The variance
decomposition is that paper's: with s^2 over T - 1,

    mu_w = mean p (1 - p) R / (R - 1),   sigma_b^2 = s^2(p) - mu_w / R,
    ICC = sigma_b^2 / (sigma_b^2 + mu_w),   ceiling = 1 + mu_w / sigma_b^2,
    aleatoric share = (mu_w / R) / (sigma_b^2 + mu_w / R).

The derived figures were computed from the table independently of this package.
"""

import itertools

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from evalbayes import compare, datasets, fit, frequentist

RUNS = 5
COLUMNS = [(figure, prompt) for figure in ("rate", "stable", "variance") for prompt in ("detailed", "minimal")]
TABLE = """
GPT-4.1                | 59.6 | 59.2 | 47.5 | 49.0 | 4.36 | 4.08
GPT-4.1-mini           | 58.4 | 59.2 | 50.0 | 47.0 | 3.28 | 4.48
o4-mini                | 86.2 | 85.6 | 75.0 | 69.0 | 3.36 | 5.20
Claude Sonnet 4.5      | 52.8 | 51.4 | 43.0 | 47.0 | 3.36 | 1.68
Claude Haiku 4.5       | 41.2 | 40.8 | 35.0 | 34.0 | 2.40 | 2.00
Gemini 3.1 Pro         | 86.2 | 85.8 | 75.0 | 74.0 | 3.36 | 3.92
Gemini 3 Flash         | 80.8 | 83.2 | 67.0 | 70.0 | 5.28 | 4.40
Gemini 3.1 Flash-Lite  | 69.2 | 63.6 | 53.0 | 50.0 | 5.28 | 5.44
Gemini 2.5 Flash       | 53.8 | 48.2 | 36.0 | 33.0 | 7.04 | 5.84
Gemini 2.5 Flash+Think | 71.6 | 74.4 | 58.0 | 57.0 | 4.64 | 4.72
QwQ-Plus               | 72.8 | 72.6 | 59.0 | 58.0 | 4.80 | 4.72
Qwen-Plus              | 63.4 | 61.2 | 52.0 | 51.0 | 4.72 | 4.64
Qwen-Max               | 30.6 | 30.4 | 26.0 | 25.0 | 2.24 | 2.24
Qwen-Turbo             | 34.4 | 30.8 | 32.0 | 28.0 | 0.88 | 1.04
DeepSeek-R1            | 84.2 | 84.4 | 74.0 | 75.0 | 3.76 | 3.20
DeepSeek-V3.2          | 48.4 | 47.6 | 36.0 | 38.0 | 5.52 | 4.00
"""
LEFT_OUT = ("o4-mini", "Gemini 2.5 Flash+Think")
"""The two systems outside the published summary."""


def published() -> dict[str, dict[str, str]]:
    """Printed figures of each config."""
    margins: dict[str, dict[str, str]] = {}
    for line in TABLE.strip().splitlines():
        model, *row = (part.strip() for part in line.split("|"))
        for (figure, prompt), value in zip(COLUMNS, row, strict=True):
            margins.setdefault(f"{model} ({prompt})", {})[figure] = value
    return margins


@pytest.fixture(scope="module")
def board() -> xr.Dataset:
    return datasets.load("repeated_runs")


def solved(board: xr.Dataset, config: str) -> np.ndarray:
    """Runs that passed in each scored task."""
    cells = board.sel(config=config)
    return cells["successes"].values[cells["trials"].values > 0]


def components(board: xr.Dataset, config: str) -> dict[str, float]:
    """Variance between tasks and within them, and what follows from the two."""
    p = solved(board, config) / RUNS
    within = (p * (1 - p)).mean() * RUNS / (RUNS - 1)
    between = p.var(ddof=1) - within / RUNS
    return {
        "sigma_b^2": between,
        "mu_w": within,
        "icc": between / (between + within),
        "ceiling": 1 + within / between,
        "aleatoric": 100 * (within / RUNS) / (between + within / RUNS),
    }


def test_the_configs_are_those_of_the_table(board):
    assert board.config.values.tolist() == list(published())
    assert set(board.trials.values.ravel().tolist()) == {0, RUNS}
    sizes = {config: len(solved(board, config)) for config in published()}
    assert sizes == dict.fromkeys(sizes, 100) | {"GPT-4.1 (detailed)": 99}


@pytest.mark.parametrize("config", published())
def test_margins_are_the_published_ones(board, config):
    p = solved(board, config) / RUNS
    seen = {
        "rate": f"{100 * p.mean():.1f}",
        "stable": f"{100 * (p == 1).mean():.1f}",
        "variance": f"{100 * (p * (1 - p)).mean():.2f}",
    }
    print(f"{config}: board {seen}, published {published()[config]}")
    assert seen == published()[config]


def test_pass_all_k_at_five_runs_is_the_published_perfect_stability_rate(board):
    """All 32 configs; and pass@5 counts the tasks that any run solved."""
    found = frequentist.pass_all_k(board, k=RUNS, draws=100).estimate
    assert {str(c): f"{100 * found.sel(config=c).item():.1f}" for c in board.config.values} == {
        config: figures["stable"] for config, figures in published().items()
    }
    any_run = frequentist.pass_at_k(board, k=RUNS, draws=100).estimate
    assert any_run.values.tolist() == pytest.approx([(solved(board, c) > 0).mean() for c in published()], abs=1e-12)


@pytest.mark.parametrize(("divisor", "possible"), [(RUNS**2, 32), (RUNS * (RUNS - 1), 7)])
def test_the_printed_variance_is_without_the_factor_for_few_runs(divisor, possible):
    """The sum of k (5 - k) over tasks is an even whole number, since it is 4 or 6 for a mixed task.

    Over 25 N, the mean of p (1 - p), such a number is behind every printed figure; over 20 N, with the factor
    R / (R - 1), it is behind 7 of 32.
    """
    tasks = dict.fromkeys(published(), 100) | {"GPT-4.1 (detailed)": 99}
    found = [
        config
        for config, figures in published().items()
        if any(f"{100 * s / (divisor * tasks[config]):.2f}" == figures["variance"] for s in range(0, 600, 2))
    ]
    print(f"sum of k (5 - k) over {divisor} N: {len(found)} of 32 printed figures are possible")
    assert len(found) == possible


@pytest.mark.parametrize("config", published())
def test_histogram_is_the_likeliest_under_the_beta_binomial_with_its_moments(board, config):
    """By scipy's multinomial, over every histogram with the margins; the beta-binomial is matched by its moments."""
    k = solved(board, config)
    seen, tasks = tuple(np.bincount(k, minlength=6).tolist()), len(k)
    mean, variance = k.mean() / RUNS, (k / RUNS).var()
    # Var(k / R) = m (1 - m) (1 + (R - 1) rho) / R
    rho = (RUNS * variance / (mean * (1 - mean)) - 1) / (RUNS - 1)
    model = stats.betabinom(RUNS, mean * (1 / rho - 1), (1 - mean) * (1 / rho - 1))
    assert (model.mean() / RUNS, model.var() / RUNS**2) == (pytest.approx(mean), pytest.approx(variance))
    likelihood = {
        row: stats.multinomial.logpmf(row, tasks, model.pmf(np.arange(6)))
        for row in tables(tasks, int(k.sum()), seen[5], int((k * (5 - k)).sum()))
    }
    ordered = sorted(likelihood, key=likelihood.__getitem__, reverse=True)
    lead = likelihood[ordered[0]] - likelihood[ordered[1]]
    print(f"{config}: {seen}, the best of {len(ordered)} by {lead:.3f} in log likelihood")
    assert seen == ordered[0]
    assert lead > 0.02


def tables(tasks: int, passes: int, always: int, spread: int) -> list[tuple[int, ...]]:
    """Every (n_0, ..., n_5) with these margins: given n_2 and n_3, two linear equations for n_1 and n_4."""
    found = []
    for n2, n3 in itertools.product(range(spread // 6 + 1), repeat=2):
        n1, n4 = np.linalg.solve([[4, 4], [1, 4]], [spread - 6 * (n2 + n3), passes - 5 * always - 2 * n2 - 3 * n3])
        row = (round(float(n1)), n2, n3, round(float(n4)), always)
        row = (tasks - sum(row), *row)
        whole = np.allclose([n1, n4], [row[1], row[4]], atol=1e-6)
        if whole and min(row) >= 0:
            found.append(row)
    return found


@pytest.mark.parametrize(
    ("config", "between", "within", "icc", "ceiling"),
    [
        ("Gemini 3 Flash (detailed)", "0.0902", "0.0660", "0.577", "1.732"),
        ("Qwen-Turbo (detailed)", "0.2169", "0.0110", "0.952", "1.051"),
        ("Qwen-Plus (detailed)", "0.1749", "0.0590", "0.748", "1.337"),
        ("DeepSeek-V3.2 (minimal)", "0.2015", "0.0500", "0.801", "1.248"),
        ("o4-mini (minimal)", "0.0590", "0.0650", "0.476", "2.102"),
    ],
)
def test_variance_components(board, config, between, within, icc, ceiling):
    seen = components(board, config)
    printed = [f"{seen['sigma_b^2']:.4f}", f"{seen['mu_w']:.4f}", f"{seen['icc']:.3f}", f"{seen['ceiling']:.3f}"]
    print(f"{config}: sigma_b^2, mu_w, ICC, ceiling = {', '.join(printed)}")
    assert printed == [between, within, icc, ceiling]


QUANTITIES = {"sigma_b^2": "between_variance", "mu_w": "within_variance", "icc": "icc", "ceiling": "ceiling"}


def test_the_package_gives_every_config_its_components(board):
    """All 32 configs, against the printed margins alone, from which s^2 and the mean of p (1 - p) follow."""
    found = {name: getattr(frequentist, quantity)(board, draws=2) for name, quantity in QUANTITIES.items()}
    share = frequentist.aleatoric_share(board, runs=RUNS, draws=2)
    for config, figures in published().items():
        count = 99 if config == "GPT-4.1 (detailed)" else 100
        # The printed figures, as the whole numbers they stand for.
        passes = round(float(figures["rate"]) / 100 * RUNS * count)
        spread = round(float(figures["variance"]) / 100 * RUNS**2 * count)
        mean, within = passes / RUNS / count, spread / RUNS**2 / count * RUNS / (RUNS - 1)
        squares = (RUNS * passes - spread) / RUNS**2
        between = (squares - count * mean**2) / (count - 1) - within / RUNS
        expected = (between, within, between / (between + within), 1 + within / between)
        for name, value in zip(QUANTITIES, expected, strict=True):
            assert f"{found[name].estimate.sel(config=config).item():.4f}" == f"{value:.4f}"
        seen = components(board, config)["aleatoric"]
        assert 100 * share.estimate.sel(config=config).item() == pytest.approx(seen, rel=1e-12)


@pytest.fixture(scope="module")
def fitted(board) -> xr.DataTree:
    return fit(board, seed=1)


def test_bayesian_and_moment_answers_agree(board, fitted):
    """Posterior medians against moments: half the configs within 0.03 in ICC and 0.06 in ceiling; 9 in 10 agree."""
    for quantity, most in (("icc", 0.03), ("ceiling", 0.06)):
        both = compare(quantity, fitted, board)
        apart = abs(both.estimate.isel(method=0) - both.estimate.isel(method=1))
        agree = np.mean(["differ:" not in text for text in both.verdict.values])
        ratio = float(both.width_ratio.median())
        print(
            f"{quantity}: median {float(apart.median()):.3f} apart, at most {float(apart.max()):.3f} "
            f"({both.config.values[np.argmax(apart.values)]}); {agree:.0%} agree; widths {ratio:.2f}"
        )
        assert float(apart.median()) < most
        assert agree >= 0.9


def test_summary_over_the_clean_systems(board):
    models = [model for model in dict.fromkeys(board.model.values.tolist()) if model not in LEFT_OUT]
    assert len(models) == 14
    detailed = [components(board, f"{model} (detailed)") for model in models]
    minimal = [components(board, f"{model} (minimal)") for model in models]
    seen = {name: np.array([row[name] for row in detailed]) for name in detailed[0]}
    shift = np.abs(seen["ceiling"] - [row["ceiling"] for row in minimal])
    printed = {
        "ceiling": [f"{f(seen['ceiling']):.3f}" for f in (np.median, np.min, np.max)],
        "aleatoric share": [f"{f(seen['aleatoric']):.2f}" for f in (np.median, np.min, np.max)],
        "ICC": [f"{f(seen['icc']):.3f}" for f in (np.median, np.min, np.max)],
        "shift of the ceiling between prompts": [f"{f(shift):.3f}" for f in (np.median, np.max)],
    }
    print(printed)
    assert printed == {
        "ceiling": ["1.357", "1.051", "1.732"],
        "aleatoric share": ["6.67", "1.00", "12.77"],
        "ICC": ["0.737", "0.577", "0.952"],
        "shift of the ceiling between prompts": ["0.061", "0.133"],
    }
