"""Links of the Markdown files, and the location of each linked file on the site.

Files in ``docs/`` keep their location.  ``PAGES`` are additional pages outside it.  Links to a source
in ``GENERATED`` lead to the page generated from it.  Other linked files are copied as text, and
linked folders become lists of their files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
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
# code, which is not changed, or a link of Markdown or HTML: its beginning and its target
CODE_OR_LINK = re.compile(r'(`+).+?\1|(\]\(|\b(?:src|href)=")([^)"\s]+)')
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


def read_links(page: Path) -> list[Link]:
    """Relative links and pictures of a page, without those in code blocks."""
    links = []

    def read(target: str) -> str:
        if not EXTERNAL.match(target):
            path, _, anchor = unquote(target).partition("#")
            links.append(Link(path, anchor))
        return target

    replace_links(page, read)
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


def relink(target: str, source: Path, site_path: str) -> str:
    """Link on the site; unchanged if its file does not exist."""
    path, mark, anchor = target.partition("#")
    if EXTERNAL.match(target) or not path:
        return target
    linked = to_site_path((source.parent / unquote(path)).resolve())
    if linked is None:
        return target
    return os.path.relpath(linked, PurePosixPath(site_path).parent) + mark + anchor


def replace_links(source: Path, replace: Callable[[str], str]) -> str:
    """Text of a page with each target of a link or picture replaced, except in code."""
    code = [token.map for token in _tokens(source) if token.type in ("fence", "code_block")]
    code_lines = {line for first, end in filter(None, code) for line in range(first, end)}

    def replace_match(match: re.Match[str]) -> str:
        if match[1]:
            return match[0]
        return match[2] + replace(match[3])

    lines = source.read_text(encoding="utf-8").split("\n")
    for i, line in enumerate(lines):
        if i not in code_lines:
            lines[i] = CODE_OR_LINK.sub(replace_match, line)
    return "\n".join(lines)


def relink_page(source: Path) -> str:
    """Text of a page with links between pages of the site, and with Markdown in ``<details>``."""
    site_path = str(to_site_path(source))
    text = replace_links(source, lambda target: relink(target, source, site_path))
    return re.sub(r"^<details>", '<details markdown="1">', text, flags=re.MULTILINE)
