"""Trained networks shared by attack libraries, and the libraries' PGD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from components.attackers.criteria import SPREAD
from components.contracts.problems import Batch
from components.posteriors.point_estimate import PointEstimate
from components.problems.supervised import Supervised
from runner.execution.rng import Streams
from scripts.benchmarks.workloads import component
from scripts.peers.installed import peer_imports

# α / ε
STEPS = 40
ALPHA = 2.5 / 40


# channels of the convolutional network
CHANNELS = (16, 32)
KERNEL = 5


Attack = Callable[[Tensor, Tensor], Tensor]


class Normalised(nn.Module):
    """Standardisation (x − m)/s, as inside our model ``cnn``."""

    def __init__(self, x: Tensor):
        super().__init__()
        self.seen = x
        self.mean = float(x.mean())
        self.std = float(x.std(correction=0))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


def draw_images(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images [n, 784] around ten prototypes, and their classes [n]."""
    prototypes = torch.rand(10, 784, generator=torch.Generator().manual_seed(1))
    y = torch.randint(10, (n,), generator=generator)
    return (0.3 * prototypes[y] + 0.7 * torch.rand(n, 784, generator=generator)).clamp(0, 1), y


def train_networks(generator: torch.Generator) -> dict[str, nn.Sequential]:
    """Train both networks for a few steps, with logits that no attack rescales."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        mlp = nn.Sequential(
            nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 10)
        )
        x, y = draw_images(1000, generator)
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
        _bring_logits_together(network, x)
    return {"MLP": mlp.eval(), "CNN": cnn.eval()}


@torch.no_grad()
def _bring_logits_together(network: nn.Sequential, x: Tensor) -> None:
    """Scale the last layer so that logits lie within half of ``SPREAD``, without changing decisions.

    Our attacks rescale logits that are further apart, while other libraries do not."""
    logits = network(x)
    factor = 0.5 * SPREAD / float((logits.amax(1) - logits.amin(1)).amax())
    for weights in network[-1].parameters():
        weights.mul_(factor)


def build_ours(module: nn.Sequential) -> PointEstimate:
    """Our frozen model with the same weights, for attacks on rows x [B, 784]."""
    images = isinstance(module[0], Normalised)
    x = module[0].seen if images else torch.zeros(1, 784)
    y = torch.zeros(len(x), 1, dtype=torch.long)
    train = Batch(x, y, torch.ones_like(y, dtype=torch.bool), 1.0)
    shape = {"n_classes": 10, "image_shape": (28, 28)}
    problem = Supervised("images", "classes", train, train, None, **shape)
    keys: dict[str, Any] = {"widths": [400, 400]}
    if images:
        keys = {
            "channels": list(CHANNELS),
            "kernel": KERNEL,
            "downsampling": "stride",
            "widths": [],
        }
    model = component("model", "cnn" if images else "mlp", **keys)
    network = model.build(problem, Streams(0))
    with torch.no_grad():
        network.theta.copy_(torch.cat([w.flatten() for w in module.parameters()]))
    return PointEstimate(network.requires_grad_(False))


def build_peers(network: nn.Module, eps: float, batch: int) -> dict[str, Attack]:
    """The same attack in each library; labels are classes [B]."""
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
