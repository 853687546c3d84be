"""What a fit compares: pairs that share a task, those linked through others on an assumption, and no others."""

import numpy as np
import pytest

from evalbayes import NotIdentifiedError, design, posterior
from evalbayes.links import EXCHANGEABLE, NOT_SHARED

TARGETS = ({"tasks": "sampled"}, {"tasks": "fixed"}, {"population": "reweighted"})
APART = np.array([[2, 2, 2, 0, 0], [2, 2, 0, 0, 0], [0, 0, 0, 2, 2], [0, 0, 0, 0, 0]])
"""0 and 1 on tasks 0 to 2, 2 on tasks 3 and 4, and 3 without a run."""
CHAIN = np.array([[2, 2, 2, 0, 0], [0, 0, 2, 2, 0], [0, 0, 0, 2, 2]])
"""0 and 1 share a task, 1 and 2 another, 0 and 2 none."""
OF_A_DIFFERENCE = [(name, target) for name in ("between_variance", "icc") for target in TARGETS]
OF_A_DIFFERENCE += [("ceiling", {"tasks": "sampled"})]


@pytest.fixture(scope="module")
def apart(fabricate):
    return fabricate(APART // 2, APART)


@pytest.fixture(scope="module")
def chain(fabricate):
    return fabricate(CHAIN // 2, CHAIN)


@pytest.fixture(scope="module")
def exchangeable(chain):
    """The chain without task effects, as the beta-binomial model has it."""
    made = chain.copy()
    effects = ["task_effect", "task_sd", "task_weight", "task_mean", "task_scale"]
    made["posterior"] = made["posterior"].to_dataset().drop_vars(effects)
    return made


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("quantity", ["difference", "win_probability"])
@pytest.mark.parametrize("assume", [None, "no_interaction"])
def test_across_components_no_pair_is_compared_whatever_is_assumed(apart, quantity, target, assume):
    result = getattr(posterior, quantity)(apart, assume=assume, **target)
    known = np.eye(4, dtype=bool)
    known[0, 1] = known[1, 0] = True
    np.testing.assert_array_equal(result.estimate.notnull(), known)
    np.testing.assert_array_equal(result.interval.notnull().all("ci_bound"), known)
    assert (result.reason.values[known] == "").all()
    two = "links config-0, config-1 (tasks task-00, task-01, task-02) and config-2 (tasks task-03, task-04): only the"
    for pair in ((0, 2), (2, 0), (1, 2), (2, 1)):
        assert two in result.reason[pair].item()
    assert all(text.startswith("no scored run") for text in result.reason.values[3, :3])
    assert "assume" not in result.coords or target.get("tasks") == "fixed"


@pytest.mark.parametrize("quantity", ["rank", "top_k"])
@pytest.mark.parametrize("target", TARGETS)
def test_ranks_over_components_are_refused_and_name_them(apart, quantity, target):
    with pytest.raises(NotIdentifiedError, match=rf"^{quantity}: no chain .*config-0, config-1 .* and config-2 \("):
        getattr(posterior, quantity)(apart, **target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("quantity", ["difference", "win_probability"])
def test_a_pair_linked_through_others_is_compared_on_an_assumption(chain, quantity, target):
    plain, assumed = (getattr(posterior, quantity)(chain, assume=a, **target) for a in (None, "no_interaction"))
    known = np.ones((3, 3), bool)
    known[0, 2] = known[2, 0] = False
    np.testing.assert_array_equal(plain.estimate.notnull(), known)
    assert plain.reason[0, 2].item() == plain.reason[2, 0].item() == f"{NOT_SHARED}; give assume='no_interaction'"
    assert np.isfinite(assumed.estimate).all()
    assert (assumed.reason == "").all()
    assert assumed.coords["assume"].item() == "no_interaction"
    assert "assume" not in plain.coords
    np.testing.assert_array_equal(plain.estimate.values[known], assumed.estimate.values[known])
    if quantity == "win_probability":
        np.testing.assert_array_equal(plain.tie.notnull(), known)
    draws = chain["posterior"]["score"].values.reshape(-1, 3)
    by_hand = {"difference": (draws[:, 0] - draws[:, 2]).mean(), "win_probability": (draws[:, 0] > draws[:, 2]).mean()}
    if target == {"tasks": "sampled"}:
        assert float(assumed.estimate[0, 2]) == pytest.approx(by_hand[quantity], abs=1e-12)


def test_one_reference_is_a_column_of_all_pairs(apart, chain):
    for made in (apart, chain):
        one = posterior.difference(made, reference="config-2")
        column = posterior.difference(made).sel(opponent="config-2")
        assert one.reason.values.tolist() == column.reason.values.tolist()
        np.testing.assert_array_equal(one.interval, column.interval)


def test_a_linked_board_has_ranks_though_some_pairs_share_no_task(chain):
    for target in TARGETS:
        assert np.isfinite(posterior.rank(chain, **target).estimate).all()
        assert float(posterior.top_k(chain, k=2, **target).estimate.sum()) == pytest.approx(2)


def test_where_every_pair_shares_a_task_an_assumption_is_not_mentioned(fabricate):
    made = fabricate(np.ones((3, 4), int), 2)
    assert "assume" not in posterior.win_probability(made, assume="no_interaction").coords
    assert posterior.win_probability(made, assume="no_interaction", tasks="fixed").coords["assume"].item()


def test_without_task_effects_only_a_shared_task_links(exchangeable):
    """Its tasks are exchangeable: other configs' runs say nothing of how hard a pair's tasks are."""
    for assume in (None, "no_interaction"):
        for quantity in ("difference", "win_probability"):
            result = getattr(posterior, quantity)(exchangeable, assume=assume)
            assert result.reason[0, 2].item() == result.reason[2, 0].item() == EXCHANGEABLE
            assert int(result.estimate.isnull().sum()) == 2
            assert "assume" not in result.coords
    assert posterior.icc(exchangeable, reference="config-2").reason[0].item() == EXCHANGEABLE
    assert np.isfinite(posterior.rank(exchangeable).estimate).all()


def test_without_task_effects_components_are_refused_the_same_way(apart):
    made = apart.copy()
    made["posterior"] = made["posterior"].to_dataset().drop_vars(["task_effect", "task_weight"])
    with pytest.raises(NotIdentifiedError, match="no chain of shared tasks"):
        posterior.rank(made)
    assert posterior.difference(made).reason[0, 2].item().startswith("no chain of shared tasks")


@pytest.mark.parametrize(("quantity", "target"), OF_A_DIFFERENCE)
def test_variances_of_a_difference_need_a_shared_task(apart, chain, quantity, target):
    ask = getattr(posterior, quantity)
    result = ask(apart, reference="config-0", **target)
    assert np.isfinite(result.estimate[1])
    assert result.reason[2].item().startswith("no chain of shared tasks links config-0, config-1 (")
    assert result.reason[3].item().startswith("no scored run")
    result = ask(chain, reference="config-0", **target)
    assert np.isfinite(result.estimate[1])
    assert result.reason[2].item() == f"{NOT_SHARED}; run some tasks with both"
    assert np.isfinite(ask(chain, **target).estimate).all()


def test_a_plan_for_a_pair_that_nothing_links_is_none(apart):
    result = design.assurance(apart, reference="config-0", tasks=100, runs=2)
    assert np.isfinite(result.estimate[1])
    assert np.isnan(result.estimate[2])
    assert result.reason[2].item().startswith("no chain of shared tasks")
