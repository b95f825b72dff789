"""What an evasion attacker sees of the model that it attacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from components.contracts.predictive import Categorical
from components.trouble import Misfit

Expectation = Literal["predictive", "fresh_draws", "single_draw"]
Criterion = Literal["cross_entropy", "margin", "dlr"]
TINY = 1e-12
FRESH = 4  # draws behind each step when they are fresh: their noise averages out over the steps of an attack


NO_GRADIENT = (
    "attacker: it follows the gradient of the victim in its input, and this model has none; "
    "attack a model made of a network or a Gaussian process"
)


@dataclass(frozen=True)
class Answer:
    """The victim's answer at x [B, D] and how it changes with x."""

    log_prob: Tensor  # Σ_t log p(y_t|x) [B]
    broken: Tensor  # [B] bool: some observed label is not the one predicted
    gradient: Tensor  # ∇_x of log p(y|x), or of the criterion that is followed instead [B, D]
    objective: Tensor  # log p(y|x), or the criterion that is followed instead [B]


@dataclass(frozen=True)
class Victim:
    """A posterior under attack and the smallest and largest value an input can take (None: any).

    ``expectation`` says what the gradient is the gradient of when the posterior holds draws of the parameters: the
    predictive averaged over all of them, over a few fresh ones at each step, or a single one for the whole attack (the
    control that shows what averaging is worth).  Whether an input is broken is always judged by all draws."""

    posterior: Any
    bounds: tuple[float, float] | None = None
    expectation: Expectation = "predictive"
    image_shape: tuple[int, ...] | None = None  # (H, W) or (channels, H, W) of a row of x, where it is an image

    def facing(self, attacker: Any) -> Victim:
        """The same victim as an attacker looks at it: with his own expectation over draws, where he has one."""
        return replace(self, expectation=getattr(attacker, "expectation", "predictive"))

    def answers(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """The posterior predictive at x [B, D]."""
        return self.posterior.predict(x, generator)

    def wavers(self, x: Tensor) -> bool:
        """Whether two questions about the same input get different answers: predictions that draw anew each time."""
        if len(x) == 0:
            return False
        with torch.no_grad():
            first, second = (
                self.answers(x[:1], torch.Generator(x.device).manual_seed(seed)).log_probs for seed in (0, 1)
            )
        return not torch.equal(first, second)

    def followed(self, generator: torch.Generator) -> Any:
        """The posterior whose gradient one step follows."""
        if self.expectation == "predictive" or not hasattr(self.posterior, "some"):
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
            predictive = posterior.predict(x, generator)
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
            log_probs = posterior.predict(x, generator).log_probs  # [B, T, C]
            if not log_probs.requires_grad:
                raise Misfit(NO_GRADIENT)
            totals = log_probs.sum(0).flatten()  # rows do not act on each other
            slopes = [torch.autograd.grad(total, x, retain_graph=True)[0] for total in totals]
        gradient = torch.stack(slopes, 1).unflatten(1, log_probs.shape[1:])
        return log_probs.detach(), gradient

    def clip(self, x: Tensor) -> Tensor:
        """x moved into the bounds."""
        return x if self.bounds is None else x.clamp(*self.bounds)


def summed(predictive: Categorical, y: Tensor) -> Tensor:
    """Σ_t log p(y_t) over the observed labels y [B, T]; a missing one is negative. [B]"""
    return torch.where(y >= 0, predictive.log_prob(y.clamp_min(0)), 0.0).sum(-1)


def misjudged(predictive: Categorical, y: Tensor) -> Tensor:
    """Whether some observed label y [B, T] is not the class of largest probability. [B]"""
    return ((predictive.guess != y) & (y >= 0)).any(-1)


def margins(predictive: Categorical, y: Tensor) -> Tensor:
    """min_t [log p(y_t) − max_{c≠y_t} log p(c)] over the observed labels y [B, T]: negative where one is misjudged. [B]

    A softmax's log-probabilities differ from its logits by a constant, so these are the margins between logits."""
    return _least(_gaps(predictive.log_probs, y), y)


def ratios(predictive: Categorical, y: Tensor) -> Tensor:
    """min_t (z_y − max_{c≠y} z_c)/(z_π1 − z_π3) over the observed labels y [B, T], z the log-probabilities. [B]

    π orders the classes of an input from the largest z: minus the difference-of-logits ratio, which neither a shift of
    the logits changes nor a scale, so that a confident network's gradient does not vanish.  Of a softmax, differences of
    log-probabilities are those of its logits.

    Raises:
        Misfit: there are fewer than three classes.

    Source: Croce and Hein (2020), eq. (6)."""
    log_probs = predictive.log_probs
    if log_probs.shape[-1] < 3:
        raise Misfit("attacker.criterion: dlr compares the first class with the third, and there are two; use margin")
    top = log_probs.topk(3, -1).values
    spread = (top[..., 0] - top[..., 2]).clamp_min(TINY)  # zero where the three are equal, and so are the gaps
    return _least(_gaps(log_probs, y) / spread, y)


def _gaps(log_probs: Tensor, y: Tensor) -> Tensor:
    """log p(y_t) − max_{c≠y_t} log p(c) [B, T]."""
    label = y.clamp_min(0).unsqueeze(-1)
    others = log_probs.scatter(-1, label, -torch.inf).amax(-1)
    return log_probs.gather(-1, label).squeeze(-1) - others


def _least(values: Tensor, y: Tensor) -> Tensor:
    """The smallest of values [B, T] over the observed labels y; 0 for a row that has none. [B]"""
    seen = y >= 0
    least = torch.where(seen, values, torch.inf).amin(-1)
    return torch.where(seen.any(-1), least, 0.0)


# What an attack lowers for the true class (and raises for a target).
CRITERIA: dict[Criterion, Callable[[Categorical, Tensor], Tensor]] = {
    "cross_entropy": summed,
    "margin": margins,
    "dlr": ratios,
}
