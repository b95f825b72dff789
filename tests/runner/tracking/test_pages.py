"""URLs of MLflow's pages select runs, not traces of language models."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from runner.errors import ConfigError
from runner.execution.screen import show_run
from runner.system import ui
from runner.tracking import handover, pages
from runner.tracking.marks import Marks, MarksFile
from runner.tracking.store import OWN

SERVER = "http://127.0.0.1:5000"
VIEW = "?workflowType=machine_learning"


@pytest.fixture
def output_dir(tmp_path, monkeypatch) -> Path:
    """Records of two uploaded experiments, the second one last."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    record(tmp_path / "first" / "0123456789ab", OWN, Marks(run_id="a", experiment="1"))
    os.utime(tmp_path / "first" / "0123456789ab" / "mlflow.json", (1, 1))
    record(tmp_path / "second" / "ba9876543210", OWN, Marks(run_id="b", experiment="2"))
    return tmp_path


def record(folder: Path, store: str, marks: Marks) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").touch()
    file = MarksFile(folder, store)
    file.here = marks
    file.save()


def test_latest_experiment_is_first(output_dir):
    assert pages.find_experiments(output_dir) == [("2", "second"), ("1", "first")]
    assert ui.choose_page(None, output_dir, SERVER) == f"{SERVER}/#/experiments/2/runs{VIEW}"


def test_experiment_or_run_is_opened_by_name(output_dir):
    page = ui.choose_page("first", output_dir, SERVER)
    assert page == f"{SERVER}/#/experiments/1/runs{VIEW}"
    page = ui.choose_page("first/0123", output_dir, SERVER)
    assert page == f"{SERVER}/#/experiments/1/runs/a{VIEW}"
    assert (
        ui.choose_page("second/ba98", output_dir, SERVER)
        == f"{SERVER}/#/experiments/2/runs/b{VIEW}"
    )
    for name in ("secnd", "first/f"):
        with pytest.raises(ConfigError, match=f"{name}: no such run under"):
            ui.choose_page(name, output_dir, SERVER)


def test_server_is_not_asked_for_its_experiments(output_dir, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://mlflow.example.org")
    assert pages.find_experiments(output_dir) == []
    third = Marks(run_id="c", experiment="7")
    record(output_dir / "third" / "01", "https://mlflow.example.org", third)
    assert pages.find_experiments(output_dir) == [("7", "third")]
    assert pages.find_server(output_dir) == "https://mlflow.example.org"


def test_empty_store_opens_on_the_list(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert ui.choose_page(None, tmp_path, SERVER) == f"{SERVER}/#/experiments{VIEW}"


def test_run_ends_with_its_page_or_the_command(output_dir, capsys, monkeypatch):
    run = handover.Handover(output_dir / "first" / "0123456789ab", output_dir)

    def last_line() -> str:
        show_run.show_whereabouts(run.folder, run)
        return capsys.readouterr().out.splitlines()[-1]

    assert last_line() == f"MLflow   runner ui first/0123456789ab --output-dir {output_dir}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://mlflow.example.org")
    (run.folder / "mlflow.json").unlink()
    record(run.folder, "https://mlflow.example.org", Marks(run_id="a", experiment="1"))
    page = f"https://mlflow.example.org/#/experiments/1/runs/a{VIEW}"
    assert last_line() == f"MLflow   {page}"
    default = SimpleNamespace(output_dir=Path("outputs"), folder=run.folder)
    assert handover.Handover.ui_command.fget(default) == "runner ui first/0123456789ab"


def test_ui_lists_experiments_and_opens_the_latest(output_dir, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr(ui, "serve", lambda words, uri: 0)
    monkeypatch.setattr(ui, "has_browser", lambda: True)
    monkeypatch.setattr(ui, "open_when_ready", lambda *words: opened.append(words))
    monkeypatch.setattr(ui, "check", lambda uri, port: None)
    ui.main(["ui", "--output-dir", str(output_dir)])
    lines = capsys.readouterr().out.splitlines()
    page = f"{SERVER}/#/experiments/2/runs{VIEW}"
    assert lines[0] == f"MLflow  {page}"
    assert lines[2].split() == [f"{SERVER}/#/experiments/1/runs{VIEW}", "first"]
    assert opened == [(SERVER, page)]
    ui.main(["ui", "--output-dir", str(output_dir), "--no-browser"])
    assert len(opened) == 1
