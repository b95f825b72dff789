"""PGD with cross entropy against the same attack in a few lines of torch, on networks for
digits."""

from functools import cache
from types import SimpleNamespace

import pytest
import torch
from support.runs.configured import component, generator
from torch import nn

from components.attackers.attacked import Attacked
from components.attackers.norms import NORMS
from components.contracts.predictive import Categorical

STEPS = 40
ALPHA = 0.0625
TRAINING_ROWS = 1397
ROWS = 200


def convolutions(*channels):
    pairs = zip((1, *channels), channels, strict=False)
    layers = [
        layer
        for old, after in pairs
        for layer in (nn.Conv2d(old, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU())
    ]
    return [nn.Unflatten(1, (1, 8, 8)), *layers, nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3)]


class Residual(nn.Sequential):
    def forward(self, x):
        return torch.relu(x + super().forward(x))


NETWORKS = {
    "mlp": lambda: nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)),
    "cnn": lambda: nn.Sequential(*convolutions(16), nn.Linear(256, 10)),
    "resnet": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        *(Residual(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)) for _ in range(3)),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    ),
}


@cache
def train_network(name, steps=400):
    from sklearn.datasets import load_digits

    data = load_digits()
    x = torch.tensor(data.data / 16, dtype=torch.float32)
    y = torch.tensor(data.target)
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


def attack_plainly(network, x, labels, eps, seed, norm, uphill):
    z = x + NORMS[norm].start(x, eps, generator(seed))
    for _ in range(STEPS):
        z = z.clamp(0, 1).requires_grad_(True)
        f = network(z)
        loss = nn.functional.cross_entropy(f, labels, reduction="sum")
        slope = NORMS[norm].steepest(torch.autograd.grad(loss, z)[0])
        step = x + NORMS[norm].project(z + uphill * ALPHA * eps * slope - x, eps)
        is_running = (f.argmax(1) == labels) == (uphill > 0)
        z = torch.where(is_running[:, None], step, z).detach()
    return z.clamp(0, 1)


def differences(name, eps, seeds, norm="linf", target=None, steps=400, attack="pgd"):
    """Shares of rows that withstand plain PGD, and the differences to ours, by seed."""
    network, x, y = train_network(name, steps)
    victim = SimpleNamespace(predict=lambda z, _: Categorical(network(z)[None, :, None]))
    attacker = component("attacker", attack, steps=STEPS, norm=norm, target=target)
    aim, uphill = (y, 1) if target is None else (torch.full_like(y, target), -1)
    shares = []
    for seed in range(seeds):
        rng = SimpleNamespace(attack=generator(seed))
        for z in (
            attack_plainly(network, x, aim, eps, seed, norm, uphill),
            attacker.perturb(Attacked(victim, (0.0, 1.0)), x, y[:, None], rng, eps),
        ):
            is_standing = (network(z).argmax(1) == aim) == (uphill > 0)
            shares.append(float(is_standing[y != target].double().mean()))
    plain, ours = torch.tensor(shares).view(-1, 2).T
    return plain, ours - plain


@pytest.mark.parametrize("target", [None, 3])
def test_pgd_is_as_strong_as_plain_pgd(target):
    plain, difference = differences("mlp", 0.1, 1, target=target)
    assert 0.2 < float(plain) < 0.9
    assert abs(float(difference)) <= 1 / ROWS + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "eps", "keys", "may_be_stronger"),
    [
        ("mlp", 0.08, {}, False),
        ("cnn", 32 / 255, {}, False),
        ("resnet", 0.1, {}, False),
        ("mlp", 0.13, {"target": 3}, False),
        ("cnn", 1.0, {"norm": "l2", "target": 3}, False),
        ("resnet", 0.16, {"target": 3}, False),
        ("resnet", 3.0, {"norm": "l1", "target": 3}, True),
        # single precision rounds the slopes of the plain attack to 0
        ("mlp", 0.08, {"steps": 6000}, True),
        ("mlp", 0.4, {"steps": 6000, "norm": "l2", "target": 3}, True),
        ("cnn", 0.2, {"target": 3, "attack": "apgd"}, True),
        ("mlp", 0.6, {"norm": "l2", "target": 3, "attack": "apgd"}, True),
    ],
)
def test_pgd_is_as_strong_as_plain_pgd_over_ten_seeds(name, eps, keys, may_be_stronger):
    plain, difference = differences(name, eps, 10, **keys)
    mean = float(difference.mean())
    assert 0.1 < plain.mean() < 0.9
    assert mean <= 0.01
    assert may_be_stronger or abs(mean) <= float(plain.std()) / 10**0.5
