"""Content of a report in addition to its tables: runs and provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from runner.catalogue.settings import signed_overrides
from runner.record.code import describe_commit
from runner.report.compared_record import describe_machine
from runner.report.results import describe_replicates
from runner.report.run_views import RunView
from runner.report.scores.cells import TableLayout
from runner.report.wording import CORRECTION, describe_bold, describe_test
from runner.study.definition import StudyDefinition
from runner.study.snapshot import Snapshot

EARLIER_SCORES_PREFIX = "of earlier scores: "  # prefix of notes on earlier scores
INCLUDED = "of earlier reports (--with)"  # text of a note that earlier scores are included


def describe_study(study: StudyDefinition, tables: list[TableLayout]) -> dict[str, Any]:
    """Values of a study and its tables for the template of a page."""
    return {
        "title": study.title,
        "description": study.description,
        "draws_anew": study.draws_anew or "",
        "tables": tables,
        "bold": describe_bold(study.splits is not None),
        "test": describe_test(study.splits is not None),
        "correction": CORRECTION,
        "reference": study.reference,
    }


def provenance(
    study: StudyDefinition,
    snapshot: Snapshot | None,
    runs: list[RunView],
    kept: list[tuple[str, str]],
) -> list[tuple[str, str]]:
    """Provenance of the numbers: data, code, machine, time.

    ``kept`` is the provenance of earlier scores, used unchanged if only these exist.
    """
    if snapshot is None:
        return kept or [("runs", f"none yet; start them with runner study {study.name}")]
    records = [run.facts for run in runs if run.facts]
    machines = (describe_machine(f["hardware"]) for f in records)
    return [
        ("data", _join_distinct(f["data"] for f in records)),
        ("replicates", describe_replicates(study, [f["replicates"] for f in records])),
        ("runs", _describe_states(runs)),
        ("frozen", f"{snapshot.taken}, commit {snapshot.git[:10] or 'unknown'}"),
        ("overrides of this launch", " ".join(signed_overrides(snapshot.extra)) or "none"),
        ("code", _join_distinct(describe_commit(f["git"]) for f in records)),
        ("versions", _join_distinct(_describe_versions(f["versions"]) for f in records)),
        ("machine", _join_distinct(machines)),
        ("threads per run", _join_distinct(f.get("threads") for f in records)),
        *(
            (EARLIER_SCORES_PREFIX + key.removeprefix(EARLIER_SCORES_PREFIX), value)
            for key, value in kept
        ),
    ]


def _describe_states(runs: list[RunView]) -> str:
    """Text with the number of runs in each state, their total time, and CPU hours if all records
    have them."""
    states = Counter(run.state for run in runs)
    records = [run.facts for run in runs if run.facts.get("seconds")]
    hours = sum(facts["seconds"] for facts in records) / 3600
    seconds = [facts["usage"].get("cpu_seconds") for facts in records]
    cpu = ""
    if seconds and None not in seconds:
        cpu = f", {sum(seconds) / 3600:.1f} CPU hours"
    counts = ", ".join(f"{n} {state}" for state, n in states.items())
    return f"{counts}; {hours:.1f} h of computing{cpu}"


def _join_distinct(values: Iterable[Any]) -> str:
    return ", ".join(dict.fromkeys(str(v) for v in values if v)) or "–"


def _describe_versions(versions: dict[str, str]) -> str:
    packages = ("python", "torch", "gpytorch", "numpy")
    return "  ".join(f"{name} {versions[name]}" for name in packages if versions.get(name))
