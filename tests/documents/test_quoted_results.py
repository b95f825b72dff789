"""Results quoted in guides and tutorials must occur in an output on the same page.

Slow tests repeat the commands of the outputs (``scripts.outputs``).
A fraction, a percentage, a number with ± and a multiple in words (*nine times*) count as results.
``0.95<!-- setting -->`` and ``0.90<!-- print -->`` are not our results.
"""

import re
from pathlib import Path

import pytest

from scripts.prose.hand_typed import WORDS, blank_allowed

DOCS = Path(__file__).parents[2] / "docs"
GENERATED = ("completeness.md", "slips.md", "speed.md")  # lists of sections and tables
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


def list_guides():
    """README, guides and tutorials."""
    folders = (DOCS, DOCS / "methods", DOCS / "tutorials")
    pages = [page for folder in folders for page in sorted(folder.glob("*.md"))]
    return [DOCS.parent / "README.md", *(page for page in pages if page.name not in GENERATED)]


def read_values(text):
    values = (re.sub(r"[,+]", "", match).replace("−", "-") for match in VALUE.findall(text))
    return [abs(float(value)) for value in values]


def find_unprinted(page):
    """Line and text of each result in a page's prose that is missing from its outputs."""
    printed = [value for block in PRINTED.findall(page) for value in read_values(block)]
    text = page
    for pattern in (FILLED, MARKED, OTHER):
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    text = blank_allowed(text)
    quotations = [(match.start(), match[0]) for match in WORDS.finditer(text)]
    for match in RESULT.finditer(text):
        number, percent = match.groups()
        value = float(number.replace(",", ""))
        decimals = len(number.partition(".")[2])
        scales = (1.0, 100.0) if percent else (1.0,)
        if not any(round(scale * each, decimals) == value for each in printed for scale in scales):
            quotations.append((match.start(), match[0]))
    return [(text.count("\n", 0, start) + 1, words) for start, words in sorted(quotations)]


OUTPUT = "```text\n│ accuracy │ 0.9778 ± 0.0012 │\n│ share 0.031, −3.2 %\n```\n\n"


@pytest.mark.parametrize(
    ("prose", "unprinted"),
    [
        ("It is 0.978, or 97.8 %, or 98 %.", []),
        ("It is 0.977.", ["0.977"]),
        ("It fell by 3.2 % to 3.1 %.", []),
        ("It is 5 ± 2, not 0.5.", ["5", "2", "0.5"]),
        ("It is twice as fast, at nine times the cost.", ["twice", "nine times"]),
        ("Twice<!-- setting -->, print has 0.42<!-- print --> and 12 %<!-- print -->.", []),
        ("95 % intervals, ε = 0.3, `lr=0.1`, $0.436$, 500 images, Python 3.11", []),
        ("    runner a lr=0.1\n\n```python\nx = 0.25\n```", []),
        ("| model | 0.42 |", ["0.42"]),
        ("<!-- results: make results -->\n| 0.42 |\n<!-- end -->", []),
    ],
)
def test_unprinted_results_are_listed(prose, unprinted):
    assert [words for _, words in find_unprinted(OUTPUT + prose)] == unprinted


def test_line_numbers_match_page():
    assert find_unprinted(OUTPUT + "Text.\n\nIt is 0.5.") == [(8, "0.5")]


@pytest.mark.parametrize("page", list_guides(), ids=lambda page: page.stem)
def test_guides_quote_printed_results(page):
    assert find_unprinted(page.read_text(encoding="utf-8")) == []


def test_every_kind_of_guide_is_listed():
    names = {page.relative_to(DOCS.parent).as_posix() for page in list_guides()}
    assert {"README.md", "docs/choose.md", "docs/methods/play.md"} <= names
    assert "docs/tutorials/first_run.md" in names
