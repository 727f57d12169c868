"""Sweeps: many points, on as many processes or machines as there are, in parts that can be resumed and merged."""

from __future__ import annotations

import hashlib
import itertools
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from . import _dray
from ._answer import Answer
from ._table import table

if TYPE_CHECKING:
    import pyarrow

Space = Union[Mapping[str, Sequence[Any]], Sequence[Mapping[str, Any]]]
Progress = Callable[[int, int, Union[float, None]], None]

# Tasks that an executor has at a time: more keep no worker from waiting.
_AT_ONCE = 1000
# Times that processes of our own are started anew after one of them was killed.
_RESTARTS = 3
_MANIFEST = "sweep.json"


class SweepError(RuntimeError):
    """Tasks have failed, or parts are missing or of another sweep. What is done is kept."""


@dataclass(frozen=True)
class Task:
    """One configuration and a range of seeds."""

    configuration: Mapping[str, Any]
    seeds: range | None
    key: str

    def __call__(self, run: Callable[..., Any]) -> bytes:
        """Its part, as a file of Parquet."""
        more = {} if self.seeds is None else {"seeds": self.seeds}
        found = run(**self.configuration, **more)
        rows = found.rows if isinstance(found, Answer) else list(found)
        if not rows:
            raise ValueError("no rows")
        given = {name: value if isinstance(value, (int, float, str)) else json.dumps(value) for name, value in self.configuration.items()}
        return _parquet(table([{**given, **row} for row in rows], {"dray": _dray.__version__, "task": self.key}))


def _parquet(rows: pyarrow.Table) -> bytes:
    import pyarrow
    import pyarrow.parquet

    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(rows, sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def _work(task: Task, run: Callable[..., Any]) -> bytes:
    return task(run)


def _configurations(space: Space) -> Iterator[dict[str, Any]]:
    if isinstance(space, Mapping):
        lists = [[values] if isinstance(values, (str, bytes)) else list(values) for values in space.values()]
        for values in itertools.product(*lists):
            yield dict(zip(space, values))
    else:
        yield from (dict(configuration) for configuration in space)


def _name(run: Callable[..., Any]) -> str:
    """What a result depends on of the function: its name. Its code is what ``version`` is for."""
    named = getattr(run, "func", run)
    return f"{named.__module__}:{named.__qualname__}"


class Sweep:
    """The tasks of a sweep and the directory of their parts."""

    def __init__(self, out: str | os.PathLike[str], manifest: Mapping[str, Any]) -> None:
        self.out = Path(out)
        self.manifest = dict(manifest)
        self.tasks = [self._task(*point) for point in itertools.product(manifest["configurations"], manifest["seeds"])]

    @classmethod
    def of(cls, out: str | os.PathLike[str]) -> Sweep:
        """The sweep that a directory has parts of."""
        try:
            manifest = json.loads((Path(out) / _MANIFEST).read_text(encoding="utf-8"))
            return cls(out, manifest)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SweepError(f"{out} has no sweep: {error}") from error

    def _task(self, configuration: Mapping[str, Any], seeds: Sequence[int] | None) -> Task:
        what = [self.manifest["run"], self.manifest["version"], configuration, seeds]
        text = json.dumps(what, sort_keys=True, separators=(",", ":"))
        key = hashlib.sha256(text.encode()).hexdigest()[:32]
        return Task(configuration, None if seeds is None else range(*seeds), key)

    def part(self, task: Task) -> Path:
        """The file of a task's result."""
        return self.out / "parts" / f"{task.key}.parquet"

    def missing(self, shard: tuple[int, int] = (0, 1)) -> list[Task]:
        """Tasks of a shard without a part."""
        first, count = shard
        return [task for task in self.tasks[first::count] if not self.part(task).exists()]

    @property
    def table(self) -> pyarrow.Table:
        """All rows, in the order of the space.

        Raises SweepError if parts are missing.
        """
        return _merged([self])

    def __repr__(self) -> str:
        return f"<Sweep in {self.out}: {len(self.tasks) - len(self.missing())} of {len(self.tasks)} tasks done>"


def _write(path: Path, data: bytes) -> None:
    """Replaces a file as a whole: whoever is killed leaves no half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".part-", delete=False) as file:
        file.write(data)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def sweep(
    space: Space,
    run: Callable[..., Any],
    executor: Executor | None = None,
    *,
    out: str | os.PathLike[str],
    seeds: int | range | None = None,
    seeds_per_task: int = 100,
    version: str = "",
    shard: tuple[int, int] = (0, 1),
    progress: Progress | None = None,
) -> Sweep:
    """Run ``run(**configuration)`` for each configuration, and keep each result as one file of Parquet in ``out/parts``.

    ``space`` has a list of values for each name, of which all combinations are taken, or is a list of configurations. ``run``
    gives an ``Answer`` or rows; ``dray.advise``, ``dray.micros`` and their like can be given as they are. With ``seeds`` it gets
    ``seeds=range(...)`` as well, ``seeds_per_task`` at a time.

    ``executor`` is any ``concurrent.futures.Executor``: processes, Dask's ``client.get_executor()``, Ray's, submitit's; None
    takes processes of this machine, for which ``run`` must be importable. Workers need ``dray``, no file system in common.

    A task is named by a hash of its configuration, its seeds, the name of ``run``, the version of dray and ``version``, which
    is the caller's for the code of ``run``. Tasks that have a part are not run again. ``shard=(i, n)`` runs each nth task from
    the ith (from 0) on. ``progress`` is called with tasks done, tasks in all, and the seconds that are left by what those
    before took.

    Raises SweepError when all else is done, if tasks have failed.
    """
    first, count = shard
    if not 0 <= first < count:
        raise ValueError(f"shard {first} of {count}: the first is 0, the last is {count - 1}")
    made = _plan(space, run, seeds, seeds_per_task, version, out)
    tasks = made.missing(shard)
    of_shard = len(made.tasks[first::count])
    report = _Report(of_shard, of_shard - len(tasks), progress)
    failed: list[tuple[Task, BaseException]] = []
    if executor is not None:
        failed = _run(made, tasks, run, executor, report)
    else:
        for _ in range(_RESTARTS + 1):
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(max_workers=max(1, min(len(tasks), os.cpu_count() or 1)), mp_context=context) as pool:
                failed = _run(made, tasks, run, pool, report)
            # Who was killed takes the others' tasks along.
            tasks = [task for task, error in failed if isinstance(error, BrokenExecutor)]
            if not tasks:
                break
    if failed:
        task, error = failed[0]
        raise SweepError(
            f"{len(failed)} of {of_shard} tasks have failed, the first with {dict(task.configuration)}: {error!r}; the same sweep goes on with them"
        ) from error
    return made


def _plan(
    space: Space,
    run: Callable[..., Any],
    seeds: int | range | None,
    seeds_per_task: int,
    version: str,
    out: str | os.PathLike[str],
) -> Sweep:
    """The sweep in this directory, which is written down there."""
    ranges: list[list[int] | None] = [None]
    if seeds is not None:
        if seeds_per_task < 1:
            raise ValueError("seeds_per_task is 1 or more")
        all_seeds = range(seeds) if isinstance(seeds, int) else seeds
        starts = range(all_seeds.start, all_seeds.stop, seeds_per_task)
        ranges = [[start, min(start + seeds_per_task, all_seeds.stop)] for start in starts]
    manifest = {
        "run": _name(run),
        "version": [_dray.__version__, version],
        "configurations": list(_configurations(space)),
        "seeds": ranges,
    }
    try:
        text = json.dumps(manifest, indent=1)
    except TypeError as error:
        raise ValueError(f"values of a space are words, numbers and lists of them: {error}") from error
    # As it is read back: a tuple is a list there.
    made = Sweep(out, json.loads(text))
    if not made.tasks:
        raise ValueError("the space has no configuration")
    if (made.out / _MANIFEST).exists() and Sweep.of(out).manifest != made.manifest:
        raise SweepError(f"{out} has parts of another sweep: name another directory, or remove it")
    _write(made.out / _MANIFEST, text.encode())
    return made


class _Report:
    """Says how far a sweep is."""

    def __init__(self, total: int, done: int, progress: Progress | None) -> None:
        self.total, self.done, self.resumed = total, done, done
        self.begun = time.monotonic()
        self.progress = progress
        self.say()

    def one_more(self) -> None:
        self.done += 1
        self.say()

    def say(self) -> None:
        if self.progress:
            ran = self.done - self.resumed
            left = (time.monotonic() - self.begun) / ran * (self.total - self.done) if ran else None
            self.progress(self.done, self.total, left)


def _run(
    made: Sweep, tasks: Sequence[Task], run: Callable[..., Any], executor: Executor, report: _Report
) -> list[tuple[Task, BaseException]]:
    """Runs tasks and writes their parts: those that have failed, and why."""
    failed: list[tuple[Task, BaseException]] = []
    waiting = iter(tasks)
    running: dict[Future[bytes], Task] = {}
    broken: BrokenExecutor | None = None
    while True:
        for task in itertools.islice(waiting, _AT_ONCE - len(running)):
            try:
                if broken is not None:
                    raise broken
                running[executor.submit(_work, task, run)] = task
            except BrokenExecutor as error:
                broken = error
                failed.append((task, error))
        if not running:
            return failed
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            task = running.pop(future)
            try:
                _write(made.part(task), future.result())
                report.one_more()
            except Exception as error:  # noqa: BLE001: whatever a task raises, the others go on
                failed.append((task, error))


def _merged(sweeps: Sequence[Sweep]) -> pyarrow.Table:
    import pyarrow
    import pyarrow.parquet

    if any(other.manifest != sweeps[0].manifest for other in sweeps):
        raise SweepError("the directories are of different sweeps")
    parts = []
    for task in sweeps[0].tasks:
        found = next((one.part(task) for one in sweeps if one.part(task).exists()), None)
        if found is None:
            missing = len([task for task in sweeps[0].tasks if not any(one.part(task).exists() for one in sweeps)])
            raise SweepError(f"{missing} of {len(sweeps[0].tasks)} parts are missing: run the other shards, or this one again")
        parts.append(pyarrow.parquet.read_table(found))
    rows = pyarrow.concat_tables(parts, promote_options="permissive")
    return rows.replace_schema_metadata({"dray": _dray.__version__, "sweep": json.dumps(sweeps[0].manifest["version"])})


def merge(out: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], into: str | os.PathLike[str]) -> str:
    """Write the parts of one directory, or of several with shards of one sweep, into one file of Parquet.

    Its rows are in the order of the space, so that it is the same file however the sweep was divided: its sha256 is returned.
    Raises SweepError if parts are missing, or are of different sweeps.
    """
    directories = [out] if isinstance(out, (str, os.PathLike)) else list(out)
    data = _parquet(_merged([Sweep.of(directory) for directory in directories]))
    _write(Path(into), data)
    return hashlib.sha256(data).hexdigest()
