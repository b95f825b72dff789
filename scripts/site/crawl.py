"""Crawl of the built site on disk for dead links and pictures, and for unrendered Markdown.

python -m scripts.site.crawl build/site
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

LINKS = {"a": "href", "img": "src", "script": "src", "link": "href", "source": "srcset"}
VERBATIM = ("pre", "code", "script", "style", "title")
MARKDOWN = re.compile(r"^\|[-:| ]+\|$|\]\(\S+\)", re.MULTILINE)
EXTERNAL = re.compile(r"[a-zA-Z][a-zA-Z+.-]*:|//")


@dataclass
class Page(HTMLParser):
    """Links, anchors, external files and unrendered Markdown of a page."""

    path: Path
    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    fetched: list[str] = field(default_factory=list)
    unrendered: list[str] = field(default_factory=list)
    depth: int = 0  # number of open tags of verbatim text

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the references and anchors of a tag."""
        self.depth += tag in VERBATIM
        values = {key: value for key, value in attrs if value is not None}
        self.anchors |= {values[key] for key in ("id", "name") if key in values}
        target = values.get(LINKS.get(tag, ""))
        if target is None:
            return
        if not EXTERNAL.match(target):
            self.links.append(target)
        elif tag != "a" and values.get("rel") != "canonical" and not target.startswith("data:"):
            self.fetched.append(target)

    def handle_endtag(self, tag: str) -> None:
        """Close verbatim text."""
        self.depth -= tag in VERBATIM

    def handle_data(self, data: str) -> None:
        """Collect tables and links that are not rendered."""
        match = None if self.depth else MARKDOWN.search(data)
        if match:
            self.unrendered.append(match[0])


@cache
def read_page(path: Path) -> Page:
    """Parse a page."""
    return Page(path)


def find_faults(page: Page) -> list[str]:
    """Dead links, external files and unrendered Markdown of a page."""
    faults = [f"external file: {target}" for target in page.fetched]
    faults += [f"Markdown not rendered: {text}" for text in page.unrendered]
    for target in dict.fromkeys(page.links):
        path, _, anchor = target.partition("#")
        file = (page.path.parent / unquote(path)).resolve() if path else page.path
        if not file.is_file():
            faults.append(f"no file: {target}")
        elif anchor and file.suffix == ".html":
            anchors = read_page(file).anchors
            if not {anchor, unquote(anchor)} & anchors and not anchor.startswith("__"):
                faults.append(f"no anchor: {target}")
    return faults


def crawl(site: Path) -> dict[str, list[str]]:
    """Faults of the site by page."""
    faults = {}
    for path in sorted(site.resolve().rglob("*.html")):
        of_page = find_faults(read_page(path))
        if of_page:
            faults[path.relative_to(site.resolve()).as_posix()] = of_page
    return faults


def main(argv: list[str]) -> int:
    """Print the faults; return 1 if there are any."""
    faults = crawl(Path(argv[0]))
    for page, of_page in faults.items():
        for fault in of_page:
            print(f"{page}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
