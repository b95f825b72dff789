"""The site: pages made from components and YAML, links turned to each other, and all of it built
where MkDocs is installed."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml
from printed_commands import ROOT

from components import registry
from runner.catalogue.list_and_show import options
from scripts.component_pages import component_page, docstring
from scripts.docs_site import SITE, main, targets, turned
from scripts.results_figures import of_component, of_experiment


def test_the_page_of_a_component_has_all_that_show_has(tmp_path):
    (entry,) = (e for e in registry.catalogue("inference") if e.name == "sgld")
    page = component_page(
        "inference", entry, tmp_path / "components" / "inference" / "sgld.md", tmp_path
    )
    assert "θ_{t+1} = θ_t + ε_t ∇log p(θ_t, y)" in page
    assert "Welling &amp; Teh (2011), eq. (4)" in page
    assert "<td><code>step_size</code></td><td><code>0.01</code></td><td>number &gt; 0</td>" in page
    assert "[bnn](../model/bnn.md)" in page
    assert "](../../results/" in page  # a figure of a study that uses it


def test_formulas_stand_as_they_are_written():
    text = docstring("One sentence.\n\nMore of ``n`` < 3:\n    a  =  b\n    c\nand on.")
    assert (
        text
        == "<p>One sentence.</p>\n<p>More of <code>n</code> &lt; 3:</p>\n<pre>    a  =  b\n    c</pre>\n<p>and on.</p>"
    )


def test_links_lead_to_pages_of_the_site():
    known = targets()
    page = ROOT / "docs" / "tutorials" / "your_method.md"
    text = "[a](../contracts.md#x) [b](../../README.md) [c](../../LICENSE) [d](https://e.org) ![p](../pictures/report.png)"
    assert turned(text, page, known) == (
        "[a](../contracts.md#x) [b](../index.md) c [d](https://e.org) ![p](../pictures/report.png)"
    )
    # of a block of code
    assert turned("    [b](../../README.md)", page, known) == "    [b](../../README.md)"


def test_figures_are_of_studies_that_use_what_they_illustrate():
    assert of_experiment("air_quality").file.name.startswith("air_quality")
    assert (
        of_component("inference", "svgd") is None
        or of_component("inference", "svgd").file.is_file()
    )
    assert sum(of_experiment(name) is not None for name in options("experiment")) > 40


def test_every_page_of_the_menu_is_there():
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    named = set(re.findall(r"[\w/]+\.md", str(menu)))
    made = {
        "gallery.md",
        "components/index.md",
        *(f"components/{role}/index.md" for role in registry.ROLES),
    }
    assert named - made <= {str(at) for at in targets().values()}
    assert made <= named


def test_images_and_workflows_take_the_torch_that_was_tested():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    (version,) = re.findall(r"^torch==(\S+)$", lock, re.MULTILINE)
    for name in ("Dockerfile", "docs/ci-example.yml", "Makefile"):
        assert set(re.findall(r"torch==([\d.]+)", (ROOT / name).read_text(encoding="utf-8"))) == {
            version
        }, name
    steps = yaml.safe_load((ROOT / "docs" / "ci-example.yml").read_text(encoding="utf-8"))["jobs"][
        "smoke"
    ]["steps"]
    assert any("runner doctor" in step.get("run", "") for step in steps)
    copied = re.findall(
        r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert all((ROOT / name).exists() for names in copied for name in names.split())
    assert (
        "docs"
        in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )


@pytest.mark.slow
def test_the_site_is_built_and_every_link_leads_somewhere():
    pytest.importorskip("material", reason="pip install -e '.[docs]'")
    assert main() == 0
    page = (SITE / "components" / "inference" / "sgld" / "index.html").read_text(encoding="utf-8")
    assert "fonts.googleapis.com" not in page
    assert not re.findall(
        r"<(?:script|link)[^>]+(?:src|href)=\"https?://", page.replace('rel="canonical"', "")
    )
