"""``runner clean`` removes what is no result, and nothing that is kept or going."""

import json

import pytest

from runner.mistakes import ConfigError
from runner.record.lease import taken
from runner.system.clean import main


def record(output_dir, signature, state="done", smoke=False):
    """A run's folder with a checkpoint in it."""
    folder = output_dir / "toy" / signature
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "r0000-10.safetensors").write_bytes(b"x" * 2_000_000)
    facts = {
        "state": state, "experiment": "toy", "signature": signature, "data": "toy", "choice": {}, "seed": 0,
        "replicates": 1, "smoke": smoke, "started": "", "seconds": 1.0, "finished": {"0": {"a": 1.0}},
        "result": {"a": [1.0]}, "vectorised": False,
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(facts))
    return folder


@pytest.fixture
def outputs(tmp_path):
    """Runs of every kind by name."""
    found = {
        name: record(tmp_path, str(i) * 12, **facts)
        for i, (name, facts) in enumerate(
            {
                "done": {}, "interrupted": {"state": "interrupted"}, "smoke": {"smoke": True},
                "kept": {"smoke": True}, "going": {"smoke": True},
            }.items()
        )
    }  # fmt: skip
    (found["kept"] / "keep").touch()
    (found["interrupted"] / ".run.json.999999999").touch()
    (tmp_path / "toy" / "abcdefabcdef").mkdir()
    (tmp_path / "studies" / "mine").mkdir(parents=True)
    return found


def test_only_what_is_no_result_goes(outputs, tmp_path, capsys):
    lock = taken(outputs["going"], "s")
    clean = ["clean", "--output-dir", str(tmp_path)]
    assert main([*clean, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "records of smoke runs: 1, 2.0 MB" in said
    assert "checkpoints of runs that are done: 1, 2.0 MB" in said
    assert "files and folders that killed processes left: 2, 0.0 MB" in said
    with pytest.raises(ConfigError, match="nobody is here to be asked; give --yes"):
        main(clean)
    assert all(folder.is_dir() for folder in outputs.values())
    assert main([*clean, "--yes"]) == 0
    assert "removed  4 of 4, 4.0 MB" in capsys.readouterr().out
    assert not outputs["smoke"].exists()
    assert not (tmp_path / "toy" / "abcdefabcdef").exists()
    assert sorted(path.name for path in outputs["interrupted"].iterdir()) == ["checkpoints", "run.json"]
    assert sorted(path.name for path in outputs["done"].iterdir()) == ["run.json"]
    for name in ("kept", "going"):
        assert (outputs[name] / "checkpoints").is_dir()
    assert (tmp_path / "studies" / "mine").is_dir()
    lock.close()
    assert main([*clean, "checkpoints", "--yes"]) == 0
    assert "nothing to remove" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="clean: smokes is none of smoke, orphans, checkpoints"):
        main([*clean, "smokes"])
