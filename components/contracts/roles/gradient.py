"""An estimator of a gradient."""

from __future__ import annotations

from typing import ClassVar, Generic

from torch import Tensor

from components.contracts.roles.component import B, Component, M, S
from components.contracts.streams import Rng


class Gradient(Component, Generic[M, B, S]):
    """An estimator of the gradient of a bound, which is an expectation.

    It exists only inside inference methods.  Its configuration determines its draws (``n_samples``
    is inherited from the inference method).  Quantities learned during training (coefficients,
    baselines, surrogates and their optimizers) are its state, which is part of the inference state.
    ``estimate`` does not change the module's parameters, so an estimator can be evaluated on a
    fixed module.

    Example:
        Pathwise gradient for q(z) = N(m, 1) and p(z) = N(0, 1): the bound is −m²/2, its gradient
        −m.

        >>> import torch
        >>> from components.contracts.roles import Gradient
        >>> from runner.execution.rng import Streams
        >>> class Guide(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.m = torch.nn.Parameter(torch.tensor(2.0))
        >>> class Pathwise(Gradient):
        ...     n_samples: int
        ...
        ...     def init(self, module, rng):
        ...         return None
        ...
        ...     def estimate(self, module, batch, rng, state):
        ...         z = module.m + torch.randn(self.n_samples, generator=rng.noise)
        ...         elbo = 0.5 - 0.5 * z.square().mean()
        ...         gradients = torch.autograd.grad(elbo, list(module.parameters()))
        ...         return list(gradients), {"elbo": elbo.detach()}, state
        >>> estimator = Pathwise(name="pathwise", n_samples=10_000)
        >>> gradients, terms, state = estimator.estimate(Guide(), None, Streams(0), None)
        >>> round(float(gradients[0]), 1), round(float(terms["elbo"]), 1)
        (-2.0, -2.0)
    """

    bound: ClassVar[str] = "elbo"  # quantity whose gradient is estimated
    unbiased: ClassVar[bool]  # True if its mean is the gradient of that bound

    def init(self, module: M, rng: Rng) -> S:
        """State of the estimator before the first step.

        Args:
            module: module with the parameters to be differentiated.
            rng: random streams of the replicate.

        Returns:
            Quantities that the estimator learns; None if there are none.
        """
        raise NotImplementedError

    def estimate(
        self, module: M, batch: B, rng: Rng, state: S
    ) -> tuple[list[Tensor | None], dict[str, Tensor], S]:
        """Estimate the gradient of the bound for the whole data set.

        Args:
            module: module with the parameters, which are not changed.
            batch: rows of this step, weighted by ``batch.scale`` to the whole data set.
            rng: random streams of the replicate; ``rng.noise`` draws the samples.
            state: state of the estimator.

        Returns:
            gradients: one per tensor of ``module.parameters()``, in the same order and shapes;
            None if the bound does not depend on the parameter.
            terms: terms of the bound in nats, [] each, including ``elbo``.
            state: the next state of the estimator.
        """
        raise NotImplementedError
