"""Adam, AdaGrad, Adadelta, and gradient descent with momentum, over all parameters together.

Steps use the functional forms of ``torch.optim``, and state dicts are the same.  The classes of
``torch.optim`` are not used because they import the compiler, which takes half as long as importing
torch itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim.adadelta import adadelta
from torch.optim.adagrad import adagrad
from torch.optim.adam import adam
from torch.optim.sgd import sgd


class Memories(NamedTuple):
    """Parameters with gradients, and lists of the same length."""

    parameters: list[Tensor]
    gradients: list[Tensor]
    named: list[list[Tensor]]  # one list per name
    steps: list[Tensor]


class Optimizer:
    """Parameters, their optimizer state, and the settings of a step, which may be changed between
    steps."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, **settings: Any):
        self.parameters = list(parameters)
        self.settings = {"lr": lr, **settings}
        self.memory: list[dict[str, Tensor]] = [{} for _ in self.parameters]

    def zero_grad(self) -> None:
        for p in self.parameters:
            p.grad = None

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        raise NotImplementedError

    def descend(self, loss: Tensor) -> None:
        """One step that decreases a loss []; parameters on which it does not depend do not
        change."""
        self.zero_grad()
        loss.backward()
        self.step()

    def with_gradients(self) -> list[tuple[Tensor, Tensor, dict[str, Tensor]]]:
        """Parameters with gradients, the gradients, and the states."""
        pairs = zip(self.parameters, self.memory, strict=True)
        return [(p, p.grad, memory) for p, memory in pairs if p.grad is not None]

    def to_memories(self, *names: str, fused: bool = False) -> Memories:
        """``moving``, transposed: parameters, gradients, states by name, and step counts.

        Args:
            names: names of the states of each parameter, 0 before its first step.
            fused: True if step counts are on the parameter's device.
        """
        pairs_with_gradients = self.with_gradients()
        for p, _, memory in pairs_with_gradients:
            if not memory:
                device = p.device if fused else None
                memory["step"] = torch.zeros((), dtype=torch.float32, device=device)
                memory.update({name: torch.zeros_like(p) for name in names})
        return Memories(
            [p for p, _, _ in pairs_with_gradients],
            [gradient for _, gradient, _ in pairs_with_gradients],
            [[memory[name] for _, _, memory in pairs_with_gradients] for name in names],
            [memory["step"] for _, _, memory in pairs_with_gradients],
        )

    def state_dict(self) -> dict[str, Any]:
        places = list(range(len(self.parameters)))
        return {
            "state": {i: dict(memory) for i, memory in enumerate(self.memory) if memory},
            "param_groups": [self.settings | {"params": places}],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the result of ``state_dict``, or of the same class in ``torch.optim``."""
        (group,) = state_dict["param_groups"]
        self.settings |= {name: group[name] for name in self.settings}
        for i, p in enumerate(self.parameters):
            entry = state_dict["state"].get(i, {})
            self.memory[i] = {
                name: value.to(p.device, value.dtype if name == "step" else p.dtype, copy=True)
                for name, value in entry.items()
                if value is not None
            }


class Adam(Optimizer):
    """θ ← θ − lr m̂/(√v̂ + 10⁻⁸), m̂ and v̂ the bias-corrected running means of the gradient and of
    its square.

    Source: Kingma and Ba (2014), Algorithm 1."""

    def __init__(
        self, parameters: Iterable[Tensor], lr: float, betas: tuple[float, float] = (0.9, 0.999)
    ):
        super().__init__(parameters, lr, betas=betas)

    @torch.no_grad()
    def step(self) -> None:
        memories = self.to_memories("exp_avg", "exp_avg_sq", fused=True)
        means, squares = memories.named
        beta1, beta2 = self.settings["betas"]
        adam(
            memories.parameters,
            memories.gradients,
            means,
            squares,
            [],
            memories.steps,
            fused=True,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=self.settings["lr"],
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )


class SGD(Optimizer):
    """v ← μ v + ∇f, θ ← θ − lr v.

    Source: Sutskever, Martens, Dahl and Hinton (2013), eq. (1) and (2), with lr factored out of
    v."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float):
        super().__init__(parameters, lr, momentum=momentum)

    @torch.no_grad()
    def step(self) -> None:
        pairs_with_gradients = self.with_gradients()
        momentum = self.settings["momentum"]
        velocities = [memory.get("momentum_buffer") for _, _, memory in pairs_with_gradients]
        sgd(
            [p for p, _, _ in pairs_with_gradients],
            [gradient for _, gradient, _ in pairs_with_gradients],
            velocities,
            fused=True,
            weight_decay=0.0,
            momentum=momentum,
            lr=self.settings["lr"],
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
        for (_, _, memory), velocity in zip(pairs_with_gradients, velocities, strict=True):
            if momentum and velocity is not None:
                memory["momentum_buffer"] = velocity


class AdaGrad(Optimizer):
    """s ← s + ∇f², θ ← θ − lr ∇f/(√s + 10⁻¹⁰).

    Source: Duchi, Hazan and Singer (2011), Figure 1, with diagonal matrices."""

    @torch.no_grad()
    def step(self) -> None:
        memories = self.to_memories("sum")
        (sums,) = memories.named
        adagrad(
            memories.parameters,
            memories.gradients,
            sums,
            memories.steps,
            lr=self.settings["lr"],
            weight_decay=0.0,
            lr_decay=0.0,
            eps=1e-10,
            maximize=False,
        )


class Adadelta(Optimizer):
    """s ← ρ s + (1 − ρ) ∇f², Δ = √(d + ε)/√(s + ε) ∇f, d ← ρ d + (1 − ρ) Δ², θ ← θ − lr Δ, ρ = 0.9,
    ε = 10⁻⁶; the paper has lr = 1.

    Source: Zeiler (2012), Algorithm 1."""

    @torch.no_grad()
    def step(self) -> None:
        memories = self.to_memories("square_avg", "acc_delta")
        squares, updates = memories.named
        adadelta(
            memories.parameters,
            memories.gradients,
            squares,
            updates,
            memories.steps,
            lr=self.settings["lr"],
            rho=0.9,
            eps=1e-6,
            weight_decay=0.0,
            maximize=False,
        )
