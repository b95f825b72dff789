"""PGD with cross entropy against the same attack in a few lines of torch, on networks for digits."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import pytest
import torch
from configured import component
from torch import nn

from components.attackers.attacked import Attacked
from components.attackers.norms import NORMS
from components.contracts.predictive import Categorical

STEPS, ALPHA, TRAINING_ROWS, ROWS = 40, 0.0625, 1397, 200


def convolutions(*channels):
    pairs = zip((1, *channels), channels, strict=False)
    layers = [
        layer
        for before, after in pairs
        for layer in (nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())
    ]
    return [nn.Unflatten(1, (1, 8, 8)), *layers, nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3)]


NETWORKS = {
    "mlp": lambda: nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)),
    "cnn": lambda: nn.Sequential(*convolutions(16), nn.Linear(256, 10)),
    "deep cnn": lambda: nn.Sequential(
        *convolutions(16, 16, 16), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10)
    ),
}


@cache
def trained(name, steps=400):
    from sklearn.datasets import load_digits

    data = load_digits()
    x, y = torch.tensor(data.data / 16, dtype=torch.float32), torch.tensor(data.target)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = NETWORKS[name]()
        adam = torch.optim.Adam(network.parameters(), 3e-3)
        for _ in range(steps):
            rows = torch.randint(TRAINING_ROWS, (64,))
            adam.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            adam.step()
    test = slice(TRAINING_ROWS, TRAINING_ROWS + ROWS)
    return network.eval().requires_grad_(False), x[test], y[test]


def plain_accuracy(network, x, y, eps, seed):
    z = x + NORMS["linf"].start(x, eps, torch.Generator().manual_seed(seed))
    for _ in range(STEPS):
        z = z.clamp(0, 1).requires_grad_(True)
        f = network(z)
        loss = nn.functional.cross_entropy(f, y, reduction="sum")
        step = z + ALPHA * eps * torch.autograd.grad(loss, z)[0].sign()
        step = torch.maximum(torch.minimum(step, x + eps), x - eps)
        z = torch.where((f.argmax(1) == y)[:, None], step, z).detach()
    return float((network(z.clamp(0, 1)).argmax(1) == y).double().mean())


def our_accuracy(network, x, y, eps, seed):
    victim = SimpleNamespace(predict=lambda z, _: Categorical(network(z)[None, :, None]))
    rng = SimpleNamespace(attack=torch.Generator().manual_seed(seed))
    attacker = component("attacker", "pgd", steps=STEPS, step_size=ALPHA)
    z = attacker.perturb(Attacked(victim, (0.0, 1.0)), x, y[:, None], rng, eps)
    return float((network(z).argmax(1) == y).double().mean())


def differences(name, eps, seeds):
    """Robust accuracies of plain PGD, and the differences of ours, by seed."""
    plain = [plain_accuracy(*trained(name), eps, seed) for seed in range(seeds)]
    ours = [our_accuracy(*trained(name), eps, seed) for seed in range(seeds)]
    return torch.tensor(plain), torch.tensor(ours) - torch.tensor(plain)


def test_pgd_is_as_strong_as_plain_pgd():
    plain, difference = differences("mlp", 0.08, 1)
    assert 0.3 < float(plain) < 0.8
    assert abs(float(difference)) <= 1 / ROWS + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("name", "eps"), [("mlp", 0.08), ("cnn", 32 / 255), ("deep cnn", 0.12)])
def test_pgd_is_as_strong_as_plain_pgd_over_ten_seeds(name, eps):
    plain, difference = differences(name, eps, 10)
    assert 0.2 < float(plain.mean()) < 0.8
    assert abs(float(difference.mean())) < float(plain.std()) / 10**0.5
    assert float(difference.mean()) <= 0.01
