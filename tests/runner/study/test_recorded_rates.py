"""Times of all records of an experiment."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.runs.made_records import make_record
from support.runs.made_studies import make_run, make_snapshot

from runner.record import facts
from runner.study.pricing.study_records import StudyRecords

N = 16


def signature(i: int) -> str:
    return f"{i:012x}"


@pytest.fixture
def experiment(tmp_path):
    """Records of all kinds: done, running, smoke, taken over, damaged, and without a config."""
    for i in range(N):
        kinds = ({}, {"state": "running"}, {"smoke": True}, {"taken_over": "elsewhere"})
        folder = make_record(tmp_path, signature(i), **kinds[i % 4], seconds=10.0 + i)
        if i % 2:
            (folder / "config.yaml").write_text("seed: 0\nsteps: 5\n")
        if i == 8:
            (folder / facts.NAME).write_text("{")
        if i == 12:
            (folder / "config.yaml").unlink()
    return tmp_path / "made"


def test_rates_are_those_of_done_records(experiment):
    """Calculated by hand: finished records without copies, a quarter each with and without
    steps."""
    expected: dict[tuple, list[float]] = {}
    for i in range(N):
        if i % 4 in (0, 2) and i not in (8, 12):
            kind = ("made", "made", "bnn", "sgld", None, i % 4 == 2, False)
            expected.setdefault(kind, []).append(10.0 + i)
    run = make_run("a")
    snapshot = make_snapshot(experiment.parent, run)
    assert StudyRecords(snapshot, [replace(run, experiment="made")]).rates == expected
