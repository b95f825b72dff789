"""Benchmark of evasion attacks on networks."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.attackers.attacked import Attacked
from components.attackers.evasion.loop import Ascent, ascend, multiplies
from components.contracts.victim import Precision
from scripts.benchmarks.harness import Report
from scripts.peers.attacked_networks import (
    ALPHA,
    STEPS,
    Attack,
    build_ours,
    build_peers,
    draw_images,
    train_networks,
)
from scripts.peers.installed import AbsentPeer

PEERS = ("torchattacks", "foolbox", "ART")
WHOLE = ", all steps"
ROUNDED = ", all steps, bfloat16 against full precision"


def build_attack(
    network: Any, eps: float, precision: Precision = "full", stop: bool = False
) -> Attack:
    ascent = Ascent("linf", STEPS, ALPHA, stop_when_broken=stop, precision=precision)
    victim = Attacked(build_ours(network), (0.0, 1.0))
    return lambda x, y: ascend(victim, x, y[:, None], torch.Generator(), eps, ascent)


def robust_accuracy(network: Any, x: Tensor, y: Tensor) -> float:
    return float((network(x).argmax(1) == y).double().mean())


def find_eps(network: Any, x: Tensor, y: Tensor) -> float:
    """Smallest ε of a grid for which the attack succeeds on at least half of the images."""
    for eps in np.arange(0.01, 0.5, 0.01).tolist():
        if robust_accuracy(network, build_attack(network, eps, stop=True)(x, y), y) <= 0.5:
            return eps
    raise AssertionError("no ε of the grid misclassifies half of the images")


def assert_equal(network: Any, y: Tensor, images: dict[str, Tensor]) -> None:
    """Check that robust accuracies agree within half a point and few pixels differ (where the sign of
    a gradient is due to rounding)."""
    accuracy = {name: robust_accuracy(network, z, y) for name, z in images.items()}
    all_steps = accuracy["ours, all steps"]
    print("robust accuracies:", accuracy)
    few = max(0.02, 1.5 / len(y))  # tolerance of one image in a smoke run
    assert all_steps - few <= accuracy["ours"] <= all_steps, "stopping early changes the attack"
    for peer in set(images) & set(PEERS):
        assert abs(accuracy[peer] - all_steps) <= 0.005, peer
        pixels = (images[peer] - images["ours, all steps"]).abs() > 1e-5
        assert float(pixels.double().mean()) < 0.02, peer


def assert_rounding_harmless(network: Any, attacks: list[Attack], x: Tensor, y: Tensor) -> None:
    """Check that robust accuracies with gradients in full and half precision agree within half a
    point, given enough images."""
    full, rounded = (robust_accuracy(network, attack(x, y), y) for attack in attacks)
    few = max(0.005, 2.5 / len(y))  # tolerance of two images in a smoke run
    assert abs(rounded - full) <= few, "rounded gradients weaken the attack"


def measure(options: Namespace, report: Report) -> None:
    """PGD with 40 steps against torchattacks, foolbox and the Adversarial Robustness Toolbox.

        python -m scripts.benchmarks attacks --images 100 --repeats 5

    All attacks start from the images of the same trained networks (784-400-400-10 and convolutional),
    with an ε for which about half of the images are misclassified.  Our attack is timed with the
    defaults, which skip misclassified images; with all steps for all images, like the peers; and,
    if the CPU supports bfloat16, with gradients in this format against full precision, in which
    both are scored.

    Our float32 products use oneDNN; the peers use MKL, which does not use AVX-512 on an AMD EPYC.
    On that processor the ratio of the MLP with all steps is 2.1; the goal is for processors on
    which both libraries take the same time.  Compared with float32 of oneDNN, bfloat16 is 1.6 (MLP)
    and 1.5 (CNN) times faster; compared with MKL it was 3.0 and 1.7.
    """
    generator = torch.Generator().manual_seed(0)
    for name, network in train_networks(generator).items():
        x, y = draw_images(options.images, generator)
        eps = find_eps(network, x[:100], y[:100])
        ours = {
            "ours": build_attack(network, eps, stop=True),
            "ours, all steps": build_attack(network, eps),
        }
        if multiplies("bfloat16"):
            ours["bfloat16"] = build_attack(network, eps, "bfloat16")
        peers = {}
        with suppress(AbsentPeer):
            peers = build_peers(network, eps, len(x))
        attacks = {way: partial(attack, x, y) for way, attack in (ours | peers).items()}
        assert_equal(network, y, {way: attack() for way, attack in attacks.items()})
        seconds = report.time(attacks, options.repeats, shuffle=True)
        for suffix, peer in product(("", WHOLE), peers):
            report.compare(f"{name}, {peer}{suffix}", seconds[f"ours{suffix}"], seconds[peer])
        if "bfloat16" in ours:
            pair = [ours["ours, all steps"], ours["bfloat16"]]
            n = 100 if options.smoke else 5000  # three standard errors of the difference
            assert_rounding_harmless(network, pair, *draw_images(n, generator))
            report.compare(f"{name}{ROUNDED}", seconds["bfloat16"], seconds["ours, all steps"])
