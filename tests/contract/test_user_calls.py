"""Methods of users' components that are wrong in one way: one line that names file and line, for
every role."""

from __future__ import annotations

import os
import random
import signal

import numpy as np
import pytest
import torch
from contract.user_components import Attack, Data, Dirt, Method, Net, Part, Player, Slope, State

from components.contracts.games import Turn
from components.contracts.plugins.calls import watch_class
from components.contracts.sequences import Clean
from components.errors import ConfigMismatchError, NumericalError
from runner.execution.signals import capture_signals

HERE = r"\(user_components.py, line \d+\)"


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
        with pytest.raises(
            ConfigMismatchError, match=rf"^inference=mine: {said}.*user_\w+.py, line "
        ):
            made("inference", Method, does=does, returns=(ONE, {})).step(ONE, None, None)


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
