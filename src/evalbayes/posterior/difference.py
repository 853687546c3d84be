"""The difference of two scores, from the same draws: task effects that both share cancel."""

from typing import Any

import xarray as xr

from evalbayes.answer import from_draws
from evalbayes.posterior.draws import check_on_board, effective, identity, score_draws
from evalbayes.posterior.ranking import needs_two_configs, of_pairs
from evalbayes.posterior.score import withhold


def difference(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    population: str = "model",
    clusters: str | None = None,
    assume: str | None = None,
) -> xr.Dataset:
    """Score of each config less that of its opponent.

    Parameters
    ----------
    fit, tasks, prob, population, clusters
        As in `evalbayes.posterior.score`.
    assume
        As in `evalbayes.posterior.win_probability`.
    configs
        ``"fixed"``: a future entry has no name to be set against.
    reference
        One opponent for all; every pair when not given.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``, and over ``opponent`` when there is no reference; a config less itself is exactly 0.
        NaN with its reason for the pairs for which `evalbayes.posterior.win_probability` is.

    Raises
    ------
    OutcomesError
        If the reference is not on the board.
    NotIdentifiedError, SamplingError, ValueError
        As in `evalbayes.posterior.win_probability`.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.difference(eb.fit(board), reference="baseline").interval        # doctest: +SKIP
    """
    target: dict[str, Any] = {"tasks": tasks, "population": population, "assume": assume, "clusters": clusters}
    who = identity(fit, "difference", configs=configs, prob=prob, **target)
    needs_two_configs("difference", fit, configs)
    draws, reason = score_draws(fit, **target)
    labels = draws["config"].values.tolist()
    check_on_board(reference, labels)
    why, assumed = of_pairs(fit, reason, assume)
    rows = []
    # One opponent at a time: all pairs at once would be draws x configs x configs.
    for opponent in labels if reference is None else [reference]:
        against = draws.sel(config=opponent, drop=True)
        row = from_draws(draws - against, ess=effective(fit), **who | assumed)
        rows.append(withhold(row, why.sel(opponent=opponent, drop=True)))
    if reference is not None:
        return rows[0].assign_coords(reference=reference)
    return xr.concat(rows, "opponent").assign_coords(opponent=labels).transpose("config", "opponent", "ci_bound")
