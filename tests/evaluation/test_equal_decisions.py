"""Networks with equal decisions have equal curves: scaling the last layer changes no prediction and
no robust accuracy."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from support.runs.configured import component, double, load, threat

from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.evaluation.security.curves import security_curve
from runner.execution.rng import Streams

F32 = torch.float32
F64 = torch.float64
SIZES = {"linf": [0.05, 0.1], "l2": [0.4, 0.8], "l1": [1.5, 3.0]}
SCALES = [1.0, 10.0, 100.0, 1e4, 1e6]


class Scaled:
    """A network with one hidden layer and a last layer multiplied by c."""

    def __init__(self, weights, scale, dtype):
        self.w, self.a, self.v, self.b = (w.to(dtype) for w in weights)
        self.scale = scale

    def predict(self, x, g):
        return Categorical(
            self.scale * ((x @ self.w.T + self.a).relu() @ self.v.T + self.b)[None, :, None]
        )


@cache
def digits(n_test, steps=100, seed=0):
    """The digits, and a network with an accuracy of about 0.95."""
    problem, _ = load("digits", n_test=n_test)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = torch.nn.Sequential(
            torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)
        ).double()
        adam = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(steps):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(
                net(problem.train.x), problem.train.y[:, 0]
            ).backward()
            adam.step()
    return problem, [p.detach() for p in net.parameters()]


def curve(name, norm, scale, dtype, keys, n_test=200, steps=100):
    """Robust accuracies by ε, and the failed checks."""
    problem, weights = digits(n_test, steps)
    train, test = (
        Batch(b.x.to(dtype), b.y, b.mask, b.scale) for b in (problem.train, problem.test)
    )
    problem = replace(problem, train=train, test=test)
    attacker = component("attacker", name, **keys)
    actual = security_curve(
        problem, Scaled(weights, scale, dtype), attacker, threat(attacker, SIZES[norm]), Streams(0)
    )
    failed = [check.name for check in actual.checks if check.passed is False]
    return actual.rows["accuracy"].tolist(), failed


def check_equal(name, norm, scales, dtypes, keys, n_test=200):
    curves = {(c, t): curve(name, norm, c, t, keys, n_test) for c in scales for t in dtypes}
    accuracies = double([rows for rows, _ in curves.values()])
    spread = accuracies.amax(0) - accuracies.amin(0)
    assert spread.max() <= 0.01 + 1e-9, {key: rows for key, (rows, _) in curves.items()}
    assert not any(failed for _, failed in curves.values()), {
        key: failed for key, (_, failed) in curves.items()
    }


@pytest.mark.parametrize(
    ("name", "norm", "keys"),
    [
        ("fgsm", "l2", {"norm": "l2"}),
        ("bim", "linf", {"norm": "linf"}),
        ("pgd", "l1", {"norm": "l1", "steps": 10}),
        ("pgd", "l2", {"norm": "l2", "steps": 10, "criterion": "margin"}),
        ("deepfool", "l2", {"norm": "l2", "steps": 5}),
    ],
)
def test_scaling_last_layer_keeps_the_curve(name, norm, keys):
    check_equal(name, norm, [1.0, 1e6], [F32], keys)


GRID = [
    *(
        (name, norm, {"norm": norm, "criterion": criterion})
        for name in ("fgsm", "bim", "pgd", "pgd_momentum")
        for norm in SIZES
        for criterion in ("cross_entropy", "margin", "dlr")
    ),
    *(("sgld_attack", norm, {"norm": norm}) for norm in SIZES),
    *(("deepfool", norm, {"norm": norm}) for norm in ("linf", "l2")),
    *(("apgd", norm, {"norm": norm, "steps": 30}) for norm in SIZES),
    ("apgd", "linf", {"criterion": "dlr", "n_targets": 3, "steps": 20}),
    *(("fab", norm, {"norm": norm, "steps": 15, "n_targets": 3}) for norm in SIZES),
    ("cw", "l2", {}),
    ("square", "linf", {"queries": 200}),
]


def part(name, norm="linf", **keys):
    return component("attacker", name, **({} if name == "square" else {"norm": norm}), **keys)


def standard(norm):
    """The members of AutoAttack, with fewer steps."""
    ratio = part("apgd", norm, criterion="dlr", n_targets=3, steps=15)
    return [part("apgd", norm, steps=15), ratio, part("fab", norm, n_targets=3, steps=10)]


@pytest.mark.slow
@pytest.mark.parametrize("norm", SIZES)
@pytest.mark.parametrize("name", ["transfer", "worst_case", "autoattack"])
def test_composite_attacks_are_scale_invariant(name, norm):
    black_box = [part("square", queries=100)] if norm == "linf" else []
    keys = {
        "transfer": {
            "attack": part("pgd", norm, steps=10),
            "surrogate": component("model", "mlp", widths=[16]),
            "inference": component("inference", "map", lr=0.02),
            "training_steps": 100,
        },
        "worst_case": {
            "norm": norm,
            "members": [part("fgsm", norm), part("pgd", norm, steps=10), *black_box],
        },
        "autoattack": {"norm": norm, "members": [*standard(norm), *black_box]},
    }[name]
    check_equal(name, norm, SCALES, [F32, F64], keys)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "norm", "keys"), GRID)
def test_attacks_are_scale_invariant(name, norm, keys):
    check_equal(name, norm, SCALES, [F32, F64], keys, n_test=400)


def test_tiny_gradients_are_followed():
    """A network with gradients of size 1e-25 is attacked like one with gradients of size 1."""
    check_equal(
        "pgd", "l2", [1.0, 1e-25], [F32], {"norm": "l2", "steps": 10, "criterion": "margin"}
    )
