"""Arithmetic that rounds as PyTorch's does on the CPU, so that compiled loops give the tensors'
numbers bit by bit.

Every function names its twin.  Numbers keep the type of their arrays: no number written here may
widen a float32."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from components.maths.compiled.loops import Array, compile_loop

# PyTorch sums this many numbers in the same order on every machine; more take vector instructions
# in an order of their own
FEW = 5


def fma(a: float, b: float, c: float) -> float:
    """ab + c, rounded once; where it is compiled, by ``_register_fma``."""
    return a * b + c


@cache
def _register_fma() -> None:
    """Tells the compiler what ``fma`` is."""
    from numba.extending import intrinsic, overload

    def multiply_add(typing, a, b, c):  # type: ignore[no-untyped-def]
        return a(a, a, a), lambda context, builder, signature, arguments: builder.fma(*arguments)

    fused_multiply = intrinsic(multiply_add)

    @overload(fma)
    def _fma(a, b, c):  # type: ignore[no-untyped-def]
        return lambda a, b, c: fused_multiply(a, b, c)  # type: ignore[call-arg]


@cache
def room():  # type: ignore[no-untyped-def]
    """A function of loops: room for a few numbers of the type of another array, on the stack,
    whence they go to registers."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def few(typing, like):  # type: ignore[no-untyped-def]
        kind = types.Array(like.dtype, 1, "C")

        def generate_few(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            number = context.get_data_type(like.dtype)
            storage = cgutils.alloca_once(builder, ir.ArrayType(number, FEW))
            size = context.get_constant(types.intp, context.get_abi_sizeof(number))
            array = context.make_array(kind)(context, builder)
            shape = [context.get_constant(types.intp, FEW)]
            start = builder.bitcast(storage, number.as_pointer())
            context.populate_array(
                array, data=start, shape=shape, strides=[size], itemsize=size, meminfo=None
            )
            return array._getvalue()

        return kind(like), generate_few

    return intrinsic(few)


def weight(alpha: float, dtype: type[np.floating]) -> np.floating:
    """w, or w − 1 where ``torch.lerp`` steps back from the end."""
    w = dtype(alpha)
    return w if w < 0.5 else w - dtype(1)


def lerp(start: float, end: float, step: float) -> float:
    """``torch.lerp``: (1 − w) start + w end; ``step`` is ``weight`` of w."""
    return fma(step, end - start, start if step > 0 else end)


def sum_slice(x: Array, at: int, n: int) -> float:
    """``x[at : at + n].sum(-1)``, n ≤ 5."""
    total = x[at]
    if n == FEW:
        total += x[at + 4]
    for i in range(1, min(n, 4)):
        total += x[at + i]
    return total


def inverse_cdf(p: Array, at: int, n: int, u: float, edge: Array) -> int:
    """``draw_action`` of ``components.maths.policies``: an action from its probabilities p[at : at
    + n]; ``edge`` [1] is room for a sum in their type, which ``cumsum`` takes in float64."""
    reached = 0.0
    action = 0
    for i in range(n - 1):
        reached += p[at + i]
        edge[0] = reached
        if u >= edge[0]:
            action += 1
    return action


parts = (lerp, sum_slice, inverse_cdf)  # types and functions that loops use


def loop(function, more=()):  # type: ignore[no-untyped-def]
    """A loop that calls these functions, and more, compiled.

    Raises:
        ImportError: numba is not installed.
    """
    _register_fma()
    return compile_loop(function, [*parts, *more], inline=True)


def _compare_rounding(
    x: Array, flat: Array, step: float, u: Array, edge: Array, found: Array
) -> None:
    """Fill ``found`` with the results that ``is_rounding_identical`` compares."""
    for i in range(len(x)):
        found[i, 0] = lerp(x[i, 0], x[i, 1], step)
        found[i, 1] = fma(x[i, 0], step, x[i, 1])
        found[i, 2] = inverse_cdf(flat, i * FEW, FEW, u[i], edge)
        for n in range(1, FEW + 1):
            found[i, 2 + n] = sum_slice(flat, i * FEW, n)


@cache
def is_rounding_identical(dtype: torch.dtype) -> bool:
    """True if this build of PyTorch, on this machine, rounds as the functions above do.

    The check uses 256 rows of numbers.
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(256, FEW, generator=generator, dtype=dtype)
    u = 2.5 * torch.rand(256, generator=generator, dtype=dtype)
    step = weight(0.3, x.numpy().dtype.type)
    columns = [torch.lerp(x[:, 0], x[:, 1], 0.3), torch.add(x[:, 1], x[:, 0], alpha=0.3)]
    columns.append((u[:, None] >= x.cumsum(-1)[:, :-1]).sum(-1).to(dtype))
    columns += [x[:, :n].contiguous().sum(-1) for n in range(1, FEW + 1)]
    results = torch.empty(256, len(columns), dtype=dtype)
    loop(_compare_rounding)(
        x.numpy(), x.view(-1).numpy(), step, u.numpy(), u[:1].clone().numpy(), results.numpy()
    )
    return torch.equal(results, torch.stack(columns, 1))
