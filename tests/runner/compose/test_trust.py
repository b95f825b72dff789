"""Files stay inside their folders, and users' code runs only when it is named."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from components.registry import _registered
from runner.catalogue.plugins import confirm_import
from runner.compose import trust
from runner.errors import ConfigError
from runner.study import job_pool, snapshot
from runner.study.definition import StudyDefinition

ROOT = Path(__file__).resolve().parents[3]
WALK = re.search(
    r"```python\n(# walk\.py.*?)```", (ROOT / "docs" / "add_a_component.md").read_text(), re.S
).group(1)  # type: ignore[union-attr]
STUDY = {
    "name": "mine",
    "description": "Somebody's.",
    "overrides": ["smoke=true", "tracking=false", "offline=true"],
    "rows": [
        {
            "label": "a",
            "model": "m",
            "preset": "",
            "experiment": "mog",
            "overrides": ["plugins=[walk]", "inference=walk"],
        }
    ],
    "tables": [{"name": "t", "title": "t", "columns": {"all": "error_mean"}, "better": "lower"}],
}


@pytest.fixture
def plugin_folder(tmp_path, monkeypatch):
    """Folder with a plug-in, its YAML and a study that uses both."""
    (tmp_path / "walk.py").write_text(WALK)
    for name, content in {
        "inference/walk": {"name": "walk", "chains": 4, "scale": 0.5},
        "study/mine": STUDY,
    }.items():
        path = tmp_path / "conf" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    yield tmp_path
    sys.modules.pop("walk", None)
    _registered.pop(("inference", "walk"), None)


def test_study_imports_modules_named_by_its_user(plugin_folder, command_line):
    code, _, error = command_line("study", "mine", "--config-dir", "conf")
    assert code == 2
    assert "imports walk, code outside the runner; give --plugin walk" in error
    assert "walk" not in sys.modules
    assert not (plugin_folder / "outputs").exists()
    code, out, error = command_line(
        "study", "mine", "--config-dir", "conf", "--plugin", "walk", "--status"
    )
    assert code == 0, error
    assert "not started" in out


@pytest.mark.slow
def test_study_with_plugins_runs_and_is_reported(plugin_folder, command_line):
    named = ["study", "mine", "--config-dir", "conf", "--plugin", "walk"]
    code, out, error = command_line(*named)
    assert code == 0, out + error
    # a frozen study may still contain untrusted code
    assert command_line("study", "mine")[0] == 2
    assert command_line(*named)[0] == 0
    assert command_line("report", "mine", "--config-dir", "conf", "--plugin", "walk")[0] == 0


def test_record_lists_its_imports(plugin_folder, command_line):
    folder = plugin_folder / "outputs" / "mog" / "abc"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"state": "interrupted"}')
    (folder / "config.yaml").write_text("experiment: mog\nplugins: [walk]\n")
    code, _, error = command_line("resume", "abc")
    assert code == 2
    assert error.endswith(
        "mog/abc imports walk, code outside the runner; give --trust if you trust it"
    )
    assert "walk" not in sys.modules
    # the folder holds only a configuration
    _, _, error = command_line("resume", "abc", "--trust")
    assert "walk" in sys.modules
    assert "Traceback" not in error


def test_user_at_a_terminal_is_asked(monkeypatch, capsys):
    class Terminal:
        def isatty(self):
            return True

        def readline(self):
            return self.answer

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    terminal.answer = "y\n"
    confirm_import(["walk"], "the record")
    assert "the record imports walk" in capsys.readouterr().err
    terminal.answer = "\n"
    with pytest.raises(ConfigError, match="give --trust"):
        confirm_import(["walk"], "the record")


def test_child_processes_import_nothing_of_the_folder(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise SystemExit('taken in')")
    run = snapshot.FrozenRun("a", "a", {}, [], "e", "s")
    study = StudyDefinition.model_validate(STUDY)
    command = job_pool.command(snapshot.Snapshot("mine", study, "now", "", [], [], tmp_path), run)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    done = subprocess.run(
        [*command[: command.index("-m")], "-c", "import sys; print('' in sys.path)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("target", ["hydra_plugins.theirs.launcher.Launcher", "os.system", ""])
def test_unknown_launchers_are_refused(target):
    with pytest.raises(ConfigError, match="unknown launcher or sweeper; choose one with"):
        trust.refuse_foreign(OmegaConf.create({"hydra": {"launcher": {"_target_": target}}}), set())


def test_report_escapes_hostile_words(plugin_folder, command_line):
    row = STUDY["rows"][0] | {"label": "=cmd|calc", "overrides": []}
    table = STUDY["tables"][0] | {"title": r"$\frac{1$ <script>", "columns": {"@a|b": "error_mean"}}
    (plugin_folder / "mine.yaml").write_text(
        yaml.safe_dump(STUDY | {"rows": [row], "tables": [table]})
    )
    code, _, error = command_line("report", "mine.yaml")
    assert code == 0, error
    folder = plugin_folder / "outputs" / "mine" / "report"
    # the page has its own script
    assert "1$ <script>" not in (folder / "mine.html").read_text()
    text = (folder / "mine.md").read_text()
    assert r"| =cmd\|calc |" in text
    assert "<script>" not in text
    with (folder / "mine.csv").open(newline="") as file:
        assert [row["column"] for row in csv.DictReader(file)] == ["'@a|b"]


def test_flags_of_hydra_are_printed(command_line):
    code, output, _ = command_line("--hydra-help")
    assert code == 0
    assert "--multirun" in output
