"""Convolution with stride above 1, with its image gradient also computed as a convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.grad import conv2d_weight


class _Strided(torch.autograd.Function):
    """h = W ∗ x, with ∂/∂x by ``to_image`` in the backward pass.

    On a CPU with few channels this takes half of the time of the library's gradient, which is
    optimised for stride 1.  Gradients in W and b are the library's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernels: Tensor, bias: Tensor, stride: int) -> Tensor:
        ctx.save_for_backward(x, kernels)
        ctx.stride = stride
        return F.conv2d(
            x, _channels_last(kernels), bias, stride=stride, padding=kernels.shape[-1] // 2
        )

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (g,), (x, kernels) = gradients, ctx.saved_tensors
        stride = ctx.stride
        padding = kernels.shape[-1] // 2
        to_image = to_kernels = to_bias = None
        if ctx.needs_input_grad[0]:
            to_image = image_gradient(g, kernels, x.shape[-2:], stride)
        if ctx.needs_input_grad[1]:
            to_kernels = conv2d_weight(x, kernels.shape, g, stride=stride, padding=padding)
        if ctx.needs_input_grad[2]:
            to_bias = g.sum((0, 2, 3))
        return to_image, to_kernels, to_bias, None


def convolve(x: Tensor, kernels: Tensor, bias: Tensor, stride: int) -> Tensor:
    """W ∗ x + b at every ``stride``-th pixel, with zero padding: x [B, in, H, W], W [out, in, k, k]
    -> [B, out, ⌈H/s⌉, ⌈W/s⌉]."""
    if stride > 1 and x.device.type == "cpu":
        return _Strided.apply(x, kernels, bias, stride)
    return F.conv2d(x, kernels, bias, stride=stride, padding=kernels.shape[-1] // 2)


def image_gradient(g: Tensor, kernels: Tensor, size: Sequence[int], stride: int) -> Tensor:
    """Gradient ∂/∂x [B, in, H, W] of h = W ∗ x for ∂/∂h = g [B, out, H', W'].

    ``size`` = (H, W). x_{s q + r} contributes to h_{q + d} through W_u, u = r + p − s d, for 0 ≤ u
    < k: each of the s² phases r of the image is an ordinary convolution of the small g. All phases
    are computed as one convolution, and its channels are then rearranged to pixels.

    Source: Shi et al. (2016), section 3.2 (sub-pixel convolution).
    """
    inside, k = kernels.shape[1:3]
    p = k // 2
    first = -((k - 1 - p) // stride)
    last = (stride - 1 + p) // stride  # of d
    m = last - first + 1
    pad_before = stride * last - p  # zero rows: W_u for u < 0
    pad_after = stride * m - pad_before - k
    # u = r + p − s d rises with r and falls with d
    taps = F.pad(kernels, (pad_before, pad_after, pad_before, pad_after))
    taps = taps.unflatten(3, (m, stride)).unflatten(2, (m, stride)).flip(2, 4)
    taps = taps.permute(3, 5, 1, 0, 2, 4).flatten(0, 2)  # [s² · in, out, m, m]
    reach = max(-first, last)
    phases = F.conv2d(g, _channels_last(taps), padding=reach)[..., reach + first :, reach + first :]
    phases = phases[..., : g.shape[-2], : g.shape[-1]].permute(0, 2, 3, 1)  # [B, H', W', s² · in]
    # [B, H', s, W', s, in]
    pixels = phases.unflatten(3, (stride, stride, inside)).permute(0, 1, 3, 2, 4, 5)
    return pixels.flatten(3, 4).flatten(1, 2)[:, : size[0], : size[1]].permute(0, 3, 1, 2)


def _channels_last(weight: Tensor) -> Tensor:
    """W [out, in, k, k] in channels-last memory layout, which W ∗ x inherits.

    Vector products read this layout; ``contiguous`` does not change a single channel, nor h."""
    out, inside, k, _ = weight.shape
    return weight.permute(0, 2, 3, 1).reshape(out, -1).view(out, k, k, inside).permute(0, 3, 1, 2)
