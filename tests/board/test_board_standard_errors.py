"""Standard errors of a leaderboard: right values from practice, statsmodels and loops, and none where one would lie."""

import numpy as np
import pytest
import statsmodels.api as sm
import xarray as xr

from boards import counted, recorded
from evalbayes import frequentist, simulate
from evalbayes.board import standard_errors
from evalbayes.board.standard_errors import BOUNDARY, SILENT
from evalbayes.errors import NotIdentifiedError, OutcomesError
from evalbayes.schema import ABSENT


def singles(passes: int, tasks: int) -> xr.Dataset:
    return counted([1] * passes + [0] * (tasks - passes), 1)


def of(seen: xr.Dataset, kind: str, config: int = 0) -> float:
    return float(seen["se"].sel(kind=kind)[config])


def with_clusters(board: xr.Dataset, labels: list[str]) -> xr.Dataset:
    return board.assign_coords(cluster=("task", np.array(labels, object)))


def test_case_29_three_standard_errors_for_three_targets():
    """Rows 1111, 1100 and 0000: 0.1443 answers neither question, and says what it takes for granted."""
    seen = standard_errors(recorded([[[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]]))
    found = {kind: round(of(seen, kind), 4) for kind in seen.kind.values}
    print(found)
    assert found == {"binomial": 0.1443, "tasks_sampled": 0.2887, "tasks_fixed": 0.0962}
    assert seen.runs.item() == 12
    assert len(set(seen.heading.values)) == len(set(seen.assumes.values)) == 3


@pytest.mark.parametrize(("passes", "right"), [(263, 0.020031), (14, 0.011926)])
def test_case_37_rates_that_were_published_with_a_standard_error_of_0(passes, right):
    """The right values are those of a sample of tasks, over n - 1; the binomial formula divides by n."""
    seen = standard_errors(singles(passes, 307))
    p = passes / 307
    print(f"{passes}/307: new tasks {of(seen, 'tasks_sampled'):.6f}, binomial {of(seen, 'binomial'):.6f}")
    assert f"{of(seen, 'tasks_sampled'):.6f}" == f"{right:.6f}"
    assert of(seen, "binomial") == pytest.approx(np.sqrt(p * (1 - p) / 307), rel=1e-12)


@pytest.mark.parametrize(("passes", "tasks"), [(0, 10), (10, 10), (0, 50), (1, 1)])
def test_case_33_none_at_0_and_100_percent(passes, tasks):
    seen = standard_errors(singles(passes, tasks))
    assert seen.observed.item() == passes / tasks
    assert seen.se.isnull().all()
    assert (seen.reason != "").all()
    assert seen.reason.sel(kind="binomial").item() == BOUNDARY


@pytest.mark.parametrize(("blank", "right", "count"), [("own", 0.2372, 6), ("one", 0.2165, 3)])
def test_case_34_blank_clusters(blank, right, count):
    board = with_clusters(counted([1, 1, 0, 0, 1, 0, 1, 0], 1), ["a", "a", "b", "b", "", "", "", ""])
    seen = standard_errors(board, clusters="cluster", blank=blank)
    print(f"blank={blank}: {of(seen, 'clusters_sampled'):.4f} over {seen.clusters.item()} clusters")
    assert (round(of(seen, "clusters_sampled"), 4), seen.clusters.item()) == (right, count)
    with pytest.raises(OutcomesError, match="no cluster"):
        standard_errors(board, clusters="cluster")


def test_case_34_one_cluster_or_one_task_is_not_0():
    board = counted([[1, 0, 1], [1, 0, 0]], [[1, 1, 1], [1, 0, 0]])
    seen = standard_errors(with_clusters(board, ["a"] * 3), clusters="cluster")
    assert seen.se.sel(kind="clusters_sampled").isnull().all()
    assert "one cluster" in seen.reason.sel(kind="clusters_sampled")[0].item()
    assert not np.isnan(of(seen, "clusters_fixed"))
    assert "one task" in seen.reason.sel(kind="clusters_fixed")[1].item()


def test_case_36_strata_fixed_or_sampled():
    """10 of 100 and 90 of 100: 0.0213 for these strata, 0.4 for strata like them, and 0.0354 for no strata."""
    board = with_clusters(counted([1] * 10 + [0] * 90 + [1] * 90 + [0] * 10, 1), ["easy"] * 100 + ["hard"] * 100)
    seen = standard_errors(board, clusters="cluster")
    found = {kind: round(of(seen, kind), 4) for kind in ("clusters_fixed", "binomial", "clusters_sampled")}
    print(found)
    assert found == {"clusters_fixed": 0.0213, "binomial": 0.0354, "clusters_sampled": 0.4}


def test_clusters_against_statsmodels_and_a_loop():
    """CR1 of a mean is that of a regression on a constant; the stratified one is a sum over clusters."""
    rng = np.random.default_rng(0)
    board = simulate.board(3, 60, 3, seed=2, errors=0.2)
    labels = rng.integers(7, size=60)
    seen = standard_errors(with_clusters(board, labels.astype(str).tolist()), clusters="cluster")
    for c in range(3):
        k, n = board.successes.values[c], board.trials.values[c]
        p, group = (k / np.maximum(n, 1))[n > 0], labels[n > 0]
        fitted = sm.OLS(p, np.ones(len(p))).fit(cov_type="cluster", cov_kwds={"groups": group, "df_correction": True})
        assert of(seen, "clusters_sampled", c) == pytest.approx(fitted.bse[0], rel=1e-10)
        strata = [p[group == g] for g in np.unique(group)]
        variance = sum((len(s) / len(p)) ** 2 * s.var(ddof=1) / len(s) for s in strata)
        assert of(seen, "clusters_fixed", c) == pytest.approx(np.sqrt(variance), rel=1e-10)
        assert seen.clusters[c] == len(strata)


def test_the_first_three_are_those_of_frequentist_score():
    board = simulate.board(4, 30, 3, seed=1, errors=0.1)
    seen = standard_errors(board)
    for kind, tasks, method in (
        ("binomial", "sampled", "pooled_wilson"),
        ("tasks_sampled", "sampled", "clustered_normal"),
        ("tasks_fixed", "fixed", "fixed_normal"),
    ):
        np.testing.assert_allclose(seen.se.sel(kind=kind), frequentist.score(board, tasks=tasks, method=method).se)
    assert (seen.reason == "").all()


def test_a_single_run_cannot_show_repeatability():
    seen = standard_errors(simulate.board(3, 30, 1, seed=1))
    assert seen.se.sel(kind="tasks_fixed").isnull().all()
    assert all("one run" in why for why in seen.reason.sel(kind="tasks_fixed").values)
    assert (seen.imputed == 0).all()
    assert seen.heading.sel(kind="tasks_fixed").item().startswith("repeatability")


def test_the_four_objects_have_names_of_their_own():
    seen = standard_errors(singles(2, 5))
    texts = [seen.attrs["observed"], seen.attrs["paired"], *seen.heading.values]
    starts = [text.split(":")[0] for text in texts]
    assert len(set(starts)) == len(starts)
    assert starts[:2] == ["observed proportion", "paired comparison on shared tasks"]
    assert "binomial SE (model-based)" in starts


def test_a_failed_gate_withholds_and_the_observed_proportion_stays():
    board = counted([[1] * 388 + [0] * 112, [1] * 396 + [0] * 104], 1)
    seen = standard_errors(board.assign(published=("config", [0.792, 0.792])))
    assert seen.gate.values.tolist() == ["failed", "passed"]
    assert seen.se[0].isnull().all()
    assert seen.reason[0, 0].item() == (
        "withheld: published 79.2% implies 396 of 500 tasks, the rows have 388 (77.6%, -1.6 points)"
    )
    assert seen.observed[0] == 0.776
    assert not np.isnan(of(seen, "binomial", 1))


def test_nothing_scored():
    with pytest.raises(NotIdentifiedError, match="empty sample"):
        standard_errors(counted([[0, 0]], 0))
    states = np.array([[[1], [0]], [[ABSENT], [ABSENT]]])
    seen = standard_errors(recorded(states).assign(published=("config", [np.nan, 0.5])))
    assert seen.gate.values.tolist() == ["no published rate", SILENT]
    assert seen.se[1].isnull().all()
    assert (seen.reason[1] == "no scored task").all()
