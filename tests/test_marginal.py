"""A settled model: compiled once for boards of one shape, on a grid that passes at the mode and is refined if not."""

from types import SimpleNamespace

import numpy as np
import pytest

from evalbayes import nodes, simulate
from evalbayes.choice import chosen
from evalbayes.density import data_of
from evalbayes.expansion import LEAST_PRECISION, _precisions, compiled
from evalbayes.marginal import compiled_once, has_grid, on_grid, settle
from evalbayes.models.crossed_beta_binomial import crossed_beta_binomial

QUIET = str.__len__


def board(seed=1, runs=3):
    return simulate.board(4, 12, runs, seed=seed, kappa=3.0)


def test_boards_of_one_shape_share_a_compiled_density_and_others_do_not():
    """Case 73: a second board costs its numbers, not a compilation; and keeps its own names."""
    made = [compiled_once(crossed_beta_binomial, crossed_beta_binomial(b, marginal=True), {}, marginal=True)
            for b in (board(1), board(2), board(1, runs=4))]  # fmt: skip
    assert made[0] is made[1]
    assert made[2] is not made[0]
    first, second = (settle(b, crossed_beta_binomial, {}, QUIET) for b in (board(1), _renamed(board(2))))
    assert second.density is first.density
    assert next(iter(second.model.coords["config"])) == "other config-1"
    assert not np.allclose(first.expansion.x, second.expansion.x)


def _renamed(outcomes):
    return outcomes.assign_coords(config=[f"other {name}" for name in outcomes.config.values])


def test_progress_says_what_it_is_doing():
    said = []
    settle(board(), crossed_beta_binomial, {}, said.append)
    assert said[0] == "building the marginal model"
    assert said[1].startswith("finding the mode: 15 parameters, 129 nodes (compiling first)")


def test_a_coarse_grid_is_refined_until_it_passes(monkeypatch):
    monkeypatch.setattr(nodes, "first_nodes", lambda *_, **__: np.linspace(-8, 8, 13))
    settled = settle(board(), crossed_beta_binomial, {}, QUIET)
    assert settled.seen is not None
    assert settled.seen.passed()
    assert settled.data["node_position"].size > 100


def test_a_grid_that_fails_at_the_draws_is_mended():
    settled = settle(board(), crossed_beta_binomial, {}, QUIET)
    wide = settled.seen._replace(end_mass=1e-3)
    again = on_grid(settled._replace(seen=wide), nodes.refined)
    assert again.data["node_position"][-1] > settled.data["node_position"][-1]


@pytest.mark.parametrize(("configs", "grid"), [(1, False), (3, True)])
def test_a_model_without_task_effects_has_no_grid(configs, grid):
    one = simulate.board(configs, 12, 3, seed=4)
    _, function, _ = chosen(one, None)
    settled = settle(one, function, {}, QUIET)
    assert has_grid(settled.density) is grid
    assert (settled.seen is not None) is grid


def test_the_priors_precision_is_taken_for_the_diagonal_that_it_is():
    """Independent effects save a Hessian a draw; the full one is what it is compared with."""
    density = settle(board(), crossed_beta_binomial, {}, QUIET).density
    split = compiled(density).split
    assert split.independent
    h, e = np.linspace(-0.5, 0.7, split.hyper.size), np.linspace(-1, 1, split.effect.size)
    quick = np.asarray(split.prior_precision(h, e, data_of(density.model)))
    split.independent = False
    full = np.asarray(split.prior_precision(h, e, data_of(density.model)))
    split.independent = True
    np.testing.assert_allclose(quick, full, atol=1e-12 * np.abs(full).max())


def test_hyperparameters_that_the_approximation_bends_the_wrong_way_get_a_precision():
    """The Schur complement of what is returned is what is returned with it; nothing changes where all is well."""
    rng = np.random.default_rng(0)
    split = SimpleNamespace(hyper=np.array([0, 3]), effect=np.array([1, 2, 4]))
    root = rng.normal(size=(5, 5))
    well = -(root @ root.T + 0.5 * np.eye(5))
    precision, joint = _precisions(well, split)
    np.testing.assert_array_equal(joint, -well)
    np.testing.assert_allclose(np.linalg.inv(precision), np.linalg.inv(joint)[np.ix_(split.hyper, split.hyper)])
    bent = well.copy()
    bent[3, 3] += 30.0
    precision, joint = _precisions(bent, split)
    assert np.linalg.eigvalsh(precision)[0] == pytest.approx(LEAST_PRECISION)
    np.testing.assert_allclose(np.linalg.inv(precision), np.linalg.inv(joint)[np.ix_(split.hyper, split.hyper)])
    assert np.linalg.eigvalsh(joint)[0] > 0
