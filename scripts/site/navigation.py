"""The menu of the site (``SUMMARY.md``, read by literate-nav): from the files that exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from components import registry
from scripts.site.components import ROLE_TITLES
from scripts.site.families import families, family_title
from scripts.site.links import DOCS, read_links, read_title

TUTORIALS = (
    "first_run",
    "your_data",
    "reproduce_a_table",
    "your_method",
    "attack_your_network",
    "forecast_your_series",
    "a_nights_sweep",
    "a_table_for_a_paper",
)
CHAPTERS = (
    "boustati_3",
    "boustati_4",
    "boustati_5",
    "boustati_6",
    "gallego_1",
    "gallego_2",
    "gallego_3",
    "gallego_4",
    "rodriguez_santana",
    "bardenet",
)
PROJECT = ("architecture", "trust", "reproducibility", "clusters", "faq")
REFERENCE = ("python", "study_keys", "contracts")


def _entry(depth: int, title: str, path: str = "") -> str:
    text = re.sub(r"([\\`*_{}\[\]])", r"\\\1", title)
    return "    " * depth + (f"* [{text}]({path})" if path else f"* {text}")


def _pages(paths: Iterable[Path], depth: int = 1) -> list[str]:
    return [
        _entry(depth, read_title(path), path.relative_to(DOCS).as_posix())
        for path in paths
        if path.exists()
    ]


def _ordered(folder: Path, first: tuple[str, ...]) -> list[Path]:
    """Pages of a folder: those named first, then the others by name."""
    named = [folder / f"{name}.md" for name in first]
    return [*named, *(path for path in sorted(folder.glob("*.md")) if path not in named)]


def _components() -> list[str]:
    lines = [_entry(0, "Components"), _entry(1, "All components", "components/index.md")]
    for role in registry.ROLES:
        lines.append(_entry(1, ROLE_TITLES[role]))
        lines.append(_entry(2, f"All {role}s", f"components/{role}/index.md"))
        for family, entries in families(role).items():
            lines.append(_entry(2, family_title(family)))
            lines += [_entry(3, e.name, f"components/{role}/{e.name}.md") for e in entries]
    return lines


def chapter_studies(chapter: Path) -> list[Path]:
    """Pages of studies that a chapter lists at its end."""
    paths = [(chapter.parent / link.path).resolve() for link in read_links(chapter) if link.path]
    pages = [path for path in paths if path.suffix == ".md" and path.parent == DOCS / "results"]
    return list(dict.fromkeys(page for page in pages if page.name != "README.md"))


def _short_title(title: str) -> str:
    """What follows the colon of a title, with a capital."""
    text = title.partition(": ")[2] or title
    return text[0].upper() + text[1:]


def _results() -> list[str]:
    lines = [_entry(0, "Results"), _entry(1, "All chapters", "results/README.md")]
    for chapter in _ordered(DOCS / "results" / "chapters", CHAPTERS):
        title = read_title(chapter)
        lines.append(_entry(1, title.partition(":")[0]))
        lines.append(_entry(2, _short_title(title), f"results/chapters/{chapter.name}"))
        lines += _pages(chapter_studies(chapter), 2)
    lines.append(_entry(1, "Printed numbers", "results/printed.md"))
    lines.append(_entry(1, "Numbers without kept scores", "results/missing.md"))
    lines.append(_entry(1, "What each page cost", "results/cost.md"))
    return lines


def write_menu(api: Iterable[tuple[str, str]]) -> str:
    """Text of ``SUMMARY.md``; ``api``: title and path of the pages of the Python reference."""
    known = {f"{name}.md" for name in (*PROJECT, *REFERENCE, "index")}
    guides = [path for path in sorted(DOCS.glob("*.md")) if path.name not in known]
    lines = [_entry(0, "Home", "index.md"), _entry(0, "Tutorials")]
    lines += _pages(_ordered(DOCS / "tutorials", TUTORIALS))
    lines += [_entry(0, "Guides"), *_pages(guides)]
    methods = _pages(_ordered(DOCS / "methods", ()))
    lines += [_entry(0, "Methods"), *methods] if methods else []
    lines += [*_components(), _entry(0, "Gallery", "gallery.md"), *_results()]
    lines += [_entry(0, "Reference"), *_pages(DOCS / f"{name}.md" for name in REFERENCE)]
    lines += [_entry(1, "Python"), *(_entry(2, title, path) for title, path in api)]
    lines += [_entry(0, "Project"), *_pages(DOCS / f"{name}.md" for name in PROJECT)]
    lines += [_entry(1, "README", "readme.md"), _entry(1, "Contributing", "contributing.md")]
    lines.append(_entry(1, "Changes", "changelog.md"))
    return "\n".join(lines) + "\n"
