"""A published board with repeated runs, each entry's score and +- as printed there.

Source: the Terminal-Bench 2 leaderboard. Its score is the mean of task means and its +- is
1.96 sqrt(sum p (1 - p) / (n - 1)) / T, so it holds the tasks fixed; the standard errors for new tasks, 4.1 to 4.3
points for these entries, were computed independently of this package.
"""

import pandas as pd
import pytest

from evalbayes import check, fit, frequentist, read
from evalbayes.frequentist import score
from evalbayes.outcomes import from_counts

PUBLISHED = {
    "factory_droid_gpt-5_2_at_openai": (64.9, 2.8),
    "junie_gemini-3-flash-preview_at_gemini": (64.3, 2.8),
    "factory_droid_claude-opus-4-5-20251101_at_anthropic": (63.1, 2.7),
    "codex_gpt-5_2_at_openai": (62.9, 3.0),
}


@pytest.fixture(scope="module")
def leaders(shared_data):
    table = pd.read_csv(shared_data / "terminal_bench_2_counts.csv.gz")
    solved, trials = (
        table.pivot_table(index="config", columns="task", values=name, fill_value=0).loc[list(PUBLISHED)].astype(int)
        for name in ("successes", "trials")
    )
    return from_counts(solved, trials, configs=list(solved.index), tasks=list(solved.columns))


def test_scores_and_fixed_task_errors_are_those_of_the_board(leaders):
    result = score(leaders, tasks="fixed")
    for config, (rate, half) in zip(leaders.config.values, PUBLISHED.values(), strict=True):
        entry = result.sel(config=config)
        assert 100 * entry.estimate.item() == pytest.approx(rate, abs=0.051)
        assert 196 * entry.se.item() == pytest.approx(half, abs=0.051)


def test_new_tasks_need_wider_errors(leaders):
    se = 100 * score(leaders, method="clustered_normal").se
    assert ((se > 4.05) & (se < 4.35)).all()


@pytest.fixture(scope="module")
def fitted(shared_data):
    return fit(read(shared_data / "terminal_bench_2_counts.csv.gz"), method="laplace")


def test_the_beta_binomial_fits_in_seconds(fitted):
    """83 x 89, 1 to 6 runs a cell: 173 parameters. The time is printed, not asserted: a machine may be busy."""
    seen = fitted.attrs
    print(
        f"by laplace: {seen['seconds']:.1f} s, k-hat {seen['k_hat']:.2f}, weight ESS {seen['weight_ess']:.0f} of "
        f"{seen['proposals']}, {seen['grid_nodes']} nodes, grid error {seen['grid_error']:.1e}"
    )
    assert seen["model"] == "crossed_beta_binomial"
    assert seen["weight_ess"] >= 1000
    assert check.sampler(fitted).passed.all()


def test_cells_depart_from_additivity_and_the_model_says_by_how_much(fitted):
    """The binomial's dispersion here is 2.19; under the beta-binomial it is 1, and the population fits."""
    print(f"dispersion {fitted.attrs['dispersion']:.2f}, mean gap {100 * fitted.attrs['mean_gap']:+.2f} points")
    assert fitted.attrs["dispersion"] == pytest.approx(1, abs=0.1)
    assert abs(fitted.attrs["mean_gap"]) < 0.005


def test_it_is_the_model_and_not_the_scaffold(shared_data):
    """Moments give the model nine tenths of the variance between configs; so does a fit (benchmarks/)."""
    board = read(str(shared_data / "terminal_bench_2_counts.csv.gz"))
    share = frequentist.variance_components(board, config_groups=("agent", "model"))["share"]
    print({name: round(share.sel(component=name).item(), 3) for name in ("model", "agent", "config")})
    assert share.sel(component="model").item() == pytest.approx(0.90, abs=0.03)
    assert share.sel(component="agent").item() < 0.1
