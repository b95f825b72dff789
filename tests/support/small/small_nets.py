"""Small problems of images and of texts, and networks for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from support.runs.configured import F64, draw_normal, generator
from support.small.small_problems import classes, component, tensors, train, train_and_resume

from components.contracts.problems import Batch
from components.problems.supervised import Supervised
from runner.execution.rng import Streams

SMALL_BNN = {
    "widths": [4, 3],
    "activation": "tanh",
    "prior_std": 0.8,
    "precision_shape": 2.0,
    "precision_rate": 0.5,
    "noise_shape": 3.0,
    "noise_rate": 0.2,
    "noise_unit": 2.5,
}
MLP = component("model", "mlp", widths=[4], activation="tanh")
SMALL_VGG = component("model", "vgg", depth=7, width=2)
SMALL_LSTM = component("model", "lstm", words=3, units=4)
SMALL_TRANSFORMER = component("model", "text_transformer", words=4, hidden=3)


def tanh_layers(theta, x, shapes) -> torch.Tensor:
    """W_L tanh(… tanh(W_1 x + b_1) …) + b_L; θ contains W_1 by rows, b_1, W_2, …"""
    offset = 0
    for layer, (out, inside) in enumerate(shapes):
        W = theta[offset : offset + out * inside].view(out, inside)
        b = theta[offset + out * inside :][:out]
        x = (x if layer == 0 else x.tanh()) @ W.T + b
        offset += out * inside + out
    return x


def images(n=24, batch_size=8, seed=0, dtype=F64) -> Supervised:
    """Three classes of 8 × 8 pixels."""
    problem = classes(n=n, n_inputs=64, batch_size=batch_size, seed=seed, dtype=dtype)
    return replace(problem, image_shape=(8, 8))


def texts(n=24, length=7, words=9, batch_size=8, seed=0, dtype=F64) -> Supervised:
    """Two classes of texts of 1 … ``length`` words; word 2 and similar ones indicate class 0."""
    g = generator(seed)
    x = torch.randint(1, words, (2 * n, length), generator=g)
    ends = torch.randint(1, length + 1, (2 * n, 1), generator=g)
    x = torch.where(torch.arange(length) < ends, x, 0)
    y = ((x > words // 2).sum(1) * 2 > ends[:, 0]).long()[:, None]
    train, test = (
        Batch(x[rows].to(dtype), y[rows], torch.ones(n, 1, dtype=torch.bool), 1.0)
        for rows in (slice(n), slice(n, None))
    )
    return Supervised(
        "texts", "binary", train, test, batch_size, 2, ["praise"], domain="tokens", vocabulary=words
    )


def check_resumed(method: Any, model: Any, folder: Path) -> None:
    """Assert that a run of 17 steps stopped after 10 ends bit-identical."""
    problem = (images if model is SMALL_VGG else texts)(dtype=torch.float32)
    whole = train(method, model, problem, 17)[0]
    parts = train_and_resume(method, model, problem, 17, 10, folder)[0]
    assert all(torch.equal(a, b) for a, b in zip(tensors(whole), tensors(parts), strict=True))
    first, other = (
        method.posterior(s).predict(problem.test.x, torch.Generator()).logits
        for s in (whole, parts)
    )
    assert torch.equal(first, other)


def random_network(problem, seed=0, scale=1.5, model="mlp", **keys):
    """A network with random weights and biases."""
    built = component("model", model, **keys).build(problem, Streams(seed))
    noise = draw_normal(*built.theta.shape, seed=seed).to(built.theta)
    with torch.no_grad():
        built.theta.mul_(scale).add_(0.3 * noise)
    return built.requires_grad_(False)
