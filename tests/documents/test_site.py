"""The site: links of its pages, pages made from components, menu, formulas and the crawl."""

import re
import tomllib

import pytest
import yaml
from support.runs.printed_commands import ROOT

from components import registry
from runner.catalogue.declarations import catalogue
from runner.catalogue.list_and_show import options
from scripts.results_figures import of_component, of_experiment
from scripts.site.components import component_page
from scripts.site.crawl import crawl
from scripts.site.docstrings import docstring
from scripts.site.examples import example_command
from scripts.site.formulas import set_formulas, to_tex
from scripts.site.gallery import gallery_page
from scripts.site.links import (
    DOCS,
    linked_paths,
    read_headings,
    read_links,
    sources,
    to_site_path,
)
from scripts.site.navigation import chapter_studies, write_menu


def _entry(role, name):
    return next(entry for entry in catalogue(role) if entry.name == name)


# ---- links
def read_anchors(page):
    """Anchors of a page's headings, as Git hosts and the site write them."""
    words = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in read_headings(page)]
    return {each.replace(" ", "-") for each in words}


def list_broken(page):
    """Links of a page to a file or an anchor that does not exist."""
    broken = []
    for link in read_links(page):
        path = (page.parent / link.path).resolve() if link.path else page
        has_anchors = path.is_file() and path.suffix == ".md"
        if to_site_path(path) is None or (
            link.anchor and has_anchors and link.anchor not in read_anchors(path)
        ):
            broken.append(f"{link.path}#{link.anchor}" if link.anchor else link.path)
    return broken


def test_every_link_of_every_page_leads_to_a_file_and_a_heading():
    broken = {str(page.relative_to(ROOT)): list_broken(page) for page in sources()}
    assert {page: links for page, links in broken.items() if links} == {}


def test_dead_links_and_anchors_are_found_and_code_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr("scripts.site.links.ROOT", tmp_path)
    monkeypatch.setattr("scripts.site.links.DOCS", tmp_path / "docs")
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "page.md"
    page.write_text(
        "# A `b` c\n\n    [code](no.md)\n\n[good](#a-b-c) [bad](#z) [dead](no.md)\n\n"
        '<img src="no.png"> ![dead](none.png) `[code](no.md)` [e](https://e.org/no.md)\n'
        "\n| a |\n|---|\n| [dead](row.md) |\n"
    )
    assert list_broken(page) == ["#z", "no.md", "no.png", "none.png", "row.md"]


def test_files_outside_docs_have_a_place_on_the_site():
    assert to_site_path(ROOT / "README.md") == "index.md"
    assert to_site_path(DOCS / "results") == "results/README.md"
    assert to_site_path(ROOT / "LICENSE") == "files/LICENSE.txt"
    assert to_site_path(DOCS / "faq.md") == "faq.md"
    assert to_site_path(ROOT / "no_such_file") is None
    assert ROOT / "LICENSE" in linked_paths()


def test_links_are_rewritten_after_code_and_in_raw_html():
    markdown = pytest.importorskip("markdown")
    pytest.importorskip("mkdocs", reason="pip install -e '.[docs]'")
    from types import SimpleNamespace

    from scripts.site.hook import LinkExtension

    found = SimpleNamespace(url_relative_to=lambda page: "pictures/report.png")
    extension = LinkExtension()
    extension.page = SimpleNamespace(file=SimpleNamespace(src_uri="index.md"))
    extension.files = SimpleNamespace(get_file_from_path={"pictures/report.png": found}.get)
    text = (
        "    [code](docs/faq.md)\n\n[a](docs/faq.md#x) [b](LICENSE) [c](https://e.org)\n\n"
        '<p><img src="docs/pictures/report.png"></p>\n'
    )
    html = markdown.markdown(text, extensions=[extension])
    assert "[code](docs/faq.md)" in html
    assert re.findall(r'(?:href|src)="([^"]+)"', html) == [
        "faq.md#x",
        "files/LICENSE.txt",
        "https://e.org",
        "pictures/report.png",
    ]


# ---- pages
def test_the_page_of_a_component_has_all_that_show_has():
    page = component_page("inference", _entry("inference", "sgld"))
    assert r"\(θ_{t+1} = θ_{t} + ε_{t} ∇\log  p(θ_{t}, y) + N(0, 2 ε_{t} I)\)" in page
    assert "Welling &amp; Teh (2011), eq. (4)" in page
    assert "<code>step&#95;size</code> | <code>0.01</code> | number &gt; 0" in page
    assert "[bnn](../model/bnn.md)" in page
    assert "[Stochastic-gradient MCMC](index.md)" in page
    assert re.search(r"^runner \+experiment=\w+ smoke=true", page, re.MULTILINE)
    assert "](../../results/" in page  # a figure of a study that uses it


def test_components_without_an_experiment_take_a_place_in_one():
    assert example_command("inference", "svgd").startswith("runner +experiment=")
    assert example_command("attacker", "pgd_momentum").endswith(" attacker=pgd_momentum")
    assert (
        example_command("inference", "mala") == "runner +experiment=moe inference=mala steps=4000"
    )
    assert example_command("model", "module") is None


def test_lines_of_a_docstring_keep_their_breaks():
    text = docstring(
        "More of ``n`` < 3:\n    a  table\n    c\nand on.\n\nRaises:\n    KeyError: b."
    )
    assert text == (
        "<p>More of <code>n</code> &lt; 3:</p>\n<pre>    a  table\n    c</pre>\n<p>and on.</p>\n"
        "<p><strong>Raises:</strong></p>\n<ul><li>KeyError: b.</li></ul>"
    )


@pytest.mark.parametrize(
    ("formula", "tex"),
    [
        ("x̂ = √(n + λ) P⁻¹", r"\hat{x} = \sqrt{n + λ} P^{-1}"),
        ("σ²_level ~ N(0, ½)", r"σ^{2}_{\mathrm{level}} \sim  N(0, \tfrac{1}{2})"),
        ("y = Σ_n log p_n", r"y = \sum _{n} \log  p_{n}"),
        ("x in {0, 1}", r"x in \{0, 1\}"),
        ("f(x", None),
        ("x_a_b", None),
    ],
)
def test_unicode_formulas_become_tex(formula, tex):
    assert to_tex(formula) == tex


def test_prose_around_formulas_stays_prose():
    text = set_formulas("Draws a step with D = I, and θ ← θ + lr · Adam(g), for 3 < n rows.")
    assert text == (
        'Draws a step with <span class="arithmatex">\\(D = I\\)</span>, and θ ← θ + lr · Adam(g), '
        'for <span class="arithmatex">\\(3 &lt; n\\)</span> rows.'
    )


def test_figures_are_of_studies_that_use_what_they_illustrate():
    assert of_experiment("air_quality").file.name.startswith("air_quality")
    shown = of_component("inference", "svgd")
    assert shown is None or shown.file.is_file()
    assert sum(of_experiment(name) is not None for name in options("experiment")) > 40


def test_the_gallery_has_caption_and_command_of_each_figure():
    page = gallery_page()
    cards = page.count("<figure>")
    assert cards > 30
    assert page.count("<figcaption>") == page.count("runner +experiment=", 0, page.rindex("</div>"))
    assert cards == len(set(re.findall(r'src="results/([^"]+)"', page)))


def test_the_menu_has_every_page_once():
    listed = re.findall(r"\]\((\S+)\)", write_menu([]))
    pages = {to_site_path(page) for page in sources()}
    assert pages - set(listed) == set()
    assert len(listed) == len(set(listed))
    roles = {f"components/{role}/index.md" for role in registry.ROLES}
    entries = sum(len(catalogue(role)) for role in registry.ROLES)
    assert roles <= set(listed)
    assert sum(path.startswith("components/") for path in listed) == 1 + len(roles) + entries


def test_every_study_page_belongs_to_one_chapter():
    chapters = (DOCS / "results" / "chapters").glob("*.md")
    listed = [page.name for chapter in chapters for page in chapter_studies(chapter)]
    pages = {page.name for page in (DOCS / "results").glob("*.md")}
    pages -= {"README.md", "missing.md", "printed.md", "cost.md"}
    assert set(listed) == pages
    assert len(listed) == len(pages)


def test_the_configuration_of_the_site_can_be_read_and_leaves_templates_out():
    class Loader(yaml.SafeLoader):
        """Python's functions, which only mkdocs may call, are read as nothing."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    config = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=Loader)
    assert config["exclude_docs"].split() == ["SUMMARY.md", "*.md.in", "printed_reasons.yaml"]


def test_images_and_workflows_take_the_torch_that_was_tested():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    (version,) = re.findall(r"install torch==([\d.]+)", lock)
    for name in ("Dockerfile", "docs/ci-example.yml", "Makefile"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert set(re.findall(r"torch==([\d.]+)", text)) == {version}, name
    workflow = yaml.safe_load((ROOT / "docs" / "ci-example.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["smoke"]["steps"]
    assert any("runner doctor" in step.get("run", "") for step in steps)
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY (.+) \S+$", dockerfile, re.MULTILINE)
    assert all((ROOT / name).exists() for names in copied for name in names.split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "docs" in project["optional-dependencies"]


# ---- the crawl
def test_the_crawl_finds_what_is_dead(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">a</h1><a href="b.html#here">b</a><a href="b.html#gone">b</a>'
        '<a href="c.html">c</a><img src="d.png"><script src="https://e.org/x.js"></script>'
        "<pre>[code](no.md)</pre><p>[left](no.md)</p>"
    )
    (tmp_path / "b.html").write_text('<p id="here">b</p><a href="a.html#top">a</a>')
    assert crawl(tmp_path) == {
        "a.html": [
            "fetched from elsewhere: https://e.org/x.js",
            "Markdown not rendered: ](no.md)",
            "no anchor: b.html#gone",
            "no file: c.html",
            "no file: d.png",
        ]
    }


@pytest.mark.slow
def test_every_example_of_a_component_fits():
    from runner.compose.compose import compose
    from runner.compose.job import prepare
    from runner.errors import RunnerError

    refused = {}
    for role in registry.ROLES:
        for name in registry.names(role):
            command = example_command(role, name)
            try:
                if command:
                    prepare(compose(command.split()[1:]))
            except RunnerError as error:
                refused[command] = str(error)
    assert refused == {}
