"""Times PGD with 40 steps against torchattacks, foolbox and the Adversarial Robustness Toolbox,
images a second.

    python -m scripts.bench_attacks               # a 784-400-400-10 network and a small convolutional one, one JSON line
    python -m scripts.bench_attacks --images 100 --repeats 5

All attack the same trained networks (images drawn around ten prototypes, in [0, 1]) from the images
themselves, with the same steps and α, at an ε that breaks about half of the images; robust
accuracies and images are asserted equal first. Ours runs as attacks run by default, where only
success matters, so that an image which is broken takes no more time, and through all steps for
every image as the others do; where the CPU multiplies bfloat16 also with gradients in that format,
timed against full precision and judged in it.  Each library sees the network as training leaves it,
with parameters that take gradients; ours is our model of the same weights, frozen, as it is in
every run.  Timings are interleaved and are seconds of the process's own CPU, one thread; a ratio is
the median of those of neighbouring runs, above 1 where ours is faster. The convolutional network is
our model ``cnn``, whose windows move by two pixels; the others see its layers as PyTorch's.

Peers: make bench-peers (torchattacks without what it asks for: an older requests, and torchvision).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor, nn

from components.attackers.attacked import Attacked
from components.attackers.evasion.loop import Ascent, ascend, multiplies
from components.contracts.problems import Batch
from components.contracts.victim import Precision
from components.models.networks.cnn import CNN
from components.models.networks.mlp import MLP
from components.posteriors.point_estimate import PointEstimate
from components.problems.supervised import Supervised
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams
from scripts.peers.installed import peer_imports

STEPS, ALPHA = 40, 2.5 / 40  # α / ε
PEERS = ("torchattacks", "foolbox", "ART")
GOALS = {
    f"{network}, {peer}": goal
    for network, goals in {"MLP": (1.0, 1.5, 2.0), "CNN": (1.5, 1.5, 2.0)}.items()
    for peer, goal in zip(PEERS, goals, strict=True)
}
WHOLE, ROUNDED = ", all steps", ", all steps, bfloat16 against full precision"
GOALS |= {f"MLP, torchattacks{WHOLE}": 1.1, f"CNN, torchattacks{WHOLE}": 1.0}
GOALS |= {f"{network}{ROUNDED}": 2.0 for network in ("MLP", "CNN")}
CHANNELS, KERNEL = (16, 32), 5  # of the convolutional network
Attack = Callable[[Tensor, Tensor], Tensor]


class Normalised(nn.Module):
    """(x − m)/s, as our model ``cnn`` has it inside."""

    def __init__(self, x: Tensor):
        super().__init__()
        self.seen, self.mean, self.std = x, float(x.mean()), float(x.std(correction=0))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


def data(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images [n, 784] around ten prototypes, and their classes [n]."""
    prototypes = torch.rand(10, 784, generator=torch.Generator().manual_seed(1))
    y = torch.randint(10, (n,), generator=generator)
    return (0.3 * prototypes[y] + 0.7 * torch.rand(n, 784, generator=generator)).clamp(0, 1), y


def networks(generator: torch.Generator) -> dict[str, nn.Sequential]:
    """Both networks, trained for a few steps."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        mlp = nn.Sequential(
            nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 10)
        )
        x, y = data(1000, generator)
        images = [Normalised(x), nn.Unflatten(1, (1, 28, 28))]
        convolutions = [
            layer
            for colours, channels in zip((1, *CHANNELS), CHANNELS, strict=False)
            for layer in (
                nn.Conv2d(colours, channels, KERNEL, stride=2, padding=KERNEL // 2),
                nn.ReLU(),
            )
        ]
        cnn = nn.Sequential(
            *images, *convolutions, nn.Flatten(), nn.Linear(CHANNELS[-1] * 7 * 7, 10)
        )
    for network in (mlp, cnn):
        adam = torch.optim.Adam(network.parameters(), lr=1e-3)
        for _ in range(30):
            adam.zero_grad()
            nn.functional.cross_entropy(network(x), y).backward()
            adam.step()
    return {"MLP": mlp.eval(), "CNN": cnn.eval()}


def ours_of(module: nn.Sequential) -> PointEstimate:
    """Our model of the same weights, frozen, as attackers see it: of rows x [B, 784]."""
    images = isinstance(module[0], Normalised)
    x = module[0].seen if images else torch.zeros(1, 784)
    y = torch.zeros(len(x), 1, dtype=torch.long)
    train = Batch(x, y, torch.ones_like(y, dtype=torch.bool), 1.0)
    problem = Supervised(
        "images", train, train, None, "classes", n_classes=10, image_shape=(28, 28)
    )
    yaml: dict[str, Any] = {"activation": "relu", "dropout": 0.0, "prior_std": 1.0}
    if images:
        yaml |= {
            "channels": list(CHANNELS),
            "kernel": KERNEL,
            "downsampling": "stride",
            "widths": [],
        }
        network = CNN(name="cnn", **yaml).build(problem, Streams(0))
    else:
        yaml |= {"widths": [400, 400], "prior_init": 1.0, "biases": "random", "noise": 1.0}
        network = MLP(name="mlp", noise_init=1.0, noise_spread=None, **yaml).build(
            problem, Streams(0)
        )
    with torch.no_grad():
        network.theta.copy_(torch.cat([w.flatten() for w in module.parameters()]))
    return PointEstimate(network.requires_grad_(False))


def half_accuracy_eps(network: nn.Sequential, x: Tensor, y: Tensor) -> float:
    """The smallest ε of a grid at which at most half of the images withstand the attack."""
    for eps in np.arange(0.01, 0.5, 0.01).tolist():
        if (
            float((network(ours(network, eps, stop=True)(x, y)).argmax(1) == y).double().mean())
            <= 0.5
        ):
            return eps
    raise AssertionError("no size breaks half of the images")


def ours(network: nn.Sequential, eps: float, stop: bool, precision: Precision = "full") -> Attack:
    ascent = Ascent("linf", STEPS, ALPHA, stop_when_broken=stop, precision=precision)
    victim = Attacked(ours_of(network), (0.0, 1.0))
    return lambda x, y: ascend(victim, x, y[:, None], torch.Generator(), eps, ascent)


def peers(network: nn.Module, eps: float, batch: int) -> dict[str, Attack]:
    """The same attack by each library; labels are classes [B]."""
    with peer_imports():
        import foolbox
        import torchattacks
        from art.attacks.evasion import ProjectedGradientDescent
        from art.estimators.classification import PyTorchClassifier

    theirs = torchattacks.PGD(network, eps=eps, alpha=ALPHA * eps, steps=STEPS, random_start=False)
    model = foolbox.PyTorchModel(network, bounds=(0, 1), device="cpu")
    linf = foolbox.attacks.LinfPGD(rel_stepsize=ALPHA, steps=STEPS, random_start=False)
    classifier = PyTorchClassifier(
        network,
        nn.CrossEntropyLoss(),
        input_shape=(784,),
        nb_classes=10,
        clip_values=(0.0, 1.0),
        device_type="cpu",
    )
    art = ProjectedGradientDescent(
        classifier,
        norm=np.inf,
        eps=eps,
        eps_step=ALPHA * eps,
        max_iter=STEPS,
        batch_size=batch,
        verbose=False,
    )
    return {
        "torchattacks": theirs,
        "foolbox": lambda x, y: linf(model, x, y, epsilons=eps)[1],
        "ART": lambda x, y: torch.from_numpy(art.generate(x.numpy(), y=y.numpy())),
    }


def assert_equal(name: str, network: nn.Module, y: Tensor, mine: Tensor, other: Tensor) -> None:
    """Robust accuracies within half a point, and images that differ in few pixels (where a
    gradient's sign is rounding)."""
    accuracy = [float((network(z).argmax(1) == y).double().mean()) for z in (mine, other)]
    differing = float(((mine - other).abs() > 1e-5).double().mean())
    print(
        f"{name:13s} robust accuracy {accuracy[0]:.4f}, ours, and {accuracy[1]:.4f}; {differing:.2%} of pixels differ"
    )
    assert abs(accuracy[0] - accuracy[1]) <= 0.005, name
    assert differing < 0.02, name


def clocked(attack: Attack, x: Tensor, y: Tensor) -> float:
    start = time.process_time()
    attack(x, y)
    return time.process_time() - start


def timed(attacks: dict[str, Attack], x: Tensor, y: Tensor, repeats: int) -> dict[str, np.ndarray]:
    """Seconds of each attack, in an order that changes from round to round; a round to warm up is
    left out."""
    times: dict[str, list[float]] = {name: [] for name in attacks}
    for repeat in range(repeats + 1):
        for name in np.random.default_rng(repeat).permutation(list(attacks)):
            seconds = clocked(attacks[name], x, y)
            if repeat:
                times[name].append(seconds)
    return {name: np.array(values) for name, values in times.items()}


def assert_rounding_harmless(
    network: nn.Module, attacks: Sequence[Attack], generator: torch.Generator
) -> None:
    """Robust accuracies by gradients in full and in half precision, judged in full, within half a
    point: where one image in a hundred ends otherwise, three standard errors of their difference on
    so many images (of 500 it is one)."""
    x, y = data(5000, generator)
    full_accuracy, rounded = (
        float((network(attack(x, y)).argmax(1) == y).double().mean()) for attack in attacks
    )
    print(
        f"bfloat16: robust accuracy, in full precision, {rounded:.4f}, of gradients in full precision {full_accuracy:.4f}"
    )
    assert abs(rounded - full_accuracy) <= 0.005, "rounded gradients weaken the attack"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--images", type=int, default=500, help="attacked at once")
    parser.add_argument("--repeats", type=int, default=7, help="timed attacks of each")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    generator = torch.Generator().manual_seed(0)
    summaries: dict[str, list[float]] = {}
    goals = GOALS
    if not multiplies("bfloat16"):
        print("bfloat16: left out, this CPU has no products of such numbers")
        goals = {case: goal for case, goal in GOALS.items() if ROUNDED not in case}
    for name, network in networks(generator).items():
        x, y = data(arguments.images, generator)
        eps = half_accuracy_eps(network, x[:100], y[:100])
        attacks = {
            "ours": ours(network, eps, stop=True),
            f"ours{WHOLE}": ours(network, eps, stop=False),
        }
        if multiplies("bfloat16"):
            attacks["ours, bfloat16"] = ours(network, eps, stop=False, precision="bfloat16")
        attacks |= peers(network, eps, len(x))
        print(f"{name}, ε = {eps:.2f}")
        found_by = {attack: run(x, y) for attack, run in attacks.items()}
        for peer in PEERS:
            assert_equal(peer, network, y, found_by[f"ours{WHOLE}"], found_by[peer])
        robust_accuracy = {
            attack: float((network(z).argmax(1) == y).double().mean())
            for attack, z in found_by.items()
        }
        assert robust_accuracy["ours"] <= robust_accuracy[f"ours{WHOLE}"], (
            "stopping early weakens the attack"
        )
        assert robust_accuracy["ours"] >= robust_accuracy[f"ours{WHOLE}"] - 0.02, (
            "the attack that goes on walks out again"
        )
        times = timed(attacks, x, y, arguments.repeats)
        print(
            "   ".join(
                f"{n} {len(x) / float(np.median(t)):,.0f} images/s" for n, t in times.items()
            )
        )
        for suffix in ("", WHOLE):
            for peer in PEERS:
                ratios = times[peer] / times[f"ours{suffix}"]
                summaries[f"{name}, {peer}{suffix}"] = np.quantile(
                    ratios, (0.5, 0.25, 0.75)
                ).tolist()
        if multiplies("bfloat16"):
            assert_rounding_harmless(
                network, [attacks[f"ours{WHOLE}"], attacks["ours, bfloat16"]], generator
            )
            ratios = times[f"ours{WHOLE}"] / times["ours, bfloat16"]
            summaries[f"{name}{ROUNDED}"] = np.quantile(ratios, (0.5, 0.25, 0.75)).tolist()
    report = {
        "benchmark": "attacks",
        "peer": "torchattacks 3.5, foolbox 3.3, ART 1.20",
        "ratios": summaries,
        "goals": goals,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
