"""Resampling by count weights equals building each resampled board and counting its pairs in a double loop."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from boards import counted
from evalbayes import pairs
from evalbayes.pairs.diagnostics import near_tie_rule
from evalbayes.pairs.panel import panel_of
from evalbayes.pairs.resample import Design, draw_means
from evalbayes.pairs.rules import discordance_rule

RNG = np.random.default_rng(11)
CONFIGS, TASKS, DRAWS = 7, 20, 40
BLOCKS, CLUSTERS = np.array([0, 0, 1, 2, 2, 2, 3]), np.repeat(np.arange(5), [2, 3, 4, 5, 6])
BOARD = counted(RNG.binomial(1, RNG.uniform(0.3, 0.7, (CONFIGS, 1)), (CONFIGS, TASKS)), 1)
REPEATED = counted(RNG.binomial(trials := RNG.integers(1, 4, (CONFIGS, TASKS)), 0.5), trials)
MARGIN = 0.1


def drawn_units(stream, size, groups):
    """The positions each draw holds, in the stream that `draw_means` states: whole groups where there are any."""
    rng = np.random.default_rng([3, stream])
    many = size if groups is None else groups.max() + 1
    for row in rng.integers(many, size=(DRAWS, many)):
        yield row if groups is None else np.concatenate([np.flatnonzero(groups == group) for group in row])


def value(name, p, q):
    if name == "discordance":
        return (p * (1 - q) + q * (1 - p)).mean()
    return float(abs(p.mean() - q.mean()) <= MARGIN + 1e-9)


def explicit(name, board, method, design):
    """Build every resampled board, and loop over its pairs."""
    rates = (board.successes / board.trials).values
    on_configs = method in ("config_bootstrap", "block_bootstrap", "joint_bootstrap")
    on_tasks = method in ("task_bootstrap", "cluster_bootstrap", "joint_bootstrap")
    configs = drawn_units(2, CONFIGS, design.blocks) if on_configs else [np.arange(CONFIGS)] * DRAWS
    tasks = drawn_units(0, TASKS, design.clusters) if on_tasks else [np.arange(TASKS)] * DRAWS
    v = np.ones(CONFIGS) if design.weights is None else design.weights
    if design.blocks is not None:
        v = 1 / np.bincount(design.blocks)[design.blocks]
    for chosen, kept in zip(configs, tasks, strict=True):
        total = weight = 0.0
        for i, j in combinations(chosen, 2):
            if i == j and design.copies == "out":
                continue
            if design.blocks is not None and design.blocks[i] == design.blocks[j]:
                continue
            tie = {"near_tie": 1.0, "discordance": 0.0}[name]
            total += v[i] * v[j] * (tie if i == j else value(name, rates[i][kept], rates[j][kept]))
            weight += v[i] * v[j]
        yield total / weight if weight else np.nan


CASES = {
    "configs": ("config_bootstrap", Design()),
    "configs, copies as ties": ("config_bootstrap", Design(copies="ties")),
    "configs, weighted": ("config_bootstrap", Design(weights=np.arange(1.0, 8))),
    "blocks": ("block_bootstrap", Design(blocks=BLOCKS)),
    "tasks": ("task_bootstrap", Design()),
    "tasks, weighted": ("task_bootstrap", Design(weights=np.arange(1.0, 8))),
    "tasks, between blocks": ("task_bootstrap", Design(blocks=BLOCKS)),
    "clusters": ("cluster_bootstrap", Design(clusters=CLUSTERS)),
    "joint": ("joint_bootstrap", Design()),
    "joint, copies as ties": ("joint_bootstrap", Design(copies="ties")),
    "joint of blocks and clusters": ("joint_bootstrap", Design(blocks=BLOCKS, clusters=CLUSTERS)),
}


@pytest.mark.parametrize("board", [BOARD, REPEATED], ids=["one run", "ragged runs"])
@pytest.mark.parametrize("name", ["near_tie", "discordance"])
@pytest.mark.parametrize("case", CASES)
def test_weights_equal_explicit_resamples(case, name, board):
    method, design = CASES[case]
    rule = near_tie_rule(board, MARGIN, "shared", None) if name == "near_tie" else discordance_rule(panel_of(board))
    found = draw_means(rule, method, design, draws=DRAWS, seed=3)
    np.testing.assert_allclose(found, list(explicit(name, board, method, design)), atol=1e-12)


def test_own_tasks_under_draws_against_a_loop():
    """Equal scores on tasks of one's own: exact in Fractions, and within the rounding of a draw."""
    trials = np.ones((4, 12), int)
    trials[0, :3] = trials[1, 9:] = 0
    board = counted(RNG.binomial(trials, 0.5), trials)
    rule = near_tie_rule(board, 0, "own", None)
    found = draw_means(rule, "task_bootstrap", Design(), draws=DRAWS, seed=3)
    rng = np.random.default_rng([3, 0])
    expected = []
    for kept in rng.integers(12, size=(DRAWS, 12)):
        k, n = (board[name].values[:, kept].sum(axis=1) for name in ("successes", "trials"))
        scores = [Fraction(int(a), int(b)) for a, b in zip(k, n, strict=True)]
        expected.append(np.mean([a == b for a, b in combinations(scores, 2)]))
    assert 0 < np.mean(expected) < 1
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_blocks_of_draws_do_not_change_the_numbers(monkeypatch):
    rule = near_tie_rule(BOARD, MARGIN, "shared", None)
    whole = draw_means(rule, "joint_bootstrap", Design(), draws=DRAWS, seed=3)
    monkeypatch.setattr("evalbayes.pairs.resample.BLOCK", 6 * TASKS)
    np.testing.assert_array_equal(draw_means(rule, "joint_bootstrap", Design(), draws=DRAWS, seed=3), whole)


def test_thinning_against_a_loop():
    found = pairs.thinning(REPEATED, draws=DRAWS, seed=3)
    p = (REPEATED.successes / REPEATED.trials).values
    rng = np.random.default_rng([3, 3])
    places = rng.random((DRAWS, TASKS)).argsort(axis=1).argsort(axis=1)
    reversed_, unresolved = [], []
    for row in places:
        kept = row < TASKS // 2
        signs = [
            np.sign(np.round(p[i].sum() - p[j].sum(), 9)) * np.sign(np.round(p[i][kept].sum() - p[j][kept].sum(), 9))
            for i, j in combinations(range(CONFIGS), 2)
        ]
        reversed_.append(np.mean(np.array(signs) < 0))
        unresolved.append(np.mean(np.array(signs) == 0))
    assert float(found.reversal) == pytest.approx(np.mean(reversed_), abs=1e-12)
    assert float(found.unresolved) == pytest.approx(np.mean(unresolved), abs=1e-12)
    np.testing.assert_allclose(found.reversal_interval, np.quantile(reversed_, [0.025, 0.975]), atol=1e-12)
    assert (found.panel_tasks, found.kept) == (TASKS, TASKS // 2)
    # The name of an answer's target is not that of a number.
    assert "tasks" not in found.coords
