"""Answers side by side: only answers to one question, with their widths and a verdict in words."""

import sys
import types

import numpy as np
import pytest
import xarray as xr

import evalbayes
from evalbayes import frequentist
from evalbayes.answer import answer, check, unknown
from evalbayes.comparison import compare, side_by_side
from evalbayes.outcomes import from_matrix

LABELS = ["a", "b", "c"]


def made(
    centre, half, *, method, quantity="score", tasks="sampled", configs="fixed", prob=0.95, labels=LABELS, **extra
):
    estimate = xr.DataArray(np.asarray(centre, float), dims="config", coords={"config": labels})
    bounds = xr.concat([estimate - half, estimate + half], "ci_bound")
    identity = {"quantity": quantity, "tasks": tasks, "configs": configs, "method": method, "prob": prob}
    return answer(estimate, half / 2, bounds, **identity, **extra)


def test_width_ratio_and_verdict():
    bayesian = made([0.50, 0.50, 0.90], 0.1, method="laplace")
    both = side_by_side(bayesian, made([0.52, 0.60, 0.50], 0.08, method="two_level_bootstrap"))
    assert both.method.values.tolist() == ["laplace", "two_level_bootstrap"]
    assert both.estimate.dims == ("method", "config")
    assert both.width_ratio.values.tolist() == pytest.approx([1.25] * 3)
    words = [str(text).split(":")[0] for text in both.verdict.values]
    # The second bootstrap interval is (0.52, 0.68) and misses 0.50, though 0.60 is at the end of the other.
    assert words == ["agree", "differ", "differ"]
    assert both.verdict.values[0] == "agree: 0.500 and 0.520, the Bayesian interval 1.25 times as wide"
    assert both.attrs["summary"] == "1 of 3 entries agree; the Bayesian intervals are 1.25 times as wide (median)"
    check(both.isel(method=0).assign_coords(ci_kind="eti"))


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"quantity": "difference"}, "quantity is 'score' on one side and 'difference' on the other"),
        ({"tasks": "fixed"}, "tasks is 'sampled' on one side and 'fixed'"),
        ({"configs": "sampled"}, "configs is 'fixed' on one side and 'sampled'"),
        ({"prob": 0.9}, "ci_prob is 0.95 on one side and 0.9"),
        ({"scores": "latent"}, "scores is 'observed' on one side and 'latent'"),
    ],
)
def test_answers_to_different_questions_are_refused(other, named):
    mine = made([0.5] * 3, 0.1, method="laplace", scores="observed")
    with pytest.raises(ValueError, match=named):
        side_by_side(mine, made([0.5] * 3, 0.1, method="two_level_bootstrap", **{"scores": "observed", **other}))


@pytest.mark.parametrize("labels", [["a", "b", "d"], ["b", "a", "c"]])
def test_labels_must_match_exactly(labels):
    with pytest.raises(ValueError, match="exact"):
        side_by_side(made([0.5] * 3, 0.1, method="laplace"), made([0.5] * 3, 0.1, method="x", labels=labels))


def test_one_method_twice_is_refused():
    with pytest.raises(ValueError, match="both answers are by 'laplace'"):
        side_by_side(made([0.5] * 3, 0.1, method="laplace"), made([0.5] * 3, 0.1, method="laplace"))


def test_an_unknown_side_says_why_and_has_no_ratio():
    identity = {"quantity": "score", "tasks": "sampled", "configs": "fixed", "prob": 0.95}
    missing = unknown({"config": LABELS}, "one task", method="two_level_bootstrap", **identity)
    both = side_by_side(made([0.5] * 3, 0.1, method="laplace"), missing)
    assert np.isnan(both.width_ratio).all()
    assert set(both.verdict.values) == {"no frequentist interval: one task"}
    assert both.attrs["summary"] == "0 of 0 entries agree; 3 cannot be compared"
    neither = side_by_side(unknown({"config": LABELS}, "one run", method="laplace", **identity), missing)
    assert set(neither.verdict.values) == {"no interval on either side: one run"}


def test_simulated_probabilities_are_compared_by_their_distance():
    """Their intervals hold simulation error alone: a ratio of widths would compare numbers of draws."""
    bayesian = made([0.50, 0.30, 0.20], 0.001, method="laplace", quantity="top_k", k=1)
    both = side_by_side(bayesian, made([0.54, 0.36, 0.10], 0.01, method="two_level_bootstrap", quantity="top_k", k=1))
    assert np.isnan(both.width_ratio).all()
    assert [str(text).split(":")[0] for text in both.verdict.values] == ["agree", "differ", "differ"]
    assert both.k.item() == 1
    with pytest.raises(ValueError, match="k is 1 on one side and 2"):
        side_by_side(bayesian, made([0.5, 0.3, 0.2], 0.01, method="x", quantity="top_k", k=2))


def test_variables_and_coords_of_one_side_alone_are_left_out():
    mine = made([0.5] * 3, 0.1, method="laplace").assign(pareto_k=("config", [0.1] * 3))
    mine = mine.assign_coords(family=("config", ["x", "y", "y"]), khat=0.3)
    both = side_by_side(mine, made([0.5] * 3, 0.1, method="two_level_bootstrap"))
    assert set(both.data_vars) == {"estimate", "se", "interval", "reason", "width_ratio", "verdict"}
    assert "family" not in both.coords
    assert "khat" not in both.coords


@pytest.fixture
def stub_posterior(monkeypatch):
    """A posterior that answers as the bootstrap does, under another method's name, and records what it was asked."""
    asked = []

    def answering(name):
        def function(fit, *, tasks, configs, prob, **keyword):
            asked.append((name, fit, tasks, configs, prob, keyword))
            found = getattr(frequentist, name)(BOARD, tasks=tasks, configs=configs, prob=prob, seed=1, **keyword)
            return found.assign_coords(method="laplace")

        return function

    module = types.ModuleType("evalbayes.posterior")
    for name in ("score", "rank", "top_k", "difference"):
        setattr(module, name, answering(name))
    monkeypatch.setitem(sys.modules, "evalbayes.posterior", module)
    monkeypatch.setattr(evalbayes, "posterior", module, raising=False)
    return asked


BOARD = from_matrix(
    np.random.default_rng(0).integers(0, 2, size=(3, 30)), configs=LABELS, tasks=[f"t{i:02}" for i in range(30)]
)


@pytest.mark.parametrize(
    ("quantity", "keyword"), [("score", {}), ("rank", {}), ("top_k", {"k": 2}), ("difference", {"reference": "a"})]
)
def test_compare_asks_both_sides_the_same(stub_posterior, quantity, keyword):
    fit = xr.DataTree()
    both = compare(quantity, fit, BOARD, prob=0.9, seed=2, **keyword)
    assert stub_posterior == [(quantity, fit, "sampled", "fixed", 0.9, keyword)]
    assert both.method.values.tolist() == ["laplace", "two_level_bootstrap"]
    assert both.quantity.item() == quantity
    assert both.ci_prob.item() == 0.9
    ours = getattr(frequentist, quantity)(BOARD, prob=0.9, seed=2, **keyword)
    np.testing.assert_array_equal(both.estimate.isel(method=1), ours.estimate)


def test_compare_passes_the_method_on(stub_posterior):
    both = compare("score", xr.DataTree(), BOARD, method="clustered_normal")
    assert both.method.values.tolist() == ["laplace", "clustered_normal"]
    assert both.ci_kind.values.tolist() == ["eti", "wald"]


def test_compare_names_what_can_be_compared(stub_posterior):
    with pytest.raises(ValueError, match="no 'charm' on both sides; choose from difference, rank, score, top_k"):
        compare("charm", xr.DataTree(), BOARD)
    with pytest.raises(ValueError, match="no 'win_probability' on both sides"):
        compare("win_probability", xr.DataTree(), BOARD)
