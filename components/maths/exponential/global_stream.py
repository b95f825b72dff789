"""PyTorch's global random streams, used by layers of other packages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def keep_global_streams(device: torch.device, enabled: bool = True) -> Iterator[None]:
    """Restore the global streams of the CPU and of a device at the end.

    Args:
        device: device of the draws.
        enabled: False to do nothing.
    """
    if device.type == "cpu":
        with torch.random.fork_rng([], enabled=enabled):
            yield
    else:
        with torch.random.fork_rng([device.index or 0], enabled=enabled, device_type=device.type):
            yield
