"""Entries of references.bib that are cited in ``Source:`` lines.

A citation consists of the authors, as in the field ``cited`` of the entry, and the year:
``Gallego (2021)``, ``Welling & Teh (2011)``, ``Ma et al. (2015)``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from components import registry

BIBLIOGRAPHY = Path(registry.__file__).parent / "references.bib"


@dataclass(frozen=True)
class BibEntry:
    """An entry: key, text, authors as cited, and year."""

    key: str
    body: str
    cited: str
    year: str

    def pattern(self) -> re.Pattern[str]:
        """Pattern of a citation of the entry."""
        # must not match the last of several authors ("Titsias and Ruiz" does not cite Ruiz), but
        # "4 and Titsias" begins a citation
        return re.compile(
            rf"(?<![^\W\d_] and )(?<![\w-]){re.escape(self.cited)},? \(?(?:\d{{4}}[a-z]?, )*{self.year}(?!\d)"
        )


@cache
def entries(path: Path = BIBLIOGRAPHY) -> tuple[BibEntry, ...]:
    """Entries of a BibTeX file."""
    bib_entries = []
    for body in re.split(r"\n(?=@)", path.read_text(encoding="utf-8")):
        key = re.match(r"@\w+\{([^,]+),", body.strip())
        fields = dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*$", body, re.MULTILINE))
        if key:
            cited = fields.get("cited", "")
            year = fields.get("year", "")
            bib_entries.append(BibEntry(key[1], body.strip(), cited, year))
    return tuple(bib_entries)


def cited_entries(text: str, path: Path = BIBLIOGRAPHY) -> list[BibEntry]:
    """Entries cited in a text, in the order of the file."""
    text = text.replace(" & ", " and ")
    return [entry for entry in entries(path) if entry.cited and entry.pattern().search(text)]
