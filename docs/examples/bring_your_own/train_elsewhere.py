"""A network trained in plain PyTorch, and its weights in a file: a start for ``model=state_dict`` and ``model=module``.

    python train_elsewhere.py mlp weights.safetensors

It trains on the images of dataset=digits with seed 0 and prints its accuracy on the 500 test images."""

from __future__ import annotations

import sys

import torch
from my_net import Net
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import nn


def split(n_test: int = 500) -> tuple[torch.Tensor, ...]:
    """The images that dataset=digits has for seed 0, as the runner draws them."""
    from runner.execution.rng import Streams  # the only import from the runner

    bunch = load_digits()
    x, y = torch.from_numpy(bunch.data / 16.0), torch.from_numpy(bunch.target)
    order = torch.randperm(len(x), generator=Streams(0).data)
    return x[order[n_test:]], y[order[n_test:]], x[order[:n_test]], y[order[:n_test]]


def network(kind: str) -> nn.Module:
    if kind == "mlp":
        return nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
        )
    if kind == "cnn":
        image, halved = nn.Unflatten(1, (1, 8, 8)), nn.MaxPool2d(2)
        first, second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        front = [image, first, nn.ReLU(), halved, second, nn.ReLU(), halved, nn.Flatten()]
        return nn.Sequential(*front, nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return Net(hidden=32)


def main(kind: str, path: str, steps: int = 400) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, y, x_test, y_test = split()
    net = network(kind).double()
    optimizer = torch.optim.Adam(net.parameters(), 0.003)
    for _ in range(steps):
        rows = torch.randint(len(x), (64,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        optimizer.step()
    net.eval()
    save_file(net.state_dict(), path)
    with torch.no_grad():
        print(f"accuracy {float((net(x_test).argmax(1) == y_test).double().mean()):.4f}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
