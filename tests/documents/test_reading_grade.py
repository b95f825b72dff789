"""README and the tutorials are written in plain English."""

from __future__ import annotations

import re

import pytest
import textstat
from support.runs.printed_commands import ROOT

LIMIT = 11.0  # Flesch–Kincaid grade
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
BLOCKS = (
    r"(?ms)^```.*?^```$",  # fenced code
    r"(?s)<!--.*?-->",
    r"(?m)^(?: {4}|\t).*$",  # indented code
    r"(?m)^(?:\||#|!\[).*$",  # tables, headings, pictures
)


def extract_prose(text: str) -> str:
    """Sentences of a page without code, tables, headings and pictures; links are reduced to their
    text."""
    for block in BLOCKS:
        text = re.sub(block, "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"[*_]{1,2}(\S.*?)[*_]{1,2}", r"\1", text)
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    lines = (re.sub(r"^\s*(?:[-*]|\d+\.) ", "", " ".join(p.split())) for p in paragraphs)
    return "\n".join(re.sub(r"[:;,]?$", "", line).rstrip(".") + "." for line in lines if line)


def grade(text: str) -> float:
    """Flesch–Kincaid grade of a page's prose."""
    return textstat.flesch_kincaid_grade(extract_prose(text))


def test_prose_excludes_code_and_tables():
    page = "# Title\n\nRun `a b`:\n\n    code here\n\n| a |\n\n- See [the page](x.md).\n- Two\n"
    assert extract_prose(page) == "Run code.\nSee the page.\nTwo."


def test_long_words_and_sentences_have_a_high_grade():
    plain = "The run stops. The same command starts it again."
    stiff = (
        "Interruptions notwithstanding, reproducibility characteristics of experimental"
        " configurations are invariably maintained."
    )
    assert grade(plain) < LIMIT < grade(stiff)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_is_plain(page):
    assert grade(page.read_text(encoding="utf-8")) <= LIMIT


def test_readme_is_short_and_starts_with_picture():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    for start in ("![", "    pip install", "    runner +experiment="):
        assert any(line.startswith(start) for line in lines[:40]), start
