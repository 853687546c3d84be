"""The pairs of the page: who is above whom, in whole percent, and which pairs are not resolved."""

import numpy as np
import pytest
import xarray as xr

from evalbayes import posterior
from evalbayes.report import wins


@pytest.fixture
def answer(small_fit) -> xr.Dataset:
    return posterior.win_probability(small_fit)


def test_every_pair_is_the_answer_and_marked_when_it_is_not_resolved(answer):
    for line in wins.lines(answer):
        for other, pair in zip(answer.opponent.values, line.pairs, strict=True):
            if other == line.name:
                assert (pair.text, pair.shade) == ("", "self")
                continue
            chance = float(answer.estimate.sel(config=line.name, opponent=other))
            assert pair.text.endswith("?") == (0.025 <= chance <= 0.975)
            assert pair.shade == f"{'w' if chance >= 0.5 else 'l'}{int(np.ceil(5 * abs(2 * chance - 1)))}"
            number = pair.text.rstrip("?")
            assert number == (">99" if chance > 0.99 else "<1" if chance < 0.01 else f"{100 * chance:.0f}")


def test_a_pair_that_nothing_compares_is_a_dash(answer):
    answer = answer.copy(deep=True)
    answer["estimate"][0, 1] = np.nan
    pair = wins.lines(answer)[0].pairs[1]
    assert (pair.text, pair.shade) == ("–", "none")
    assert "nothing compares them" in pair.said


def test_a_certain_pair_is_never_said_to_be_certain():
    assert [wins._whole(chance) for chance in (1.0, 0.995, 0.985, 0.004, 0.0)] == [">99", ">99", "98", "<1", "<1"]
