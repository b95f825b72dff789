"""Passwords in addresses are masked before they are shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


def mask_secrets(text: str) -> str:
    """A text in which no address shows the password, or the key, that it holds."""
    text = re.sub(r"(://[^\s/:@]*):[^\s/]*@", r"\1:***@", text)
    return re.sub(
        r"(?i)([?&](?:password|passwd|pwd|token|secret|key|api_key|access_key)=)[^\s&#]+",
        r"\1***",
        text,
    )
