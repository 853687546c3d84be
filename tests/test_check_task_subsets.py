"""Subsets of tasks: against all of them enumerated, and what cannot be asked."""

from itertools import combinations

import numpy as np
import pytest

from evalbayes import ArgumentError, NotIdentifiedError, OutcomesError, check, datasets, frequentist, simulate


def test_subsets_are_those_of_the_enumeration():
    """All 20 triples of six tasks occur among 2,000 draws, each with its own median: equal extremes, and the share.

    A given triple is missed with probability 1e-45. The share of subsets with a value is within 4 standard errors.
    """
    board = datasets.load("repeated_runs").isel(config=[0, 4, 9], task=slice(20, 26))
    medians = []
    for some in combinations(range(6), 3):
        icc = frequentist.icc(board.isel(task=list(some)), draws=50).estimate
        values = icc.values[~np.isnan(icc.values)]
        medians.append(np.median(values) if values.size else np.nan)
    found = check.task_subsets(board, size=3, quantity="icc", draws=2000)
    known = np.array(medians)[~np.isnan(medians)]
    assert float(found.least[0]) == pytest.approx(known.min(), abs=1e-12)
    assert float(found.most[0]) == pytest.approx(known.max(), abs=1e-12)
    share = len(known) / len(medians)
    assert abs(float(found.known[0]) - share) <= 4 * np.sqrt(share * (1 - share) / 2000)


def test_all_tasks_are_one_subset():
    board = datasets.load("repeated_runs")
    names = board.config.values[:5].tolist()
    found = check.task_subsets(board, size=[60, 100], pooled=names, draws=300)
    whole = float(frequentist.ceiling(board, pooled=names, draws=2).estimate)
    assert float(found.whole) == pytest.approx(whole)
    np.testing.assert_allclose([found[name][1] for name in ("least", "middle", "most")], whole)
    assert float(found.least[0]) < float(found.lower[0]) < whole < float(found.upper[0]) < float(found.most[0])
    print(f"median ceiling {whole:.2f}, on 60 of 100 tasks {float(found.lower[0]):.2f} to {float(found.upper[0]):.2f}")


def test_what_cannot_be_asked():
    board = simulate.board(3, 20, 2)
    with pytest.raises(ArgumentError, match="from 2 to 20"):
        check.task_subsets(board, size=21)
    with pytest.raises(ArgumentError, match="runs=None"):
        check.task_subsets(board, size=5, quantity="design_effect")
    with pytest.raises(OutcomesError, match="no-one"):
        check.task_subsets(board, size=5, pooled=["no-one"])
    with pytest.raises(NotIdentifiedError, match="one run"):
        check.task_subsets(simulate.board(3, 20, 1), size=5)
