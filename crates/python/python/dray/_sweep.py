"""Sweeps: many points, on as many processes or machines as there are, in parts that can be resumed and merged."""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import json
import multiprocessing
import operator
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
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

# Tasks that an executor of others has at a time; how many workers it has is not known.
_AT_ONCE = 1000
# Tasks that processes of our own have at a time, for each: one that runs, and the next.
_PER_WORKER = 2
# A process that ends while it starts breaks the pipe on which it is told what to do.
_BROKEN = (BrokenExecutor, BrokenPipeError)
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


def _named(run: Callable[..., Any], version: str) -> Any:
    """What a result depends on of the function: its name, and what a partial has of arguments. Its code is what ``version`` is for."""
    if isinstance(run, functools.partial):
        return [_named(run.func, version), list(run.args), run.keywords]
    name = getattr(run, "__qualname__", None)
    if name is None:
        raise ValueError("run is a function, or a partial of one")
    owner = getattr(run, "__self__", None)
    bound = not (owner is None or inspect.isclass(owner) or inspect.ismodule(owner))
    if not version and (bound or "<" in name):
        raise ValueError(f"{name}: its name does not say what it does; give a version, and another one when that changes")
    return f"{run.__module__}:{name}"


def _digests(value: Any) -> dict[str, str]:
    """The sha256 of each file that is named in a value."""
    if isinstance(value, str):
        if not os.path.isfile(value):
            return {}
        with open(value, "rb") as file:
            return {value: hashlib.file_digest(file, "sha256").hexdigest()}
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return {name: digest for part in value for name, digest in _digests(part).items()}
    return {}


def _words(value: Any) -> Iterator[str]:
    """The words in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _words(part)


class Sweep:
    """The tasks of a sweep and the directory of their parts."""

    def __init__(self, out: str | os.PathLike[str], manifest: Mapping[str, Any]) -> None:
        self.out = Path(out)
        self.manifest = dict(manifest)
        self._files: Mapping[str, str] = manifest.get("files", {})
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
        words = _words([self.manifest["run"], configuration])
        if files := {word: self._files[word] for word in words if word in self._files}:
            what.append(files)
        text = json.dumps(what, sort_keys=True, separators=(",", ":"))
        key = hashlib.sha256(text.encode()).hexdigest()[:32]
        return Task(configuration, None if seeds is None else range(*seeds), key)

    def part(self, task: Task) -> Path:
        """The file of a task's result."""
        return self.out / "parts" / f"{task.key}.parquet"

    def missing(self, shard: tuple[int, int] = (0, 1)) -> list[Task]:
        """Tasks of a shard without a part, or with one that was cut short."""
        first, count = shard
        return [task for task in self.tasks[first::count] if not _is_whole(self.part(task))]

    @property
    def table(self) -> pyarrow.Table:
        """All rows, in the order of the space.

        Raises SweepError if parts are missing.
        """
        return _merged([self])

    def __repr__(self) -> str:
        return f"<Sweep in {self.out}: {len(self.tasks) - len(self.missing())} of {len(self.tasks)} tasks done>"


def _is_whole(part: Path) -> bool:
    """Whether a file of Parquet is there, and has its end."""
    magic = b"PAR1"
    try:
        with part.open("rb") as file:
            if file.read(len(magic)) != magic:
                return False
            file.seek(-len(magic), os.SEEK_END)
            return file.read() == magic
    except FileNotFoundError:
        return False


def _write(path: Path, data: bytes, place: Callable[[str, Path], None] = os.replace) -> None:
    """Makes a file as a whole: whoever is killed leaves no half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".part-", delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.chmod(file.name, 0o644)
            place(file.name, path)
        finally:
            if os.path.exists(file.name):
                os.unlink(file.name)


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
    takes processes of this machine, for which ``run`` must be importable, and a script must be, too: it calls this behind
    ``if __name__ == "__main__":``. Tasks under way when such a process is killed run again, each alone. Workers need ``dray``, no file system in common.

    A task is named by a hash of its configuration, the contents of files that it names, its seeds, the name of ``run`` with a
    partial's arguments, the version of dray and ``version``, which is the caller's for the code of ``run``; a lambda, a
    function within another and a method need one. Tasks that have a part are not run again. ``shard=(i, n)`` runs each nth task from
    the ith (from 0) on. ``progress`` is called with tasks done, tasks in all, and the seconds that are left by what those
    before took.

    Ctrl-C, and an exception of ``progress``, end the sweep; what has ended by then is kept. Raises SweepError when all else is
    done, if tasks have failed; OSError if a part cannot be written.
    """
    first, count = shard
    if not 0 <= first < count:
        raise ValueError(f"shard {first} of {count}: the first is 0, the last is {count - 1}")
    made = _plan(space, run, seeds, seeds_per_task, version, out)
    tasks = made.missing(shard)
    of_shard = len(made.tasks[first::count])
    report = _Report(of_shard, of_shard - len(tasks), progress)
    if executor is not None:
        failed, left = _run(made, tasks, run, executor, report, _AT_ONCE)
        failed += [(task, failed[-1][1]) for task in left]
    else:
        failed = _in_processes(made, tasks, run, report)
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
    configurations = list(_configurations(space))
    named = _named(run, version)
    manifest = {
        "run": named,
        "version": [_dray.__version__, version],
        "configurations": configurations,
        "seeds": _ranges(seeds, seeds_per_task),
    }
    if files := _digests([named, configurations]):
        manifest["files"] = files
    try:
        text = json.dumps(manifest, indent=1)
    except TypeError as error:
        raise ValueError(f"values of a space are words, numbers and lists of them: {error}") from error
    # As it is read back: a tuple is a list there.
    made = Sweep(out, json.loads(text))
    if not made.tasks:
        raise ValueError("the space has no configuration")
    try:
        # Of two that begin at once one is the first.
        _write(made.out / _MANIFEST, text.encode(), os.link)
    except FileExistsError:
        if Sweep.of(out).manifest != made.manifest:
            raise SweepError(f"{out} has parts of another sweep, or files that it names have changed: name another directory, or remove it") from None
    return made


def _ranges(seeds: int | range | None, seeds_per_task: int) -> list[list[int] | None]:
    """The first seed of each task, and the one behind its last."""
    if seeds is None:
        return [None]
    if seeds_per_task < 1:
        raise ValueError("seeds_per_task is 1 or more")
    try:
        given = seeds if isinstance(seeds, range) else range(operator.index(seeds))
    except TypeError as error:
        raise ValueError(f"seeds={seeds!r}: a number or a range is possible") from error
    if given.step != 1 or not given:
        raise ValueError(f"seeds={seeds!r}: a number of 1 or more, or a range with step 1 that is not empty, is possible")
    starts = range(given.start, given.stop, seeds_per_task)
    return [[start, min(start + seeds_per_task, given.stop)] for start in starts]


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
    made: Sweep, tasks: Sequence[Task], run: Callable[..., Any], executor: Executor, report: _Report, at_once: int
) -> tuple[list[tuple[Task, BaseException]], list[Task]]:
    """Runs tasks and writes their parts: those that have failed and why, and those that a broken executor has not taken."""
    failed: list[tuple[Task, BaseException]] = []
    waiting = deque(tasks)
    running: dict[Future[bytes], Task] = {}
    broken = False
    try:
        while True:
            while waiting and not broken and len(running) < at_once:
                task = waiting.popleft()
                try:
                    running[executor.submit(_work, task, run)] = task
                except _BROKEN as error:
                    broken = True
                    failed.append((task, error))
            if not running:
                return failed, list(waiting)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running[future]
                try:
                    data = future.result()
                except Exception as error:  # noqa: BLE001: whatever a task raises, the others go on
                    failed.append((task, error))
                    del running[future]
                    continue
                _write(made.part(task), data)
                del running[future]
                report.one_more()
    except BaseException:
        for future, task in running.items():
            if not future.cancel() and future.done() and future.exception() is None:
                _write(made.part(task), future.result())
        raise


def _in_processes(made: Sweep, tasks: Sequence[Task], run: Callable[..., Any], report: _Report) -> list[tuple[Task, BaseException]]:
    """Runs tasks on processes of this machine: those that have failed, and why."""
    failed: list[tuple[Task, BaseException]] = []
    while tasks:
        with _pool(min(len(tasks), os.cpu_count() or 1)) as (pool, workers):
            ended, tasks = _run(made, tasks, run, pool, report, _PER_WORKER * workers)
        failed += [(task, error) for task, error in ended if not isinstance(error, _BROKEN)]
        # Who was killed takes the others' tasks along: alone it is killed by its own.
        for task in [task for task, error in ended if isinstance(error, _BROKEN)]:
            with _pool(1) as (pool, workers):
                _start(pool, run)
                failed += _run(made, [task], run, pool, report, workers)[0]
    return failed


@contextmanager
def _pool(workers: int) -> Iterator[tuple[ProcessPoolExecutor, int]]:
    pool = ProcessPoolExecutor(max_workers=workers, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool, workers
    except BaseException:
        # Tasks that run are not waited for.
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _started(run: Callable[..., Any]) -> None:
    pass


def _start(pool: ProcessPoolExecutor, run: Callable[..., Any]) -> None:
    """Raises SweepError if processes do not start at all, or do not find what they are to run."""
    try:
        pool.submit(_started, run).result()
    except _BROKEN as error:
        raise SweepError(
            "processes do not start: a script calls dray.sweep behind `if __name__ == \"__main__\":`, and what it runs can be imported"
        ) from error


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
        try:
            parts.append(pyarrow.parquet.read_table(found))
        except (OSError, pyarrow.ArrowInvalid) as error:
            raise SweepError(f"{found} is no part: {error}; remove it, and run the same sweep again") from error
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
