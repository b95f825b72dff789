"""A report's page in a headless browser without network: drawing, sorting, filters, details and
legibility."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread
from support.runs.small_study import NOISE, STUDY, record

from components.figures.style import PALETTE
from runner.report import report
from runner.report.pages import as_json

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
NEEDS = pytest.mark.skipif(BROWSER is None, reason="no browser here: apt-get install chromium")
HOSTILE = "</script><script>document.title='taken'</script>"
PROBE = """<script>(async () => {
for (let i = 0; i < 400 && !document.body.dataset.drawn; i++) await new Promise((go) => setTimeout(go, 25));
const of = (where) => [...document.querySelectorAll(where)];
const said = { drawn: document.body.dataset.drawn, title: document.title, charts: of(".js-plotly-plot").length };
const table = document.querySelector("table.matrix");
const first = () => [...table.tBodies[0].rows].filter((row) => !row.hidden)
  .map((row) => row.cells[0].textContent + row.cells[1].textContent);
const heading = table.tHead.querySelectorAll("button")[3];
heading.click(); said.up = first(); heading.click(); said.down = first(); heading.click(); said.back = first();
const filter = document.querySelector("input.filter");
filter.value = "TUNED igp"; filter.dispatchEvent(new Event("input")); said.filtered = first();
filter.value = ""; filter.dispatchEvent(new Event("input"));
const chart = document.querySelector(".js-plotly-plot");
said.lines = chart.data.map((trace) => [trace.name, trace.y]);
await Plotly.restyle(chart, { visible: "legendonly" }, [0]);
said.left = chart.querySelectorAll(".scatterlayer .trace").length;
await Plotly.restyle(chart, { visible: true }, [0]);
said.legend = chart.querySelectorAll(".legendtoggle").length;
Plotly.Fx.hover(chart, [{ curveNumber: 0, pointNumber: 0 }]);
await new Promise((go) => setTimeout(go, 300));
said.hover = chart.querySelector(".hoverlayer").textContent;
const box = chart.querySelector(".cartesianlayer").getBoundingClientRect();
said.box = [box.left, box.top, box.right, box.bottom];
said.wide = [document.documentElement.scrollWidth, innerWidth];
const grid = of(".figures > figure").map((figure) => figure.getBoundingClientRect().top);
said.side_by_side = grid.length > 1 && grid[0] === grid[1];
OPEN
parent.postMessage(JSON.stringify(said), "*");
const out = document.createElement("pre"); out.id = "said"; out.hidden = true;
out.textContent = JSON.stringify(said); document.body.append(out);
})();</script></body>"""
OPEN = """document.querySelector("button[data-cell='1']").click(); said.cell = document.getElementById("inside").textContent;
said.links = of("#inside a").map((a) => a.getAttribute("href")); document.getElementById("cell").close();"""


def browse(page, width, height, picture=None):
    """Result of ``PROBE`` in a window of the given size, or in a frame for narrow sizes."""
    probed = page.with_name("probed.html")
    probed.write_text(
        page.read_text(encoding="utf-8").replace("</body>", PROBE.replace("OPEN", OPEN)),
        encoding="utf-8",
    )
    shown = probed
    if width < 500:
        shown = page.with_name("framed.html")
        shown.write_text(
            f"<body style='margin:0'><iframe src='probed.html' style='width:{width}px;height:{height}px;border:0'></iframe>"
            "<pre id='said'></pre><script>onmessage = (e) => { document.getElementById('said').textContent = e.data; };"
            "</script></body>"
        )
    command = [
        str(BROWSER),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--disable-dev-shm-usage",
        f"--user-data-dir={page.parent / 'profile'}",
        f"--window-size={max(width, 500)},{height}",
        "--virtual-time-budget=15000",
        "--dump-dom",
        *([f"--screenshot={picture}"] if picture else []),
        shown.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    match = re.search(r"<pre id=\"said\"[^>]*>(.+?)</pre>", done.stdout, re.S)
    assert match, done.stderr[-2000:]
    return json.loads(html.unescape(match.group(1)))


@pytest.fixture
def page(study, tmp_path):
    """Page of a study with text that would end a script, two curves, and a run with a figure and a
    failed check."""
    curves = [STUDY.figures[0].model_copy(update={"name": name}) for name in ("curve", "again")]
    words = {"description": HOSTILE, "draws_anew": f"the start {HOSTILE}"}
    definition = STUDY.model_copy(update={**words, "figures": curves})
    config = {"inference": {"lr": 0.01, "note": HOSTILE}, "seed": 0}
    runs = [replace(run, config=config, overrides=["+experiment=a", HOSTILE]) for run in study.runs]
    frozen = replace(study, study=definition, runs=runs)
    rhat = {"about": "run", "check": f"R̂ is below 1.01 {HOSTILE}", "passed": False, "detail": "1.2"}
    for i, experiment in enumerate("abc"):
        for n in (100, 1000):
            checks = {"0": [rhat]} if (experiment, n) == ("a", 1000) else {}
            record(study, experiment, n, [1.2, 0.2, 0.7][i] + NOISE + 100 / n, checks=checks)
    written, _ = report.write("small", definition, frozen, tmp_path / "small" / "report")
    return written[0] if written[0].suffix == ".html" else written[1]


def test_text_does_not_leave_its_script(page):
    assert (
        as_json({"a": HOSTILE})
        == '{"a":"\\u003c/script>\\u003cscript>document.title=\'taken\'\\u003c/script>"}'
    )
    text = page.read_text(encoding="utf-8")
    assert HOSTILE not in text
    assert "<p>Redrawn for each replicate: the start &lt;/script&gt;" in text
    assert page.stat().st_size < 3_500_000
    shared = re.search(r'<template id="shared">(.*?)</template>', text, re.S).group(1)
    assert "<dt>inference.lr</dt><dd>0.01</dd>" in shared
    templates = re.findall(r'<template id="cell-(\d)"', text)
    assert templates == re.findall(r'data-cell="(\d)', text) == list("01234567")


@NEEDS
@pytest.mark.slow
def test_page_works_in_a_browser_and_shows_its_figures(page, tmp_path):
    page_state = browse(page, 1300, 1600, tmp_path / "wide.png")
    assert (page_state["drawn"], page_state["title"], page_state["charts"]) == ("yes", "small", 2)
    order = ["sMDGPas published", "sMDGPtuned", "iGPtuned", "iRF"]
    assert page_state["back"] == order
    assert page_state["up"] == ["sMDGPtuned", "iGPtuned", "sMDGPas published", "iRF"], (
        "methods without runs come last"
    )
    assert page_state["down"] == ["sMDGPas published", "iGPtuned", "sMDGPtuned", "iRF"]
    assert page_state["filtered"] == ["iGPtuned"]
    names, values = zip(*page_state["lines"], strict=True)
    assert names == ("sMDGP, as published", "sMDGP, tuned", "iGP, tuned")
    np.testing.assert_allclose(values, [[2.2, 1.3], [1.2, 0.3], [1.7, 0.8]], atol=1e-6)
    assert (page_state["left"], page_state["legend"]) == (2, 3), "the legend switches a line off"
    assert re.search(r"100: 2\.2 ± 0\.0097", page_state["hover"])
    assert page_state["side_by_side"]
    for words in (
        "sMDGP, as published, 1000",
        "scores (6)",
        "✗ R̂ is below 1.01",
        "document.title='taken'",
        "torch 2.13.0",
    ):
        assert words in page_state["cell"]
    assert page_state["links"] == [
        f"../../a/a1000/{name}" for name in ("", "run.json", "config.yaml")
    ]
    x_min, top, right, bottom = (round(v) for v in page_state["box"])
    picture = imread(tmp_path / "wide.png")[top:bottom, x_min:right, :3]
    for colour in PALETTE[:3]:
        rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        near = np.abs(picture - rgb).max(axis=2) < 0.06
        assert near.sum() > 100, f"a line of {colour} is to be seen"
        assert np.ptp(np.nonzero(near)[1]) > 0.5 * picture.shape[1], "from side to side"


@NEEDS
@pytest.mark.slow
def test_page_is_readable_on_a_telephone(page):
    page_state = browse(page, 400, 2000)
    assert page_state["wide"] == [400, 400], "nothing but tables scrolls sideways"
    assert not page_state["side_by_side"]
    assert page_state["drawn"] == "yes"


@NEEDS
@pytest.mark.skipif(
    shutil.which("pdftotext") is None, reason="no pdftotext here: apt-get install poppler-utils"
)
def test_printed_table_pages_have_headings_without_controls(study, tmp_path):
    record(study, "a", 1000, 0.2 + NOISE)
    report.write("small", STUDY, study, tmp_path)
    page = tmp_path / "small.html"
    text = page.read_text()
    body = re.search(r'<table class="matrix sorts">.*?<tbody>(.*?)</tbody>', text, re.S)
    assert body is not None
    row = re.findall(r"<tr.*?</tr>", body.group(1), re.S)[0]
    page.write_text(text.replace(body.group(1), body.group(1) + 90 * row, 1))
    pdf = tmp_path / "small.pdf"
    subprocess.run(
        [
            str(BROWSER),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-pdf-header-footer",
            f"--print-to-pdf={pdf}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    pages = subprocess.run(
        ["pdftotext", "-layout", str(pdf), "-"], check=True, capture_output=True, text=True
    ).stdout.split("\f")
    of_the_table = [text for text in pages if len(re.findall(r"sMDGP +as published", text)) > 10]
    assert len(of_the_table) > 1
    assert all(re.search(r"row +settings +100 +1000", text) for text in of_the_table)
    assert "Click a heading" not in "".join(pages)
    assert "↕" not in "".join(pages)
