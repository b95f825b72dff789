"""Markers and colours of series in one figure."""

from components.figures.style import series_marker, series_style


def test_marker_and_colour_pairs_are_unique():
    looks = {(series_marker(k), series_style(k)["color"]) for k in range(64)}
    assert len(looks) == 64
