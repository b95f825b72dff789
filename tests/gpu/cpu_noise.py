"""Random numbers of the CPU on any device, so that runs on a GPU and on the CPU have the same draws
and can be compared.

From the same seed, the stream of a GPU produces other numbers than the CPU's. Here all generators
belong to the CPU: a torch function that takes one and creates a tensor on another device draws on
the CPU and copies the draw to the device.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from runner.execution.rng import Streams

CPU = torch.device("cpu")


# functions with which layers of other packages draw from the global stream
GLOBAL = {"randn", "rand", "randn_like", "rand_like", "normal_", "uniform_", "dropout"}


class CpuStreams(Streams):
    """The streams of a run on a device, with generators of the CPU."""

    def __init__(self, seed: int, replicate: int = 0, device: str | torch.device = "cpu"):
        super().__init__(seed, replicate, CPU)
        self.device = torch.device(device)

    def at(self, stream: str, index: int) -> torch.Generator:
        return Streams(self.seed, self.replicate, CPU).at(stream, index)


class CpuGenerator(torch.Generator):
    """Replacement for ``torch.Generator``, for components that create a generator on the device of
    their tensors."""

    def __new__(cls, device: str | torch.device = "cpu") -> CpuGenerator:
        return super().__new__(cls, "cpu")

    def __init__(self, device: str | torch.device = "cpu") -> None:
        super().__init__()


class CpuNoise(TorchFunctionMode):
    """Draws with a generator of the CPU on the CPU, and copies the result to the requested
    device."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        drawn_from = [v for v in (*args, *kwargs.values()) if isinstance(v, torch.Generator)]
        tensors = [v for v in (*args, *kwargs.values()) if isinstance(v, Tensor)]
        asked = kwargs.get("device")
        where = torch.device(asked) if asked is not None else tensors[0].device if tensors else CPU
        from_global = (
            not drawn_from and getattr(func, "__name__", "") in GLOBAL and where.type != "meta"
        )
        if (
            not (drawn_from or from_global)
            or (drawn_from and drawn_from[0].device != CPU)
            or where == CPU
            or func is torch.Generator.manual_seed
        ):
            return func(*args, **kwargs)
        if asked is not None:
            kwargs["device"] = CPU
        name = func.__name__
        # in-place functions: normal_, uniform_
        if name.endswith("_") and not name.endswith("__") and not name.startswith("_"):
            result = func(_here(args[0]), *args[1:], **kwargs)
            return args[0].copy_(result)
        result = func(*(_here(v) for v in args), **{k: _here(v) for k, v in kwargs.items()})
        return result.to(where)


def _here(value: Any) -> Any:
    """A tensor on the CPU; one without numbers (meta) as zeros of its shape."""
    if not isinstance(value, Tensor):
        return value
    return torch.zeros(value.shape, dtype=value.dtype) if value.is_meta else value.to(CPU)
