"""What an evasion attacker may ask of the model that it attacks, and one who spoofs observations of the filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import torch
from torch import Tensor

from components.contracts.predictive import Categorical

if TYPE_CHECKING:
    from components.contracts.posteriors import Predicts

NormName = Literal["linf", "l2", "l1"]
Direction = Literal["insertion", "flip"]  # a word can be added; or added, and taken away
Measure = NormName | Direction  # what the size of a perturbation is: its norm, or the number of words so changed
Expectation = Literal["predictive", "fresh_draws", "single_draw"]  # over draws, of the gradient that is followed
Criterion = Literal["cross_entropy", "margin", "dlr"]
Precision = Literal["full", "bfloat16"]  # in which gradients are computed; success is judged in full precision
Against = Literal["defended", "undefended"]  # whose predictions an attacker looks at, where there is a defence


@dataclass(frozen=True)
class Answer:
    """The victim's answer at x [B, D] and how it changes with x."""

    log_prob: Tensor  # Σ_t log p(y_t|x) [B]
    broken: Tensor  # [B] bool: some observed label is not the one predicted
    # ∇_x of log p(y|x), or of the criterion that is followed instead; 0 where a slope is not finite [B, D]
    gradient: Tensor
    objective: Tensor  # log p(y|x), or the criterion that is followed instead [B]
    finite: Tensor  # [B] bool: every slope of the row is a finite number
    predictive: Categorical  # whose slope was followed


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
        """The same victim, whose gradient is that of another expectation over draws."""
        ...

    def soften(self) -> Victim:
        """The same victim, whose gradients of log p(y|x) do not vanish where it is certain: logits are tempered there."""
        ...

    def round_gradient(self, precision: Precision) -> Victim:
        """The same victim, whose gradient is computed in another floating-point format.

        Raises:
            Misfit: it has no copy in that format.
        """
        ...

    def aimed_at(self, posterior: Predicts) -> Victim:
        """Another posterior in the same place: a surrogate, or what lies under a defence."""
        ...

    def answers(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """The posterior predictive at x [B, D]."""
        ...

    def wavers(self, x: Tensor) -> bool:
        """Whether two questions about the same input get different answers: predictions that draw anew each time."""
        ...

    def log_prob(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """Σ_t log p(y_t|x) [B]."""
        ...

    def broken(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """Whether some observed label of each row is not the one predicted [B] bool."""
        ...

    def answer(
        self,
        x: Tensor,
        y: Tensor,
        generator: torch.Generator,
        criterion: Criterion = "cross_entropy",
        where: Tensor | None = None,
        aim: bool = True,
        towards: Tensor | None = None,
    ) -> Answer:
        """log p(y|x), whether x is broken and the gradient of a criterion in the input alone.

        Whether x is broken is always judged in full precision.  Where the gradient's format is another, rows that seem to
        be where the attack wants them (broken, or with ``aim`` False not broken) are judged, and the others are taken
        not to be there.  ``towards`` [B, T] are classes against which alone the criterion is taken."""
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
    """A filter under attack, all of R replicates at once, seen by one who knows the true states: what shifts of its
    observations do to its error, with random numbers that are his own and always the same.

    Shifts u [R, T, dy] are in units of the observation noise, δ_t = Σ^½ u_t."""

    @property
    def observations(self) -> Tensor: ...  # unattacked [R, T, dy], NaN where missing

    @property
    def is_observed(self) -> Tensor: ...  # [R, T] bool: what is not missing

    def error(self, u: Tensor) -> Tensor:
        """The mean squared error of the filtered means under shifts u [R], weighted as the attacker wants it."""
        ...

    def gradient(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """That error [R] and its gradient in u [R, T, dy].

        Raises:
            Misfit: the filter has none.
        """
        ...
