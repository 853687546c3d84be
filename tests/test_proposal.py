"""Mixtures of t densities against scipy, and their fit by EM against draws from known ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalbayes import proposal


@given(
    weights=st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(lambda w: sum(w) > 1e-3),
    count=st.integers(1, 200),
    seed=st.integers(0, 99),
)
def test_systematic_resampling_takes_floor_or_ceil_of_each_share(weights, count, seed):
    weight = np.array(weights) / sum(weights)
    taken = np.bincount(proposal.resample(weight, count, np.random.default_rng(seed)), minlength=weight.size)
    assert taken.sum() == count
    assert (taken >= np.floor(count * weight - 1e-9)).all()
    assert (taken <= np.ceil(count * weight + 1e-9)).all()


def mixture(rng: np.random.Generator, components: int, d: int = 3) -> proposal.Mixture:
    roots = np.tril(rng.normal(size=(components, d, d))) + 3 * np.eye(d)
    return proposal.Mixture(rng.dirichlet(np.ones(components)), rng.normal(size=(components, d)), roots)


def density_by_scipy(at: np.ndarray, one: proposal.Mixture) -> np.ndarray:
    total = np.zeros(len(at))
    for weight, width in ((1 - proposal.WIDE_SHARE, 1.0), (proposal.WIDE_SHARE, proposal.WIDE)):
        for share, centre, root in zip(*one, strict=True):
            t = stats.multivariate_t(centre, width**2 * root @ root.T, df=proposal.DEGREES_OF_FREEDOM)
            total += weight * share * t.pdf(at)
    return total


def test_density_is_scipys_multivariate_t_each_proposal_weighted_by_its_draws():
    rng = np.random.default_rng(0)
    mixtures, draws = [mixture(rng, 1), mixture(rng, 7)], [512, 1024]
    at = rng.normal(size=(50, 3)) * 3
    expected = np.log(sum(n * density_by_scipy(at, one) for n, one in zip(draws, mixtures, strict=True)))
    found = proposal.log_density(at, mixtures, draws)
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-10, atol=1e-10)


def test_draws_have_the_density():
    """The mean of 1 / density over draws inside a box is the box's volume: within 4 standard errors (1 in 16,000)."""
    rng = np.random.default_rng(2)
    one = mixture(rng, 3, d=2)
    x = proposal.draw(one, 40_000, rng)
    terms = (np.abs(x) < 2).all(axis=1) / density_by_scipy(x, one)
    assert abs(terms.mean() - 16) < 4 * terms.std() / np.sqrt(terms.size)


def test_few_effective_draws_give_one_component_with_their_mean_and_wider_covariance():
    rng = np.random.default_rng(1)
    x, weight = rng.normal(size=(400, 3)), rng.dirichlet(np.ones(400))
    found = proposal.fitted(x, weight, ess=150.0, rng=rng)
    assert found.share.tolist() == [1.0]
    np.testing.assert_allclose(found.centre[0], weight @ x)
    covariance = np.cov(x.T, aweights=weight, ddof=0)
    np.testing.assert_allclose(found.root[0] @ found.root[0].T, proposal.WIDENING * covariance)


def test_em_comes_nearer_to_a_skewed_density_than_one_component():
    """In expected log density at fresh draws of exp-skewed, correlated ones: at least 0.05 nats a draw."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal((8000, 2))
    x = np.stack([z[:, 0], z[:, 0] + np.exp(0.8 * z[:, 1])], axis=1)
    train, fresh = x[:4000], x[4000:]
    weight = np.full(4000, 1 / 4000)
    found, one = (proposal.fitted(train, weight, ess=ess, rng=rng) for ess in (4000.0, 100.0))
    gain = np.log(density_by_scipy(fresh, found)) - np.log(density_by_scipy(fresh, one))
    print(f"EM is {gain.mean():.3f} nats a draw nearer, standard error {gain.std() / np.sqrt(gain.size):.3f}")
    assert found.share.size == proposal.COMPONENTS
    assert gain.mean() > 0.05 + 4 * gain.std() / np.sqrt(gain.size)
