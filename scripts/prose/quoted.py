"""Results that guides and tutorials quote: each has to be in an output that the same page prints.

Slow tests run what the outputs come from again (``scripts.outputs``).
A fraction, a percentage, a number with ± and a multiple in words (*nine times*) count as results.
``0.95<!-- setting -->`` and ``0.90<!-- print -->`` are none of ours.
"""

from __future__ import annotations

import re
from pathlib import Path

from scripts.prose.hand_typed import WORDS, blank_allowed

DOCS = Path(__file__).parent.parent.parent / "docs"
GENERATED = ("contracts.md", "study_keys.md", "completeness.md")  # or lists of sections and tables
PRINTED = re.compile(r"^```text\n(.*?)^```", re.M | re.S)
FILLED = re.compile(r"<!-- results: make results -->.*?<!-- end -->", re.S)  # README's table
VALUE = re.compile(r"(?<![\w.])[−+-]?(?:\d[\d,]*)?\.?\d+(?:e[−+-]?\d+)?")
RESULT = re.compile(r"(?<![\w.])(\d*\.\d+|\d[\d,]*(?= %|%| ?±)|(?<=± )\d+)( ?%)?")
MARKED = re.compile(r"[\w.,−+⅔]+(?: %)?(?:<!-- (?:setting|print) -->)")
OTHER = re.compile(  # commands, formulas, intervals of 90 %, Python 3.11, 2 GB
    r"^    .*$|\$[^$\n]+\$|\b\d\d % (?:credible |forecast )?intervals?|intervals? of \d\d %"
    r"|central \d\d %|Python \d[.\d]+|[\d.]+ (?:GB|MiB)|\d+(?:\.\d+){3}",
    re.M,
)


def list_guides() -> list[Path]:
    """README, guides and tutorials."""
    folders = (DOCS, DOCS / "methods", DOCS / "tutorials")
    pages = [page for folder in folders for page in sorted(folder.glob("*.md"))]
    return [DOCS.parent / "README.md", *(page for page in pages if page.name not in GENERATED)]


def _read_values(text: str) -> list[float]:
    values = (re.sub(r"[,+]", "", match).replace("−", "-") for match in VALUE.findall(text))
    return [abs(float(value)) for value in values]


def find_unprinted(page: str) -> list[tuple[int, str]]:
    """Line and text of every result in a page's prose that none of its outputs prints."""
    printed = [value for block in PRINTED.findall(page) for value in _read_values(block)]
    text = page
    for pattern in (FILLED, MARKED, OTHER):
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    text = blank_allowed(text)
    found = [(match.start(), match[0]) for match in WORDS.finditer(text)]
    for match in RESULT.finditer(text):
        number, percent = match.groups()
        value, decimals = float(number.replace(",", "")), len(number.partition(".")[2])
        scales = (1.0, 100.0) if percent else (1.0,)
        if not any(round(scale * each, decimals) == value for each in printed for scale in scales):
            found.append((match.start(), match[0]))
    return [(text.count("\n", 0, start) + 1, words) for start, words in sorted(found)]
