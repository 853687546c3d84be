"""Log densities of a model at posterior draws: every task's likelihood, every variable's prior.

The marginal form of a model is compiled without its transforms, as a function of the variables that a posterior holds
under their own names: nothing has to be carried back to the scale that a sampler moved on, and priors have no Jacobian.
Of task t the likelihood is, on a grid that is checked at the draws::

    log p(outcomes of t | parameters) = logsumexp over nodes of task_loglik + node_logweight

(`evalbayes.models.effects`); where a model has no grid, the sum of what it observes of the task.
"""

from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytensor.tensor as pt
import xarray as xr
from pymc.model.transform.conditioning import remove_value_transforms
from pytensor.graph.traversal import ancestors

from evalbayes import laplace, nodes
from evalbayes.cells import flattened
from evalbayes.choice import ModelFunction, built
from evalbayes.density import Data, Density, compile_density, data_of
from evalbayes.errors import ArgumentError, SamplingError
from evalbayes.marginal import first_nodes
from evalbayes.predictive import check_same_parameters
from evalbayes.simulate import Floats

GRID = ("task_loglik", "node_logweight", "node_position")
OF_TASKS, OF_ALL, OF_PRIOR = "log p(task)", "log p(all)", "log p({})"
COUNTS, SEQUENCES, UNKNOWN = "counts", "sequences", "unknown"
LEFT_OVER = 1e-6
"""Of the log density, relative: what priors and tasks may leave of it by rounding."""


class Form(NamedTuple):
    """A model's marginal form without transforms: its density is a function of the variables themselves.

    ``hierarchical`` names the variables whose prior has parameters of its own.
    """

    model: pm.Model
    density: Density
    data: Data
    hierarchical: frozenset[str]


def form_of(board: xr.Dataset, function: ModelFunction, priors: dict[str, Any]) -> Form:
    """Build and compile the marginal form of a model.

    Parameters
    ----------
    board, function, priors
        From `evalbayes.predictive.origin`.

    Raises
    ------
    ArgumentError
        If the form has parameters of tasks, or does not say what a task's likelihood is.
    """
    model = remove_value_transforms(built(function, board, priors, marginal=True))
    own = [variable.name for variable in model.free_RVs if "task" in model.named_vars_to_dims.get(variable.name, ())]
    if own:
        raise ArgumentError(f"the model's marginal form still has {', '.join(own)} over task; integrate it out")
    hierarchical = frozenset(
        variable.name for variable in model.free_RVs if set(ancestors(variable.owner.inputs)) & set(model.free_RVs)
    )
    terms = model.logp(sum=False)
    free, observed = len(model.free_RVs), len(model.observed_RVs)
    with model:
        for variable, term in zip(model.free_RVs, terms, strict=False):
            pm.Deterministic(OF_PRIOR.format(variable.name), _sum(term))
        pm.Deterministic(OF_ALL, sum(map(_sum, terms)))
        pmd.Deterministic(OF_TASKS, _of_tasks(model, terms[free : free + observed]), dims=("task",))
    data = data_of(model)
    if "node_position" in data:
        data = data_of(model, node_position=first_nodes(model, board))
    return Form(model, compile_density(model), data, hierarchical)


def _sum(term: Any) -> Any:
    return pt.as_tensor(term, allow_xtensor_conversion=True).sum()


def _of_tasks(model: pm.Model, observed: list[Any]) -> Any:
    """Return the graph of every task's log-likelihood; ``observed`` are those of what the model observes."""
    there = [name for name in GRID if name in model.named_vars]
    if there and len(there) < len(GRID):
        raise ArgumentError(f"the model's marginal form has {', '.join(there)} of {', '.join(GRID)}; it needs all")
    if there:
        return pmd.math.logsumexp(model["task_loglik"] + model["node_logweight"], dim="node")
    if not observed:
        raise ArgumentError("the model's marginal form has no task_loglik and observes nothing: see models/effects.py")
    total: Any = 0.0
    for variable, term in zip(model.observed_RVs, observed, strict=True):
        dims = model.named_vars_to_dims.get(variable.name) or ()
        if "task" not in dims or term.type.ndim != len(dims):
            raise ArgumentError(f"the model observes {variable.name} and not task by task; task must be among its dims")
        total = total + pmd.as_xtensor(term, dims=dims).sum([dim for dim in dims if dim != "task"])
    return total


def log_densities(form: Form, posterior: xr.Dataset) -> xr.Dataset:
    """Evaluate a form at posterior draws.

    Parameters
    ----------
    form
        From `form_of`.
    posterior
        Draws over (chain, draw) of the form's variables.

    Returns
    -------
    xarray.Dataset
        Over (chain, draw): ``likelihood`` (task), the log-likelihood of each task, and ``prior`` (variable), the log
        prior density of each variable, on its own scale and given its parameters; coord ``hierarchical`` (variable),
        bool: whether those have priors themselves.

    Raises
    ------
    ArgumentError
        If the draws are not of this model, or its density has a term that is neither.
    SamplingError
        If no grid resolves the task effects at the draws.
    """
    check_same_parameters(form.model, posterior)
    x = _laid_out(form, posterior)
    form = _resolved(form, x)
    variables = [variable.name for variable in form.model.free_RVs]
    names = [OF_TASKS, OF_ALL, *map(OF_PRIOR.format, variables)]
    values = laplace.draws_of(form.density, names, x, form.data)
    prior = np.stack([values[OF_PRIOR.format(name)] for name in variables], axis=1)
    _check_complete(values[OF_ALL], values[OF_TASKS].sum(axis=1) + prior.sum(axis=1))
    chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
    return xr.Dataset(
        {
            "likelihood": (("chain", "draw", "task"), values[OF_TASKS].reshape(chains, draws, -1)),
            "prior": (("chain", "draw", "variable"), prior.reshape(chains, draws, -1)),
        },
        {
            "chain": np.arange(chains),
            "draw": np.arange(draws),
            "task": np.asarray(form.model.coords["task"]),
            "variable": variables,
            "hierarchical": ("variable", [name in form.hierarchical for name in variables]),
        },
    )


def _laid_out(form: Form, posterior: xr.Dataset) -> Floats:
    """Lay the variables of every draw end to end, (draw, size), as the form's density takes them."""
    flat = flattened(posterior[list(form.density.slices)])
    parts = []
    for name, where in form.density.slices.items():
        dims = form.model.named_vars_to_dims.get(name)
        values = flat[name].transpose("draw", *dims) if dims else flat[name]
        part = values.values.reshape(flat.sizes["draw"], -1)
        if part.shape[1] != where.stop - where.start:
            raise ArgumentError(
                f"the fit has {part.shape[1]} values of {name} and the model {where.stop - where.start}; "
                "give the model= that it was fitted with"
            )
        parts.append(part)
    return np.concatenate(parts, axis=1)


def _resolved(form: Form, x: Floats) -> Form:
    """Return the form on a grid that passes at draws x, evenly spread ones of them."""
    if "node_position" not in form.data:
        return form
    some = x[:: max(1, len(x) // nodes.CHECKED_DRAWS)]
    data, seen = nodes.resolved(form.density, form.data, some, lambda _: None)
    if not seen.passed(nodes.SLACK):
        raise SamplingError(f"the grid of task effects {seen.fault()} at the draws")
    return form._replace(data=data)


def _check_complete(whole: Floats, parts: Floats) -> None:
    """Refuse a density that is more than priors and likelihoods of tasks."""
    off = abs(whole - parts) / (1 + abs(whole))
    if not off.max() <= LEFT_OVER:
        raise ArgumentError(
            f"the model's log density has a term of {(whole - parts)[off.argmax()]:.3g} beside its variables' priors "
            "and its tasks' likelihoods: a potential of its own? Write it as one of these"
        )


def distinct(form: Form, posterior: xr.Dataset) -> int:
    """Return how many different draws there are: those resampled by weights come more than once."""
    return len(np.unique(_laid_out(form, posterior), axis=0))


def _sizes(form: Form) -> dict[str, int]:
    return {name: where.stop - where.start for name, where in form.density.slices.items()}


def kind_of_outcomes(
    form: Form, board: xr.Dataset, function: ModelFunction, priors: dict[str, Any], posterior: xr.Dataset
) -> str:
    """Return whether a model's likelihood is one of ``"counts"`` or of ``"sequences"`` of runs, or ``"unknown"``.

    The first has the binomial constants log C(n, k) in it. One config is given three tasks alike but for their passes,
    0, 1 and 2 of 2: their probabilities add up to 1, or would if the second, of two sequences, counted twice. Unknown
    is a model of one's own that has parameters of kinds of tasks, so that three alike are no board for it.

    Raises
    ------
    ArgumentError
        If it is neither.
    """
    if function.__module__.startswith("evalbayes.models."):
        return COUNTS
    probe = board.isel(task=[0, 0, 0]).assign_coords(task=["0 of 2", "1 of 2", "2 of 2"])
    cell = probe["config"] == board["config"].values[0]
    probe = probe.assign(trials=2 * cell + 0 * probe["trials"], successes=cell * xr.DataArray([0, 1, 2], dims="task"))
    one = posterior.isel(chain=[0], draw=[0]).drop_dims("task", errors="ignore")
    of_three = form_of(probe, function, priors)
    if _sizes(of_three) != _sizes(form):
        return UNKNOWN
    found = log_densities(of_three, one)["likelihood"]
    none, half, both = np.exp(found.values.ravel())
    for kind, ways in ((COUNTS, 1), (SEQUENCES, 2)):
        if abs(none + ways * half + both - 1) < LEFT_OVER:
            return kind
    raise ArgumentError(
        f"the model gives 0, 1 and 2 of 2 passes probability {none:.3g}, {half:.3g} and {both:.3g}: neither counts "
        "nor sequences of runs; its task_loglik lacks a constant or has one too many"
    )
