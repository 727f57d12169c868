"""Rows as tables of pyarrow, with units."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

# What a column's name ends with, the longest first, and its unit.
_ENDINGS = {
    "_gib_s": "GiB/s",
    "_per_sec": "1/s",
    "_bytes": "B",
    "_gbps": "GB/s",
    "_percent": "%",
    "_ns": "ns",
    "_us": "us",
    "_ms": "ms",
    "_s": "s",
}
# Columns whose name says none.
_NAMED = {"gb_per_sec": "GB/s", "gib_s": "GiB/s", "kopsrate": "1000/s", "size": "B", "threshold": "B", "latency_cycles": "cycles"}


def unit(column: str) -> str | None:
    """The unit of a column's numbers; None: they have none, or are words."""
    if column in _NAMED:
        return _NAMED[column]
    return next((unit for ending, unit in _ENDINGS.items() if column.endswith(ending)), None)


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The columns of rows, in the order in which rows first name them; None where a row has none.

    A column with words and numbers is one of words.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    found = {name: [row.get(name) for row in rows] for name in names}
    for name, values in found.items():
        if any(isinstance(value, str) for value in values):
            found[name] = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        elif any(isinstance(value, float) for value in values):
            found[name] = [float(value) if isinstance(value, int) else value for value in values]
    return found


def table(rows: Sequence[Mapping[str, Any]], metadata: Mapping[str, str]) -> pyarrow.Table:
    """The rows; a field's metadata has its ``unit``."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("tables need pyarrow: pip install dray[arrow]") from error
    found = columns(rows)
    arrays = [pyarrow.array(values) for values in found.values()]
    fields = [
        pyarrow.field(name, array.type, metadata={"unit": unit(name)} if unit(name) else None)
        for name, array in zip(found, arrays)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields, metadata=dict(metadata)))
