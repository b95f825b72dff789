"""Untrusted text (a path, a column, the description of a foreign record), made safe for terminals
and pages.

A control character could move the cursor, change the title or the clipboard (ANSI, OSC), or reverse
the direction of the following text: each is replaced by its picture (␛ for escape).  Line breaks and
tabs are kept."""

from __future__ import annotations

import re
from typing import TypeVar

CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
T = TypeVar("T")
UNKNOWN = "\ufffd"


def plain(text: str) -> str:
    """Replace control characters other than line breaks and tabs by their pictures."""
    return CONTROL_CHARACTERS.sub(_picture, text)


def plain_cell(text: str) -> str:
    """Apply ``plain`` to a cell of a table, including line breaks and tabs."""
    if text.isprintable():
        return text
    return plain(text).replace("\n", "\u240a").replace("\t", "\u2409")


def plain_value(value: T) -> T | str:
    """Apply ``plain`` to a value in the template of a page, except for trusted mark-up."""
    return plain(value) if isinstance(value, str) and type(value) is str else value


def _picture(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else UNKNOWN
