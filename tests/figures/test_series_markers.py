"""Markers and colours of series in one figure."""

from components.figures.style import series_marker, series_style


def test_no_two_of_many_have_the_same_marker_in_the_same_colour():
    looks = {(series_marker(k), series_style(k)["color"]) for k in range(64)}
    assert len(looks) == 64
