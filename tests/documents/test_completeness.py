"""The list of what the documents name counts its rows, and all names in it exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/completeness.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| item ")
]


def test_whole_rows_are_counted():
    whole = sum(len(row) < 3 or not row[2] for row in ROWS)
    assert f"Whole: {whole} of {len(ROWS)}<" in PAGE


def test_every_name_is_a_component_an_experiment_or_a_study():
    names = {path.stem for path in (ROOT / "conf").rglob("*.yaml")}
    keys = set(
        re.findall(r"^([a-z0-9_]+):", "\n".join(map(_text, (ROOT / "conf").rglob("*.yaml"))), re.M)
    )
    cited = {name for row in ROWS for name in re.findall(r"`([a-z0-9_]+)`", row[1])}
    assert cited - names - keys == set()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
