"""Settings of the process that a user's code may change and the runner relies on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def preserve_settings() -> Iterator[None]:
    """Restore the working directory, and PyTorch's default dtype, default device and gradient
    mode."""
    folder = _folder()
    settings = _torch_settings()
    try:
        yield
    finally:
        if folder is not None and _folder() != folder:
            os.chdir(folder)
        after = _torch_settings()
        if after is not None and after != settings:
            _restore_torch(settings)


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # the directory was removed
        return None


def _torch_settings() -> tuple[Any, Any, bool] | None:
    """Dtype, device and gradient mode; None if PyTorch is not imported."""
    torch = sys.modules.get("torch")
    if torch is None or "get_default_device" not in vars(torch):
        return None
    return torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()


def _restore_torch(before: tuple[Any, Any, bool] | None) -> None:
    """Restore the settings, or PyTorch's defaults if user code imported it (``before`` is None)."""
    import torch

    dtype, device, has_gradient = (torch.float32, None, True) if before is None else before
    torch.set_default_dtype(dtype)
    if device is None or torch.get_default_device() != device:
        torch.set_default_device(device)
    torch.set_grad_enabled(has_gradient)
