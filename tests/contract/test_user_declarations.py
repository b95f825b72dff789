"""Declarations and modules of users with one mistake: the error is one line that names file and
line."""

from __future__ import annotations

import sys
from typing import ClassVar

import pytest
from contract.user_components import Attack, Data, Method, Net, Slope

from components import registry
from components.contracts.attackers import Evasion
from components.contracts.opponents import Opponent
from components.contracts.plugins.declared import check_declared
from components.contracts.requirements import Requirements
from components.contracts.roles import Dataset, Gradient, Inference, Model
from components.errors import ConfigMismatchError
from runner.catalogue.plugins import import_plugins
from runner.compose.check import build_component
from runner.compose.expand import expand_component
from runner.errors import ConfigError

DECLARED = [
    # class of a user, its declarations, and the error
    (
        Method,
        {"requires": Requirements(capabilities={"log_jont"})},
        "requires.capabilities: unknown word 'log_jont'; import LogJoint from components",
    ),
    (
        Method,
        {"provides": {"holds_drws"}},
        "provides: unknown word 'holds_drws'; import HoldsDraws from components",
    ),
    (
        Method,
        {"requires": Requirements(batch_kind="minibach")},
        "requires.batch_kind: unknown word 'minibach'; did you mean minibatch?",
    ),
    (
        Method,
        {"requires": Requirements(capabilities_by_kind={"games": set()})},
        "requires.capabilities_by_kind: unknown word 'games'; did",
    ),
    (
        Method,
        {"requires": Requirements(capabilities_by_kind={"game": {"q"}})},
        r"requires.capabilities_by_kind\['game'\]: unknown word 'q'",
    ),
    (
        Method,
        {"requires": Requirements(kinds="density")},
        "requires.kinds is a str, but must be a set",
    ),
    (Net, {"offers": {"elbow"}}, "offers: unknown word 'elbow'; import Elbo from components"),
    (
        Net,
        {"requires": Requirements(targets={"reals"})},
        "requires.targets: unknown word 'reals'; did you mean real?",
    ),
    (
        Net,
        {"build": lambda self, problem, rng: None, "offers": Model.__dict__["offers"]},
        "Mine has no offers; annotate the return type of build, or declare offers",
    ),
    (Data, {"kind": "densities"}, "kind: unknown word 'densities'; did you mean density?"),
    (
        Slope,
        {"requires": Requirements(capabilities={"elbw"})},
        "requires.capabilities: unknown word 'elbw'; import Elbo from components",
    ),
    (Attack, {"knowledge": "grey"}, "knowledge: unknown word 'grey'; did you mean grey box?"),
    (Inference, {}, r"Mine has no init; write init\(self, model, problem, rng\) -> State"),
    (Dataset, {}, r"Mine has no load; write load\(self, rng, setting\) -> Problem"),
    (Model, {}, r"Mine has no build; write build\(self, problem, rng\)"),
    (Evasion, {}, r"Mine has no perturb; write perturb\(self, victim, x, y, rng, eps\)"),
    (Opponent, {}, r"Mine has no reset; write reset\(self, seat, rng\)"),
    (Gradient, {}, r"Mine has no init; write init\(self, module, rng\)"),
]


@pytest.mark.parametrize(("base", "declared", "message"), DECLARED)
def test_wrong_declaration_raises_one_line(base, declared, message):
    annotations = dict.fromkeys(declared, ClassVar)
    body = {"__module__": __name__, "__annotations__": annotations, **declared}
    with pytest.raises(ConfigMismatchError, match=rf"^role=mine \(.*\): {message}"):
        check_declared("role", "mine", type(base)("Mine", (base,), body))


def test_class_without_base_raises_one_line():
    with pytest.raises(ConfigMismatchError, match=r": int .* base class .* model requires"):
        check_declared("model", "mine", int)


@pytest.fixture
def register_plugin(tmp_path, monkeypatch):
    """Register a plug-in ``mine_to_be_wrong`` from source text; remove it from the registry
    afterwards."""

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    yield (tmp_path / "mine_to_be_wrong.py").write_text
    sys.modules.pop("mine_to_be_wrong", None)


HEAD = (
    "from components.contracts.roles import Inference\nfrom components.registry import register\n"
    '@register("inference", "wrong_one")\n'
)


def test_plugin_with_unknown_yaml_keys_is_refused(register_plugin, monkeypatch):
    register_plugin(HEAD + "class Mine(Inference):\n    lr: float\n    steps: int\n")
    import_plugins(["mine_to_be_wrong"])
    with pytest.raises(
        ConfigError, match=r"inference=wrong_one \(mine_to_be_wrong.py, line 3\): .* init"
    ):
        build_component("inference", {"name": "wrong_one", "lr": 0.1}, "inference")
    monkeypatch.setattr("runner.compose.check.check_declared", lambda *_: None)
    with pytest.raises(
        ConfigError,
        match=r"inference.steps: missing; .* \(class Mine: mine_to_be_wrong.py, line 3",
    ):
        build_component("inference", {"name": "wrong_one", "lr": 0.1}, "inference")
    with pytest.raises(
        ConfigError,
        match=r"inference.lrr: unknown key, did you mean lr\? \(class Mine: .* its YAML and its class",
    ):
        build_component("inference", {"name": "wrong_one", "lr": 0.1, "lrr": 2}, "inference")


@pytest.mark.parametrize("source", ["import sys\nsys.exit(0)\n", "raise SystemExit\n"])
def test_module_that_exits_raises_one_line(register_plugin, source):
    register_plugin(source)
    with pytest.raises(
        ConfigError,
        match=r"plugins: mine_to_be_wrong: SystemExit.*\(mine_to_be_wrong.py, line \d\)",
    ):
        import_plugins(["mine_to_be_wrong"])


def test_plugin_without_base_raises_one_line(register_plugin):
    register_plugin(HEAD + "class Mine:\n    pass\n")
    import_plugins(["mine_to_be_wrong"])
    with pytest.raises(
        ConfigError,
        match=r"inference=wrong_one: mine_to_be_wrong.Mine must derive from Inference",
    ):
        expand_component("inference", {"name": "wrong_one"}, "inference")
