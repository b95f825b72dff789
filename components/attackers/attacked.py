"""The view that an evasion attacker has of the model under attack."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.attackers.criteria import (
    CRITERIA,
    is_misclassified,
    log_likelihood_logit_gradient,
)
from components.contracts.costs.queries import count_queries
from components.contracts.posteriors import CastablePosterior, Predicts, PredictsInReverse, Redraws
from components.contracts.predictive import Categorical, Predictive
from components.contracts.victim import Answer, Criterion, Expectation, NormName, Precision
from components.errors import ConfigMismatchError

# draws per step if fresh: their noise averages out over the steps of an attack
FRESH = 4

FORMATS: dict[Precision, torch.dtype] = {"bfloat16": torch.bfloat16}

NO_GRADIENT = (
    "attacker: requires the input gradient of the victim, which this model does not provide; "
    "attack a network or a Gaussian process"
)


@dataclass(frozen=True)
class Attacked:
    """A posterior under attack, and the bounds of its inputs (unbounded if None).

    For a posterior of draws, ``expectation`` selects the predictive that supplies the gradient:
    averaged over all draws, over a few fresh ones at each step, or a single draw for the whole
    attack (a control for the effect of averaging).  Success is always judged with all draws.
    """

    posterior: Predicts
    bounds: tuple[float, float] | None = None
    expectation: Expectation = "predictive"
    # (H, W) or (channels, H, W) of a row of x, if it is an image
    image_shape: tuple[int, ...] | None = None
    # a copy in another format, used for gradients but not for decisions
    shadow: Predicts | None = None
    precision: Precision = "full"  # of the shadow copy
    # norm of an attack with tempered logits in the gradient of log p(y|x); None if not tempered
    softened: NormName | None = None

    def facing(self, expectation: Expectation) -> Attacked:
        """The victim with the gradient of another expectation over draws."""
        return replace(self, expectation=expectation)

    def soften(self, norm: NormName = "linf") -> Attacked:
        """The victim with gradients of log p(y|x) for attacks in a norm.

        The logits of certain rows are tempered; see
        ``criteria.log_likelihood_logit_gradient``.
        """
        return replace(self, softened=norm)

    def round_gradient(self, precision: Precision) -> Attacked:
        """The victim with gradients from a stored copy in another floating-point format.

        Raises:
            ConfigMismatchError: the victim has no such copy.
        """
        if precision == self.precision:
            return self
        if precision == "full":
            return replace(self, shadow=None, precision=precision)
        shadow = None
        if isinstance(self.posterior, CastablePosterior):
            shadow = self.posterior.in_format(FORMATS[precision])
        if shadow is None:
            raise ConfigMismatchError(
                f"attacker.precision={precision}: this victim does not support the format, unlike "
                "networks (model=mlp, model=cnn); use attacker.precision=full"
            )
        return replace(self, shadow=shadow, precision=precision)

    def with_posterior(self, posterior: Predicts) -> Attacked:
        """The victim with another posterior: a surrogate, or the posterior under a defence."""
        return replace(self, posterior=posterior, shadow=None, precision="full")

    def answers(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """The posterior predictive at x [B, D]."""
        count_queries(forwards=len(x))
        return _classes(self.posterior.predict(x, generator))

    def is_stochastic(self, x: Tensor) -> bool:
        """True if two queries at the same input give different results, because of fresh draws per
        query.
        """
        if len(x) == 0:
            return False
        with torch.no_grad():
            first, second = (
                self.answers(x[:1], torch.Generator(x.device).manual_seed(seed)).log_probs
                for seed in (0, 1)
            )
        return not torch.equal(first.nan_to_num(), second.nan_to_num())

    def gradient_posterior(self, generator: torch.Generator) -> Predicts:
        """The posterior that supplies the gradient of one step."""
        posterior = self.posterior if self.shadow is None else self.shadow
        if self.expectation == "predictive" or not isinstance(posterior, Redraws):
            return posterior
        if self.expectation == "single_draw":
            return posterior.some(1, None)
        return posterior.some(FRESH, generator)

    def broken(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """True for each row with an observed label that is not predicted [B]."""
        with torch.no_grad():
            return is_misclassified(self.answers(x, generator), y)

    def answer(
        self,
        x: Tensor,
        y: Tensor,
        generator: torch.Generator,
        criterion: Criterion = "cross_entropy",
        aim: bool = True,
        towards: Tensor | None = None,
    ) -> Answer:
        """Success of the attack at x, and a criterion with its gradient with respect to x, in one
        pass.

        The gradient is taken in the input only.  The victim itself judges success, with all draws
        and
        in its own format.  If gradients come from a copy with the whole predictive, only rows that
        seem successful according to the copy (broken, or with ``aim`` False not broken) are judged.

        Args:
            towards: classes [B, T]; the criterion compares with these classes only.

        Raises:
            ConfigMismatchError: see ``input_gradient``.
        """
        posterior = self.gradient_posterior(generator)
        gradient, finite, predictive = self._gradient(
            posterior, x, y, generator, criterion, None, towards
        )
        objective = CRITERIA[criterion](predictive, y, towards)
        broken = is_misclassified(predictive, y)
        if posterior is self.shadow:
            seeming = (broken == aim).nonzero()[:, 0]
            if len(seeming):
                broken[seeming] = self.broken(x[seeming], y[seeming], generator)
        elif posterior is not self.posterior:
            broken = self.broken(x, y, generator)
        return Answer(broken, gradient, objective, finite, predictive)

    def input_gradient(
        self,
        x: Tensor,
        y: Tensor,
        generator: torch.Generator,
        criterion: Criterion = "cross_entropy",
        where: Tensor | None = None,
    ) -> Tensor:
        """∇_x of log p(y|x) or of a criterion [B, D], in the input only.

        Derivatives that are not finite are set to 0.  For a softened victim, log p(y|x) is tempered
        (``soften``).

        Raises:
            ConfigMismatchError: the prediction does not depend on the input in a differentiable
                way, or has too few classes for the criterion.
        """
        return self._gradient(
            self.gradient_posterior(generator), x, y, generator, criterion, where
        )[0]

    def _gradient(
        self,
        posterior: Predicts,
        x: Tensor,
        y: Tensor,
        generator: torch.Generator,
        criterion: Criterion,
        where: Tensor | None,
        towards: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Categorical]:
        """The gradient, the rows [B] bool with a finite gradient, and its predictive.

        The derivative of the criterion is taken in the logits, which are few, and propagated to the
        inputs by the posterior's explicit backward pass if available, otherwise by autograd."""
        count_queries(forwards=len(x), gradients=len(x))
        victim_input = self._to_victim_format(x)
        reverse = (
            posterior.reverse(victim_input, generator)
            if isinstance(posterior, PredictsInReverse)
            else None
        )
        if reverse is not None:
            logits = _classes(reverse[0]).logits
            back = reverse[1]
        else:
            with torch.enable_grad():
                logits = _classes(
                    posterior.predict(victim_input.requires_grad_(True), generator)
                ).logits
            if not logits.requires_grad:
                raise ConfigMismatchError(NO_GRADIENT)
        predictive = self._to_input_dtype(Categorical(logits.detach()), x)
        with torch.no_grad():
            slope = self._slope(predictive, y, criterion, where, towards).to(logits.dtype)
            gradient = (
                torch.autograd.grad(logits, victim_input, slope)[0]
                if reverse is None
                else back(slope)
            )
        return *_zero_nonfinite_rows(gradient.to(x.dtype)), predictive

    def jacobian(self, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """log p(t, c|x) of every task and class [B, T, C], and its gradient with respect to the
        input [B, T, C, D].

        Raises:
            ConfigMismatchError: the prediction is not differentiable with respect to the input.
        """
        posterior = self.gradient_posterior(generator)
        with torch.enable_grad():
            victim_input = self._to_victim_format(x).requires_grad_(True)
            # [B, T, C]
            log_probs = self._to_input_dtype(
                _classes(posterior.predict(victim_input, generator)), x
            ).log_probs
            if not log_probs.requires_grad:
                raise ConfigMismatchError(NO_GRADIENT)
            totals = log_probs.sum(0).flatten()  # rows are independent
            count_queries(forwards=len(x), gradients=len(x) * len(totals))
            slopes = [
                torch.autograd.grad(total, victim_input, retain_graph=True)[0] for total in totals
            ]
        gradient = torch.stack(slopes, 1).to(x.dtype).unflatten(1, log_probs.shape[1:])
        return log_probs.detach(), _zero_nonfinite_rows(gradient)[0]

    def clip(self, x: Tensor) -> Tensor:
        """x clipped to the bounds."""
        return x if self.bounds is None else x.clamp(*self.bounds)

    def _to_victim_format(self, x: Tensor) -> Tensor:
        """Convert x to the format of the posterior that supplies the gradient."""
        return x.detach() if self.shadow is None else x.detach().to(FORMATS[self.precision])

    def _slope(
        self,
        predictive: Categorical,
        y: Tensor,
        criterion: Criterion,
        where: Tensor | None,
        towards: Tensor | None,
    ) -> Tensor:
        """The criterion's derivative with respect to the logits [S, B, T, C].

        In rows outside ``where`` it is the derivative of log p(y|x).
        """
        if criterion == "cross_entropy":
            labels = y if towards is None else torch.where(y >= 0, towards, -1)
            slope = log_likelihood_logit_gradient(predictive, labels, self.softened)
            return slope if towards is None else -slope
        with torch.enable_grad():
            leaf = predictive.logits.detach().requires_grad_(True)
            value = CRITERIA[criterion](Categorical(leaf), y, towards)
            slope = torch.autograd.grad(value.sum(), leaf)[0]
        if where is None:
            return slope
        return torch.where(
            where[:, None, None], slope, log_likelihood_logit_gradient(predictive, y, self.softened)
        )

    def _to_input_dtype(self, predictive: Categorical, x: Tensor) -> Categorical:
        """Logits in the format of the inputs x, so that the loss is computed in full."""
        return predictive if self.shadow is None else Categorical(predictive.logits.to(x.dtype))


def _zero_nonfinite_rows(slopes: Tensor) -> tuple[Tensor, Tensor]:
    """Derivatives [B, ...] with non-finite values set to 0, and the rows [B] bool without such
    values.

    Otherwise a single infinite derivative would dominate the norm of a row's gradient and make its
    input NaN."""
    # On a CPU, row sums check in one pass that all derivatives are finite; on a GPU, rewriting them
    # is cheaper than waiting for the result.
    if slopes.device.type == "cpu":
        sums = slopes.flatten(1).sum(1)
        if bool(sums.isfinite().all()):
            return slopes, torch.ones_like(sums, dtype=torch.bool)
    finite = slopes.isfinite()
    return torch.where(finite, slopes, 0.0), finite.flatten(1).all(1)


def _classes(predictive: Predictive) -> Categorical:
    """A posterior predictive of classes, the only supported kind.

    Raises:
        ConfigMismatchError: the labels are real."""
    if not isinstance(predictive, Categorical):
        raise ConfigMismatchError("attacker: attacks require class labels, but the labels are real")
    return predictive
