"""``printed.md``: how many numbers the papers print, how many have kept scores next to them, and
why the others have none."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from scripts.pages import render
from scripts.prose.printed import REASONS, assign_reasons, collect_cells, read_reasons
from scripts.prose.scores import FOLDER

NAME = "printed.md"
KINDS = {"table": "in tables", "figure": "in figures and captions", "": "in sentences"}


def describe(cells: pd.DataFrame) -> dict[str, Any]:
    """Describe the printed numbers of a table or of a reason: their count and their names.

    ``kept`` of them have kept scores, and ``enough`` of these have enough replicates.
    """
    scored = cells[cells["replicates"] > 0]
    verdicts = Counter(scored["verdict"]).most_common()
    places = cells.groupby("source", sort=False)["where"].unique()
    counts = Counter(next(k for k in KINDS if not k or f"_{k}_" in t) for t in cells["table"])
    kinds = (f"{counts[kind]} {words}" for kind, words in KINDS.items() if counts[kind])
    replicates = sorted({cells["replicates"].min(), cells["replicates"].max()})
    return {
        "printed": len(cells),
        "kept": len(scored),
        "enough": (~scored["is_open"]).sum(),
        "verdicts": ", ".join(f"{n} {word}" for word, n in verdicts),
        "places": "; ".join(f"{source}: {'; '.join(where)}" for source, where in places.items()),
        "kinds": ", ".join(kinds),
        "studies": scored["studies"].explode().unique(),
        "rows": "; ".join(cells["row"].unique()),
        "columns": "; ".join(cells["column"].unique()),
        "replicates": " to ".join(map(str, replicates)),
    }


def make_printed(folder: Path = FOLDER) -> tuple[str, list[str]]:
    """Text of the page, and errors of its reasons."""
    reasons = read_reasons(folder / REASONS)
    cells = collect_cells(folder)
    assigned, errors = assign_reasons(reasons.reasons, cells)
    papers = Counter(cells["source"])
    text = render(
        "printed",
        every=describe(cells),
        unlisted={p: n - papers[p] for p, n in reasons.printed.items() if n > papers[p]},
        tables=[describe(group) for _, group in cells.groupby("table", sort=False)],
        assigned=[(reason, describe(group)) for reason, group in assigned],
        pages={path.stem for path in folder.glob("*.md")},
    )
    return re.sub(r"[ \t]+\n", "\n", text), errors
