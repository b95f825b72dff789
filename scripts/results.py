"""``make results``: the pages of ``docs/results`` made again from the scores that are kept beside
them.

    python -m scripts.results                    every page whose scores are kept; says which have changed
    python -m scripts.results --check            writes nothing, fails when a page differs from its scores
    python -m scripts.results --prose            README.md, the chapters, missing.md, printed.md and cost.md
    python -m scripts.results hmm_vis spoofed    these alone, and their first page where there is none yet
    python -m scripts.results hmm_vis --keep outputs    with the records there: scores, provenance and figures are kept anew

A page is that of ``runner report STUDY --with docs/results/STUDY_replicates.csv``.
``STUDY_origin.json`` beside the scores holds what only records know.  What stands in a page between
the marks of ``BY_HAND`` stays where it is, under its heading.

``README.md`` and ``chapters/*.md`` are made from ``*.md.in``, with numbers named by key
(``scripts.prose.fields``); what has no kept scores is listed in ``missing.md``, ``printed.md`` counts
the printed numbers (``scripts.prose.printed_page``), and ``cost.md`` has what each page cost. Pages of scripts, those by
hand, and figures drawn from records that were not kept are named, and left alone."""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from runner.disk.atomic import write_bytes
from runner.errors import ConfigError
from runner.report.origin import Kept, read_kept_scores
from runner.report.report import write
from runner.study import snapshot as snapshots
from runner.study.definition import StudyDefinition, load_study
from scripts.prose.costs import NAME as COST_PAGE
from scripts.prose.costs import make_costs
from scripts.prose.origin_notes import find_reruns
from scripts.prose.pages import (
    BY_HAND,
    find_typed_pages,
    list_templates,
    make_missing,
    make_page,
)
from scripts.prose.printed import REASONS
from scripts.prose.printed_page import NAME, make_printed
from scripts.prose.scores import FOLDER, list_scores, load_scores

# of 255: mean difference of the points of two drawings of one figure, by other versions of the
# library
ALIKE = 2.0


@dataclass
class Made:
    """One page made again."""

    name: str
    files: dict[str, bytes] = field(default_factory=dict)  # file name -> content
    changed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # figures that could not be drawn anew


def same_picture(a: bytes, b: bytes) -> bool:
    """Whether two PNGs show one figure, though fonts and edges may be drawn a little otherwise."""
    from matplotlib.image import imread

    if a == b:
        return True
    first, second = (imread(io.BytesIO(content), format="png") for content in (a, b))
    return first.shape == second.shape and float(np.abs(first - second).mean()) * 255 <= ALIKE


def with_prose(made: str, old: str) -> str:
    """The page with what was written by hand in the old one, each piece before the first of the
    lines after it there that the page has too, or else at its end."""
    for piece in BY_HAND.finditer(old):
        after = [line for line in BY_HAND.sub("", old[piece.end() :]).splitlines() if line]
        anchor = next((line for line in after if f"\n{line}\n" in made), None)
        if anchor is None:
            made = f"{made.rstrip()}\n\n{piece.group()}"
        else:
            made = made.replace(f"\n{anchor}\n", f"\n{piece.group()}\n{anchor}\n", 1)
    return made


def make(
    name: str,
    kept: Kept,
    study: StudyDefinition,
    output_dir: Path | None,
    launched: str | None = None,
) -> Made:
    """The page of a study, its figures called ``<name>_<figure>.png``, and with records what is
    kept of them; ``launched``: the name that they have there."""
    result = Made(name)
    snapshot = snapshots.load(launched or name, output_dir) if output_dir else None
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(name, study, snapshot, folder, kept, forms=("md",))
        page = (folder / f"{name}.md").read_text(encoding="utf-8")
        for stem in re.findall(r"^!\[.*\]\((\S+)\.png\)$", page, re.M):
            result.files[f"{name}_{stem}.png"] = (folder / f"{stem}.png").read_bytes()
            page = page.replace(f"]({stem}.png)", f"]({name}_{stem}.png)")
        old = FOLDER / f"{name}.md"
        reruns = find_reruns(FOLDER if snapshot is None else folder)
        if name in reruns:
            page = note_rerun(page, reruns[name])
        page = with_prose(page, old.read_text(encoding="utf-8") if old.exists() else "")
        result.files[f"{name}.md"] = page.encode()
        if snapshot is not None:
            for end in ("replicates.csv", "origin.json"):
                result.files[f"{name}_{end}"] = (folder / f"{name}_{end}").read_bytes()
    for file, content in result.files.items():
        path = FOLDER / file
        old_content = path.read_bytes() if path.exists() else None
        same = old_content is not None and (
            same_picture(old_content, content) if file.endswith(".png") else old_content == content
        )
        if not same:
            result.changed.append(file)
    if snapshot is None:
        drawable = {spec.name for spec in [*study.figures, *study.spreads, *study.ranks]}
        result.kept += [f"{name}_{stem}.png" for stem in kept.pictures() if stem not in drawable]
    return result


def note_rerun(page: str, why: str) -> str:
    """The page with a note, under its title, that its scores are to be made again."""
    title, _, rest = page.partition("\n")
    return f"{title}\n\n> These scores are to be made again: {why}.\n{rest}"


def make_prose(check: bool) -> list[str]:
    """All pages of prose, and lists: errors, and with ``check`` pages that differ."""
    templates = list_templates(FOLDER)
    if not templates:
        return []
    pages = [make_page(template, FOLDER) for template in templates]
    errors = [error for page in pages for error in page.errors]
    texts = {page.path: page.text for page in pages}
    texts[FOLDER / "missing.md"] = make_missing(pages, FOLDER)
    texts[FOLDER / COST_PAGE] = make_costs(FOLDER)
    if (FOLDER / REASONS).is_file():
        try:
            texts[FOLDER / NAME], wrong = make_printed(FOLDER)
        except ConfigError as error:
            wrong = [str(error)]
        errors += wrong
    for path, text in texts.items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if check:
            errors.append(f"{path.name}: differs from its template and scores")
        else:
            write_bytes(path, text.encode())
            print(f"written: {path.relative_to(FOLDER)}")
    return [*errors, *find_typed_pages(FOLDER)]


def main(argv: list[str]) -> int:
    """Makes pages again; exit code 1 with --check when one differs."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.results", description="Pages of docs/results from kept scores."
    )
    parser.add_argument(
        "study", nargs="*", help="names of pages (default: all that are there and have kept scores)"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; fail when a page differs from its scores",
    )
    parser.add_argument(
        "--prose",
        action="store_true",
        help="README.md, the chapters, missing.md, printed.md and cost.md",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="take in the records of the named studies in this folder",
    )
    parser.add_argument(
        "--as",
        dest="launched",
        metavar="NAME",
        help="the name that the one study was launched under",
    )
    arguments = parser.parse_args(argv)
    find_reruns.cache_clear()
    load_scores.cache_clear()
    if arguments.launched and not (arguments.keep and len(arguments.study) == 1):
        parser.error("--as: with --keep, and the name of one study")
    if arguments.keep and not arguments.study:
        parser.error("--keep: say of which studies")
    scores = list_scores(FOLDER)
    pages = {path.stem for path in FOLDER.glob("*.md")} - {"README", "missing", "printed", "cost"}
    names = arguments.study or [name for name in scores if name in pages]
    if arguments.prose:
        names = []
    wrong, kept_figures = [], []
    for name in names:
        if name not in scores and not arguments.keep:
            print(f"{name}: no {name}_replicates.csv here; --keep takes it from records")
            wrong.append(name)
            continue
        try:
            if name in scores:
                study, kept = load_scores(FOLDER, name)
            else:
                study = load_study(name)
                kept = read_kept_scores([], study)
            result = make(name, kept, study, arguments.keep, arguments.launched)
        except ConfigError as error:
            print(f"{name}: {error}")
            wrong.append(name)
            continue
        kept_figures += result.kept
        if result.changed:
            wrong.append(name)
            print(
                f"{name}: {'differs' if arguments.check else 'written'}: {', '.join(result.changed)}",
                flush=True,
            )
            for file in [] if arguments.check else result.changed:
                write_bytes(FOLDER / file, result.files[file])
    errors = [] if arguments.study else make_prose(arguments.check)
    for line in errors:
        print(line)
    print(f"{len(names) - len(wrong)} of {len(names)} pages are what their scores give")
    if not arguments.study and not arguments.prose:
        for message, items in (
            ("figures drawn from records that were not kept, left as they are", kept_figures),
            (
                "pages without kept scores (of scripts, or from before scores were kept), left alone",
                pages - scores.keys(),
            ),
            (
                "scores without a page of their own (README.md tells of them; name one to make its page)",
                scores.keys() - pages,
            ),
        ):
            print(f"{message}: {', '.join(sorted(items)) or 'none'}")
    return 1 if (wrong and arguments.check) or errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
