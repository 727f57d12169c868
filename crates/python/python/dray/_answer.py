"""Questions to the model: the command's own code, and its answer as a document and a table."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Union

from . import _dray
from ._platform import Platform
from ._table import columns, table

if TYPE_CHECKING:
    import pyarrow

Name = Union[str, "os.PathLike[str]"]
Machine = Union[str, "os.PathLike[str]", Platform]
Size = Union[int, str]


class CommandError(RuntimeError):
    """The command failed; the message is its own, with its hint."""


class UsageError(CommandError, ValueError):
    """An option or an input that cannot be."""


class Answer:
    """What the command answers.

    ``document`` is its JSON, ``rows`` are dictionaries made of it, ``table`` is the rows as a table of pyarrow, ``notes`` is
    what the command says on standard error.
    """

    def __init__(self, words: Sequence[str], text: str, notes: Sequence[str]) -> None:
        self.words = tuple(words)
        self.text = text
        self.document: dict[str, Any] = json.loads(text)
        self.notes = tuple(notes)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The document as rows."""
        return [dict(row) for row in _rows(self.words, self.document)]

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """The rows as columns."""
        return columns(self.rows)

    @cached_property
    def table(self) -> pyarrow.Table:
        """The rows; ``field.metadata[b"unit"]`` has the unit, the schema's metadata the command line and the notes.

        Raises ImportError without pyarrow.
        """
        metadata = {"dray": _dray.__version__, "command": json.dumps(self.words), "notes": json.dumps(self.notes)}
        return table(self.rows, metadata)

    def __repr__(self) -> str:
        return f"<Answer of dray {' '.join(self.words[:4])}: {len(self.rows)} rows>"


def ask(*words: str) -> Answer:
    """What ``dray WORDS --format json`` prints, to the last bit.

    Commands that ask the model are possible: ``figures``, ``advise``, ``micros``, ``replay``, ``fidelity`` and those of
    ``fabric``. Raises UsageError for a question that cannot be, CommandError for one that failed.
    """
    # Before `--`, behind which are files.
    end = words.index("--") if "--" in words else len(words)
    output, error, code = _dray.answer([*words[:end], "--format=json", *words[end:]])
    if code == 2:
        raise UsageError(error.removeprefix("error: ").strip())
    if code != 0:
        raise CommandError(error.removeprefix("error: ").strip())
    for line in error.splitlines():
        if line.startswith("warning: "):
            warnings.warn(line.removeprefix("warning: "), stacklevel=3)
    notes = [line.removeprefix("note: ") for line in error.splitlines()]
    try:
        return Answer(words, output, notes)
    except json.JSONDecodeError as error:
        raise UsageError(f"{' '.join(words)}: the command prints text for it, no document") from error


def words(options: Mapping[str, Any]) -> list[str]:
    """Options of Python as options of the command: ``placement="llc"`` is ``--placement=llc``.

    A sequence is a list with commas, a mapping ``NAME=VALUE`` once for each, True an option without a value; None and False
    are left out.
    """
    found: list[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            found.append(flag)
        elif isinstance(value, Mapping):
            found += [f"{flag}={key}={_listed(part)}" for key, part in value.items()]
        else:
            found.append(f"{flag}={_listed(value)}")
    return found


def _listed(value: Any) -> str:
    if isinstance(value, (str, os.PathLike, Platform)):
        return os.fspath(value)
    if isinstance(value, Iterable):
        return ",".join(_listed(part) for part in value)
    return str(value)


def advise(
    *,
    op: str = "memmove",
    size: Size,
    depth: int | None = None,
    batch: int = 1,
    placement: str = "dram",
    access: str = "streaming",
    core: str = "user",
    src_node: str = "local",
    dst_node: str = "local",
    platform: Machine = "spr-2s",
    config: Name | None = None,
) -> Answer:
    """Say whether one case is worth offloading, and from which size on: ``dray advise``.

    A row for each depth: throughput (GB/s), times (ns) of the device and of one core with their 90 % intervals, the verdict.
    """
    return ask("advise", *words(locals()))


def figures(
    *,
    only: Sequence[str] | str | None = None,
    set: Mapping[str, Any] | None = None,
    platform: Machine = "spr-2s",
    config: Name | None = None,
    protocol: str = "paper",
    move_bytes: bool = False,
    intervals: bool = False,
    jobs: int = 0,
    out: Name | None = None,
) -> Answer:
    """Run experiments in modelled time: ``dray figures``. A row for each point: its parameters and its metrics.

    ``out`` keeps the report, and the points of a run that was stopped; without it they go to a temporary directory.
    """
    options = dict(locals())
    if out is not None:
        return ask("figures", *words(options))
    with tempfile.TemporaryDirectory(prefix="dray-") as there:
        return ask("figures", *words({**options, "out": there}))


def check(*, platform: Machine = "spr-2s", leave_out: bool = False, coverage: bool = False) -> Answer:
    """Put the model beside every published number: ``dray figures --check``. A row for each number."""
    return ask("figures", "--check", *words(locals()))


# dsa_perf_micros's letters.
_MICROS = {
    "op": "-o", "size": "-s", "buffers": "-n", "batch": "-b", "queue_depth": "-q", "iterations": "-i", "stride": "-t",
    "cpus": "-k", "placement": "-z", "misc": "-x",
}  # fmt: skip


def micros(
    *,
    op: str | int = 3,
    size: Size = "4k",
    buffers: int = 32,
    batch: int = 1,
    queue_depth: int | None = None,
    iterations: int = 1000,
    stride: Size | None = None,
    cpus: str | None = None,
    shared: bool | None = None,
    placement: str | None = None,
    cache_control: bool = False,
    misc: str | None = None,
    core: bool = False,
    platform: Machine = "spr-2s",
    config: Name | None = None,
    flags: Sequence[str] = (),
) -> Answer:
    """Model what dsa_perf_micros measures: ``dray micros``. One row.

    ``core`` has a core of the platform do the work. ``flags`` are further flags of the command, as ``"-S0,1"``.
    """
    given = locals()
    found = [f"{letter}{given[name]}" for name, letter in _MICROS.items() if given[name] is not None]
    found += [f"-w{int(shared)}"] if shared is not None else []
    found += ["-f"] if cache_control else []
    found += ["-m"] if core else []
    return ask("micros", *found, *flags, *words({"platform": platform, "config": config}))


def replay(
    file: Name,
    *,
    platform: Machine = "spr-2s",
    config: Sequence[Name] | Name | None = None,
    set: Mapping[str, float] | None = None,
    by: Sequence[str] | str | None = None,
    threshold: Sequence[Size] | Size | None = None,
    window: Sequence[int] | int | None = None,
    wait: Sequence[str] | str | None = None,
    batch: Sequence[int] | int | None = None,
    order: str | None = None,
    think: str | None = None,
    placement: str | None = None,
    requests: int | None = None,
) -> Answer:
    """Replay a recorded program on a modelled machine: ``dray replay``. A row for each way that it is carried out."""
    options = dict(locals())
    del options["file"]
    return ask("replay", *words(options), "--", os.fspath(file))


def _rows(words: Sequence[str], document: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The rows of a command's document."""
    if words[0] == "advise":
        return [_advised(case) for case in document.get("depths", [document])]
    if words[0] == "figures" and "--check" in words:
        return [
            {"table": table["id"], "unit": table["unit"], **point, "error_unit": table["error_unit"]}
            for table in document["tables"]
            for point in table["points"]
        ]
    if words[0] == "figures" and "--list" not in words:
        return [
            {
                "figure": figure["experiment"],
                **outcome["point"],
                **outcome["metrics"],
                "provenance": outcome["provenance"],
                "executor": outcome["executor"],
            }
            for figure in document["figures"]
            for outcome in figure["outcomes"]
        ]
    if words[:2] == ("fabric", "predict"):
        return [
            {
                **{name: value for name, value in flow.items() if name not in ("estimates", "path")},
                "path": flow["path"],
                "estimator": estimator,
                **estimate,
            }
            for flow in document["flows"]
            for estimator, estimate in flow["estimates"].items()
        ]
    if "rows" in document:
        return document["rows"]
    lists = [value for value in document.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
    return lists[0] if len(lists) == 1 else [document]


def _advised(case: Mapping[str, Any]) -> dict[str, Any]:
    """One case of advice as a row."""
    row = {("size" if name == "size_bytes" else name): value for name, value in case["case"].items()}
    for side in ("dsa", "core"):
        for metric, value in case[side]["metrics"].items():
            low, high = case[side]["intervals_90"][metric]
            row[f"{side}_{metric}"] = value
            row[f"{side}_low_{metric}"] = low
            row[f"{side}_high_{metric}"] = high
    for name in ("verdict", "break_even_bytes", "core_break_even_bytes", "dominant_parameter"):
        row[name] = case[name]
    return row
