"""The sign-flip test: brute force, McNemar's test, the exact distribution by convolution, and false alarms."""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from boards import counted, recorded
from evalbayes import simulate
from evalbayes.board import mcnemar_groups, sign_flip
from evalbayes.board.sign_flip import _tested
from evalbayes.errors import ArgumentError, NotIdentifiedError, OutcomesError
from evalbayes.schema import ABSENT


def rates(board, config):
    k, n = board.successes.values[config], board.trials.values[config]
    return np.where(n > 0, k / np.maximum(n, 1), np.nan)


def by_patterns(d):
    """Every sign pattern of every shared task, zeros among them, in exact fractions of 60."""
    whole = np.rint(60 * d[~np.isnan(d)]).astype(int)
    own = abs(whole.sum())
    return np.mean([abs(np.dot(signs, whole)) >= own for signs in itertools.product((-1, 1), repeat=len(whole))])


def by_convolution(d, scale):
    """The exact distribution of the sum of +-d, as whole numbers of 1 / scale."""
    whole = np.rint(scale * np.abs(d[~np.isnan(d)])).astype(int)
    mass = np.ones(1)
    for w in whole:
        mass = (np.pad(mass, (0, 2 * w)) + np.pad(mass, (2 * w, 0))) / 2
    sums = np.arange(len(mass)) - whole.sum()
    own = abs(int(np.rint(scale * np.nansum(d))))
    return mass[np.abs(sums) >= own].sum()


def test_exact_p_values_are_those_of_brute_force():
    board = simulate.board(4, 9, 4, seed=3, ragged=True, errors=0.15)
    seen = sign_flip(board)
    for a, b in itertools.permutations(range(4), 2):
        d = rates(board, a) - rates(board, b)
        one = seen.isel(config=a, opponent=b)
        assert one.p.item() == pytest.approx(by_patterns(d), rel=1e-12)
        assert one.difference.item() == pytest.approx(np.nanmean(d))
        assert one.se.item() == pytest.approx(stats.sem(d[~np.isnan(d)]))
        assert (one.shared, one.informative) == ((~np.isnan(d)).sum(), (np.nan_to_num(d) != 0).sum())
        assert bool(one.exact)
    assert seen.attrs["pairs"] == 6


def test_one_run_a_task_is_mcnemars_exact_test():
    board = simulate.board(6, 25, 1, seed=1, config_sd=2, missing=0.1)
    seen, right = sign_flip(board), mcnemar_groups(board)
    off = ~np.eye(6, dtype=bool)
    exact = seen.exact.values & off
    assert exact.sum() >= 10
    np.testing.assert_allclose(seen.p.values[exact], right.p.values[exact], rtol=1e-12)
    np.testing.assert_array_equal(seen.shared.values[off], right.shared.values[off])


def test_drawn_p_values_are_the_exact_ones_within_monte_carlo_error():
    """10 pairs with more informative tasks than can be gone through: five standard errors at most, a chance of 6e-6
    in all."""
    board = simulate.board(5, 60, 5, seed=4, config_sd=0.3)
    seen = sign_flip(board, draws=20_000)
    apart = []
    for a, b in itertools.combinations(range(5), 2):
        exact = by_convolution(rates(board, a) - rates(board, b), 5)
        one = seen.isel(config=a, opponent=b)
        assert not one.exact
        assert one.least_p == pytest.approx(1 / 20_001)
        apart.append(abs(one.p.item() - exact) / np.sqrt(exact * (1 - exact) / 20_000 + 1 / 20_000**2))
    print(f"at most {max(apart):.2f} standard errors from the exact p-value, over 10 pairs")
    assert max(apart) < 5


@pytest.mark.parametrize(("tasks", "runs"), [(10, 3), (40, 3), (40, 1)])
def test_false_alarms_where_neither_is_better(tasks, runs):
    """3,000 pairs of entries with one rate a task: at most the level, and 5 standard errors over it a chance of 3e-7.

    All pairs share their sign patterns, whose error is that of 9,999 draws.
    """
    rng = np.random.default_rng(tasks + runs)
    rate = special.expit(2 * rng.standard_normal((3000, 1, tasks)))
    means = (rng.binomial(runs, rate, size=(3000, 2, tasks)) / runs).reshape(6000, tasks)
    seen = _tested(means, np.arange(6000).reshape(3000, 2), draws=9999, seed=0)
    drawn = (seen["least_p"] == 1 / 10_000).mean()
    for level in (0.05, 0.01):
        alarms = (seen["p"] <= level).mean()
        print(f"{tasks} tasks x {runs} runs, {drawn:.0%} drawn: {alarms:.4f} at {level}")
        assert alarms <= level + 5 * np.sqrt(level * (1 - level) * (1 / 3000 + 1 / 9999))


def test_a_difference_is_found():
    rng = np.random.default_rng(0)
    rate = special.expit(2 * rng.standard_normal(80))
    board = counted([rng.binomial(5, rate), rng.binomial(5, 0.7 * rate)], 5)
    assert sign_flip(board).p[0, 1] < 0.001


def test_no_drawn_p_value_is_0():
    seen = sign_flip(counted([[1] * 40, [0] * 40], 1), draws=99)
    assert seen.p[0, 1] == seen.least_p[0, 1] == 0.01


def test_case_42_two_informative_tasks_of_twelve():
    """Differences of 1/15, 2/15 and ten zeros: mean 0.016667, SE 0.011962, and no p-value below 0.5."""
    seen = sign_flip(counted([[6, 4] + [0] * 10, [5, 2] + [0] * 10], 15)).isel(config=0, opponent=1)
    print(f"difference {seen.difference.item():.6f}, SE {seen.se.item():.6f}, p {seen.p.item()}")
    assert (f"{seen.difference.item():.6f}", f"{seen.se.item():.6f}") == ("0.016667", "0.011962")
    assert (seen.informative.item(), seen.p.item(), seen.least_p.item()) == (2, 0.5, 0.5)


def test_what_is_not_compared():
    states = np.array([[[1], [1], [ABSENT]], [[ABSENT], [ABSENT], [1]], [[1], [1], [1]]])
    seen = sign_flip(recorded(states))
    assert seen.reason.values.tolist() == [
        ["a config and itself", "no shared task", ""],
        ["no shared task", "a config and itself", ""],
        ["", "", "a config and itself"],
    ]
    assert seen.p.isnull().values.tolist() == (seen.reason != "").values.tolist()
    assert seen.difference.isnull().values.tolist() == (seen.reason != "").values.tolist()
    alike = seen.isel(config=0, opponent=2)
    assert (alike.p.item(), alike.difference.item(), alike.informative.item()) == (1, 0, 0)
    assert math.isnan(alike.se.item())


def test_order_and_reference_change_nothing():
    board = simulate.board(4, 40, 2, seed=2)
    seen = sign_flip(board, draws=500)
    other = sign_flip(board.isel(config=[2, 0, 3, 1], task=slice(None, None, -1)), draws=500)
    np.testing.assert_allclose(seen.p, other.p.sel(config=board.config.values, opponent=board.config.values))
    np.testing.assert_allclose(seen.difference, -seen.difference.values.T)
    one = sign_flip(board, reference=board.config.values[1], draws=500)
    np.testing.assert_allclose(one.p, seen.p[:, 1])
    np.testing.assert_allclose(one.difference, seen.difference[:, 1])
    assert one.attrs["reference"] == board.config.values[1]


def test_arguments_are_checked():
    board = counted([[1, 0], [0, 1]], 1)
    for wrong in ({"draws": 0}, {"seed": -1}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            sign_flip(board, **wrong)
    with pytest.raises(NotIdentifiedError, match="one config"):
        sign_flip(board.isel(config=[0]))
    with pytest.raises(OutcomesError, match="not on the board"):
        sign_flip(board, reference="c9")
