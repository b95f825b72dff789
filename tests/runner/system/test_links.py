"""Links of the documents lead to files of the repository."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    told = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    files = [link for link in told if not re.match(r"[a-z]+:", link)]
    assert [link for link in files if not (page.parent / link).exists()] == []
