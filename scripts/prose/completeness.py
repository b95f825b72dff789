"""``docs/completeness.md``: complete rows need kept scores or a picture."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runner import CONF
from scripts.prose.pages import has_kept_scores
from scripts.prose.scores import FOLDER

PAGE = FOLDER.parent / "completeness.md"


def read_rows(text: str) -> list[list[str]]:
    """Item, component or study, pages and reason of each row."""
    lines = re.findall(r"^\| (?!item \|)(.*) \|$", text, re.M)
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def check_whole(text: str) -> Iterator[str]:
    """Errors: complete rows without a kept score or picture on a page, a wrong count."""
    rows = read_rows(text)
    complete = [row for row in rows if not row[3]]
    for item, _, shown, _ in complete:
        names = re.findall(r"\[(\w+)\]", shown)
        if not names or not all(map(has_evidence, names)):
            yield f"{PAGE.name}: {item} is complete, but {shown or 'no page'} has no kept score or picture"
    if f"Complete:\n{len(complete)} of {len(rows)}<" not in text:
        yield f"{PAGE.name}: {len(complete)} of {len(rows)} rows are complete; correct the count"


def has_evidence(name: str) -> bool:
    """True if a study or a suite of the arena has kept scores or a picture."""
    is_suite = (CONF / "arena" / f"{name}.csv.gz").is_file()
    return is_suite or has_kept_scores(FOLDER, name) or any(FOLDER.glob(f"{name}*.png"))
