"""The roles, and what passes between them.

A component is a frozen pydantic model: its fields are its configuration (types and constraints here, every default in
its YAML), its methods are the science.  Nothing in this package imports ``runner``.

    problem = dataset.load(rng, setting)
    model   = model.build(problem, rng)
    state   = inference.init(model, problem, rng)
    for step, batch in problem.batches(inference.sees, rng, start, stop):
        state, info = inference.step(state, batch, rng)
    posterior = inference.posterior(state)
    problem.score(posterior, rng);  problem.draw(posterior, rng)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from components.contracts.games import Move, Seat
from components.contracts.problems import Domain, Kind, Sees, Target, Values
from components.contracts.sequences import Clean
from components.contracts.streams import Rng
from components.contracts.victim import Against, Criterion, Expectation, FilterVictim, Measure, Victim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Probability = Annotated[float, Field(ge=0, le=1)]
Knowledge = Literal["white box", "grey box", "black box"]
Info = dict[str, Any]  # name -> number or tensor: what a diagnostician wants, never needed by the next step

P = TypeVar("P")  # a problem
Q = TypeVar("Q", contravariant=True)  # a posterior that it can score
M = TypeVar("M")  # a built model, or the capabilities that are asked of it
B = TypeVar("B")  # what a step is shown
S = TypeVar("S")  # a state: a dataclass of tensors, numbers, modules and optimizers, all that the next step needs


@dataclass(frozen=True)
class Setting:
    """Where and how a dataset is to be loaded."""

    data_dir: Path
    device: torch.device
    dtype: torch.dtype
    replicates: int  # > 1 only for datasets that carry replicates as a leading tensor dimension
    offline: bool = False  # True: attempt no download


class Problem(Protocol[Q]):
    """What a dataset loads: data, how to show them, how to score a posterior on them and how to draw it."""

    attacker: Attacker | None  # whom the run has chosen

    @property
    def kind(self) -> Kind: ...

    @property
    def name(self) -> str: ...  # the data's own name: "sarcos-test-file" and "sarcos-sim" are never called "sarcos"

    @property
    def replicates(self) -> int: ...  # size of the leading replicate dimension (1: there is none, the runner loops)

    def length(self, sees: Sees) -> int | None:
        """Number of steps there are, where what is seen comes to an end: observations, episodes.  None: no end."""
        ...

    def batches(self, sees: Sees, rng: Rng, start: int, stop: int) -> Iterator[tuple[int, Any]]:
        """Steps start+1 … stop and what each is shown, a pure function of the seed and the step."""
        ...

    def score(self, posterior: Q, rng: Rng) -> dict[str, Tensor | float]:
        """Scores by name: numbers, or [R] where replicates are a dimension."""
        ...

    def draw(self, posterior: Q, rng: Rng) -> dict[str, Figure]:
        """Figures by name."""
        ...

    def describe(self) -> dict[str, str]:
        """Facts for the terminal and the record."""
        ...


@runtime_checkable
class HoldsOut(Problem[Q], Protocol[Q]):
    """A problem of which some training rows can take the test rows' place, as ``validation`` asks."""

    def held_out(self, share: float, rng: Rng) -> Problem: ...


@runtime_checkable
class Corruptible(Problem[Q], Protocol[Q]):
    """A problem whose observations an attacker can corrupt once, before any inference."""

    def attacked(self, attacker: Contamination, rng: Rng) -> Problem: ...


class Component(BaseModel):
    """One registered class; ``extra="forbid"`` makes an unknown key an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())
    shares: ClassVar[frozenset[str]] = frozenset()  # keys whose values the components inside it take over
    threat_keys: ClassVar[frozenset[str]] = frozenset()  # keys of its YAML that are the evaluation's, not its own
    before: ClassVar[dict[str, Any]] = {}  # keys that came later, and what was done before: records from then have none
    name: str

    @classmethod
    def yaml_keys(cls) -> frozenset[str]:
        """All that its YAML holds."""
        return frozenset(cls.model_fields) | cls.threat_keys


class Dataset(Component, Generic[P]):
    kind: ClassVar[Kind]
    target: ClassVar[Target | None] = None
    domain: ClassVar[Domain] = "continuous"  # of the inputs of a supervised problem
    values: ClassVar[Values | None] = None  # of an unlabelled problem; None there: its keys say
    vectorised: ClassVar[bool] = False  # its problems can hold all replicates at once
    # Capabilities of the system, or of the environment, that its problems hold and that a model may assume.
    simulates: ClassVar[frozenset[str]] = frozenset()

    def identity(self, data_dir: Path, offline: bool) -> str:
        """Name of the data that ``load`` would use now (it enters the run's signature); reads no data."""
        return self.name

    def holds(self) -> Values | None:
        """What the rows of an unlabelled problem hold, as this data set is configured."""
        return self.values

    def load(self, rng: Rng, setting: Setting) -> P:
        raise TypeError(f"{type(self).__name__} has no load")


class Model(Component, Generic[P, M]):
    kinds: ClassVar[frozenset[str]]
    targets: ClassVar[frozenset[str] | None] = None  # supervised only; None: every target
    values: ClassVar[frozenset[str] | None] = None  # unlabelled only: what rows it has a likelihood for; None: all
    offers: ClassVar[frozenset[str]]  # names of the capabilities that every built model has, in snake case
    offers_where: ClassVar[dict[str, str]] = {}  # and those that some configurations have: capability -> what brings it
    # What it asks, with its defaults, of that which the dataset ``simulates``.
    assumes: ClassVar[frozenset[str]] = frozenset()
    needs_attacker: ClassVar[frozenset[str]] = frozenset()  # what it asks of the attacker, where there is one
    differentiable: ClassVar[bool] = True  # in its inputs: what a gradient attack follows

    def offered(self) -> frozenset[str]:
        """Capabilities of a model built as configured: ``offers``, and those of ``offers_where`` that its keys bring."""
        return self.offers

    def assumed(self) -> frozenset[str]:
        """What it asks of that which the dataset ``simulates``, as configured."""
        return self.assumes

    def build(self, problem: P, rng: Rng) -> M:
        raise TypeError(f"{type(self).__name__} has no build")


class Inference(Component, Generic[M, P, B, S]):
    kinds: ClassVar[frozenset[str]]
    sees: ClassVar[Sees] = "minibatch"  # what a step is shown
    needs: ClassVar[frozenset[str]]  # capabilities that the model must offer, whatever the configuration
    needs_by_kind: ClassVar[dict[str, frozenset[str]]] = {}  # and those that one kind of problem asks besides
    gives: ClassVar[frozenset[str]]  # protocols of ``contracts.posteriors`` that its posterior keeps, in snake case
    folds_replicates: ClassVar[frozenset[str]] = frozenset({"sequence", "game"})  # kinds of problems all of whose
    # replicates it carries at once, as a leading dimension; of a density they are folded into the chains, [R·C, P]
    attacks: ClassVar[bool] = False  # True: a defence, which calls ``problem.attacker`` inside ``step``
    mixes: ClassVar[bool] = True  # where it draws: by Markov chains, or weighted, so that R̂, ESS or k̂ judge them

    def asked_by_keys(self) -> dict[str, str]:
        """Capabilities that keys of this method, as they are set, ask of the model besides: capability -> the key."""
        return {}

    def needed(self, kind: Kind) -> frozenset[str]:
        """Capabilities that the model must offer for a problem of a kind, as this method is configured."""
        return self.needs | self.needs_by_kind.get(kind, frozenset()) | self.asked_by_keys().keys()

    def init(self, model: M, problem: P, rng: Rng) -> S:
        raise TypeError(f"{type(self).__name__} has no init")

    def step(self, state: S, batch: B, rng: Rng) -> tuple[S, Info]:
        raise TypeError(f"{type(self).__name__} has no step")

    def posterior(self, state: S) -> object:
        raise TypeError(f"{type(self).__name__} has no posterior")


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

    def known(self) -> Knowledge:
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

    def iterates(self) -> bool:
        """Whether it takes several steps away from the true class, which are to be no weaker than a single one."""
        return False

    def informed(self, problem: Problem, rng: Rng) -> Evasion:
        """This attacker once he has learnt from the problem what he needs (a surrogate); most need nothing."""
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

    def known(self) -> Knowledge:
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

    def seated(self, seats: int) -> list[Opponent[Any]]:
        """Who plays each of the seats for opponents: he himself, unless he leads others."""
        return [self] * seats

    def reset(self, seat: Seat, rng: Rng) -> S:
        """What he remembers before the first episode.

        Raises:
            Misfit: he cannot play on that seat.
        """
        raise TypeError(f"{type(self).__name__} has no reset")

    def act(self, state: S, s: Tensor, rng: Rng) -> Tensor:
        """His actions b [R] long in states s [R, …], chosen without seeing hers."""
        raise TypeError(f"{type(self).__name__} has no act")

    def observe(self, state: S, move: Move) -> S:
        """What he remembers after a move."""
        raise TypeError(f"{type(self).__name__} has no observe")


Attacker = Evasion | Contamination | Injection | Opponent


class Gradient(Component, Generic[M, B, S]):
    """An estimator of the gradient of a bound, which is an expectation; it lives only inside inference methods.

    Its configuration holds all that it draws with (``n_samples``, shared from the inference that holds it).  What it learns
    on the way (coefficients, baselines, surrogates and their optimizers) is its state, a part of the inference's; ``estimate``
    does not move the module's parameters, so that an estimator can be measured on a module that stands still."""

    needs: ClassVar[frozenset[str]]  # capabilities that it asks of the module
    unbiased: ClassVar[bool]  # its mean is the gradient of the bound that it names ``elbo``

    def init(self, module: M, rng: Rng) -> S:
        raise TypeError(f"{type(self).__name__} has no init")

    def estimate(self, module: M, batch: B, rng: Rng, state: S) -> tuple[list[Tensor | None], dict[str, Tensor], S]:
        """Gradients of the bound for the whole data set, one for each of ``module.parameters()`` in their order (None: it
        does not matter to the bound), the terms of the bound ([] each, ``elbo`` among them, in nats) and the next state."""
        raise TypeError(f"{type(self).__name__} has no estimate")
