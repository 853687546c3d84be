"""Sums and variances of a pair rule against double loops over pairs, triples and disjoint pairs of pairs."""

import time
import tracemalloc
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from evalbayes import pairs
from evalbayes.pairs import sums as s
from evalbayes.pairs.diagnostics import of_sums
from evalbayes.pairs.variance import VARIANCES, dyadic, hoeffding, jackknife, pair_iid, weighted_dyadic, zetas

SCORES = st.lists(st.integers(0, 12), min_size=4, max_size=9)
MATRICES = st.integers(4, 7).flatmap(
    lambda m: st.lists(st.integers(-3, 5), min_size=m * (m - 1) // 2, max_size=m * (m - 1) // 2).map(
        lambda upper: filled(m, upper)
    )
)


def filled(m, upper):
    values = np.zeros((m, m), dtype=np.int64)
    values[np.triu_indices(m, 1)] = upper
    return values + values.T


def near(keys, limit):
    keys = np.asarray(keys)
    values = (np.abs(keys[:, None] - keys[None]) <= limit).astype(np.int64)
    np.fill_diagonal(values, 0)
    return values


@settings(max_examples=60, deadline=None)
@given(SCORES, st.integers(0, 6))
def test_sums_by_sorting_are_those_of_the_matrix(keys, limit):
    fast, slow = s.tied_sums(np.array(keys), limit), s.matrix_sums(near(keys, limit))
    assert (fast.total, fast.squares, fast.degrees.tolist()) == (slow.total, slow.squares, slow.degrees.tolist())
    loop = sum(abs(a - b) <= limit for a, b in combinations(keys, 2))
    assert fast.total == loop


@settings(max_examples=40, deadline=None)
@given(MATRICES)
def test_zetas_against_loops_over_triples_and_disjoint_pairs(h):
    """zeta_1: mean of h_ij h_ik less the mean of h_ij h_kl over four different configs; zeta_2 likewise."""
    m = range(len(h))
    one = [int(h[i, j] * h[i, k]) for i, j, k in permutations(m, 3)]
    none = [int(h[i, j] * h[k, n]) for i, j, k, n in permutations(m, 4)]
    both = [int(h[i, j]) ** 2 for i, j in permutations(m, 2)]
    apart = Fraction(sum(none), len(none))
    zeta_1, zeta_2 = Fraction(sum(one), len(one)) - apart, Fraction(sum(both), len(both)) - apart
    assert zetas(s.matrix_sums(h)) == (zeta_1, zeta_2)
    assert hoeffding(s.matrix_sums(h)) == 4 * zeta_1 / len(h)
    share, passed = of_sums(s.matrix_sums(h))
    first, second = 4 * (len(h) - 2) * zeta_1, 2 * zeta_2
    assert passed == (zeta_1 > 0 and first + second > 0 and first / (first + second) >= Fraction(1, 2))
    if first + second > 0:
        assert share == pytest.approx(float(first / (first + second)))


@settings(max_examples=40, deadline=None)
@given(MATRICES)
def test_dyadic_against_a_sum_over_pairs_of_dyads(h):
    """Every ordered pair of dyads that share a config, a dyad with itself included, in Fractions."""
    dyads = list(combinations(range(len(h)), 2))
    u = Fraction(sum(int(h[d]) for d in dyads), len(dyads))
    total = sum((h[d] - u) * (h[e] - u) for d in dyads for e in dyads if set(d) & set(e))
    assert dyadic(s.matrix_sums(h)) == Fraction(total, len(dyads) ** 2)


@settings(max_examples=40, deadline=None)
@given(MATRICES)
def test_jackknife_and_pair_iid_against_loops(h):
    m = len(h)
    left = []
    for out in range(m):
        rest = [d for d in combinations(range(m), 2) if out not in d]
        left.append(Fraction(sum(int(h[d]) for d in rest), len(rest)))
    centre = sum(left) / m
    assert jackknife(s.matrix_sums(h)) == Fraction(m - 1, m) * sum((u - centre) ** 2 for u in left)
    upper = h[np.triu_indices(m, 1)]
    assert float(pair_iid(s.matrix_sums(h))) == pytest.approx(np.var(upper, ddof=1) / len(upper), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(MATRICES, st.integers(0, 10**6))
def test_weighted_dyadic_against_a_sum_over_pairs_of_dyads(h, seed):
    w = np.random.default_rng(seed).uniform(0.1, 2, size=h.shape)
    w = w + w.T
    dyads = list(combinations(range(len(h)), 2))
    u = sum(w[d] * h[d] for d in dyads) / sum(w[d] for d in dyads)
    total = sum(w[d] * (h[d] - u) * w[e] * (h[e] - u) for d in dyads for e in dyads if set(d) & set(e))
    expected = (u, total / sum(w[d] for d in dyads) ** 2)
    np.testing.assert_allclose(weighted_dyadic(h, w), expected, atol=1e-12)
    plain = weighted_dyadic(h, np.ones(h.shape))
    np.testing.assert_allclose(plain, [float(s.mean(s.matrix_sums(h))), float(dyadic(s.matrix_sums(h)))], atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(SCORES, st.integers(0, 6), st.integers(0, 10**6))
def test_weighted_near_ties_against_a_double_loop(keys, limit, seed):
    rng = np.random.default_rng(seed)
    rows = np.stack([keys, rng.permutation(keys)])
    v = rng.integers(0, 4, size=rows.shape).astype(float)
    expected = [
        sum(w[i] * w[j] * (abs(row[i] - row[j]) <= limit) for i, j in combinations(range(len(row)), 2))
        for row, w in zip(rows.tolist(), v, strict=True)
    ]
    assert s.tied_weight(rows, np.array([limit, limit]), v).tolist() == expected


def test_fractions_and_floats_agree_with_integers():
    h = filled(5, [1, 0, 1, 1, 0, 0, 1, 1, 0, 1])
    thirds = np.array([[Fraction(int(x), 3) for x in row] for row in h], dtype=object)
    whole, third, real = s.matrix_sums(h), s.matrix_sums(thirds), s.matrix_sums(h / 3)
    assert s.mean(third) == s.mean(whole) / 3
    for variance in VARIANCES.values():
        assert variance(third) == variance(whole) / 9
        assert float(variance(real)) == pytest.approx(float(variance(third)), abs=1e-12)


def test_sums_too_large_for_64_bits_are_still_integers():
    h = filled(4, [10**10, 0, 10**10, 10**10, 0, 10**10])
    small = filled(4, [1, 0, 1, 1, 0, 1])
    assert hoeffding(s.matrix_sums(h)) == hoeffding(s.matrix_sums(small)) * 10**20


def test_four_variances_of_many_configs_are_quick_and_need_little_memory():
    """M = 20,000: O(M log M) work, so 100,000 take 5 to 6 times as long (tests/benchmarks/pairs_speed.py).

    Below 1,000 bytes a config; a matrix of pairs of single bytes would be 20,000.
    """
    rng = np.random.default_rng(0)
    names = [f"c{i:06}" for i in range(20_000)]
    scores = xr.DataArray(rng.binomial(500, rng.beta(2, 2, 20_000)), dims="config", coords={"config": names})
    pairs.near_tie(scores[:10], 0.05, configs="sampled", out_of=500)
    start = time.perf_counter()
    found = [pairs.near_tie(scores, 0.05, configs="sampled", method=method, out_of=500) for method in VARIANCES]
    taken = time.perf_counter() - start
    tracemalloc.start()
    pairs.near_tie(scores, 0.05, configs="sampled", out_of=500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"20,000 configs, four variances: {taken:.3f} s; {peak / 20_000:.0f} bytes a config")
    assert all(np.isfinite(answer.se) for answer in found)
    assert taken < 2
    assert peak / 20_000 < 1000
