"""Menu of the site (``SUMMARY.md``) from the existing files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from components import registry
from scripts.pages import TEMPLATES, render
from scripts.site.components import ROLE_TITLES
from scripts.site.families import families
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
GENERATED = [("Keys of a study", "study_keys.md"), ("Contracts", "contracts.md")]


TEMPLATES.filters["escape_markdown"] = lambda text: re.sub(r"([\\`*_{}\[\]])", r"\\\1", text)


def _titles(paths: Iterable[Path]) -> list[tuple[str, str]]:
    """Titles and paths of existing pages."""
    existing = (path for path in paths if path.exists())
    return [(read_title(path), path.relative_to(DOCS).as_posix()) for path in existing]


def _sort_pages(folder: Path, first: tuple[str, ...] = ()) -> list[Path]:
    """Pages of a folder: those in ``first``, then the others by name."""
    named = [folder / f"{name}.md" for name in first]
    return [*named, *(path for path in sorted(folder.glob("*.md")) if path not in named)]


def chapter_studies(chapter: Path) -> list[Path]:
    """Pages of studies listed at the end of a chapter."""
    paths = [(chapter.parent / link.path).resolve() for link in read_links(chapter) if link.path]
    pages = [path for path in paths if path.suffix == ".md" and path.parent == DOCS / "results"]
    return list(dict.fromkeys(page for page in pages if page.name != "README.md"))


def _chapters() -> Iterator[tuple[str, str, str, list[tuple[str, str]]]]:
    """Source, subject, path and studies of each chapter."""
    for chapter in _sort_pages(DOCS / "results" / "chapters", CHAPTERS):
        title = read_title(chapter)
        source, _, subject = title.partition(": ")
        short = subject or title
        path = f"results/chapters/{chapter.name}"
        yield source, short[0].upper() + short[1:], path, _titles(chapter_studies(chapter))


def write_menu(api: Iterable[tuple[str, str]]) -> str:
    """Text of ``SUMMARY.md``; ``api`` has the title and path of each page of the Python reference."""
    listed = [DOCS / f"{name}.md" for name in (*PROJECT, "python")]
    return render(
        "SUMMARY",
        tutorials=_titles(_sort_pages(DOCS / "tutorials", TUTORIALS)),
        guides=_titles(path for path in _sort_pages(DOCS) if path not in listed),
        methods=_titles(_sort_pages(DOCS / "methods")),
        roles=[(role, ROLE_TITLES[role], families(role)) for role in registry.ROLES],
        chapters=_chapters(),
        reference=[*_titles([DOCS / "python.md"]), *GENERATED],
        api=api,
        project=_titles(DOCS / f"{name}.md" for name in PROJECT),
    )
