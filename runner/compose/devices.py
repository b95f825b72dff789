"""Devices that a run can be on: their names, and what is asked of this machine's."""

from __future__ import annotations

import re

from runner.errors import ConfigError

# PyTorch's names of kinds of accelerators: NVIDIA's and AMD's, Apple's, Intel's.
ACCELERATORS = ["cuda", "mps", "xpu"]


def validate_device(device: str) -> str:
    """Device name, validated; torch is not needed for it.

    Raises:
        ValueError: it does not name a device.
    """
    if not re.fullmatch(rf"cpu|({'|'.join(ACCELERATORS)})(:\d+)?", device):
        raise ValueError(
            f"device={device}: must be cpu, {', '.join(ACCELERATORS)}, or one of several GPUs (cuda:0, cuda:1, …)"
        )
    return device


def check_device(device: str, dtype: str) -> None:
    """Refuse a device that this machine does not have, and a dtype that the device does not have.

    Args:
        device: name, validated.
        dtype: float32 or float64.

    Raises:
        ConfigError: naming the key.
    """
    if device == "cpu":
        return
    import torch

    kind, _, number = device.partition(":")
    module = torch.get_device_module(kind)
    if not module.is_available():
        raise ConfigError(
            f"device={device}: no GPU was found; use device=cpu (runner doctor tells more)"
        )
    count = module.device_count()
    if number and int(number) >= count:
        raise ConfigError(
            f"device={device}: this machine has {count} of them, counted from 0; use {kind}:{count - 1} or lower"
        )
    try:
        torch.zeros((), dtype=vars(torch)[dtype], device=device)
    except TypeError:
        raise ConfigError(
            f"dtype={dtype}: device={device} has no {dtype}; use dtype=float32"
        ) from None


def missing_float64_message(error: BaseException, device: str) -> str | None:
    """Message for an error of a device that has no float64; None for any other error.

    Some methods compute in float64 at any ``dtype``: cumulative weights of particles, say.
    """
    if device == "cpu" or not isinstance(error, TypeError) or "float64" not in str(error):
        return None
    return f"device={device}: has no float64, in which these components compute at any dtype; use device=cpu"


def device_name(device: str) -> str:
    """What the maker calls an accelerator, "NVIDIA H100" say; its name in torch, if torch has no
    other."""
    import torch

    module = torch.get_device_module(device.partition(":")[0])
    read_name = vars(module).get("get_device_name")
    return device if read_name is None else str(read_name(device))
