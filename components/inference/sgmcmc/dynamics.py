"""Common keys and steps of stochastic gradient MCMC."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Generic

import torch
from torch import Tensor

from components.contracts.roles import Info
from components.inference.chains import C, Sampler, advance, mean_over_chains
from components.inference.sgmcmc.step_sizes import StepSizes


class GradientDynamics(Sampler[C], StepSizes, Generic[C]):
    """Base of samplers that follow the gradient of the log joint with steps of size ε_t."""

    folds_replicates: ClassVar[frozenset[str]] = frozenset({"density"})
    gradients_per_step: ClassVar[int | str | None] = 1

    def advance(self, state: C, theta: Tensor, **others: Any) -> C:
        """The state one step on, at θ [C, P], with new values of its other fields.

        Raises:
            NumericalError: a chain leaves the finite numbers.
        """
        return replace(advance(state, theta, self.burn_in, self.thinning), **others)

    def describe_step(
        self, state: C, value: Tensor, gradient: Tensor, eps: float, **values: Tensor
    ) -> Info:
        """Info of a step of size ε that used log joints [C] and their gradients [C, P].

        Further ``values`` [C, …] are averaged over the chains, too.
        """
        R = state.replicates
        return {
            "log_joint": mean_over_chains(value, R),
            "grad_norm": mean_over_chains(torch.linalg.vector_norm(gradient, dim=1), R),
            **{name: mean_over_chains(x, R) for name, x in values.items()},
            "step_size": eps,
            "draws": len(state.kept),
        }
