"""Examination of a network's gradients with respect to its parameters and inputs."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from components.contracts.attackers import Attacker, Evasion
from components.errors import ConfigMismatchError
from components.maths.exponential.standard_draws import normal_like
from components.models.own.examination import JITTERS, PROBE_SCALE, NetworkOutputsFn, is_close


def training_fault(
    answer: NetworkOutputsFn, theta: Tensor, x: Tensor, pieces: Mapping[str, int]
) -> str | None:
    """Reason why the outputs cannot be trained, or None.

    Either the gradient in the parameters is not finite at the start of training, or zero
    everywhere, or zero for a parameter that affects the outputs, which would only follow its prior.

    Args:
        pieces: number of elements of each parameter in θ, in order.
    """
    nothing = (
        "its outputs are not differentiable in its parameters, so training has no effect; remove "
        "torch.no_grad, detach and rounding from forward, or use inference=fixed"
    )
    generator = torch.Generator().manual_seed(0)
    for scale in (0.0, *JITTERS[:3]):
        z = normal_like(theta, generator)
        leaf = (theta.detach() + scale * z).requires_grad_(True)
        with torch.enable_grad():
            try:
                values = answer(leaf, x)
            except ConfigMismatchError:
                continue
            if not values.requires_grad:
                return nothing
            weights = normal_like(values, generator)
            (gradient,) = torch.autograd.grad((weights * values).sum(), leaf, allow_unused=True)
        if gradient is None:
            continue
        if scale == 0 and not bool(gradient.isfinite().all()):
            return (
                "the gradient of its outputs in its parameters is not finite at the start of "
                "training (such as the logarithm of a softmax of 0: use log_softmax); fix its "
                "forward, or use inference=fixed"
            )
        if bool((gradient != 0).any()):
            return _unfollowed_fault(answer, leaf.detach(), x, gradient, pieces)
    return nothing


@torch.no_grad()
def _unfollowed_fault(
    answer: NetworkOutputsFn, theta: Tensor, x: Tensor, gradient: Tensor, pieces: Mapping[str, int]
) -> str | None:
    for name, piece, slope in zip(
        pieces, *(t.split([*pieces.values()]) for t in (theta, gradient)), strict=True
    ):
        if not bool(slope.any()):
            values = answer(theta, x)
            piece.mul_(PROBE_SCALE)
            if not is_close(answer(theta, x), values):
                return (
                    f"{name} has no gradient although the outputs depend on it (due to "
                    "torch.no_grad or detach), so it would only follow its prior; freeze it with "
                    "requires_grad_(False), or use inference=fixed"
                )
    return None


def check_input_gradient(
    answer: NetworkOutputsFn, theta: Tensor, x: Tensor, attacker: Attacker | None, where: str
) -> None:
    """Check that an attacker that uses the input gradient has one.

    Raises:
        ConfigMismatchError: there is no gradient.
    """
    if not isinstance(attacker, Evasion) or not attacker.follows_gradient:
        return
    with torch.enable_grad():
        if answer(theta.detach(), x.detach().clone().requires_grad_(True)).requires_grad:
            return
    raise ConfigMismatchError(
        f"{where}: its outputs are not differentiable in its inputs, but attacker={attacker.name} "
        "requires the gradient; remove torch.no_grad and detach from forward, or use "
        "attacker=square or attacker=random_noise"
    )
