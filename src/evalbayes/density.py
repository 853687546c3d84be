"""A PyMC model as JAX functions of one flat vector: log density, derivatives, and named quantities.

PyTensor supplies the graph of the model's own log density, JAX compiles and differentiates it: compiling the
marginal density of a 25 x 500 board takes 2 s where PyTensor's numba mode takes 23. The model's data variables
become arguments, so that one compiled function serves every board of its shape and every grid.

Numbers do not depend on how many cores there are: XLA is told to run one operation on one thread, and the
parallel work is over draws, in blocks whose size is fixed.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false"

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile import SharedVariable, mode
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import graph_inputs
from pytensor.link.jax.dispatch import jax_funcify

Data = dict[str, Any]

KEPT = 8
"""Compiled densities, and functions of them, kept for the next board of their shape."""
BLOCK = 64
"""Draws in one parallel block; fixed, so that the arithmetic does not depend on the number of cores."""


@dataclass(frozen=True, eq=False)
class Density:
    """The log density of a model over its unconstrained vector x (size,), with what is computed from it.

    Compared and hashed by identity, so that functions compiled for it can be kept with it.

    ``logp(x, data)`` is the sum of ``log_prior`` (with the transforms' Jacobians) and the log-likelihood; ``slices``
    says where each value variable lies in x, ``is_effect`` which entries belong to vectors (effects, not scalars).
    """

    model: pm.Model
    size: int
    slices: dict[str, slice]
    is_effect: np.ndarray
    logp: Callable[[Any, Data], Any]
    log_prior: Callable[[Any, Data], Any]
    quantities: Callable[[Sequence[str]], Callable[[Any, Data], dict[str, Any]]]


def compile_density(model: pm.Model) -> Density:
    """Return the log density of ``model`` with its unconstrained value variables laid end to end.

    Examples
    --------
    >>> from evalbayes import simulate
    >>> from evalbayes.models.crossed import crossed
    >>> density = compile_density(crossed(simulate.board(configs=4, tasks=10), marginal=True))
    >>> density.size, density.slices["config_effect_zerosum__"]
    (9, slice(2, 5, None))
    """
    _configure_jax()
    start = model.initial_point()
    shapes = {value.name: np.shape(start[value.name]) for value in model.value_vars}
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
    slices = {name: slice(int(end - np.prod(shapes[name])), int(end)) for name, end in zip(shapes, ends, strict=True)}

    def split(x: Any) -> list[Any]:
        return [x[slices[name]].reshape(shape) for name, shape in shapes.items()]

    joint = _to_jax(model, [model.logp()])
    prior = _to_jax(model, [model.logp(vars=model.free_RVs)])

    named = [variable.name for variable in model.unobserved_RVs]

    @cache
    def all_quantities() -> Callable[[list[Any], Data], list[Any]]:
        return _to_jax(model, model.replace_rvs_by_values(model.unobserved_RVs))

    def quantities(names: Sequence[str]) -> Callable[[Any, Data], dict[str, Any]]:
        # All are rewritten together, once; XLA leaves out what is not asked for.
        compute = all_quantities()

        def some(x: Any, data: Data) -> dict[str, Any]:
            values = dict(zip(named, compute(split(x), data), strict=True))
            # The barrier keeps XLA from working the model's sums into those of whoever uses them: half as long again.
            return dict(jax.lax.optimization_barrier({name: values[name] for name in names}))

        return some

    return Density(
        model=model,
        size=int(ends[-1]),
        slices=slices,
        is_effect=np.concatenate([np.full(int(np.prod(shape)), len(shape) > 0) for shape in shapes.values()]),
        logp=lambda x, data: joint(split(x), data)[0],
        log_prior=lambda x, data: prior(split(x), data)[0],
        quantities=quantities,
    )


def derivatives(function: Callable[[Any, Data], Any]) -> Callable[[Any, Any, Data], Any]:
    """Compile (x, direction, data) to value and gradient of ``function(x, data)``, and both along the direction."""

    @jax.jit
    def along(x: Any, direction: Any, data: Data) -> Any:
        return jax.jvp(jax.value_and_grad(lambda y: function(y, data)), (x,), (direction,))

    return along


def hessian(along: Callable[[Any, Any, Data], Any], x: Any, data: Data) -> np.ndarray:
    """Return the Hessian at x by `derivatives`, its columns in parallel."""

    def column(direction: np.ndarray) -> np.ndarray:
        return np.asarray(along(x, direction, data)[1][1])

    with ThreadPoolExecutor(available_cores()) as pool:
        columns = np.array(list(pool.map(column, np.eye(len(x)))))
    return np.asarray(columns + columns.T) / 2


def third_derivatives(
    along: Callable[[Any, Any, Data], Any], x: Any, second: np.ndarray, directions: np.ndarray, data: Data
) -> np.ndarray:
    """Return the third derivatives along each of ``directions`` v twice, T(v, v, .): (direction, size).

    From gradient and Hessian product at x + v, so that the whole of v counts and not a point: a fourth derivative
    cancels, and a higher one tells what third derivative to expect over that distance. ``second`` is the Hessian at x.
    """
    gradient = np.asarray(along(x, np.zeros_like(x), data)[0][1])

    def one(v: np.ndarray) -> np.ndarray:
        (_, there), (_, product) = along(x + v, v, data)
        # The two are T/2 + Q/6 and T + Q/2, with Q the fourth derivatives along v three times.
        ahead, steeper = np.asarray(there) - gradient - second @ v, np.asarray(product) - second @ v
        return np.asarray(6 * ahead - 2 * steeper)

    with ThreadPoolExecutor(available_cores()) as pool:
        return np.array(list(pool.map(one, directions)))


def data_of(model: pm.Model, **replaced: Any) -> Data:
    """Return the values of the model's data variables, those in ``replaced`` exchanged."""
    return {v.name: jnp.asarray(replaced.get(v.name, v.get_value())) for v in model.data_vars}


def flatten(density: Density, point: Mapping[str, Any]) -> np.ndarray:
    """Lay a point (value variable name to value) end to end."""
    return np.concatenate([np.ravel(point[name]) for name in density.slices])


def batched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function(x, *rest_per_draw, data)`` to run over the leading axis of its arguments but the last.

    One draw after another: a few at once are no faster here and take as many times the memory.
    """

    @jax.jit
    def run(per_draw: tuple[Any, ...], data: Any) -> Any:
        return jax.lax.map(lambda one: function(*one, data), per_draw)

    return run


def over_draws(run: Callable[..., Any], per_draw: tuple[Any, ...], data: Any) -> Any:
    """Apply a `batched` function to many draws, in parallel blocks of one shape, and join the results.

    Parameters
    ----------
    run
        From `batched`.
    per_draw
        Arrays with draws along the first axis.
    data
        From `data_of`.

    Returns
    -------
    Any
        The function's result (an array or a tree of arrays), draws along the first axis, as NumPy arrays.
    """
    count = len(per_draw[0])
    starts = range(0, count, BLOCK)

    def block(start: int) -> Any:
        # The last block is filled up by repeating a draw, so that one compiled shape serves all blocks.
        rows = np.minimum(np.arange(start, start + BLOCK), count - 1)
        return jax.tree.map(np.asarray, run(tuple(np.asarray(part)[rows] for part in per_draw), data))

    with ThreadPoolExecutor(available_cores()) as pool:
        blocks = list(pool.map(block, starts))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *blocks)


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _configure_jax() -> None:
    jax.config.update("jax_enable_x64", True)
    if jax.config.jax_compilation_cache_dir is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "evalbayes" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _to_jax(model: pm.Model, graph: list[Any]) -> Callable[[list[Any], Data], list[Any]]:
    """Return a JAX function of the model's value variables and data variables that computes ``graph``."""
    shared = list(model.data_vars)
    free = [variable.type() for variable in shared]
    inputs = [*model.value_vars, *free]
    # Lengths of dims are shared variables too; JAX needs shapes to be constants.
    lengths = [v for v in graph_inputs(graph) if isinstance(v, SharedVariable) and v not in shared]
    replacements = dict(zip(shared, free, strict=True)) | {v: pt.constant(v.get_value()) for v in lengths}
    fgraph = FunctionGraph(inputs, clone_replace(graph, replacements), clone=True)
    mode.JAX.optimizer.rewrite(fgraph)
    with warnings.catch_warnings():
        # JAX cannot raise inside compiled code, and PyTensor says so for every check it drops.
        warnings.filterwarnings("ignore", "Skipping (Check|Assert)", UserWarning)
        function = jax_funcify(fgraph)
    names = [variable.name for variable in shared]
    return lambda values, data: function(*values, *(data[name] for name in names))
