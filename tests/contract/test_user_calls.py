"""Methods of users' components with one mistake: the error is one line that names file and line,
for every role."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from contract.user_components import Attack, Data, Dirt, Method, Net, Part, Player, Slope, State

from components.contracts.games import Turn
from components.contracts.plugins.calls import watch_class
from components.contracts.sequences import Clean
from components.errors import ConfigMismatchError, NumericalError

HERE = r"\(user_components.py, line \d+\)"


def make_watched(role: str, cls: type, **keys):
    """Component of the watched class; fields of type Any are set without validation."""
    return watch_class(role, cls).model_construct(name="mine", **keys)


X = torch.zeros(3, 2)
Y = Clean(torch.zeros(1, 4, 1))
ONE = State(X)
OTHER = Turn(torch.zeros(5, 1), 0, None)


STEP = r"must return \(state, info\): a state with the class and dtypes of the given one"


ARGUMENTS = {
    "load": (None, None),
    "build": (None, None),
    "init": (None, None, None),
    "step": (ONE, None, None),
    "posterior": (ONE,),
    "perturb": (None, X, X, None, 0.1),
    "corrupt": (Y, None),
    "act": (None, OTHER, None),
    "estimate": (None, None, None, None),
    "terms": (None,),
}


@pytest.mark.parametrize(
    ("component", "method", "returned", "message"),
    [
        (Data, "load", {}, "load returns a dict but must return a problem"),
        (
            Net,
            "build",
            None,
            "build returns an object but must .* capabilities",
        ),
        (Method, "init", {"x": X}, "init returns a dict but must return the state"),
        (Method, "init", State, "init returns a type but must return the state"),
        (Method, "init", None, "init returns nothing but must return the state"),
        (Method, "step", ONE, f"step returns a State but {STEP}"),
        (Method, "step", (ONE, {}, 1), rf"step returns \(a State, a dict, an int\) but {STEP}"),
        (Method, "step", ({}, {}), rf"step returns \(a dict, a dict\) but {STEP}"),
        (Method, "step", (Turn, {}), rf"step returns \(a type, a dict\) but {STEP}"),
        (Method, "step", (ONE, 3), rf"step returns \(a State, an int\) but {STEP}"),
        (Method, "step", (ONE, {1: 2}), rf"step returns \(a State, a dict\) but {STEP}"),
        (Method, "step", (ONE, {"a": "b"}), rf"step returns \(a State, a dict\) but {STEP}"),
        (Method, "step", (State(X.half()), {}), rf"step returns \(a State, a dict\) but {STEP}"),
        (
            Method,
            "posterior",
            X,
            r"posterior returns torch.\w+ \[3, 2\] but must",
        ),
        (Attack, "perturb", X.numpy(), "perturb returns a ndarray but must return a tensor"),
        (
            Attack,
            "perturb",
            X[:1],
            r"perturb returns torch.float32 \[1, 2\] but must",
        ),
        (Attack, "perturb", X.double(), r"returns torch.float64 \[3, 2\] but must return a tensor"),
        (
            Attack,
            "perturb",
            X / 0,
            r"perturb returns torch.float32 \[3, 2\] but must",
        ),
        (Dirt, "corrupt", None, "corrupt returns nothing but must return a tensor with the shape"),
        (Player, "act", 1, "act returns an int but must return an action"),
        (Player, "act", torch.zeros(3), r"returns torch.float32 \[3\] but must return an action"),
        (Player, "act", torch.zeros(5), r"returns torch.float32 \[5\] but must return an action"),
        (
            Player,
            "act",
            torch.zeros(5).long() - 1,
            r"returns torch.int64 \[5\] but must .* torch.long",
        ),
        (Slope, "estimate", [], r"returns a list but must return \(gradients, terms, state\)"),
        (Slope, "estimate", (X, {}, 1), r"estimate returns \(torch.float32 .*, a dict, an int\)"),
        (Slope, "estimate", ([X], X, 1), r"estimate returns \(a list, torch.float32 .*, an int\)"),
        (Part, "terms", None, "terms returns a list but must return Terms"),
    ],
)
def test_wrong_return_raises_one_line(component, method, returned, message):
    part = make_watched("role", component, returns=returned)
    with pytest.raises(ConfigMismatchError, match=rf"^role=mine: .*{message}.*{HERE}") as error:
        getattr(part, method)(*ARGUMENTS[method])
    assert "\n" not in str(error.value)


def test_correct_returns_pass():
    assert make_watched("inference", Method, returns=ONE).init(None, None, None) is ONE
    state, info = make_watched(
        "inference", Method, returns=(ONE, {"a": np.float32(1), "b": X, "c": 2})
    ).step(ONE, None, None)
    assert state is ONE
    assert set(info) == {"a", "b", "c"}
    assert make_watched("attacker", Attack, returns=X + 1).perturb(None, X, X, None, 0.1).sum() == 6
    assert (
        make_watched("attacker", Player, returns=torch.ones(5).long())
        .act(None, OTHER, None)
        .tolist()
        == [1] * 5
    )


def make_raising(error):
    def fail():
        raise error

    return fail


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (make_raising(KeyError("a")), "step: KeyError: 'a'"),
        (make_raising(SystemExit(0)), r"step: SystemExit: the code exits the process \(0\)"),
        (make_raising(GeneratorExit()), "step: GeneratorExit"),
        (
            lambda: torch.rand(1),
            "step draws from PyTorch's global stream .*; pass a generator",
        ),
        (lambda: torch.manual_seed(3), "step draws from PyTorch's global stream or seeds it"),
        (lambda: np.random.rand(), "step draws from NumPy's global stream"),
        (random.random, "step draws from Python's global stream"),
    ],
)
def test_step_errors_are_one_line(action, message):
    with torch.random.fork_rng([]):
        # an earlier test may have left the global stream in the state that the step would set
        torch.manual_seed(0)
        with pytest.raises(
            ConfigMismatchError, match=rf"^inference=mine: {message}.*user_\w+.py, line "
        ):
            make_watched("inference", Method, action=action, returns=(ONE, {})).step(
                ONE, None, None
            )


def test_keyboard_interrupt_passes_through():
    step = make_watched(
        "inference", Method, action=make_raising(KeyboardInterrupt()), returns=(ONE, {})
    ).step
    with pytest.raises(KeyboardInterrupt):
        step(ONE, None, None)


def test_forked_draws_and_own_errors_pass_through():
    def draw():
        with torch.random.fork_rng([]):
            torch.manual_seed(1)
            torch.rand(1)

    make_watched("inference", Method, action=draw, returns=(ONE, {})).step(ONE, None, None)
    with pytest.raises(NumericalError):
        make_watched("inference", Method, action=make_raising(NumericalError("a", "b"))).step(
            ONE, None, None
        )
    with pytest.raises(ConfigMismatchError, match=r"^as it says$"):
        make_watched(
            "inference", Method, action=make_raising(ConfigMismatchError("as it says"))
        ).step(ONE, None, None)
