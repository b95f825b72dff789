"""Commands in README and docs are valid: all are composed and checked, and slow tests run them in
smoke mode."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep
from support.runs.printed_commands import PAGES, ROOT, Printed, files, list_printed

from components.errors import DataUnavailableError
from runner.catalogue.declarations import read_index
from runner.catalogue.list_and_show import GROUPS, options
from runner.catalogue.sub_commands import COMMANDS
from runner.compose.compose import compose
from runner.compose.job import build
from runner.compose.resolve import resolve
from runner.errors import ConfigError
from runner.report.exchange.opened import SUFFIX
from runner.study.definition import load_study
from runner.study.plan import plan

ALL = list_printed()
RUNS = [command for command in ALL if command.words[0] not in COMMANDS]
NAMES = {command.words[1] for command in ALL if command.words[0] == "study" and command.words[1:]}
STUDIES = sorted(NAMES & {*options("study")})
# Commands that only read, or write only into the folder that they are given.
LOOKS = {"list", "show", "doctor", "completion", "clean", "new", "report"}
# Modules and files that the page creates: test_plugin and test_newcomer run these as printed.
OWN = {"my_sales", "houses", "my_experiment", "my_table", "my_sampler"}
OWN |= {"houses.csv", "sales.csv", "net.safetensors"}


def one_run(words: tuple[str, ...]) -> list[str]:
    """Overrides of the first run of a command line, without flags and options of sweeps."""
    given = [
        word for word in words if "=" in word and not word.startswith(("--", "hydra/", "hydra."))
    ]
    commands = []
    for word, override in zip(given, OverridesParser.create().parse_overrides(given), strict=True):
        value = override.value()
        if isinstance(value, ChoiceSweep):
            word = f"{override.input_line.split('=')[0]}={value.list[0]}"
        elif isinstance(value, IntervalSweep):
            word = f"{override.input_line.split('=')[0]}={value.start}"
        commands.append(word)
    return commands


def uses_own_files(command: Printed) -> bool:
    return (
        command.uses_own_modules
        or "--config-dir" in command.words
        or any(word.split("=")[-1] in OWN for word in command.words)
    )


def test_printed_commands_are_found():
    assert len(ALL) > 120
    assert len([command for command in RUNS if not uses_own_files(command)]) > 60


def write_files(page: Path, folder: Path) -> None:
    """Write the files printed in a page."""
    for name, content in files(page).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


def check_composition(overrides: list[str]) -> None:
    """Compose a run and check its components as before loading data.

    Raises:
        ConfigError: components are incompatible.
    """
    has_gpu = torch.cuda.is_available()
    words = [word for word in overrides if has_gpu or word != "device=cuda"]
    with suppress(DataUnavailableError):  # everything has been checked at this point
        build(resolve(compose([*words, "offline=true"])))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_run_composes(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNNER_DATA_DIR", str(tmp_path))
    write_files(page, tmp_path)
    wrong = []
    for overrides, command in {
        tuple(one_run(c.words)): c for c in RUNS if c.page == page and not uses_own_files(c)
    }.items():
        # tests/experiments composes them all
        if len(overrides) == 1 and overrides[0].startswith("+experiment="):
            wrong += [str(command)] * (overrides[0].partition("=")[2] not in options("experiment"))
            continue
        try:
            check_composition([*overrides])
        except Exception as error:  # any error is a failure
            wrong.append(f"{command}: {error}")
    assert wrong == []


def test_flow_requires_reparameterised_gradient():
    with pytest.raises(ConfigError) as refused:
        check_composition(["+experiment=bbvi_logistic", "inference.family=flow"])
    message = str(refused.value)
    assert message.startswith("inference.gradient=rao_blackwell requires factored_guide")
    assert "compatible values of inference.gradient: " in message
    assert "reparam" in message
    check_composition(
        ["+experiment=bbvi_logistic", "inference.family=flow", "inference.gradient=reparam"]
    )


def first_run(study: str) -> list[str]:
    """Overrides of the first run of a study, with one replicate in smoke form."""
    short = ["replicates=1", "smoke=true", "tracking=false", "offline=true"]
    overrides = plan(load_study(study), short)[0].overrides
    has_experiment = any("experiment=" in override for override in overrides)
    return overrides if has_experiment else [*overrides, "steps=20"]


@pytest.mark.parametrize("study", STUDIES)
def test_first_run_of_every_study_composes(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNNER_DATA_DIR", str(tmp_path))
    check_composition(first_run(study))


def test_every_subcommand_parses_its_arguments():
    wrong = []
    launched = {
        after
        for c in ALL
        for word, after in zip(c.words, c.words[1:], strict=False)
        if word == "--as"
    }
    for command in ALL:
        name, *words = command.words
        if name not in COMMANDS:
            continue
        plain = [w for w in words if not w.startswith("-") and "=" not in w]
        # `runner study --plugin MODULE` is a form, not a command
        if any(w.isupper() for w in plain):
            continue
        fields = read_index()[f"command/{name}"].fields.keys()
        wrong += [
            f"{command}: {w}" for w in words if w.startswith("--") and w.split("=")[0] not in fields
        ]
        if name in ("study", "report", "rerun") and plain and plain[0] not in OWN | launched:
            load_study(plain[0].removesuffix(SUFFIX))  # an archive is named after its study
        elif name == "show" and "/" in (plain or [""])[0]:
            group, _, what = plain[0].partition("/")
            wrong += [str(command)] * (group not in GROUPS or what not in options(group))
        elif name == "show" and plain:
            wrong += [str(command)] * (plain != ["config"])
        elif name == "list" and plain:
            wrong += [str(command)] * (plain[0] not in GROUPS)
    assert wrong == []


def smoke_form(command: Printed) -> list[str]:
    """Short form of a run: smoke overrides of its experiment, or a few steps without one."""
    words = [
        w
        for w in one_run(command.words)
        if w.partition("=")[0] not in ("replicates", "dataset.n_train", "smoke")
    ]
    steps = next((w for w in words if w.startswith("steps=") and w != "steps=1"), None)
    if steps is not None:
        words.remove(steps)
        words = [w for w in words if not w.startswith(("inference.warmup=", "inference.burn_in="))]
        words += [] if any("experiment=" in w for w in words) else ["steps=20"]
    return [*words, "smoke=true", "tracking=false", "offline=true"]


def call(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder."""
    return run_python(["-m", "runner.commands.cli", *words], folder)


def run_python(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with this package on the path."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([".", str(ROOT)]),
        "OMP_NUM_THREADS": "1",
    }
    options = {"cwd": folder, "env": environment, "timeout": 600}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, **options)


def check_recorded(done: subprocess.CompletedProcess[str]) -> None:
    """Assert that a run has written its record, if its data are available."""
    if done.returncode == 2 and "no download was attempted" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "record" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in RUNS if not uses_own_files(c)], ids=str)
def test_every_run_runs_in_smoke_form(command, tmp_path):
    if "device=cuda" in command.words and not torch.cuda.is_available():
        pytest.skip("no GPU")
    write_files(command.page, tmp_path)
    done = call(smoke_form(command), tmp_path)
    check_recorded(done)


# Smoke overrides of an experiment replace the keys of a study's row, but not its components.
RUN_SHORT = """
import sys
from runner.commands.app import attempt
from runner.compose.compose import compose

composed = compose(sys.argv[1:])
components = {key for key in composed.explicit if "." not in key and key != "steps"}
done = attempt(composed._replace(explicit=components))
print(done.message, file=sys.stderr)
sys.exit(done.code)
"""


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_first_run_of_every_study_runs_in_smoke_form(study, tmp_path):
    done = run_python(["-c", RUN_SHORT, *first_run(study)], tmp_path)
    check_recorded(done)


def is_readonly(command: Printed) -> bool:
    """True for a complete command that does not require runs of the reader."""
    name, *words = command.words
    if name == "report":
        return "--with" in words and words[0] in options("study")
    is_whole = name in ("list", "doctor", "clean") or bool(words)
    return name in LOOKS and is_whole and not any(word.isupper() for word in words)


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in ALL if is_readonly(c)], ids=str)
def test_every_readonly_command_runs(command, tmp_path):
    words = [
        str(ROOT / word) if word.startswith("docs/results/") else word for word in command.words
    ]
    done = call(words, tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert done.stdout
