"""Boards that a model would produce: before the data (prior) and after them (posterior).

The draws are PyMC's own, from the model as written, so that what is simulated is what is fitted, in a user's model too.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymc as pm
import xarray as xr

from evalbayes.cells import flattened
from evalbayes.choice import ModelFunction, built, check_identified, check_priors, chosen
from evalbayes.errors import ArgumentError, check_whole
from evalbayes.schema import validate

# Python's own loops are quick enough for a few hundred boards; any compiler takes longer to start.
COMPILE = {"mode": "FAST_COMPILE"}


def prior_predictive(
    outcomes: xr.Dataset, model: str | ModelFunction | None = None, *, draws: int = 200, seed: int = 0, **priors: Any
) -> xr.DataTree:
    """Draw parameters from the prior, and boards of the same cells and runs from them.

    Parameters
    ----------
    outcomes
        A board; only its labels and trials matter.
    model, priors
        As in `evalbayes.fit`.
    draws
        Number of boards.
    seed
        Same seed, same boards.

    Returns
    -------
    xarray.DataTree
        Groups ``prior`` (draw, ...), with ``score`` among the quantities, and ``prior_predictive``: ``successes``
        (draw, config, task), int64, out of the board's own trials.

    Raises
    ------
    OutcomesError, ArgumentError, NotIdentifiedError
        As `evalbayes.fit`.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> from evalbayes.predictive import prior_predictive                            # doctest: +SKIP
    >>> prior_predictive(eb.datasets.load("simulated"))["prior"]["score"].quantile([0.1, 0.9])  # doctest: +SKIP
    """
    check_whole("draws", draws, 1)
    check_whole("seed", seed, 0)
    validate(outcomes)
    name, function, _ = chosen(outcomes, model)
    check_priors(name, function, priors)
    check_identified(outcomes, name, priors)
    with built(function, outcomes, priors) as latent, _quiet():
        drawn = pm.sample_prior_predictive(draws, random_seed=seed, compile_kwargs=COMPILE)
    prior, boards = (flattened(drawn[group].to_dataset()) for group in ("prior", "prior_predictive"))
    return xr.DataTree.from_dict({"prior": prior.drop_attrs(), "prior_predictive": _counts(latent, boards)})


def posterior_predictive(
    fit: xr.DataTree, model: str | ModelFunction | None = None, *, draws: int = 200, seed: int = 0
) -> xr.Dataset:
    """Draw boards of the same configs, tasks and runs from a fit.

    Tasks keep their effects; cells are drawn anew. So under a beta-binomial model each board has its own interaction of
    config and task, of the size that the fit found: what the same tasks would look like if the departures from
    additivity were another draw.

    Parameters
    ----------
    fit
        From `evalbayes.fit`.
    model
        The function the fit was made with, where it is neither in the package nor in a file; the fit's own when not
        given.
    draws
        Number of boards, evenly spread over the posterior's draws; at most as many as it has.
    seed
        Same seed, same boards.

    Returns
    -------
    xarray.Dataset
        ``successes`` (draw, config, task), int64, and ``trials`` (config, task).

    Raises
    ------
    ArgumentError
        If the model is not to be found, or its parameters are not the fit's.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> from evalbayes.predictive import posterior_predictive                        # doctest: +SKIP
    >>> boards = posterior_predictive(eb.fit(board))                                 # doctest: +SKIP
    >>> (boards.successes == boards.trials).mean(("config", "task"))                 # doctest: +SKIP
    """
    check_whole("draws", draws, 1)
    check_whole("seed", seed, 0)
    board, function, priors = origin(fit, model)
    latent = built(function, board, priors)
    posterior = fit["posterior"].to_dataset()
    check_same_parameters(latent, posterior)
    flat = flattened(posterior)
    count = min(draws, flat.sizes["draw"])
    evenly = [i * flat.sizes["draw"] // count for i in range(count)]
    thin = flat.isel(draw=evenly).expand_dims(chain=[0]).assign_coords(draw=range(count))
    with latent, _quiet():
        drawn = pm.sample_posterior_predictive(
            xr.DataTree.from_dict({"posterior": thin}),
            var_names=[variable.name for variable in latent.observed_RVs],
            random_seed=seed,
            progressbar=False,
            compile_kwargs=COMPILE,
        )
    boards = _counts(latent, flattened(drawn["posterior_predictive"].to_dataset()))
    return boards.assign(trials=fit["constant_data"]["trials"].reset_coords(drop=True).transpose("config", "task"))


def check_same_parameters(model: pm.Model, posterior: xr.Dataset) -> None:
    """Refuse a model with parameters that a fit lacks, as they would come from the prior, or without some it has.

    What a fit has of every task may be missing: a marginal form integrates it out.
    """
    missing = [variable.name for variable in model.free_RVs if variable.name not in posterior]
    unused = [
        name
        for name, values in posterior.data_vars.items()
        if name not in model.named_vars and "task" not in values.dims
    ]
    if missing or unused:
        wrong = f"no {', '.join(missing)}" if missing else f"{', '.join(map(str, unused))}, which the model has not"
        raise ArgumentError(f"the fit has {wrong}; give the model= that it was fitted with")


def origin(
    fit: xr.DataTree, model: str | ModelFunction | None = None
) -> tuple[xr.Dataset, ModelFunction, dict[str, Any]]:
    """Return the board, the model's function and the priors that a fit was made with.

    Parameters
    ----------
    fit
        From `evalbayes.fit`.
    model
        The function, where it is neither in the package nor in a file.

    Raises
    ------
    ArgumentError
        If fit is none, or its model is not to be found or has other priors.
    """
    if not isinstance(fit, xr.DataTree):
        raise ArgumentError(f"fit is a {type(fit).__name__}; give what evalbayes.fit returned")
    board = fit["constant_data"].to_dataset().assign(fit["observed_data"].to_dataset().data_vars)
    attrs = {str(name): value for name, value in fit.attrs.items()}
    priors = {name.removeprefix("prior_"): value for name, value in attrs.items() if name.startswith("prior_")}
    name = str(fit.attrs["model"])
    if model is None and ":" in name and not Path(name.rpartition(":")[0]).is_file():
        raise ArgumentError(
            f"the fit was made with {name}, which is not here; give the function, or its file, as model="
        )
    name, function, _ = chosen(board, name if model is None else model)
    check_priors(name, function, priors)
    return board, function, priors


def _counts(latent: pm.Model, boards: xr.Dataset) -> xr.Dataset:
    observed = [variable.name for variable in latent.observed_RVs]
    if len(observed) != 1:
        raise ArgumentError(f"the model observes {', '.join(observed) or 'nothing'}: it must observe successes alone")
    return boards.rename({observed[0]: "successes"})[["successes"]].transpose("draw", "config", "task").drop_attrs()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyMC from saying on the log what it samples."""
    log = logging.getLogger("pymc")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            # That no BLAS is linked to PyTensor's C code is of no matter here.
            warnings.filterwarnings("ignore", "PyTensor could not link", UserWarning)
            yield
    finally:
        log.setLevel(level)
