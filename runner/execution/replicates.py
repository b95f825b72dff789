"""Reuse of finished replicates from runs with the same configuration.

Replicate r depends only on the seed and on r: ``replicates=5`` after ``replicates=1`` computes four
more, and ``replicates=1`` after that none.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from runner.catalogue.settings import sign
from runner.compose.job import Job
from runner.disk.inside import real_file
from runner.record.facts import Facts, read
from runner.record.files import find_damage, sync_files
from runner.record.lines import NAME as METRICS_NAME
from runner.record.lines import read_lines, write_lines
from runner.record.outcomes import outcomes_file, predictions_file
from runner.record.record import Record

# largest number of replicates of the runs searched; filters, games and chains have more, computed
# together
MOST = 100
Lines = dict[str, list[Facts]]  # lines of metrics.jsonl by replicate


def find_finished_replicates(job: Job) -> tuple[Path, Facts, Lines] | None:
    """Run with most of this job's replicates, its facts and their recorded lines, or None."""
    best: tuple[Path, Facts, Lines] | None = None
    for count in range(1, MOST + 1):
        folder = job.folder.parent / sign(job.config | {"replicates": count}, job.data)
        facts = read(folder) if count != job.settings.replicates and folder.is_dir() else None
        # lines are verified individually; other files are copied and must be undamaged
        if facts is None or {*find_damage(folder, facts)} - {METRICS_NAME}:
            continue
        recorded = _recorded_lines(folder, facts, job.settings.replicates)
        if len(recorded) > (len(best[2]) if best else 0):
            best = folder, facts, recorded
    return best


def _recorded_lines(folder: Path, facts: Facts, replicates: int) -> Lines:
    """Lines of each finished replicate below ``replicates`` with a complete record."""
    unwritten = facts.get("unwritten")  # replicate with missing figures and files
    lines: Lines = {r: [] for r in facts["finished"] if int(r) < replicates and int(r) != unwritten}
    for line in read_lines(folder):
        lines.get(str(line["replicate"]), []).append(line)
    return {
        r: replicate_lines
        for r, replicate_lines in lines.items()
        if replicate_lines and replicate_lines[-1]["phase"] == "final"
    }


def take_over(record: Record, job: Job) -> str | None:
    """Copy finished replicates of another run with the same configuration into a new record.

    This includes scores, recorded lines and figures.

    Returns:
        Message to the user.  None if no run was found, if ``fresh=true`` is set, or if replicates
        are a dimension of the data and so share a random stream.
    """
    if record.state != "pending" or record.note or job.settings.fresh or job.is_vectorised:
        return None
    source = find_finished_replicates(job)
    if source is None:
        return None
    folder, facts, recorded = source
    _fill(record, folder, facts, recorded)
    origin = {
        "run": folder.name,
        "replicates": [int(r) for r in recorded],
        "git": facts["git"].get("sha"),
    }
    record.save(taken_over=origin)
    n_replicates = job.settings.replicates
    number = (
        f"{len(recorded)} of {n_replicates} replicates" if n_replicates > 1 else "its replicate"
    )
    return f"{number} copied from run {folder.name} (fresh=true recomputes everything)"


def _fill(record: Record, folder: Path, facts: Facts, recorded: Lines) -> None:
    """Copy replicates to an empty record: scores, checks, lines, predictions, outcomes, and figures,
    tables and files of the first replicate."""
    lines = [line for of_replicate in recorded.values() for line in of_replicate]
    write_lines(record.folder, sorted(lines, key=lambda line: line["replicate"]))
    artefacts = facts.get("artefacts", []) if "0" in recorded else []
    if "0" in recorded:  # figures and tables belong to the first replicate
        for name in ("figures", "tables", "references.bib", *artefacts):
            _copy(real_file(folder, name, "artefacts"), real_file(record.folder, name, "artefacts"))
    for r in recorded:
        for path in (predictions_file, outcomes_file):
            _copy(path(folder, int(r)), path(record.folder, int(r)))
    for name in ("finished", "checks", "budget_ends"):
        if of_replicates := {r: facts[name][r] for r in recorded if r in facts.get(name, {})}:
            record.facts[name] = of_replicates
    sync_files(record.folder, artefacts)
    seconds = sum(of_replicate[-1]["time"] for of_replicate in recorded.values())
    record.save(seconds=float(seconds), artefacts=artefacts)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
