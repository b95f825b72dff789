"""Chapters and README.md of docs/results, made from ``docs/results/templates``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from scripts.pages import render
from scripts.prose.fields import FIELD, MARKER, fill_field
from scripts.prose.hand_typed import find_hand_typed, find_untested
from scripts.prose.origin_notes import find_reruns
from scripts.prose.scores import FOLDER, Lookup, ProseError

KEPT = ("replicates", "ranks")  # scores of a study, ranks of a calibration
DAGGER = "† a run behind this number failed one of its checks"
SHORT = "¶ a run behind this number was too short: it failed only checks that more steps would pass"
FEW = "‡ fewer than five replicates: indicative"
CERTAIN = "bold differences: p ≤ 0.05 by Student's t, corrected by Holm for all tests of the table"
TEMPLATES = "templates"  # folder of NAME.md.in, next to the pages
NOTICE = "<!-- made by make results from {name}; do not edit -->\n"
PIECE = re.compile(  # code, a field or a marker
    rf"^```.*?^```|^(?:    [^\n]*\n)+|`[^`\n]*`|\$[^$]+\$|{FIELD.pattern}|{MARKER.pattern}",
    re.M | re.S,
)


@dataclass
class Page:
    """A page made from its template."""

    path: Path
    text: str
    missing: list[tuple[str, str]] = field(default_factory=list)  # (what, study)
    errors: list[str] = field(default_factory=list)

    def add_missing(self, marked: str, template: Path) -> str:
        """Record a marker ``[missing: what | study]``, which does not appear on the page."""
        what, _, study = " ".join(marked.split()).partition(" | ")
        self.missing.append((what.replace("|", "\\|"), study))
        if not study:
            self.errors.append(f"{template.name}: [missing: {what}] names no study or command")
        return ""


def list_templates(folder: Path = FOLDER) -> list[Path]:
    """All templates."""
    return sorted((folder / TEMPLATES).rglob("*.md.in"))


def find_page(template: Path, folder: Path) -> Path:
    """The page that is made from a template."""
    return folder / template.relative_to(folder / TEMPLATES).with_suffix("")


def has_kept_scores(folder: Path, name: str) -> bool:
    """True if a page has scores of a study or ranks of a calibration next to it."""
    return any(any(folder.glob(f"{name}_{kept}.csv*")) for kept in KEPT)


def list_unscored(folder: Path = FOLDER) -> list[Path]:
    """Pages without a source of numbers: they have neither kept scores nor a template."""
    made = {find_page(template, folder) for template in list_templates(folder)}
    made |= {folder / name for name in ("missing.md", "printed.md", "cost.md")}
    return [
        page
        for page in sorted(folder.rglob("*.md"))
        if page not in made and not has_kept_scores(page.parent, page.stem)
    ]


def make_page(template: Path, folder: Path = FOLDER) -> Page:
    """The page of a template; its errors list the fields that could not be filled in."""
    source = template.read_text(encoding="utf-8")
    page = Page(find_page(template, folder), "")
    for number, text in find_hand_typed(source):
        page.errors.append(f"{template.name}, line {number}: {text} is typed by hand")
    for number, word in find_untested(source):
        page.errors.append(
            f"{template.name}, line {number}: {word!r} without a field that tests it"
        )
    lookup = Lookup(folder)

    def replace(match: re.Match[str]) -> str:
        field, kind, marked = match.groups()
        if kind == "missing":
            return page.add_missing(marked, template)
        if kind or not field:
            return marked or match[0]
        try:
            return fill_field(field, lookup)
        except ProseError as error:
            line = source.count("\n", 0, match.start()) + 1
            page.errors.append(f"{template.name}, line {line}: {error}")
            return "**no kept score**"

    body = re.sub(r"[ \t]+$", "", PIECE.sub(replace, source), flags=re.M)
    body = re.sub(r"\n{3,}", "\n\n", body)
    page.text = NOTICE.format(name=template.relative_to(folder)) + _insert_legend(
        body, lookup, folder
    )
    return page


def _insert_legend(body: str, lookup: Lookup, folder: Path) -> str:
    """The page with the meaning of its marks, and the scores to compute again."""
    lines = []
    marks = [words for words in (DAGGER, SHORT, FEW) if words[0] in body]
    if re.search(r"\| \*\*[+−]", body):
        marks.append(CERTAIN)
    if marks:
        lines.append(f"Numbers: mean ± standard error over replicates. {'; '.join(marks)}.")
    reruns = [name for name in sorted(lookup.used) if name in find_reruns(folder)]
    if reruns:
        lines.append(
            "Studies to run again, because their code had uncommitted changes or an unknown commit: "
            f"{', '.join(f'`{name}`' for name in reruns)}."
        )
    if not lines:
        return body
    head, _, rest = body.partition("\n## ")
    legend = "\n\n".join(f"> {line}" for line in lines)
    return f"{head.rstrip()}\n\n{legend}\n\n## {rest}" if rest else f"{head}\n{legend}\n"


def make_missing(pages: list[Page], folder: Path = FOLDER) -> str:
    """``missing.md``: studies without kept scores, and studies to run again."""
    return render("missing", pages=pages, folder=folder, reruns=find_reruns(folder))
