"""Jinja environment for pages and tables in HTML, Markdown and LaTeX."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.terminal.plain import plain_value

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(*folders: Path, **options: Any) -> Environment:
    """Environment of templates that escapes HTML and replaces control characters by pictures.

    Args:
        folders: folders of templates in the order of the search.
        options: options of Jinja, such as other delimiters.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=lambda file: str(file).endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=plain_value,
        **options,
    )
