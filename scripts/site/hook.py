"""MkDocs hook that rewrites links between files of the repository as links between pages of the site.

Pages such as README.md have a different location on the site, and files outside ``docs/`` are copied
into it.  Links are rewritten in the parsed page, so that code blocks are not affected; MkDocs checks
them afterwards.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from mkdocs.plugins import event_priority
from mkdocs.structure.files import InclusionLevel

from scripts.site.links import DOCS, EXTERNAL, HTML_LINK, PAGES, ROOT, to_site_path

LOG = logging.getLogger("mkdocs.hooks.links")
WITHOUT_SIDEBARS = ("index.md", "gallery.md")
BY_SITE_PATH = {page: ROOT / name for name, page in PAGES.items()}


def source_of(site_path: str) -> Path | None:
    """Source file of a page in the repository; None for generated pages."""
    path = BY_SITE_PATH.get(site_path, DOCS / site_path)
    return path if path.exists() else None


def relink(target: str, source: Path, site_path: str) -> str | None:
    """Link on the site; None if its file does not exist."""
    path, mark, anchor = target.partition("#")
    if EXTERNAL.match(target) or not path:
        return target
    linked = to_site_path((source.parent / unquote(path)).resolve())
    if linked is None:
        return None
    return os.path.relpath(linked, PurePosixPath(site_path).parent) + mark + anchor


class LinkProcessor(Treeprocessor):
    """Processor that rewrites the links of the rendered page."""

    def __init__(self, md: Markdown) -> None:
        super().__init__(md)
        self.page: Any = None
        self.files: Any = None

    def run(self, root: Element) -> None:
        """Rewrite links of elements, then links in raw HTML."""
        site_path = self.page.file.src_uri
        source = source_of(site_path)
        if source is None:
            return
        for element in root.iter():
            for key in ("href", "src"):
                if key in element.attrib:
                    target = element.attrib[key]
                    element.set(key, relink(target, source, site_path) or target)
        blocks = self.md.htmlStash.rawHtmlBlocks
        for i, block in enumerate(blocks):
            if isinstance(block, str):
                blocks[i] = HTML_LINK.sub(lambda match: self._raw_link(match, source), block)

    def _raw_link(self, match: re.Match[str], source: Path) -> str:
        target = match[2]
        site_path = relink(target, source, "index.md")
        path, mark, anchor = (site_path or "").partition("#")
        file = self.files.get_file_from_path(path)
        if EXTERNAL.match(target) or target.startswith("#"):
            return match[0]
        if file is None:
            LOG.warning(f"{source.name} contains a link '{target}', but the target is not found.")
            return match[0]
        return f'{match[1]}="{file.url_relative_to(self.page.file)}{mark}{anchor}"'


class LinkExtension(Extension):
    """Markdown extension that adds ``LinkProcessor`` before MkDocs' own check of links."""

    processor: LinkProcessor | None = None
    page: Any = None
    files: Any = None

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the processor after inline text (priority 20) and before MkDocs (0)."""
        processor = LinkProcessor(md)
        processor.page = self.page
        processor.files = self.files
        md.treeprocessors.register(processor, "repository_links", 5)


EXTENSION = LinkExtension()


def on_config(config: Any) -> None:
    """Add the extension."""
    config.markdown_extensions.append(EXTENSION)


@event_priority(-200)
def on_files(files: Any, config: Any) -> None:
    """Remove the menu from the pages after literate-nav has read it."""
    menu = files.get_file_from_path("SUMMARY.md")
    menu.inclusion = InclusionLevel.EXCLUDED


def on_post_build(config: Any) -> None:
    """Remove the page 404.html, the only one with absolute URLs."""
    (Path(config.site_dir) / "404.html").unlink(missing_ok=True)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Pass the page to the extension, hide sidebars of wide pages, enable Markdown in details."""
    EXTENSION.page = page
    EXTENSION.files = files
    if page.file.src_uri in WITHOUT_SIDEBARS:
        page.meta["hide"] = ["navigation", "toc"]
    return re.sub(r"^<details>", '<details markdown="1">', markdown, flags=re.MULTILINE)
