"""``runner show``: every key with its default, type and comment; partners; no torch."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

from components import registry
from runner import CONF
from runner.catalogue.list_and_show import (
    describe,
    options,
    selected_components,
)
from runner.catalogue.partners import partners
from runner.catalogue.show import main


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runner.commands.cli", *argv],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_comment_beside_a_declaration_is_shown(capsys):
    assert main(["show", "inference/sgld"]) == 0
    rows = {
        line.split("\t")[0]: line.split("\t")
        for line in capsys.readouterr().out.splitlines()
        if "\t" in line
    }
    assert rows["inference.schedule"][3].startswith(
        "of ε_t: constant, polynomial ε (1 + t/b)^−γ, or cyclical"
    )
    assert rows["inference.burn_in"][1:] == [
        "500",
        "integer ≥ 0",
        "steps before any state is kept; Gallego (2021) section 2.3.3",
    ]
    assert rows["inference.step_size"][3].startswith("ε: drift ε ∇log p")


def test_show_of_a_component(capsys):
    assert main(["show", "inference/level_k"]) == 0
    out = capsys.readouterr().out
    assert "model     q_linear, q_network, q_table" in out
    assert "components/games/agents/level_k.py" in out
    assert "Algorithm 4.1" in out
    rows = {
        line.split("\t")[0]: line.split("\t")[1:]
        for line in out.splitlines()
        if line.startswith("inference.")
    }
    assert rows["inference.epsilon"][:2] == [
        "0.1",
        "number ≥ 0, ≤ 1 or {start: …, factor: …, every: …}",
    ]
    assert rows["inference.policy"][1] == "epsilon_greedy | softmax"
    assert "probability" in rows["inference.epsilon"][2]


def test_show_of_the_run_level_keys(capsys):
    assert main(["show", "config"]) == 0
    rows = {
        line.split("\t")[0]: line.split("\t")
        for line in capsys.readouterr().out.splitlines()
        if "\t" in line
    }
    assert rows["seed"][1:3] == ["0", "integer ≥ 0"]
    assert rows["dtype"][2] == "float64 | float32"
    assert all(row[3] for row in rows.values())


def test_show_of_an_experiment(capsys):
    assert main(["show", "+experiment=friend_or_foe"]) == 0
    out = capsys.readouterr().out
    assert "runner +experiment=friend_or_foe" in out
    assert "attacker  exponential_smoother" in out
    assert (
        selected_components(
            yaml.safe_load((CONF / "experiment" / "friend_or_foe.yaml").read_text())
        )["model"]
        == "q_table"
    )


def test_a_derived_experiment_shows_all_that_it_is_composed_of(monkeypatch, tmp_path):
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
def test_show_of_every_file(name, capsys):
    assert main(["show", name]) == 0
    assert name in capsys.readouterr().out


@pytest.mark.parametrize("role", ["dataset", "model", "inference"])
def test_partners_are_those_the_runner_accepts(role):
    """The rules read from the text against ``check_pairs`` on the classes."""
    for name in registry.names(role):
        cls, own = registry.get(role, name), describe(role, name)
        for other, names in partners(role, own):
            for partner in registry.names(other):
                pair = {role: cls, other: registry.get(other, partner)}
                assert (partner in names.split(", ")) == accepted(**pair), (name, partner)


def accepted(dataset=None, model=None, inference=None) -> bool:
    if dataset and model:
        target = (
            dataset.label_kind is None
            or model.requires.targets is None
            or dataset.label_kind in model.requires.targets
        )
        values = (
            dataset.values is None
            or model.requires.values is None
            or dataset.values in model.requires.values
        )
        reads = dataset.kind != "supervised" or dataset.domain in model.requires.domains
        return (
            dataset.kind in model.requires.kinds
            and target
            and values
            and reads
            and model.requires.simulated <= dataset.simulates
        )
    offered = model.offers | model.offers_where.keys()
    shared = model.requires.kinds & inference.requires.kinds
    requires = inference.requires
    ways = [requires.capabilities_by_kind.get(kind, frozenset()) for kind in shared]
    ways += [way for kind, way in requires.alternatives_by_kind.items() if kind in shared]
    return any(requires.capabilities | way <= offered for way in ways)


def test_exit_codes_and_streams():
    assert run("show", "inference/level_k").returncode == 0
    wrong = run("show", "inference/levelk")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "inference/levelk: no such inference, did you mean level_k?\n"
    assert run("list", "--nonsense").returncode == 2
    assert "tab-separated" in run("list", "--help").stdout


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
def test_it_answers_without_torch(module, argv):
    code = f"import sys; from runner.catalogue.{module} import main; main({argv!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
