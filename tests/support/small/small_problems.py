"""Small supervised problems, components with their YAML's defaults, and training with or without an
interruption."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from support.runs.configured import F64, generator, normal
from support.runs.configured import component as component

from components.contracts.problems import Batch
from components.problems.supervised import Supervised
from runner.execution import checkpoint
from runner.execution.rng import Streams


def real(
    n=40, n_inputs=3, n_tasks=2, batch_size=None, seed=0, missing=0.4, dtype=F64
) -> Supervised:
    """Noisy sines of random directions; missing labels are NaN, and every row has at least one
    label."""
    g = generator(seed)
    x = torch.randn(2 * n, n_inputs, generator=g, dtype=dtype)
    y = torch.sin(x @ torch.randn(n_inputs, n_tasks, generator=g, dtype=dtype))
    y = y + 0.1 * torch.randn(2 * n, n_tasks, generator=g, dtype=dtype)
    mask = torch.rand(n, n_tasks, generator=g) >= missing
    mask[torch.arange(n), torch.randint(n_tasks, (n,), generator=g)] = True
    train = Batch(x[:n], torch.where(mask, y[:n], torch.nan), mask, 1.0)
    test = Batch(x[n:], y[n:], torch.ones(n, n_tasks, dtype=torch.bool), 1.0)
    return Supervised(
        "small", "real", train, test, batch_size, task_names=[f"task {t}" for t in range(n_tasks)]
    )


def noisy_sines(n: int, batch_size: int | None = None) -> Supervised:
    """Labels with unit noise, so that gradients of minibatches are also noisy at the mode."""
    problem = real(n=n, n_inputs=2, n_tasks=1, missing=0.0, batch_size=batch_size)
    noise = normal(generator(7), problem.train.y.shape)
    return replace(problem, train=replace(problem.train, y=problem.train.y + noise))


def classes(
    n=60,
    n_inputs=4,
    n_classes=3,
    n_tasks=1,
    batch_size=None,
    seed=0,
    bounds=(0.0, 1.0),
    dtype=F64,
) -> Supervised:
    """Classes by the largest of noisy linear scores of uniform inputs in [0, 1]; two tasks miss
    some labels."""
    g = generator(seed)
    x = torch.rand(2 * n, n_inputs, generator=g, dtype=dtype)
    w = 4 * torch.randn(n_inputs, n_tasks * n_classes, generator=g, dtype=dtype)
    y = ((x - 0.5) @ w).unflatten(-1, (n_tasks, n_classes)).argmax(-1)
    mask = torch.ones(2 * n, n_tasks, dtype=torch.bool)
    if n_tasks > 1:
        mask[::3, 0] = False
        mask[1::3, 1] = False
    train, test = (Batch(x[rows], y[rows], mask[rows], 1.0) for rows in (slice(n), slice(n, None)))
    target = "binary" if n_classes == 2 else "classes"
    return Supervised(
        "small",
        target,
        train,
        test,
        batch_size,
        n_classes,
        [f"{t}" for t in range(n_tasks)],
        bounds=bounds,
    )


def attacked_problem(attacker="fgsm", dtype=F64, **settings):
    """Small classes with the attacker of a defence."""
    problem = classes(batch_size=10, dtype=dtype)
    problem.attacker = component("attacker", attacker, **settings)
    return problem


def linear_posterior(
    problem: Supervised, noise: float, prior_variance: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean [D + 1, T] and precision [D + 1, D + 1] of the weights and, last, the intercept of a
    linear model."""
    x = torch.cat([problem.train.x, torch.ones_like(problem.train.x[:, :1])], 1)
    precision = x.T @ x / noise + torch.eye(x.shape[1]).to(x) / prior_variance
    return torch.linalg.solve(precision, x.T @ problem.train.y / noise), precision


def train(
    inference: Any, model: Any, problem: Any, steps: int, seed: int = 0
) -> tuple[Any, Streams]:
    """State and streams after a number of steps, for a model that may be built already."""
    rng = Streams(seed)
    module = model.build(problem, rng) if hasattr(model, "build") else model
    state = inference.init(module, problem, rng)
    return advance(inference, state, problem, rng, 0, steps)[0], rng


def advance(
    inference: Any, state: Any, problem: Any, rng: Any, start: int, stop: int
) -> tuple[Any, Any]:
    """State and information after the steps from ``start`` to ``stop``."""
    info = None
    for _, batch in problem.batches(inference.requires.batch_kind, rng, start, stop):
        state, info = inference.step(state, batch, rng)
    return state, info


def train_and_resume(
    inference: Any, model: Any, problem: Supervised, steps: int, stop: int, folder: Path
) -> tuple[Any, Streams]:
    """Train, but checkpoint to disk at ``stop``, and continue from a fresh state."""
    state, rng = train(inference, model, problem, stop)
    facts = {"step": stop, "replicate": 0, "signature": "s"}
    checkpoint.save_checkpoint(folder, checkpoint.snapshot(state, rng.state(), facts))
    rng = Streams(0)
    fresh = inference.init(model.build(problem, rng), problem, rng)
    facts, tensors, _ = checkpoint.load_newest(folder, "s")
    state, streams = checkpoint.restore(facts, tensors, fresh)
    rng.restore(streams)
    return advance(inference, state, problem, rng, stop, steps)[0], rng


def check_resumed(
    inference: Any, model: Any, problem: Supervised, folder: Path, steps: int = 9, stop: int = 4
) -> Any:
    """State of a stopped and resumed run; asserts that its state, draws and noise equal those of an
    uninterrupted run."""
    whole, rng = train(inference, model, problem, steps)
    repeat, restored = train_and_resume(inference, model, problem, steps, stop, folder)
    assert_same_state(whole, repeat)
    assert torch.equal(rng.noise.get_state(), restored.noise.get_state())
    first, other = (inference.posterior(state) for state in (whole, repeat))
    if hasattr(first, "draws"):
        assert torch.equal(first.draws, other.draws)
    return repeat


def assert_same_state(one: Any, other: Any) -> None:
    """Assert that two states hold the same numbers and tensors, bit for bit."""
    a, b = (checkpoint.snapshot(state, {}, {}) for state in (one, other))
    assert a.skeleton == b.skeleton
    assert all(torch.equal(x, y) for x, y in zip(tensors(one), tensors(other), strict=True))


def tensors(state: Any) -> list[torch.Tensor]:
    """Every tensor of a state, in order."""
    snapshot = checkpoint.snapshot(state, {}, {})
    held = snapshot.tensors | snapshot.traces
    return [held[key] for key in sorted(held)]


def fit_mlp(problem, widths: list[int], steps: int, name: str = "map", **keys: Any) -> tuple:
    """Posterior of a small network, and the streams after its training."""
    method = component("inference", name, **keys)
    state, rng = train(method, component("model", "mlp", widths=widths), problem, steps)
    return method.posterior(state), rng
