"""Extension of griffe: reads sections ``Example:`` of docstrings as code that doctest can run."""

from __future__ import annotations

import re
from typing import Any

import griffe


class DocstringSections(griffe.Extension):
    """Names such sections as griffe does, ``Examples:``."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Renames the sections of one object's docstring."""
        if obj.docstring:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)
