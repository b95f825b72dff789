"""Every mistake gives one clear line on stderr, exit code 2, and no work is done."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from components import registry

MOG = "+experiment=mog"
GAME = "+experiment=friend_or_foe"
TABLE = Path(__file__).parent / "mistakes"


def rows(name):
    """Command lines of a table and what each is answered by: an indented line below, of which " …"
    is any ending."""
    found, text = [], (TABLE / f"{name}.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("    "):
            found[-1][1].append(line.strip())
        elif line and not line.startswith("# "):
            found.append((shlex.split(line), []))
    return [(argv, " ".join(answer)) for argv, answer in found]


MISTAKES = [
    row
    for name in (
        "run_keys",
        "words_of_commands",
        "keys",
        "values",
        "parts",
        "methods",
        "command_lines",
        "commands",
    )
    for row in rows(name)
]
FILES = {
    "conf/inference/walk.yaml": "name: walk\nchains: 10\n",
    "conf/inference/broken.yaml": "name: mala\nchains: [1\n",
    "conf/inference/mala.yaml": "name: mala\n",
    "conf/experiment/list.yaml": "- mog\n",
    "conf/experiment/latin.yaml": "description: caf\xe9\n",
    "conf/experiment/lost.yaml": "# @package _global_\ndefaults:\n  - mog\n  - override /inference: malla\n",
    "conf/experiment/calls.yaml": "# @package _global_\nhydra:\n  callbacks:\n    x: {_target_: os.getcwd}\n",
    "conf/study/torn.yaml": "name: torn\nrows: [\n",
    "conf/study/other.yaml": "- a\n",
    "conf/study/short.yaml": "name: short\ndescription: no rows\ntables: []\n",
    "conf/published/torn.yaml": "name: torn\nvalues: {a: {b: many}\n",
    "conf/study/lost.yaml": "{name: lost, description: d, rows: [{label: a, model: m, preset: ''}], tables: [{name: t, "
    "title: t, columns: {a: b}, better: lower, published: torn}]}\n",
    "scores.csv": "table,row\nt,a\n",
    "nothing.csv": "",
    "names.csv": "y\n",
    "infinite.csv": "y\n1.5\ninf\n",
    "outputs/mog/aaaa/run.json": '{"state": "interrupted"}',
    "outputs/mog/aaaa/config.yaml": "experiment: mog\nseed: [1\n",
    "outputs/mog/bbbb/run.json": '{"state": "interrupted"}',
    "outputs/mog/bbbb/config.yaml": "seed: 1\n",
    "outputs/mog/cccc/run.json": '{"state": "interrupted"}',
    "outputs/mog/dddd/run.json": '{"state": "interrupted"}',
    "outputs/mog/dddd/config.yaml": "experiment: ../../mog\nplugins: [nonsuch]\n",
    "outputs/studies/moe_evolution/snapshot.yaml": "name: moe_evolution\nruns: [{name: a}\n",
    "outputs/studies/moe_mog_table/snapshot.yaml": "name: moe_mog_table\nruns: [{name: a}]\n",
    "misspelt.py": "import os\n\ndef f(:\n",
    "raising.py": "import os\n\n\ndef f():\n    return 1 / 0\n\n\nf()\n",
    "lacking.py": "import nonsuch_package\n",
    "leaving.py": "raise SystemExit('bye')\n",
    "taken.py": "from components.registry import register\n\n\n@register('inference', 'twice')\nclass A: ...\n\n\n"
    "@register('inference', 'twice')\nclass B: ...\n",
}  # fmt: skip
WITH_FILES = rows("own_files")  # in a folder with these files, which is on the path


@pytest.fixture
def own_files(tmp_path, monkeypatch):
    """A user's own YAML and modules."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="latin-1")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in FILES:  # another test has other modules of these names
        sys.modules.pop(Path(name).stem, None)
    registry._registered.pop(("inference", "twice"), None)


def told(argv, tmp_path, monkeypatch, capfd):
    """What a mistake is answered by, in this process, so that torch is imported once for all of
    them."""
    from runner.commands import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["runner", *argv])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    error = capfd.readouterr().err.strip()
    assert exit_.value.code == 2
    assert "Traceback" not in error
    assert len(error.splitlines()) <= 2
    assert not list(tmp_path.glob("outputs/*/*/checkpoints"))
    return error


def matches(error, message):
    """Whole, or a part of it where that ends with "…"."""
    return error == message or (message.removesuffix(" …") in error and not message.endswith("?"))


@pytest.mark.parametrize(("argv", "message"), MISTAKES, ids=[shlex.join(a) for a, _ in MISTAKES])
def test_one_clear_line(argv, message, tmp_path, monkeypatch, capfd):
    assert matches(error := told(argv, tmp_path, monkeypatch, capfd), message), error


@pytest.mark.parametrize(
    ("argv", "message"), WITH_FILES, ids=[shlex.join(a) for a, _ in WITH_FILES]
)
def test_one_clear_line_about_files(argv, message, tmp_path, monkeypatch, capfd, own_files):
    error = told(argv, tmp_path, monkeypatch, capfd)
    hidden = (
        "conf/inference/mala.yaml: not read, the runner has one of that name; call yours otherwise"
    )
    first, _, rest = error.rpartition("\n")
    assert ("--config-dir" in argv) == first.endswith(hidden), error
    assert matches(rest, message), error


def test_the_table_is_long():
    assert len(MISTAKES) + len(WITH_FILES) >= 400


def test_the_version_is_the_runners_own(monkeypatch, capfd):
    from runner.commands import cli

    monkeypatch.setattr(sys, "argv", ["runner", "--version"])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert not exit_.value.code
    assert capfd.readouterr().out == f"runner {version('bayes-runner')}\n"


def test_a_target_without_a_gradient(make_job, monkeypatch):
    from components.problems.density import Density
    from runner.errors import ConfigError
    from runner.execution.execute import run

    job = make_job(MOG, "smoke=true")
    load = type(job.dataset).load

    def stepwise(self, rng, setting):  # its density falls in steps
        problem: Density = load(self, rng, setting)
        problem.log_density = lambda theta: -theta.detach().abs().round().sum(1)
        return problem

    monkeypatch.setattr(type(job.dataset), "load", stepwise)
    with pytest.raises(ConfigError, match="cannot be differentiated; use inference=random_walk_mh"):
        run(job)


@pytest.mark.parametrize(
    ("steps", "said"), [(539, "3 draws of each chain would be kept"), (540, "")]
)
def test_few_draws_are_said_before_the_run(make_job, steps, said):
    notes = make_job(MOG, f"steps={steps}").notes
    assert [said in note for note in notes] == ([True] if said else [])


@pytest.mark.parametrize("error", [
    MemoryError("Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                 "8000000000 bytes. Error code 12 (Cannot allocate memory)"),
    RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 8 GiB"),
])  # fmt: skip
def test_memory_that_runs_out(make_job, monkeypatch, error):
    from runner.errors import RunFailure
    from runner.execution.execute import run
    from runner.record.facts import read

    job = make_job(MOG, "smoke=true")

    def init(*_):
        raise error

    monkeypatch.setattr(type(job.inference), "init", init)
    with pytest.raises(
        RunFailure,
        match=r"^out of memory \(.* more were asked for\): ask for less at once \(batch_size, ",
    ):
        run(job)
    facts = read(job.folder)
    assert facts is not None
    assert facts["state"] == "failed"
    assert facts["error"].startswith("out of memory")


def test_device_without_gpu(make_job):
    import torch

    from runner.errors import ConfigError

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ConfigError, match="device=cuda: no GPU was found; use device=cpu"):
        make_job("+experiment=friend_or_foe", "device=cuda")


def test_a_launcher_chosen_too_late(tmp_path):
    folder = tmp_path / "conf" / "experiment"
    folder.mkdir(parents=True)
    (folder / "late.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /hydra/launcher: joblib\n"
    )
    command = [
        str(Path(sys.executable).parent / "runner"),
        "--config-dir",
        str(tmp_path / "conf"),
        "-m",
        "+experiment=late,friend_or_foe",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert (
        "hydra/launcher: experiment=late chooses it too late for a sweep over experiments; add hydra/launcher=…"
        in done.stderr
    )
    assert "Traceback" not in done.stderr


def test_output_folder_that_cannot_be_made(tmp_path, monkeypatch, capfd):
    from runner.commands import cli

    (tmp_path / "file").write_text("")
    monkeypatch.setattr(
        sys,
        "argv",
        ["runner", GAME, "smoke=true", "tracking=false", f"output_dir={tmp_path}/file/out"],
    )
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 2
    error = capfd.readouterr().err.strip()
    assert error.startswith("output_dir: cannot write to")
    assert "set output_dir=… to a folder you can write" in error


def test_an_error_is_called_by_its_own_name(tmp_path):
    from runner.errors import RunFailure
    from runner.record.record import disk_failure

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
