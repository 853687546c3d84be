"""Published rules and figures of leaderboards.

Sources: the public review of a leaderboard change (swe-bench.github.io, pull request 60) for the test, the anchored
groups and the one-task gate; arXiv 2606.00920v1, its table of models, for printed triples; the 134 submissions to
SWE-bench Verified, 500 tasks of one run each, for how many groups there are.
"""

import time

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from test_repeated_runs import RUNS, published, tables

from boards import counted
from evalbayes.board import audit, impossible_triples, mcnemar_groups, mcnemar_p, sign_flip, standard_errors
from evalbayes.errors import NotIdentifiedError
from evalbayes.read import read


@pytest.fixture(scope="module")
def swebench(shared_data) -> xr.Dataset:
    return read(shared_data / "swebench_verified_134.csv.gz")


def test_the_published_p_value():
    board = counted(np.repeat([[1, 1, 0, 0], [1, 0, 1, 0]], [300, 29, 24, 147], axis=1), 1)
    p = mcnemar_groups(board).p[0, 1].item()
    print(f"29 against 24: {p:.6f}")
    assert f"{p:.6f}" == "0.583132"
    assert p == pytest.approx(stats.binomtest(29, 53).pvalue, rel=1e-12)


def test_the_standard_error_and_where_it_is_withheld():
    passes = [396, 0, 500]
    board = counted([[1] * k + [0] * (500 - k) for k in passes], 1)
    se = 100 * standard_errors(board).se.sel(kind="binomial")
    assert se[0].item() == pytest.approx(100 * np.sqrt(0.792 * 0.208 / 500), rel=1e-12)
    assert se[1:].isnull().all()
    with pytest.raises(NotIdentifiedError, match="empty"):
        standard_errors(counted([0, 0], 0))


def test_groups_of_the_134_submissions(swebench):
    """Every group against a sweep by scipy's binomial test, a pair at a time; well under a second for all pairs."""
    start = time.perf_counter()
    seen = mcnemar_groups(swebench)
    taken = time.perf_counter() - start
    k = dict(zip(swebench.config.values.tolist(), swebench.successes.values, strict=True))
    waiting, groups = sorted(k, key=lambda name: (-k[name].sum(), name)), []
    while waiting:
        head, rest = waiting[0], waiting[1:]
        pairs = [(int((k[head] > k[name]).sum()), int((k[head] < k[name]).sum())) for name in rest]
        joins = [b + c == 0 or stats.binomtest(b, b + c).pvalue > 0.05 for b, c in pairs]
        groups.append([head, *(name for name, join in zip(rest, joins, strict=True) if join)])
        waiting = [name for name, join in zip(rest, joins, strict=True) if not join]
    for number, members in enumerate(groups, 1):
        assert set(seen.config.values[seen.group.values == number]) == set(members)
    sizes = [len(members) for members in groups]
    print(
        f"{len(groups)} groups, the largest of {max(sizes)}, sizes {sizes}; {seen.attrs['pairs']} pairs, {taken:.2f} s"
    )
    assert (seen.attrs["groups"], seen.attrs["largest_group"], seen.attrs["pairs"]) == (19, 14, 8911)
    assert taken < 1
    for correction, right in (("holm", (10, 26)), ("fdr_bh", (17, 14))):
        other = mcnemar_groups(swebench, correction=correction)
        print(f"{correction}: {other.attrs['groups']} groups, the largest of {other.attrs['largest_group']}")
        assert (other.attrs["groups"], other.attrs["largest_group"]) == right


def test_sign_flips_of_the_leader_agree_with_mcnemar(swebench):
    """133 p-values over 9,999 draws: 5 standard errors at most, a chance of 8e-5 in all."""
    exact = mcnemar_groups(swebench)
    leader = exact.config.values[exact["rank"].values == 1][0]
    seen, right = sign_flip(swebench, reference=leader), exact.p.sel(opponent=leader)
    apart = abs(seen.p - right) / np.sqrt(right * (1 - right) / 9999 + 1e-8)
    print(f"{leader}: at most {float(apart.max()):.2f} standard errors apart over {seen.attrs['pairs']} entries")
    assert seen.attrs["pairs"] == 133
    assert float(apart.max()) < 5


def test_the_board_has_nothing_to_flag(swebench):
    """It publishes no rate; no two submissions have the same outcomes."""
    assert audit(swebench).sizes["finding"] == 0


def triples(tasks: int = 100, **known: int) -> xr.Dataset:
    figures = published()
    columns = [[row[name] for row in figures.values()] for name in ("rate", "stable", "variance")]
    sizes = [known.get(config, tasks) for config in figures]
    return impossible_triples(*columns, tasks=sizes, runs=RUNS, per=100)


def test_the_printed_triples_of_repeated_runs():
    """All 32 with the variance that lacks the factor R / (R - 1), and few with it, of the variance alone 7."""
    seen = triples(**{"GPT-4.1 (detailed)": 99})
    alone, together = (seen[name].sum("row").values.astype(int).tolist() for name in ("variance_possible", "possible"))
    print(f"of 32, by form {seen.form.values.tolist()}: variance alone {alone}, triples {together}")
    assert alone == [32, 7]
    assert together[0] == 32
    assert together[1] <= 7
    for i, (config, row) in enumerate(published().items()):
        count = 99 if config == "GPT-4.1 (detailed)" else 100
        passes, always = round(float(row["rate"]) / 100 * RUNS * count), round(float(row["stable"]) / 100 * count)
        for form, divisor in enumerate((RUNS**2, RUNS * (RUNS - 1))):
            sums = [s for s in range(600) if f"{100 * s / (divisor * count):.2f}" == row["variance"]]
            assert bool(seen.possible[i, form]) == any(tables(count, passes, always, s) for s in sums)


def test_one_printed_triple_is_impossible_with_100_tasks():
    """47.5% of tasks stable is none of 100: that config was scored on 99."""
    seen = triples()
    wrong = [config for config, one in zip(published(), seen.possible.values, strict=True) if not one.any()]
    print(f"impossible with 100 tasks: {wrong}")
    assert wrong == ["GPT-4.1 (detailed)"]
    assert seen.stable_possible.values.tolist().count(0) == 1


def test_four_objects_have_four_names():
    """Observed proportion, binomial SE, paired comparison, repeatability: no heading of one is that of another."""
    board = counted(np.tile([1, 0, 1], (2, 3)), 1)
    seen, paired = standard_errors(board), mcnemar_groups(board).attrs["object"]
    texts = [seen.attrs["observed"], seen.heading.sel(kind="binomial").item(), paired]
    texts.append(seen.heading.sel(kind="tasks_fixed").item())
    for text, start in zip(
        texts, ("observed proportion", "binomial SE", "paired comparison", "repeatability"), strict=True
    ):
        assert text.startswith(start)
    assert seen.se.sel(kind="tasks_fixed").isnull().all()


def test_two_sided_p_values_are_symmetric():
    assert mcnemar_p(24, 29) == mcnemar_p(29, 24)
