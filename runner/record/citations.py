"""Which entries of references.bib a ``Source:`` line cites: each citation is one key, or none where
there is no entry.

A citation is the authors as the entry has them, and the year: ``Gallego (2021)``, ``Welling & Teh
(2011)``, ``Ma et al. (2015)`` or all of the names."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from components import registry

BIBLIOGRAPHY = Path(registry.__file__).parent / "references.bib"
# LaTeX's accents, and the combining marks that Unicode puts after a letter.
COMBINING_ACCENTS = dict(
    zip("'`\"^~uvc", "\u0301\u0300\u0308\u0302\u0303\u0306\u030c\u0327", strict=True)
)
LATEX_ACCENT_PATTERN = re.compile(r"\{?\\(['`\"^~uvc])\{?(\w)\}?\}?")


@dataclass(frozen=True)
class BibEntry:
    """One entry: its key, its text, the authors' family names and the year; none, and empty where
    it has no authors."""

    key: str
    body: str
    names: tuple[str, ...]
    year: str

    def pattern(self) -> re.Pattern[str]:
        """Pattern of a text that cites the entry."""
        names = [re.escape(name) for name in self.names if name != "others"]
        first = names[0]
        rest = "|".join(names[1:])
        some = rf"(?:, (?:{rest}))*" if rest else ""
        forms = (
            [rf"{first}{some} et al\.?"] if len(self.names) > 2 or "others" in self.names else []
        )
        if "others" not in self.names:
            forms.append(
                first if len(names) == 1 else rf"{', '.join(names[:-1])},? (?:and|&) {names[-1]}"
            )
        # Not the last of other authors ("Titsias and Ruiz" is no work by Ruiz only); "4 and
        # Titsias" begins a citation.
        lookbehind = r"(?<![^\W\d_] and )(?<![^\W\d_] & )"
        return re.compile(
            rf"{lookbehind}(?<![\w-])(?:{'|'.join(forms)}),? \(?(?:\d{{4}}[a-z]?, )*{self.year}(?!\d)"
        )


def _names(authors: str) -> tuple[str, ...]:
    """Family names: ``Family, Given and Family, Given``, or the last word of one without a
    comma."""
    authors = LATEX_ACCENT_PATTERN.sub(
        lambda found: unicodedata.normalize("NFC", found[2] + COMBINING_ACCENTS[found[1]]), authors
    )
    people = (
        author.strip().replace("{", "").replace("}", "")
        for author in re.split(r"\s+and\s+", authors)
    )
    return tuple(person.split(",")[0] if "," in person else person.split()[-1] for person in people)


@cache
def entries(path: Path = BIBLIOGRAPHY) -> tuple[BibEntry, ...]:
    """Every entry of a BibTeX file."""
    bib_entries = []
    for body in re.split(r"\n(?=@)", path.read_text(encoding="utf-8")):
        key = re.match(r"@\w+\{([^,]+),", body.strip())
        fields = dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*$", body, re.MULTILINE))
        if key:
            names = _names(fields["author"]) if "author" in fields else ()
            bib_entries.append(BibEntry(key[1], body.strip(), names, fields.get("year", "")))
    return tuple(bib_entries)


def cited_entries(text: str, path: Path = BIBLIOGRAPHY) -> list[BibEntry]:
    """The entries that a text cites, in the order of the file."""
    return [entry for entry in entries(path) if entry.names and entry.pattern().search(text)]
