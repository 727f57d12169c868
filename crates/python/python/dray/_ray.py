"""Ray as an executor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class RayExecutor(Executor):
    """Runs tasks on the cluster that ``ray.init`` has connected to. Tasks of a worker that is killed run again on another.

    ``options`` are those of a remote function, as ``num_cpus=1``. Raises ImportError without ray.
    """

    def __init__(self, *, max_retries: int = 3, **options: Any) -> None:
        import ray

        self._remote = ray.remote(_call).options(max_retries=max_retries, **options)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._remote.remote(fn, args, kwargs).future()


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)
