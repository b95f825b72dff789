"""Untrusted records: pipes and devices instead of files, and invalid checks and configs."""

import json
import os

import pytest
from support.runs.made_records import make_record

from runner.commands.resume import read_run_config
from runner.disk.lock import is_locked
from runner.disk.plain_file import read_plain
from runner.errors import ConfigError
from runner.record.facts import load_facts, read, read_config
from runner.record.lines import read_lines


@pytest.fixture
def record(tmp_path):
    make_record(tmp_path, "aaaaaaaaaaaa")
    return tmp_path / "made" / "aaaaaaaaaaaa"


def replace(path, kind):
    path.unlink(missing_ok=True)
    os.mkfifo(path) if kind == "a pipe" else path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["a pipe", "a device"])
def test_pipes_and_devices_are_never_read(record, kind):
    for name in ("run.json", "metrics.jsonl", "mlflow.json", "config.yaml", "lock"):
        replace(record / name, kind)
    assert load_facts(record) is None
    assert read_lines(record) == []
    assert not is_locked(record / "lock")
    with pytest.raises(ConfigError, match=r"config.yaml: .*\(not a plain file\)"):
        read_config(record)
    with pytest.raises(OSError, match="not a plain file"):
        read_plain(record / "mlflow.json")


def test_malformed_checks_are_ignored(record):
    facts = load_facts(record)
    for checks in ({"run": [{"check": "x"}]}, {"0": "x"}, {"0": 1}, [1]):
        (record / "run.json").write_text(json.dumps(facts | {"checks": checks}))
        assert load_facts(record) is None


def test_hydra_keys_in_a_record_are_refused(record):
    (record / "config.yaml").write_text("experiment: made\nhydra: {job: {env_set: {X: y}}}\n")
    with pytest.raises(ConfigError, match=r"config.yaml: hydra: not a key of .*; remove it"):
        read_run_config(record / "config.yaml")


@pytest.mark.parametrize(("finished", "believed"), [({}, False), ({"0": {"rmse": 1.0}}, True)])
def test_done_record_without_results_is_refused(tmp_path, finished, believed):
    facts = {
        "state": "done",
        "experiment": "e",
        "signature": "s",
        "data": "d",
        "choice": {},
        "seed": 0,
        "replicates": 1,
        "smoke": False,
        "started": "",
        "seconds": 1.0,
        "finished": finished,
        "vectorised": False,
        "result": {name: [value] for name, value in finished.get("0", {}).items()},
    }
    (tmp_path / "run.json").write_text(json.dumps(facts))
    assert (read(tmp_path) is not None) is believed
