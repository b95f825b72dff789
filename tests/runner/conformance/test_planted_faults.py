"""``runner test``: the page's random walk passes, and each planted fault fails the check of its
name."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from support.targets.broken_samplers import BARKER, BROKEN

from components import registry
from runner import run
from runner.commands.cli import _answer
from runner.disk import conf_folders

PAGE = (Path(__file__).parents[3] / "docs" / "add_a_component.md").read_text(encoding="utf-8")
FILES = {
    re.match(r"# (\S+)\n", text).group(1): text
    for text in re.findall(r"```(?:python|yaml)\n(# \S+\.\w+\n.*?)```", PAGE, re.S)
}
CLASS, YAML = FILES["walk.py"], FILES["conf/inference/walk.yaml"]
NOISE = "noise = torch.randn(theta.shape, generator=rng.noise, dtype=theta.dtype)"
LAST = "        return advance(state, theta, burn_in=0, thinning=1)"

# By name: the check that fails, words of its reason, and what is replaced in walk.py (or, with
# ".yaml" before it, in walk.yaml).
FAULTS = {
    "global randn": ("random numbers", r"draws from PyTorch's global stream.*walk\.py, line \d+",
                     {NOISE: "noise = torch.randn(theta.shape, dtype=theta.dtype)"}),
    "hidden state": ("checkpoint", r"resumed after step 2 of 4, .* differs from the uninterrupted run.*walk\.py, line",
                     {NOISE: f"{NOISE}\n        count = vars(self).setdefault('steps', [])\n        count.append(1)\n"
                             "        noise = noise * len(count)"}),
    "no docstring": ("docstring", r"Walk has no docstring.*walk\.py, line \d+",
                     {CLASS[CLASS.index('    """Random-walk Metropolis: propose'):CLASS.index("    requires =")]: ""}),
    "no source": ("docstring", "names no source", {"Source: Bardenet (2021), section 4.2.": ""}),
    "key without comment": ("keys", r"walk\.yaml: scale has no comment",
                            {".yaml scale: 0.5 # s, standard deviation of a proposal, above 0": "scale: 0.5"}),
    "default of a wrong type": ("keys", r"walk\.yaml: inference\.chains=.*", {".yaml chains: 10": "chains: ten"}),
    "key without a type": ("keys", r"scale has the type Any.*walk\.py, line \d+",
                           {"    scale: PositiveFloat": "    scale: Any",
                            "import torch\n": "from typing import Any\n\nimport torch\n"}),
    "key that is ignored": ("keys are used", r"scale is never read.*walk\.py, line \d+",
                            {"self.scale * noise": "0.5 * noise"}),
    "wall clock": ("same seed", "two runs of one seed differ",
                   {"import torch\n": "import time\n\nimport torch\n", NOISE: f"{NOISE} + time.time() % 1"}),
    "clock in days": ("same seed", "the clock decides",
                      {"import torch\n": "import time\n\nimport torch\n", NOISE: f"{NOISE} + time.time() // 86400 / 20000"}),
    "global seed": ("same seed", "the global random state decides", {NOISE: f"{NOISE} + torch.initial_seed() % 1000 / 1000"}),
    "infinite value": ("finite", r"step 1: acceptance is not finite.*walk\.py, line",
                       {'accept.double().mean()}': 'accept.double().mean() / 0}'}),
    "fixed seed": ("replicates", "replicates 1 and 2 are identical",
                   {NOISE: f"fixed = torch.Generator().manual_seed(0)\n        {NOISE.replace('rng.noise', 'fixed')}",
                    "torch.rand(len(theta), generator=rng.noise)": "torch.rand(len(theta), generator=fixed)",
                    "return init_chains(model, problem, self.requires.batch_kind, self.chains, rng)":
                    "state = init_chains(model, problem, self.requires.batch_kind, self.chains, rng)\n"
                    "        grid = torch.arange(state.theta.numel(), dtype=state.theta.dtype) / 10\n"
                    "        start = grid.view_as(state.theta)\n        return replace(state, start=start, theta=start)",
                    "import torch\n": "from dataclasses import replace\n\nimport torch\n"}),
    "data changed in place": ("inputs", r"posterior changes the state \(.*\) in place.*walk\.py, line",
                              {"return to_draws(state)": "state.theta.mul_(2)\n        return to_draws(state)"}),
    "no rejection": ("stationarity", r"another law: \|z\| [\d.]+ of .*, 5.5 allowed, after \d+ steps.*walk\.py, line \d+",
                     {"log_p(proposal) - log_p(theta)": "0.5 * (log_p(proposal) - log_p(theta))"}),
    "a step that raises": ("steps", r"ValueError: no.*walk\.py, line \d+", {NOISE: "raise ValueError('no')"}),
}  # fmt: skip


@pytest.fixture
def conform(tmp_path, monkeypatch, capsys):
    """Function that tests a module of some text with its YAML: exit code and results by check."""
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
        lines = map(json.loads, capsys.readouterr().out.splitlines())
        return code, {line["check"]: line for line in lines}

    yield conform
    for role, name in (("inference", "walk"), ("inference", "barker"), ("attacker", "noise")):
        sys.modules.pop(name, None)
        registry._registered.pop((role, name), None)


def test_the_walk_of_the_page_passes(conform):
    code, results = conform(CLASS, YAML)
    assert {line["state"] for line in results.values()} == {"passed"}, json.dumps(results, indent=1)
    assert len(results) == 14
    assert code == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_fails_its_check_and_no_other(fault, conform):
    check, reason, changes = FAULTS[fault]
    text, values = CLASS, YAML
    for before, after in changes.items():
        if before.startswith(".yaml "):
            before = before.removeprefix(".yaml ")
            assert before in values
            values = values.replace(before, after)
        else:
            assert before in text
            text = text.replace(before, after)
    code, results = conform(text, values)
    failed = [name for name, line in results.items() if line["state"] == "failed"]
    assert failed == [check], json.dumps(results, indent=1)
    assert re.search(reason, results[check]["reason"])
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
ATTACKS = {
    "": ("", "", ""),
    "twice the size": ("attack", "no input moves by more than ε: largest excess 0.", "x + eps", "x + 2 * eps"),
    "out of bounds": ("attack", "attacked inputs stay in bounds", "victim.clip(x", "(x"),
    "inputs in place": ("attack", r"changes its inputs \(x\) in place", "(x + eps * signs)", "(x.add_(eps * signs))"),
    "labels in place": ("attack", r"changes its inputs \(y\) in place", "signs =", "y.zero_()\n        signs ="),
}  # fmt: skip


@pytest.mark.parametrize("fault", ATTACKS)
def test_a_wrong_attack_fails_its_check(fault, conform):
    check, reason, *change = ATTACKS[fault]
    yaml = "name: noise\neps: [0.0, 0.1] # sizes ε, at least 0\n"
    text = ATTACK.replace(*change) if fault else ATTACK
    code, results = conform(text, yaml, name="noise", role="attacker")
    failed = {name: line["reason"] for name, line in results.items() if line["state"] == "failed"}
    assert (code, list(failed)) == ((1, [check]) if fault else (0, [])), failed
    assert not fault or re.search(reason, failed[check])


@pytest.mark.parametrize("mistake", ["", "barker: no Hastings correction"])
def test_a_wrong_sampler_fails_its_test_and_its_run(mistake, conform, tmp_path):
    text = BARKER.replace(*BROKEN[mistake][2:]) if mistake else BARKER
    yaml = "name: barker\nchains: 20 # parallel chains, at least 1\nscale: 1.0 # of a proposal, above 0\n"
    code, results = conform(text, yaml, name="barker")
    assert code == bool(mistake), results
    assert results["stationarity"]["state"] == ("failed" if mistake else "passed")
    words = ["--config-dir=conf", "dataset=gaussian", "model=target_density", "inference=barker", "steps=2000",
             "plugins=[barker]", "tracking=false", "figures=false", f"output_dir={tmp_path / 'outputs'}"]  # fmt: skip
    checks = run(None, *words).checks
    assert checks.check[~checks.passed.astype(bool)].tolist() == (
        ["moments agree with the exact ones"] if mistake else []
    )


def test_partners_can_be_named(conform):
    _, results = conform(CLASS, YAML, "dataset=banana")
    assert results["partners"]["reason"] == "banana-target_density-walk"


def test_a_partner_that_does_not_exist_is_named(conform):
    code, results = conform(CLASS, YAML, "dataset=bananas")
    assert results["partners"]["reason"].startswith(
        "dataset=bananas: no such dataset, did you mean banana?"
    )
    assert results["steps"] | {"reason": ""} == {
        "component": "inference=walk", "check": "steps", "state": "not checked", "reason": ""
    }  # fmt: skip
    assert code == 1


def test_a_module_without_components_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "no_components_here.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert _answer(["test", "no_components_here"]) == 2
    assert "registers no component; decorate a class" in capsys.readouterr().err


def test_a_key_without_a_default_is_given_on_the_command_line(conform):
    values = YAML.replace("scale: 0.5", "scale: ???")
    code, results = conform(CLASS, values, "inference.scale=0.7")
    assert code == 0, json.dumps(results, indent=1)
    assert results["refusals"]["reason"] == "not tried: scale has no default"
