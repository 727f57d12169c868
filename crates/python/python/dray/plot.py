"""Pictures of answers with matplotlib, in the style of the report's pictures for a paper."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._answer import Answer
from ._table import columns, unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLUMN", "PAGE", "lines", "save", "style"]

# Inches: one column of two, and both.
COLUMN = 252 / 72
PAGE = 516 / 72

# Those of the report (crates/report/src/paint.rs): people of all colour vision tell them apart.
_HUES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6e6e6e", "#000000"]
_MARKERS = "osD^v<>*"
_INK, _GRID = "#222222", "#e2e4e8"


def style(width: float = COLUMN) -> dict[str, Any]:
    """Parameters of matplotlib for a picture so many inches wide: ``with matplotlib.rc_context(style()):``.

    Raises ImportError without matplotlib.
    """
    from cycler import cycler

    return {
        "figure.figsize": (width, width * (0.6 if width < 5 else 0.36)),
        "figure.constrained_layout.use": True,
        "font.size": 7.7,
        "axes.titlesize": 8.4,
        "axes.labelsize": 7.7,
        "xtick.labelsize": 7.35,
        "ytick.labelsize": 7.35,
        "legend.fontsize": 7,
        "legend.frameon": False,
        "axes.edgecolor": _INK,
        "axes.labelcolor": _INK,
        "text.color": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": _GRID,
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "lines.linewidth": 1.2,
        "lines.markersize": 3,
        "axes.prop_cycle": cycler(color=_HUES) + cycler(marker=list(_MARKERS)),
        # Type 3 fonts are refused by publishers.
        "pdf.fonttype": 42,
        "svg.hashsalt": "dray",
    }


def _label(column: str) -> str:
    """A column's name and unit for an axis."""
    of = unit(column)
    ending = {"GB/s": "_gbps", "GiB/s": "_gib_s", "ns": "_ns", "us": "_us", "B": "_bytes", "%": "_percent"}.get(of or "", "")
    words = column.removesuffix(ending).replace("_", " ")
    return f"{words} ({of})" if of else words


def lines(
    answer: Answer | Sequence[dict[str, Any]],
    *,
    x: str,
    y: str,
    by: Sequence[str] = (),
    low: str | None = None,
    high: str | None = None,
    width: float = COLUMN,
    axes: Axes | None = None,
) -> Axes:
    """Draw column ``y`` over column ``x``, a line for each combination of the columns ``by``.

    Sizes are on a logarithmic axis. ``low`` and ``high`` are columns of an interval, which is shaded. Rows without ``x`` or ``y``
    are left out. Raises KeyError for a column that there is not, ImportError without matplotlib.
    """
    import matplotlib
    from matplotlib import pyplot

    rows = answer.rows if isinstance(answer, Answer) else list(answer)
    names = columns(rows)
    for name in (x, y, *by, *filter(None, (low, high))):
        if name not in names:
            raise KeyError(f"no column {name}: {', '.join(names)}")
    series: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row.get(x) is not None and row.get(y) is not None:
            series.setdefault(tuple(row.get(name) for name in by), []).append(row)
    with matplotlib.rc_context(style(width)):
        if axes is None:
            axes = pyplot.figure().add_subplot()
        for key, points in series.items():
            points.sort(key=lambda row: row[x])
            along = [row[x] for row in points]
            (line,) = axes.plot(along, [row[y] for row in points], label=", ".join(map(str, key)))
            if low and high:
                ends = [row[low] for row in points], [row[high] for row in points]
                axes.fill_between(along, *ends, color=line.get_color(), alpha=0.15, linewidth=0)
        if unit(x) == "B":
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(_bytes)
        axes.set_xlabel(_label(x))
        axes.set_ylabel(_label(y))
        axes.set_ylim(bottom=0)
        if by:
            axes.legend()
    return axes


def _bytes(value: float, _position: object = None) -> str:
    for power, name in ((30, "G"), (20, "M"), (10, "K")):
        if value >= 1 << power:
            return f"{value / (1 << power):g}{name}"
    return f"{value:g}"


def save(axes: Axes, file: str | os.PathLike[str]) -> None:
    """Write the picture as its file's ending says: .pdf, .svg or .png. The same picture gives the same bytes."""
    import matplotlib

    figure = axes.get_figure()
    ending = os.fspath(file).rpartition(".")[2].lower()
    dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(ending, {})
    with matplotlib.rc_context(style()):
        figure.savefig(file, dpi=300, metadata=dated)
