"""The schema of outcomes: its four states, the one constructor of a board, and the check of it."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import xarray as xr

from evalbayes import __version__
from evalbayes.errors import ArgumentError, OutcomesError

ABSENT, ERROR, FAIL, PASS = -2, -1, 0, 1
STATES = (ABSENT, ERROR, FAIL, PASS)
STATE_NAMES = ("absent", "error", "fail", "pass")
COUNTS = ("successes", "trials", "errors")
ErrorPolicy = Literal["missing", "failure", "raise"]

Int64 = npt.NDArray[np.int64]
Int8 = npt.NDArray[np.int8]


def check_policy(policy: str) -> ErrorPolicy:
    """Return a known error policy, or raise OutcomesError naming the three."""
    for known in get_args(ErrorPolicy):
        if policy == known:
            return known  # type: ignore[no-any-return]
    raise OutcomesError(f"errors={policy!r} is not a policy; use 'missing', 'failure' or 'raise'")


def require_board(board: Any) -> xr.Dataset:
    """Return a board unchanged, or say what was given in its place."""
    if isinstance(board, xr.Dataset) and {"successes", "trials"} <= set(board.data_vars):
        return board
    what = "a Dataset without successes and trials" if isinstance(board, xr.Dataset) else f"a {type(board).__name__}"
    raise ArgumentError(f"outcomes is {what}: give a board, such as evalbayes.read(path)")


def assemble(
    counts: Mapping[str, Int64],
    *,
    configs: Sequence[str],
    tasks: Sequence[str],
    policy: str,
    outcome: Int8 | None = None,
    runs: Sequence[str] = (),
    published: npt.NDArray[np.float64] | None = None,
    coords: Mapping[str, tuple[str, Any]] | None = None,
    variables: Mapping[str, tuple[Sequence[str], Any]] | None = None,
    attrs: Mapping[str, str | int | float] | None = None,
) -> xr.Dataset:
    """Build a board from arrays of scored runs, apply the error policy, and validate it.

    Parameters
    ----------
    counts
        ``successes``, ``trials`` (scored runs only) and ``errors``, each (config, task).
    configs, tasks, runs
        Names along each dim; ``runs`` only with ``outcome``.
    policy
        ``"missing"``: errors leave the denominator. ``"failure"``: each is a failed trial. ``"raise"``: refuse.
    outcome
        State of every run, (config, task, run), one of `STATES`.
    published
        The board's own rate, (config).
    coords
        Further coords: name to (dim, values).
    variables
        Further variables of cells: name to (dims, values).
    attrs
        Text or numbers.

    Raises
    ------
    OutcomesError
        If the result is not a valid board; see `validate`.
    """
    source = str((attrs or {}).get("source") or "outcomes")
    # Before xarray sees them: text that cannot be encoded breaks inside it, with another error.
    for role, names in (("config", configs), ("task", tasks), ("run", () if outcome is None else runs)):
        check_names(names, role, source)
    check_text({name: values for name, (_, values) in (coords or {}).items()}, source)
    cell = ("config", "task")
    data: dict[str, Any] = {name: (cell, np.asarray(counts[name], np.int64)) for name in COUNTS}
    labels: dict[str, Any] = {"config": _text(configs), "task": _text(tasks), **(coords or {})}
    if outcome is not None:
        flags = {"flag_values": np.array(STATES, np.int8), "flag_meanings": " ".join(STATE_NAMES)}
        data["outcome"] = ((*cell, "run"), outcome.astype(np.int8), flags)
        labels["run"] = _text(runs)
    if published is not None:
        data["published"] = ("config", np.asarray(published, float))
    data |= variables or {}
    about = {"source": "", "score_rule": "", "reader": "", "n_duplicates_dropped": 0, **(attrs or {})}
    about |= {"error_policy": "missing", "evalbayes_version": __version__}
    return apply_error_policy(validate(xr.Dataset(data, coords=labels, attrs=about)), policy)


def _text(names: Sequence[str]) -> npt.NDArray[np.object_]:
    return np.array(list(names), dtype=object)


def apply_error_policy(ds: xr.Dataset, policy: str) -> xr.Dataset:
    """Return the board under another error policy; the states themselves do not change.

    Under ``"missing"`` ``trials`` counts scored runs; under ``"failure"`` errored attempts are added to it
    as failures; ``"raise"`` refuses a board that has any. ``errors`` keeps its count under every policy.

    Raises
    ------
    OutcomesError
        If the policy is unknown, or is ``"raise"`` and an attempt errored (names the first).

    Examples
    --------
    >>> from evalbayes import outcomes
    >>> ds = outcomes.from_counts([[2]], [[6]], configs=["a"], tasks=["t"], errors=[[2]])
    >>> int(apply_error_policy(ds, "failure").trials.item())
    8
    """
    policy = check_policy(policy)
    if policy == "raise" and bool(ds["errors"].any()):
        config, task = _first(ds, ds["errors"].values > 0)
        raise OutcomesError(
            f"{ds.attrs['source'] or 'outcomes'}: config {config!r}, task {task!r} has an attempt without a score "
            "and errors='raise'; use errors='missing' or errors='failure'"
        )
    scored = scored_trials(ds)
    trials = scored + ds["errors"] if policy == "failure" else scored
    return ds.assign(trials=trials).assign_attrs(error_policy=policy)


def scored_trials(ds: xr.Dataset) -> xr.DataArray:
    """Runs with a score, (config, task), whatever the error policy has added to ``trials``."""
    return ds["trials"] - ds["errors"] if ds.attrs.get("error_policy") == "failure" else ds["trials"]


def validate(ds: xr.Dataset) -> xr.Dataset:
    """Return a board unchanged, or raise OutcomesError naming the first thing that breaks the schema.

    Checked: dims and their order; names are unique text without NUL; counts are int64, non-negative and
    consistent; ``outcome`` reduces to the counts; ``published`` is a rate; attrs are text or numbers.

    Examples
    --------
    >>> from evalbayes import outcomes
    >>> board = outcomes.from_matrix([[1, 0]], configs=["a"], tasks=["t", "u"])
    >>> validate(board) is board
    True
    """
    source = ds.attrs.get("source") or "outcomes"
    _check_shape(ds, source)
    for dim in ds.dims:
        check_names(ds[dim].values.tolist(), str(dim), source)
    check_text({str(name): ds[name].values for name in ds.coords if name not in ds.dims}, source)
    _check_counts(ds, source)
    if "outcome" in ds:
        _check_outcome(ds, source)
    if "published" in ds:
        _check_published(ds, source)
    _check_attrs(ds, source)
    return ds


def _check_shape(ds: xr.Dataset, source: str) -> None:
    missing = [name for name in COUNTS if name not in ds.data_vars]
    if missing:
        raise OutcomesError(
            f"{source}: not a board of outcomes, {', '.join(missing)} missing; build it with outcomes.*"
        )
    dims = {**dict.fromkeys(COUNTS, ("config", "task")), "outcome": ("config", "task", "run"), "published": ("config",)}
    for name in dims.keys() & set(map(str, ds.data_vars)):
        if ds[name].dims != dims[name]:
            raise OutcomesError(f"{source}: {name} has dims {ds[name].dims}, not {dims[name]}; transpose it")
    for dim, size in ds.sizes.items():
        if dim not in ds.coords:
            raise OutcomesError(f"{source}: dim {dim!r} has no names; assign them as a coord of text")
        if size == 0:
            raise OutcomesError(f"{source}: there is no {dim}; a board needs at least one")


def check_names(names: Sequence[Hashable], role: str, source: str) -> None:
    """Raise OutcomesError if a config, task or run name is not text, is blank, has a NUL, or repeats."""
    seen: set[Hashable] = set()
    for name in names:
        if (fault := name_fault(name)) or name in seen:
            raise OutcomesError(f"{source}: {role} {name!r} {fault or 'appears twice; names must be unique'}")
        seen.add(name)


def name_fault(name: object) -> str:
    """What makes a name unusable, with the remedy; empty if nothing does."""
    if not isinstance(name, str):
        return "is not text; convert it to str"
    return text_fault(name) if name.strip() else "is blank; every row needs a name"


def text_fault(text: object) -> str:
    """What keeps a text from being stored, with the remedy; empty if nothing does."""
    if not isinstance(text, str):
        return ""
    try:
        return "contains a NUL character; remove it" if b"\0" in text.encode() else ""
    except UnicodeEncodeError:
        return "is not valid Unicode (a lone surrogate); re-encode it as UTF-8"


def check_text(coords: Mapping[str, Any], source: str) -> None:
    """Raise OutcomesError if a text value of a coord cannot be stored."""
    for name, values in coords.items():
        for value in values if np.asarray(values).dtype.kind in "OU" else ():
            if fault := text_fault(value):
                raise OutcomesError(f"{source}: {name} {value!r} {fault}")


def _check_counts(ds: xr.Dataset, source: str) -> None:
    for name in COUNTS:
        if ds[name].dtype != np.int64:
            raise OutcomesError(f"{source}: {name} is {ds[name].dtype}, not int64; counts are whole numbers")
        _refuse(ds, ds[name].values < 0, f"negative {name}", source)
    _refuse(ds, ds["successes"].values > scored_trials(ds).values, "more successes than trials", source)
    check_policy(ds.attrs.get("error_policy", "missing"))


def _check_outcome(ds: xr.Dataset, source: str) -> None:
    states = ds["outcome"].values
    _refuse(ds, (~np.isin(states, STATES)).any(-1), f"an outcome that is not one of {STATES}", source)
    reduced = {"successes": states == PASS, "trials": states >= FAIL, "errors": states == ERROR}
    held = {"successes": ds["successes"], "trials": scored_trials(ds), "errors": ds["errors"]}
    for name, mask in reduced.items():
        _refuse(ds, mask.sum(-1) != held[name].values, f"{name} that are not the reduction of outcome", source)


def _check_published(ds: xr.Dataset, source: str) -> None:
    rates = ds["published"].values
    wrong = ~(np.isnan(rates) | ((rates >= 0) & (rates <= 1)))
    if wrong.any():
        config, rate = str(ds["config"].values[wrong][0]), rates[wrong][0]
        raise OutcomesError(f"{source}: config {config!r} has published rate {rate:g}, not in [0, 1]; divide % by 100")


def _check_attrs(ds: xr.Dataset, source: str) -> None:
    for name, value in ds.attrs.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float | np.integer | np.floating):
            raise OutcomesError(
                f"{source}: attribute {name!r} is {type(value).__name__}; only text and numbers are kept"
            )
        if isinstance(value, str) and "\0" in value:
            raise OutcomesError(f"{source}: attribute {name!r} contains a NUL character; remove it")


def _refuse(ds: xr.Dataset, wrong: npt.NDArray[np.bool_], what: str, source: str) -> None:
    if wrong.any():
        config, task = _first(ds, wrong)
        raise OutcomesError(f"{source}: config {config!r}, task {task!r} has {what}; correct that cell")


def _first(ds: xr.Dataset, mask: npt.NDArray[np.bool_]) -> tuple[str, str]:
    c, t = np.unravel_index(int(mask.argmax()), mask.shape)
    return str(ds["config"].values[c]), str(ds["task"].values[t])
