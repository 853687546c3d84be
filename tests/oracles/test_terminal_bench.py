"""A published board with repeated runs, each entry's score and +- as printed there.

Source: the Terminal-Bench 2 leaderboard. Its score is the mean of task means and its +- is
1.96 sqrt(sum p (1 - p) / (n - 1)) / T, so it holds the tasks fixed; the standard errors for new tasks, 4.1 to 4.3
points for these entries, were computed independently of this package.
"""

import pandas as pd
import pytest

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
