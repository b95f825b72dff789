"""Script of the plug-in gen-files for pages and files of the site outside ``docs/``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import mkdocs_gen_files

import runner
from runner.arena.publish import publish
from runner.arena.suite import GROUP, load_suite
from runner.disk import conf_folders
from scripts import contracts_page, study_keys_page
from scripts.site.components import component_pages
from scripts.site.gallery import gallery_page
from scripts.site.links import PAGES, ROOT, linked_paths, to_site_path
from scripts.site.navigation import write_menu

CONTRACTS = ROOT / "components" / "contracts"
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


def write_text(path: str, text: str) -> None:
    """Add a page or a text file to the site."""
    with mkdocs_gen_files.open(path, "w", encoding="utf-8") as file:
        file.write(text)


def copy_linked_files() -> None:
    """Add linked files outside ``docs/``, and a list for each linked folder."""
    for path in sorted(linked_paths()):
        target = to_site_path(path)
        if target is None or not target.startswith("files/"):
            continue
        if path.is_file():
            write_text(target, path.read_text(encoding="utf-8"))
            continue
        depth = "../" * target.count("/")
        files = [child for child in sorted(path.iterdir()) if child.is_file()]
        lines = [f"- [{child.name}]({depth}{to_site_path(child)})" for child in files]
        write_text(target, "\n".join([f"# {path.name}", "", *lines, ""]))


def write_arena() -> None:
    """Add the pages of the arena's suites, from kept scores, and their index."""
    suites = [load_suite(name) for name in conf_folders.names(GROUP)]
    with TemporaryDirectory() as folder:
        index = publish(suites, Path(folder), Path(folder))
        for path in set(index.parent.glob("*.html")) - {index}:
            write_text(f"arena/{path.name}", path.read_text(encoding="utf-8"))
        content = index.read_text(encoding="utf-8").partition("<main>")[2].partition("</main>")[0]
        write_text("arena/index.md", content)


def copy_mathjax() -> None:
    """Add MathJax as a single self-contained file."""
    spec = find_spec("mathjax")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).parent / "static" / "mathjax" / "es5" / "tex-svg-full.js"
    write_text("assets/vendor/mathjax.js", source.read_text(encoding="utf-8"))


def main() -> None:
    """Add all pages and files."""
    for name, target in PAGES.items():
        write_text(target, (ROOT / name).read_text(encoding="utf-8"))
    reference = python_pages()
    for path, (_, text) in reference.items():
        write_text(path, text)
    for path, text in component_pages().items():
        write_text(path, text)
    write_text("gallery.md", gallery_page())
    write_text("contracts.md", contracts_page.page())
    write_text("study_keys.md", study_keys_page.page())
    write_arena()
    copy_linked_files()
    copy_mathjax()
    write_text("SUMMARY.md", write_menu((title, path) for path, (title, _) in reference.items()))


main()
