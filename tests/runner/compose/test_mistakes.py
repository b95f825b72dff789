"""Every invalid request gives one clear line on stderr, exit code 2, and no work."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from components import registry
from runner.errors import ConfigError, RunFailure
from runner.execution.execute import run
from runner.record.facts import read
from runner.record.machine import disk_failure

MOG = "+experiment=mog"
TABLES = (
    Path(__file__).parent / "mistakes"
)  # own_files.txt: in a folder with the files of own_folder
HIDDEN = (
    "conf/inference/mala.yaml: ignored, because the runner has a file of that name; rename yours"
)


def rows(path):
    """Command lines of a table, each with the message in the indented lines below it.

    A message gives the key and the fix; "…" matches any text."""
    table = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            table[-1][1].append(line.strip())
        elif line and not line.startswith("# "):
            table.append((shlex.split(line), []))
    return [(argv, " ".join(answer)) for argv, answer in table]


MISTAKES = [(path.stem, *row) for path in sorted(TABLES.glob("*.txt")) for row in rows(path)]


@pytest.fixture
def own_files(tmp_path, monkeypatch):
    """A folder with the YAML, modules and other files of a user; it is on the path."""
    text = (TABLES / "own_folder").read_text(encoding="utf-8")
    files = dict(re.findall(r"^=== (.+)\n((?:(?!===).*\n)*)", text, flags=re.MULTILINE))
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="latin-1")
    weights = {"0.weight": torch.zeros(10, 64), "0.bias": torch.zeros(10)}
    save_file(weights, tmp_path / "w.safetensors")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield
    for name in files:  # another test has different modules with these names
        sys.modules.pop(Path(name).stem, None)
    registry._registered.pop(("inference", "twice"), None)


def matches(error, message):
    """True if an error equals the message, where "…" matches any text."""
    return re.fullmatch(".*".join(map(re.escape, re.split(" ?… ?", message))), error)


@pytest.mark.parametrize(
    ("table", "argv", "message"), MISTAKES, ids=[shlex.join(argv) for _, argv, _ in MISTAKES]
)
def test_error_is_one_clear_line(
    table, argv, message, tmp_path, monkeypatch, command_line, request
):
    """Runs in this process, so that torch is imported once."""
    if table == "own_files":
        request.getfixturevalue("own_files")
    monkeypatch.chdir(tmp_path)
    around = set(tmp_path.parent.iterdir())
    code, _, error = command_line(*argv)
    assert code == 2
    assert "Traceback" not in error
    assert len(error.splitlines()) <= 2
    assert not list(tmp_path.glob("outputs/*/*/checkpoints"))
    assert set(tmp_path.parent.iterdir()) == around
    first, _, rest = error.rpartition("\n")
    has_hidden = first.endswith(HIDDEN)
    assert has_hidden == (table == "own_files" and "--config-dir" in argv), error
    assert matches(rest if has_hidden else error, message), error


def test_table_of_errors_is_long():
    assert len(MISTAKES) >= 400


def test_version_is_that_of_the_runner(command_line):
    assert command_line("--version") == (0, f"runner {version('bayes-runner')}\n", "")


@pytest.mark.parametrize(("steps", "message"), [(539, "each chain would keep 3 draws"), (540, "")])
def test_too_few_draws_are_reported_before_the_run(make_job, steps, message):
    notes = make_job(MOG, f"steps={steps}").notes
    assert [message in note for note in notes] == ([True] if message else [])


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(
            "Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64"
        ),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to allocate "
            "8000000000 bytes. Error code 12 (Cannot allocate memory)"
        ),
        RuntimeError(
            "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 8 GiB"
        ),
    ],
)
def test_insufficient_memory_is_reported(make_job, monkeypatch, error):
    job = make_job(MOG, "smoke=true")

    def init(*_):
        raise error

    monkeypatch.setattr(type(job.inference), "init", init)
    with pytest.raises(
        RunFailure,
        match=r"^out of memory \(.*\); reduce batch_size, ",
    ):
        run(job)
    facts = read(job.folder)
    assert facts is not None
    assert facts["state"] == "failed"
    assert facts["error"].startswith("out of memory")


def test_missing_gpu_is_reported(make_job):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ConfigError, match="device=cuda: no GPU found; use device=cpu"):
        make_job(MOG, "device=cuda")


def test_error_keeps_its_name(tmp_path):
    folder = tmp_path / "outputs" / "run"
    missing = disk_failure(
        FileNotFoundError(2, "No such file or directory", "/elsewhere/references.bib"), folder
    )
    assert isinstance(missing, RunFailure)
    assert str(missing).startswith(
        "FileNotFoundError: /elsewhere/references.bib (No such file or directory);"
    )
    broken = disk_failure(OSError(5, "Input/output error"), folder)
    assert str(broken).startswith("OSError: Input/output error;")
    for name in (folder / "run.json", folder.parent, None):
        refused = disk_failure(PermissionError(13, "Permission denied", name and str(name)), folder)
        assert str(refused).startswith(f"output_dir: cannot write to {folder} (Permission denied)")
