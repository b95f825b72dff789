"""A model, which is built for a problem."""

from __future__ import annotations

from collections.abc import Set
from typing import ClassVar, Generic

from components.contracts.capabilities import CAPABILITIES
from components.contracts.plugins.protocols import OfferedProtocols
from components.contracts.requirements import Requirements
from components.contracts.roles.component import Component, M, P
from components.contracts.streams import Rng


class Model(Component, Generic[P, M]):
    """Probabilistic model, which is built for a problem and offers capabilities to inference.

    Example:
        y_b ~ N(θ, 1), θ ~ N(0, s²), with the members of ``LogJoint``:

        >>> import torch
        >>> from components.contracts.capabilities import LogJoint
        >>> from components.contracts.roles import Model
        >>> from runner.execution.rng import Streams
        >>> class NormalMean(Model):
        ...     scale: float
        ...
        ...     def build(self, problem, rng) -> "BuiltNormalMean":
        ...         return BuiltNormalMean(self.scale)
        >>> class BuiltNormalMean:
        ...     dim = 1
        ...     names = ["mean"]
        ...
        ...     def __init__(self, scale):
        ...         self.scale = scale
        ...
        ...     def constrain(self, theta):
        ...         return theta
        ...
        ...     def sample_prior(self, n, generator):
        ...         return self.scale * torch.randn(n, 1, generator=generator)
        ...
        ...     def log_prior(self, theta):
        ...         return -0.5 * (theta / self.scale).square().sum(1)
        ...
        ...     def log_likelihood(self, theta, batch):
        ...         return -0.5 * (batch.x[:, 0] - theta).square()
        >>> model = NormalMean(name="normal_mean", scale=2.0).build(problem=None, rng=Streams(0))
        >>> isinstance(model, LogJoint)
        True
        >>> model.log_prior(torch.tensor([[0.0], [2.0]]))
        tensor([-0.0000, -0.5000])
    """

    requires = Requirements(domains={"continuous", "binary"})
    # with respect to inputs, for gradient attacks
    differentiable: ClassVar[bool] = True
    # capabilities of some configurations: capability -> the setting
    offers_where: ClassVar[dict[type, str]] = {}
    # protocols of ``contracts.capabilities`` that every built model has; by default, from the
    # return annotation of ``build``
    offers: ClassVar[Set[type]] = OfferedProtocols("build", CAPABILITIES)  # type: ignore[assignment]

    def capabilities(self) -> Set[type]:
        """Capabilities of a model built as configured.

        They are ``offers`` and those in ``offers_where`` enabled by its keys.
        """
        return self.offers | set(filter(self.is_enabled, self.offers_where))

    def is_enabled(self, capability: type) -> bool:
        """True if the keys enable a capability in ``offers_where``."""
        raise NotImplementedError

    def assumptions(self) -> Set[type]:
        """Entries that the dataset's ``simulates`` must contain, as configured."""
        return self.requires.simulated

    def build(self, problem: P, rng: Rng) -> M:
        """Build the model for a problem.

        Args:
            problem: data, or their shapes and units.
            rng: random streams of the replicate; ``rng.init`` draws initial values.

        Returns:
            The built model, with the members of all its ``capabilities()``.

        Raises:
            ConfigMismatchError: the problem lacks something that the model requires.
        """
        raise NotImplementedError
