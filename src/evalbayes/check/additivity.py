"""Whether repeated cells vary about the additive mean as the model says they do.

The crossed binomial model has no interaction of config and task. Where there is one, repeated runs of a cell agree with
each other more than with the fit, and intervals for differences and ranks come out too narrow. The beta-binomial models
have one, kappa, and are held to the variance that it gives. One run per cell cannot show either.
"""

import numpy as np
import xarray as xr

from evalbayes.cells import concentration, expected_rates, thinned

LEAST_VARIANCE = 0.1
"""Cells whose count the fit expects to vary less than this say nothing, and their ratio is wild."""
LIMIT, STANDARD_ERRORS = 1.2, 4.0
"""A dispersion is condemned when it is above 1.2 and above 1 by four standard errors."""
DRAWS = 100


def additivity(posterior: xr.Dataset, outcomes: xr.Dataset) -> dict[str, float]:
    """Return the Pearson dispersion of cells with repeated runs about their fitted probabilities.

    The mean over cells with two or more runs of (k - n mu)^2 / v, with mu the posterior mean of the cell's mean
    probability and v = n mu (1 - mu) (1 + (n - 1) rho), rho = E 1 / (1 + kappa): about 1 if the model is right
    (McCullagh and Nelder 1989, Generalized Linear Models, section 4.5). Without a kappa rho is 0.

    Parameters
    ----------
    posterior
        Draws over (chain, draw) of a packaged model, or of one with the same names.
    outcomes
        The board that was fitted.

    Returns
    -------
    dict
        ``dispersion`` and ``dispersion_limit``, above which the model's differences and ranks are too narrow; empty
        where no cell tells.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> additivity(eb.fit(board)["posterior"].to_dataset(), board)                   # doctest: +SKIP
    {'dispersion': 0.97, 'dispersion_limit': 1.2}
    """
    cells = outcomes[["successes", "trials"]].transpose("config", "task")
    k, n = cells["successes"].values, cells["trials"].values
    flat = thinned(posterior, DRAWS)
    p, kappa = expected_rates(flat, n.shape[1]), concentration(flat)
    rho = np.zeros((len(n), 1)) if kappa is None else (1 / (1 + kappa)).mean(axis=0)[:, None]
    variance = n * p * (1 - p) * (1 + (n - 1) * rho)
    tells = (n > 1) & (variance >= LEAST_VARIANCE)
    if not tells.any():
        return {}
    squared = (k - n * p)[tells] ** 2 / variance[tells]
    # The variance of a squared standardised binomial: 2 for a normal, more where the expected count is small.
    se = float(np.sqrt(np.mean(2 + 1 / variance[tells]) / squared.size))
    return {"dispersion": float(squared.mean()), "dispersion_limit": max(LIMIT, 1 + STANDARD_ERRORS * se)}
