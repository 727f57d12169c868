"""Platforms: the parameters of modelled machines."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _dray
from ._table import table

if TYPE_CHECKING:
    import pyarrow


def platforms() -> list[str]:
    """Names of the platforms that are part of dray."""
    return _dray.platforms()


class Platform:
    """A modelled machine: a built-in name or a platform file, with other values for some parameters.

    It stands for a platform wherever one is asked for; with other values it is written to a file first.

    >>> Platform("spr-2s", umwait_wake=200.0)["umwait_wake"]
    200.0

    Raises ValueError: no such platform or parameter, or a value outside what can be.
    """

    def __init__(self, name: str | os.PathLike[str] = "spr-2s", **values: float) -> None:
        self._base = os.fspath(name)
        self._values = {parameter: float(value) for parameter, value in values.items()}
        self._document: dict[str, Any] = json.loads(_dray.platform(self._base, list(self._values.items())))
        self._parameters = {parameter["name"]: parameter for parameter in self._document["parameters"]}
        self._file: Path | None = None

    @property
    def name(self) -> str:
        """Its name, which is in results."""
        return self._document["name"]

    @property
    def title(self) -> str:
        """One line about it."""
        return self._document["title"]

    @property
    def topology(self) -> Mapping[str, int]:
        """Sockets, devices_per_socket, cores_per_socket, cxl_nodes."""
        return dict(self._document["topology"])

    @property
    def table(self) -> pyarrow.Table:
        """The parameters: name, value, unit, range, whether it is a guess, source, meaning."""
        return table(self._document["parameters"], {"platform": self.name})

    def __getitem__(self, parameter: str) -> float:
        return self._parameters[parameter]["value"]

    def __iter__(self):
        return iter(self._parameters)

    def __contains__(self, parameter: object) -> bool:
        return parameter in self._parameters

    def parameter(self, name: str) -> Mapping[str, Any]:
        """Value, unit, low, high, guess, source and meaning of a parameter."""
        return dict(self._parameters[name])

    def replace(self, **values: float) -> Platform:
        """The same machine with other values."""
        return Platform(self._base, **{**self._values, **values})

    def to_toml(self) -> str:
        """Its file."""
        document = self._document
        lines = [f"{name} = {_text(document[name])}" for name in ("name", "title", "device")]
        lines += ["", "[topology]", *(f"{name} = {value}" for name, value in document["topology"].items())]
        for parameter in document["parameters"]:
            lines += [
                "",
                f"[parameters.{parameter['name']}]",
                f"value = {parameter['value']!r}",
                f"unit = {_text(parameter['unit'])}",
                f"range = [{parameter['low']!r}, {parameter['high']!r}]",
                f"source = {_text(parameter['source'])}",
                f"guess = {str(parameter['guess']).lower()}",
            ]
        return "\n".join(lines) + "\n"

    def __fspath__(self) -> str:
        """Its built-in name or its file."""
        if not self._values:
            return self._base
        if self._file is None:
            folder = tempfile.mkdtemp(prefix="dray-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._file = Path(folder) / "platform.toml"
            self._file.write_text(self.to_toml(), encoding="utf-8")
        return str(self._file)

    def __getstate__(self) -> tuple[str, dict[str, float]]:
        return self._base, self._values

    def __setstate__(self, state: tuple[str, dict[str, float]]) -> None:
        self.__init__(state[0], **state[1])

    def __repr__(self) -> str:
        values = "".join(f", {name}={value!r}" for name, value in self._values.items())
        return f"Platform({self._base!r}{values})"


def _text(words: str) -> str:
    # Strings of JSON are basic strings of TOML, but for DEL, which TOML wants escaped.
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")
