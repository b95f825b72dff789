"""``runner doctor``: each check on healthy machines and on machines with problems."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest

from components.datasets import files
from runner.errors import first_line
from runner.system import doctor, machine


def levels(findings) -> dict[str, str]:
    return {finding.what: finding.level for finding in findings}


def only(findings):
    (finding,) = findings
    return finding


def test_python_too_old_is_a_problem(monkeypatch):
    assert only(machine.python()).level == "ok"
    monkeypatch.setattr(machine, "OLDEST_PYTHON", (99, 0))
    assert only(machine.python()).fix == "use Python 99.0 or newer"


def test_missing_and_other_package_versions_are_named(monkeypatch):
    assert "problem" not in levels(machine.packages()).values(), "of the project itself"
    words = ["pydantic>=2", "rich>=1000", "no-such-package", "ray; extra == 'ray'"]
    monkeypatch.setattr(machine.importlib.metadata, "requires", lambda _: words)
    findings = {finding.what: finding for finding in machine.packages()}
    expected = {"packages": "ok", "rich": "warning", "no-such-package": "problem"}
    assert levels(findings.values()) == expected
    assert findings["no-such-package"].fix == "pip install 'no-such-package'"


def fake_torch(cuda: str | None, available: bool) -> SimpleNamespace:
    facts = SimpleNamespace(name="A GPU", total_memory=80 * machine.GIB)
    gpus = SimpleNamespace(
        is_available=lambda: available,
        device_count=lambda: 1,
        get_device_properties=lambda i: facts,
    )
    backends = SimpleNamespace(cpu=SimpleNamespace(get_cpu_capability=lambda: "AVX2"))
    version = SimpleNamespace(cuda=cuda)
    return SimpleNamespace(__version__="2.13.0", version=version, cuda=gpus, backends=backends)


@pytest.mark.parametrize(
    ("cuda", "available", "driver", "level", "words"),
    [
        ("12.8", True, True, "ok", "A GPU, 80 GiB, CUDA 12.8"),
        (None, False, False, "ok", "device=cpu"),
        (None, False, True, "warning", "built for CPU"),
        ("12.8", False, True, "warning", "none found"),
        ("12.8", False, False, "ok", "none found"),
    ],
)
def test_gpu_is_reported(cuda, available, driver, level, words, monkeypatch):
    monkeypatch.setattr(machine.importlib, "import_module", lambda _: fake_torch(cuda, available))
    monkeypatch.setattr(machine.shutil, "which", lambda _: "nvidia-smi" if driver else None)
    _, gpu = machine.torch_and_gpu()
    assert gpu.level == level
    assert words in gpu.found
    assert bool(gpu.fix) == (level != "ok")


def test_broken_torch_is_a_problem(monkeypatch):
    def broken(_):
        raise OSError("libtorch.so: cannot open shared object file\nmore")

    monkeypatch.setattr(machine.importlib, "import_module", broken)
    finding = only(machine.torch_and_gpu())
    assert (finding.level, finding.found) == (
        "problem",
        "libtorch.so: cannot open shared object file",
    )


@pytest.mark.parametrize(
    ("given", "level"), [(None, "ok"), ("1", "ok"), ("4", "ok"), ("8", "warning"), ("x", "problem")]
)
def test_thread_settings_are_reported(given, level, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: range(4))
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (0.5, 0.5, 0.5))
    assert levels(machine.threads()) == {"threads": level}


def test_busy_machine_and_little_memory_cause_warnings(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: range(2))
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (9.0, 9.0, 9.0))
    assert levels(machine.threads()) == {"threads": "ok", "load": "warning"}
    for gib, level in ((1, "warning"), (8, "ok")):
        monkeypatch.setattr(machine, "free_memory", lambda gib=gib: gib * machine.GIB)
        assert only(machine.memory()).level == level


def test_output_folder_is_checked(tmp_path, monkeypatch):
    assert "will be created" in only(doctor.outputs(tmp_path / "new" / "outputs")).found
    for free, level in ((10 * machine.GIB, "ok"), (machine.GIB // 2, "warning"), (1000, "problem")):
        with monkeypatch.context() as disk:
            usage = SimpleNamespace(free=free)
            disk.setattr(doctor.shutil, "disk_usage", lambda _, usage=usage: usage)
            assert only(doctor.outputs(tmp_path)).level == level
    (tmp_path / "file").write_text("")
    assert only(doctor.outputs(tmp_path / "file" / "outputs")).level == "problem"
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)
    finding = only(doctor.outputs(tmp_path))
    assert (finding.level, finding.fix) == (
        "problem",
        "make it writable, or set output_dir=… to a writable folder",
    )


def test_sqlite_store_is_checked(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert "will be created by the first run" in only(doctor.store(tmp_path)).found
    assert not (tmp_path / "mlflow.db").exists()
    (tmp_path / "mlflow.db").write_text("not a database, and long enough to be read as one " * 20)
    finding = only(doctor.store(tmp_path))
    assert finding.level == "problem"
    assert "runner sync" in finding.fix


def test_tracking_server_is_checked(tmp_path, monkeypatch):
    class Health(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Health)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    assert only(doctor.store(tmp_path)).found == f"MLFLOW_TRACKING_URI {address} is reachable (200)"
    server.shutdown()
    server.server_close()
    finding = only(doctor.store(tmp_path))
    assert finding.level == "warning"  # a run is complete without it
    assert "runner sync" in finding.fix


def test_data_files_are_genuine_damaged_or_absent(tmp_path, monkeypatch):
    right = hashlib.sha256(b"right").hexdigest()
    entries = tuple(
        files.DataFile("toy", path, (), 5, "none", "nowhere", sha256=right)
        for path in ("good", "bad", "absent")
    )
    monkeypatch.setattr(files, "catalogue", lambda: entries)
    monkeypatch.setattr(files, "folders", lambda data_dir: (data_dir,))
    (tmp_path / "good").write_bytes(b"right")
    (tmp_path / "bad").write_bytes(b"wrong")
    bad, together = doctor.data(tmp_path)
    assert (bad.level, bad.what, bad.fix) == ("problem", "bad", "runner data fetch toy")
    assert together.level == "absent"
    assert together.found == f"1 of 3 files in {tmp_path}, checksums match"
    nowhere = only(doctor.data(tmp_path / "nowhere"))
    assert (nowhere.level, nowhere.fix.split(",")[0]) == (
        "absent",
        "list them with runner data list",
    )
    monkeypatch.setattr(files, "catalogue", lambda: entries[:1])
    assert only(doctor.data(tmp_path)).level == "ok"


@pytest.mark.parametrize(
    ("level", "code"), [("ok", 0), ("absent", 0), ("warning", 0), ("problem", 1)]
)
def test_exit_code_and_lines(level, code, monkeypatch, capsys, tmp_path):
    finding = machine.Finding(level, "outputs", "here", "do this")
    monkeypatch.setattr(doctor, "check_all", lambda *_: iter([finding]))
    assert doctor.main(["doctor", "--output-dir", str(tmp_path)]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(maxsplit=1) == [level, "outputs: here"]
    assert lines[1].strip() == "→ do this"
    counts = [int(level == name) for name in ("ok", "absent", "warning", "problem")]
    assert lines[-1] == "{} ok, {} absent, {} warnings, {} problems".format(*counts)


def test_doctor_changes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(files, "folders", lambda data_dir: (data_dir,))
    code = doctor.main(["doctor", "--output-dir", str(tmp_path), "--data-dir", str(tmp_path)])
    assert code in (0, 1)
    assert list(tmp_path.iterdir()) == []
    out = capsys.readouterr().out
    assert "outputs: " in out
    assert "mlflow: " in out


def test_error_without_a_message_is_named_by_its_type():
    assert first_line(ValueError()) == "ValueError"
