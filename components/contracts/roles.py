"""The four roles, the problems they meet on, and what passes between them.

A component is a frozen pydantic model: its fields are its configuration (types and constraints here, every default in
its YAML), its methods are the science.  Nothing in this package imports ``runner``.

    problem = dataset.load(rng, setting)
    module  = model.build(problem, rng)
    state   = inference.init(module, problem, rng)
    for step, batch in problem.batches(rng, start, stop):
        state, info = inference.step(state, batch, rng)
    posterior = inference.posterior(state)
    problem.score(posterior, rng);  problem.draw(posterior, rng)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from components.trouble import DataUnavailable as DataUnavailable
from components.trouble import NumericalTrouble as NumericalTrouble
from components.trouble import SimulatedData as SimulatedData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = Literal["supervised", "density", "sequence", "game"]
Target = Literal["real", "binary", "classes"]  # what a supervised label is
Domain = Literal["continuous", "binary"]  # values that inputs can take, and that an evasion attack gives them
Probability = Annotated[float, Field(ge=0, le=1)]
State = Any  # nested dict/list/tuple/dataclass of tensors, numbers, nn.Module and Optimizer: what the next step needs
Info = dict[str, Any]  # name -> number or tensor: what a diagnostician wants, never needed by the next step


STREAMS = ("data", "init", "batches", "noise", "evaluation", "attack")


class Rng:
    """Named random streams of one replicate; no global generator is ever used.

    ``data, init, batches, noise, evaluation, attack`` are ``torch.Generator`` whose states travel in checkpoints.
    ``at(stream, index)`` is a fresh generator that depends on (seed, replicate, stream, index) alone, so what it
    draws does not depend on what was drawn before (batch orders, evaluations)."""

    replicate: int  # which of a run's repetitions, from 0
    data: torch.Generator
    init: torch.Generator
    batches: torch.Generator
    noise: torch.Generator
    evaluation: torch.Generator
    attack: torch.Generator

    def at(self, stream: str, index: int) -> torch.Generator:
        raise NotImplementedError


@dataclass(frozen=True)
class Setting:
    """Where and how a dataset is to be loaded."""

    data_dir: Path
    device: torch.device
    dtype: torch.dtype
    replicates: int  # > 1 only for datasets that carry replicates as a leading tensor dimension
    offline: bool = False  # True: attempt no download


class Problem(Protocol):
    """What a dataset loads: data, how to batch them, how to score a posterior on them and how to draw it."""

    kind: Kind
    name: str  # the data's own name: "sarcos-test-file" and "sarcos-sim" are never called "sarcos"
    replicates: int  # size of the leading replicate dimension (1: there is none, the runner loops)
    length: int | None  # natural number of steps (sequence length, episodes); None: ``steps`` decides
    attacker: Attacker | None

    def batches(self, rng: Rng, start: int, stop: int) -> Iterator[tuple[int, Any]]: ...

    def score(self, posterior: Any, rng: Rng) -> dict[str, Tensor | float]: ...

    def draw(self, posterior: Any, rng: Rng) -> dict[str, Figure]: ...


class Component(BaseModel):
    """One registered class; ``extra="forbid"`` makes an unknown key an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())
    name: str


class Dataset(Component):
    kind: ClassVar[Kind]
    target: ClassVar[Target | None] = None
    domain: ClassVar[Domain] = "continuous"  # of the inputs of a supervised problem
    vectorised: ClassVar[bool] = False  # replicates are a leading tensor dimension of one problem

    def identity(self, data_dir: Path, offline: bool) -> str:
        """Name of the data that ``load`` would use now (it enters the run's signature); reads no data."""
        return self.name

    def load(self, rng: Rng, setting: Setting) -> Any:  # a Problem of this kind
        raise TypeError(f"{type(self).__name__} has no load")


class Model(Component):
    kinds: ClassVar[frozenset[str]]
    targets: ClassVar[frozenset[str] | None] = None  # supervised only; None: every target
    offers: ClassVar[frozenset[str]]  # names of the capabilities below, in snake case
    differentiable: ClassVar[bool] = True  # in its inputs: what a gradient attack follows

    def build(self, problem: Any, rng: Rng) -> Any:
        raise TypeError(f"{type(self).__name__} has no build")


class Inference(Component):
    kinds: ClassVar[frozenset[str]]
    needs: ClassVar[frozenset[str]]  # capabilities that the model must offer
    attacks: ClassVar[bool] = False  # True: a defence, which calls ``problem.attacker`` inside ``step``

    def init(self, model: Any, problem: Any, rng: Rng) -> State:
        raise TypeError(f"{type(self).__name__} has no init")

    def step(self, state: State, batch: Any, rng: Rng) -> tuple[State, Info]:
        raise TypeError(f"{type(self).__name__} has no step")

    def posterior(self, state: State) -> Any:
        raise TypeError(f"{type(self).__name__} has no posterior")


class Attacker(Component):
    """``action``: evasion -> perturb(victim, x, y, rng, eps), contamination -> corrupt(observations, rng),
    adversary -> reset/act/observe inside a game (its state is part of the inference's State)."""

    kinds: ClassVar[frozenset[str]]
    action: ClassVar[Literal["evasion", "contamination", "adversary"]]
    targets: ClassVar[frozenset[str] | None] = None  # supervised only; None: every target
    domain: ClassVar[Domain] = "continuous"  # evasion only: of the inputs that it can attack
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Literal["white box", "grey box", "black box"]] = "white box"

    def informed(self, problem: Any, rng: Rng) -> Any:
        """This attacker once he has learnt from the problem what he needs (a surrogate); most need nothing."""
        return self

    def relentless(self) -> Any:
        """This attacker, who does not stop where an input first errs: one whose success is judged elsewhere."""
        stops = getattr(self, "stop_when_broken", False)
        return self.model_copy(update={"stop_when_broken": False}) if stops else self
