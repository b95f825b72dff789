"""Attackers, by what they act on: the inputs of a classifier, the observations of a sequence, a
filter, a game.

An attacker is a component of one of these four bases; a run has one, or none."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Protocol,
    TypeVar,
    runtime_checkable,
)

from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.problems import Domain
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
from components.old_names import resolve_old_name

Knowledge = Literal["white box", "grey box", "black box"]

Q = TypeVar("Q", contravariant=True)  # a posterior that a problem can score
S = TypeVar("S")  # memory of an opponent


class Evasion(Component):
    """An attacker that changes the inputs of a classifier within a ball of size ε.

    The sizes of an evaluation belong to the run (``evaluation.threat``): the key ``eps``
    next to the attacker's own keys sets them, and ``perturb`` receives one.  The methods
    below answer all other questions of an evaluation or a defence; an attack composed of
    others forwards these to its members.
    """

    action: ClassVar[str] = "evasion"
    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    targets: ClassVar[frozenset[str] | None] = frozenset({"binary", "classes"})
    threat_keys: ClassVar[frozenset[str]] = frozenset({"eps"})
    one_threat: ClassVar[bool] = False  # True: members inside it may have no sizes of their own
    # of the inputs that it can attack; None: its members decide
    domain: ClassVar[Domain | None] = "continuous"
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Knowledge] = "white box"

    def measure(self) -> Measure:
        """Measure of the size of its perturbations."""
        return "linf" if self.inputs() == "continuous" else "flip"

    def inputs(self) -> Domain:
        """The inputs that it can attack."""
        if self.domain is None:
            raise TypeError(f"{type(self).__name__} does not say which inputs it attacks")
        return self.domain

    def knowledge_used(self) -> Knowledge:
        """Knowledge that the attacker has of the victim."""
        return self.knowledge

    def expects(self) -> Expectation:
        """Expectation over a victim's draws that supplies the gradient."""
        return "predictive"

    def follows(self) -> Criterion:
        """Criterion that the attacker lowers for the true class."""
        return "cross_entropy"

    def looks_at(self) -> Against:
        """Predictions that the attack targets if the victim is a defence."""
        return "defended"

    def aims(self) -> frozenset[int | str | None]:
        """The classes that it wants to be predicted, by their labels; None: any but the true
        one."""
        return frozenset({None})

    def check_target(self, problem: Problem, key: str) -> None:
        """Checks that the classes it aims at are classes of the problem; ``key`` is where it is
        configured.

        Raises:
            Misfit: one of them is not."""

    def iterates(self) -> bool:
        """True if the attack takes several steps away from the true class.

        Several steps must be no weaker than a single one.
        """
        return False

    def with_problem(self, problem: Problem, rng: Rng) -> Evasion:
        """This attacker after it has learnt what it needs from the problem.

        Examples are a surrogate and the number of a class; most attackers need nothing.
        """
        return self

    def relentless(self) -> Evasion:
        """This attacker without the stop at the first error of an input.

        It is for attackers with success judged elsewhere.
        """
        return self

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        """x' [B, D] of size at most ε around x [B, D], for labels y [B, T], negative where
        missing."""
        raise TypeError(f"{type(self).__name__} has no perturb")


class Contamination(Component):
    """An attacker who corrupts the observations of a sequence, once, before any inference."""

    action: ClassVar[str] = "contamination"
    kinds: ClassVar[frozenset[str]] = frozenset({"sequence"})
    targets: ClassVar[frozenset[str] | None] = None
    # ``noise_law``, where the law of the corrupted noise is known
    offers: ClassVar[frozenset[str]] = frozenset()
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Knowledge] = "black box"

    def corrupt(self, clean: Clean, rng: Rng) -> Tensor:
        """A corrupted copy of the observations [R, T, dy], drawn from ``rng.attack`` only.

        Raises:
            Misfit: the attacker needs facts about the clean series that are not known.
        """
        raise TypeError(f"{type(self).__name__} has no corrupt")


class Injection(Component):
    """An attacker that shifts a filter's observations within a budget ε, to raise its error.

    The budgets of an evaluation belong to the run, as for an evasion attacker.
    """

    action: ClassVar[str] = "injection"
    kinds: ClassVar[frozenset[str]] = frozenset({"sequence"})
    targets: ClassVar[frozenset[str] | None] = None
    threat_keys: ClassVar[frozenset[str]] = frozenset({"eps"})
    one_threat: ClassVar[bool] = False
    # gradient of the model in its inputs; a filter's gradient is its own
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Knowledge] = "white box"

    def measure(self) -> Measure:
        """Measure of the size of a shift, at each time separately."""
        return "l2"

    def knowledge_used(self) -> Knowledge:
        """Knowledge that the attacker has of the filter."""
        return self.knowledge

    def raises(self) -> Literal["rmse", "nmse"]:
        """Error of the filtered states that the attacker raises."""
        return "rmse"

    def follows_through(self) -> int:
        """Number of times through which the attacker follows an error back."""
        raise TypeError(f"{type(self).__name__} does not say how far he follows an error back")

    def noise_unit(self) -> float | None:
        """The unit of the budgets: the observation noise's standard deviation; None: what the model
        says."""
        return None

    def references(self) -> dict[str, Injection]:
        """Reference attackers at the same times: "one step", "black box", "random signs".

        The attacker is judged against them.
        """
        raise TypeError(f"{type(self).__name__} has no references")

    def struck(self, victim: FilterVictim, rng: Rng) -> Tensor:
        """Times that the attacker may shift [R, T] bool."""
        raise TypeError(f"{type(self).__name__} has no struck")

    def shift(self, victim: FilterVictim, rng: Rng, eps: float, found: Tensor | None) -> Tensor:
        """Shifts u [R, T, dy] in units of the noise, ‖u_t‖ ≤ ε.

        ``found`` are the attacker's shifts from a smaller budget.
        """
        raise TypeError(f"{type(self).__name__} has no shift")


class Opponent(Component, Generic[S]):
    """A player that the decision maker meets in a game.

    The opponent's memory is part of the inference's state.
    """

    action: ClassVar[str] = "adversary"
    kinds: ClassVar[frozenset[str]] = frozenset({"game"})
    targets: ClassVar[frozenset[str] | None] = None
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Knowledge] = "black box"
    # a third party has no seat and faces nobody: its action is a rate of tax
    third_party: ClassVar[bool] = False

    def assign_seats(self, seats: int) -> list[Opponent[Any]]:
        """Players of the opponents' seats: the opponent itself, unless it leads others."""
        return [self] * seats

    def reset(self, seat: Seat, rng: Rng) -> S:
        """The opponent's memory before the first episode.

        Raises:
            Misfit: the opponent cannot play on that seat.
        """
        raise TypeError(f"{type(self).__name__} has no reset")

    def act(self, state: S, turn: Turn, rng: Rng) -> Tensor:
        """The opponent's actions b [R] long, chosen without seeing the decision maker's.

        For a third party: tax rates [R].
        """
        raise TypeError(f"{type(self).__name__} has no act")

    def observe(self, state: S, move: Move) -> S:
        """The opponent's memory after a move."""
        raise TypeError(f"{type(self).__name__} has no observe")


@runtime_checkable
class PolicyReporter(Protocol):
    """An opponent that can report its policy."""

    # probabilities of the opponent's actions in s [R, B]
    def policy_in(self, state: Any, s: Tensor, episode: int) -> Tensor: ...


Attacker = Evasion | Contamination | Injection | Opponent


@runtime_checkable
class Attackable(Protocol):
    """A problem that is told whom the run has chosen."""

    attacker: Attacker | None


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return resolve_old_name(__name__, name)
