"""The built site, crawled from disk and opened in Chromium."""

import html
import re
import shutil
import subprocess
import sys

import pytest
from support.runs.printed_commands import ROOT

from scripts.site.components import component_pages
from scripts.site.crawl import crawl

pytestmark = pytest.mark.slow
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
PAGES = (
    "index.html",
    "gallery.html",
    "arena/posteriors_small.html",
    "components/inference/sgld.html",
    "results/coin_game.html",
    "reference/runner.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built with warnings as errors, as in ``make docs``."""
    pytest.importorskip("zensical", reason="pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    for name in ("components", "runner", "scripts"):
        (folder / name).symlink_to(ROOT / name)
    pages = [sys.executable, "-m", "scripts.site.pages", str(folder / "build" / "pages")]
    subprocess.run(pages, cwd=ROOT, check=True)
    run = build(folder)
    assert run.returncode == 0, run.stdout + run.stderr
    (folder / "build" / "site" / "404.html").unlink()
    return folder / "build" / "site"


def build(folder):
    """Convert the pages of a folder with warnings as errors."""
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def open_in_chromium(page, profile, *options):
    """Standard output and the console's messages of a page opened from disk."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here: pages are not opened")
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
        "--virtual-time-budget=20000",
        f"--user-data-dir={profile}",
        *options,
        page,
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    console = [line for line in run.stderr.splitlines() if ":CONSOLE" in line]
    return run.stdout, console


def test_links_are_alive_and_local(site):
    assert crawl(site) == {}


def test_pages_include_their_scripts(site):
    page = (site / "results" / "coin_game.html").read_text(encoding="utf-8")
    assert "../assets/vendor/tablesort.min.js" in page
    assert "../assets/site.js" in page
    assert "../assets/vendor/iframe-worker.js" in page
    assert (site / "search.js").stat().st_size > 1_000_000
    assert (site / "assets" / "vendor" / "mathjax.js").stat().st_size > 1_000_000
    assert not (site / "SUMMARY.html").exists()
    assert not list(site.rglob("*.md.in"))


def test_dead_link_fails_the_build(tmp_path):
    pytest.importorskip("zensical", reason="pip install -e '.[docs]'")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# a\n\n[dead](no.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: a\ndocs_dir: docs\n")
    run = build(tmp_path)
    assert run.returncode != 0
    assert "page does not exist" in run.stdout + run.stderr


@pytest.mark.parametrize("page", PAGES)
def test_page_opens_from_disk_without_errors(site, tmp_path, page):
    picture = tmp_path / "page.png"
    options = ("--window-size=1280,1600", f"--screenshot={picture}")
    _, console = open_in_chromium(f"file://{site}/{page}", tmp_path / "profile", *options)
    assert console == []
    assert picture.stat().st_size > 20_000


def test_tables_sort_and_formulas_render(site, tmp_path):
    page, _ = open_in_chromium(
        f"file://{site}/components/inference/sgld.html", tmp_path / "profile", "--dump-dom"
    )
    assert "mjx-container" in page
    page, _ = open_in_chromium(
        f"file://{site}/results/coin_game.html", tmp_path / "second", "--dump-dom"
    )
    assert 'data-sort-method="amount"' in page
    assert 'class="table-filter"' in page


SEARCH = """<script>
const later = (action) => setTimeout(action, 4000);
const button = document.querySelector(".md-search__button");
later(() => { button.click(); later(() => {
  const roots = [...document.querySelectorAll("*")].map((node) => node.shadowRoot);
  const root = roots.find(Boolean);
  const input = root.querySelector("input");
  input.value = "langevin";
  input.dispatchEvent(new InputEvent("input", { bubbles: true, composed: true }));
  later(() => { document.body.append(root.innerHTML); });
}); });
</script>"""


def test_search_works_from_disk(site, tmp_path):
    page = site / "search_langevin.html"
    page.write_text((site / "index.html").read_text(encoding="utf-8") + SEARCH, encoding="utf-8")
    dom, _ = open_in_chromium(f"file://{page}", tmp_path / "profile", "--dump-dom")
    page.unlink()
    assert re.search(r'href="[^"]*components/inference/sgld\.html', dom)


def test_mathjax_renders_every_formula(site, tmp_path):
    text = "\n".join(component_pages().values())
    formulas = re.findall(r'<span class="arithmatex">.*?</span>', text)
    assert len(formulas) > 500
    page = site / "formulas.html"
    page.write_text(
        '<meta charset="utf8"><script src="assets/vendor/mathjax.js"></script>'
        + "".join(f"<p>{formula}</p>" for formula in formulas),
        encoding="utf-8",
    )
    dom, _ = open_in_chromium(f"file://{page}", tmp_path / "profile", "--dump-dom")
    page.unlink()
    assert dom.count("<mjx-container") == len(formulas)
    assert [html.unescape(error) for error in re.findall(r'data-mjx-error="([^"]*)"', dom)] == []
