"""Material of a study for a paper: LaTeX tables (``runner.report.latex.tables``), figures with the
width of a column as PDF and SVG, and references.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runner.disk.atomic import write_bytes, write_text
from runner.report.figures.picture import Picture
from runner.report.latex.tables import paired_table, score_table
from runner.report.run_views import RunView
from runner.report.scores.cells import TableLayout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN_WIDTH_INCHES = 3.3  # inches: a column of the usual two-column style
PAGE_WIDTH_INCHES = 6.85  # two columns
WIDEST_INCHES = 8.0  # width of a figure drawn for a column
SMALLEST = 7.0  # smallest font size in points
SOFTWARE = {  # package: its entry in components/references.bib; the version goes with it
    "bayes-runner": "bayes_runner",
    "torch": "paszke2019",
    "gpytorch": "gardner2018",
    "hydra-core": "yadan2019",
    "mlflow": "zaharia2018",
    "numpy": "harris2020",
    "scipy": "virtanen2020",
    "scikit-learn": "pedregosa2011",
    "matplotlib": "hunter2007",
}
TESTS = ("student1908", "holm1979")  # sources of the tests of reports
OVERLAP_TESTS = (*TESTS, "nadeau2003")  # the same where splits overlap


def fit_to_column(figure: Figure) -> None:
    """Scale a figure to the width of a column, or of the page if its panels would be too small, with
    fonts of at least ``SMALLEST`` points."""
    from matplotlib.text import Text

    from components.figures.style import show_entries

    width, height = figure.get_size_inches()
    target = COLUMN_WIDTH_INCHES if width <= WIDEST_INCHES else PAGE_WIDTH_INCHES
    if target < width:
        factor = max(target / width, 0.7)
        for text in figure.findobj(Text):
            text.set_fontsize(max(SMALLEST, text.get_fontsize() * factor))
        figure.set_size_inches(target, height * factor)
        for legend in list(figure.legends):
            entries = zip(
                map(Text.get_text, legend.get_texts()), legend.legend_handles, strict=True
            )
            legend.remove()
            show_entries(figure, dict(entries), SMALLEST)


def bibliography(runs: Sequence[RunView], tests: Sequence[str] = TESTS) -> str:
    """Entries cited in the records of the study's runs, in the order of keys.

    The entries of ``tests`` and of the software, with recorded versions, are included.
    """
    from runner.record.citations import entries as read
    from runner.record.code import installed_version

    bodies = {entry.key: entry.body for entry in read()}
    entries = {key: bodies[key] for key in tests}
    versions: dict[str, dict[str, None]] = {}
    for view in runs:
        path = view.folder / "references.bib" if view.folder else None
        if path and path.is_file():
            entries |= {entry.key: entry.body for entry in read(path)}
        for package, number in view.facts.get("versions", {}).items():
            versions.setdefault(package, {})[number] = None
    for package, key in SOFTWARE.items():
        used = " and ".join(versions.get(package) or [str(installed_version(package))])
        entries[key] = f"{bodies[key].rstrip().removesuffix('}')}  note = {{Version {used}}},\n}}"
    return "\n\n".join(entries[key] for key in sorted(entries)) + "\n"


def write_paper(
    name: str,
    folder: Path,
    tables: list[TableLayout],
    pictures: dict[str, Picture],
    runs: Sequence[RunView],
    smoke: bool,
    reference: str | None,
) -> list[Path]:
    """Write ``table_….tex``, ``table_…_paired.tex``, ``….pdf``, ``….svg`` and ``references.bib`` to a
    folder; return the paths.

    Paired comparisons are with the row ``reference``."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    end = "_smoke.tex" if smoke else ".tex"
    for laid in tables:
        texts = {
            "": score_table(laid, name, smoke),
            "_paired": paired_table(laid, name, reference or "", smoke),
        }
        for kind, text in texts.items():
            if text:
                paths.append(folder / f"table_{laid.spec.name}{kind}{end}")
                write_text(paths[-1], text)
    for stem, picture in pictures.items():
        fit_to_column(picture.figure)
        for form in ("pdf", "svg"):
            paths.append(folder / f"{stem}.{form}")
            write_bytes(paths[-1], picture.render(form))
    paths.append(folder / "references.bib")
    tests = OVERLAP_TESTS if any(laid.splits_overlap for laid in tables) else TESTS
    write_text(paths[-1], bibliography(runs, tests))
    return paths
