"""What an evasion attacker sees of the model that it attacks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.attackers.criteria import CRITERIA, TOWARDS, is_misclassified, log_likelihood, summed_slope
from components.contracts.posteriors import ChangesFormat, Predicts, PredictsInReverse, Redraws
from components.contracts.predictive import Categorical, Predictive
from components.contracts.victim import Answer, Criterion, Expectation, Precision
from components.trouble import Misfit

FRESH = 4  # draws behind each step when they are fresh: their noise averages out over the steps of an attack

FORMATS: dict[Precision, torch.dtype] = {"bfloat16": torch.bfloat16}

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
    shadow: Predicts | None = None  # a copy in another format whose gradient is followed, and which decides nothing
    precision: Precision = "full"  # of the shadow
    softened: bool = False  # whether gradients of log p(y|x) are taken at tempered logits

    def facing(self, expectation: Expectation) -> Attacked:
        """The same victim, whose gradient is that of another expectation over draws."""
        return replace(self, expectation=expectation)

    def soften(self) -> Attacked:
        """The same victim, whose gradients of log p(y|x) are taken at tempered logits (``criteria.summed_slope``)."""
        return self if self.softened else replace(self, softened=True)

    def round_gradient(self, precision: Precision) -> Attacked:
        """The same victim, whose gradient is that of a copy in another floating-point format, made here and kept.

        Raises:
            Misfit: it has no such copy."""
        if precision == self.precision:
            return self
        if precision == "full":
            return replace(self, shadow=None, precision=precision)
        shadow = None
        if isinstance(self.posterior, ChangesFormat):
            shadow = self.posterior.in_format(FORMATS[precision])
        if shadow is None:
            raise Misfit(
                f"attacker.precision={precision}: this victim cannot be computed in that format; networks can (model=mlp, "
                "model=cnn); use attacker.precision=full"
            )
        return replace(self, shadow=shadow, precision=precision)

    def aimed_at(self, posterior: Predicts) -> Attacked:
        """Another posterior in the same place: a surrogate, or what lies under a defence."""
        return replace(self, posterior=posterior, shadow=None, precision="full")

    def answers(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """The posterior predictive at x [B, D]."""
        return _classes(self.posterior.predict(x, generator))

    def wavers(self, x: Tensor) -> bool:
        """Whether two questions about the same input get different answers: predictions that draw anew each time."""
        if len(x) == 0:
            return False
        with torch.no_grad():
            first, second = (
                self.answers(x[:1], torch.Generator(x.device).manual_seed(seed)).log_probs for seed in (0, 1)
            )
        return not torch.equal(first, second)

    def followed_posterior(self, generator: torch.Generator) -> Predicts:
        """The posterior whose gradient one step follows."""
        posterior = self.posterior if self.shadow is None else self.shadow
        if self.expectation == "predictive" or not isinstance(posterior, Redraws):
            return posterior
        if self.expectation == "single_draw":
            return posterior.some(1, None)
        return posterior.some(FRESH, generator)

    def log_prob(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """Σ_t log p(y_t|x), the posterior predictive of class numbers y [B, T]; a missing label is negative. [B]"""
        return log_likelihood(self.answers(x, generator), y)

    def broken(self, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """Whether some observed label of each row is not the one predicted [B]."""
        with torch.no_grad():
            return is_misclassified(self.answers(x, generator), y)

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
        """log p(y|x), whether x is broken and the gradient of a criterion in the input alone, in one pass.

        Where ``where`` [B] bool is given, its rows alone follow the criterion, the others log p(y|x).  Whether x is broken
        the victim itself says, by all draws and in its own format: of a copy that is followed along the whole predictive,
        only rows are judged that seem to be where the attack wants them, broken or (``aim`` False) not, and the others
        are taken not to be there.  Where ``towards`` [B, T] is given, the criterion is that against these classes alone.

        Raises:
            Misfit: as ``input_gradient``.
        """
        posterior = self.followed_posterior(generator)
        gradient, finite, predictive = self._gradient(posterior, x, y, generator, criterion, where, towards)
        log_prob = objective = log_likelihood(predictive, y)
        if towards is not None:
            objective = TOWARDS[criterion](predictive, y, towards)
        elif criterion != "cross_entropy":
            objective = _objective(predictive, y, criterion, where)
        broken = is_misclassified(predictive, y)
        if posterior is self.shadow:
            seeming = (broken == aim).nonzero()[:, 0]
            if len(seeming):
                broken[seeming] = self.broken(x[seeming], y[seeming], generator)
        elif posterior is not self.posterior:
            broken = self.broken(x, y, generator)
        return Answer(log_prob, broken, gradient, objective, finite, predictive)

    def input_gradient(
        self,
        x: Tensor,
        y: Tensor,
        generator: torch.Generator,
        criterion: Criterion = "cross_entropy",
        where: Tensor | None = None,
    ) -> Tensor:
        """∇_x of log p(y|x) or of a criterion [B, D], with respect to the input alone; 0 where a slope is not finite.

        Of a softened victim log p(y|x) is tempered (``soften``).

        Raises:
            Misfit: the prediction does not depend on the input in a differentiable way, or has too few classes for it.
        """
        return self._gradient(self.followed_posterior(generator), x, y, generator, criterion, where)[0]

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
        """The gradient, the rows [B] bool in which all of it is finite, and the predictive that it is of.

        The criterion's derivative is taken in the logits, which are few; from there to the inputs goes the posterior's
        reverse where it is written out, and a graph where it is not."""
        seen = self._to_victim_format(x)
        known = posterior.reverse(seen, generator) if isinstance(posterior, PredictsInReverse) else None
        if known is not None:
            logits, back = _classes(known[0]).logits, known[1]
        else:
            with torch.enable_grad():
                logits = _classes(posterior.predict(seen.requires_grad_(True), generator)).logits
            if not logits.requires_grad:
                raise Misfit(NO_GRADIENT)
        predictive = self._wide(Categorical(logits.detach()), x)
        with torch.no_grad():
            slope = self._slope(predictive, y, criterion, where, towards).to(logits.dtype)
            gradient = torch.autograd.grad(logits, seen, slope)[0] if known is None else back(slope)
        return *_leave_out(gradient.to(x.dtype)), predictive

    def jacobian(self, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """log p(t, c|x) of every task and class [B, T, C] and its gradient in the input [B, T, C, D].

        Raises:
            Misfit: the prediction does not depend on the input in a differentiable way.
        """
        posterior = self.followed_posterior(generator)
        with torch.enable_grad():
            at = self._to_victim_format(x).requires_grad_(True)
            log_probs = self._wide(_classes(posterior.predict(at, generator)), x).log_probs  # [B, T, C]
            if not log_probs.requires_grad:
                raise Misfit(NO_GRADIENT)
            totals = log_probs.sum(0).flatten()  # rows do not act on each other
            slopes = [torch.autograd.grad(total, at, retain_graph=True)[0] for total in totals]
        gradient = torch.stack(slopes, 1).to(x.dtype).unflatten(1, log_probs.shape[1:])
        return log_probs.detach(), _leave_out(gradient)[0]

    def clip(self, x: Tensor) -> Tensor:
        """x moved into the bounds."""
        return x if self.bounds is None else x.clamp(*self.bounds)

    def _to_victim_format(self, x: Tensor) -> Tensor:
        """x in the format of what is followed."""
        return x.detach() if self.shadow is None else x.detach().to(FORMATS[self.precision])

    def _slope(
        self,
        predictive: Categorical,
        y: Tensor,
        criterion: Criterion,
        where: Tensor | None,
        towards: Tensor | None,
    ) -> Tensor:
        """The criterion's derivative in the logits [S, B, T, C], in rows outside ``where`` that of log p(y|x)."""
        if criterion == "cross_entropy":
            if towards is not None:
                return -summed_slope(predictive, torch.where(y >= 0, towards, -1), self.softened)
            return summed_slope(predictive, y, self.softened)
        with torch.enable_grad():
            leaf = predictive.logits.detach().requires_grad_(True)
            leaves = Categorical(leaf)
            value = CRITERIA[criterion](leaves, y) if towards is None else TOWARDS[criterion](leaves, y, towards)
            slope = torch.autograd.grad(value.sum(), leaf)[0]
        if where is None:
            return slope
        return torch.where(where[:, None, None], slope, summed_slope(predictive, y, self.softened))

    def _wide(self, predictive: Categorical, x: Tensor) -> Categorical:
        """Logits in the format of the inputs x, so that the loss is computed in full."""
        return predictive if self.shadow is None else Categorical(predictive.logits.to(x.dtype))


def _objective(predictive: Categorical, y: Tensor, criterion: Criterion, where: Tensor | None) -> Tensor:
    """The criterion, or in rows outside ``where`` log p(y|x) [B]."""
    objective = CRITERIA[criterion](predictive, y)
    return objective if where is None else torch.where(where, objective, log_likelihood(predictive, y))


def _leave_out(slopes: Tensor) -> tuple[Tensor, Tensor]:
    """Slopes [B, ...] with 0 for each that is no finite number, and the rows [B] bool that had none of these.

    A single infinite slope would otherwise decide the length of a row's gradient, and leave no number in its input."""
    finite = slopes.isfinite()
    rows = finite.flatten(1).all(1)
    return (slopes if bool(rows.all()) else torch.where(finite, slopes, 0.0)), rows


def _classes(predictive: Predictive) -> Categorical:
    """A posterior predictive, which is one of classes: no other is attacked.

    Raises:
        Misfit: it is one of real labels."""
    if not isinstance(predictive, Categorical):
        raise Misfit(
            "attacker: an attack changes inputs until they are taken for another class, and labels here are real"
        )
    return predictive
