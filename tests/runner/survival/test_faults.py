"""Any damage to the record of a run killed in its second replicate gives one clear line, keeps the
valid state, and the same command reproduces the scores of an uninterrupted run."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from crashes import SMALL_RUN, Crashes, draw_data
from matplotlib.figure import Figure
from support.runs.configured import read_records, repeatable

from runner.commands import resume
from runner.compose.compose import compose
from runner.compose.job import prepare
from runner.execution.execute import run
from runner.record.facts import read
from runner.record.record import Record

RUN = [
    *SMALL_RUN,
    "steps=6",
    "replicates=2",
    "record_every=1",
    "eval_every=3",
    "checkpoint_every=2",
    "tracking=false",
    "offline=true",
]
NEWEST = "checkpoints/r0001-s000000004"

FAULTS = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text("utf-8"))["faults"]
NOT_CHECKPOINTED = "finished replicates are computed again"


def lose_stream(content: bytes) -> bytes:
    sidecar = json.loads(content)
    sidecar["skeleton"]["streams"]["d"].pop()
    return json.dumps(sidecar).encode()


def replace_line(content: bytes, text: bytes) -> bytes:
    """Replace the second line."""
    lines = content.splitlines()
    return b"\n".join([lines[0], text, *lines[2:], b""])


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "flipped": lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
    "cut": lambda content: content[: len(content) // 2],
    "emptied": lambda content: b"",
    "noise": lambda content: bytes(range(256)) * 3,
    "a list": lambda content: b"[1, 2]",
    "stream lost": lose_stream,
    "half a line": lambda content: replace_line(content, b'{"step": 2, "replica'),
    "a line of noise": lambda content: replace_line(content, b"\xff\xfe\x00"),
    "a line of other keys": lambda content: replace_line(content, b'{"step": "two"}'),
}


def damage(path: Path, change: str | dict[str, object]) -> None:
    """Damage a file or some of its keys."""
    if change == "gone":
        path.unlink()
    elif isinstance(change, dict):
        content = json.loads(path.read_text()) | change
        path.write_text(json.dumps({k: v for k, v in content.items() if v is not None}))
    else:
        path.write_bytes(DAMAGES[change](path.read_bytes() if path.exists() else b""))


@pytest.fixture(scope="module")
def killed_run(tmp_path_factory):
    """Overrides of a run, a copy of its folder after a kill, and its folder without interruption."""
    root = tmp_path_factory.mktemp("killed")
    overrides = [*RUN, f"output_dir={root / 'whole'}", f"data_dir={root / 'data'}"]
    job = prepare(compose(overrides))
    crashes = Crashes(job.folder, root / "crashes")
    with pytest.MonkeyPatch.context() as patch, crashes.take_copies():
        patch.setattr(Figure, "savefig", draw_data)
        run(job)
    return next(
        copy for copy, _ in crashes.states.values() if (copy / (NEWEST + ".json")).exists()
    ), job.folder


def go_on(killed_run, tmp_path, monkeypatch, change: Callable[[Path], object]) -> tuple[Path, Path]:
    """Folders of the run resumed after damage and of the uninterrupted run."""
    copy, whole = killed_run
    monkeypatch.setattr(Figure, "savefig", draw_data)
    job = prepare(
        compose([*RUN, f"output_dir={tmp_path / 'outputs'}", f"data_dir={tmp_path / 'data'}"])
    )
    shutil.copytree(copy, job.folder)
    change(job.folder)
    run(job)
    return job.folder, whole


@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, marks=() if f.get("fast") else pytest.mark.slow) for f in FAULTS],
    ids=lambda fault: f"{fault['file']} {fault['damage']}",
)
def test_run_survives_a_fault(killed_run, tmp_path, monkeypatch, capsys, fault):
    file = fault["file"]
    message = fault["said"]

    def damage_files(folder: Path) -> None:
        for name in [file] if isinstance(file, str) else file:
            damage(folder / name, fault["damage"])

    folder, whole = go_on(killed_run, tmp_path, monkeypatch, damage_files)
    assert message in " ".join(capsys.readouterr().out.replace("│", " ").split())
    after = read(folder)
    expected = read(whole)
    assert after["state"] == "done"
    assert repeatable(after["result"]) == repeatable(expected["result"])
    assert {r: repeatable(scores) for r, scores in after["finished"].items()} == {
        r: repeatable(scores) for r, scores in expected["finished"].items()
    }
    lines = read_records(folder)
    all_lines = read_records(whole)
    if file != "metrics.jsonl":
        assert lines == all_lines
    elif "damaged line" in message:
        assert lines == [*all_lines[:1], *all_lines[2:]]  # only that line
    else:
        assert lines == all_lines[-len(lines) :] != []
    assert names(folder) - {"run.json.damaged"} == names(whole)


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_resume_requires_run_json(killed_run, tmp_path, monkeypatch, capsys):
    copy, whole = killed_run
    folder = Path(shutil.copytree(copy, tmp_path / "outputs" / "custom" / whole.name))
    damage(folder / "run.json", "cut")
    monkeypatch.setattr(Figure, "savefig", draw_data)
    assert resume.main(["resume", str(folder)]) == 0
    assert NOT_CHECKPOINTED in " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert repeatable(read(folder)["result"]) == repeatable(read(whole)["result"])


def test_modified_result_is_refused(killed_run, tmp_path, monkeypatch, capsys):
    """A changed digit in a finished record contradicts its replicates."""
    _, whole = killed_run
    overrides = [*RUN, f"output_dir={tmp_path / 'outputs'}", f"data_dir={tmp_path / 'data'}"]
    job = prepare(compose(overrides))
    shutil.copytree(whole, job.folder)
    facts = json.loads((job.folder / "run.json").read_text())
    name, values = next(iter(facts["result"].items()))
    facts["result"][name] = [values[0] + 1.0, *values[1:]]
    (job.folder / "run.json").write_text(json.dumps(facts))
    assert read(job.folder) is None
    monkeypatch.setattr(Figure, "savefig", draw_data)
    executed, result = run(job)
    assert not executed.was_done
    assert repeatable(result) == repeatable(read(whole)["result"])
    assert NOT_CHECKPOINTED in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_leftovers_of_a_killed_process_are_removed(killed_run, tmp_path, monkeypatch):
    def leave(folder: Path) -> None:
        for name in (
            ".run.json.99999999",
            f".config.yaml.{os.getpid()}",
            "checkpoints/.r0001-s000000006.json.99999999",
        ):
            (folder / name).write_bytes(b"half")
        (folder / "checkpoints/r0001-s000000006.safetensors").write_bytes(b"without its sidecar")

    folder, whole = go_on(killed_run, tmp_path, monkeypatch, leave)
    assert names(folder) == names(whole)


@pytest.mark.parametrize("some", [3, pytest.param(None, marks=pytest.mark.slow)])
def test_killed_fresh_start_leaves_no_old_result(killed_run, tmp_path, monkeypatch, some):
    """After a kill at any file operation, the next run restarts and ignores the replaced content."""
    _, whole = killed_run
    where = [f"output_dir={tmp_path / 'outputs'}", f"data_dir={tmp_path / 'data'}"]
    monkeypatch.setattr(Figure, "savefig", draw_data)
    job = prepare(compose([*RUN, *where]))
    fresh = prepare(compose([*RUN, *where, "fresh=true"]))
    shutil.copytree(whole, job.folder)
    (job.folder / "metrics.jsonl").write_text("")  # to tell old lines from new ones
    crashes = Crashes(job.folder, tmp_path / "crashes")
    with crashes.take_copies():
        Record.open(fresh).close()
    assert crashes.points > 10
    states = sorted(crashes.states.values())
    for copy, operation in random.Random(0).sample(states, some or len(states)):
        crashes.put_back(copy)
        executed, result = run(job)
        assert repeatable(result) == repeatable(read(whole)["result"]), operation
        assert (
            read_records(job.folder) in ([], read_records(whole))
            if executed.was_done
            else read_records(job.folder) == read_records(whole)
        )
