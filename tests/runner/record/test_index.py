"""The index of records: the answers of every run.json without reading them, never those of before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.runs.made_records import made_record
from support.runs.made_studies import made_run, made_snapshot

from runner.record import facts, index
from runner.record.index import FOLDER, RecordSummary, load_entries, read_summaries
from runner.study.pricing.study_records import StudyRecords
from runner.system.clean import find_leftovers

N = 60  # more than WRITE_AFTER
HOUR_AGO = 3600


def signature(i: int) -> str:
    return f"{i:012x}"


def age(folder: Path, seconds: float = HOUR_AGO) -> None:
    """Makes a record as old as if nobody had touched it for a while."""
    status = (folder / facts.NAME).stat()
    changed = status.st_mtime_ns - int(seconds * 1e9)
    os.utime(folder / facts.NAME, ns=(changed, changed))


@pytest.fixture
def experiment(tmp_path):
    """Records of all kinds: done, running, smoke, taken over, damaged, without a config."""
    for i in range(N):
        kinds = ({}, {"state": "running"}, {"smoke": True}, {"taken_over": "elsewhere"})
        folder = made_record(tmp_path, signature(i), **kinds[i % 4], seconds=10.0 + i)
        if i % 2:
            (folder / "config.yaml").write_text("seed: 0\nsteps: 5\n")
        if i == 8:
            (folder / facts.NAME).write_text("{")
        if i == 12:
            (folder / "config.yaml").unlink()
        age(folder)
    return tmp_path / "made"


@pytest.fixture
def reads(monkeypatch):
    """Names of the records that are read, in their order."""
    names = []

    def load_facts(folder, load=facts.load_facts):
        names.append(folder.name)
        return load(folder)

    monkeypatch.setattr(facts, "load_facts", load_facts)
    return names


def by_reading(experiment: Path) -> dict[str, RecordSummary | None]:
    return {
        path.parent.name: RecordSummary.read(path.parent)
        for path in sorted(experiment.glob("*/run.json"))
    }


def index_of(experiment: Path) -> Path:
    return experiment.parent / FOLDER / experiment.name


def test_the_second_time_no_record_is_read(experiment, reads):
    first = read_summaries(experiment)
    assert len(reads) == N == len(first)
    assert read_summaries(experiment) == first
    assert len(reads) == N
    assert first == by_reading(experiment)
    assert first[signature(8)] is None
    assert first[signature(12)].rate is None
    assert first[signature(5)] == RecordSummary(
        state="running",
        data="made-data",
        choice={"dataset": "made", "model": "bnn", "inference": "sgld", "attacker": None},
        smoke=False,
        has_steps=True,
        rate=3.0,
    )


def test_rates_are_those_of_done_records(experiment):
    """By hand: done ones that are not taken over, each fourth with and without steps."""
    expected: dict[tuple, list[float]] = {}
    for i in range(N):
        if i % 4 in (0, 2) and i not in (8, 12):
            kind = ("made", "made", "bnn", "sgld", None, i % 4 == 2, False)
            expected.setdefault(kind, []).append(10.0 + i)
    run = made_run("a")
    snapshot = made_snapshot(experiment.parent, run)
    for _ in range(2):
        assert StudyRecords(snapshot, [replace(run, experiment="made")]).rates == expected


@pytest.mark.parametrize("in_place", [False, True])
def test_a_record_that_changes_is_read_again(experiment, reads, in_place):
    read_summaries(experiment)
    folder = experiment / signature(1)
    changed = (folder / facts.NAME).read_text().replace('"running"', '"pruned" ')  # same size
    if in_place:
        (folder / facts.NAME).write_text(changed)
    else:
        (folder / "new").write_text(changed)
        age_as = (folder / facts.NAME).stat().st_mtime_ns
        (folder / "new").replace(folder / facts.NAME)
        os.utime(folder / facts.NAME, ns=(age_as, age_as))  # the old time: another inode
    reads.clear()
    assert read_summaries(experiment)[signature(1)].state == "pruned"
    assert reads == [signature(1)]


def test_records_come_and_go(experiment, reads):
    read_summaries(experiment)
    shutil.rmtree(experiment / signature(3))
    folder = made_record(experiment.parent, "f" * 12)
    age(folder)
    reads.clear()
    assert read_summaries(experiment) == by_reading(experiment)
    assert reads[0] == "f" * 12  # the others are those of ``by_reading``
    assert len(reads) == 1 + N


def test_what_was_written_a_moment_ago_is_not_indexed(experiment, reads):
    """It may be written once more within one tick of the clock of its file."""
    os.utime(experiment / signature(0) / facts.NAME)
    read_summaries(experiment)
    assert signature(0) not in load_entries(index_of(experiment))
    assert len(load_entries(index_of(experiment))) == N - 1


def test_few_records_have_no_index(tmp_path):
    age(made_record(tmp_path))
    read_summaries(tmp_path / "made")
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.parametrize("fault", ["cut", "flipped", "version", "empty", "list", "gone", "folder"])
def test_an_index_that_is_damaged_is_rebuilt(experiment, fault):
    expected = read_summaries(experiment)
    path = index_of(experiment)
    content = path.read_bytes()
    path.unlink()
    if fault == "folder":
        path.mkdir()
    elif fault != "gone":
        path.write_bytes(
            {
                "cut": content[:-100],
                "flipped": content.replace(b"made-data", b"mode-data", 1),
                "version": content.replace(b"index 1", b"index 0", 1),
                "empty": b"",
                "list": index._head(b"[[1, 2]]") + b"\n[[1, 2]]",
            }[fault]
        )
    assert load_entries(path) == {}
    assert read_summaries(experiment) == expected
    if fault != "folder":
        assert path.read_bytes() == content


def test_a_folder_that_may_not_be_written_is_read_all_the_same(experiment):
    (experiment.parent / FOLDER).write_text("")  # in the way of the folder
    assert read_summaries(experiment) == by_reading(experiment)


def test_writers_side_by_side(experiment):
    """Four processes read and write the index while records are added: no answer is wrong."""
    code = (
        "import sys; from pathlib import Path; from runner.record.index import read_summaries\n"
        "for _ in range(40): read_summaries(Path(sys.argv[1]))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(experiment)]) for _ in range(4)]
    for i in range(N, 3 * N):
        age(made_record(experiment.parent, signature(i), seconds=float(i)))
    assert [process.wait() for process in running] == [0] * 4
    assert read_summaries(experiment) == by_reading(experiment)
    left = [path.name for path in index_of(experiment).parent.iterdir()]
    assert left == ["made"]


def test_nothing_is_removed_by_the_word_of_an_index(experiment):
    """An index that says a run that is going is done, or a smoke run: its record is read first."""
    folder = experiment / signature(1)
    (folder / "checkpoints").mkdir()
    read_summaries(experiment)
    entries = load_entries(index_of(experiment))
    for state, smoke in (("done", False), ("running", True)):
        identity, summary = entries[signature(1)]
        entries[signature(1)] = (identity, summary._replace(state=state, smoke=smoke))
        index.save_entries(index_of(experiment), entries)
        assert read_summaries(experiment)[signature(1)].state == state
        assert folder not in [leftover.run for leftover in find_leftovers(experiment.parent)]


def test_clean_finds_the_same_with_an_index(experiment):
    for i in (0, 1, 4):
        (experiment / signature(i) / "checkpoints").mkdir()
    (experiment / signature(1) / ".run.json.999999").write_text("")
    (experiment / signature(4) / "checkpoints" / ".r0.999999").write_text("")
    (experiment / ("e" * 12)).mkdir()
    first = sorted((each.kind, str(each.path)) for each in find_leftovers(experiment.parent))
    again = sorted((each.kind, str(each.path)) for each in find_leftovers(experiment.parent))
    assert first == again
    smoke = [signature(i) for i in range(N) if i % 4 == 2]
    expected = [("checkpoints", signature(i), "/checkpoints") for i in (0, 4)]
    expected += [("orphans", signature(1), "/.run.json.999999"), ("orphans", "e" * 12, "")]
    expected += [("orphans", signature(4), "/checkpoints/.r0.999999")]
    expected += [("smoke", name, "") for name in smoke]
    assert first == sorted((kind, f"{experiment}/{name}{end}") for kind, name, end in expected)


def test_an_index_is_no_record(experiment):
    from runner.record.record import find, runs

    read_summaries(experiment)
    assert {folder.parent for folder in runs(experiment.parent)} == {experiment}
    assert find(signature(5), experiment.parent) == experiment / signature(5)
    assert json.loads((experiment / signature(5) / facts.NAME).read_text())["seconds"] == 15.0
