"""Figures, tables and references of a run, written beside its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components import registry
from runner.compose.config import Job
from runner.compose.parts import names_inside

BIBLIOGRAPHY = Path(registry.__file__).parent / "references.bib"


def write_artefacts(folder: Path, figures: dict[str, Any], tables: dict[str, Any], job: Job) -> None:
    """``figures/<name>.png``, ``tables/<name>.csv`` and the references of the components used."""
    for name, figure in figures.items():
        (folder / "figures").mkdir(exist_ok=True)
        figure.savefig(folder / "figures" / f"{name}.png", dpi=150)
    for name, table in tables.items():
        (folder / "tables").mkdir(exist_ok=True)
        table.to_csv(folder / "tables" / f"{name}.csv", index=False)
    (folder / "references.bib").write_text(references(job))


def _entries() -> dict[tuple[str, str], str]:
    """(first author's family name, year) -> BibTeX entry."""
    entries = {}
    for text in BIBLIOGRAPHY.read_text().split("\n@"):
        body = text if text.startswith("@") else f"@{text}"
        fields = {
            line.split("=", 1)[0].strip(): line.split("=", 1)[1].strip().strip(",").strip("{}")
            for line in body.splitlines()
            if "=" in line
        }
        if "author" in fields:
            entries[fields["author"].split(",")[0].split()[-1], fields["year"]] = body.strip()
    return entries


def references(job: Job) -> str:
    """BibTeX of what the components' ``Source:`` lines name."""
    chosen = {(role, name) for role, name in job.choice.items() if name}
    for role in job.choice:
        if job.config.get(role):
            chosen |= {(inner, name) for _, inner, name in names_inside(role, job.config[role], role)}
    sources = [entry.source for role, name in chosen for entry in registry.catalogue(role) if entry.name == name]
    text = " ".join(sources)
    used = [body for (author, year), body in _entries().items() if author in text and year in text]
    return "\n\n".join(used) + "\n"
