"""One step of adversarial α-divergences with K = 10 draws, against a loop over the draws and
against draws of each row's own.

    python -m scripts.bench_aadm          # networks of 2 × 50 units, batches of 10 and 50, one JSON line

The loop makes, reads and judges the K networks one after the other, as K passes of ordinary layers,
and takes the same two steps of Adam.  Its objective and its gradients are asserted equal to the
batched ones, on the same noise, before a number is printed; ``rows: own`` is asserted equal where a
batch has one row, for there the two are the same.  Seconds are of the process's own CPU, of blocks
of steps next to each other; the ratio is the median of those."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import yaml
from torch import Tensor
from torch.nn import functional as F

import conf
from components import registry
from components.contracts.problems import Batch
from components.inference.implicit.adversarial import Adversarial, AdversarialState
from components.inference.implicit.contrast import contrast, discrimination_loss, kl
from components.maths.power_mean import log_power_mean
from components.problems.supervised import Supervised
from runner.execution.rng import Streams

K, INPUTS, ROWS = 10, 13, 455  # rows and inputs of Boston
BLOCKS, STEPS = 15, 20
GOALS = {f"{peer}, B = {B}": 3.0 for peer in ("loop over draws", "rows: own") for B in (10, 50)}


def component(role: str, name: str, **keys: Any) -> Any:
    """A component with the defaults of its YAML, but for ``keys``."""
    folder = os.path.dirname(str(conf.__file__))
    with open(os.path.join(folder, role, f"{name}.yaml")) as file:
        return registry.get(role, name).model_validate(yaml.safe_load(file) | keys)


def problem(batch_size: int) -> Supervised:
    """Labels of a random linear function with noise."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, INPUTS, generator=g)
    y = x @ torch.randn(INPUTS, 1, generator=g) + torch.randn(ROWS, 1, generator=g)
    batch = Batch(x, y, torch.ones(ROWS, 1, dtype=torch.bool), 1.0)
    return Supervised(
        name="bench",
        target="real",
        train=batch,
        test=batch,
        batch_size=batch_size,
        task_names=["y"],
    )


def begun(seen: Supervised, rows: str) -> tuple[Adversarial, AdversarialState, Streams]:
    """The method, its start, and the streams."""
    rng = Streams(0)
    model = component(
        "model", "mlp", widths=[50, 50], activation="leaky_relu", noise_init=1.0, noise_spread=None
    )
    method = component(
        "inference", "aadm", alpha=0.5, rows=rows, lr=1e-3, discriminator_lr=2e-3, n_samples=K
    )
    return method, method.init(model.build(seen, rng), seen, rng), rng


def looped(method: Adversarial, state: AdversarialState, batch: Batch, rng: Streams) -> Tensor:
    """The objective by a loop over draws, each a network of its own; gradients and both steps are
    taken as ever."""
    q, T, network = state.q, state.discriminator, state.q.network
    assert T is not None
    noise = torch.randn(K, len(q.noise_mean), generator=rng.noise)
    draws, fits = [], []
    for k in range(K):
        theta = q.body(q.noise_mean + (0.5 * q.noise_log_variance).exp() * noise[k])
        h = batch.x
        layers = network.layers(theta)
        for weight, bias in layers[:-1]:
            h = F.leaky_relu(F.linear(h, weight, bias), 0.2)
        draws.append(theta)
        fits.append(network.log_prob(F.linear(h, *layers[-1])[..., None], batch))
    moments = contrast(torch.stack(draws))
    for p in T.parameters():
        p.requires_grad_(False)
    ratio = torch.stack([T(row) for row in moments.z_scores]).mean()
    for p in T.parameters():
        p.requires_grad_(True)
    objective = batch.scale * log_power_mean(torch.stack(fits), method.power).sum() - kl(
        moments, network.prior_std, ratio
    )
    state.optimizer.zero_grad()
    (-objective / (batch.scale * len(batch.x))).backward()
    state.optimizer.step()
    ours = moments.z_scores.detach()
    other = torch.randn(ours.shape, generator=rng.noise)
    losses = [discrimination_loss(T, ours[k : k + 1], other[k : k + 1]) for k in range(K)]
    assert state.discriminator_optimizer is not None
    state.discriminator_optimizer.zero_grad()
    torch.stack(losses).mean().backward()
    state.discriminator_optimizer.step()
    return objective.detach()


def part(seen: Supervised, rows: int) -> Batch:
    return seen.train.part(torch.arange(rows), ROWS / rows)


def assert_equal(seen: Supervised) -> None:
    """The loop against the batch after five steps, and a row's own draws against shared ones of one
    row."""
    results = []
    for looping in (False, True):
        method, state, rng = begun(seen, "shared")
        for _ in range(5):
            if looping:
                objective = looped(method, state, part(seen, 50), rng)
            else:
                state, info = method.step(state, part(seen, 50), rng)
                objective = info["objective"]
        results.append((objective, state.q.body.state_dict()))
    (value, parameters), (other_value, others) = results
    torch.testing.assert_close(value, other_value, rtol=1e-4, atol=1e-2)
    for name, p in parameters.items():
        torch.testing.assert_close(
            p, others[name], rtol=1e-3, atol=1e-4, msg=lambda text, n=name: f"{n}: {text}"
        )
    values = []
    for rows in ("shared", "own"):
        method, state, rng = begun(seen, rows)
        values.append(method.step(state, part(seen, 1), rng)[1]["objective"])
    torch.testing.assert_close(values[0], values[1], rtol=1e-5, atol=1e-2)


def ratios(ours: Callable[[], object], theirs: Callable[[], object]) -> list[float]:
    """Median, lowest and highest of theirs over ours, of blocks next to each other."""

    def seconds(step: Callable[[], object]) -> float:
        start = time.process_time()
        for _ in range(STEPS):
            step()
        return time.process_time() - start

    seconds(ours), seconds(theirs)
    values = sorted(seconds(theirs) / seconds(ours) for _ in range(BLOCKS))
    return [float(np.median(values)), values[0], values[-1]]


def main() -> None:
    torch.set_num_threads(1)
    assert_equal(problem(50))
    results = {}
    for B in (10, 50):
        data = problem(B)
        batch = part(data, B)
        method, state, rng = begun(data, "shared")
        one, first, streams = begun(data, "shared")
        own_method, second, others = begun(data, "own")
        results[f"loop over draws, B = {B}"] = ratios(
            lambda m=method, s=state, r=rng, b=batch: m.step(s, b, r),
            lambda m=one, s=first, r=streams, b=batch: looped(m, s, b, r),
        )
        results[f"rows: own, B = {B}"] = ratios(
            lambda m=method, s=state, r=rng, b=batch: m.step(s, b, r),
            lambda m=own_method, s=second, r=others, b=batch: m.step(s, b, r),
        )
    print(
        json.dumps(
            {
                "benchmark": "aadm",
                "peer": "loops and rows' own draws",
                "ratios": results,
                "goals": GOALS,
            }
        )
    )


if __name__ == "__main__":
    main()
