"""Convolutions in front of a feed-forward network, with weights in its flat vector θ."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from components.contracts.capabilities.networks import Layers
from components.contracts.predictive import Reverse
from components.errors import ConfigMismatchError
from components.models.networks.activations import ACTIVATIONS, Activation, ActivationFunction
from components.models.networks.strided_convolution import convolve, image_gradient
from components.problems.supervised import Supervised

Downsampling = Literal["pool", "stride"]


class ConvolutionSettings(NamedTuple):
    """Sizes of convolutional layers."""

    channels: list[int]  # of each layer
    kernel: int
    downsampling: Downsampling


def check_images(problem: Supervised, model: str) -> tuple[int, ...]:
    """Colours, height and width of the inputs of a problem.

    Raises:
        ConfigMismatchError: the inputs are not images.
    """
    shape = problem.image_shape
    if shape is None:
        raise ConfigMismatchError(
            f"model={model}: the inputs of {problem.name} are not images; choose a dataset of "
            "images (dataset=digits, dataset=mnist, dataset=cifar10) or model=mlp"
        )
    return (1, *shape) if len(shape) == 2 else tuple(shape)


def register_pixel_moments(module: nn.Module, x: Tensor, colours: int) -> None:
    """Buffers ``mean`` and ``std`` [colours, 1, 1] of the pixels of images x [N, D]; std is 1 if
    all are equal."""
    pixels = x.unflatten(1, (colours, -1)).transpose(1, 2).flatten(0, 1)  # [N · H · W, colours]
    spread = pixels.std(0, correction=0)
    module.register_buffer("mean", pixels.mean(0)[:, None, None])
    module.register_buffer("std", torch.where(spread > 0, spread, 1.0)[:, None, None])


class Convolutions(nn.Module):
    """Convolutional layers h_l = pool(a(W_l ∗ h_{l−1} + b_l)) for l = 1 … L.

    h_0 = (x − m)/s is the image, and pool is the maximum over 2 × 2 pixels. m and s are the mean
    and standard deviation of the training pixels of each colour: inputs, and attacks on them, keep
    the dataset's units. Kernels are k × k with zero padding, so that only pooling reduces the size,
    without an odd last row. ``downsampling`` by stride replaces pooling by convolutions with stride
    two: h_l = a(W_l ∗₂ h_{l−1} + b_l), which keeps an odd last row. x [B, D] -> features [B, F].

    Raises:
        ConfigMismatchError: the inputs are not images, or are too small for the poolings.

    Source: LeCun, Bottou, Bengio and Haffner (1998), section II; Springenberg et al.
    (2015), section 2 (stride).
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        problem: Supervised,
        channels: list[int],
        kernel: int,
        downsampling: Downsampling,
        activation: Activation,
    ):
        super().__init__()
        self.image = check_images(problem, "cnn")
        colours, height, width = self.image
        self.stride = 2 if downsampling == "stride" else 1
        if self.stride == 1 and min(height, width) >> len(channels) == 0:
            most = min(height, width).bit_length() - 1
            raise ConfigMismatchError(
                f"model.channels: {height} × {width} pixels are too small for {len(channels)} poolings; use at most {most}"
            )
        self.kernel = kernel
        self.activation_name = activation
        self.activation = ACTIVATIONS[activation]
        self.window = kernel**2
        inside = [colours, *channels[:-1]]
        # (out, in) of each
        self.shapes = [(out, i * self.window) for out, i in zip(channels, inside, strict=True)]
        # strides round halves up, pooling rounds them down
        rounding = 2 ** len(channels) - 1 if self.stride == 2 else 0
        self.features = (
            channels[-1]
            * ((height + rounding) >> len(channels))
            * ((width + rounding) >> len(channels))
        )
        register_pixel_moments(self, problem.train.x, colours)

    def forward(self, x: Tensor, layers: Layers) -> Tensor:
        """Features of one network [B, F] for x [B, D]; of K networks [K, B, F], also for separate x
        [K, B, D]."""
        if layers[0][0].ndim == 2:
            return self._one(x, layers)
        # One network after the other: the backward pass of grouped convolutions is slower.
        each = x.unbind() if x.ndim == 3 else [x] * len(layers[0][0])
        return torch.stack(
            [self._one(x_k, [(w[k], b[k]) for w, b in layers]) for k, x_k in enumerate(each)]
        )

    def _one(self, x: Tensor, layers: Layers) -> Tensor:
        h = self._standardise(x)
        for layer, (weight, bias) in enumerate(layers, 1):
            z = convolve(h, self._kernels(weight), bias, self.stride)
            # Features are ordered by channel: this layout gives the activation sequential memory
            # access, forward and backward.
            h = self.activation(z.contiguous() if layer == len(layers) else z)
            h = F.max_pool2d(h, 2) if self.stride == 1 else h
        return h.flatten(1)

    def _standardise(self, x: Tensor) -> Tensor:
        return (x.unflatten(-1, self.image) - self.mean) / self.std  # [B, colours, H, W]

    def _kernels(self, weight: Tensor) -> Tensor:
        return weight.unflatten(-1, (-1, self.kernel, self.kernel))

    # Backward pass to the inputs, without a graph
    def is_reversible(self, x: Tensor) -> bool:
        """True if ``reverse`` is faster than autograd: stride two, on a CPU."""
        return self.stride > 1 and x.device.type == "cpu"

    def reverse(
        self, x: Tensor, layers: Layers, bend: ActivationFunction
    ) -> tuple[Tensor, Reverse]:
        """Features of one network [B, F] in pixel order (``by_pixel``), and a function from their
        derivative to ∂/∂x [B, D], callable once because it overwrites its inputs."""
        h = self._standardise(x)
        kept = []
        sizes = []
        for weight, bias in layers:
            sizes.append(h.shape[-2:])
            z = convolve(h, self._kernels(weight), bias, self.stride)
            h = bend.value(z)
            kept.append(z if bend.keeps else h)
        pixels = h.permute(0, 2, 3, 1)  # [B, H', W', channels], the memory layout

        def back(g: Tensor) -> Tensor:
            g = g.view(pixels.shape).permute(0, 3, 1, 2)
            for (weight, _), size, stored in zip(
                reversed(layers), reversed(sizes), reversed(kept), strict=True
            ):
                g = bend.derivative(g, stored, g)
                g = image_gradient(g, self._kernels(weight), size, self.stride)
            return (g / self.std).flatten(1)

        return pixels.flatten(1), back

    def by_pixel(self, weight: Tensor) -> Tensor:
        """W [out, F] for features in channel order -> W for features in pixel order."""
        channels = self.shapes[-1][0]
        return weight.unflatten(1, (channels, -1)).mT.flatten(1)
