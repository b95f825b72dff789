"""Methods of users' components with one mistake: the error has one line that names file and line,
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
    """A component of the watched class; fields of type Any are set without the strict types."""
    return watch_class(role, cls).model_construct(name="mine", **keys)


X = torch.zeros(3, 2)
Y = Clean(torch.zeros(1, 4, 1))
ONE = State(X)
OTHER = Turn(torch.zeros(5, 1), 0, None)


STEP = r"must return \(state, info\): a state with the class and dtypes of the given one"


@pytest.mark.parametrize(
    ("component", "method", "given", "returned", "said"),
    [
        (Data, "load", (None, None), {}, "load returns a dict but must return a problem of the kind that the class declares"),
        (Net, "build", (None, None), None, "build returns an object but must return an object with the capabilities in offers"),
        (Method, "init", (None, None, None), {"x": X}, "init returns a dict but must return the state, a dataclass"),
        (Method, "init", (None, None, None), State, "init returns a type but must return the state, a dataclass"),
        (Method, "init", (None, None, None), None, "init returns nothing but must return the state, a dataclass"),
        (Method, "step", (ONE, None, None), ONE, f"step returns a State but {STEP}"),
        (Method, "step", (ONE, None, None), (ONE, {}, 1), rf"step returns \(a State, a dict, an int\) but {STEP}"),
        (Method, "step", (ONE, None, None), ({}, {}), rf"step returns \(a dict, a dict\) but {STEP}"),
        (Method, "step", (ONE, None, None), (Turn, {}), rf"step returns \(a type, a dict\) but {STEP}"),
        (Method, "step", (ONE, None, None), (ONE, 3), rf"step returns \(a State, an int\) but {STEP}"),
        (Method, "step", (ONE, None, None), (ONE, {1: 2}), rf"step returns \(a State, a dict\) but {STEP}"),
        (Method, "step", (ONE, None, None), (ONE, {"a": "b"}), rf"step returns \(a State, a dict\) but {STEP}"),
        (Method, "step", (ONE, None, None), (State(X.half()), {}), rf"step returns \(a State, a dict\) but {STEP}"),
        (Method, "posterior", (ONE,), X, r"posterior returns torch.\w+ \[3, 2\] but must return a posterior with"),
        (Attack, "perturb", (None, X, X, None, 0.1), X.numpy(), "perturb returns a ndarray but must return a tensor"),
        (Attack, "perturb", (None, X, X, None, 0.1), X[:1], r"perturb returns torch.float32 \[1, 2\] but must return a tensor"),
        (Attack, "perturb", (None, X, X, None, 0.1), X.double(), r"returns torch.float64 \[3, 2\] but must return a tensor"),
        (Attack, "perturb", (None, X, X, None, 0.1), X / 0, r"perturb returns torch.float32 \[3, 2\] but must return a tensor"),
        (Dirt, "corrupt", (Y, None), None, "corrupt returns nothing but must return a tensor with the shape"),
        (Player, "act", (None, OTHER, None), 1, "act returns an int but must return an action number"),
        (Player, "act", (None, OTHER, None), torch.zeros(3), r"returns torch.float32 \[3\] but must return an action number"),
        (Player, "act", (None, OTHER, None), torch.zeros(5), r"returns torch.float32 \[5\] but must return an action number"),
        (Player, "act", (None, OTHER, None), torch.zeros(5).long() - 1, r"returns torch.int64 \[5\] but must .* torch.long"),
        (Slope, "estimate", (None, None, None, None), [], r"returns a list but must return \(gradients, terms, state\)"),
        (Slope, "estimate", (None, None, None, None), (X, {}, 1), r"estimate returns \(torch.float32 .*, a dict, an int\)"),
        (Slope, "estimate", (None, None, None, None), ([X], X, 1), r"estimate returns \(a list, torch.float32 .*, an int\)"),
        (Part, "terms", (None,), None, "terms returns a list but must return Terms"),
    ],
)  # fmt: skip
def test_a_wrong_return_is_one_line(component, method, given, returned, said):
    part = make_watched("role", component, returns=returned)
    with pytest.raises(ConfigMismatchError, match=rf"^role=mine: .*{said}.*{HERE}") as error:
        getattr(part, method)(*given)
    assert "\n" not in str(error.value)


def test_what_is_right_passes():
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


def raises(error):
    def fail():
        raise error

    return fail


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (raises(KeyError("a")), "step: KeyError: 'a'"),
        (raises(SystemExit(0)), r"step: SystemExit: the code exits the process \(0\)"),
        (raises(GeneratorExit()), "step: GeneratorExit"),
        (
            lambda: torch.rand(1),
            "step draws from PyTorch's global stream or seeds it; pass a generator of rng",
        ),
        (lambda: torch.manual_seed(3), "step draws from PyTorch's global stream or seeds it"),
        (lambda: np.random.rand(), "step draws from NumPy's global stream"),
        (random.random, "step draws from Python's global stream"),
    ],
)
def test_what_a_step_does_wrong_is_one_line(does, said):
    with torch.random.fork_rng([]):
        # an earlier test may have left the stream in the state that the step would set
        torch.manual_seed(0)
        with pytest.raises(
            ConfigMismatchError, match=rf"^inference=mine: {said}.*user_\w+.py, line "
        ):
            make_watched("inference", Method, does=does, returns=(ONE, {})).step(ONE, None, None)


def test_a_keyboard_interrupt_passes():
    step = make_watched(
        "inference", Method, does=raises(KeyboardInterrupt()), returns=(ONE, {})
    ).step
    with pytest.raises(KeyboardInterrupt):
        step(ONE, None, None)


def test_draws_inside_a_fork_are_a_components_own_and_our_errors_stay_what_they_are():
    def draw():
        with torch.random.fork_rng([]):
            torch.manual_seed(1)
            torch.rand(1)

    make_watched("inference", Method, does=draw, returns=(ONE, {})).step(ONE, None, None)
    with pytest.raises(NumericalError):
        make_watched("inference", Method, does=raises(NumericalError("a", "b"))).step(
            ONE, None, None
        )
    with pytest.raises(ConfigMismatchError, match=r"^as it says$"):
        make_watched("inference", Method, does=raises(ConfigMismatchError("as it says"))).step(
            ONE, None, None
        )
