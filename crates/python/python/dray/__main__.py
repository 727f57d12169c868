"""``python -m dray sweep FILE --shard i/n`` and ``python -m dray merge``: sweeps from a shell."""

from __future__ import annotations

import argparse
import importlib
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import SweepError, merge, sweep

_EXAMPLE = """\
A file says what is run, and for which values:
  run = "dray:advise"            a function, MODULE:NAME
  version = "1"                  of its code; results of another are not taken for its own
  seeds = 1000                   optional: seeds from 0 on, for functions that take them
  seeds_per_task = 100
  [space]
  op = ["copy", "fill"]          a list for each name
  size = [4096, 16384]

Examples:
  python -m dray sweep space.toml --out results
  python -m dray sweep space.toml --out results --shard 2/7
  python -m dray merge results --into results.parquet

Shards are counted from 1. The same command goes on where it was stopped.
Exit codes: 0 ok, 1 failed, 2 usage or bad input."""


def _shard(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    shard = int(number) - 1, int(count)
    if not 0 <= shard[0] < shard[1]:
        raise ValueError
    return shard


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _progress(done: int, total: int, left: float | None) -> None:
    said = "" if left is None else f", about {left:.0f} s left"
    print(f"{done} of {total} tasks{said}", file=sys.stderr)


def _sweep(arguments: argparse.Namespace) -> None:
    sys.path.insert(0, str(arguments.file.resolve().parent))
    asked = tomllib.loads(arguments.file.read_text(encoding="utf-8"))
    space, run = asked.pop("space"), _function(asked.pop("run"))
    sweep(space, run, out=arguments.out, shard=arguments.shard, progress=_progress, **asked)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; its exit code."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m dray", description=__doc__, epilog=_EXAMPLE, formatter_class=form)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("sweep", help="run the tasks of a file that are not done")
    run.add_argument("file", type=Path, metavar="FILE")
    run.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the parts")
    run.add_argument("--shard", type=_shard, default=(0, 1), metavar="I/N", help="each Nth task from the Ith on")
    merged = commands.add_parser("merge", help="write all parts into one file, and print its sha256")
    merged.add_argument("out", nargs="+", type=Path, metavar="DIR")
    merged.add_argument("--into", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args(words)
    try:
        if arguments.command == "sweep":
            _sweep(arguments)
        else:
            print(merge(arguments.out, arguments.into))
    except (SweepError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        print(f"error: {arguments.file if arguments.command == 'sweep' else 'merge'}: {error!r}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
