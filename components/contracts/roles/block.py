"""A block of a structural time series."""

from __future__ import annotations

from components.contracts.roles.component import Component
from components.contracts.structural import Facts, Terms


class Block(Component):
    """An additive part of a structural time series; blocks exist only inside models.

    y_t = F_t α_t + ε_t,   α_{t+1} = G α_t + N(0, diag W(σ)): a block adds d states.

    Example:
        Local level, with one state:

        >>> import torch
        >>> from components.contracts.roles import Block
        >>> from components.contracts.structural import Covariates, Facts, Terms
        >>> class Level(Block):
        ...     guess: float
        ...
        ...     def terms(self, facts):
        ...         one = torch.ones(1).to(facts.like)
        ...         return Terms(
        ...             label="level",
        ...             states=("level",),
        ...             rows=lambda series: one.expand(len(series.y), 1),
        ...             G=one.view(1, 1),
        ...             mean=facts.centre * one,
        ...             sd=facts.scale * one,
        ...             scales=(facts.noise("level_sd", self.guess, 1.0, None, (0,)),),
        ...         )
        >>> series = Covariates(torch.tensor([1.0, 2.0, 4.0]))
        >>> facts = Facts(series, scale=1.5, centre=1.0, x_names=[], u_names=[], where="here")
        >>> terms = Level(name="level", guess=0.1).terms(facts)
        >>> terms.rows(series).T @ series.y
        tensor([7.])
    """

    def terms(self, facts: Facts) -> Terms:
        """States and columns of the block, their dynamics, and priors of unknown quantities.

        Args:
            facts: the observed series [n], its units, and the names of its covariates.

        Returns:
            The terms: rows F [n, d], base transition G [d, d], first moments [d], priors.

        Raises:
            ConfigMismatchError: the series lacks something that the block requires.
        """
        raise NotImplementedError
