"""Words of texts in any script."""

from __future__ import annotations

import re
import unicodedata

# Thai and Lao, Burmese, Khmer, kana, Chinese characters
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def tokens_of(text: str) -> list[str]:
    """Words in order: runs of two or more letters, combining marks or digits, in Unicode NFC and
    lower case."""
    text = unicodedata.normalize("NFC", text.lower())
    marks = "".join(letter for letter in set(text) if unicodedata.category(letter)[0] == "M")
    return re.findall(rf"\w[\w{marks}]+", text)
