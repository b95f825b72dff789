"""Small victims of evasion attacks (smooth, random, or with wrong gradients), inputs for them, and
results of checks."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from support.runs.configured import F64, component, draw_normal, draw_uniform, generator, normal
from support.small.small_problems import classes

from components.attackers.attacked import Attacked
from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.evaluation.security.victim_checks import victim_checks
from runner.execution.rng import Streams

UNIT = (0.0, 1.0)


class Softmax:
    """A small tanh network with S sets of weights."""

    def __init__(
        self, draws: int = 1, inputs: int = 6, classes: int = 3, seed: int = 0, scale: float = 1.0
    ):
        g = generator(seed)
        # at a small scale units do not saturate inside the ball, and gradients lead to the best
        # corner
        self.w = scale * normal(g, draws, inputs, 8)
        self.v = normal(g, draws, 8, classes)
        self.calls = 0

    def predict(self, x: torch.Tensor, g: torch.Generator) -> Categorical:
        self.calls += len(x)
        f = torch.tanh(x @ self.w) @ self.v  # [S, B, C]
        return Categorical(f.unsqueeze(2))

    def some(self, n: int, g: torch.Generator | None) -> Softmax:
        victim = Softmax()
        rows = torch.arange(n) if g is None else torch.randint(len(self.w), (n,), generator=g)
        victim.w = self.w[rows]
        victim.v = self.v[rows]
        return victim


def images(victim: Softmax, n: int = 40, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs in [0, 1] and the victim's labels for them."""
    x = draw_uniform(n, victim.w.shape[1], seed=seed)
    return x, victim.predict(x, generator()).probs.argmax(-1)


def make_victim(n: int = 40, **keys) -> tuple[Softmax, torch.Tensor, torch.Tensor]:
    """A smooth victim, inputs, and its labels for them."""
    model = Softmax(**keys)
    return model, *images(model, n)


def make_linear() -> Softmax:
    """A linear victim of 6 inputs: tanh is the identity up to 1e-8."""
    model = Softmax()
    model.w = 1e-4 * torch.eye(6, 8, dtype=F64)[None]
    model.v = 1e4 * model.v
    return model


def make_rng(seed: int = 0) -> SimpleNamespace:
    """Random numbers with only an attack stream."""
    return SimpleNamespace(attack=generator(seed))


def perturb(name: str, model, x, y, eps: float, *, bounds=UNIT, shape=None, seed=0, **keys):
    """Inputs after an attack with the defaults of its YAML except for some keys."""
    victim = Attacked(model, bounds, image_shape=shape)
    return component("attacker", name, **keys).perturb(victim, x, y, make_rng(seed), eps)


def find_broken(model, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Rows [B] to which a victim no longer assigns their label."""
    return Attacked(model).broken(x, y, generator())


def make_honest(inputs: int = 9, n_classes: int = 2) -> tuple:
    """A smooth victim, and a problem with its predictions as labels."""
    model = Softmax(inputs=inputs, classes=n_classes, seed=4, scale=0.5)
    problem = classes(n=150, n_inputs=inputs, n_classes=n_classes)
    test = problem.test
    problem.test = Batch(
        test.x, model.predict(test.x, generator()).probs.argmax(-1), test.mask, 1.0
    )
    problem.image_shape = (3, 3) if inputs == 9 else None
    return model, problem


def verdicts(
    model, problem, norm: str = "linf", eps: float = 0.1, attacker=None
) -> dict[str, bool]:
    attacker = attacker or component("attacker", "pgd", norm=norm)
    victim = Attacked(model, problem.bounds, image_shape=problem.image_shape)
    checks = victim_checks(attacker, victim, problem, problem.test.y, Streams(0), norm, eps)
    return {check.name: check.passed for check in checks}


class Spoilt:
    """A victim with a wrong gradient and unchanged predictions."""

    def __init__(self, model, how):
        self.model = model
        self.how = how

    def predict(self, x, g):
        f = self.model.predict(x, g).logits
        if self.how == "wrong sign":
            f = 2 * f.detach() - f
        elif self.how == "silent":
            f = f.detach() + 0 * f
        elif self.how == "random":  # a gradient of another function
            other = torch.sin(40 * x @ draw_normal(x.shape[1], f.shape[-1], seed=1))[None, :, None]
            f = f.detach() + other - other.detach()
        return Categorical(f)
