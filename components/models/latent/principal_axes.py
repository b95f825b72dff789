"""Principal axes of rows."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.errors import ConfigMismatchError


class PrincipalAxes(NamedTuple):
    """Mean, first axes and variances along all axes of rows."""

    center: Tensor  # [I]
    directions: Tensor  # orthonormal columns [I, Q]
    variances: Tensor  # eigenvalues of the covariance (1/N), descending [I]


def principal_axes(x: Tensor, n_axes: int, model: str) -> PrincipalAxes:
    """The first axes of rows x [N, I], with signs as on the CPU for any device.

    The signs of axes are arbitrary and differ between libraries: a run on a GPU would start from
    mirrored latent variables.

    Raises:
        ConfigMismatchError: the axes are not fewer than the values of a row.
    """
    if n_axes >= x.shape[1]:
        raise ConfigMismatchError(
            f"model.latent_dim={n_axes}: model={model} requires fewer dimensions than the "
            f"{x.shape[1]} values of a row; lower it"
        )
    center = x.mean(0)
    covariance = (x - center).T @ (x - center) / len(x)
    variances, axes = (part.to(x.device) for part in torch.linalg.eigh(covariance.cpu()))
    variances = variances.flip(0).clamp_min(torch.finfo(x.dtype).tiny)
    return PrincipalAxes(center, axes.flip(1)[:, :n_axes], variances)
