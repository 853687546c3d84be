"""Importance sampling from the Laplace proposal: its parts against scipy, its result against known posteriors."""

import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest
from scipy import integrate, stats

from evalbayes import fit, laplace, simulate
from evalbayes.density import compile_density, data_of, derivatives, hessian, third_derivatives
from evalbayes.errors import SamplingError
from evalbayes.expansion import expand


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
    expansion = expand(density, data, start)
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
    found = expand(density, data_of(density.model), np.concatenate([[0.5, 0.0], y]))
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


def counts(y: np.ndarray) -> pm.Model:
    """Poisson counts with a log-normal rate each: effects whose posterior is skewed, independent given the scale."""
    with pm.Model(coords={"cell": np.arange(y.size)}) as model:
        scale = pm.HalfNormal("scale", np.float64(1))
        effect = pm.Normal("effect", 0, scale, dims="cell")
        pm.Poisson("y", pm.math.exp(effect), observed=y, dims="cell")
    return model


def test_third_derivatives_are_good_to_the_fourth_order():
    """Of exp(a.x) along v with s = a.v: 6 (e^s - 1 - s) - 2 (s e^s - s) = s^2 (1 - s^2 / 12 + ...), Taylor says."""
    a, x, v = np.array([0.3, -0.2, 0.5]), np.array([0.1, 0.2, -0.3]), np.array([0.6, 0.1, 0.4])
    along = derivatives(lambda x, data: jnp.exp(x @ a))
    second = np.outer(a, a) * np.exp(a @ x)
    found = third_derivatives(along, x, second, np.stack([v, 0.1 * v]), {})
    for s, row in zip(np.array([1.0, 0.1]) * (a @ v), found, strict=True):
        exact = s**2 * a * np.exp(a @ x)
        np.testing.assert_allclose(row / exact - 1, -(s**2) / 12, rtol=0.2)


def test_effects_are_skewed_as_their_posterior_is():
    """Mean and skewness of each effect, at the expansion's own scale, against quadrature; a normal's would be 0."""
    y = np.array([0, 1, 2, 5, 9])
    density = compile_density(counts(y))
    data = data_of(density.model)
    found = expand(density, data, np.concatenate([[0.0], np.log(y + 0.5)]))
    scale = np.exp(found.x[0])
    grid = np.linspace(-8, 6, 14001)
    log_p = y[:, None] * grid - np.exp(grid) - grid**2 / (2 * scale**2)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    mean = p @ grid
    sd = np.sqrt(p @ grid**2 - mean**2)
    skewness = (p * (grid - mean[:, None]) ** 3).sum(axis=1) / sd**3
    e = found.x[1:]
    # The gradient of the normal prior is -e / scale^2; what skewness adds is in found.gradient.
    moved = e + (found.gradient - e / scale**2) / (np.diag(found.curvature) + scale**-2)
    print(
        "mean", np.c_[e, moved, mean].round(3).tolist(), "skewness", np.c_[found.skewness, skewness].round(3).tolist()
    )
    assert np.all(np.abs(moved - mean) < 0.15 * np.abs(e - mean))
    np.testing.assert_allclose(found.skewness, skewness, atol=0.08)
    assert np.all(skewness < -0.15)


def test_skewed_draws_have_the_skewness_and_the_density_they_say():
    """By quadrature over a standard normal z: mass 1 by change of variables, mean 0, skewness to second order."""

    def moment(f):
        return integrate.quad(lambda z: f(z) * stats.norm.pdf(z), -12, 12, limit=200)[0]

    def length(z):
        return np.sqrt(1 + z * z)

    assert pytest.approx(moment(length), abs=1e-4) == laplace.MEAN_LENGTH
    assert pytest.approx(3 * moment(lambda z: (z * z - 1) * length(z)), abs=1e-4) == laplace.SKEWNESS_OF_SHIFT
    skewness = np.array([0.2, -0.4, 0.0])
    z = np.repeat(np.linspace(-9, 9, 20001)[:, None], 3, axis=1)
    for one in range(3):
        column = z[:, [one]]
        u, log_q = laplace._skewed(column, stats.norm.logpdf(column[:, 0]), skewness[[one]])
        u, q = u[:, 0], np.exp(log_q)
        assert integrate.trapezoid(q, u) == pytest.approx(1.0, abs=1e-6)
        mean = integrate.trapezoid(u * q, u)
        sd = np.sqrt(integrate.trapezoid((u - mean) ** 2 * q, u))
        assert mean == pytest.approx(0.0, abs=1e-4)
        assert integrate.trapezoid((u - mean) ** 3 * q, u) / sd**3 == pytest.approx(skewness[one], abs=0.02)


def test_skewed_draws_waste_fewer_weights():
    """The same seed with the skewness taken out again: fewer effective draws."""
    density = compile_density(counts(np.tile([0, 1, 2, 5, 9], 8)))
    data = data_of(density.model)
    expansion = expand(density, data, np.zeros(41))
    shares = []
    for at in (expansion, expansion._replace(skewness=np.zeros(40))):
        found = laplace.sample(density, data, at, np.random.default_rng(1), target_ess=1000, progress=lambda _: None)
        shares.append(found.ess / len(found.x))
    print(f"effective draws a proposal: {shares[0]:.2f} skewed, {shares[1]:.2f} not")
    assert shares[0] > 1.2 * shares[1]


def test_a_flat_density_is_refused_in_words():
    with pm.Model() as model:
        pm.Flat("free")
        pm.Normal("effect", 0, 1, shape=3)
    density = compile_density(model)
    with pytest.raises(SamplingError, match=r"laplace: .*method='latent'"):
        expand(density, data_of(model), np.zeros(4))


def test_priors_too_wide_to_expand_under_are_an_error_of_the_sampler():
    """Not one of the linear algebra that met a number without end."""
    board = simulate.board(configs=4, tasks=12, runs=1, seed=1)
    with pytest.raises(SamplingError, match="laplace: the linear algebra broke down"):
        fit(board, "crossed", method="laplace", intercept=100.0, config_sd=100.0, task_sd=100.0)


def test_a_model_without_effects_is_expanded_too():
    """One config under the crossed model: hyperparameters alone, the task effects integrated out."""
    fitted = fit(simulate.board(configs=1, tasks=15, runs=2, seed=1), "crossed", method="laplace", draws=300)
    assert fitted.attrs["k_hat"] < 0.5
    assert "config_effect" not in fitted["posterior"]
