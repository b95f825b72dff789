"""Docstrings as HTML inside Markdown, with typeset formulas."""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Iterable
from itertools import groupby, pairwise

from runner.catalogue.class_declaration import ClassDeclaration
from scripts.site.formulas import FORMULA, set_formulas

SECTIONS = ("Args:", "Returns:", "Raises:", "Note:", "Notes:")
CODE = re.compile(r"``(.+?)``|`([^`]+)`")
WRAP_WIDTH = 84


def inline(text: str) -> str:
    """Line of a docstring as HTML inside Markdown: ``code`` becomes code, and the rest is literal."""
    escaped = html.escape(text, quote=False)
    return re.sub(r"[*_|\[\]\\]", lambda m: f"&#{ord(m[0])};", CODE.sub(_code, escaped))


def _wraps(line: str, following: str) -> bool:
    """True if a line was wrapped and does not end a sentence or an item."""
    return len(line) + 1 + len(following.split(" ")[0]) > WRAP_WIDTH


def _paragraph(lines: list[str]) -> str:
    """Join lines to a paragraph, with intended line breaks and typeset formulas."""
    parts = [lines[0]]
    for line, following in pairwise(lines):
        if _wraps(line, following) or not re.search(r"[=~∝←]", line):
            parts[-1] += f" {following}"
        else:
            parts.append(following)
    return "<br>".join(CODE.sub(_code, set_formulas(part)) for part in parts)


def _code(match: re.Match[str]) -> str:
    return f"<code>{match[1] or match[2]}</code>"


def _display(lines: list[str]) -> str:
    """Format indented lines as formulas if all of them are, otherwise as text with line breaks."""
    rows = [[set_formulas(piece) for piece in re.split(r"\s{2,}", line.strip())] for line in lines]
    if all(piece.startswith(FORMULA) for row in rows for piece in row):
        text = "<br>".join(" &emsp; ".join(row) for row in rows)
        return f'<p class="formulas">{text}</p>'
    return f"<pre>{html.escape(chr(10).join(lines), quote=False)}</pre>"


def docstring(text: str) -> str:
    """Paragraphs with typeset formulas, and lists of sections; other indented lines keep their
    breaks."""
    out: list[str] = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        section = False
        for indented, lines in _runs(block.splitlines()):
            if indented and section:
                items = re.split(r"\n(?=\S)", inspect.cleandoc("\n" + "\n".join(lines)))
                parts = "".join(f"<li>{_paragraph(item.splitlines())}</li>" for item in items)
                out.append(f"<ul>{parts}</ul>")
            elif indented:
                out.append(_display(lines))
            elif lines[-1] in SECTIONS:
                out += [f"<p>{_paragraph(lines[:-1])}</p>"] if lines[:-1] else []
                out.append(f"<p><strong>{lines[-1]}</strong></p>")
            else:
                out.append(f"<p>{_paragraph(lines)}</p>")
            section = lines[-1] in SECTIONS
    return "\n".join(out)


def _runs(lines: list[str]) -> Iterable[tuple[bool, list[str]]]:
    """Groups of consecutive lines, indented or not."""
    for indented, group in groupby(lines, key=lambda line: line.startswith(" ")):
        yield indented, list(group)


def description(declaration: ClassDeclaration) -> str:
    """Docstring without its first sentence and its source, which are at the top of the page."""
    text = inspect.cleandoc(declaration.docstring)
    blocks = re.split(r"\n\s*\n", text)
    kept = [block for block in blocks[1:] if not block.startswith("Source:")]
    return docstring("\n\n".join(kept)) if kept else ""
