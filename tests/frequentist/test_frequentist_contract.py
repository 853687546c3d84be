"""Every frequentist answer keeps the schema, on every kind of board, for every target and method."""

import warnings

import numpy as np
import pytest

from boards import counted
from evalbayes import frequentist
from evalbayes.answer import IDENTITY, SCHEMA, check
from evalbayes.errors import NotIdentifiedError
from evalbayes.frequentist.score import METHODS
from evalbayes.frequentist.targets import BOOTSTRAPS, COVERS

DIMS = {
    "score": ("config",),
    "difference": ("config", "opponent"),
    "win_probability": ("config", "opponent"),
    "rank": ("config",),
    "top_k": ("config",),
}
EXTRA = {
    "score": {"coverage", "interval_kind"},
    "difference": {"shared_tasks"},
    "win_probability": {"tie", "shared_tasks"},
    "rank": {"mid_rank", "coverage"},
    "top_k": {"coverage"},
}
RNG = np.random.default_rng(0)


def random_board(trials):
    return counted(RNG.binomial(trials, 0.5), trials)


BOARDS = {
    "single runs": random_board(np.ones((4, 8), int)),
    "five runs": random_board(np.full((4, 8), 5)),
    "ragged": random_board(RNG.integers(1, 6, size=(4, 8))),
    "incomplete": random_board(RNG.integers(0, 4, size=(4, 8))),
    "one task": random_board(np.full((4, 1), 3)),
    "all pass, all fail": counted([[3], [0], [3], [1]], np.full((4, 8), 3)),
    "an empty config": random_board(np.array([[3], [3], [0], [2]]) + np.zeros((4, 8), int)),
    "large denominators": random_board(RNG.integers(1, 97, size=(4, 60))),
}


@pytest.mark.parametrize("tasks", ["sampled", "fixed"])
@pytest.mark.parametrize("method", [None, *COVERS])
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("quantity", DIMS)
def test_contract(quantity, board, method, tasks):
    function, outcomes = getattr(frequentist, quantity), BOARDS[board]
    offered = BOOTSTRAPS if quantity in ("rank", "top_k", "win_probability") else METHODS
    if (method is not None and method not in offered) or (quantity == "difference" and method == "pooled_wilson"):
        with pytest.raises(ValueError, match=f"method='{method}' is not one of"):
            function(outcomes, method=method, tasks=tasks)
        return
    if method is not None and tasks not in COVERS[method]:
        with pytest.raises(NotIdentifiedError, match=f"does not cover tasks='{tasks}'"):
            function(outcomes, method=method, tasks=tasks)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = function(outcomes, method=method, tasks=tasks, prob=0.9, draws=100)
    assert check(result).estimate.dims == DIMS[quantity]
    assert result.interval.dims == (*DIMS[quantity], "ci_bound")
    assert set(SCHEMA) | EXTRA[quantity] <= set(result.data_vars)
    assert result.sizes["config"] == 4
    for dim in DIMS[quantity]:
        assert result[dim].values.tolist() == outcomes.config.values.tolist()
    identity = {name: result[name].item() for name in IDENTITY}
    assert identity["quantity"] == quantity
    assert identity["tasks"] == tasks
    assert identity["configs"] == "fixed"
    assert identity["method"] in (method, *(COVERS if method is None else ()))
    assert tasks in COVERS[identity["method"]]
    assert identity["ci_prob"] == 0.9
    assert all(isinstance(text, str) for text in result.reason.values.ravel())


@pytest.mark.parametrize("quantity", DIMS)
def test_same_seed_same_numbers_and_another_seed_others(quantity):
    function, board = getattr(frequentist, quantity), BOARDS["five runs"]
    assert function(board, seed=1).identical(function(board, seed=1))
    assert not function(board, seed=1).se.equals(function(board, seed=2).se)


@pytest.mark.parametrize("quantity", DIMS)
def test_the_board_is_left_alone(quantity):
    board = BOARDS["ragged"].copy(deep=True)
    getattr(frequentist, quantity)(board, draws=50)
    assert board.identical(BOARDS["ragged"])
