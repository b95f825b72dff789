"""``printed.md``: how many numbers the papers print, how many have kept scores next to them, and
why the others have none."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from scripts.pages import render
from scripts.prose.printed import (
    REASONS,
    PrintedCell,
    assign_reasons,
    collect_cells,
    read_reasons,
)
from scripts.prose.scores import FOLDER

NAME = "printed.md"
KINDS = {"table": "in tables", "figure": "in figures and captions", "": "in sentences"}


@dataclass(frozen=True)
class Group:
    """Printed numbers of a table, or of a reason."""

    cells: list[PrintedCell]

    @property
    def printed(self) -> int:
        """Number of them."""
        return len(self.cells)

    @property
    def kept(self) -> int:
        """Number with kept scores."""
        return sum(cell.replicates > 0 for cell in self.cells)

    @property
    def enough(self) -> int:
        """Number with enough replicates."""
        return sum(cell.replicates > 0 and not cell.is_open for cell in self.cells)

    @property
    def verdicts(self) -> str:
        """``12 agrees, 3 differs``."""
        words = Counter(cell.verdict for cell in self.cells if cell.replicates)
        return ", ".join(f"{n} {word}" for word, n in words.most_common())

    @property
    def places(self) -> str:
        """``Boustati (2021): Table 3.1, section 3.5.2; Table A.2, appendix A.2.2``."""
        places: dict[str, dict[str, None]] = {}
        for cell in self.cells:
            places.setdefault(cell.table.source, {})[cell.table.where] = None
        return "; ".join(f"{source}: {'; '.join(where)}" for source, where in places.items())

    @property
    def kinds(self) -> str:
        """``600 in tables, 20 in sentences``."""
        names = [cell.table.name for cell in self.cells]
        counts = Counter(next(k for k in KINDS if not k or f"_{k}_" in name) for name in names)
        return ", ".join(f"{counts[kind]} {words}" for kind, words in KINDS.items() if counts[kind])

    @property
    def studies(self) -> list[str]:
        """Studies with kept scores next to them."""
        return list(dict.fromkeys(study for cell in self.cells for study in cell.studies))


def make_printed(folder: Path = FOLDER) -> tuple[str, list[str]]:
    """Text of the page, and errors of its reasons."""
    reasons = read_reasons(folder / REASONS)
    cells = collect_cells(folder)
    assigned, errors = assign_reasons(reasons.reasons, cells)
    papers = Counter(cell.table.source for cell in cells.values())
    tables: dict[str, list[PrintedCell]] = {}
    for (table, _, _), cell in cells.items():
        tables.setdefault(table, []).append(cell)
    text = render(
        "printed",
        every=Group(list(cells.values())),
        unlisted={p: n - papers[p] for p, n in reasons.printed.items() if n > papers[p]},
        tables=[Group(own) for own in tables.values()],
        assigned=[(reason, Group(own)) for reason, own in assigned],
        pages={path.stem for path in folder.glob("*.md")},
    )
    return re.sub(r"[ \t]+\n", "\n", text), errors
