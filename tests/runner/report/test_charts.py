"""Interactive figures match the Matplotlib figures."""

import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from components.figures.samples.cost import cost_figure
from components.figures.samples.evolution import evolution
from components.figures.style import PALETTE
from components.figures.supervised.learning_curve import learning_curve
from components.series.figures.spread import spread
from runner.report.figures import traces
from runner.report.figures.charts import to_chart
from runner.report.figures.picture import mark_smoke
from runner.report.figures.traces import FEWEST, LONGEST, plain


def make_curves(names):
    rows = [
        {
            "model": name,
            "n_train": n,
            "mean": k + n / 10,
            "se": 0.5 * k,
            "metric": "rmse",
            "floor": -1.0,
        }
        for k, name in enumerate(names)
        for n in (10.0, 100.0)
    ]
    return pd.DataFrame(rows)


def test_curves_have_values_and_error_bars():
    chart = to_chart(learning_curve(make_curves("ab"), "size"))
    bars = {t["name"]: t for t in chart["data"] if "error_y" in t}
    assert list(bars) == ["a", "b"]
    assert bars["b"]["x"] == [10, 100]
    assert bars["b"]["y"] == [2.0, 11.0]
    assert [bars[name]["error_y"]["array"] for name in "ab"] == [[0, 0], [0.5, 0.5]]
    assert [bars[name]["marker"]["symbol"] for name in "ab"] == ["circle", "square"]
    floor = next(t for t in chart["data"] if t["line"].get("dash") == "dash")
    assert (floor["y"], floor["name"], floor["showlegend"]) == ([-1.0, -1.0], "a", False)
    assert sum(t["showlegend"] for t in chart["data"]) == 2
    axis = chart["layout"]["xaxis"]
    assert (axis["type"], axis["ticktext"]) == ("log", ["10", "100"])
    assert axis["title"]["text"] == "size"
    assert chart["layout"]["yaxis"]["title"]["text"] == "RMSE"


def test_small_multiples_form_one_panel():
    names = [f"model {k}" for k in range(12)]
    table = make_curves(names).drop(columns="floor")
    table = pd.concat([table, table.assign(metric="nlpp")])
    chart = to_chart(learning_curve(table))
    assert [(t["name"], t["yaxis"]) for t in chart["data"]] == [
        (name, axis) for axis in ("y", "y2") for name in names
    ]
    assert [t["line"]["color"] for t in chart["data"][:9]] == [*PALETTE, PALETTE[0]]
    assert [t["line"]["dash"] for t in chart["data"][7:9]] == ["solid", "dash"]


def make_evolution(steps):
    values = [
        {"method": m, "replicate": f"0/{r}", "step": t, "metric": "elbo", "value": t * (r + k)}
        for k, m in enumerate("ab")
        for r in (1, 3)
        for t in range(steps)
    ]
    return pd.DataFrame(values)


def test_evolutions_name_methods_replicates_and_the_exact_value():
    chart = to_chart(evolution(make_evolution(3), {"elbo": 7.0}))
    assert [(t["name"], t["y"]) for t in chart["data"]] == [
        ("a", [0, 1, 2]),
        ("a", [0, 3, 6]),
        ("b", [0, 2, 4]),
        ("b", [0, 4, 8]),
        ("exact", [7.0, 7.0]),
    ]
    assert [t["showlegend"] for t in chart["data"]] == [True, False, True, False, True]
    assert chart["data"][-1]["x"] == [0.0, 2.0]


def test_long_lines_are_thinned_and_keep_their_ends(monkeypatch):
    long = to_chart(evolution(make_evolution(1000), {}))["data"][0]
    assert len(long["x"]) == LONGEST
    assert (long["x"][0], long["x"][-1]) == (0, 999)
    monkeypatch.setattr(traces, "MOST_POINTS", 100)  # of four lines
    short = to_chart(evolution(make_evolution(1000), {}))["data"][0]
    assert len(short["x"]) == 100 // 4
    monkeypatch.setattr(traces, "MOST_POINTS", 4)
    assert len(to_chart(evolution(make_evolution(50), {}))["data"][0]["x"]) == FEWEST


def test_bands_are_areas_under_their_mean():
    chart = to_chart(evolution(make_evolution(3), {}, band=True))
    assert ["fill" in t for t in chart["data"]] == [True, True, False, False]
    area = chart["data"][0]
    mean = chart["data"][2]
    assert (area["name"], mean["name"]) == ("a", "a")
    assert mean["y"] == [0, 2, 4]
    assert_allclose([min(area["y"]), max(area["y"])], [0, 2 * (1 + 0.95 * 2)])


@pytest.mark.parametrize("kind", ["violin", "box"])
def test_spreads_have_summaries_around_a_mark(kind):
    """A method in black, like quartiles; values over three orders of magnitude."""
    rows = [
        {"method": f"m{k}", "group": group, "metric": "nmse", "value": (1 + k) * 10.0**i}
        for k in range(8)
        for group in ("10", "20")
        for i in range(4)
    ]
    figure = spread(pd.DataFrame(rows), kind, {}, [("m1", "20")], "size", {"nmse": "NMSE"})
    chart = to_chart(figure)
    areas = [t for t in chart["data"] if "fill" in t]
    assert [t["name"] for t in areas] == [f"m{k}" for _ in "ab" for k in range(8)]
    marks = [t for t in chart["data"] if "fill" not in t and t["name"] != "β chosen"]
    for mark in marks:
        around = [t["name"] for t in areas if min(t["x"]) <= mark["x"][0] <= max(t["x"])]
        assert around == [mark["name"]]
    (chosen,) = (t for t in chart["data"] if t["name"] == "β chosen")
    assert chosen["x"][0] == chosen["x"][1]
    axes = chart["layout"]["xaxis"], chart["layout"]["yaxis"]
    assert [axis["title"]["text"] for axis in axes] == ["size", "NMSE"]
    assert axes[0]["ticktext"] == ["10", "20"]
    assert axes[1]["type"] == "log"


def test_costs_mark_the_front_and_the_spread():
    columns = ("method", "cost", "mean", "low", "high")
    lines = [("a", 1, 3.0, 2.5, 4.0), ("a", 2, 2.0, 1.5, 2.5), ("b", 2, 4.0, 3.5, 4.5)]
    curves = pd.DataFrame(lines, columns=columns).assign(panel="n 100")
    finals = curves.drop_duplicates("method", keep="last").assign(front=[True, False])
    chart = to_chart(cost_figure(curves, finals, "lower", "steps", "RMSE"))
    ends = {t["name"]: t for t in chart["data"] if "error_y" in t}
    assert [ends[name]["marker"]["symbol"] for name in "ab"] == ["circle", "square-open"]
    assert [ends[name]["y"] for name in "ab"] == [[2.0], [4.0]]
    assert ends["a"]["error_y"] == {"type": "data", "array": [0.5], "thickness": 1}
    titles = [chart["layout"][f"{axis}axis{i}"]["title"]["text"] for axis in "xy" for i in ("", 2)]
    assert titles == ["steps", "total steps", "n 100<br>RMSE", "n 100<br>final RMSE"]


def test_asymmetric_error_bars_have_two_lengths():
    table = pd.DataFrame(
        [{"panel": "", "method": "a", "cost": 1, "mean": 3.0, "low": 2.5, "high": 4.0}]
    )
    chart = to_chart(cost_figure(table, table.assign(front=True), None, "steps", "RMSE"))
    (end,) = (t for t in chart["data"] if "error_y" in t)
    lengths = {"array": [1.0], "arrayminus": [0.5], "symmetric": False}
    assert lengths.items() <= end["error_y"].items()


def test_line_without_points_has_no_trace():
    figure = Figure()
    figure.subplots().plot([0, 1], [2, 3], "-", [], [], "o")
    assert [trace["y"] for trace in to_chart(figure)["data"]] == [[2.0, 3.0]]


def test_watermark_crosses_the_chart():
    chart = to_chart(mark_smoke(evolution(make_evolution(2), {})))
    (words,) = chart["layout"]["annotations"]
    expected = {"text": "smoke run", "x": 0.5, "y": 0.5, "xref": "paper", "opacity": 0.25}
    assert expected.items() <= words.items()


def test_mathematics_is_rendered_and_markup_escaped():
    assert plain(r"$\beta_{2}$ < a & b") == "β_2 &lt; a &amp; b"
