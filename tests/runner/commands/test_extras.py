"""Core installation: extras are imported only by commands that need them and report them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from components import errors
from runner.catalogue.words import explain
from runner.commands import cli

ROOT = Path(__file__).resolve().parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
BLOCKED = ("optuna", "plotly", "flask", "submitit", "joblib", "hydra_plugins", "ray", "docker")
NEED_EXTRAS = (
    "runner.system.ui",
    "runner.study.cluster.launcher",
    "runner.sweep.best",
    "runner.sweep.optuna_sweeper",
    "runner.sweep.table",
)
CODE = """
import sys

blocked = set(sys.argv[1].split(","))

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
from importlib import import_module

for module in sys.argv[2:]:
    import_module(module)
"""


def imports_on_load(tree: ast.AST) -> set[str]:
    """Top-level packages imported when a module is loaded."""
    out: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            out |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            out.add(str(node.module).partition(".")[0])
        elif isinstance(node, ast.ClassDef | ast.Try | ast.With):
            out |= imports_on_load(node)
    return out


@pytest.mark.parametrize("package", ["runner", "components"])
def test_modules_import_no_extra_on_load(package):
    wrong = {
        str(path.relative_to(ROOT)): blocked
        for path in (ROOT / package).rglob("*.py")
        if (blocked := imports_on_load(ast.parse(path.read_text(encoding="utf-8"))) & set(BLOCKED))
    }
    assert not wrong


def test_commands_with_extras_are_imported_without_them():
    command = [sys.executable, "-c", CODE, ",".join(BLOCKED), *NEED_EXTRAS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("argv", "package", "message"),
    [
        (["ui"], "flask", "runner ui: requires the package flask; {mlflow}"),
        (
            ["-m", "+experiment=mog", "hydra/sweeper=optuna", "inference.lr=interval(1e-4,1e-1)"],
            "optuna",
            "hydra/sweeper=optuna: requires the package optuna; {sweep}",
        ),
    ],
)
def test_command_names_its_extra(argv, package, message, monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["runner", *argv])
    present = errors.find_spec
    monkeypatch.setattr(
        errors, "find_spec", lambda name: None if name == package else present(name)
    )
    with pytest.raises(SystemExit) as end:
        cli.main()
    commands = {name: f"pip install 'bayes-runner[{name}]'" for name in EXTRAS}
    assert end.value.code == 2
    assert message.format(**commands) in capfd.readouterr().err


def test_preset_names_the_extra_of_its_launcher():
    error = ValueError(
        "In 'hydra/launcher/slurm_local': Could not load 'hydra/launcher/submitit_local'."
    )
    message = explain(error, ["hydra/launcher=slurm_local"])
    assert message == (
        "hydra/launcher=slurm_local: not installed; pip install 'bayes-runner[launchers]'"
    )


def test_windows_is_refused_in_one_line():
    assert cli.platform_message("posix") is None
    assert str(cli.platform_message("nt")).endswith("on Windows run it inside WSL 2")


def test_idle_threads_sleep_unless_variables_say_otherwise(command_line, monkeypatch):
    for variable in ("OMP_WAIT_POLICY", "KMP_BLOCKTIME"):
        monkeypatch.delenv(variable, raising=False)
    command_line("--version")
    assert (os.environ["OMP_WAIT_POLICY"], os.environ["KMP_BLOCKTIME"]) == ("PASSIVE", "0")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    command_line("--version")
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
