"""PGD with 40 steps against torchattacks, foolbox and the Adversarial Robustness Toolbox.

    python -m scripts.benchmarks attacks --images 100 --repeats 5

All attack the same trained networks (784-400-400-10 and convolutional) from the images themselves,
at an ε that breaks about half of them.  Ours runs as attacks do by default, where broken images
take no more time; through all steps, as the others do; and, where the CPU multiplies bfloat16, with
gradients in that format, against full precision and judged in it.

Our products in float32 are oneDNN's, the peers' MKL's, which does without AVX-512 on an AMD EPYC:
there the MLP's ratio through all steps is 2.1, and its goal is for processors on which both take the
same time.  Against oneDNN's float32 bfloat16 is 1.6 (MLP) and 1.5 (CNN) times faster; against MKL's it
was 3.0 and 1.7."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from functools import partial
from itertools import product

import torch

from components.attackers.evasion.loop import multiplies
from scripts.benchmarks.attack_runs import (
    assert_equal,
    assert_rounding_harmless,
    build_attack,
    find_eps,
)
from scripts.benchmarks.harness import Report
from scripts.peers.attacked_networks import build_peers, draw_images, train_networks
from scripts.peers.installed import AbsentPeer

WHOLE, ROUNDED = ", all steps", ", all steps, bfloat16 against full precision"


def measure(options: Namespace, report: Report) -> None:
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
