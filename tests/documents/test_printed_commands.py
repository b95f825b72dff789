"""Every command that README or docs print can be given: all of them composed, and, slowly, all of
them run in smoke form."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep
from printed_commands import ROOT, Printed, files, printed

from runner.catalogue.list_and_show import GROUPS, options
from runner.commands.cli import COMMANDS
from runner.commands.command_options import list_command_options
from runner.compose.overrides import compose
from runner.compose.resolve import resolve
from runner.study.definition import load_study

ALL = printed()
RUNS = [command for command in ALL if command.words[0] not in COMMANDS]
# Modules and files that the page makes itself: test_plugin and test_newcomer run these as they are
# printed.
OWN = {"my_sales", "houses", "my_experiment", "my_table", "my_sampler"}
OWN |= {"houses.csv", "sales.csv", "net.safetensors"}


def one_run(words: tuple[str, ...]) -> list[str]:
    """The overrides of the first run of a command line, without flags and without what is a sweep's
    alone."""
    given = [
        word for word in words if "=" in word and not word.startswith(("--", "hydra/", "hydra."))
    ]
    found = []
    for word, override in zip(given, OverridesParser.create().parse_overrides(given), strict=True):
        value = override.value()
        if isinstance(value, ChoiceSweep):
            word = f"{override.input_line.split('=')[0]}={value.list[0]}"
        elif isinstance(value, IntervalSweep):
            word = f"{override.input_line.split('=')[0]}={value.start}"
        found.append(word)
    return found


def of_own_files(command: Printed) -> bool:
    return (
        command.own
        or "--config-dir" in command.words
        or any(word.split("=")[-1] in OWN for word in command.words)
    )


def test_there_are_as_many_as_one_sees():
    assert len(ALL) > 120
    assert len([command for command in RUNS if not of_own_files(command)]) > 60


def test_every_run_composes():
    wrong = []
    for overrides, command in {
        tuple(one_run(c.words)): c for c in RUNS if not of_own_files(c)
    }.items():
        # tests/experiments compose them all
        if len(overrides) == 1 and overrides[0].startswith("+experiment="):
            wrong += [str(command)] * (overrides[0].partition("=")[2] not in options("experiment"))
            continue
        try:
            resolve(*compose([*overrides]))
        except Exception as error:  # whatever it was is the finding
            wrong.append(f"{command}: {error}")
    assert wrong == []


def test_every_sub_command_knows_what_it_is_asked():
    wrong = []
    launched = {
        after
        for c in ALL
        for before, after in zip(c.words, c.words[1:], strict=False)
        if before == "--as"
    }
    for command in ALL:
        name, *words = command.words
        if name not in COMMANDS:
            continue
        plain = [w for w in words if not w.startswith("-") and "=" not in w]
        if any(w.isupper() for w in plain):  # `runner study --plugin MODULE`: a form, not a command
            continue
        known = {option for option, _ in list_command_options(COMMANDS[name][0])} | {"--help"}
        wrong += [
            f"{command}: {w}" for w in words if w.startswith("--") and w.split("=")[0] not in known
        ]
        if name in ("study", "report", "rerun") and plain and plain[0] not in OWN | launched:
            load_study(plain[0])
        elif name == "show" and "/" in (plain or [""])[0]:
            group, _, what = plain[0].partition("/")
            wrong += [str(command)] * (group not in GROUPS or what not in options(group))
        elif name == "list" and plain:
            wrong += [str(command)] * (plain[0] not in GROUPS)
    assert wrong == []


# ---- run
# --------------------------------------------------------------------------------------------------------------
def smoke_form(command: Printed) -> list[str]:
    """The same run in seconds: an experiment has its smoke overrides, what is composed by hand gets
    a few steps."""
    words = [
        w
        for w in one_run(command.words)
        if w.partition("=")[0] not in ("replicates", "dataset.n_train", "smoke")
    ]
    steps = next((w for w in words if w.startswith("steps=") and w != "steps=1"), None)
    if steps is not None:
        words.remove(steps)
        words += [] if any("experiment=" in w for w in words) else ["steps=20"]
    return [*words, "smoke=true", "tracking=false", "offline=true"]


def call(words: list[str], folder) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([".", str(ROOT)]),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "runner.commands.cli", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in RUNS if not of_own_files(c)], ids=str)
def test_every_run_runs_in_smoke_form(command, tmp_path):
    if "device=cuda" in command.words and not torch.cuda.is_available():
        pytest.skip("no GPU")
    for name, content in files(command.page).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    done = call(smoke_form(command), tmp_path)
    if done.returncode == 2 and "cannot be had" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "record" in done.stdout
