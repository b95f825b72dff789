"""Tab completion: the candidates, and the scripts inside real shells."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from components import registry
from runner import CONF
from runner.catalogue.list_and_show import options
from runner.commands.completion import SCRIPTS, candidates, main
from runner.commands.sub_commands import COMMANDS
from runner.errors import ConfigError

GAME = "runner +experiment=friend_or_foe"


def words(line: str) -> list[str]:
    return [text for text, _ in candidates(line)]


# ---- candidates
# -------------------------------------------------------------------------------------------------------
def test_the_first_word_is_a_command_or_an_override():
    found = words("runner ")
    assert set(COMMANDS) <= set(found)
    assert {"+experiment=", "model=", "model.", "seed=", "hydra/launcher="} <= set(found)
    assert words("runner comp") == ["compare", "completion"]
    assert "list" not in words("runner seed=1 ")


def test_groups_complete_to_their_names():
    assert words("runner +experiment=friend") == [
        "+experiment=friend_or_foe",
        "+experiment=friend_or_foe_grid",
        "+experiment=friend_or_foe_grid_as_published",
    ]
    assert words("runner inference=") == [f"inference={name}" for name in options("inference")]
    assert words("runner hydra/sweeper=") == ["hydra/sweeper=basic", "hydra/sweeper=optuna"]
    assert "hydra/launcher=joblib" in words("runner hydra/launcher=")
    assert words("runner ~att") == ["~attacker"]


def test_a_sweep_completes_its_last_value():
    assert words("runner -m inference=q_learning,fpq") == ["inference=q_learning,fpq_learning"]


def test_keys_are_those_of_the_component_chosen():
    keys = [
        k for k in yaml.safe_load((CONF / "inference" / "level_k.yaml").read_text()) if k != "name"
    ]
    assert words(f"{GAME} inference.") == [f"inference.{key}=" for key in keys]
    assert words(f"{GAME} inference=q_learning inference.g") == ["inference.gamma="]
    # nothing chosen: the keys of all
    assert words("runner inference.") != words(f"{GAME} inference.")
    assert {"inference.gamma=", "inference.step_size="} <= set(words("runner inference."))


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (f"{GAME} inference.policy=", ["epsilon_greedy", "softmax"]),
        ("runner dtype=", ["float64", "float32"]),
        ("runner smoke=", ["true", "false"]),
        ("runner debug=", ["overfit", "profile", "null"]),
        ("runner device=", ["cpu", "cuda"]),
        ("runner dataset.split=test", ["test_file"]),
        ("runner seed=", []),
        (f"{GAME} inference.nonsense=", []),
        ("runner nonsense.key=", []),
    ],
)
def test_values_are_the_members_of_a_choice(line, values):
    key = line.split()[-1].partition("=")[0]
    assert words(line) == [f"{key}={value}" for value in values]


def test_own_files_and_plugins_complete_without_being_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "conf/inference/walk.yaml": "name: walk\nscale: 0.5 # s\nkind: fast\n",
        "conf/study/mine.yaml": "name: mine\n",
        "walk.py": "from typing import Literal\nfrom components.contracts.roles import Inference\n"
        "from components.registry import register\n\nraise SystemExit('run by a tab')\n\n\n"
        "@register('inference', 'walk')\nclass Walk(Inference):\n    scale: float\n    kind: Literal['fast', 'slow']\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    line = "PYTHONPATH=. runner --config-dir conf +experiment=mog"
    assert words(f"{line} inference=wal") == ["inference=walk"]
    assert words("runner +experiment=mog inference=wal") == []
    assert words(f"{line} inference=walk inference.") == ["inference.scale=", "inference.kind="]
    assert words(f"{line} inference=walk plugins=[walk] inference.k") == ["inference.kind="]
    assert words("runner study --config-dir conf mi") == ["mine"]
    assert words("runner show --config-dir=conf inference/wal") == ["inference/walk"]
    assert words("runner study --pl") == ["--plugin"]


def test_arguments_of_the_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("outputs/toy/aaaa1111", "elsewhere/toy/bbbb2222"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "run.json").write_text("{}")
    assert words("runner list ") == [*registry.ROLES, "experiment", "study", "published"]
    assert words("runner list study/gallego/") == [f"study/gallego/{n}" for n in (1, 2, 3, 4)]
    assert words("runner show inference/level") == ["inference/level_k"]
    assert "inference/" in words("runner show ")
    assert words("runner resume ") == ["aaaa1111"]
    assert words("runner compare aaaa1111 a") == ["aaaa1111"]
    assert words("runner compare --output-dir elsewhere ") == ["bbbb2222"]
    assert words("runner resume --output-dir=elsewhere b") == ["bbbb2222"]
    assert words("runner report ") == options("study")
    assert words("runner data ") == ["list", "fetch", "verify"]
    assert "sarcos" in words("runner data fetch ")
    assert words("runner completion ") == ["bash", "zsh", "fish"]
    assert words("runner ui --po") == ["--port"]
    assert words("runner --cfg ") == ["job", "hydra", "all"]
    assert "--multirun" in words("runner --mu")
    assert words("runner doctor ") == []


def test_options_are_those_of_the_parsers_with_their_meaning(capsys):
    for command, (module, *_) in COMMANDS.items():
        if command == "completion":
            continue
        with pytest.raises(SystemExit):
            importlib.import_module(module).main([command, "--help"])
        told = set(
            re.findall(r"(?<![\w-])--[a-z-]+", capsys.readouterr().out.partition("options:")[2])
        )
        found = dict(candidates(f"runner {command} --"))
        # two commands of one module: either knows the options of both
        shared = {"list", "show", "study", "rerun", "arena"}
        assert told == set(found) if command not in shared else told <= set(found), command
        assert all(found.values()), command


def test_values_of_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "walk.py").write_text("")
    launched = tmp_path / "outputs" / "studies" / "mine" / "snapshot.yaml"
    launched.parent.mkdir(parents=True)
    launched.write_text("")
    assert (
        words("runner study moe_mog_table --as ")
        == words("runner study moe_mog_table --as m")
        == ["mine"]
    )
    assert words("runner study moe_mog_table --as=") == ["--as=mine"]
    assert words("runner report mi") == ["mine"]
    assert words("runner list --plugin ") == ["walk"]
    assert words("runner +experiment=mog plugins=") == ["plugins=[walk]"]
    assert words("runner study --output-dir ") == []


@pytest.mark.parametrize(
    "line", ["", "runner", "runner =", "runner +", "runner a=b=c", "runner list x y z ", "runner ,"]
)
def test_strange_lines_do_no_harm(line):
    assert all(isinstance(word, str) for word in words(line))


def test_every_candidate_of_a_line_begins_as_the_word_does():
    for line in (GAME + " inf", "runner d", "runner model=m", "runner dataset.n"):
        found = words(line)
        assert found
        assert all(word.startswith(line.split()[-1]) for word in found)


# ---- the command
# ------------------------------------------------------------------------------------------------------
def test_scripts_and_the_shell_in_use(capsys, monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert main(["completion"]) == 0
    assert capsys.readouterr().out == SCRIPTS["zsh"]
    with pytest.raises(ConfigError, match="completion: tcsh is not one of bash, zsh, fish"):
        main(["completion", "tcsh"])


def test_it_imports_neither_torch_nor_hydra():
    code = (
        "import sys; from runner.commands.completion import main; main(['completion', 'query', 'runner model=']); "
        "sys.exit(bool({'torch', 'hydra', 'omegaconf', 'pydantic'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


# ---- in the shells
# ----------------------------------------------------------------------------------------------------
def shell(name: str, script: str, tmp_path: Path) -> list[str]:
    """Output of a shell in which ``runner`` is this checkout's, without the user's own start-up
    files."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    stub = tmp_path / "runner"
    stub.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m runner.commands.cli "$@"\n')
    stub.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    quiet = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[name]
    done = subprocess.run(
        [name, *quiet, "-c", script], capture_output=True, text=True, env=environment, timeout=60
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        (
            "runner +experiment=friend_or_foe_g",
            ["friend_or_foe_grid", "friend_or_foe_grid_as_published"],
        ),  # bash replaces what follows "="
        ("runner inference=q_learning,fpq", ["q_learning,fpq_learning"]),
        ("runner show inference/level", ["inference/level_k"]),
        ("runner compl", ["completion"]),
        ("runner dtype=", ["float64", "float32"]),
    ],
)
def test_in_bash(line, replies, tmp_path):
    script = f"""
        eval "$(runner completion bash)"
        COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}
        complete -p runner >&2 && _runner_complete runner
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert shell("bash", script, tmp_path) == replies


def test_in_fish(tmp_path):
    script = "runner completion fish | source; complete -C 'runner +experiment=friend'; complete -C 'runner completion '"
    found = [line.split("\t")[0] for line in shell("fish", script, tmp_path)]
    assert found == ["+experiment=friend_or_foe", "bash", "fish", "zsh"]


def test_in_zsh(tmp_path):
    """``compadd`` works only inside the completion system: a stand-in shows what it would be
    given."""
    script = """
        compdef() { :; }
        compadd() { echo "${(P)@[-1]}"; }
        _files() { echo files; }
        eval "$(runner completion zsh)"
        words=(runner +experiment=friend); CURRENT=2; PREFIX=+experiment=friend
        _runner_complete
        words=(runner ''); words[2]=+exp; PREFIX=+exp
        _runner_complete
        words=(runner doctor ''); CURRENT=3; PREFIX=''
        _runner_complete
    """
    assert shell("zsh", script, tmp_path) == ["+experiment=friend_or_foe", "+experiment=", "files"]


def test_parts_complete_to_their_names_and_keys():
    vae = "runner +experiment=vae_digits "
    assert words(vae + "inference.gradient=rep") == ["inference.gradient=reparam"]
    assert words(vae + "inference.grad") == ["inference.gradient=", "inference.gradient."]
    assert "inference.gradient.n_samples=" in words(vae + "inference.gradient.")
    defence = "runner +experiment=digits_fgsm inference=adversarial_training inference.training_attacker=pgd "
    assert words(defence + "inference.training_attacker.steps") == [
        "inference.training_attacker.steps="
    ]
    assert words("runner +experiment=digits_fgsm attacker=transfer attacker.attack.random") == [
        "attacker.attack.random_start="
    ]
    assert words(defence + "inference.training_attacker.random_start=t") == [
        "inference.training_attacker.random_start=true"
    ]
