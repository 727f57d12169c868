"""Sweeps: however they are divided, resumed and killed, the same file comes out."""

import hashlib
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy
import pyarrow.parquet
import pytest

import dray
import points

SPACE = {"name": ["one", "two", "three"], "number": [1, 2, 3]}


class Here(Executor):
    """Runs each task when it is submitted."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def merged(tmp_path, name, shards, killed=None):
    """The sha256 of a sweep in so many shards, of which one is ended in its midst and started again."""
    out = tmp_path / name
    for shard in range(shards):
        if shard == killed:
            with pytest.raises(dray.SweepError, match="have failed"):
                dray.sweep(SPACE, points.thirds, points.Ends(after=1), out=out, shard=(shard, shards))
        before = {part: part.stat().st_mtime_ns for part in out.glob("parts/*.parquet")}
        dray.sweep(SPACE, points.thirds, Here(), out=out, shard=(shard, shards))
        # What was done is not done again.
        assert before.items() <= {part: part.stat().st_mtime_ns for part in out.glob("parts/*.parquet")}.items()
    file = tmp_path / f"{name}.parquet"
    digest = dray.merge(out, file)
    assert digest == hashlib.sha256(file.read_bytes()).hexdigest()
    return digest


def test_shards_merge_to_the_same_file(tmp_path):
    digests = {merged(tmp_path, f"s{shards}", shards, killed) for shards, killed in ((1, None), (2, 1), (7, 0))}
    assert len(digests) == 1
    table = pyarrow.parquet.read_table(tmp_path / "s7.parquet")
    assert table["name"].to_pylist() == [name for name in SPACE["name"] for _ in range(3)]
    assert table["third_ns"].to_pylist() == [1 / 3, 2 / 3, 1.0] * 3
    assert table.schema.field("third_ns").metadata[b"unit"] == b"ns"


def test_processes_of_this_machine_one_of_which_is_killed(tmp_path):
    space = {"number": list(range(6)), "kill": [str(tmp_path / "killed")]}
    made = dray.sweep(space, points.killed_once, out=tmp_path / "own")
    assert (tmp_path / "killed").exists()
    assert made.table["square"].to_pylist() == [0, 1, 4, 9, 16, 25]


def test_a_task_that_always_kills_its_process_fails_alone(tmp_path):
    space = {"number": list(range(12)), "victim": [3]}
    with pytest.raises(dray.SweepError, match=r"1 of 12 .*'number': 3"):
        dray.sweep(space, points.killed, out=tmp_path / "out")
    assert [task.configuration["number"] for task in dray.Sweep.of(tmp_path / "out").missing()] == [3]


def test_a_script_without_a_guard_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import dray\ndray.sweep({'op': ['copy', 'fill'], 'size': [4096], 'depth': [1]}, dray.advise, out='out')\n")
    ended = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert "SweepError: processes do not start" in ended.stderr and "__main__" in ended.stderr


class Interrupted(Executor):
    """Has Ctrl-C pressed while its third task is under way; a fourth waits."""

    def __init__(self):
        self.futures = []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        self.futures.append(future)
        if len(self.futures) <= 2:
            future.set_result(fn(*args, **kwargs))
        if len(self.futures) == 4:
            raise KeyboardInterrupt
        return future


def test_ctrl_c_keeps_what_has_ended(tmp_path):
    executor = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        dray.sweep({"number": [0, 1, 2, 3]}, points.square, executor, out=tmp_path / "out")
    assert [task.configuration["number"] for task in dray.Sweep.of(tmp_path / "out").missing()] == [2, 3]
    assert executor.futures[2].cancelled()


def test_ctrl_c_does_not_wait_for_what_is_queued(tmp_path):
    def progress(done, total, left):
        if done == 1:
            raise KeyboardInterrupt

    space = {"number": list(range(2000))}
    with pytest.raises(KeyboardInterrupt):
        dray.sweep(space, points.square, out=tmp_path / "out", progress=progress)
    assert len(dray.Sweep.of(tmp_path / "out").missing()) > 1900


def test_an_exception_of_progress_ends_the_sweep(tmp_path):
    with pytest.raises(ZeroDivisionError):
        dray.sweep({"number": [1, 2]}, points.square, Here(), out=tmp_path / "out", progress=lambda done, *_: 1 // (1 - done))
    # It is not the task's.
    assert len(dray.Sweep.of(tmp_path / "out").missing()) == 0


def test_a_part_that_cannot_be_written_ends_the_sweep(tmp_path):
    (tmp_path / "parts").write_text("in the way")
    with pytest.raises(OSError):
        dray.sweep({"number": [1, 2]}, points.square, Here(), out=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts", "sweep.json"]
    dray.sweep({"number": [1]}, points.square, Here(), out=tmp_path / "out")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        dray.merge(tmp_path / "out", tmp_path / "folder")
    assert not list(tmp_path.glob(".part-*"))


def test_a_name_says_what_a_result_depends_on(tmp_path):
    file = tmp_path / "input"
    file.write_text("one")
    space = {"file": [str(file)]}
    keys = set()
    for out, run in (("a", points.of_file), ("b", partial(points.of_file, number=1)), ("c", partial(points.of_file, number=2))):
        keys.add(dray.sweep(space, run, Here(), out=tmp_path / out).tasks[0].key)
    file.write_text("two")
    with pytest.raises(dray.SweepError, match="files that it names have changed"):
        dray.sweep(space, points.of_file, Here(), out=tmp_path / "a")
    keys.add(dray.sweep(space, points.of_file, Here(), out=tmp_path / "d").tasks[0].key)
    assert len(keys) == 4

    def inner(number):
        return points.square(number)

    for run in (inner, lambda number: points.square(number), partial(inner), "text".join):
        with pytest.raises(ValueError, match="version|function"):
            dray.sweep({"number": [1]}, run, Here(), out=tmp_path / "never")
    assert not (tmp_path / "never").exists()
    dray.sweep({"number": [1]}, inner, Here(), out=tmp_path / "versioned", version="1")


def test_a_part_that_was_cut_short_is_run_again(tmp_path):
    space = {"number": [1, 2]}
    made = dray.sweep(space, points.square, Here(), out=tmp_path / "out")
    part = made.part(made.tasks[0])
    data = part.read_bytes()
    part.write_bytes(data[:-5])
    assert made.missing() == [made.tasks[0]]
    with pytest.raises(dray.SweepError, match=part.name):
        dray.merge(tmp_path / "out", tmp_path / "merged.parquet")
    dray.sweep(space, points.square, Here(), out=tmp_path / "out")
    assert part.read_bytes() == data


@pytest.mark.parametrize("seeds", [0, range(0), range(0, 10, 2), range(10, 0, -1), 1.5, "ten"])
def test_seeds_that_cannot_be(tmp_path, seeds):
    with pytest.raises(ValueError, match="seeds="):
        dray.sweep({"scale": [1]}, points.of_seeds, Here(), out=tmp_path / "out", seeds=seeds)
    made = dray.sweep({"scale": [1]}, points.of_seeds, Here(), out=tmp_path / "out", seeds=numpy.int64(3))
    assert made.table["seed"].to_pylist() == [0, 1, 2]


def test_a_task_that_fails_keeps_no_other_from_being_done(tmp_path):
    with pytest.raises(dray.SweepError, match=r"1 of 4 .*'number': 2.*two is refused"):
        dray.sweep({"number": [0, 1, 2, 3]}, points.refuses_two, Here(), out=tmp_path / "out")
    made = dray.Sweep.of(tmp_path / "out")
    assert [task.configuration["number"] for task in made.missing()] == [2]
    with pytest.raises(dray.SweepError, match="1 of 4 parts are missing"):
        dray.merge(tmp_path / "out", tmp_path / "merged.parquet")


def test_seeds_go_in_ranges(tmp_path):
    made = dray.sweep({"scale": [1, 10]}, points.of_seeds, ThreadPoolExecutor(2), out=tmp_path / "out", seeds=25, seeds_per_task=10)
    assert len(made.tasks) == 6
    assert made.table["seed"].to_pylist() == list(range(25)) * 2


def test_a_directory_keeps_to_one_sweep(tmp_path):
    out = tmp_path / "out"
    dray.sweep({"number": [1]}, points.square, Here(), out=out)
    for space, version in (({"number": [2]}, ""), ({"number": [1]}, "other")):
        with pytest.raises(dray.SweepError, match="another sweep"):
            dray.sweep(space, points.square, Here(), out=out, version=version)
    with pytest.raises(dray.SweepError, match="has no sweep"):
        dray.merge(tmp_path, tmp_path / "merged.parquet")
    for space, words in (({}, {"shard": (2, 2)}), ({"number": []}, {}), ({"number": [object()]}, {})):
        with pytest.raises(ValueError):
            dray.sweep(space, points.square, Here(), out=tmp_path / "never", **words)


def test_what_is_left_is_said(tmp_path):
    said = []
    dray.sweep({"number": [1, 2]}, points.square, Here(), out=tmp_path / "out", progress=lambda *words: said.append(words))
    assert [words[:2] for words in said] == [(0, 2), (1, 2), (2, 2)]
    assert said[0][2] is None and said[2][2] == 0


def test_the_command(tmp_path):
    file = tmp_path / "space.toml"
    file.write_text('run = "dray:advise"\n[space]\nop = ["copy", "fill"]\nsize = [4096]\ndepth = [1]\n')
    module = [sys.executable, "-m", "dray"]

    def run(*words):
        return subprocess.run([*module, *map(str, words)], capture_output=True, text=True, timeout=120)

    for shard in ("1/2", "2/2"):
        assert run("sweep", file, "--out", tmp_path / "out", "--shard", shard).returncode == 0
    table = dray.Sweep.of(tmp_path / "out").table
    assert table["dsa_throughput_gbps"][1].as_py() == dray.advise(op="fill", size=4096, depth=1).rows[0]["dsa_throughput_gbps"]
    ended = run("merge", tmp_path / "out", "--into", tmp_path / "merged.parquet")
    assert ended.stdout.strip() == hashlib.sha256((tmp_path / "merged.parquet").read_bytes()).hexdigest()
    assert run("sweep", tmp_path / "no.toml", "--out", tmp_path / "x").returncode == 1
    file.write_text('run = "dray:advice"\n[space]\nop = ["copy"]\n')
    assert run("sweep", file, "--out", tmp_path / "y").returncode == 2


def test_dask_with_a_worker_that_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed", reason="by hand: pip install distributed")
    folder = str(Path(points.__file__).parent)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(sys.path.insert, 0, folder)
        space = {"number": list(range(8)), "kill": [str(tmp_path / "killed")]}
        made = dray.sweep(space, points.killed_once, client.get_executor(), out=tmp_path / "out")
    assert (tmp_path / "killed").exists()
    assert made.table["square"].to_pylist() == [n * n for n in range(8)]
