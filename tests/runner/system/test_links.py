"""Links in the documents lead to existing files and headings of the repository."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_target(page):
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    files = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in files if not (page.parent / link).exists()] == []


def headings(page: Path) -> set[str]:
    """Anchors of all headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in headings}


def test_every_anchor_is_a_heading():
    wrong = []
    for page in PAGES:
        for to, anchor in re.findall(
            r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")
        ):
            wrong += [f"{page.name}: {to}#{anchor}"] * (
                anchor not in headings(page.parent / to if to else page)
            )
    assert wrong == []
