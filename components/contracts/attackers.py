"""Attackers, by their target: the inputs of a classifier, the observations of a sequence, a filter,
or a game.

An attacker derives from one of these four bases; a run has at most one attacker."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from torch import Tensor
from typing_extensions import TypeVar

from components.contracts.capabilities import CAPABILITIES
from components.contracts.opponents import Opponent as Opponent
from components.contracts.plugins.protocols import ReturnedProtocols
from components.contracts.problems import Domain
from components.contracts.requirements import Requirements
from components.contracts.roles import Component, Problem
from components.contracts.sequences import Clean
from components.contracts.streams import Rng
from components.contracts.victim import (
    Against,
    Criterion,
    Expectation,
    FilterVictim,
    Measure,
    Victim,
)
from components.contracts.victim import Knowledge as Knowledge

Q = TypeVar("Q", contravariant=True, default=Any)  # a posterior that a problem can score


class Evasion(Component):
    """An attacker that changes the inputs of a classifier within a ball of size ε.

    The sizes ε are part of the run's configuration (``evaluation.threat``): the key ``eps`` next to
    the attacker's own keys sets them, and ``perturb`` receives one of them.  The methods below
    provide everything else that an evaluation or a defence reads; an attack composed of others
    forwards them to its members.

    Example:
        One step along the sign of the gradient, x' = clip(x − ε sign ∇_x log p(y|x)), on a
        logistic regression with slope 1 and inputs in [0, 1]:

        >>> from types import SimpleNamespace
        >>> import torch
        >>> from components.contracts.attackers import Evasion
        >>> from runner.execution.rng import Streams
        >>> class OneStep(Evasion):
        ...     def perturb(self, victim, x, y, rng, eps):
        ...         gradient = victim.input_gradient(x, y, rng.attack)
        ...         return victim.clip(x - eps * gradient.sign())
        >>> logistic = SimpleNamespace(
        ...     input_gradient=lambda x, y, generator: y - x.sigmoid(),
        ...     clip=lambda x: x.clamp(0, 1),
        ... )
        >>> attacker = OneStep(name="one_step")
        >>> x, y = torch.tensor([[0.5], [0.9]]), torch.tensor([[1], [0]])
        >>> attacker.perturb(logistic, x, y, Streams(0), eps=0.2)
        tensor([[0.3000],
                [1.0000]])
        >>> attacker.measure()
        'linf'
    """

    action: ClassVar[str] = "evasion"
    requires = Requirements(kinds={"supervised"}, targets={"binary", "classes"})
    threat_keys = {"eps"}
    one_threat: ClassVar[bool] = False  # True if its members must not set their own sizes
    # kinds of inputs that it can attack; None if determined by its members
    domain: ClassVar[Domain | None] = "continuous"
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Knowledge] = "white box"

    def measure(self) -> Measure:
        """Norm or count that measures its perturbations."""
        return "linf" if self.inputs() == "continuous" else "flip"

    def inputs(self) -> Domain:
        """The inputs that it can attack.

        Raises:
            TypeError: neither the class nor its members declare them.
        """
        if self.domain is None:
            raise NotImplementedError
        return self.domain

    def knowledge_used(self) -> Knowledge:
        """Knowledge that the attacker has of the victim."""
        return self.knowledge

    def gradient_source(self) -> Expectation:
        """Expectation over a victim's draws that supplies the gradient."""
        return "predictive"

    def minimised_criterion(self) -> Criterion:
        """Criterion that the attacker minimises for the true class."""
        return "cross_entropy"

    def targeted_predictions(self) -> Against:
        """Predictions that the attack targets if the victim has a defence."""
        return "defended"

    def target_labels(self) -> frozenset[int | str | None]:
        """Target classes of the attack.

        Returns:
            Class labels; None means any class except the true one.
        """
        return frozenset({None})

    def check_target(self, problem: Problem, key: str) -> None:
        """Check that the target classes are classes of the problem.

        Args:
            problem: the problem under attack.
            key: key that configures the attacker, for the message.

        Raises:
            ConfigMismatchError: a target class is not a class of the problem.
        """

    def is_iterative(self) -> bool:
        """True if the attack takes several steps away from the true class.

        Several steps must not be weaker than a single one.
        """
        return False

    def with_problem(self, problem: Problem, rng: Rng) -> Evasion:
        """Prepare the attacker for a problem.

        Examples are training a surrogate and looking up the number of a class; most attackers need
        no preparation.

        Args:
            problem: the problem under attack.
            rng: random streams of the replicate.

        Returns:
            An attacker that is ready for ``perturb``.
        """
        return self

    def without_early_stop(self) -> Evasion:
        """This attacker without early stopping at the first misclassification of an input.

        Used where success is judged by other code.
        """
        return self

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        """Perturb inputs within a ball of size ε.

        Args:
            victim: the posterior under attack; it provides predictions and gradients.
            x: inputs [B, D], in the units of the problem.
            y: class numbers [B, T], negative where a label is missing.
            rng: random streams; draws are from the stream ``attack`` only.
            eps: ε ≥ 0, in the measure ``measure()``.

        Returns:
            Perturbed inputs x' [B, D]; the size of x' − x is at most ε.
        """
        raise NotImplementedError


class Contamination(Component):
    """An attacker that corrupts the observations of a sequence, once, before any inference.

    Example:
        >>> import torch
        >>> from components.contracts.attackers import Contamination
        >>> from components.contracts.sequences import Clean
        >>> from runner.execution.rng import Streams
        >>> class Outliers(Contamination):
        ...     probability: float
        ...     size: float
        ...
        ...     def corrupt(self, clean, rng):
        ...         u = torch.rand(clean.y.shape[:2], generator=rng.attack).unsqueeze(-1)
        ...         return torch.where(u < self.probability, clean.y + self.size, clean.y)
        >>> attacker = Outliers(name="outliers", probability=0.5, size=10.0)
        >>> y = attacker.corrupt(Clean(torch.zeros(1, 1000, 1)), Streams(0))
        >>> y.unique(), 400 < int((y > 0).sum()) < 600
        (tensor([ 0., 10.]), True)
    """

    action: ClassVar[str] = "contamination"
    requires = Requirements(kinds={"sequence"})
    # ``NoiseLaw`` if the distribution of the corrupted noise is known
    offers: ClassVar[Set[type]] = ReturnedProtocols("", CAPABILITIES)  # type: ignore[assignment]
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Knowledge] = "black box"

    def corrupt(self, clean: Clean, rng: Rng) -> Tensor:
        """Corrupted copy of the observations.

        Args:
            clean: observations [R, T, dy], NaN where missing, with the known facts that generated
            them.
            rng: random streams; draws are from the stream ``attack`` only.

        Returns:
            Observations [R, T, dy], NaN where missing.

        Raises:
            ConfigMismatchError: the attacker needs facts about the clean series that are not
                known.
        """
        raise NotImplementedError


class Injection(Component):
    """An attacker that shifts a filter's observations within a budget ε to increase its error.

    The budgets are part of the run's configuration, as for an evasion attacker.

    Example:
        At each time a shift of length ε along the gradient g_t of the error, u_t = ε g_t/‖g_t‖:

        >>> from types import SimpleNamespace
        >>> import torch
        >>> from components.contracts.attackers import Injection
        >>> from runner.execution.rng import Streams
        >>> class AlongGradient(Injection):
        ...     def struck(self, victim, rng):
        ...         return victim.is_observed
        ...
        ...     def shift(self, victim, rng, eps, found):
        ...         error, gradient = victim.gradient(torch.zeros_like(victim.observations))
        ...         unit = gradient / gradient.norm(dim=-1, keepdim=True)
        ...         return eps * unit * self.struck(victim, rng).unsqueeze(-1)
        >>> y = torch.tensor([[[1.0, 1.0], [3.0, 4.0]]])  # R = 1, T = 2, dy = 2
        >>> victim = SimpleNamespace(
        ...     observations=y,
        ...     is_observed=torch.tensor([[False, True]]),
        ...     gradient=lambda u: ((y + u).square().mean((1, 2)), y + u),
        ... )
        >>> AlongGradient(name="along").shift(victim, Streams(0), eps=2.0, found=None)
        tensor([[[0.0000, 0.0000],
                 [1.2000, 1.6000]]])
    """

    action: ClassVar[str] = "injection"
    requires = Requirements(kinds={"sequence"})
    threat_keys = {"eps"}
    one_threat: ClassVar[bool] = False
    # gradient with respect to a model's inputs; a filter provides its own
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Knowledge] = "white box"

    def measure(self) -> Measure:
        """Measure of the size of a shift, at each time separately."""
        return "l2"

    def knowledge_used(self) -> Knowledge:
        """Knowledge that the attacker has of the filter."""
        return self.knowledge

    def error_measure(self) -> Literal["rmse", "nmse"]:
        """Error of the filtered states that the attacker increases."""
        return "rmse"

    def backpropagated_steps(self) -> int:
        """Number of time steps through which the attacker backpropagates an error.

        Raises:
            TypeError: the class does not declare it.
        """
        raise NotImplementedError

    def noise_unit(self) -> float | None:
        """Unit of the budgets: the observation noise's standard deviation, in units of y.

        Returns:
            The standard deviation; None for the model's own.
        """
        return None

    def references(self) -> dict[str, Injection]:
        """Reference attackers, which act at the same times, for comparison.

        Returns:
            Name -> attacker: "one step", "black box", "random signs".
        """
        raise NotImplementedError

    def struck(self, victim: FilterVictim, rng: Rng) -> Tensor:
        """Times that the attacker may shift.

        Args:
            victim: the filter under attack.
            rng: random streams; draws are from the stream ``attack`` only.

        Returns:
            True where a shift is allowed [R, T] bool.
        """
        raise NotImplementedError

    def shift(self, victim: FilterVictim, rng: Rng, eps: float, found: Tensor | None) -> Tensor:
        """Shifts of the observations that raise the filter's error.

        Args:
            victim: the filter under attack.
            rng: random streams; draws are from the stream ``attack`` only.
            eps: budget ε ≥ 0 at each time, in units of the noise.
            found: shifts [R, T, dy] of this attacker with a smaller budget; None if it is the
                first.

        Returns:
            Shifts u [R, T, dy] in units of the noise, ‖u_t‖ ≤ ε.
        """
        raise NotImplementedError


Attacker = Evasion | Contamination | Injection | Opponent


@runtime_checkable
class Attackable(Protocol):
    """A problem that stores the attacker of the run."""

    attacker: Attacker | None
