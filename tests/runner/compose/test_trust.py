"""Nothing is written outside its folder, and code of others runs only when it is named."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from matplotlib.figure import Figure

from components.figures.labels import readable
from components.registry import _registered
from runner.catalogue.plugins import confirm_import
from runner.commands import cli
from runner.compose import guard
from runner.disk.inside import inside, real_file
from runner.errors import ConfigError
from runner.record.facts import complete, read
from runner.record.record import Record
from runner.report.details import list_record_figures
from runner.report.report import markdown
from runner.study import job_pool, snapshot
from runner.study.definition import StudyDefinition
from runner.terminal.csv_cells import escape_cell, unescape_cell

ROOT = Path(__file__).resolve().parents[3]
WALK = re.search(
    r"```python\n(# walk\.py.*?)```", (ROOT / "docs" / "add_a_component.md").read_text(), re.S
).group(1)  # type: ignore[union-attr]
STUDY = {
    "name": "mine",
    "description": "Somebody's.",
    "overrides": ["smoke=true", "tracking=false", "offline=true"],
    "rows": [{"label": "a", "model": "m", "preset": "", "experiment": "mog", "overrides": ["plugins=[walk]",
              "inference=walk"]}],
    "tables": [{"name": "t", "title": "t", "columns": {"all": "error_mean"}, "better": "lower"}],
}  # fmt: skip


def call(monkeypatch, capfd, *argv: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["runner", *argv])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    told = capfd.readouterr()
    return exit_.value.code, told.out, told.err.strip()


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a plug-in, its YAML and a study that asks for both."""
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


# ---- names that become paths
# ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "", ".", "..", "a\nb"])
def test_a_name_stays_in_its_folder(tmp_path, name):
    with pytest.raises(ConfigError, match="leads out of its folder"):
        inside(tmp_path, name, "study")


def test_a_link_that_leads_out_is_not_followed(tmp_path):
    (tmp_path / "record").mkdir()
    (tmp_path / "secret").write_text("")
    (tmp_path / "record" / "posterior.nc").symlink_to(tmp_path / "secret")
    assert inside(tmp_path / "record", "posterior.nc", "artefacts").exists()
    with pytest.raises(ConfigError, match="a link that leads out"):
        real_file(tmp_path / "record", "posterior.nc", "artefacts")


@pytest.mark.parametrize(
    "argv",
    [
        ["study", "mine", "--config-dir", "conf", "--plugin", "walk", "--as", "../out"],
        ["study", "mine", "--config-dir", "conf", "--as", "/tmp/out", "--status"],
        ["rerun", "--failed", "mine", "--as", "../../out"],
        ["report", "../mine"],
        ["+experiment=mog/../mog"],
        [
            "-m",
            "+experiment=mog",
            "hydra/sweeper=optuna",
            "seed=0,1",
            "hydra.sweeper.study_name=..",
            "tracking=false",
        ],
    ],
)
def test_no_command_writes_elsewhere(own, monkeypatch, capfd, argv):
    before = set(own.parent.iterdir())
    code, _, error = call(monkeypatch, capfd, *argv)
    assert (code, len(error.splitlines())) == (2, 1), error
    assert "leads out of its folder" in error or "no such experiment" in error
    assert set(own.parent.iterdir()) == before


@pytest.mark.parametrize(
    "change", [{"name": "../mine"}, {"tables": [STUDY["tables"][0] | {"name": "../t"}]}], ids=["study", "table"]
)  # fmt: skip
def test_no_study_names_a_file_elsewhere(own, monkeypatch, capfd, change):
    (own / "mine.yaml").write_text(yaml.safe_dump(STUDY | change))
    code, _, error = call(monkeypatch, capfd, "report", "mine.yaml")
    assert code == 2
    assert "leads out of its folder" in error


def test_no_snapshot_names_a_folder_elsewhere(tmp_path):
    study = StudyDefinition.model_validate(STUDY)
    frozen = snapshot.Snapshot("mine", study, "now", "", [], [], tmp_path)
    for facts in (
        {"experiment": "..", "signature": "s"},
        {"experiment": "e", "signature": "../../s"},
    ):
        run = snapshot.FrozenRun("a", "a", {}, [], **facts)
        with pytest.raises(ConfigError, match="leads out of its folder"):
            frozen.folder(run)


# ---- code of others
# ---------------------------------------------------------------------------------------------------
def test_a_study_imports_what_its_user_names(own, monkeypatch, capfd):
    code, _, error = call(monkeypatch, capfd, "study", "mine", "--config-dir", "conf")
    assert code == 2
    assert (
        "study mine imports walk, code that is not the runner's; give --plugin walk if you know it"
        in error
    )
    assert "walk" not in sys.modules
    assert not (own / "outputs").exists()
    code, out, error = call(
        monkeypatch, capfd, "study", "mine", "--config-dir", "conf", "--plugin", "walk", "--status"
    )
    assert code == 0, error
    assert "not started" in out


@pytest.mark.slow
def test_a_study_of_plugins_runs_and_is_reported(own, monkeypatch, capfd):
    named = ["study", "mine", "--config-dir", "conf", "--plugin", "walk"]
    code, out, error = call(monkeypatch, capfd, *named)
    assert code == 0, out + error
    # what was frozen is somebody's code still
    assert call(monkeypatch, capfd, "study", "mine")[0] == 2
    assert call(monkeypatch, capfd, *named)[0] == 0
    assert (
        call(monkeypatch, capfd, "report", "mine", "--config-dir", "conf", "--plugin", "walk")[0]
        == 0
    )


def test_a_record_says_what_it_imports(own, monkeypatch, capfd):
    folder = own / "outputs" / "mog" / "abc"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"state": "interrupted"}')
    (folder / "config.yaml").write_text("experiment: mog\nplugins: [walk]\n")
    code, _, error = call(monkeypatch, capfd, "resume", "abc")
    assert code == 2
    assert error.endswith(
        "mog/abc imports walk, code that is not the runner's; give --trust if you know it"
    )
    assert "walk" not in sys.modules
    # of which there is little to resume
    _, _, error = call(monkeypatch, capfd, "resume", "abc", "--trust")
    assert "walk" in sys.modules
    assert "Traceback" not in error


def test_somebody_at_a_terminal_is_asked(monkeypatch, capsys):
    class Terminal:
        def isatty(self):
            return True

        def readline(self):
            return self.answer

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    terminal.answer = "y\n"
    confirm_import(["walk"], "the record", "give --trust")
    assert "the record imports walk" in capsys.readouterr().err
    terminal.answer = "\n"
    with pytest.raises(ConfigError, match="give --trust"):
        confirm_import(["walk"], "the record", "give --trust")


def test_children_import_nothing_of_the_present_folder(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise SystemExit('taken in')")
    run = snapshot.FrozenRun("a", "a", {}, [], "e", "s")
    study = StudyDefinition.model_validate(STUDY)
    command = job_pool.command(snapshot.Snapshot("mine", study, "now", "", [], [], tmp_path), run)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    done = subprocess.run(
        [*command[: command.index("-m")], "-c", "import sys; print('' in sys.path)"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("target", "ours"),
    [
        ("hydra._internal.core_plugins.basic_launcher.BasicLauncher", True),
        ("hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher", True),
        ("hydra_plugins.runner.OptunaSweeper", True),
        # lies on the path, but nobody installed it
        ("hydra_plugins.theirs.launcher.Launcher", False),
        ("os.system", False),
        ("", False),
    ],
)
def test_launchers_are_those_that_are_installed(tmp_path, monkeypatch, target, ours):
    (tmp_path / "hydra_plugins" / "theirs").mkdir(parents=True)
    (tmp_path / "hydra_plugins" / "theirs" / "__init__.py").write_text("raise SystemExit('run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert guard._is_installed(target) is ours


def test_a_record_with_a_link_to_elsewhere_is_not_written_to(make_job, tmp_path):
    job = make_job("+experiment=friend_or_foe", "smoke=true")
    (job.folder / "figures").mkdir(parents=True)
    (tmp_path / "victim").write_text("mine")
    (job.folder / "figures" / "rewards.png").symlink_to(tmp_path / "victim")
    with pytest.raises(ConfigError, match="is a link that leads out"):
        Record.open(job)
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (job.folder / "run.json").exists()


# ---- words that would be run, or drawn
# --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cell", "written"),
    [("=1+1", "'=1+1"), ("@x", "'@x"), ("-x", "'-x"), ("-1.5", "-1.5"), ("a", "a"), (-2, -2)],
)
def test_a_spreadsheet_runs_no_cell(cell, written):
    assert escape_cell(cell) == written
    assert unescape_cell(written) == cell if isinstance(cell, str) else True


def test_markdown_shows_words_as_they_are():
    assert (
        markdown("a|b <i> *c* [d](e) n_train _f_\nx")
        == r"a\|b \<i\> \*c\* \[d\](e) n_train \_f\_ x"
    )


def test_one_bad_label_does_not_cost_a_figure(tmp_path):
    figure = Figure()
    figure.text(0.5, 0.5, r"$\frac{1$")
    figure.text(0.5, 0.2, "$x^2$")
    with pytest.raises(ValueError):
        figure.savefig(tmp_path / "a.png")
    readable(figure).savefig(tmp_path / "a.png")
    assert [text.get_parse_math() for text in figure.texts] == [False, True]


def test_a_report_of_hostile_words(own, monkeypatch, capfd):
    row = STUDY["rows"][0] | {"label": "=cmd|calc", "overrides": []}
    table = STUDY["tables"][0] | {"title": r"$\frac{1$ <script>", "columns": {"@a|b": "error_mean"}}
    (own / "mine.yaml").write_text(yaml.safe_dump(STUDY | {"rows": [row], "tables": [table]}))
    code, _, error = call(monkeypatch, capfd, "report", "mine.yaml")
    assert code == 0, error
    folder = own / "outputs" / "mine" / "report"
    # the page has a script of its own
    assert "1$ <script>" not in (folder / "mine.html").read_text()
    text = (folder / "mine.md").read_text()
    assert r"| =cmd\|calc |" in text
    assert "<script>" not in text
    with (folder / "mine.csv").open(newline="") as file:
        assert [row["column"] for row in csv.DictReader(file)] == ["'@a|b"]


# ---- what a config file says of the machine
# -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("content", "key"),
    [
        ({"job": {"env_set": {"LD_PRELOAD": "mine.so"}}}, "hydra.job.env_set.LD_PRELOAD=mine.so: "),
        ({"sweep": {"dir": "/elsewhere"}}, "hydra.sweep.dir=/elsewhere: "),
        ({"sweep": {"subdir": "../x"}}, "hydra.sweep.subdir=../x: "),
        ({"output_subdir": "x"}, "hydra.output_subdir=x: "),
    ],
)
def test_a_config_file_sets_no_environment_and_no_place_of_hydra(
    tmp_path, monkeypatch, capfd, content, key
):
    path = tmp_path / "conf" / "experiment" / "theirs.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("# @package _global_\n" + yaml.safe_dump({"hydra": content}))
    argv = [
        "--config-dir",
        str(tmp_path / "conf"),
        "+experiment=theirs",
        "dataset=gaussian",
        "model=target_density",
    ]
    code, _, told = call(
        monkeypatch, capfd, *argv, "inference=hmc", "steps=3", f"output_dir={tmp_path}"
    )
    assert code == 2
    assert told.startswith(key)
    assert not (tmp_path / "custom").exists()


def test_a_link_among_the_figures_of_a_record_is_not_in_a_report(tmp_path):
    record = tmp_path / "record"
    (record / "figures").mkdir(parents=True)
    (record / "figures" / "own.png").write_bytes(b"own")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (record / "figures" / "theirs.png").symlink_to(tmp_path / "secret.png")
    assert list_record_figures(record) == [record / "figures" / "own.png"]


@pytest.mark.parametrize(("finished", "believed"), [({}, False), ({"0": {"rmse": 1.0}}, True)])
def test_a_record_said_to_be_done_that_finished_nothing_is_not_believed(
    tmp_path, finished, believed
):
    facts = {
        "state": "done", "experiment": "e", "signature": "s", "data": "d", "choice": {}, "seed": 0, "replicates": 1,
        "smoke": False, "started": "", "seconds": 1.0, "finished": finished, "vectorised": False,
        "result": {name: [value] for name, value in finished.get("0", {}).items()},
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(facts))
    assert (read(tmp_path) is not None) is believed
    assert complete(facts, "s") is believed
