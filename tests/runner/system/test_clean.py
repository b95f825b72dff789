"""``runner clean`` removes files that are not results, except for kept or active runs."""

import json
import os

import pytest

from runner.errors import ConfigError
from runner.record.lease import take_lease
from runner.system.clean import main


def record(output_dir, signature, state="done", smoke=False):
    """Folder of a run with a checkpoint."""
    folder = output_dir / "toy" / signature
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "r0000-10.safetensors").write_bytes(b"x" * 2_000_000)
    facts = {
        "state": state,
        "experiment": "toy",
        "signature": signature,
        "data": "toy",
        "choice": {},
        "seed": 0,
        "replicates": 1,
        "smoke": smoke,
        "started": "",
        "seconds": 1.0,
        "finished": {"0": {"a": 1.0}},
        "result": {"a": [1.0]},
        "vectorised": False,
    }
    (folder / "run.json").write_text(json.dumps(facts))
    return folder


@pytest.fixture
def outputs(tmp_path):
    """Runs of all kinds by name."""
    leftovers = {
        name: record(tmp_path, str(i) * 12, **facts)
        for i, (name, facts) in enumerate(
            {
                "done": {},
                "interrupted": {"state": "interrupted"},
                "smoke": {"smoke": True},
                "kept": {"smoke": True},
                "going": {"smoke": True},
            }.items()
        )
    }
    (leftovers["kept"] / "keep").touch()
    (leftovers["interrupted"] / ".run.json.999999999").touch()
    (tmp_path / "toy" / "abcdefabcdef").mkdir()
    (tmp_path / "studies" / "mine").mkdir(parents=True)
    return leftovers


def test_only_replaceable_files_are_removed(outputs, tmp_path, capsys):
    lock = take_lease(outputs["going"], "s")
    clean = ["clean", "--output-dir", str(tmp_path)]
    assert main([*clean, "--dry-run"]) == 0
    output = capsys.readouterr().out
    assert "records of smoke runs: 1, 2.0 MB" in output
    assert "checkpoints of finished runs: 1, 2.0 MB" in output
    assert "files and folders of killed processes: 2, 0.0 MB" in output
    with pytest.raises(ConfigError, match="without a terminal; add --yes"):
        main(clean)
    assert all(folder.is_dir() for folder in outputs.values())
    assert main([*clean, "--yes"]) == 0
    assert "removed  4 of 4, 4.0 MB" in capsys.readouterr().out
    assert not outputs["smoke"].exists()
    assert not (tmp_path / "toy" / "abcdefabcdef").exists()
    assert sorted(path.name for path in outputs["interrupted"].iterdir()) == [
        "checkpoints",
        "run.json",
    ]
    assert sorted(path.name for path in outputs["done"].iterdir()) == ["run.json"]
    for name in ("kept", "going"):
        assert (outputs[name] / "checkpoints").is_dir()
    assert (tmp_path / "studies" / "mine").is_dir()
    lock.close()
    assert main([*clean, "checkpoints", "--yes"]) == 0
    assert "nothing to remove" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"clean: smokes .* smoke, orphans, checkpoints"):
        main([*clean, "smokes"])


def test_leftovers_of_reports_are_found_but_links_not_followed(tmp_path, capsys):
    outputs = tmp_path / "outputs"
    elsewhere = tmp_path / "elsewhere"
    report = outputs / "studies" / "mine" / "report"
    report.mkdir(parents=True)
    remaining = [
        report / ".report.html.999999999",
        outputs / "studies" / "mine" / ".study.yaml.999999999",
    ]
    for path in remaining:
        path.write_text("half")
    (report / "report.html").write_text("whole")
    (report / f".table.csv.{os.getppid()}").write_text("being written")
    smoke = record(elsewhere, "1" * 12, smoke=True)
    (elsewhere / "toy" / ".note.999999999").touch()
    (outputs / "linked").symlink_to(elsewhere / "toy")
    assert main(["clean", "--output-dir", str(outputs), "--yes"]) == 0
    assert "files and folders of killed processes: 2" in capsys.readouterr().out
    assert not any(path.exists() for path in remaining)
    assert sorted(path.name for path in report.iterdir()) == [
        f".table.csv.{os.getppid()}",
        "report.html",
    ]
    assert (smoke / "run.json").is_file()
    assert (elsewhere / "toy" / ".note.999999999").is_file()
