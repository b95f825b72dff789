"""The optimizers equal torch's bit for bit at every step, and their checkpoint dicts have torch's
format."""

import subprocess
import sys

import pytest
import torch
from support.runs.configured import F64, generator
from torch import nn

from components.maths.optimizers import SGD, Adadelta, AdaGrad, Adam

PAIRS = {
    "adam": (
        lambda p: Adam(p, 0.01, (0.8, 0.95)),
        lambda p: torch.optim.Adam(p, 0.01, (0.8, 0.95), fused=True),
    ),
    "adagrad": (lambda p: AdaGrad(p, 0.1), lambda p: torch.optim.Adagrad(p, 0.1)),
    "adadelta": (lambda p: Adadelta(p, 1.0), lambda p: torch.optim.Adadelta(p, 1.0)),
    "momentum": (lambda p: SGD(p, 0.01, 0.9), lambda p: torch.optim.SGD(p, 0.01, 0.9, fused=True)),
    "gradient descent": (
        lambda p: SGD(p, 0.01, 0.0),
        lambda p: torch.optim.SGD(p, 0.01, fused=True),
    ),
}


def parameters(dtype):
    g = generator(0)
    return [
        nn.Parameter(torch.randn(shape, generator=g, dtype=dtype)) for shape in ((3, 4), (7,), ())
    ]


def move(optimizer, parameters, steps):
    for t in steps:
        optimizer.zero_grad()
        # one has no gradient at some steps, which torch's fused momentum does not allow at first
        sum(
            (p**3 + p).sum() for i, p in enumerate(parameters) if i != 1 or t == 0 or t % 2
        ).backward()
        optimizer.step()


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("name", PAIRS)
def test_steps_and_states_equal_torch(name, dtype):
    ours, theirs = (parameters(dtype) for _ in range(2))
    optimizer, other = (
        make(start) for make, start in zip(PAIRS[name], (ours, theirs), strict=True)
    )
    move(optimizer, ours, range(20))
    move(other, theirs, range(20))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    kept = optimizer.state_dict()["state"]
    expected = other.state_dict()["state"]
    assert kept.keys() == expected.keys()
    for i, memory in kept.items():
        assert all(torch.equal(value, expected[i][key]) for key, value in memory.items())
        assert all(key in memory for key, value in expected[i].items() if value is not None)


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("name", PAIRS)
def test_state_of_a_torch_optimizer_is_accepted(name, dtype):
    ours, theirs = (parameters(dtype) for _ in range(2))
    other = PAIRS[name][1](theirs)
    move(other, theirs, range(9))
    with torch.no_grad():
        for a, b in zip(ours, theirs, strict=True):
            a.copy_(b)
    optimizer = PAIRS[name][0](ours)
    optimizer.load_state_dict(other.state_dict())
    move(other, theirs, range(9, 20))
    move(optimizer, ours, range(9, 20))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_compiler_is_not_imported():
    text = (
        "import sys, torch; from components.maths.optimizers import SGD, Adadelta, AdaGrad, Adam\n"
        "p = torch.nn.Parameter(torch.zeros(3))\n"
        "for o in Adam([p], 0.1), AdaGrad([p], 0.1), Adadelta([p], 1.0), SGD([p], 0.1, 0.9):\n"
        "    p.sum().backward(); o.step()\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
