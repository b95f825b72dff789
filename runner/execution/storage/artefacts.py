"""Figures, tables and references of a run, written next to its record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.contracts.posteriors import WritesFiles
from components.contracts.progress import report_each
from components.figures.attempts import attempt, warn_not_shown
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.replicates.variants import Variants
from runner.compose.expand import all_parts
from runner.compose.job import Job
from runner.disk.atomic import replace_file, write_text
from runner.disk.inside import inside, real_file
from runner.record.citations import BIBLIOGRAPHY, cited_entries
from runner.record.lines import read_lines
from runner.record.outcomes import predictions_file
from runner.terminal.csv_cells import escape_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from components.contracts.roles import Problem
    from components.contracts.streams import Rng


@contextmanager
def skip_artefact_on_error(what: str) -> Iterator[None]:
    """Context that skips an artefact that fails, with a ``MissingOutputWarning``.

    Disk errors are raised.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        warn_not_shown(what, error)


def draw_training_curve(folder: Path) -> dict[str, Figure]:
    """Draw the learning curve of the first replicate from the recorded lines."""
    from components.figures.training_curve import training_curve

    lines = read_lines(folder)
    return attempt(
        "figure training_curve",
        training_curve,
        [(line["step"], line["phase"], line["metrics"]) for line in lines if not line["replicate"]],
    )


def write_artefacts(
    folder: Path, figures: dict[str, Any], tables: dict[str, Any], job: Job
) -> None:
    """Write ``figures/<name>.png``, ``tables/<name>.csv`` and the references of the components."""
    if figures:
        # imports matplotlib, only if there are figures
        from components.figures.labels import readable
    for name in report_each(figures, "saving {}".format):
        figure = figures[name]
        (folder / "figures").mkdir(exist_ok=True)
        with skip_artefact_on_error(f"figure {name}"):
            path = inside(folder / "figures", f"{name}.png", "figure")
            # a file of an earlier run must not remain if this one fails
            path.unlink(missing_ok=True)
            with replace_file(path) as temporary:
                readable(figure).savefig(temporary, format="png", dpi=150, bbox_inches="tight")
    for name, table in tables.items():
        (folder / "tables").mkdir(exist_ok=True)
        with skip_artefact_on_error(f"table {name}"):
            path = inside(folder / "tables", f"{name}.csv", "table")
            write_text(path, escape_table(table).to_csv(index=False))
    write_text(folder / "references.bib", references(job))


def write_files(folder: Path, posterior: WritesFiles) -> list[str]:
    """Write the files of a posterior, such as ``posterior.nc``; return their names."""
    with skip_artefact_on_error("the file of the posterior"):
        names = [os.path.relpath(path, folder) for path in posterior.artefacts(folder)]
        return [name for name in names if real_file(folder, name, "artefacts")]
    return []


def write_predictions(
    folder: Path, replicate: int, problem: Problem, posterior: object, rng: Rng
) -> None:
    """Write ``predictions/<replicate>.csv``, for distances between runs in study reports; all files
    if replicates are side by side.
    """
    from components.evaluation.predictions import predicted_table

    if isinstance(problem, SupervisedReplicates):
        assert isinstance(posterior, tuple), "one posterior per replicate expected"
        for r, (split, member) in enumerate(zip(problem.splits, posterior, strict=True)):
            write_predictions(folder, r, split, member, rng.of(r))
        return
    if isinstance(posterior, Variants):
        for variant, member in posterior.of.items():
            write_predictions(folder / "variants" / variant, replicate, problem, member, rng)
        return
    path = predictions_file(folder, replicate)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, escape_table(predicted_table(problem, posterior, rng)).to_csv(index=False))


def references(job: Job) -> str:
    """BibTeX entries of the works in the components' ``Source:`` lines."""
    sources = {
        declared.source
        for role in job.choice
        if job.config.get(role)
        for _, declared, _ in all_parts(role, job.config[role])
    }
    return (
        "\n\n".join(entry.body for entry in cited_entries("; ".join(sources), BIBLIOGRAPHY)) + "\n"
    )
