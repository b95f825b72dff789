"""MLflow mirrors the record; when it cannot be reached nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runner.record import record, sync
from runner.record.tracking import Mirror, create_store, tracking_uri
from runner.run.execute import run

GAME = ["+experiment=friend_or_foe", "smoke=true", "tracking=true"]


@pytest.fixture(autouse=True)
def _no_server(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def _client(output_dir: Path):
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracking_uri(output_dir))


def test_a_run_is_mirrored(make_job):
    job = make_job(*GAME)
    going, result = run(job)
    assert going.mirror.trouble is None
    client = _client(Path(job.settings.output_dir))
    mirrored = client.get_run(going.mirror.pushed["run_id"])
    assert mirrored.info.status == "FINISHED"
    assert mirrored.data.params["inference.name"] == "level_k"
    assert mirrored.data.tags["data"] == "friend_or_foe"
    assert mirrored.data.metrics["result/reward"] == pytest.approx(sum(result["reward"]) / len(result["reward"]))
    assert "result/reward SE" in mirrored.data.metrics
    lines = [line for line in record.read_lines(job.folder) if line["phase"] == "final"]
    assert len(client.get_metric_history(mirrored.info.run_id, "final/reward")) == len(lines)
    names = {a.path for a in client.list_artifacts(mirrored.info.run_id)}
    assert {"config.yaml", "run.json", "metrics.jsonl", "figures"} <= names
    assert "checkpoints" not in names
    assert mirrored.inputs.dataset_inputs[0].dataset.name == "friend_or_foe"


def test_checkpoints_are_copied_where_asked_for_and_change_no_signature(make_job):
    job = make_job(*GAME, "tracking_checkpoints=true")
    assert job.signature == make_job(*GAME).signature
    going, _ = run(job)
    client = _client(Path(job.settings.output_dir))
    (path,) = {a.path for a in client.list_artifacts(going.mirror.pushed["run_id"])} & {"checkpoints"}
    assert client.list_artifacts(going.mirror.pushed["run_id"], path)


def test_pushing_again_adds_nothing(make_job):
    job = make_job(*GAME)
    going, _ = run(job)
    again = Mirror(job.folder, Path(job.settings.output_dir))
    assert again.push()
    history = _client(Path(job.settings.output_dir)).get_metric_history(going.mirror.pushed["run_id"], "final/reward")
    assert len(history) == 1


def test_unreachable_server_then_sync(make_job, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    job = make_job(*GAME)
    going, _ = run(job)
    assert going.mirror.trouble
    assert record.read(job.folder)["state"] == "done"
    assert sync.main(["sync", "--output-dir", job.settings.output_dir]) == 1
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert sync.main(["sync", "--output-dir", job.settings.output_dir]) == 0
    assert "1 runs are in sqlite" in capsys.readouterr().out
    client = _client(Path(job.settings.output_dir))
    experiment = client.get_experiment_by_name("friend_or_foe")
    assert len(client.search_runs([experiment.experiment_id])) == 1


@pytest.mark.slow
def test_two_processes_share_one_store(tmp_path):
    runner = str(Path(sys.executable).parent / "runner")
    command = [runner, "+experiment=friend_or_foe", "smoke=true", f"output_dir={tmp_path}"]
    going = [subprocess.Popen([*command, f"seed={s}"], stdout=subprocess.PIPE, text=True) for s in range(3)]
    outputs = [p.communicate(timeout=200)[0] for p in going]
    assert [p.returncode for p in going] == [0, 0, 0]
    assert not any("MLflow was not reached" in o for o in outputs)
    client = _client(tmp_path)
    experiment = client.get_experiment_by_name("friend_or_foe")
    runs = client.search_runs([experiment.experiment_id])
    assert [r.info.status for r in runs] == ["FINISHED"] * 3


def test_the_store_is_created_once(tmp_path):
    create_store(tmp_path)
    assert (tmp_path / "mlflow.db").exists()
    create_store(tmp_path)
