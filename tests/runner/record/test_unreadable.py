"""Unreadable records: every command reports them in a line and continues with the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.made_records import make_record

import runner
from runner import RunnerWarning
from runner.commands.resume import main as resume
from runner.commands.unexpected import describe_unexpected
from runner.errors import ConfigError
from runner.record.facts import load_facts, read
from runner.record.folders import find, runs
from runner.record.lines import readable_lines
from runner.report import compare
from runner.sweep.outcomes import JOBS_FOLDER, read_outcomes
from runner.system import clean
from runner.tracking.content import InvalidRecordError, RecordContent

THEIRS = "aaaaaaaaaaaa"
OURS = "bbbbbbbbbbbb"
THIRD = "cccccccccccc"


def bar(monkeypatch: pytest.MonkeyPatch, barred: Path) -> None:
    """Simulate missing permissions, because the file system refuses nothing to root."""

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    def wrap(name: str, inside_only: bool) -> None:
        original = getattr(Path, name)

        def refuse_path(self: Path, *args: object, **keys: object) -> object:
            if barred in self.parents or (self == barred and not inside_only):
                refuse(self)
            return original(self, *args, **keys)

        monkeypatch.setattr(Path, name, refuse_path)

    for name, inside_only in (("open", False), ("iterdir", False), ("stat", True), ("lstat", True)):
        wrap(name, inside_only)


@pytest.fixture
def outputs(tmp_path):
    for signature in (THEIRS, OURS, THIRD):
        make_record(tmp_path, signature)
    return tmp_path


@pytest.mark.parametrize("place", ["made/aaaaaaaaaaaa", "made/aaaaaaaaaaaa/run.json"])
def test_unreadable_folder_or_file_is_named_and_others_listed(outputs, monkeypatch, place):
    bar(monkeypatch, outputs / place)
    with pytest.warns(RunnerWarning, match=r"skipped: .*aaaaaaaaaaaa.*\(Permission denied\)"):
        table = runner.runs(outputs)
    assert sorted(table["id"]) == [OURS, THIRD]


def test_unreadable_experiment_or_output_folder_is_named(outputs, monkeypatch):
    make_record(outputs / "other", OURS)
    bar(monkeypatch, outputs / "made")
    with pytest.warns(RunnerWarning, match="made: cannot be read"):
        assert runs(outputs) == []
    bar(monkeypatch, outputs / "other")
    with pytest.warns(RunnerWarning, match="other: cannot be read"):
        assert runs(outputs / "other") == []


def test_unreadable_config_is_named_when_needed(outputs, monkeypatch):
    bar(monkeypatch, outputs / "made" / THEIRS / "config.yaml")
    assert len(runner.runs(outputs)) == 3
    with pytest.warns(RunnerWarning, match=THEIRS):
        assert sorted(runner.runs(outputs, settings=["model.width"])["id"]) == [OURS, THIRD]


def test_compare_continues_with_two_records_but_not_one(outputs, monkeypatch, capsys):
    bar(monkeypatch, outputs / "made" / THEIRS)
    given = ["compare", THEIRS[:4], OURS[:4], THIRD[:4], "--output-dir", str(outputs)]
    with pytest.warns(RunnerWarning, match="skipped: aaaa: .*Permission denied"):
        assert compare.main(given) == 0
    assert "aaaa" not in capsys.readouterr().out
    given.remove(THIRD[:4])
    with (
        pytest.raises(ConfigError, match=r"1 of 2 runs .*; give at least two readable runs"),
        pytest.warns(RunnerWarning),
    ):
        compare.main(given)


def test_unreadable_run_is_refused_in_one_line(outputs, monkeypatch):
    bar(monkeypatch, outputs / "made" / THEIRS)
    for named in (THEIRS, str(outputs / "made" / THEIRS)):
        with pytest.raises(PermissionError):
            find(named, outputs)
    with pytest.raises(PermissionError) as error:
        resume(["resume", THEIRS, "--output-dir", str(outputs)])
    assert "Permission denied; ask its owner for chmod" in describe_unexpected(error.value)[1]
    with pytest.raises(PermissionError):
        runner.load(THEIRS, output_dir=outputs)


def test_unreadable_lines_are_empty_and_named(outputs, monkeypatch):
    bar(monkeypatch, outputs / "made" / THEIRS / "metrics.jsonl")
    with pytest.warns(RunnerWarning, match=r"metrics.jsonl: cannot be read"):
        assert readable_lines(outputs / "made" / THEIRS) == []
    with pytest.raises(
        InvalidRecordError, match="Permission denied"
    ):  # sync names it and pushes the others
        RecordContent.of(outputs / "made" / THEIRS)


@pytest.mark.parametrize("place", [".", "run.json"])
def test_clean_keeps_unreadable_records(outputs, monkeypatch, place):
    for signature in (THEIRS, OURS):
        (outputs / "made" / signature / "checkpoints").mkdir()
    bar(monkeypatch, outputs / "made" / THEIRS / place)
    with pytest.warns(RunnerWarning, match=THEIRS):
        litters = list(clean.find_leftovers(outputs))
    assert [litter.run for litter in litters] == [outputs / "made" / OURS]


def test_clean_continues_after_a_failed_removal(outputs, monkeypatch):
    (outputs / "made" / THEIRS / "checkpoints").mkdir()
    (litter,) = clean.find_leftovers(outputs)
    bar(monkeypatch, outputs / "made" / THEIRS)
    with pytest.warns(RunnerWarning, match=THEIRS):
        assert not clean.remove(litter)


def test_unreadable_record_is_not_called_damaged(outputs, monkeypatch):
    folder = outputs / "made" / THEIRS
    bar(monkeypatch, folder / "run.json")
    # Record.open reports an unusable output_dir
    with pytest.raises(PermissionError):
        load_facts(folder)
    with pytest.warns(RunnerWarning, match="cannot be read"):
        assert read(folder) is None
    assert (folder / "run.json").exists()


def test_unreadable_job_of_a_sweep_is_named_and_others_shown(tmp_path, monkeypatch):
    for number in (0, 1):
        path = tmp_path / JOBS_FOLDER / f"{number}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f'{{"number": {number}, "overrides": [], "code": 0, "message": "", "folder": null}}'
        )
    bar(monkeypatch, tmp_path / JOBS_FOLDER / "0.json")
    with pytest.warns(RunnerWarning, match=r"0.json: cannot be read"):
        assert [job.number for job in read_outcomes(tmp_path)] == [1]
