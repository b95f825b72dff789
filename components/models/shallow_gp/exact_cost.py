"""Cost of an exact Gaussian process, estimated in advance.

Memory is ∝ N², time ∝ N³ in the labels of a group.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from components.errors import ConfigMismatchError, HighCostWarning
from components.memory import GIB, room_for
from components.models.shallow_gp.labels import Labels

# [G, n, n] matrices at the peak of three bounds with their gradients, in a process that keeps what
# it frees: 8.8 of one
# group of 4,000, 9.9 to 10.9 of seven of 2,000 (κ, its slope, K with and without the mask, the
# factor, the inverse, …).
MATRICES = 11
PROBE = 1_000  # labels of a group from which time is measured
MIN_PROBE_OPERATIONS = 2e10  # G n³ from which on a step takes about a second
LONG = 2.0  # seconds of a bound and its gradient from which on they are reported


def _matrix_bytes(labels: Labels) -> float:
    """Bytes of the matrices of a step."""
    return MATRICES * labels.mask.numel() * labels.mask.shape[-1] * labels.x.element_size()


def _of(labels: Labels) -> str:
    groups, n = labels.mask.shape
    shape = f"{n:,} × {n:,}"
    return f"exact on {labels.total:,} labels, matrices of {shape if groups == 1 else f'{groups} × {shape}'}"


def raise_if_too_large(
    labels: Labels, key: str, instead: str, by_task: Labels | None = None
) -> None:
    """To be called before any of its matrices is made; ``by_task``: the same labels as
    ``model.top=independent`` has them.

    Raises:
        ConfigMismatchError: they would not fit in the memory that is free; the message says
            what would."""
    size = _matrix_bytes(labels)
    room = room_for(labels.x.device)
    if room is None or size <= room:
        return
    mends = [instead]
    if by_task is not None and _matrix_bytes(by_task) <= room:
        mends.append(f"model.top=independent ({_matrix_bytes(by_task) / GIB:,.1f} GiB)")
    if labels.x.element_size() == 8 and size / 2 <= room:
        mends.append(f"dtype=float32 ({size / 2 / GIB:,.1f} GiB)")
    raise ConfigMismatchError(
        f"{key}: {_of(labels)}, takes {size / GIB:,.1f} GiB and {room / GIB:,.1f} are free; use "
        f"{', '.join(mends)} or fewer training rows"
    )


def _seconds(work: Callable[[], Tensor]) -> float:
    """Duration of the second of two calls, including the wait for its result."""
    for _ in range(2):
        began = time.perf_counter()
        work().item()
    return time.perf_counter() - began


def estimate_seconds(module: nn.Module, labels: Labels, bound: Callable[[Labels], Tensor]) -> float:
    """Estimated seconds for one bound of these labels and its gradient.

    The estimate extrapolates the time for ``PROBE`` labels of each group:
    t(n) ≈ c(p) (n/p)³ + (t(p) − c(p)) (n/p)². c(p) is the time of a Cholesky factor and an
    inverse; the rest is the time of the kernel's entries.
    """
    groups, n = labels.mask.shape
    p = min(n, PROBE)
    few = Labels(labels.x[:, :p], labels.y[:, :p], labels.task[:, :p], labels.mask[:, :p])
    A = (torch.eye(p) + 0.1).to(labels.x).expand(groups, p, p)

    def factorise() -> Tensor:
        return torch.cholesky_inverse(torch.linalg.cholesky(A)).sum()

    def whole() -> Tensor:
        gradients = torch.autograd.grad(bound(few), list(module.parameters()), allow_unused=True)
        return torch.stack([g.sum() for g in gradients if g is not None]).sum()

    cubic = _seconds(factorise)
    all_of_it = _seconds(whole)
    return cubic * (n / p) ** 3 + max(all_of_it - cubic, 0.0) * (n / p) ** 2


def warn_if_costly(
    module: nn.Module, labels: Labels, bound: Callable[[Labels], Tensor], key: str, instead: str
) -> None:
    """Warns (``HighCostWarning``) where a bound and its gradient take ``LONG`` or more, or over
    half of the memory that is free.

    Time is taken on few of the labels, which draws nothing; where N is small nothing is done at
    all."""
    groups, n = labels.mask.shape
    if groups * n**3 < MIN_PROBE_OPERATIONS:
        return
    size = _matrix_bytes(labels)
    room = room_for(labels.x.device)
    seconds = estimate_seconds(module, labels, bound)
    if seconds < LONG and (room is None or 2 * size < room):
        return
    free = "" if room is None else f" ({room / GIB:,.1f} are free)"
    long = f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / 60:,.0f} minutes"
    warnings.warn(
        f"{key}: {_of(labels)}: each bound with its gradient takes about {long} here and {size / GIB:,.1f} GiB{free}, as "
        f"time grows with N³ and memory with N²; {instead} learns by minibatches",
        HighCostWarning,
        stacklevel=1,  # from this file: the runner shows warnings of components
    )
