"""Settings of the whole process that code of a user may change and ours relies on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def preserve_settings() -> Iterator[None]:
    """Puts back the present folder, and PyTorch's default dtype, default device and gradient
    mode."""
    folder = _folder()
    before = _torch_settings()
    try:
        yield
    finally:
        if folder is not None and _folder() != folder:
            os.chdir(folder)
        after = _torch_settings()
        if after is not None and after != before:
            _restore_torch(before)


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _torch_settings() -> tuple[Any, Any, bool] | None:
    """Dtype, device and gradient mode; None: PyTorch is not imported."""
    torch = sys.modules.get("torch")
    if torch is None or "get_default_device" not in vars(torch):
        return None
    return torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()


def _restore_torch(before: tuple[Any, Any, bool] | None) -> None:
    """``before`` None: PyTorch's own, since the code that changed them imported it."""
    import torch

    dtype, device, has_gradient = (torch.float32, None, True) if before is None else before
    torch.set_default_dtype(dtype)
    if device is None or torch.get_default_device() != device:
        torch.set_default_device(device)
    torch.set_grad_enabled(has_gradient)
