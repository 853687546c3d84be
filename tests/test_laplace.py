"""Importance sampling from the Laplace proposal: its parts against scipy, its result against known posteriors."""

import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest
from scipy import stats

from evalbayes import laplace
from evalbayes.density import compile_density, data_of, derivatives, hessian
from evalbayes.errors import SamplingError


def hierarchical(y: np.ndarray, noise: float = 1.0) -> pm.Model:
    """Eight schools, in short: effects with an unknown scale, each measured once with known noise."""
    with pm.Model(coords={"school": np.arange(y.size)}) as model:
        centre = pm.Normal("centre", 0, np.float64(5))
        scale = pm.HalfNormal("scale", np.float64(5))
        effect = pm.Normal("effect", 0, scale, dims="school")
        pm.Normal("y", centre + effect, np.float64(noise), observed=y, dims="school")
    return model


def exact_scale_and_centre(y: np.ndarray, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means and sds of (centre, scale), effects integrated out in closed form, by a two-way grid."""
    centre, scale = np.meshgrid(np.linspace(-12, 12, 801), np.linspace(1e-4, 25, 1201), indexing="ij")
    log_p = stats.norm(0, 5).logpdf(centre) + stats.halfnorm(0, 5).logpdf(scale)
    for value in y:
        log_p = log_p + stats.norm(centre, np.sqrt(noise**2 + scale**2)).logpdf(value)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    means = np.array([(p * centre).sum(), (p * scale).sum()])
    return means, np.sqrt(np.array([(p * centre**2).sum(), (p * scale**2).sum()]) - means**2)


@pytest.mark.parametrize("spread", [0.0, 0.3, 3.0])
def test_weighted_draws_of_a_hierarchy_match_the_closed_form(spread):
    """Also where the effects are all but equal and the joint mode runs to a scale of zero."""
    y = np.random.default_rng(4).normal(1.0, 1.0, 8) * 0.2 + spread * np.linspace(-1, 1, 8)
    density = compile_density(hierarchical(y))
    data = data_of(density.model)
    start = np.concatenate([[0.0, 0.0], y])
    expansion = laplace.expand(density, data, start)
    found = laplace.sample(density, data, expansion, np.random.default_rng(0), target_ess=4000, progress=lambda _: None)
    centre, scale = found.x[:, density.slices["centre"]][:, 0], np.exp(found.x[:, density.slices["scale_log__"]][:, 0])
    means, sds = exact_scale_and_centre(y)
    print(f"spread {spread}: k-hat {found.k_hat:.2f}, {found.ess:.0f} effective of {len(found.x)}")
    assert found.k_hat < 0.5
    for draws, mean, sd in zip((centre, scale), means, sds, strict=True):
        # Four standard errors of the weighted mean: a false alarm in 2,600 seeds for six comparisons.
        assert abs(found.weight @ draws - mean) < 4 * sd / np.sqrt(found.ess)


def test_the_expansion_point_is_where_laplaces_marginal_is_highest():
    """With normal likelihoods Laplace's marginal of (centre, log scale) is exact: compare with its own maximum."""
    y = np.linspace(-3, 3, 8)
    density = compile_density(hierarchical(y))
    found = laplace.expand(density, data_of(density.model), np.concatenate([[0.5, 0.0], y]))
    grid = np.linspace(-1, 2.5, 7001)
    log_p = stats.halfnorm(0, 5).logpdf(np.exp(grid)) + grid
    for value in y:
        log_p = log_p + stats.norm(0, np.sqrt(1 + np.exp(2 * grid))).logpdf(value)
    assert found.x[density.slices["centre"]][0] == pytest.approx(0.0, abs=1e-3)
    assert found.x[density.slices["scale_log__"]][0] == pytest.approx(grid[log_p.argmax()], abs=2e-2)


def test_hessian_is_that_of_finite_differences():
    y = np.linspace(-1, 2, 5)
    density = compile_density(hierarchical(y))
    data, x, step = data_of(density.model), np.linspace(-0.5, 0.5, 7), 1e-4
    numeric = np.empty((7, 7))
    for i, j in np.ndindex(7, 7):
        ei, ej = step * np.eye(7)[i], step * np.eye(7)[j]
        corners = [float(density.logp(jnp.asarray(x + s * ei + t * ej), data)) for s in (1, -1) for t in (1, -1)]
        numeric[i, j] = (corners[0] - corners[1] - corners[2] + corners[3]) / (4 * step**2)
    np.testing.assert_allclose(hessian(derivatives(density.logp), x, data), numeric, atol=1e-5)


def test_a_flat_density_is_refused_in_words():
    with pm.Model() as model:
        pm.Flat("free")
        pm.Normal("effect", 0, 1, shape=3)
    density = compile_density(model)
    with pytest.raises(SamplingError, match=r"laplace: .*method='latent'"):
        laplace.expand(density, data_of(model), np.zeros(4))
