"""Beta-binomial maximum likelihood against scipy's density and optimiser, closed forms, and known truth."""

import numpy as np
import pytest
from scipy import optimize, stats

from boards import counted
from evalbayes import NotIdentifiedError, datasets, frequentist
from evalbayes.frequentist import beta_binomial, bootstrap


def by_scipy(k, n, weight) -> tuple[float, float, float]:
    """Alpha, beta and log likelihood at the best of several starts of scipy's Nelder-Mead."""

    def minus(x: np.ndarray) -> float:
        return -float(weight @ stats.betabinom.logpmf(k, n, *np.exp(x)))

    found = [
        optimize.minimize(minus, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000})
        for start in ([0.0, 0.0], [-2.0, -2.0], [2.0, 2.0])
    ]
    best = min(found, key=lambda one: one.fun)
    return *np.exp(best.x), -best.fun


@pytest.mark.parametrize("seed", range(6))
def test_the_maximum_is_scipys(seed):
    """Ragged runs, U-shaped to humped rates, tasks that count several times: scipy's optimiser finds no better."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 9, 40)
    k = rng.binomial(n, rng.beta(*[(0.2, 0.15), (0.5, 2.0), (3.0, 2.0)][seed % 3], 40))
    weight = rng.integers(0, 4, 40).astype(float)
    board = bootstrap.cells(counted(k[None], n[None]))
    m, rho = (part[0] for part in beta_binomial._estimates(board, 0, weight[None]))
    alpha, beta, height = by_scipy(k, n, weight)
    size = 1 / rho - 1
    assert weight @ stats.betabinom.logpmf(k, n, m * size, (1 - m) * size) >= height - 1e-9
    assert m == pytest.approx(alpha / (alpha + beta), abs=1e-5)
    assert rho == pytest.approx(1 / (1 + alpha + beta), abs=1e-5)


def test_two_runs_have_a_closed_form():
    """With R = 2 it is a multinomial of 0, 1 and 2 passes: m is the mean, and P(1) = 2 m (1 - m) (1 - rho)."""
    k = np.repeat([0, 1, 2], [11, 6, 23])
    board = counted(k[None], np.full((1, 40), 2))
    m, mixed = k.mean() / 2, 6 / 40
    found = frequentist.within_variance(board, method="beta_binomial_ml", draws=2)
    assert found.estimate.item() == pytest.approx(mixed / 2, abs=1e-9)
    icc = frequentist.icc(board, method="beta_binomial_ml", draws=2)
    assert icc.estimate.item() == pytest.approx(1 - mixed / (2 * m * (1 - m)), abs=1e-8)
    size = 1 / icc.estimate.item() - 1
    assert icc.alpha.item() == pytest.approx(m * size, abs=1e-7)


def test_the_ends_of_the_scale_are_exact():
    """No task with runs of both kinds: rho = 1. Tasks more alike than chance makes them: rho = 0."""
    split, alike = [4] * 7 + [0] * 3, [2] * 10
    board = counted(np.array([split, alike]), 4)
    icc = frequentist.icc(board, method="beta_binomial_ml", draws=50)
    np.testing.assert_array_equal(icc.estimate, [1.0, 0.0])
    between = frequentist.between_variance(board, method="beta_binomial_ml", draws=50)
    np.testing.assert_allclose(between.estimate, [0.7 * 0.3, 0.0], atol=1e-15)
    assert frequentist.ceiling(board, method="beta_binomial_ml", draws=50).estimate.values.tolist() == [1.0, np.inf]


def test_it_finds_what_was_drawn():
    """400 boards of 100 tasks x 5 runs from Beta(0.6, 0.4): the mean ICC within 4 standard errors and 0.01 of bias."""
    rng = np.random.default_rng(3)
    k = rng.binomial(5, rng.beta(0.6, 0.4, (400, 100)))
    found = frequentist.icc(counted(k, 5), method="beta_binomial_ml", draws=2).estimate
    se = float(found.std()) / 20
    print(f"mean ICC {float(found.mean()):.4f} for 0.5, standard error {se:.4f}")
    assert abs(float(found.mean()) - 0.5) < 4 * se + 0.01


def test_draws_are_fits_of_resampled_boards():
    """The interval's draws against refitting boards on which tasks are written out as often as they were drawn."""
    board = datasets.load("repeated_runs").isel(config=[0, 5])
    cells = bootstrap.cells(board)
    at = beta_binomial.estimator(cells, None).at
    drawn = next(bootstrap.task_draws(board.sizes["task"], 3, seed=4))
    between, within = at(bootstrap.task_counts(drawn))
    for row, tasks in enumerate(drawn):
        again = bootstrap.Cells(cells.successes[:, tasks], cells.trials[:, tasks], cells.solved, cells.scale, True)
        once = beta_binomial.estimator(again, None).at(np.ones((1, len(tasks))))
        np.testing.assert_allclose([between[row], within[row]], [part[0] for part in once], rtol=1e-7)


def test_what_it_cannot_answer_is_refused():
    board = counted(np.array([[1, 2, 0], [2, 2, 1]]), 2)
    with pytest.raises(NotIdentifiedError, match=r"method='moments'"):
        frequentist.icc(board, method="beta_binomial_ml", reference="c0")
    with pytest.raises(NotIdentifiedError, match=r"tasks='sampled'"):
        frequentist.icc(board, method="beta_binomial_ml", tasks="fixed")
    once = frequentist.icc(counted(np.array([[1, 0, 1]]), 1), method="beta_binomial_ml", draws=5)
    assert np.isnan(once.estimate).all()
    assert "one run" in once.reason.item()
