"""VGG: blocks of 3 × 3 convolutions with batch normalisation, each followed by pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from components.contracts.capabilities import BatchNormalised, Network, Penalised
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.models.networks.classifier import Classifier
from components.models.networks.cnn import CNN
from components.models.networks.convolutions import check_images, register_pixel_moments
from components.problems.supervised import Supervised
from components.registry import register

Depth = Literal[7, 11, 13, 16, 19]
# Convolutions of each block; the depth also counts the affine layers of the original (three; one in
# the small net).
BLOCKS: dict[int, tuple[int, ...]] = {
    7: (2, 2, 2),
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
WIDEST = 8  # largest number of channels, as a multiple of the first block's
MOMENTUM = 0.1
EPS = 1e-5  # of running statistics, and of the variance


class VGGNetwork(Classifier):
    """Convolutions, gains and shifts of their normalisations, running statistics as buffers, and
    one affine layer."""

    mean: Tensor
    std: Tensor

    def __init__(self, problem: Supervised, rng: Rng, depth: Depth, width: int, prior_std: float):
        super().__init__(problem, prior_std, dropout=0.0)
        x = problem.train.x
        blocks = BLOCKS[depth]
        self.image = check_images(problem, "vgg")
        colours, height, width_of_image = self.image
        if min(height, width_of_image) >> len(blocks) == 0:
            raise ConfigMismatchError(
                f"model.depth={depth}: {height} × {width_of_image} pixels are too small for "
                f"{len(blocks)} poolings; use model.depth=7"
            )
        self.kernels = nn.ParameterList()
        self.gains = nn.ParameterList()
        self.shifts = nn.ParameterList()
        self.ends: set[int] = set()  # convolutions followed by pooling
        inside = colours
        for block, convolutions in enumerate(blocks):
            out = width * min(2**block, WIDEST)
            for _ in range(convolutions):
                limit = math.sqrt(6 / (9 * inside))  # variance 2/fan_in (He et al. 2015, eq. 10)
                self.kernels.append(self.uniform_parameter((out, inside, 3, 3), limit, rng.init))
                self.gains.append(self.constant(out, 1.0))
                self.shifts.append(self.constant(out, 0.0))
                index = len(self.kernels) - 1
                self.register_buffer(f"running_mean_{index}", x.new_zeros(out))
                self.register_buffer(f"running_var_{index}", x.new_ones(out))
                inside = out
            self.ends.add(len(self.kernels) - 1)
        n_pixels = (height >> len(blocks)) * (width_of_image >> len(blocks))
        self.head = self.affine(self.n_tasks * self.n_classes, inside * n_pixels, rng.init)
        register_pixel_moments(self, x, colours)

    def features(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        return self.convolve(x, MOMENTUM)

    def convolve(self, x: Tensor, momentum: float) -> Tensor:
        """Features [B, F].

        In training, running statistics move by ``momentum`` towards the batch statistics.
        """
        h = (x.unflatten(-1, self.image) - self.mean) / self.std  # [B, colours, H, W]
        running = self.statistics()
        for index, (kernel, gain, shift) in enumerate(
            zip(self.kernels, self.gains, self.shifts, strict=True)
        ):
            h = F.conv2d(h, kernel, padding=1)
            mean, var = running[2 * index : 2 * index + 2]
            h = F.batch_norm(
                h, mean, var, gain, shift, training=self.training, momentum=momentum, eps=EPS
            )
            h = torch.relu(h)
            h = F.max_pool2d(h, 2) if index in self.ends else h
        return h.flatten(1)

    def statistics(self) -> list[Tensor]:
        """Running means and variances in the order of convolutions (the buffers themselves)."""
        buffers = dict(self.named_buffers())
        kinds = ("running_mean", "running_var")
        return [buffers[f"{kind}_{index}"] for index in range(len(self.kernels)) for kind in kinds]

    @torch.no_grad()
    def gather(self, batches: Sequence[Tensor]) -> None:
        """Set the running statistics to the means, over the batches, of each batch's statistics.

        Source: Izmailov et al. (2018), section 3.2 (batch normalisation).
        """
        was = self.training
        self.train()
        for k, x in enumerate(batches):
            self.convolve(x, 1 / (k + 1))  # m ← (1 − 1/(k + 1)) m + m_k/(k + 1)
        self.train(was)


@register("model", "vgg")
class VGG(Model[Supervised, VGGNetwork]):
    """VGG with batch normalisation: blocks of 3 × 3 convolutions, each followed by pooling.

    The number of channels grows from block to block.

        h ← relu(γ (W ∗ h − m)/√(v + 10⁻⁵) + β)
            m, v per channel: batch statistics in training, their running means (momentum 0.1) in
            prediction
        h ← maximum over 2 × 2 after each block,  f = V h + c,
        θ ~ N(0, s²) independently, softmax(f_t)

    h_0 = (x − m_0)/s_0 with mean and standard deviation of each colour over training pixels, so
    that inputs keep the dataset's units. Blocks have 2, 2, 4, 4, 4 convolutions (depth 19) with w,
    2w, 4w, 8w, 8w channels, w = ``width``; depth 7 is a small network with 2, 2, 2. Only the last
    of the original's three affine layers is kept, as is usual for 32 × 32 pixels, because the
    others had 7 × 7 inputs. Running statistics are buffers in checkpoints. x [B, D] -> f [B, T, C].

    Raises:
        ConfigMismatchError: the inputs are not images, or are too small for the poolings.

    Source: Simonyan and Zisserman (2015), Table 1; Ioffe and Szegedy (2015), Algorithms 1
    and 2; Gallego (2021), 1.3.4.
    """

    requires = CNN.requires
    offers = {Network, Penalised, BatchNormalised}  # its dropout is 0

    depth: Depth
    width: PositiveInt
    prior_std: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> VGGNetwork:
        return VGGNetwork(problem, rng, self.depth, self.width, self.prior_std)
