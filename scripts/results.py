"""``make results``: write the pages of ``docs/results`` again from the scores that are kept next to
them.

    python -m scripts.results                    all pages with kept scores; prints the changed ones
    python -m scripts.results --check            writes nothing, fails when a page differs from its scores
    python -m scripts.results --prose            README.md, the chapters, missing.md, printed.md and cost.md
    python -m scripts.results hmm_vis spoofed    only these; creates pages that do not exist yet
    python -m scripts.results hmm_vis --keep outputs    take scores, provenance and figures from these records

A page is the output of ``runner report STUDY --with docs/results/STUDY_replicates.csv.gz``.
``STUDY_origin.json`` next to the scores holds facts that are only in records.

``README.md`` and ``chapters/*.md`` are made from ``templates/``, with numbers named by key
(``scripts.prose.fields``); ``missing.md`` lists studies without kept scores,
``printed.md`` counts the printed numbers (``scripts.prose.printed_page``), and ``cost.md`` has the cost of
each page. Pages of scripts, and figures drawn from records that were not kept, are not changed."""

from __future__ import annotations

import argparse
import gzip
import io
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

from runner.disk.atomic import write_bytes
from runner.errors import ConfigError
from runner.report.origin import Kept, read_kept_scores
from runner.report.report import write
from runner.study import snapshot as snapshots
from runner.study.definition import StudyDefinition, load_study
from scripts.outputs.pictures import reduce_colours
from scripts.prose.completeness import PAGE, check_whole
from scripts.prose.costs import NAME as COST_PAGE
from scripts.prose.costs import make_costs
from scripts.prose.origin_notes import check_commits, find_reruns
from scripts.prose.pages import (
    NOTICE,
    list_templates,
    list_unscored,
    make_missing,
    make_page,
)
from scripts.prose.printed import REASONS
from scripts.prose.printed_page import NAME, make_printed
from scripts.prose.scores import FOLDER, clear_caches, list_scores, load_scores

# of 255: allowed mean difference between the pixels of one figure drawn by two versions of the
# library
ALIKE = 2.0


def same_picture(a: bytes, b: bytes) -> bool:
    """True if two PNGs show the same figure; fonts and edges may differ slightly."""
    from matplotlib.image import imread

    if a == b:
        return True
    first, second = (imread(io.BytesIO(content), format="png") for content in (a, b))
    return first.shape == second.shape and float(np.abs(first - second).mean()) * 255 <= ALIKE


def is_same(path: Path, content: bytes) -> bool:
    """True if a file has this content, or a PNG the same figure."""
    if not path.exists():
        return False
    old = path.read_bytes()
    return same_picture(old, content) if path.suffix == ".png" else old == content


def write_changed(files: dict[str, bytes], check: bool) -> list[str]:
    """Names of the files that differ from those in the folder, written unless ``check``."""
    changed = [name for name, content in files.items() if not is_same(FOLDER / name, content)]
    for name in [] if check else changed:
        content = files[name]
        write_bytes(FOLDER / name, reduce_colours(content) if name.endswith(".png") else content)
    return changed


def make(name: str, output_dir: Path | None, launched: str | None) -> dict[str, bytes]:
    """Files of a study's page.  Figures are called ``<name>_<figure>.png``; with records, scores
    and provenance are included.  ``launched`` is the study's name in the records.

    Raises:
        ConfigError: there are neither kept scores nor records.
    """
    study, kept = read_kept(name, output_dir)
    snapshot = snapshots.load(launched or name, output_dir) if output_dir else None
    files = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(name, study, snapshot, folder, kept, forms=("md",))
        page = (folder / f"{name}.md").read_text(encoding="utf-8")
        for stem in re.findall(r"^!\[.*\]\((\S+)\.png\)$", page, re.M):
            files[f"{name}_{stem}.png"] = (folder / f"{stem}.png").read_bytes()
            page = page.replace(f"]({stem}.png)", f"]({name}_{stem}.png)")
        reruns = find_reruns(FOLDER if snapshot is None else folder)
        if name in reruns:
            page = note_rerun(page, reruns[name])
        notice = NOTICE.format(name=f"{name}_replicates.csv.gz")
        files[f"{name}.md"] = (notice + page).encode()
        if snapshot:
            scores = (folder / f"{name}_replicates.csv").read_bytes()
            files[f"{name}_replicates.csv.gz"] = gzip.compress(scores, mtime=0)
            files[f"{name}_origin.json"] = (folder / f"{name}_origin.json").read_bytes()
    return files


def read_kept(name: str, output_dir: Path | None) -> tuple[StudyDefinition, Kept]:
    """Definition and kept scores of a study, no scores if they come from records.

    Raises:
        ConfigError: there are no kept scores.
    """
    if name in list_scores(FOLDER):
        return load_scores(FOLDER, name)
    if output_dir is None:
        raise ConfigError(
            f"{name}_replicates.csv.gz does not exist; use --keep DIR to take it from records"
        )
    study = load_study(name)
    return study, read_kept_scores({}, study)


def note_rerun(page: str, why: str) -> str:
    """The page with a note below its first sentences: its scores have to be computed again."""
    title, outcome, rest = page.split("\n\n", 2)
    return "\n\n".join([title, outcome, f"> These scores must be computed again: {why}.", rest])


def make_prose(check: bool) -> list[str]:
    """Write all pages of prose and lists; return errors, with ``check`` also pages that differ."""
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
    files = {path.relative_to(FOLDER).as_posix(): text.encode() for path, text in texts.items()}
    for name in write_changed(files, check):
        if check:
            errors.append(f"{Path(name).name}: differs from its template and scores")
        else:
            print(f"written: {name}")
    return errors + [
        f"{page.relative_to(FOLDER)}: neither kept scores nor a template"
        for page in list_unscored(FOLDER)
    ]


def build_parser() -> argparse.ArgumentParser:
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.results",
        description="Writes the pages of docs/results from kept scores.",
    )
    add = parser.add_argument
    add("study", nargs="*", help="names of pages (default: all that have kept scores)")
    add("--check", action="store_true", help="write nothing; fail when a page differs")
    add("--prose", action="store_true", help="README.md, the chapters and the lists")
    add(
        "--keep",
        type=Path,
        metavar="DIR",
        help="take scores from the records of the named studies in DIR",
    )
    add(
        "--as", dest="launched", metavar="NAME", help="name under which the only study was launched"
    )
    return parser


def make_study(name: str, arguments: argparse.Namespace) -> bool:
    """Write one page again; True if it did not differ from its scores."""
    try:
        changed = write_changed(make(name, arguments.keep, arguments.launched), arguments.check)
    except ConfigError as error:
        print(f"{name}: {error}")
        return False
    if changed:
        done = "differs" if arguments.check else "written"
        print(f"{name}: {done}: {', '.join(changed)}", flush=True)
    return not changed


def main(argv: list[str]) -> int:
    """Write pages again; exit code 1 with --check if one differs."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    find_reruns.cache_clear()
    clear_caches()
    if arguments.launched and not (arguments.keep and len(arguments.study) == 1):
        parser.error("--as needs --keep and the name of one study")
    if arguments.keep and not arguments.study:
        parser.error("--keep needs the names of the studies")
    scores = list_scores(FOLDER)
    pages = {path.stem for path in FOLDER.glob("*.md")} - {"README", "missing", "printed", "cost"}
    names = arguments.study or [name for name in scores if name in pages]
    outcomes = [make_study(name, arguments) for name in ([] if arguments.prose else names)]
    errors = [] if arguments.study else make_prose(arguments.check) + check_commits(FOLDER)
    errors += check_whole(PAGE.read_text(encoding="utf-8"))
    print(*errors, f"{sum(outcomes)} of {len(outcomes)} pages match their scores", sep="\n")
    return int(bool(errors) or (arguments.check and not all(outcomes)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
