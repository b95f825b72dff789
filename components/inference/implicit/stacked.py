"""R modules of one shape side by side."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

N = TypeVar("N", bound=nn.Module)
F = TypeVar("F")


class _FunctionalModule(nn.Module, Generic[N]):
    """A module that is read by a function, so that ``functional_call`` can lend it other parameters
    meanwhile."""

    def __init__(self, one: N):
        super().__init__()
        self.one = one

    def forward(self, f: Callable[[N], F]) -> F:
        return f(self.one)


class StackedModules(nn.Module, Generic[N]):
    """R modules of one architecture with parameters stacked along a leading dimension, [R, …].

    All other data of the modules are shared.  No operation mixes the modules: each function
    of a module is mapped over R by ``torch.func.vmap``, and a sum over the R results has R
    independent gradients.
    """

    def __init__(self, modules: Sequence[N]):
        super().__init__()
        first = modules[0]
        # in a list: its parameters are no parameters of this one
        self._one = [_FunctionalModule(copy.deepcopy(first))]
        self.names = [f"one.{name}" for name, _ in first.named_parameters()]
        each = [list(module.parameters()) for module in modules]
        self.values = nn.ParameterList(
            nn.Parameter(
                torch.stack([p.detach() for p in same]), requires_grad=same[0].requires_grad
            )
            for same in zip(*each, strict=True)
        )

    @property
    def one(self) -> N:
        """One of them, for what does not depend on parameters."""
        return self._one[0].one

    def trainable_parameters(self) -> list[Tensor]:
        """Parameters that training moves."""
        return [value for value in self.values if value.requires_grad]

    def parameters_by_name(self, *, still: bool = False) -> dict[str, Tensor]:
        """All parameters [R, …] by name; ``still``: no gradient passes through them."""
        return {
            name: p.detach() if still else p
            for name, p in zip(self.names, self.values, strict=True)
        }

    def read(self, values: dict[str, Tensor], f: Callable[[N], F]) -> F:
        """f of one module that has these parameters."""
        result: F = torch.func.functional_call(self._one[0], values, (f,))
        return result

    def module(self, r: int) -> N:
        """A copy of the module of a replicate."""
        replica = copy.deepcopy(self._one[0])
        replica.load_state_dict(
            replica.state_dict()
            | {name: p[r] for name, p in self.parameters_by_name(still=True).items()}
        )
        return replica.one
