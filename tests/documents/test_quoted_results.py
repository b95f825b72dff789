"""Results that guides and tutorials quote are in an output that the page prints."""

import pytest

from scripts.prose.quoted import DOCS, find_unprinted, list_guides

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
def test_which_results_no_output_prints(prose, unprinted):
    assert [words for _, words in find_unprinted(OUTPUT + prose)] == unprinted


def test_lines_are_those_of_the_page():
    assert find_unprinted(OUTPUT + "Text.\n\nIt is 0.5.") == [(8, "0.5")]


@pytest.mark.parametrize("page", list_guides(), ids=lambda page: page.stem)
def test_guides_quote_results_that_they_print(page):
    assert find_unprinted(page.read_text(encoding="utf-8")) == []


def test_all_kinds_of_guides_are_read():
    names = {page.relative_to(DOCS.parent).as_posix() for page in list_guides()}
    assert {"README.md", "docs/choose.md", "docs/methods/play.md"} <= names
    assert "docs/tutorials/first_run.md" in names
