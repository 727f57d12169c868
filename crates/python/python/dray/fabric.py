"""PCIe fabrics: topologies, and what flows get."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from ._answer import Answer, Name, ask, words
from ._table import table

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Topology", "predict"]


class Topology:
    """A fabric: a topology file or a built-in name (local, testbed, validation, fat-tree, gpu8).

    Raises UsageError: no such topology, or a file that is none.
    """

    def __init__(self, name: Name) -> None:
        self._name = os.fspath(name)
        self._answer = ask("fabric", "show", "--", self._name)

    @property
    def name(self) -> str:
        """Its name, which is in results."""
        return self._answer.document["topology"]

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The nodes: name, kind, host, device, forward_ns."""
        return self._answer.document["nodes"]

    @property
    def links(self) -> list[dict[str, Any]]:
        """The links: ends, generation, width, capacities in GiB/s each way."""
        return self._answer.document["links"]

    @property
    def table(self) -> pyarrow.Table:
        """The links."""
        flat = [
            {
                **{name: value for name, value in link.items() if name not in ("down", "up")},
                **{f"{way}_gib_s": (link[way] or {}).get("gib_s") for way in ("down", "up")},
            }
            for link in self.links
        ]
        return table(flat, {"topology": self.name})

    def __fspath__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"Topology({self._name!r})"


Flows = Union[Name, Sequence[Mapping[str, Any]]]


def predict(
    topology: Name | Topology,
    flows: Flows,
    *,
    estimator: Sequence[str] | str | None = None,
    verify: bool = False,
    arbiter: str | None = None,
    queues: str | None = None,
) -> Answer:
    """Predict what each flow gets, and which edge limits it: ``dray fabric predict``. Rates are GiB/s of payload.

    ``flows`` is a file, or flows with the keys of one: ``{"from": "host", "to": "C", "demand_gib_s": 8.5}``. A row for each flow
    and estimator.
    """
    options = {"estimator": estimator, "verify": verify, "arbiter": arbiter, "queues": queues}
    if isinstance(flows, (str, os.PathLike)):
        return ask("fabric", "predict", *words({"topology": topology, "flows": flows, **options}))
    with tempfile.TemporaryDirectory(prefix="dray-") as there:
        file = Path(there) / "flows.toml"
        file.write_text("".join(_flow(flow) for flow in flows), encoding="utf-8")
        return ask("fabric", "predict", *words({"topology": topology, "flows": file, **options}))


def _flow(flow: Mapping[str, Any]) -> str:
    # Strings, numbers and lists of them are the same in JSON and in TOML.
    return "[[flow]]\n" + "".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in flow.items()) + "\n"
