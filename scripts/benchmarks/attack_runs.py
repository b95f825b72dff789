"""PGD of ours and the sizes at which networks are attacked."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.attackers.attacked import Attacked
from components.attackers.evasion.loop import Ascent, ascend
from components.contracts.victim import Precision
from scripts.peers.attacked_networks import (
    ALPHA,
    STEPS,
    Attack,
    build_ours,
)


def build_attack(
    network: Any, eps: float, precision: Precision = "full", stop: bool = False
) -> Attack:
    ascent = Ascent("linf", STEPS, ALPHA, stop_when_broken=stop, precision=precision)
    victim = Attacked(build_ours(network), (0.0, 1.0))
    return lambda x, y: ascend(victim, x, y[:, None], torch.Generator(), eps, ascent)


def robust_accuracy(network: Any, x: Tensor, y: Tensor) -> float:
    return float((network(x).argmax(1) == y).double().mean())


def find_eps(network: Any, x: Tensor, y: Tensor) -> float:
    """The smallest ε of a grid at which at most half of the images withstand the attack."""
    for eps in np.arange(0.01, 0.5, 0.01).tolist():
        if robust_accuracy(network, build_attack(network, eps, stop=True)(x, y), y) <= 0.5:
            return eps
    raise AssertionError("no size breaks half of the images")


PEERS = ("torchattacks", "foolbox", "ART")


def assert_equal(network: Any, y: Tensor, images: dict[str, Tensor]) -> None:
    """Robust accuracies within half a point; few pixels differ (where a gradient's sign is
    rounding)."""
    accuracy = {name: robust_accuracy(network, z, y) for name, z in images.items()}
    whole = accuracy["ours, all steps"]
    print("robust accuracies:", accuracy)
    few = max(0.02, 1.5 / len(y))  # one image of a smoke run
    assert whole - few <= accuracy["ours"] <= whole, "stopping early changes the attack"
    for peer in set(images) & set(PEERS):
        assert abs(accuracy[peer] - whole) <= 0.005, peer
        pixels = (images[peer] - images["ours, all steps"]).abs() > 1e-5
        assert float(pixels.double().mean()) < 0.02, peer


def assert_rounding_harmless(network: Any, attacks: list[Attack], x: Tensor, y: Tensor) -> None:
    """Robust accuracies by gradients in full and in half precision within half a point, where there
    are images enough to tell."""
    full, rounded = (robust_accuracy(network, attack(x, y), y) for attack in attacks)
    few = max(0.005, 2.5 / len(y))  # two images of a smoke run
    assert abs(rounded - full) <= few, "rounded gradients weaken the attack"
