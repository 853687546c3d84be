"""The packaged boards."""

import pytest

from evalbayes import OutcomesError, datasets, outcomes


@pytest.mark.parametrize("name", datasets.names())
def test_every_packaged_board_is_valid_and_says_where_it_is_from(name):
    board = datasets.load(name)
    assert outcomes.validate(board) is board
    assert board.attrs["provenance"]
    assert board.identical(datasets.load(name))


def test_the_simulated_board_is_the_size_it_says_and_has_repeats_and_both_outcomes():
    board = datasets.load("simulated")
    assert (board.sizes["config"], board.sizes["task"], board.sizes["run"]) == (12, 100, 5)
    scores = outcomes.observed_score(board)
    assert 0.05 < float(scores.min()) < float(scores.max()) < 0.95


def test_an_unknown_board_lists_those_there_are():
    with pytest.raises(OutcomesError, match="simulated"):
        datasets.load("imagined")
