"""Ray, by hand: pip install ray, and PYTHONPATH with the package and this folder."""

import pytest

import dray
import points

ray = pytest.importorskip("ray")


def test_a_worker_is_killed(tmp_path):
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        space = {"number": list(range(8)), "kill": [str(tmp_path / "killed")]}
        made = dray.sweep(space, points.killed_once, dray.RayExecutor(), out=tmp_path / "out")
    finally:
        ray.shutdown()
    assert (tmp_path / "killed").exists()
    assert made.table["square"].to_pylist() == [n * n for n in range(8)]
