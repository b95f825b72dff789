"""Which GPU each run of a study sees: those with device=cuda share out the machine's, ``per_gpu``
runs to each."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

VISIBLE_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible() -> list[str]:
    """The GPUs of this machine that we may use, as CUDA names them."""
    value = os.environ.get(VISIBLE_GPUS_VARIABLE)
    if value is not None:
        return [name.strip() for name in value.split(",") if name.strip()]
    import torch  # seconds, and only where a run wants a GPU

    return [str(number) for number in range(torch.cuda.device_count())]


class GpuSlots:
    """Places for runs; a run with device=cuda takes one, a run that names its GPU (cuda:1) or needs
    none takes none."""

    def __init__(self, per_gpu: int = 1, names: list[str] | None = None):
        self.per_gpu = per_gpu
        self._names = names
        self.taken: Counter[str] = Counter()

    @property
    def names(self) -> list[str]:
        if self._names is None:
            self._names = visible()
        return self._names

    def _wants_gpu(self, config: dict[str, Any]) -> bool:
        return config.get("device") == "cuda" and bool(self.names)

    def free(self, config: dict[str, Any]) -> bool:
        """True if a run can start now."""
        return (
            not self._wants_gpu(config)
            or min(self.taken[name] for name in self.names) < self.per_gpu
        )

    def take(self, config: dict[str, Any]) -> dict[str, str]:
        """The variable that shows a run its GPU, the one with the fewest runs; empty where it takes
        none."""
        if not self._wants_gpu(config):
            return {}
        name = min(self.names, key=lambda name: self.taken[name])
        self.taken[name] += 1
        return {VISIBLE_GPUS_VARIABLE: name}

    def give(self, taken: dict[str, str]) -> None:
        """A run has ended."""
        for name in taken.values():
            self.taken[name] -= 1
