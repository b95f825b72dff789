"""Templates of pages and tables: HTML, Markdown and LaTeX from one environment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.terminal.plain import plain_value

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(*folders: Path, **options: Any) -> Environment:
    """Templates in some folders; HTML is escaped, and control characters are shown as pictures.

    Args:
        folders: where templates are looked for, in this order.
        options: of Jinja, such as other delimiters.
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
