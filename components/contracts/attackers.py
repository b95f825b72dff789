"""Attackers, by what they act on: the inputs of a classifier, the observations of a sequence, a filter, a game.

An attacker is a component of one of these four bases; a run has one, or none."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.problems import Domain
from components.contracts.roles import Component, Inference, Model, Problem
from components.contracts.sequences import Clean
from components.contracts.streams import Rng
from components.contracts.victim import Against, Criterion, Expectation, FilterVictim, Measure, Victim

Knowledge = Literal["white box", "grey box", "black box"]

Q = TypeVar("Q", contravariant=True)  # a posterior that a problem can score
S = TypeVar("S")  # what an opponent remembers


class Evasion(Component):
    """An attacker who changes the inputs of a classifier within a ball of size ε.

    The sizes that he is evaluated at belong to the run (``evaluation.threat``): the key ``eps`` beside his own says them,
    and ``perturb`` is told one.  What else an evaluation or a defence wants to know of him are the methods below, of
    which an attack made of others asks those."""

    action: ClassVar[str] = "evasion"
    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    targets: ClassVar[frozenset[str] | None] = frozenset({"binary", "classes"})
    threat_keys: ClassVar[frozenset[str]] = frozenset({"eps"})
    one_threat: ClassVar[bool] = False  # True: those inside it may have no sizes of their own
    domain: ClassVar[Domain | None] = "continuous"  # of the inputs that it can attack; None: those inside it say
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Knowledge] = "white box"

    def measure(self) -> Measure:
        """What the size of its perturbations is."""
        return "linf" if self.inputs() == "continuous" else "flip"

    def inputs(self) -> Domain:
        """The inputs that it can attack."""
        if self.domain is None:
            raise TypeError(f"{type(self).__name__} does not say which inputs it attacks")
        return self.domain

    def knowledge_used(self) -> Knowledge:
        """What it knows of the victim."""
        return self.knowledge

    def expects(self) -> Expectation:
        """The expectation over a victim's draws whose gradient it follows."""
        return "predictive"

    def follows(self) -> Criterion:
        """What it lowers for the true class."""
        return "cross_entropy"

    def looks_at(self) -> Against:
        """Whose predictions it is aimed at, where the victim is a defence."""
        return "defended"

    def aims(self) -> frozenset[int | str | None]:
        """The classes that it wants to be predicted, by their labels; None: any but the true one."""
        return frozenset({None})

    def check_target(self, problem: Problem, key: str) -> None:
        """Checks that the classes it aims at are classes of the problem; ``key`` is where it is configured.

        Raises:
            Misfit: one of them is not."""

    def iterates(self) -> bool:
        """Whether it takes several steps away from the true class, which are to be no weaker than a single one."""
        return False

    def with_problem(self, problem: Problem, rng: Rng) -> Evasion:
        """This attacker once he has learnt from the problem what he needs (a surrogate, the number of a class); most need
        nothing."""
        return self

    def relentless(self) -> Evasion:
        """This attacker, who does not stop where an input first errs: one whose success is judged elsewhere."""
        return self

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        """x' [B, D] of size at most ε around x [B, D], for labels y [B, T], negative where missing."""
        raise TypeError(f"{type(self).__name__} has no perturb")


@runtime_checkable
class TrainsSurrogate(Protocol):
    """An attacker who trains a model of his own, on which the attacks inside him are computed."""

    @property
    def surrogate(self) -> Model: ...

    @property
    def inference(self) -> Inference: ...


class Contamination(Component):
    """An attacker who corrupts the observations of a sequence, once, before any inference."""

    action: ClassVar[str] = "contamination"
    kinds: ClassVar[frozenset[str]] = frozenset({"sequence"})
    targets: ClassVar[frozenset[str] | None] = None
    offers: ClassVar[frozenset[str]] = frozenset()  # ``noise_law``, where the law of the corrupted noise is known
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Knowledge] = "black box"

    def corrupt(self, clean: Clean, rng: Rng) -> Tensor:
        """A corrupted copy of the observations [R, T, dy], drawn from ``rng.attack`` alone.

        Raises:
            Misfit: it needs to know of the clean series what is not known.
        """
        raise TypeError(f"{type(self).__name__} has no corrupt")


@runtime_checkable
class Corruptible(Problem[Q], Protocol[Q]):
    """A problem whose observations an attacker can corrupt once, before any inference."""

    def attack(self, attacker: Contamination, rng: Rng) -> Problem: ...


class Injection(Component):
    """An attacker who shifts the observations that a filter sees within a budget ε, to raise its error.

    The budgets that he is evaluated at belong to the run, as those of an evasion attacker."""

    action: ClassVar[str] = "injection"
    kinds: ClassVar[frozenset[str]] = frozenset({"sequence"})
    targets: ClassVar[frozenset[str] | None] = None
    threat_keys: ClassVar[frozenset[str]] = frozenset({"eps"})
    one_threat: ClassVar[bool] = False
    follows_gradient: ClassVar[bool] = False  # of the model in its inputs; that of the filter is its own
    knowledge: ClassVar[Knowledge] = "white box"

    def measure(self) -> Measure:
        """What the size of a shift is, at every time by itself."""
        return "l2"

    def knowledge_used(self) -> Knowledge:
        """What he knows of the filter."""
        return self.knowledge

    def raises(self) -> Literal["rmse", "nmse"]:
        """The error of the filtered states that he raises."""
        return "rmse"

    def follows_through(self) -> int:
        """Number of times through which he follows an error back."""
        raise TypeError(f"{type(self).__name__} does not say how far he follows an error back")

    def noise_unit(self) -> float | None:
        """The unit of the budgets: the observation noise's standard deviation; None: what the model says."""
        return None

    def references(self) -> dict[str, Injection]:
        """Attackers at the same times by which he is judged: "one step", "black box", "random signs"."""
        raise TypeError(f"{type(self).__name__} has no references")

    def struck(self, victim: FilterVictim, rng: Rng) -> Tensor:
        """The times that he may shift [R, T] bool."""
        raise TypeError(f"{type(self).__name__} has no struck")

    def shift(self, victim: FilterVictim, rng: Rng, eps: float, found: Tensor | None) -> Tensor:
        """Shifts u [R, T, dy] in units of the noise, ‖u_t‖ ≤ ε; ``found`` are those that he found at a smaller budget."""
        raise TypeError(f"{type(self).__name__} has no shift")


class Opponent(Component, Generic[S]):
    """A player whom the decision maker meets in a game; what he remembers is a part of the inference's state."""

    action: ClassVar[str] = "adversary"
    kinds: ClassVar[frozenset[str]] = frozenset({"game"})
    targets: ClassVar[frozenset[str] | None] = None
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Knowledge] = "black box"
    third_party: ClassVar[bool] = False  # he plays no seat and faces nobody: what he does is a rate of tax

    def assign_seats(self, seats: int) -> list[Opponent[Any]]:
        """Who plays each of the seats for opponents: he himself, unless he leads others."""
        return [self] * seats

    def reset(self, seat: Seat, rng: Rng) -> S:
        """What he remembers before the first episode.

        Raises:
            Misfit: he cannot play on that seat.
        """
        raise TypeError(f"{type(self).__name__} has no reset")

    def act(self, state: S, turn: Turn, rng: Rng) -> Tensor:
        """His actions b [R] long, chosen without seeing hers; of a third party rates of tax [R]."""
        raise TypeError(f"{type(self).__name__} has no act")

    def observe(self, state: S, move: Move) -> S:
        """What he remembers after a move."""
        raise TypeError(f"{type(self).__name__} has no observe")


@runtime_checkable
class TellsPolicy(Protocol):
    """An opponent of whom can be asked how he will choose."""

    def policy_in(self, state: Any, s: Tensor, episode: int) -> Tensor: ...  # probabilities of his actions in s [R, B]


Attacker = Evasion | Contamination | Injection | Opponent


@runtime_checkable
class Attackable(Protocol):
    """A problem that is told whom the run has chosen."""

    attacker: Attacker | None
