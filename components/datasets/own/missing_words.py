"""Missing cells: listed words, their spellings, and marks without a value."""

from __future__ import annotations

import re
from collections.abc import Sequence

MARKS = re.compile(r"[-–—.…?*#/<>()]")


def is_missing(text: str, words: Sequence[str], among_numbers: bool) -> bool:
    """True for a listed word or a variant, such as n/a, #N/A or NULL. Among numbers letter case is
    ignored, and None and, if the empty text is listed, marks such as - and . are missing too."""
    plain = MARKS.sub("", text).lower()
    is_spelling = plain in {*map(str.lower, words), "none"}
    is_word = plain not in ("", "none") and (plain != text.lower() or text.isupper())
    return text in words or (is_spelling and (among_numbers or is_word))


def find_cells(texts: Sequence[str | None], words: Sequence[str]) -> list[str | None]:
    """Cells of a column, with None for missing values."""
    cells = [None if text is None else text.strip() for text in texts]
    distinct = {cell for cell in cells if cell is not None}
    words_only = {cell for cell in distinct if cell in words or not re.search(r"\d", cell)}
    given = [cell for cell in words_only if not is_missing(cell, words, True)]
    among_numbers = len(given) <= len(distinct - words_only) > 0
    missing = {cell for cell in words_only if is_missing(cell, words, among_numbers)}
    return [None if cell in missing else cell for cell in cells]
