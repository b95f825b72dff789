"""Links of the Markdown files, and the location of each linked file on the site.

Files in ``docs/`` keep their location.  ``PAGES`` are additional pages outside it.  Links to a source
in ``GENERATED`` lead to the page generated from it.  Other linked files are copied as text, and
linked folders become lists of their files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
GENERATED = {  # sources of pages of the site that are not in the repository
    "components/contracts": "contracts.md",
    "runner/study/definition.py": "study_keys.md",
}
HTML_LINK = re.compile(r'\b(src|href)="([^"]+)"')
# matches most of the text
ROW_WITHOUT_LINKS = re.compile(r"^\|(?!.*(?:\]\(|href=|src=)).*$", re.MULTILINE)
EXTERNAL = re.compile(r"[a-zA-Z][a-zA-Z+.-]*:|//")


@dataclass(frozen=True)
class Link:
    """Relative link of a page: file (empty for the page itself) and anchor."""

    path: str
    anchor: str


@cache
def _tokens(page: Path) -> list[Token]:
    text = ROW_WITHOUT_LINKS.sub("", page.read_text(encoding="utf-8"))
    return MarkdownIt("commonmark").enable("table").parse(text)


def sources() -> list[Path]:
    """Markdown files of the repository that are pages of the site."""
    return [*(ROOT / name for name in PAGES), *sorted(DOCS.rglob("*.md"))]


def _targets(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("html_block", "html_inline"):
            yield from (match[2] for match in HTML_LINK.finditer(token.content))
        for key in ("href", "src"):
            if token.attrGet(key):
                yield str(token.attrGet(key))
        yield from _targets(token.children or [])


def read_links(page: Path) -> list[Link]:
    """Relative links and pictures of a page, without those in code blocks."""
    links = []
    for target in _targets(_tokens(page)):
        if not EXTERNAL.match(target):
            path, _, anchor = unquote(target).partition("#")
            links.append(Link(path, anchor))
    return links


def read_headings(page: Path) -> list[str]:
    """Headings of a page."""
    tokens = _tokens(page)
    starts = [i for i, token in enumerate(tokens) if token.type == "heading_open"]
    return ["".join(child.content for child in tokens[i + 1].children or []) for i in starts]


def read_title(page: Path) -> str:
    """First heading of a page."""
    return next(iter(read_headings(page)), page.stem)


def to_site_path(path: Path) -> str | None:
    """Path on the site of a file or folder of the repository; None if it does not exist."""
    if not path.exists() or not path.is_relative_to(ROOT):
        return None
    name = path.relative_to(ROOT).as_posix()
    if name in PAGES or name in GENERATED:
        return (PAGES | GENERATED)[name]
    if path.is_dir():
        index = next((path / n for n in ("index.md", "README.md") if (path / n).exists()), None)
        return to_site_path(index) if index else f"files/{name}/index.md"
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return f"files/{name}.txt"


def linked_paths() -> set[Path]:
    """Files and folders linked from pages, including those placed by ``to_site_path``."""
    paths = {
        (page.parent / link.path).resolve()
        for page in sources()
        for link in read_links(page)
        if link.path
    }
    folders = (path for path in paths if (to_site_path(path) or "").endswith("/index.md"))
    listed = {child for folder in folders for child in folder.iterdir()}
    return {path for path in paths | listed if path.exists() and path.is_relative_to(ROOT)}
