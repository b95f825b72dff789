"""Extension of griffe that treats sections ``Example:`` of docstrings as doctest code."""

from __future__ import annotations

import re
from typing import Any

import griffe


class DocstringSections(griffe.Extension):
    """Renames these sections to ``Examples:``, griffe's name for them."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the sections in the docstring of an object."""
        if obj.docstring:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)
