"""The list of components in the documents has correct counts and existing names."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.prose.completeness import check_whole, read_rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/completeness.md").read_text(encoding="utf-8")
ROWS = read_rows(PAGE)


def test_complete_rows_have_kept_scores():
    assert list(check_whole(PAGE)) == []
    row = f"| {' | '.join(ROWS[0])} |"
    planted = PAGE.replace(row, "| Table 9.9 | `mlp` | [mlp](results/mlp.md) |  |")
    assert list(check_whole(planted)) == [
        "completeness.md: Table 9.9 is complete, but [mlp](results/mlp.md) has no kept score or picture"
    ]
    (error,) = check_whole(PAGE.replace(row, row.replace(" |  |", " | left |")))
    assert error.endswith("rows are complete; correct the count")


def test_cited_names_exist():
    names = {path.stem for path in (ROOT / "conf").rglob("*.yaml")}
    keys = set(
        re.findall(r"^([a-z0-9_]+):", "\n".join(map(_text, (ROOT / "conf").rglob("*.yaml"))), re.M)
    )
    cited = {name for row in ROWS for name in re.findall(r"`([a-z0-9_]+)`", row[1])}
    assert cited - names - keys == set()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_slips_name_test_files():
    slips = (ROOT / "docs/slips.md").read_text(encoding="utf-8")
    files = re.findall(r"`([\w/]+\.py)`", slips)
    assert len(files) > 30
    assert [file for file in files if not (ROOT / "tests" / file).is_file()] == []
