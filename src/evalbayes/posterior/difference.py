"""The difference of two scores, from the same draws: task effects that both share cancel."""

import xarray as xr

from evalbayes.answer import from_draws
from evalbayes.posterior.draws import check_on_board, effective, identity, score_draws
from evalbayes.posterior.ranking import needs_two_configs
from evalbayes.posterior.score import withhold


def difference(
    fit: xr.DataTree,
    *,
    tasks: str = "sampled",
    configs: str = "fixed",
    prob: float = 0.95,
    reference: str | None = None,
    population: str = "model",
    assume: str | None = None,
) -> xr.Dataset:
    """Score of each config less that of its opponent.

    Parameters
    ----------
    fit, tasks, prob, population, assume
        As in `evalbayes.posterior.score`.
    configs
        ``"fixed"``: a future entry has no name to be set against.
    reference
        One opponent for all; every pair when not given.

    Returns
    -------
    xarray.Dataset
        An answer over ``config``, and over ``opponent`` when there is no reference; a config less itself is exactly 0.

    Raises
    ------
    OutcomesError
        If the reference is not on the board.
    NotIdentifiedError, SamplingError, ValueError
        As in `evalbayes.posterior.rank`.

    Examples
    --------
    >>> import evalbayes as eb                                                       # doctest: +SKIP
    >>> eb.posterior.difference(eb.fit(board), reference="baseline").interval        # doctest: +SKIP
    """
    who = identity(fit, "difference", tasks=tasks, configs=configs, population=population, assume=assume, prob=prob)
    needs_two_configs("difference", fit, configs)
    draws, reason = score_draws(fit, tasks=tasks, population=population, assume=assume)
    labels = draws["config"].values.tolist()
    check_on_board(reference, labels)
    rows = []
    # One opponent at a time: all pairs at once would be draws x configs x configs.
    for opponent in labels if reference is None else [reference]:
        against = draws.sel(config=opponent, drop=True)
        row = from_draws(draws - against, ess=effective(fit), **who)
        why = xr.where(reason == "", reason.sel(config=opponent, drop=True), reason)
        # Against itself a config differs by nothing, whatever is not known of it.
        why = why.where(why["config"] != opponent, "").astype(object)
        rows.append(withhold(row, why))
    if reference is not None:
        return rows[0].assign_coords(reference=reference)
    return xr.concat(rows, "opponent").assign_coords(opponent=labels).transpose("config", "opponent", "ci_bound")
