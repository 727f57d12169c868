"""Answers are those of the command, to the last bit."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow
import pytest

import dray
from dray import _dray, plot

ROOT = Path(os.environ["DRAY_ROOT"])
FLOWS = [
    {"from": "host", "to": "C", "demand_gib_s": 8.51, "name": "first"},
    {"from": "A", "to": "C", "outstanding_bytes": 16384},
]


def command(*words):
    ran = subprocess.run([os.environ["DRAY"], *words], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A program's copies."""
    file = tmp_path_factory.mktemp("recording") / "calls.rec"
    script = "for n in range(20): bytes(bytearray(1 << 18))"
    command("offload", "--record", str(file), "--", "/usr/bin/python3", "-c", script)
    return file


def unit(table, column):
    return (table.schema.field(column).metadata or {}).get(b"unit")


def test_advice(tmp_path):
    answer = dray.advise(op="copy", size="16k")
    assert answer.text == command("advise", "--op", "copy", "--size", "16k", "--format", "json")
    assert answer.columns["depth"] == [1, 4, 16, 64]
    table = answer.table
    assert unit(table, "dsa_throughput_gbps") == b"GB/s"
    assert unit(table, "core_high_latency_ns") == b"ns"
    assert unit(table, "size") == b"B"
    case = answer.document["depths"][2]
    assert table["dsa_throughput_gbps"][2].as_py() == case["dsa"]["metrics"]["throughput_gbps"]
    one = dray.advise(op="crc", size=4096, depth=32, placement="llc", config="4e1w-s")
    words = "advise --op crc --size 4096 --depth 32 --placement llc --config 4e1w-s --format json"
    assert one.text == command(*words.split())
    assert len(one.rows) == 1
    assert json.loads(table.schema.metadata[b"command"])[0] == "advise"


def test_figures(tmp_path):
    answer = dray.figures(only="fig2", set={"size": [4096, 65536]})
    words = f"figures --only fig2 --set size=4096,65536 --out {tmp_path}/report --format json"
    assert answer.text == command(*words.split())
    outcomes = answer.document["figures"][0]["outcomes"]
    assert answer.table.num_rows == len(outcomes) > 0
    assert answer.table["throughput_gbps"].to_pylist() == [one["metrics"]["throughput_gbps"] for one in outcomes]
    axes = plot.lines(answer, x="size", y="throughput_gbps", by=["mode"])
    assert axes.get_xlabel() == "size (B)" and axes.get_ylabel() == "throughput (GB/s)"
    plot.save(axes, tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_the_check():
    answer = dray.check()
    assert answer.text == command("figures", "--check", "--format", "json")
    tables = answer.document["tables"]
    assert answer.table.num_rows == sum(len(table["points"]) for table in tables)


def test_micros():
    answer = dray.micros(size="4k", buffers=128, queue_depth=16, placement="F,F", cache_control=True, shared=False)
    words = ["micros", "-o3", "-s4k", "-n128", "-b1", "-q16", "-i1000", "-zF,F", "-w0", "-f", "--platform=spr-2s"]
    assert answer.text == command(*words, "--format=json")
    assert unit(answer.table, "gb_per_sec") == b"GB/s"
    assert dray.micros(core=True, size=4096).document["gb_per_sec"] > 0


def test_a_fabric(tmp_path):
    answer = dray.fabric.predict("validation", FLOWS)
    file = tmp_path / "flows.toml"
    file.write_text(
        '[[flow]]\nfrom = "host"\nto = "C"\ndemand_gib_s = 8.51\nname = "first"\n'
        '[[flow]]\nfrom = "A"\nto = "C"\noutstanding_bytes = 16384\n'
    )
    words = ["fabric", "predict", "--topology", "validation", "--flows", str(file), "--format", "json"]
    assert answer.text == command(*words) == dray.fabric.predict(dray.fabric.Topology("validation"), file).text
    assert unit(answer.table, "gib_s") == b"GiB/s"
    assert set(answer.columns["estimator"]) == set(answer.document["flows"][0]["estimates"])


def test_a_replay(recording):
    answer = dray.replay(recording, threshold=["64k", "256k"], wait=["umwait"], config="4e1w-d", set={"umwait_wake": 200})
    words = ["replay", str(recording), "--threshold=64k,256k", "--wait=umwait", "--config=4e1w-d", "--set=umwait_wake=200"]
    assert answer.text == command(*words, "--format=json")
    assert unit(answer.table, "run_ns") == b"ns"
    assert answer.document["verdict"]["sentences"]
    # A platform as an object is the same machine.
    platform = dray.Platform("spr-2s", umwait_wake=200)
    other = dray.replay(recording, threshold=["64k", "256k"], wait="umwait", config="4e1w-d", platform=platform)
    assert other.document == answer.document


def test_platforms_and_topologies_are_objects():
    assert "spr-2s" in dray.platforms()
    platform = dray.Platform("spr-2s")
    name = "umwait_wake"
    parameter = platform.parameter(name)
    assert parameter["low"] <= platform[name] <= parameter["high"]
    assert platform.table.num_rows == len(list(platform))
    changed = platform.replace(**{name: 150.0})
    assert dray.Platform(changed)[name] == 150.0 and platform[name] == parameter["value"]
    assert json.loads(_dray.platform(os.fspath(changed), [])) == changed._document
    with pytest.raises(ValueError, match="umwait_wake"):
        dray.Platform("spr-2s", umwait_wak=1.0)
    with pytest.raises(ValueError):
        dray.Platform("spr-3s")
    topology = dray.fabric.Topology("gpu8")
    assert topology.nodes and unit(topology.table, "down_gib_s") == b"GiB/s"


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: dray.advise(size="many"), "many"),
        (lambda: dray.advise(op="copi", size="4k"), "hint:"),
        (lambda: dray.advise(size="4k", config="no-such"), "no-such"),
        (lambda: dray.figures(only="fig99"), "fig99"),
        (lambda: dray.figures(set={"sise": 4}), "sise"),
        (lambda: dray.replay("/dev/null"), "/dev/null"),
        (lambda: dray.replay("--help"), "--help"),
        (lambda: dray.fabric.predict("validation", [{"from": "host"}]), "to"),
        (lambda: dray.fabric.predict("validation", [{"from": "host", 'to" = 1\n[[x]]\n"': "C"}]), "to"),
        (lambda: dray.fabric.Topology("nowhere"), "nowhere"),
        (lambda: dray.ask("bench"), "no answer"),
        (lambda: dray.ask("advise", "--measure-cpu", "--size", "4k"), "no answer"),
        (lambda: dray.ask(), "--format"),
        (lambda: dray.ask("--help"), "no document"),
        (lambda: dray.ask("advise", "--help"), "no document"),
    ],
)
def test_questions_that_cannot_be(ask, said):
    with pytest.raises(dray.UsageError, match=said):
        ask()


def test_ctrl_c_ends_one_answer_and_no_other(tmp_path):
    script = """
import os, signal, sys, threading, dray
ended = []
other = threading.Thread(target=lambda: ended.append(dray.figures(only="fig2")))
other.start()
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        dray.figures(out=sys.argv[1])
except KeyboardInterrupt:
    pass
other.join()
print(len(ended), dray.figures(only="fig2").rows == ended[0].rows)
"""
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout) == (0, "1 True\n"), ended.stderr


def test_threads_ask_at_once():
    sizes = [1024 << n for n in range(6)]
    alone = [dray.advise(size=size, depth=4).text for size in sizes]
    together = [None] * len(sizes)

    def work(index):
        together[index] = dray.advise(size=sizes[index], depth=4).text

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(sizes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
    assert isinstance(dray.advise(size=1024, depth=1).table, pyarrow.Table)
