"""Tab completion: the candidates, and the scripts inside real shells."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest
import yaml

from components import registry
from runner import CONF
from runner.catalogue.list_and_show import options
from runner.catalogue.sub_commands import COMMANDS
from runner.commands.completion import SCRIPTS, candidates, main
from runner.errors import ConfigError

GAME = "runner +experiment=friend_or_foe"


def words(line: str) -> list[str]:
    return [text for text, _ in candidates(line)]


def test_first_word_is_a_command_or_an_override():
    completions = words("runner ")
    assert set(COMMANDS) <= set(completions)
    assert {"+experiment=", "model=", "model.", "seed=", "hydra/launcher="} <= set(completions)
    assert "list" not in words("runner seed=1 ")


DEFENCE = (
    "runner +experiment=digits_fgsm inference=adversarial_training inference.training_attacker=pgd "
)
ATTACK = "inference.training_attacker."
VAE = "runner +experiment=vae_digits "


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("runner comp", ["compare", "completion"]),
        (
            "runner +experiment=friend",
            [
                "+experiment=friend_or_foe",
                "+experiment=friend_or_foe_grid",
                "+experiment=friend_or_foe_grid_as_published",
            ],
        ),
        ("runner inference=", [f"inference={name}" for name in options("inference")]),
        ("runner hydra/sweeper=", ["hydra/sweeper=basic", "hydra/sweeper=optuna"]),
        ("runner ~att", ["~attacker"]),
        ("runner -m inference=q_learning,fpq", ["inference=q_learning,fpq_learning"]),
        (f"{GAME} inference=q_learning inference.g", ["inference.gamma="]),
        (f"{VAE}inference.gradient=rep", ["inference.gradient=reparam"]),
        (f"{VAE}inference.grad", ["inference.gradient=", "inference.gradient."]),
        (f"{DEFENCE}{ATTACK}steps", [f"{ATTACK}steps="]),
        (f"{DEFENCE}{ATTACK}random_start=t", [f"{ATTACK}random_start=true"]),
        (
            "runner +experiment=digits_fgsm attacker=transfer attacker.attack.random",
            ["attacker.attack.random_start="],
        ),
        ("runner list ", [*registry.ROLES, "experiment", "study", "published"]),
        ("runner list study/gallego/", [f"study/gallego/{n}" for n in (1, 2, 3, 4)]),
        ("runner show inference/level", ["inference/level_k"]),
        ("runner report ", options("study")),
        ("runner data ", ["list", "fetch", "verify"]),
        ("runner completion ", ["bash", "zsh", "fish"]),
        ("runner ui --po", ["--port"]),
        ("runner --cfg ", ["job", "hydra", "all"]),
        ("runner doctor ", []),
    ],
)
def test_candidates_match_the_line(line, replies):
    assert words(line) == replies


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("runner hydra/launcher=", "hydra/launcher=joblib"),
        ("runner show ", "inference/"),
        ("runner data fetch ", "sarcos"),
        ("runner --mu", "--multirun"),
        (f"{VAE}inference.gradient.", "inference.gradient.n_samples="),
    ],
)
def test_candidate_is_among_others(line, reply):
    assert reply in words(line)


def test_keys_belong_to_the_chosen_component():
    _name, *keys = yaml.safe_load((CONF / "inference" / "level_k.yaml").read_text())
    assert words(f"{GAME} inference.") == [f"inference.{key}=" for key in keys]
    # no component chosen: keys of all
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


def test_own_files_and_plugins_complete_without_import(tmp_path, monkeypatch):
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


def test_runs_come_from_the_output_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("outputs/toy/aaaa1111", "elsewhere/toy/bbbb2222"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "run.json").write_text("{}")
    for rest, run in {
        "resume ": "aaaa1111",
        "compare aaaa1111 a": "aaaa1111",
        "compare --output-dir elsewhere ": "bbbb2222",
        "resume --output-dir=elsewhere b": "bbbb2222",
    }.items():
        assert words(f"runner {rest}") == [run]


def test_options_come_from_the_parsers_with_their_help(capsys):
    for command, (module, *_) in COMMANDS.items():
        with pytest.raises(SystemExit):
            importlib.import_module(module).main([command, "--help"])
        printed = capsys.readouterr().out.partition("options:")[2]
        printed_options = set(re.findall(r"(?<![\w-])--[a-z-]+", printed))
        completions = dict(candidates(f"runner {command} --"))
        # the arena has its own commands
        assert (
            printed_options == set(completions)
            if command != "arena"
            else printed_options <= set(completions)
        ), command
        assert all(completions.values()), command


def test_values_of_options_are_completed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "walk.py").write_text("")
    launched = tmp_path / "outputs" / "studies" / "mine" / "snapshot.yaml"
    launched.parent.mkdir(parents=True)
    launched.write_text("")
    for rest, replies in {
        "study moe_mog_table --as ": ["mine"],
        "study moe_mog_table --as m": ["mine"],
        "study moe_mog_table --as=": ["--as=mine"],
        "report mi": ["mine"],
        "list --plugin ": ["walk"],
        "+experiment=mog plugins=": ["plugins=[walk]"],
        "study --output-dir ": [],
    }.items():
        assert words(f"runner {rest}") == replies


@pytest.mark.parametrize(
    "line", ["", "runner", "runner =", "runner +", "runner a=b=c", "runner list x y z ", "runner ,"]
)
def test_malformed_lines_are_accepted(line):
    assert all(isinstance(word, str) for word in words(line))


def test_every_candidate_starts_like_the_word():
    for line in (GAME + " inf", "runner d", "runner model=m", "runner dataset.n"):
        completions = words(line)
        assert completions
        assert all(word.startswith(line.split()[-1]) for word in completions)


def test_scripts_are_written_for_the_current_shell(capsys, monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert main(["completion"]) == 0
    assert capsys.readouterr().out == SCRIPTS["zsh"]
    with pytest.raises(ConfigError, match="'tcsh': unknown shell; choose one of"):
        main(["completion", "tcsh"])


def test_completion_imports_neither_torch_nor_hydra():
    code = (
        "import sys; from runner.commands.completion import main; main(['completion', 'query', 'runner model=']); "
        "sys.exit(bool({'torch', 'hydra', 'omegaconf', 'pydantic'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
