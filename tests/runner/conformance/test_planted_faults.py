"""``runner test``: the random walk of the page passes, and each planted fault fails its check."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from support.runs.json_output import read_objects
from support.targets.broken_samplers import BARKER, BROKEN

from components import registry
from runner import run
from runner.commands.cli import _answer
from runner.disk import conf_folders

DOCS = Path(__file__).parents[3] / "docs"
FILES = {
    re.match(r"# (\S+)\n", text).group(1): text
    for page in ("add_a_component.md", "examples.md")
    for text in re.findall(
        r"```(?:python|yaml)\n(# \S+\.\w+\n.*?)```", (DOCS / page).read_text("utf-8"), re.S
    )
}
EXAMPLES = [
    re.search(r"/(\w+)/(\w+)\.yaml", path).groups() for path in FILES if path.endswith(".yaml")
]
CLASS = FILES["walk.py"]
YAML = FILES["conf/inference/walk.yaml"]
FAULTS = yaml.safe_load(Path(__file__).with_name("planted_faults.yaml").read_text("utf-8"))


def edit(text, changes):
    """Replace parts of a text."""
    for old, after in changes.items():
        assert old in text
        text = text.replace(old, after)
    return text


@pytest.fixture
def conform(tmp_path, monkeypatch, capsys):
    """Function that tests a module given as text with its YAML: exit code and results by check."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def conform(
        text: str, values: str, *words: str, name: str = "walk", role: str = "inference"
    ) -> tuple[int, dict[str, dict[str, str]]]:
        (tmp_path / "conf" / role).mkdir(parents=True)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        (tmp_path / "conf" / role / f"{name}.yaml").write_text(values, encoding="utf-8")
        with conf_folders.restore_folders_on_exit():
            code = _answer(["test", name, "--config-dir", "conf", "--json", *words])
        lines = read_objects("test", capsys.readouterr().out)
        return code, {line["check"]: line for line in lines}

    yield conform
    for role, name in [*EXAMPLES, ("attacker", "noise")]:
        sys.modules.pop(name, None)
        registry._registered.pop((role, name), None)


@pytest.mark.parametrize(("role", "name"), EXAMPLES)
def test_example_of_a_page_passes(role, name, conform):
    text = FILES[f"{name}.py"]
    assert len(text.splitlines()) <= 60
    code, results = conform(text, FILES[f"conf/{role}/{name}.yaml"], name=name, role=role)
    assert {line["state"] for line in results.values()} == {"passed"}, json.dumps(results, indent=1)
    assert len(results) == {"inference": 14, "attacker": 13}.get(role, 12)
    assert code == 0


def test_pages_have_an_example_of_each_role():
    roles = [role for role, _ in EXAMPLES]
    assert sorted(roles) == ["attacker", "dataset", "gradient", "inference", "inference", "model"]


@pytest.mark.parametrize("fault", FAULTS["walk"].values(), ids=list(FAULTS["walk"]))
def test_planted_fault_fails_only_its_check(fault, conform):
    code, results = conform(
        edit(CLASS, fault.get("walk.py", {})), edit(YAML, fault.get("walk.yaml", {}))
    )
    failed = [name for name, line in results.items() if line["state"] == "failed"]
    assert failed == [fault["check"]], json.dumps(results, indent=1)
    assert re.search(fault["reason"], results[fault["check"]]["reason"])
    assert code == 1


ATTACK = '''
import torch

from components.contracts.attackers import Evasion
from components.registry import register


@register("attacker", "noise")
class Noise(Evasion):
    """Random signs of size ε.

    Source: none."""

    knowledge = "black box"

    def perturb(self, victim, x, y, rng, eps):
        signs = torch.randn(x.shape, generator=rng.attack, dtype=x.dtype).sign()
        return victim.clip(x + eps * signs)
'''
NOISE_YAML = "name: noise\neps: [0.0, 0.1] # sizes ε, at least 0\n"


def test_correct_attack_passes(conform):
    code, results = conform(ATTACK, NOISE_YAML, name="noise", role="attacker")
    assert (code, "failed" in {line["state"] for line in results.values()}) == (0, False), results


@pytest.mark.parametrize("fault", FAULTS["attack"].values(), ids=list(FAULTS["attack"]))
def test_wrong_attack_fails_its_check(fault, conform):
    text = edit(ATTACK, fault["noise.py"])
    code, results = conform(text, NOISE_YAML, name="noise", role="attacker")
    failed = {name: line["reason"] for name, line in results.items() if line["state"] == "failed"}
    assert (code, list(failed)) == (1, [fault["check"]]), failed
    assert re.search(fault["reason"], failed[fault["check"]])


@pytest.mark.parametrize("mistake", ["", "barker: no Hastings correction"])
def test_wrong_sampler_fails_its_test_and_its_run(mistake, conform, tmp_path):
    text = BARKER.replace(*BROKEN[mistake][2:]) if mistake else BARKER
    values = "name: barker\nchains: 20 # parallel chains, at least 1\nscale: 1.0 # of a proposal, above 0\n"
    code, results = conform(text, values, name="barker")
    assert code == bool(mistake), results
    assert results["stationarity"]["state"] == ("failed" if mistake else "passed")
    words = [
        "--config-dir=conf",
        "dataset=gaussian",
        "model=target_density",
        "inference=barker",
        "steps=2000",
        "plugins=[barker]",
        "tracking=false",
        "figures=false",
        f"output_dir={tmp_path / 'outputs'}",
    ]
    checks = run(None, *words).checks
    assert checks.check[~checks.passed.astype(bool)].tolist() == (
        ["moments agree with the exact ones"] if mistake else []
    )


def test_partners_can_be_chosen(conform):
    _, results = conform(CLASS, YAML, "dataset=banana")
    assert results["partners"]["reason"] == "banana-target_density-walk"


def test_missing_partner_is_named(conform):
    code, results = conform(CLASS, YAML, "dataset=bananas")
    assert results["partners"]["reason"].startswith(
        "dataset=bananas: no such dataset, did you mean banana?"
    )
    assert results["steps"] | {"reason": ""} == {
        "component": "inference=walk",
        "check": "steps",
        "state": "not checked",
        "reason": "",
    }
    assert code == 1


def test_module_without_components_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "no_components_here.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert _answer(["test", "no_components_here"]) == 2
    assert "registers no component; decorate a class" in capsys.readouterr().err


def test_key_without_a_default_is_given_on_the_command_line(conform):
    values = YAML.replace("scale: 0.5", "scale: ???")
    code, results = conform(CLASS, values, "inference.scale=0.7")
    assert code == 0, json.dumps(results, indent=1)
    assert results["refusals"]["reason"] == "skipped: no default for scale"
