"""``runner show``: every key with its default, type and comment; partners; no torch."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys

import pytest
import yaml
from contract.partners import fits

from components import registry
from components.registry import CHOSEN
from runner import CONF
from runner.catalogue.declarations import declaration
from runner.catalogue.list_and_show import (
    options,
    selected_components,
)
from runner.catalogue.partners import is_compatible
from runner.catalogue.show import main


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runner.commands.cli", *argv],
        capture_output=True,
        text=True,
        timeout=60,
    )


def show(capsys, name):
    """Output of the command, and its rows by key."""
    assert main(["show", name]) == 0
    out = capsys.readouterr().out
    rows = [line.split("\t") for line in out.splitlines() if "\t" in line]
    return out, {key: facts for key, *facts in rows}


def test_comment_of_a_declaration_is_shown(capsys):
    _, rows = show(capsys, "inference/sgld")
    cyclical = "of ε_t: constant, polynomial ε (1 + t/b)^−γ, or cyclical"
    assert rows["inference.schedule"][2].startswith(cyclical)
    assert rows["inference.burn_in"] == [
        "500",
        "integer ≥ 0",
        "steps before states are stored; Gallego (2021) section 2.3.3",
    ]
    assert rows["inference.step_size"][2].startswith("ε: drift ε ∇log p")


def test_component_is_shown(capsys):
    out, rows = show(capsys, "inference/level_k")
    assert "model     q_linear, q_network, q_table" in out
    assert "components/games/agents/level_k.py" in out
    assert "Algorithm 4.1" in out
    default, kind, comment = rows["inference.epsilon"]
    assert (default, kind) == ("0.1", "number ≥ 0, ≤ 1 or {start: …, factor: …, every: …}")
    assert "probability" in comment
    assert rows["inference.policy"][1] == "epsilon_greedy | softmax"


def test_run_level_keys_are_shown(capsys):
    _, rows = show(capsys, "config")
    assert rows["seed"][:2] == ["0", "integer ≥ 0"]
    assert rows["dtype"][1] == "float64 | float32"
    assert all(comment for *_, comment in rows.values())


def test_experiment_is_shown(capsys):
    out, _ = show(capsys, "+experiment=friend_or_foe")
    assert "runner +experiment=friend_or_foe" in out
    assert "attacker  exponential_smoother" in out
    assert (
        selected_components(
            yaml.safe_load((CONF / "experiment" / "friend_or_foe.yaml").read_text())
        )["model"]
        == "q_table"
    )


def test_derived_experiment_shows_its_full_composition(monkeypatch, tmp_path):
    content = yaml.safe_load((CONF / "experiment" / "sarcos_cmdgp.yaml").read_text())
    assert selected_components(content) == {
        "dataset": "sarcos",
        "model": "cmdgp",
        "inference": "dsvi",
    }
    (tmp_path / "experiment").mkdir()
    for name, base in (("a", "b"), ("b", "a")):  # Hydra refuses it; the list must not hang
        (tmp_path / "experiment" / f"{name}.yaml").write_text(
            f"defaults: [{base}, override /model: {name}]\n"
        )
    monkeypatch.setattr("runner.disk.conf_folders.CONF", tmp_path)
    assert selected_components(
        yaml.safe_load((tmp_path / "experiment" / "a.yaml").read_text())
    ) == {"model": "a"}


@pytest.mark.parametrize(
    "name", [f"{g}/{n}" for g in ("experiment", "study", "published") for n in options(g)]
)
def test_every_file_is_shown(name, capsys):
    assert name in show(capsys, name)[0]


def test_runs_refuse_every_pair_that_list_excludes():
    """Random compositions of components as configured, half of them with one kind of problem."""
    rng = random.Random(20261130)
    named = {role: {n: declaration(role, n) for n in registry.names(role)} for role in CHOSEN}
    n_fitting = 0
    for i in range(1000):
        dataset = rng.choice(sorted(named["dataset"].items()))[1]
        parts = {"dataset": dataset}
        for role in CHOSEN[1:]:
            of_kind = [d for d in named[role].values() if i % 2 or dataset.kinds & d.kinds]
            parts[role] = rng.choice(of_kind or list(named[role].values()))
        is_listed = all(
            is_compatible(parts[first], parts[second])
            for first, second in itertools.combinations(CHOSEN, 2)
            if (first, second) != ("inference", "attacker")
        )
        is_run = fits(*(part.name for part in parts.values()))
        n_fitting += is_run
        assert is_listed or not is_run, [part.name for part in parts.values()]
    assert n_fitting > 10


def test_exit_codes_and_streams():
    assert run("show", "inference/level_k").returncode == 0
    wrong = run("show", "inference/levelk")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "inference/levelk: no such inference, did you mean level_k?\n"
    assert run("list", "--nonsense").returncode == 2
    assert "separated by tabs" in run("list", "--help").stdout


@pytest.mark.parametrize(
    ("module", "argv"),
    [
        ("listing", ["list"]),
        ("listing", ["list", "--all"]),
        ("show", ["show", "inference/level_k"]),
        ("show", ["show", "study/sarcos_table"]),
        ("show", ["show", "config"]),
    ],
)
def test_show_needs_no_torch(module, argv):
    code = f"import sys; from runner.catalogue.{module} import main; main({argv!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
