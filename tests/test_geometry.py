"""The coordinates NUTS moves in: the density carried over exactly, and near a standard normal where it counts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from evalbayes import geometry, simulate
from evalbayes.choice import chosen
from evalbayes.density import compile_density, data_of, over_draws
from evalbayes.marginal import settle
from evalbayes.models.beta_binomial import beta_binomial

BOARDS = {
    "repeats": simulate.board(5, 20, 3, seed=1, kappa=4.0),
    "once": simulate.board(5, 30, 1, seed=2),
    "one config": simulate.board(1, 30, 4, seed=3, kappa=2.0),
}


@pytest.fixture(scope="module", params=BOARDS)
def carried(request):
    board = BOARDS[request.param]
    _, function, _ = chosen(board, None)
    settled = settle(board, function, {}, lambda _: None)
    latent = compile_density(function(board))
    data = data_of(latent.model)
    return latent, data, jax.tree.map(jnp.asarray, geometry.coordinates(settled, latent, data))


def places(carried, w: np.ndarray) -> np.ndarray:
    latent, data, at = carried
    return over_draws(geometry.positions(latent), (w,), (at, data))


def test_the_origin_is_the_mode(carried):
    latent, _, at = carried
    np.testing.assert_allclose(places(carried, np.zeros((1, latent.size)))[0], at.x, atol=1e-10)


def test_the_density_is_carried_over_with_its_jacobian(carried):
    """log p(w) - log p(x(w)) is log |dx/dw| up to one constant, by the determinant of finite differences."""
    latent, data, at = carried
    value = geometry.value_and_gradient(latent)
    rng = np.random.default_rng(0)
    constants = []
    for w in rng.standard_normal((3, latent.size)):
        step = 1e-5
        moved = places(carried, np.vstack([w + step * np.eye(latent.size), w - step * np.eye(latent.size)]))
        jacobian = (moved[: latent.size] - moved[latent.size :]) / (2 * step)
        x = places(carried, w[None])[0]
        log_p = float(latent.logp(x, data)) + np.linalg.slogdet(jacobian)[1]
        constants.append(float(value(w, at, data)[0]) - log_p)
    print(f"the constant varies by {np.ptp(constants):.1e} over three points")
    np.testing.assert_allclose(constants, constants[0], atol=1e-5)


def test_gradients_are_those_of_the_value(carried):
    latent, data, at = carried
    value = geometry.value_and_gradient(latent)
    w = np.random.default_rng(1).standard_normal(latent.size)
    _, gradient = value(w, at, data)
    for i in range(0, latent.size, 7):
        shift = 1e-5 * np.eye(latent.size)[i]
        numeric = (float(value(w + shift, at, data)[0]) - float(value(w - shift, at, data)[0])) / 2e-5
        assert float(gradient[i]) == pytest.approx(numeric, abs=1e-5 * max(1, abs(numeric)))


def test_near_the_mode_it_is_near_a_standard_normal(carried):
    """The even part of the log density falls like -|w|^2/2 at the origin: slope within twofold, correlation above .8.

    This is what makes 200 steps of tuning enough; were a block of the map wrong, the slope would be off by orders. (The
    odd part is the skewness of the posterior: task effects stand at their means, not at their modes.)
    """
    latent, data, at = carried
    value = geometry.value_and_gradient(latent)
    w = np.random.default_rng(2).standard_normal((200, latent.size)) * np.linspace(0.1, 0.5, 200)[:, None]
    even = [float(value(one, at, data)[0] + value(-one, at, data)[0]) / 2 for one in w]
    fit = stats.linregress(-0.5 * (w**2).sum(axis=1), even)
    print(f"slope {fit.slope:.2f}, correlation {fit.rvalue:.3f}")
    assert fit.rvalue > 0.8
    assert 0.5 < fit.slope < 2


def test_a_model_without_task_effects_needs_no_grid():
    board = BOARDS["one config"]
    settled = settle(board, beta_binomial, {}, lambda _: None)
    assert settled.seen is None
    assert "task_effect" not in settled.density.slices
