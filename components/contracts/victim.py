"""Queries of an evasion attacker to the attacked model, and of a spoofer to the filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import torch
from torch import Tensor

from components.contracts.predictive import Categorical

if TYPE_CHECKING:
    from components.contracts.posteriors import Predicts

NormName = Literal["linf", "l2", "l1"]
Direction = Literal["insertion", "flip"]  # a word can be added; or added, and removed
# measure of a perturbation's size: its norm, or the number of changed words
Measure = NormName | Direction
# average over draws, for the gradient that is followed
Expectation = Literal["predictive", "fresh_draws", "single_draw"]
Criterion = Literal["cross_entropy", "margin", "dlr"]
# in which gradients are computed; success is judged in full precision
Precision = Literal["full", "bfloat16"]
# predictions that an attacker uses, if there is a defence
Against = Literal["defended", "undefended"]

Knowledge = Literal["white box", "grey box", "black box"]


@dataclass(frozen=True)
class Answer:
    """The victim's answer at x [B, D] and how it changes with x."""

    broken: Tensor  # [B] bool: some observed label is not the one predicted
    # ∇_x of log p(y|x), or of the criterion that is followed instead; 0 where a slope is not finite
    # [B, D]
    gradient: Tensor
    objective: Tensor  # log p(y|x), or the criterion that is followed instead [B]
    finite: Tensor  # [B] bool: every slope of the row is a finite number
    predictive: Categorical  # the predictive behind the followed gradient


class Victim(Protocol):
    """A posterior under attack, and the smallest and largest value an input can take (None: any).

    Class numbers y are [B, T], negative where the label is missing."""

    @property
    def posterior(self) -> Predicts: ...

    @property
    def bounds(self) -> tuple[float, float] | None: ...

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """(H, W) or (channels, H, W) of a row of x, where it is an image."""
        ...

    def facing(self, expectation: Expectation) -> Victim:
        """The same victim with the gradient of another expectation over draws."""
        ...

    def soften(self, norm: NormName = "linf") -> Victim:
        """The same victim with gradients of log p(y|x) that do not vanish where it is certain.

        Logits are tempered there; for attacks in L1 everywhere.
        """
        ...

    def round_gradient(self, precision: Precision) -> Victim:
        """The same victim with its gradient computed in another floating-point format.

        Raises:
            ConfigMismatchError: the victim has no copy in that format.
        """
        ...

    def with_posterior(self, posterior: Predicts) -> Victim:
        """Another posterior in the same place: a surrogate, or what lies under a defence."""
        ...

    def answers(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """The posterior predictive at x [B, D]."""
        ...

    def is_stochastic(self, x: Tensor) -> bool:
        """True if two queries at the same input get different answers.

        This holds for predictions that use fresh draws for each query.
        """
        ...

    def broken(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """True for each row in which some observed label is not the predicted one [B] bool."""
        ...

    def answer(
        self,
        x: Tensor,
        y: Tensor,
        generator: torch.Generator,
        criterion: Criterion = "cross_entropy",
        aim: bool = True,
        towards: Tensor | None = None,
    ) -> Answer:
        """Whether x is broken, and a criterion with its gradient in x only.

        Brokenness of x is always judged in full precision.  If the gradient has another format,
        only those rows are judged that seem to be where the attack wants them (broken, or with
        ``aim`` False not broken); the others are assumed not to be there.  ``towards`` [B, T]
        are classes; the criterion is taken against these only.
        """
        ...

    def input_gradient(
        self,
        x: Tensor,
        y: Tensor,
        generator: torch.Generator,
        criterion: Criterion = "cross_entropy",
        where: Tensor | None = None,
    ) -> Tensor:
        """∇_x log p(y|x), or of a criterion [B, D]; whether x is broken is not asked."""
        ...

    def jacobian(self, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """log p(t, c|x) [B, T, C] and its gradient in the input [B, T, C, D]."""
        ...

    def clip(self, x: Tensor) -> Tensor:
        """x moved into the bounds."""
        ...


class FilterVictim(Protocol):
    """A filter under attack, all of R replicates in parallel, for an omniscient attacker.

    The attacker knows the true states.  The victim gives the effect of observation shifts
    on the filter's error, with random numbers that are the attacker's own and always the
    same.  Shifts u [R, T, dy] are in units of the observation noise, δ_t = Σ^½ u_t.
    """

    @property
    def observations(self) -> Tensor: ...  # unattacked [R, T, dy], NaN where missing

    @property
    def is_observed(self) -> Tensor: ...  # [R, T] bool: False where missing

    def error(self, u: Tensor) -> Tensor:
        """The mean squared error of the filtered means under shifts u [R], weighted as the attacker
        wants it."""
        ...

    def gradient(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """That error [R] and its gradient in u [R, T, dy].

        Raises:
            ConfigMismatchError: the filter has none.
        """
        ...
