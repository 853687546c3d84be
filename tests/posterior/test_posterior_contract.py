"""Both sides keep one contract: the same names, leading arguments, dims and labels, answers that can be compared."""

import inspect
import itertools

import numpy as np
import pytest

from evalbayes import NotIdentifiedError, OutcomesError, SamplingError, compare, frequentist, posterior
from evalbayes.answer import IDENTITY, SCHEMA, check
from evalbayes.comparison import side_by_side
from evalbayes.outcomes import from_counts

QUANTITIES = ("difference", "rank", "score", "top_k", "win_probability")
DIMS = dict.fromkeys(QUANTITIES, ("config",)) | {
    "difference": ("config", "opponent"),
    "win_probability": ("config", "opponent"),
}
MONTE_CARLO = ("top_k", "win_probability")
TRIALS = np.array([[3] * 8, [3] * 8, [0, 0, 2, 2, 3, 3, 3, 3], [2] * 8])
SUCCESSES = np.random.default_rng(0).binomial(TRIALS, [[0.8], [0.5], [0.6], [0.3]])


@pytest.fixture(scope="module")
def made(fabricate):
    return fabricate(SUCCESSES, TRIALS)


@pytest.fixture(scope="module")
def board(made):
    names = {"configs": made["posterior"].config.values.tolist(), "tasks": made["posterior"].task.values.tolist()}
    return from_counts(SUCCESSES, TRIALS, **names)


def test_both_sides_answer_the_same_quantities():
    assert sorted(posterior.__all__) == sorted(frequentist.__all__)
    # The rest, what repetition buys, has a contract test of its own.
    assert set(QUANTITIES) < set(posterior.__all__)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_leading_arguments_are_the_same(quantity):
    mine, theirs = (inspect.signature(getattr(side, quantity)).parameters for side in (posterior, frequentist))
    for name in ("tasks", "configs", "prob"):
        assert mine[name].default == theirs[name].default
        assert mine[name].kind is theirs[name].kind is inspect.Parameter.KEYWORD_ONLY
    shared = {"difference": ["reference"], "top_k": ["k"]}.get(quantity, [])
    assert all(mine[name].default == theirs[name].default for name in shared)


@pytest.mark.parametrize(
    ("quantity", "tasks", "prob"), [*itertools.product(QUANTITIES, ("sampled", "fixed"), (0.95, 0.5))]
)
def test_schema_dims_labels_and_identity_on_both_sides(made, board, quantity, tasks, prob):
    mine = getattr(posterior, quantity)(made, tasks=tasks, prob=prob)
    theirs = getattr(frequentist, quantity)(board, tasks=tasks, prob=prob, draws=200)
    for result in (mine, theirs):
        assert check(result).estimate.dims == DIMS[quantity]
        assert result.interval.dims == (*DIMS[quantity], "ci_bound")
        assert set(SCHEMA) <= set(result.data_vars)
        assert result.ci_bound.values.tolist() == ["lower", "upper"]
        for dim in DIMS[quantity]:
            assert result[dim].values.tolist() == board.config.values.tolist()
        assert [result[name].ndim for name in IDENTITY] == [0] * len(IDENTITY)
        told = {name: result[name].item() for name in ("quantity", "tasks", "configs", "ci_prob")}
        assert told == {"quantity": quantity, "tasks": tasks, "configs": "fixed", "ci_prob": prob}
        assert all(isinstance(text, str) for text in result.reason.values.ravel())
    assert mine.method.item() == "laplace"
    assert mine.ci_kind.item() == ("monte_carlo" if quantity in MONTE_CARLO else "eti")
    if quantity not in MONTE_CARLO:
        assert mine.interval_mcse.dims == mine.interval.dims
        assert (mine.interval_mcse >= 0).all()


@pytest.mark.parametrize("tasks", ["sampled", "fixed"])
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_compare_sets_every_quantity_side_by_side(made, board, quantity, tasks):
    both = compare(quantity, made, board, tasks=tasks)
    assert both.estimate.dims == ("method", *DIMS[quantity])
    assert both.method.values.tolist()[0] == "laplace"
    assert (both.verdict != "").all()
    np.testing.assert_array_equal(both.estimate[0], getattr(posterior, quantity)(made, tasks=tasks).estimate)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_answers_for_different_targets_are_not_compared(made, board, quantity):
    mine = getattr(posterior, quantity)(made, tasks="fixed")
    theirs = getattr(frequentist, quantity)(board, tasks="sampled", draws=100)
    with pytest.raises(ValueError, match="tasks is 'fixed' on one side and 'sampled' on the other"):
        side_by_side(mine, theirs)


def test_top_k_of_different_k_are_not_compared(made, board):
    with pytest.raises(ValueError, match="k is 2 on one side and 1"):
        side_by_side(posterior.top_k(made, k=2), frequentist.top_k(board, k=1, draws=100))


def test_compare_asks_the_posterior_alone_what_only_it_knows(fabricate, board):
    """A failed population still compares under reweighting, and single runs on the model's word."""
    failed = fabricate(SUCCESSES, TRIALS, gate="failed", mean_gap=-0.05, mean_gap_se=2.0, worst_gap=-0.1)
    with pytest.raises(SamplingError):
        compare("score", failed, board)
    both = compare("score", failed, board, population="reweighted")
    assert both.method.values.tolist() == ["laplace_reweighted", "two_level_bootstrap"]
    assert compare("rank", failed, board, tasks="fixed", assume="no_interaction").sizes["method"] == 2


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_same_fit_same_answer_and_the_fit_is_left_alone(made, quantity):
    before = made.copy(deep=True)
    for target in ({"tasks": "fixed"}, {"tasks": "sampled"}, {"population": "reweighted"}):
        first, second = (getattr(posterior, quantity)(made, **target) for _ in range(2))
        assert first.identical(second)
    assert made.identical(before)


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"tasks": "new"}, "tasks='new': choose one of 'fixed', 'sampled'"),
        ({"configs": "new"}, "configs='new'"),
        ({"population": "bootstrap"}, "population='bootstrap'"),
        ({"assume": "additive"}, "assume='additive'"),
        ({"prob": 95}, "prob=95"),
        ({"prob": 0}, "prob=0"),
    ],
)
def test_words_and_levels_that_do_not_exist(made, quantity, wrong, named):
    with pytest.raises(ValueError, match=named):
        getattr(posterior, quantity)(made, **wrong)


def test_questions_without_an_answer(made, fabricate):
    for quantity in ("difference", "rank", "top_k", "win_probability"):
        with pytest.raises(NotIdentifiedError, match="an entry that is not on the board"):
            getattr(posterior, quantity)(made, configs="sampled")
        with pytest.raises(NotIdentifiedError, match=f"{quantity}: the board has one config"):
            getattr(posterior, quantity)(fabricate([[1, 1]], 2))
    with pytest.raises(NotIdentifiedError, match="tasks='fixed' is not offered"):
        posterior.score(made, configs="sampled", tasks="fixed")
    with pytest.raises(OutcomesError, match="config 'nobody' is not on the board"):
        posterior.difference(made, reference="nobody")
    for k in (0, 5):
        with pytest.raises(ValueError, match=f"k={k}; the board has 4 configs"):
            posterior.top_k(made, k=k)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_a_boards_own_coords_do_not_reach_into_an_answer(made, quantity):
    """A coord of the board may have any name, that of an answer's identity or dims included."""
    named = made.copy(deep=True)
    labels = ("config", list("wxyz"))
    extra = dict.fromkeys(("method", "tasks", "k", "opponent", "draw", "family", "ci_kind"), labels)
    for group in ("observed_data", "constant_data"):
        named[group] = named[group].to_dataset().assign_coords(extra)
    for tasks in ("sampled", "fixed"):
        plain = getattr(posterior, quantity)(made, tasks=tasks)
        assert getattr(posterior, quantity)(named, tasks=tasks).identical(plain)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_chains_and_their_order_are_no_part_of_an_answer(made, fabricate, quantity):
    one = fabricate(SUCCESSES, TRIALS)
    reversed_chains = one["posterior"].to_dataset().isel(chain=[1, 0])
    one["posterior"] = reversed_chains.assign_coords(chain=[0, 1]).transpose("config", "draw", ...)
    for tasks in ("sampled", "fixed"):
        mine, other = (getattr(posterior, quantity)(fit, tasks=tasks) for fit in (made, one))
        # The same numbers summed in another order.
        np.testing.assert_allclose(mine.estimate, other.estimate, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(mine.interval, other.interval, rtol=1e-12, atol=1e-14)
