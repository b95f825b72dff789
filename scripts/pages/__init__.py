"""Generated pages: templates (``*.md.j2``) and Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def render(template: str, **values: Any) -> str:
    """Render the page of ``template.md.j2``."""
    return TEMPLATES.get_template(f"{template}.md.j2").render(values)


def format_table(header: Iterable[str], rows: Iterable[Iterable[str]], align: str = "---") -> str:
    """Markdown table; ``align`` is the rule under each column except the first."""
    names = list(header)
    rule = f"|---|{f'{align}|' * (len(names) - 1)}"
    return "\n".join([join_cells(names), rule, *map(join_cells, rows)])


def join_cells(cells: Iterable[str]) -> str:
    """Line of a table."""
    return f"| {' | '.join(cells)} |"
