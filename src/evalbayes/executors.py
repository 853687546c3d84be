"""Where many independent fits run: in turn, in processes of this machine, or on a Dask cluster."""

import importlib
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from evalbayes.errors import ArgumentError, check_whole


@contextmanager
def executor_of(workers: int = 1, dask: str | None = None) -> Iterator[Executor | None]:
    """Open an executor and close it again, what has not been started being given up.

    Parameters
    ----------
    workers
        Processes; one is this process, and the executor None.
    dask
        Address of the scheduler of a Dask cluster, such as ``"tcp://10.0.0.1:8786"``, in place of processes.

    Raises
    ------
    ArgumentError
        If ``workers`` is not a whole number from 1, or a cluster is named and Dask is not installed, or not there.

    Examples
    --------
    >>> with executor_of(1) as executor:
    ...     print(executor)
    None
    """
    check_whole("workers", workers, 1)
    if dask is not None:
        with _cluster(dask) as client:
            yield client.get_executor()
        return
    if workers == 1:
        yield None
        return
    # A forked process would inherit the locks of JAX's threads, and none of the threads.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _cluster(address: str) -> Any:
    try:
        distributed = importlib.import_module("distributed")
    except ModuleNotFoundError:
        raise ArgumentError(f"dask={address!r}: Dask is not installed; pip install distributed") from None
    try:
        return distributed.Client(address)
    except (OSError, ValueError) as unreachable:
        raise ArgumentError(f"dask={address!r}: no cluster there ({unreachable})") from None
