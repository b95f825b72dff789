"""``python -m scripts.site.pages FOLDER``: write all pages and files of the site as Markdown.

The folder gets a copy of ``docs/``, pages outside it and generated pages.  Links between files of the
repository become links between pages of the site.  ``make docs`` converts the folder to HTML.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import runner
from runner.arena.publish import publish
from runner.arena.suite import GROUP, load_suite
from runner.disk import conf_folders
from scripts import contracts_page, study_keys_page
from scripts.site.components import component_pages
from scripts.site.gallery import gallery_page
from scripts.site.links import DOCS, ROOT, linked_paths, relink_page, sources, to_site_path
from scripts.site.navigation import write_menu

CONTRACTS = ROOT / "components" / "contracts"
NOT_COPIED = ("*.md", "templates", "printed_reasons.yaml")
HIDE_SIDEBARS = "---\nhide: [navigation, toc]\n---\n"
PUBLIC_MODULES = ("components.registry", "components.errors")


def runner_page() -> str:
    """Page of the public names of ``runner``, each from its defining module."""
    names = {name: f"runner.{module}" for name, module in runner._MODULE_BY_NAME.items()}
    names |= dict.fromkeys(sorted(runner._ERROR_NAMES), "runner.errors")
    lines = ["# runner", "", "`from runner import run, load, runs, compare`; by example: "]
    lines[-1] += "[from Python](../python.md)."
    for name, module in names.items():
        lines += ["", f"## {name}", "", f"::: {module}.{name}", "    options:"]
        lines.append("      heading_level: 3")
    return "\n".join([*lines, ""])


def python_pages() -> dict[str, tuple[str, str]]:
    """Titles and texts of the pages of the Python reference, by path."""
    pages = {"reference/runner.md": ("runner", runner_page())}
    for name in PUBLIC_MODULES:
        pages[f"reference/{name}.md"] = (name, f"# {name}\n\n::: {name}\n")
    for path in sorted(CONTRACTS.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if path.name != "__init__.py":
            short = name.removeprefix("components.")
            pages[f"reference/{name}.md"] = (short, f"# {short}\n\n::: {name}\n")
    return pages


def list_linked_files() -> Iterator[tuple[str, str]]:
    """Paths and texts of linked files outside ``docs/``, and a list for each linked folder."""
    for path in sorted(linked_paths()):
        target = to_site_path(path)
        if target is None or not target.startswith("files/"):
            continue
        if path.is_file():
            yield target, path.read_text(encoding="utf-8")
            continue
        depth = "../" * target.count("/")
        files = [child for child in sorted(path.iterdir()) if child.is_file()]
        lines = [f"- [{child.name}]({depth}{to_site_path(child)})" for child in files]
        yield target, "\n".join([f"# {path.name}", "", *lines, ""])


def publish_arena() -> Iterator[tuple[str, str]]:
    """Paths and texts of the pages of the arena's suites, from kept scores, and of their index."""
    suites = [load_suite(name) for name in conf_folders.names(GROUP)]
    with TemporaryDirectory() as folder:
        index = publish(suites, Path(folder), Path(folder))
        for path in set(index.parent.glob("*.html")) - {index}:
            yield f"arena/{path.name}", path.read_text(encoding="utf-8")
        content = index.read_text(encoding="utf-8").partition("<main>")[2].partition("</main>")[0]
        yield "arena/index.md", content


def read_mathjax() -> str:
    """MathJax as a single self-contained file."""
    spec = find_spec("mathjax")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).parent / "static" / "mathjax" / "es5" / "tex-svg-full.js"
    return source.read_text(encoding="utf-8")


def generate_files() -> Iterator[tuple[str, str]]:
    """Paths and texts of all pages and generated files."""
    for source in sources():
        path = str(to_site_path(source))
        text = relink_page(source)
        yield path, HIDE_SIDEBARS + text if path == "index.md" else text
    reference = python_pages()
    for path, (_, text) in reference.items():
        yield path, text
    yield from component_pages().items()
    yield "gallery.md", HIDE_SIDEBARS + gallery_page()
    yield "contracts.md", contracts_page.page()
    yield "study_keys.md", study_keys_page.page()
    yield from publish_arena()
    yield from list_linked_files()
    yield "llms.txt", (ROOT / "runner" / "llms.txt").read_text(encoding="utf-8")
    yield "assets/vendor/mathjax.js", read_mathjax()
    yield "SUMMARY.md", write_menu((title, path) for path, (title, _) in reference.items())


def main(argv: list[str]) -> None:
    """Write the pages and files into an empty folder."""
    folder = Path(argv[0])
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
    for path, text in generate_files():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
