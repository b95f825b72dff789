"""Affine maps of float32 numbers by oneDNN, which generates code for the processor.

torch multiplies float32 matrices with MKL, which uses AVX-512 only on Intel processors and takes
twice as long as oneDNN on an AMD EPYC with AVX-512.  Without AVX-512 oneDNN is slower.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional as F
from torch.overrides import has_torch_function

WIDE_LOOPS = "AVX512"


def _is_faster() -> bool:
    """True if oneDNN is available and may use AVX-512, which no environment variable disables."""
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA") or WIDE_LOOPS
    return (
        torch.backends.mkldnn.is_available()
        and torch.backends.cpu.get_cpu_capability() == WIDE_LOOPS
        and limit.upper().startswith((WIDE_LOOPS, "AVX10", "ALL", "DEFAULT"))
    )


IS_FASTER = _is_faster()  # decided once in a process, so that a run and its resumption agree
# minimum multiplications; for fewer, the overhead of oneDNN exceeds the gain
LEAST = 2**21
LEAST_WITH_GRADIENT = 2**22  # the same with autograd


def _takes(x: Tensor, weight: Tensor, least: int) -> bool:
    """True if oneDNN is used for these tensors."""
    return (
        not has_torch_function((x, weight))  # tensor subclasses have their own rules
        and x.dtype == weight.dtype == torch.float32
        and x.numel() * len(weight) >= least
        and x.device.type == "cpu"
        and IS_FASTER
        # vmap and forward-mode differentiation support only torch's own operations
        and not torch._C._are_functorch_transforms_active()
        and forward_ad._current_level < 0
    )


def _multiply(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    # oneDNN reads b as contiguous regardless of its strides
    bias = None if bias is None else bias.contiguous()
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product


def _is_asked_for(ctx: Any, i: int) -> bool:
    """True if this backward pass continues to the i-th argument, which ``needs_input_grad`` does
    not show."""
    if not ctx.needs_input_grad[i]:
        return False
    try:
        goes_on: bool = torch._C._will_engine_execute_node(ctx.next_functions[i][0])
    except RuntimeError:  # a leaf requested from torch.autograd.grad
        return True
    return goes_on


class _Affine(torch.autograd.Function):
    """x Wᵀ + b with derivatives of any order: ∂/∂x = G W, ∂/∂W = Gᵀ x, ∂/∂b = Gᵀ 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _multiply(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = slopes
        x, weight = ctx.saved_tensors
        by_x, by_weight, by_bias = (_is_asked_for(ctx, i) for i in range(3))
        rows = g.reshape(-1, g.shape[-1])  # [B, H]
        return (
            affine(g, weight.T) if by_x else None,
            affine(rows.T, x.reshape(-1, x.shape[-1]).T) if by_weight else None,
            rows.sum(0) if by_bias else None,
        )


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b, x [..., D], W [H, D] of any strides, b [H] -> [..., H].

    Computed by oneDNN for float32 on the CPU, otherwise by torch; they differ by rounding.
    """
    asked = torch.is_grad_enabled() and (
        x.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    )
    if not _takes(x, weight, LEAST_WITH_GRADIENT if asked else LEAST):
        return F.linear(x, weight, bias)
    if not asked:
        return _multiply(x, weight, bias)
    result: Tensor = _Affine.apply(x, weight, bias)
    return result
