"""Which configs a board lets one compare: components against transitive closure by loops, and what is said of them."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import boards
from evalbayes import NotIdentifiedError, cli, links, report
from evalbayes.choice import notes

cells = arrays(
    np.int64,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=7),
    elements=st.sampled_from([0, 0, 0, 0, 1, 3]),
)
APART = np.kron(np.eye(2, dtype=int), np.full((2, 3), 2))
"""c0 and c1 on the first three tasks, c2 and c3 on the other three, two runs each."""
CHAIN = np.array([[2, 2, 2, 0, 0, 0], [0, 0, 2, 2, 0, 0], [0, 0, 0, 2, 2, 2]])
"""c0 and c1 share a task, c1 and c2 share another, c0 and c2 none."""


def labelled(trials: np.ndarray) -> xr.DataArray:
    return boards.counted(np.zeros_like(trials), trials)["trials"]


def closure(trials: np.ndarray) -> list[list[bool]]:
    """Whether a chain of shared tasks leads from one config to another, by Warshall's loops."""
    m, tasks = trials.shape
    reach = [[any(trials[a, t] and trials[b, t] for t in range(tasks)) for b in range(m)] for a in range(m)]
    for c in range(m):
        for a in range(m):
            for b in range(m):
                reach[a][b] = reach[a][b] or (reach[a][c] and reach[c][b])
    return reach


@settings(max_examples=150, deadline=None)
@given(cells)
def test_components_are_the_transitive_closure_by_loops(trials):
    number, reach = links.components(labelled(trials)).values.tolist(), closure(trials)
    seen: list[int] = []
    for a, mine in enumerate(number):
        assert (mine == -1) == (not trials[a].any())
        if mine not in (-1, *seen):
            seen.append(mine)
        for b, other in enumerate(number):
            assert (mine == other and mine >= 0) == reach[a][b]
    assert seen == list(range(len(seen)))


@settings(max_examples=60, deadline=None)
@given(cells)
def test_pairs_by_loops(trials):
    named, reach = labelled(trials), closure(trials)
    shares, chained, why = (found(named) for found in (links.shares_task, links.unshared, links.why_apart))
    for found in (shares, chained, why):
        assert found.dims == ("config", "opponent")
        assert found["opponent"].values.tolist() == found["config"].values.tolist() == named["config"].values.tolist()
    for a, first in enumerate(trials):
        for b, second in enumerate(trials):
            common = any(x and y for x, y in zip(first, second, strict=True))
            assert bool(shares[a, b]) == common
            assert bool(chained[a, b]) == (reach[a][b] and not common)
            # A config without a run has a reason of its own.
            assert (why[a, b].item() != "") == bool(first.any() and second.any() and not reach[a][b])
            assert why[a, b].item() == why[b, a].item()
    assert (links.apart(named) != "") == bool((why != "").any())


def test_the_sentence_names_a_few_of_each_group():
    tasks = np.kron(np.eye(5, dtype=int)[[0, 0, 0, 0, 1, 2, 3, 4]], np.ones((1, 4), int))
    said = links.apart(labelled(tasks))
    assert said == (
        "no chain of shared tasks links c0, c1, c2 and 1 more (tasks t000, t001, t002 and 1 more) and "
        "c4 (tasks t004, t005, t006 and 1 more) and c5 (tasks t008, t009, t010 and 1 more) and 2 more such groups: "
        "only the prior that makes their tasks one population would compare them"
    )
    pair = links.why_apart(labelled(tasks)).sel(config="c7", opponent="c4").item()
    assert pair.startswith("no chain of shared tasks links c4 (tasks t004, t005, t006 and 1 more) and c7 (tasks t016,")
    assert "(task t001)" in links.apart(labelled(np.eye(2, dtype=int)))
    assert links.apart(labelled(CHAIN)) == ""


def test_the_order_of_dims_and_further_coords_change_nothing():
    trials = labelled(APART).assign_coords(agent=("config", list("wxyz")), size=("task", range(6)))
    for found in (links.components, links.shares_task, links.unshared, links.why_apart):
        xr.testing.assert_identical(found(trials), found(labelled(APART)))
        xr.testing.assert_identical(found(trials.transpose("task", "config")), found(labelled(APART)))


def test_a_question_about_all_configs_is_refused_in_one_line():
    with pytest.raises(NotIdentifiedError, match=r"^rank: no chain .* c0, c1 \(tasks .* and c2, c3 \(") as refused:
        links.refuse_apart("rank", labelled(APART))
    assert "\n" not in str(refused.value)
    links.refuse_apart("rank", labelled(CHAIN))
    links.refuse_apart("rank", labelled(np.array([[1, 1], [0, 0], [1, 0]])))


def test_a_fit_notes_what_is_not_linked():
    linked, apart, chain = (boards.counted(0 * trials, trials) for trials in (np.ones((3, 4), int), APART, CHAIN))
    assert notes(linked, xr.Dataset()) == ""
    assert notes(apart, xr.Dataset()) == links.apart(apart["trials"])
    assert notes(chain, xr.Dataset()) == "pairs of configs that share no task and only others link: 1"


@pytest.fixture(scope="module")
def wide():
    """Two groups of two configs on 20 tasks each: counts, and their board."""
    trials = np.kron(np.eye(2, dtype=int), np.full((2, 20), 3))
    return np.random.default_rng(2).binomial(trials, 0.5), trials


def test_the_page_of_two_groups_has_scores_and_no_ranks(fabricate, wide, tmp_path):
    fit = fabricate(*wide, weight_ess=500.0, why="made by hand")
    board = boards.counted(*wide).assign_coords(config=fit["posterior"].config, task=fit["posterior"].task)
    page = report(board, tmp_path / "page.html", fit=fit)
    text, held = page.read_text(), json.loads((tmp_path / "page.json").read_text())
    assert held["headline"] == [f"Entries are not ranked: {links.apart(board.trials)}."]
    for word in ("Ranked table", "Rank interval", "P(best)", "P(top", "Best first", "can be first"):
        assert word not in text
    assert held["headline"][0].partition(" (")[0] in text
    by_quantity = {answer["quantity"]: answer["values"] for answer in held["answers"]}
    assert all(value["estimate"] is not None for value in by_quantity["score"])
    for quantity in ("rank", "top_k"):
        assert all(value["estimate"] is None for value in by_quantity[quantity])
        assert {value["reason"] for value in by_quantity[quantity]} == {links.apart(board.trials)}


def log(path: Path, trials: np.ndarray) -> Path:
    lines = ["config,task,run,outcome"]
    for c, t in np.argwhere(trials > 0):
        lines += [f"c{c},t{t:03},{run},{(c + t + run) % 2}" for run in range(trials[c, t])]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compare", "c0", "c2", "two"), "compare: no chain of shared tasks links c0, c1 (tasks t000, t001, t002)"),
        (("compare", "c0", "c2", "chain"), "compare: c0 and c2: no shared task: only additivity links them"),
        (("gate", "first", "second"), "shares no task with its base"),
    ],
)
def test_the_command_line_refuses_before_it_fits(tmp_path, monkeypatch, capsys, words, said):
    """Exit 2 and one line; no fit is started, so that nothing is said of a model."""
    parts = {"two": APART, "chain": CHAIN, "first": APART[:1], "second": APART[2:3]}
    files = {name: str(log(tmp_path / f"{name}.csv", trials)) for name, trials in parts.items()}
    monkeypatch.setattr(sys, "argv", ["evalbayes", *(files.get(word, word) for word in words)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    seen = capsys.readouterr().err
    assert stop.value.code == 2
    assert seen.splitlines()[-1].startswith("evalbayes: ")
    assert said in seen.splitlines()[-1]
    assert "model" not in seen.partition("evalbayes: ")[0]
