"""Queries of an evasion attacker to the attacked model, and of a spoofing attacker to the
filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import torch
from torch import Tensor

from components.contracts.predictive import Categorical

if TYPE_CHECKING:
    from components.contracts.posteriors import Predicts

NormName = Literal["linf", "l2", "l1"]
Direction = Literal["insertion", "flip"]  # words can be added; or added and removed
# measure of a perturbation's size: its norm, or the number of changed words
Measure = NormName | Direction
# average over draws in the gradient of an attack
Expectation = Literal["predictive", "fresh_draws", "single_draw"]
Criterion = Literal["cross_entropy", "margin", "dlr"]
# floating-point format of gradients; success is judged in full precision
Precision = Literal["full", "bfloat16"]
# predictions that an attack targets if there is a defence
Against = Literal["defended", "undefended"]

Knowledge = Literal["white box", "grey box", "black box"]


@dataclass(frozen=True)
class Answer:
    """The victim's answer at x [B, D] and its gradient."""

    broken: Tensor  # [B] bool: some observed label is not the predicted one
    # ∇_x of log p(y|x) or of another criterion [B, D]; 0 where a derivative is not finite
    gradient: Tensor
    objective: Tensor  # log p(y|x), or another criterion [B]
    finite: Tensor  # [B] bool: every derivative of the row is finite
    predictive: Categorical  # the predictive used for the gradient


class Victim(Protocol):
    """A posterior under attack, and the smallest and largest value an input can take (any if None).

    Class numbers y are [B, T], negative where the label is missing."""

    @property
    def posterior(self) -> Predicts: ...

    @property
    def bounds(self) -> tuple[float, float] | None: ...

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """(H, W) or (channels, H, W) of a row of x if it is an image."""

    def facing(self, expectation: Expectation) -> Victim:
        """The same victim with the gradient of another expectation over draws."""

    def soften(self, norm: NormName = "linf") -> Victim:
        """The same victim with gradients of log p(y|x) that do not vanish at confident predictions.

        Logits are tempered at those predictions, and for attacks in L1 at all predictions.
        """

    def round_gradient(self, precision: Precision) -> Victim:
        """The same victim with its gradient computed in another floating-point format.

        Raises:
            ConfigMismatchError: the victim has no copy in that format.
        """

    def with_posterior(self, posterior: Predicts) -> Victim:
        """The same victim with another posterior: a surrogate, or the classifier without its
        defence."""

    def answers(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """The posterior predictive at x [B, D]."""

    def is_stochastic(self, x: Tensor) -> bool:
        """True if two queries at the same input can return different answers.

        This holds for predictions that use fresh draws for each query.
        """

    def broken(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """True for rows in which some observed label is not the predicted one [B] bool."""

    def answer(
        self,
        x: Tensor,
        y: Tensor,
        generator: torch.Generator,
        criterion: Criterion = "cross_entropy",
        aim: bool = True,
        towards: Tensor | None = None,
    ) -> Answer:
        """Test whether x is misclassified, and compute a criterion with its gradient with respect
        to x.

        Misclassification is always judged in full precision.  If the gradient has another format,
        full precision is used only for rows that appear to have reached the goal (misclassified, or
        correctly classified if ``aim`` is False); the others count as not having reached it.
        ``towards`` [B, T] are classes; the criterion is taken against these only.
        """

    def input_gradient(
        self,
        x: Tensor,
        y: Tensor,
        generator: torch.Generator,
        criterion: Criterion = "cross_entropy",
        where: Tensor | None = None,
    ) -> Tensor:
        """∇_x of log p(y|x) or of a criterion [B, D], without the test for misclassification."""

    def jacobian(self, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """log p(t, c|x) [B, T, C] and its gradient with respect to the input [B, T, C, D]."""

    def clip(self, x: Tensor) -> Tensor:
        """x clipped to the bounds."""


class FilterVictim(Protocol):
    """A filter under attack, for an omniscient attacker, R replicates in parallel.

    The true states are known to the attacker.  The victim computes the effect of observation shifts
    on the filter's error, with the attacker's own random numbers, which are the same in every
    query.  Shifts u [R, T, dy] are in units of the observation noise, δ_t = Σ^½ u_t.
    """

    @property
    def observations(self) -> Tensor: ...  # unattacked [R, T, dy], NaN where missing

    @property
    def is_observed(self) -> Tensor: ...  # [R, T] bool: False where missing

    def error(self, u: Tensor) -> Tensor:
        """The mean squared error of the filtered means under shifts u [R], with the attacker's
        weights."""

    def gradient(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """The error [R] and its gradient with respect to u [R, T, dy].

        Raises:
            ConfigMismatchError: the filter is not differentiable.
        """
