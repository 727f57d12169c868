"""The workbench for hardware data movers, Intel DSA first.

``Mover`` executes copies, fills, comparisons and checksums on a DSA of this machine, on a virtual device of this process, or
on the core, and says who did it and why. ``advise``, ``figures``, ``check``, ``micros``, ``replay`` and ``fabric.predict``
ask the model what the command ``dray`` asks it: an ``Answer`` has the command's JSON as a document and as a table of
pyarrow with units. ``sweep`` spreads points over processes or machines.
"""

from . import fabric
from ._answer import Answer, CommandError, UsageError, advise, ask, check, figures, micros, replay
from ._dray import Completion, Operation, OperationError, __version__
from ._mover import Mover
from ._platform import Platform, platforms
from ._ray import RayExecutor
from ._sweep import Sweep, SweepError, merge, sweep

__all__ = [
    "Answer",
    "CommandError",
    "Completion",
    "Mover",
    "Operation",
    "OperationError",
    "Platform",
    "RayExecutor",
    "Sweep",
    "SweepError",
    "UsageError",
    "__version__",
    "advise",
    "ask",
    "check",
    "fabric",
    "figures",
    "merge",
    "micros",
    "platforms",
    "replay",
    "sweep",
]
