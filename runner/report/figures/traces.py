"""Lines, areas and error bars of Matplotlib axes as traces of plotly.js."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Chart = dict[str, Any]
DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
SYMBOLS = {
    "o": "circle",
    "s": "square",
    "D": "diamond",
    "^": "triangle-up",
    "v": "triangle-down",
    "P": "cross",
    "*": "star",
    "X": "x",
    ".": "circle",
}
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


def list_traces(ax: Axes) -> Iterator[Chart]:
    """Areas of the axes, then their lines.

    The ``name`` of a trace is the label of its artist, empty without one.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.container import ErrorbarContainer

    bars = {bar.lines[0]: bar for bar in ax.containers if isinstance(bar, ErrorbarContainer)}
    drawn = {part for bar in bars.values() for parts in bar.lines[1:] for part in parts}
    most = min(LONGEST, max(FEWEST, MOST_POINTS // max(1, len(ax.lines))))
    yield from _list_areas(ax)
    for collection in ax.collections:
        if isinstance(collection, LineCollection) and collection not in drawn:
            gap = [[np.nan, np.nan]]
            points = np.concatenate([[*each, *gap] for each in collection.get_segments()])
            yield _make_line(points, _hex(collection.get_colors()), collection)
    for line in ax.lines:
        # marks outside the panel represent values that plotly shows at their positions
        if line not in drawn and line.get_clip_on() and np.size(line.get_xdata()):
            bar = bars.get(line)
            points = _thin(_find_points(line, ax), most)
            trace = _make_line(points, _hex(line.get_color()), bar or line) | _style_line(line)
            yield trace | ({"error_y": _make_errors(line, bar.lines[2])} if bar else {})


def _list_areas(ax: Axes) -> Iterator[Chart]:
    """Filled areas of the axes."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import PathPatch

    for collection in ax.collections:
        if isinstance(collection, PolyCollection):
            for path in collection.get_paths():
                yield _make_area(collection, path.vertices)
    for patch in ax.patches:
        if isinstance(patch, PathPatch):
            yield _make_area(patch, patch.get_path().vertices)


def _hex(colour: Any) -> str:
    """A colour, or the first of several, as hexadecimal."""
    from matplotlib.colors import to_hex, to_rgba_array

    return to_hex(to_rgba_array(colour)[0])


def _make_line(points: np.ndarray, colour: str, artist: Any) -> Chart:
    """A line through points [N, 2]; an underscore hides the label of an artist from the legend."""
    x, y = map(numbers, points.T)
    name = re.sub(r"^_(child\d+|container\d+|nolegend_)?", "", str(artist.get_label()))
    form = {"type": "scatter", "mode": "lines", "hovertemplate": "%{x}: %{y}", "name": name}
    return form | {"x": x, "y": y, "line": {"color": colour}}


def _make_area(artist: Any, edge: Any) -> Chart:
    """Area inside an edge [N, 2]."""
    colour = _hex(artist.get_facecolor())
    trace = _make_line(_thin(edge, 2 * LONGEST), colour, artist)
    trace["line"]["width"] = 0
    look = {"fill": "toself", "fillcolor": colour, "opacity": artist.get_alpha() or 1.0}
    return trace | look | {"hoveron": "points"}


def _find_points(line: Line2D, ax: Axes) -> np.ndarray:
    """Points [N, 2] of a line; a line across the panel ends at the limits of the data."""
    points = np.array(line.get_xydata(), float)
    if line.get_transform() != ax.transData:
        side = int(points[0, 1] != points[1, 1])
        points[:, side] = (ax.dataLim.intervalx, ax.dataLim.intervaly)[side]
    return points


def _style_line(line: Line2D) -> Chart:
    """Dash, width and marks of a line."""
    symbol = SYMBOLS.get(str(line.get_marker()), "")
    dash = DASHES.get(str(line.get_linestyle()), "")
    modes = ["lines"] * bool(dash) + ["markers"] * bool(symbol)
    width = line.get_linewidth()
    style: Chart = {"mode": "+".join(modes) or "none"}
    style["line"] = {"color": _hex(line.get_color()), "dash": dash or "solid", "width": width}
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
