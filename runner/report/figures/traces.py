"""Lines, areas and error bars of Matplotlib axes as traces of plotly.js."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Chart = dict[str, Any]
Handles = Sequence[tuple[str, "Artist"]]  # names and artists of a legend
DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
SYMBOLS = dict(
    zip(
        "osD^vP*X.",
        [
            "circle",
            "square",
            "diamond",
            "triangle-up",
            "triangle-down",
            "cross",
            "star",
            "x",
            "circle",
        ],
        strict=True,
    )
)
MOST_POINTS = 20_000  # largest number of points in a panel; longer lines are thinned
FEWEST = 20
LONGEST = 300  # number of points of a thinned line
ROUNDING = 1e-9  # relative length below which an error bar counts as zero


def plain(text: str) -> str:
    """Convert text for plotly: mathematics between dollar signs becomes Unicode, mark-up is escaped."""

    def letters(found: re.Match[str]) -> str:
        def letter(name: re.Match[str]) -> str:
            try:
                return unicodedata.lookup(f"GREEK SMALL LETTER {name.group(1)}")
            except KeyError:
                return name.group(1)

        return re.sub(r"\\([A-Za-z]+)", letter, found.group(1)).replace("{", "").replace("}", "")

    return re.sub(r"\$([^$]*)\$", letters, text).replace("&", "&amp;").replace("<", "&lt;")


def numbers(values: Iterable[float]) -> list[float | None]:
    """Round values to six digits, enough for a screen; values that are not finite become gaps."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]


def list_traces(ax: Axes, handles: Handles) -> Iterator[Chart]:
    """Areas of the axes, then their lines; ``handles`` are names and artists of the legend.

    Each trace has a ``name``, empty if it is not in the legend.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.container import ErrorbarContainer

    bars = [each.lines for each in ax.containers if isinstance(each, ErrorbarContainer)]
    errors = {line: collections for line, _, collections in bars}
    drawn = {part for _, caps, collections in bars for part in (*caps, *collections)}
    most = min(LONGEST, max(FEWEST, MOST_POINTS // max(1, len(ax.lines))))
    areas = list(_list_areas(ax, handles))
    yield from areas
    for collection in ax.collections:
        if isinstance(collection, LineCollection) and collection not in drawn:
            gap = [[np.nan, np.nan]]
            points = np.concatenate([[*each, *gap] for each in collection.get_segments()])
            trace = _make_line(points, _hex(collection.get_colors()))
            yield trace | {"name": _find_area(trace, areas)}
    for line in ax.lines:
        # marks outside the panel represent values that plotly shows at their positions
        if line not in drawn and line.get_clip_on() and np.size(line.get_xdata()):
            trace = _make_line(_thin(_find_points(line, ax), most), _hex(line.get_color()))
            trace |= _style_line(line) | {"name": _find_name(line, handles)}
            trace["name"] = trace["name"] or _find_area(trace, areas)
            if line in errors:
                trace["error_y"] = _make_errors(line, errors[line])
            yield trace


def _list_areas(ax: Axes, handles: Handles) -> Iterator[Chart]:
    """Filled areas of the axes."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import PathPatch

    for collection in ax.collections:
        if isinstance(collection, PolyCollection):
            for path in collection.get_paths():
                yield _make_area(collection, path.vertices, handles)
    for patch in ax.patches:
        if isinstance(patch, PathPatch):
            yield _make_area(patch, patch.get_path().vertices, handles)


def _hex(colour: Any) -> str:
    """A colour, or the first of several, as hexadecimal."""
    from matplotlib.colors import to_hex, to_rgba_array

    return to_hex(to_rgba_array(colour)[0])


def _make_line(points: np.ndarray, colour: str) -> Chart:
    """A line through points [N, 2]."""
    x, y = map(numbers, points.T)
    form = {"type": "scatter", "mode": "lines", "hovertemplate": "%{x}: %{y}"}
    return form | {"x": x, "y": y, "line": {"color": colour}}


def _make_area(artist: Any, edge: Any, handles: Handles) -> Chart:
    """Area inside an edge [N, 2], with the name of the legend's area or line in the same colour."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colour = _hex(artist.get_facecolor())
    names = {_hex(h.get_color()): name for name, h in handles[::-1] if isinstance(h, Line2D)}
    patches = {_hex(h.get_facecolor()): name for name, h in handles if isinstance(h, Patch)}
    trace = _make_line(_thin(edge, 2 * LONGEST), colour)
    trace["line"]["width"] = 0
    look = {"fill": "toself", "fillcolor": colour, "opacity": artist.get_alpha() or 1.0}
    return trace | look | {"hoveron": "points", "name": (patches or names).get(colour, "")}


def _find_area(trace: Chart, areas: Sequence[Chart]) -> str:
    """Name of the area around the first point of a mark, so that quartiles belong to their violin."""
    x = trace["x"][0]
    return next((a["name"] for a in areas if min(a["x"]) <= x <= max(a["x"])), "")


def _find_look(line: Line2D) -> tuple[str, str, str]:
    """Colour, mark and dash of a line."""
    symbol = SYMBOLS.get(str(line.get_marker()), "")
    return _hex(line.get_color()), symbol, DASHES.get(str(line.get_linestyle()), "")


def _find_name(line: Line2D, handles: Handles) -> str:
    """Name of the most similar line of the legend in the same colour, or empty."""
    from matplotlib.lines import Line2D

    colour, *look = _find_look(line)
    likeness = {}
    for name, handle in handles:
        if isinstance(handle, Line2D):
            other, *line_look = _find_look(handle)
            if other == colour:
                likeness[name] = [a == b for a, b in zip(line_look, look, strict=True)]
    return max(likeness, key=lambda name: likeness[name], default="")


def _find_points(line: Line2D, ax: Axes) -> np.ndarray:
    """Points [N, 2] of a line; a line across the panel ends at the limits of the data."""
    points = np.array(line.get_xydata(), float)
    if line.get_transform() != ax.transData:
        side = int(points[0, 1] != points[1, 1])
        points[:, side] = (ax.dataLim.intervalx, ax.dataLim.intervaly)[side]
    return points


def _style_line(line: Line2D) -> Chart:
    """Dash, width and marks of a line."""
    colour, symbol, dash = _find_look(line)
    modes = ["lines"] * bool(dash) + ["markers"] * bool(symbol)
    width = line.get_linewidth()
    style: Chart = {"mode": "+".join(modes) or "none"}
    style["line"] = {"color": colour, "dash": dash or "solid", "width": width}
    if symbol:
        shape = f"{symbol}-open" if line.get_markerfacecolor() == "white" else symbol
        size = round(1.4 * line.get_markersize())
        edge = _hex(line.get_markeredgecolor())
        style["marker"] = {"color": edge, "symbol": shape, "size": size}
    return style


def _make_errors(line: Line2D, bars: Sequence[Any]) -> Chart:
    """Lengths of the error bars of a line's points."""
    y = np.asarray(line.get_ydata(), float)[:, None]
    ends = np.array([segment[:, 1] for bar in bars for segment in bar.get_segments()])
    lengths = np.abs(ends - y)
    lengths[lengths < ROUNDING * np.abs(y)] = 0.0
    below, above = ([float(f"{v:.2g}") for v in side] for side in lengths.T)
    errors: Chart = {"type": "data", "array": above, "thickness": 1}
    return errors if above == below else errors | {"symmetric": False, "arrayminus": below}


def _thin(points: Any, most: int) -> np.ndarray:
    """At most ``most`` evenly spaced points, including the first and the last."""
    array = np.asarray(points, float)
    n = len(array)
    return array if n <= most else array[np.rint(np.linspace(0, n - 1, most)).astype(int)]
