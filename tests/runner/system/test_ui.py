"""``runner ui``: the correct server, only on this machine, or one clear line of error."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from support.runs.local_servers import free_port, wait_for

from runner.errors import ConfigError
from runner.system import ui


@pytest.fixture
def serve_calls(monkeypatch):
    calls = []
    monkeypatch.setattr(ui, "serve", lambda *words_and_store: calls.append(words_and_store) or 0)
    monkeypatch.setattr(ui, "check_schema", lambda _: (0, "", ""))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return calls


def test_local_store_of_the_output_folder_is_shown(serve_calls, tmp_path, capsys):
    (tmp_path / "mlflow.db").write_text("")
    port = free_port()
    assert ui.main(["ui", "--output-dir", str(tmp_path), "--port", str(port)]) == 0
    ((words, store),) = serve_calls
    assert store == f"sqlite:///{tmp_path / 'mlflow.db'}"
    assert words[words.index("--host") + 1] == "127.0.0.1"
    assert words[words.index("--port") + 1] == str(port)
    assert f"http://127.0.0.1:{port}" in capsys.readouterr().out


def test_environment_variable_takes_precedence(serve_calls, tmp_path, monkeypatch):
    store = f"sqlite:///{tmp_path / 'other.db'}"
    (tmp_path / "other.db").write_text("")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    folder = tmp_path / "outputs"
    folder.mkdir()
    assert ui.main(["ui", "--output-dir", str(folder), "--port", str(free_port())]) == 0
    assert serve_calls[0][1] == store
    assert store not in serve_calls[0][0]  # the arguments of a process are public


def test_remote_server_is_named_and_not_started_again(serve_calls, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://mlflow.example.org")
    assert ui.main(["ui"]) == 0
    assert not serve_calls
    assert (
        capsys.readouterr().out == "MLFLOW_TRACKING_URI is a server, open "
        "https://mlflow.example.org/#/experiments?workflowType=machine_learning\n"
    )


def test_missing_store_is_not_created(serve_calls, tmp_path):
    with pytest.raises(ConfigError, match=r"MLflow store .*; execute a run first"):
        ui.main(["ui", "--output-dir", str(tmp_path)])
    assert not serve_calls
    assert list(tmp_path.iterdir()) == []


def test_occupied_port_is_named(serve_calls, tmp_path):
    (tmp_path / "mlflow.db").write_text("")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"--port {port}: not available .*choose another"):
            ui.main(["ui", "--output-dir", str(tmp_path), "--port", str(port)])
    assert not serve_calls


def test_stop_ends_the_server_and_its_child_processes():
    """Uses a stand-in that starts a child process, like MLflow."""
    child = "import time; time.sleep(60)"
    parent = (
        f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {child!r}]); "
        "print(p.pid, flush=True); p.wait()"
    )
    code = f"import sys; from runner.system.ui import serve; sys.exit(serve([sys.executable, '-c', {parent!r}], 'sqlite://'))"
    for number in (signal.SIGTERM, signal.SIGINT):
        runner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert runner.stdout is not None
        grandchild = int(runner.stdout.readline())
        runner.send_signal(number)
        assert runner.wait(timeout=120) == 0
        for _ in range(100):
            if not alive(grandchild):
                break
            time.sleep(0.05)
        assert not alive(grandchild)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_failed_server_gives_exit_code_1():
    store = "postgresql://me:secret@host/db"
    read = f"import os; raise SystemExit(3 * (os.environ['MLFLOW_BACKEND_STORE_URI'] == {store!r}))"
    assert ui.serve([sys.executable, "-c", read], store) == 1
    assert ui.serve([sys.executable, "-c", "raise SystemExit(0)"], store) == 0


@pytest.mark.slow
def test_pages_are_served(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    from runner.tracking.store import connect, tracking_uri

    connect(tracking_uri(tmp_path)).search_experiments(max_results=1)
    port = free_port()
    words = [
        sys.executable,
        "-m",
        "runner.commands.cli",
        "ui",
        "--output-dir",
        str(tmp_path),
        "--port",
        str(port),
    ]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(server, f"http://127.0.0.1:{port}")
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == 0
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
