"""Components of users that are wrong in one way: one line that names their file and line, for every
role."""

from __future__ import annotations

import os
import random
import signal
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from components.contracts.attackers import Contamination, Evasion
from components.contracts.games import Turn
from components.contracts.opponents import Opponent
from components.contracts.plugins.calls import watch_class
from components.contracts.plugins.declared import check_declared
from components.contracts.requirements import Requirements
from components.contracts.roles import Block, Dataset, Gradient, Inference, Model
from components.contracts.sequences import Clean
from components.errors import ConfigMismatchError, NumericalError
from runner.catalogue.plugins import import_plugins
from runner.compose.build import build_component
from runner.compose.resolve import refuse_unknown_defaults
from runner.errors import ConfigError
from runner.execution.signals import capture_signals

HERE = r"\(test_user_components.py, line \d+\)"


@dataclass
class State:
    x: Tensor


class Method(Inference):
    requires = Requirements(kinds=frozenset({"density"}), capabilities=frozenset({"log_joint"}))
    provides: ClassVar[frozenset[str]] = frozenset({"holds_draws"})
    returns: object = None
    does: object = None

    def init(self, model, problem, rng):
        return self.returns

    def step(self, state, batch, rng):
        if callable(self.does):
            self.does()
        return self.returns

    def posterior(self, state):
        return self.returns


class Data(Dataset):
    kind: ClassVar[str] = "density"
    returns: object = None

    def load(self, rng, setting):
        return self.returns


class Net(Model):
    requires = Requirements(kinds=frozenset({"density"}))
    offers: ClassVar[frozenset[str]] = frozenset({"log_joint"})

    def build(self, problem, rng):
        return object()


class Attack(Evasion):
    returns: object = None

    def perturb(self, victim, x, y, rng, eps):
        return self.returns


class Dirt(Contamination):
    returns: object = None

    def corrupt(self, clean, rng):
        return self.returns


class Player(Opponent):
    returns: object = None

    def reset(self, seat, rng):
        return None

    def act(self, state, turn, rng):
        return self.returns

    def observe(self, state, move):
        return state


class Slope(Gradient):
    requires = Requirements(capabilities=frozenset({"elbo"}))
    unbiased: ClassVar[bool] = True
    returns: object = None

    def init(self, module, rng):
        return None

    def estimate(self, module, batch, rng, state):
        return self.returns


class Part(Block):
    def terms(self, facts):
        return []


def made(role: str, cls: type, **keys):
    """A component of the watched class; fields that hold anything are set past the strict types."""
    return watch_class(role, cls).model_construct(name="mine", **keys)


X, Y = torch.zeros(3, 2), Clean(torch.zeros(1, 4, 1))
ONE, OTHER = State(X), Turn(torch.zeros(5, 1), 0, None)


@pytest.mark.parametrize(
    ("component", "method", "given", "returned", "said"),
    [
        (Data, "load", (None, None), {}, "load returns a dict, which is no problem: it lacks kind, name, replicates, length"),
        (Net, "build", (None, None), None, "build returns an object without log_joint, which offers names"),
        (Method, "init", (None, None, None), {"x": X}, "init returns a dict, must return the state, a dataclass"),
        (Method, "init", (None, None, None), State, "init returns a type, must return the state, a dataclass"),
        (Method, "init", (None, None, None), None, "init returns nothing, must return the state, a dataclass"),
        (Method, "step", (ONE, None, None), ONE, r"step returns a State, must return \(state, info\)"),
        (Method, "step", (ONE, None, None), (ONE, {}, 1), r"step returns a tuple of 3, must return \(state, info\)"),
        (Method, "step", (ONE, None, None), ({}, {}), "step returns a dict, must return the state, a dataclass, and info"),
        (Method, "step", (ONE, None, None), (Turn, {}), "step returns a type, must return the state"),
        (Method, "step", (ONE, None, None), (ONE, 3), "step returns an int for info, must return a dictionary"),
        (Method, "step", (ONE, None, None), (ONE, {1: 2}), "step returns a dict for info, must return a dictionary"),
        (Method, "step", (ONE, None, None), (ONE, {"a": "b"}), r"step returns info\['a'\] = a str, must be a number"),
        (Method, "posterior", (ONE,), X, "posterior returns a Tensor without holds_draws, which gives names"),
        (Attack, "perturb", (None, X, X, None, 0.1), X.numpy(), "perturb returns a ndarray, must return a tensor like x"),
        (Attack, "perturb", (None, X, X, None, 0.1), X[:1], r"perturb returns \[1, 2\], must return the shape of x, \[3, 2\]"),
        (Attack, "perturb", (None, X, X, None, 0.1), X.double(), "perturb returns torch.float64, must return torch.float32"),
        (Attack, "perturb", (None, X, X, None, 0.1), X / 0, "perturb returns numbers that are not finite"),
        (Dirt, "corrupt", (Y, None), None, "corrupt returns nothing, must return a tensor like the observations"),
        (Player, "act", (None, OTHER, None), 1, "act returns an int, must return a tensor of numbers of actions"),
        (Player, "act", (None, OTHER, None), torch.zeros(3), r"act returns \[3\], must return an action for each .* \[5\]"),
        (Player, "act", (None, OTHER, None), torch.zeros(5), "act returns torch.float32, must return numbers of actions"),
        (Player, "act", (None, OTHER, None), torch.zeros(5).long() - 1, "act returns an action below 0"),
        (Slope, "estimate", (None, None, None, None), [], r"estimate returns a list, must return \(gradients, terms, state\)"),
        (Slope, "estimate", (None, None, None, None), (X, {}, 1), "estimate returns a Tensor for gradients, must return a"),
        (Slope, "estimate", (None, None, None, None), ([X], X, 1), "estimate returns a Tensor for terms, must return a dict"),
        (Part, "terms", (None,), None, "terms returns a list, must return Terms"),
    ],
)  # fmt: skip
def test_a_wrong_return_is_one_line(component, method, given, returned, said):
    part = made("role", component, returns=returned)
    with pytest.raises(ConfigMismatchError, match=rf"^role=mine: {said}.*{HERE}") as error:
        getattr(part, method)(*given)
    assert "\n" not in str(error.value)


def test_what_is_right_passes():
    assert made("inference", Method, returns=ONE).init(None, None, None) is ONE
    state, info = made(
        "inference", Method, returns=(ONE, {"a": np.float32(1), "b": X, "c": 2})
    ).step(ONE, None, None)
    assert state is ONE
    assert set(info) == {"a", "b", "c"}
    assert made("attacker", Attack, returns=X + 1).perturb(None, X, X, None, 0.1).sum() == 6
    assert (
        made("attacker", Player, returns=torch.ones(5).long()).act(None, OTHER, None).tolist()
        == [1] * 5
    )


def raises(error):
    def fail():
        raise error

    return fail


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (raises(KeyError("a")), "step: KeyError: 'a'"),
        (raises(SystemExit(0)), r"step: SystemExit: it ends the process \(0\)"),
        (lambda: os._exit(0), r"step: SystemExit: it ends the process \(os._exit\(0\)\)"),
        (lambda: os.abort(), r"step: SystemExit: it ends the process \(os.abort\(\)\)"),
        (
            lambda: os.execv("/bin/true", ["true"]),
            r"step: SystemExit: it ends the process \(os.execv\(",
        ),
        (
            lambda: os.execlp("true", "true"),
            r"step: SystemExit: it ends the process \(os.execve?\(",
        ),
        (
            lambda: os.kill(os.getpid(), signal.SIGKILL),
            r"step: SystemExit: it ends the process \(os.kill\(",
        ),
        (raises(GeneratorExit()), "step: GeneratorExit"),
        (
            lambda: torch.rand(1),
            "step draws from PyTorch's global stream, or seeds it; give a generator of rng",
        ),
        (lambda: torch.manual_seed(3), "step draws from PyTorch's global stream, or seeds it"),
        (lambda: np.random.rand(), "step draws from NumPy's global stream"),
        (random.random, "step draws from Python's global stream"),
    ],
)
def test_what_a_step_does_wrong_is_one_line(does, said):
    with torch.random.fork_rng([]):
        torch.manual_seed(0)  # a test before may have left the stream where the step would seed it
        with pytest.raises(ConfigMismatchError, match=f"^inference=mine: {said}.*line ") as error:
            made("inference", Method, does=does, returns=(ONE, {})).step(ONE, None, None)
    assert "test_user_components.py, line" in str(error.value)


def test_a_state_of_another_precision_is_refused():
    half = (State(ONE.x.half()), {})
    with pytest.raises(
        ConfigMismatchError,
        match=r"step returns state.x as torch.float16, it was given torch.float(32|64); keep",
    ):
        made("inference", Method, returns=half).step(ONE, None, None)


def test_a_keyboard_interrupt_of_the_users_own_is_an_error_where_signals_are_noted():
    step = made("inference", Method, does=raises(KeyboardInterrupt()), returns=(ONE, {})).step
    with (
        capture_signals(),
        pytest.raises(ConfigMismatchError, match=r"^inference=mine: step: KeyboardInterrupt"),
    ):
        step(ONE, None, None)
    with pytest.raises(KeyboardInterrupt):
        step(ONE, None, None)
    twice = made(
        "inference",
        Method,
        does=lambda: [os.kill(os.getpid(), signal.SIGINT) for _ in "ab"],
        returns=(ONE, {}),
    )
    with capture_signals(), pytest.raises(KeyboardInterrupt):
        twice.step(ONE, None, None)


def test_draws_inside_a_fork_are_a_components_own_and_our_errors_stay_what_they_are():
    def draw():
        with torch.random.fork_rng([]):
            torch.manual_seed(1)
            torch.rand(1)

    made("inference", Method, does=draw, returns=(ONE, {})).step(ONE, None, None)
    with pytest.raises(NumericalError):
        made("inference", Method, does=raises(NumericalError("a", "b"))).step(ONE, None, None)
    with pytest.raises(ConfigMismatchError, match=r"^as it says$"):
        made("inference", Method, does=raises(ConfigMismatchError("as it says"))).step(
            ONE, None, None
        )


def variant(base: type, **declared) -> type:
    return type(base)(
        "Mine",
        (base,),
        {"__module__": __name__, "__annotations__": dict.fromkeys(declared, ClassVar), **declared},
    )


@pytest.mark.parametrize(
    ("role", "cls", "said"),
    [
        (
            "inference",
            variant(Method, requires=Requirements(capabilities=frozenset({"log_jont"}))),
            "requires.capabilities: unknown word 'log_jont'; did you mean log_",
        ),
        (
            "inference",
            variant(Method, provides=frozenset({"holds_drws"})),
            "provides: unknown word 'holds_drws'; did you mean hold",
        ),
        (
            "inference",
            variant(Method, requires=Requirements(batch_kind="minibach")),
            "requires.batch_kind: unknown word 'minibach'; did you mean minibatch?",
        ),
        (
            "inference",
            variant(Method, requires=Requirements(capabilities_by_kind={"games": frozenset()})),
            "requires.capabilities_by_kind: unknown word 'games'; did",
        ),
        (
            "inference",
            variant(Method, requires=Requirements(capabilities_by_kind={"game": frozenset({"q"})})),
            r"requires.capabilities_by_kind\['game'\]: unknown word 'q'",
        ),
        (
            "inference",
            variant(Method, requires=Requirements(kinds="density")),
            "requires.kinds is a str, must be a set of words",
        ),
        (
            "model",
            variant(Net, offers=frozenset({"elbow"})),
            "offers: unknown word 'elbow'; did you mean elbo?",
        ),
        (
            "model",
            variant(Net, requires=Requirements(targets=frozenset({"reals"}))),
            "requires.targets: unknown word 'reals'; did you mean real?",
        ),
        (
            "dataset",
            variant(Data, kind="densities"),
            "kind: unknown word 'densities'; did you mean density?",
        ),
        (
            "gradient",
            variant(Slope, requires=Requirements(capabilities=frozenset({"elbw"}))),
            "requires.capabilities: unknown word 'elbw'; did you mean elbo?",
        ),
        (
            "attacker",
            variant(Attack, knowledge="grey"),
            "knowledge: unknown word 'grey'; did you mean grey box?",
        ),
        (
            "inference",
            variant(Inference),
            r"Mine has no init; write init\(self, model, problem, rng\) -> State",
        ),
        (
            "dataset",
            variant(Dataset),
            r"Mine has no load; write load\(self, rng, setting\) -> Problem",
        ),
        ("model", variant(Model), r"Mine has no build; write build\(self, problem, rng\)"),
        (
            "attacker",
            variant(Evasion),
            r"Mine has no perturb; write perturb\(self, victim, x, y, rng, eps\)",
        ),
        ("attacker", variant(Opponent), r"Mine has no reset; write reset\(self, seat, rng\)"),
        ("gradient", variant(Gradient), r"Mine has no init; write init\(self, module, rng\)"),
        ("model", int, "int derives from no base of components.contracts; a model must"),
    ],
)
def test_a_wrong_declaration_is_one_line(role, cls, said):
    with pytest.raises(ConfigMismatchError, match=rf"^{role}=mine \(.*\): {said}"):
        check_declared(role, "mine", cls)


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """A plug-in ``mine_to_be_wrong`` of a text, with its YAML; it leaves the registry again."""
    from components import registry

    def write(text: str, yaml: str = "name: wrong_one\nlr: 0.1\n"):
        (tmp_path / "mine_to_be_wrong.py").write_text(text)
        (tmp_path / "wrong_one.yaml").write_text(yaml)
        return tmp_path / "wrong_one.yaml"

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    yield write
    __import__("sys").modules.pop("mine_to_be_wrong", None)


HEAD = (
    "from components.contracts.roles import Inference\nfrom components.registry import register\n"
    '@register("inference", "wrong_one")\n'
)


def test_a_plug_in_that_is_no_component_or_has_other_keys_than_its_yaml(registered, monkeypatch):
    yaml = registered(
        HEAD + "class Mine(Inference):\n    lr: float\n    steps: int\n",
        "name: wrong_one\nlr: 0.1\nlrr: 2\n",
    )
    import_plugins(["mine_to_be_wrong"])
    with pytest.raises(
        ConfigError, match=r"inference=wrong_one \(mine_to_be_wrong.py, line 3\): Mine has no init"
    ):
        build_component("inference", {"name": "wrong_one", "lr": 0.1}, "inference")
    monkeypatch.setattr("runner.compose.build.check_declared", lambda *_: None)
    with pytest.raises(
        ConfigError,
        match=r"inference.steps: missing; .* \(class Mine: mine_to_be_wrong.py, line 3; add it",
    ):
        build_component("inference", {"name": "wrong_one", "lr": 0.1}, "inference")
    monkeypatch.setattr("runner.disk.conf_folders.find", lambda *_: yaml)
    with pytest.raises(
        ConfigError,
        match=r"wrong_one.yaml: lrr: unknown key of inference=wrong_one, did you mean lr\?",
    ):
        refuse_unknown_defaults("inference", "wrong_one", ["lrr"], {"lr", "name"})


@pytest.mark.parametrize(
    "leaves", ["import sys\nsys.exit(0)\n", "import os\nos._exit(0)\n", "raise SystemExit\n"]
)
def test_a_module_that_ends_the_process_is_one_line(registered, leaves):
    registered(leaves)
    with pytest.raises(ConfigError, match=r"plugins: .*mine_to_be_wrong.py, line \d: SystemExit"):
        import_plugins(["mine_to_be_wrong"])
    assert os._exit.__module__ == "posix"


def test_a_plug_in_without_a_base_is_one_line(registered):
    registered(HEAD + "class Mine:\n    pass\n")
    import_plugins(["mine_to_be_wrong"])
    with pytest.raises(
        ConfigError,
        match=r"inference=wrong_one: mine_to_be_wrong.Mine derives from none of Inference",
    ):
        build_component("inference", {"name": "wrong_one"}, "inference")
