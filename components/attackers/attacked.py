"""What an evasion attacker sees of the model that it attacks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.attackers.criteria import CRITERIA, misjudged, summed
from components.contracts.posteriors import Predicts, Redraws
from components.contracts.predictive import Categorical
from components.contracts.victim import Answer, Criterion, Expectation
from components.trouble import Misfit

FRESH = 4  # draws behind each step when they are fresh: their noise averages out over the steps of an attack

NO_GRADIENT = (
    "attacker: it follows the gradient of the victim in its input, and this model has none; "
    "attack a model made of a network or a Gaussian process"
)


@dataclass(frozen=True)
class Attacked:
    """A posterior under attack and the smallest and largest value an input can take (None: any).

    ``expectation`` says what the gradient is the gradient of when the posterior holds draws of the parameters: the
    predictive averaged over all of them, over a few fresh ones at each step, or a single one for the whole attack (the
    control that shows what averaging is worth).  Whether an input is broken is always judged by all draws."""

    posterior: Predicts
    bounds: tuple[float, float] | None = None
    expectation: Expectation = "predictive"
    image_shape: tuple[int, ...] | None = None  # (H, W) or (channels, H, W) of a row of x, where it is an image

    def facing(self, expectation: Expectation) -> Attacked:
        """The same victim, whose gradient is that of another expectation over draws."""
        return replace(self, expectation=expectation)

    def aimed_at(self, posterior: Predicts) -> Attacked:
        """Another posterior in the same place: a surrogate, or what lies under a defence."""
        return replace(self, posterior=posterior)

    def answers(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """The posterior predictive at x [B, D]."""
        return _classes(self.posterior, x, generator)

    def wavers(self, x: Tensor) -> bool:
        """Whether two questions about the same input get different answers: predictions that draw anew each time."""
        if len(x) == 0:
            return False
        with torch.no_grad():
            first, second = (
                self.answers(x[:1], torch.Generator(x.device).manual_seed(seed)).log_probs for seed in (0, 1)
            )
        return not torch.equal(first, second)

    def followed(self, generator: torch.Generator) -> Predicts:
        """The posterior whose gradient one step follows."""
        if self.expectation == "predictive" or not isinstance(self.posterior, Redraws):
            return self.posterior
        if self.expectation == "single_draw":
            return self.posterior.some(1, None)
        return self.posterior.some(FRESH, generator)

    def log_prob(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """Σ_t log p(y_t|x), the posterior predictive of class numbers y [B, T]; a missing label is negative. [B]"""
        return summed(self.answers(x, generator), y)

    def broken(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """Whether some observed label of each row is not the one predicted [B]."""
        with torch.no_grad():
            return misjudged(self.answers(x, generator), y)

    def answer(
        self,
        x: Tensor,
        y: Tensor,
        generator: torch.Generator,
        criterion: Criterion = "cross_entropy",
        where: Tensor | None = None,
    ) -> Answer:
        """log p(y|x), whether x is broken and the gradient of a criterion in the input alone, in one pass.

        Where ``where`` [B] bool is given, its rows alone follow the criterion, the others log p(y|x).

        Raises:
            Misfit: the prediction does not depend on the input in a differentiable way, or has too few classes for it.
        """
        posterior = self.followed(generator)
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            predictive = _classes(posterior, x, generator)
            log_prob = objective = summed(predictive, y)
            if not log_prob.requires_grad:
                raise Misfit(NO_GRADIENT)
            if criterion != "cross_entropy":
                objective = CRITERIA[criterion](predictive, y)
                objective = objective if where is None else torch.where(where, objective, log_prob)
            (gradient,) = torch.autograd.grad(objective.sum(), x)
        broken = misjudged(predictive, y) if posterior is self.posterior else self.broken(x, y, generator)
        return Answer(log_prob.detach(), broken, gradient, objective.detach())

    def input_gradient(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """∇_x log p(y|x) [B, D] with respect to the input alone.

        Raises:
            Misfit: the prediction does not depend on the input in a differentiable way.
        """
        return self.answer(x, y, generator).gradient

    def jacobian(self, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """log p(t, c|x) of every task and class [B, T, C] and its gradient in the input [B, T, C, D].

        Raises:
            Misfit: the prediction does not depend on the input in a differentiable way.
        """
        posterior = self.followed(generator)
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            log_probs = _classes(posterior, x, generator).log_probs  # [B, T, C]
            if not log_probs.requires_grad:
                raise Misfit(NO_GRADIENT)
            totals = log_probs.sum(0).flatten()  # rows do not act on each other
            slopes = [torch.autograd.grad(total, x, retain_graph=True)[0] for total in totals]
        gradient = torch.stack(slopes, 1).unflatten(1, log_probs.shape[1:])
        return log_probs.detach(), gradient

    def clip(self, x: Tensor) -> Tensor:
        """x moved into the bounds."""
        return x if self.bounds is None else x.clamp(*self.bounds)


def _classes(posterior: Predicts, x: Tensor, generator: torch.Generator) -> Categorical:
    """The posterior predictive at x [B, D], which is one of classes: no other is attacked.

    Raises:
        Misfit: it is one of real labels."""
    predictive = posterior.predict(x, generator)
    if not isinstance(predictive, Categorical):
        raise Misfit(
            "attacker: an attack changes inputs until they are taken for another class, and labels here are real"
        )
    return predictive
