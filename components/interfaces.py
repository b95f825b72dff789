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
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, runtime_checkable

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


class Rng(Protocol):
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

    def at(self, stream: str, index: int) -> torch.Generator: ...


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


# ---- capabilities: what a built model can be asked -------------------------------------------------------------------
@runtime_checkable
class LogJoint(Protocol):
    """A target log-density over flat, unconstrained parameters θ [K, P]: K chains or particles at once.

    Where parameters are constrained (a scale, a simplex), ``log_prior`` holds the log-Jacobian of ``constrain``.
    A supervised model also offers ``predict(theta [K, P], x [B, D])``, the predictive of K parameters.  Where chains
    should not start at draws from the prior, ``sample_start(n, generator)`` [n, P] says where."""

    dim: int  # P
    names: list[str]  # of the P' parameters that ``constrain`` gives; empty: they have no names

    def constrain(self, theta: Tensor) -> Tensor: ...  # [K, P] -> [K, P']

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor: ...  # [n, P]

    def log_likelihood(self, theta: Tensor, batch: Any) -> Tensor: ...  # [K, B], unscaled

    def log_prior(self, theta: Tensor) -> Tensor: ...  # [K]


@runtime_checkable
class Conditionals(Protocol):
    """Full conditionals of blocks of the parameters, which a Gibbs sampler draws in turn; θ [K, P] as in LogJoint."""

    blocks: list[str]

    def draw_block(self, block: str, theta: Tensor, batch: Any, generator: torch.Generator) -> Tensor: ...  # [K, P]


@runtime_checkable
class Conjugate(Protocol):
    """A linear regression y ~ N(Xβ, σ² I) with β | σ² ~ N(0, σ² diag(λ)⁻¹), whose posterior is known in closed form."""

    penalty: Tensor  # λ [D]
    intercept: bool  # whether the first column of X is of ones
    noise: float | tuple[float, float]  # σ², or (a, b) of its InvGamma prior
    names: list[str]

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor: ...  # (β, log σ²) or β, [n, P]

    def coefficients(self, batch: Any) -> Any: ...  # components.maths.conjugate_regression.Coefficients

    def log_evidence(self, batch: Any) -> Tensor: ...  # log p(y | X) []

    def predict(self, theta: Tensor, x: Tensor) -> Any: ...  # a predictive


@runtime_checkable
class Elbo(Protocol):
    """A variational model: its bound as a function of explicit noise, and its predictive distribution."""

    def draw_noise(self, batch: Any, n_samples: int, generator: torch.Generator) -> Any: ...

    def elbo(self, batch: Any, noise: Any) -> dict[str, Tensor]: ...  # "elbo", "log_likelihood", "kl": all []

    def predict(self, x: Tensor, n_samples: int, generator: torch.Generator) -> Any: ...  # a predictive


@runtime_checkable
class Network(Protocol):
    """A feed-forward ``nn.Module`` x [B, D] -> f [B, T, C] whose parameters have a prior.

    Dropout acts only where a generator is given: ``forward`` alone is deterministic and draws on no global state."""

    def forward(self, x: Tensor, generator: torch.Generator | None = None, passes: int | None = None) -> Tensor: ...

    def log_prob(self, f: Tensor, batch: Any) -> Tensor: ...  # f [..., B, T, C] -> [..., B], missing labels count zero

    def penalty(self) -> Tensor: ...  # −log prior of the module's own parameters up to a constant, []

    def predictive(self, f: Tensor) -> Any: ...  # f [S, B, T, C] -> a predictive


@runtime_checkable
class WeightSpace(Protocol):
    """A network seen through its flat weights θ [P], which have independent zero-mean Gaussian priors."""

    theta: Tensor  # [P]
    prior_std: Tensor  # [P]

    def hyperprior(self) -> Tensor: ...  # log prior of the parameters other than θ, []

    def layers(self, theta: Tensor) -> list[tuple[Tensor, Tensor]]: ...  # [..., P] -> (W [..., out, in], b [..., out])

    def propagate(self, x: Tensor, affine: Any) -> Tensor: ...  # affine(l, h) stands for h W_lᵀ + b_l

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor: ...  # [K, P], [B, D] -> f [K, B, T, C]


@runtime_checkable
class Estimator(Protocol):
    """An ``nn.Module`` that fits itself in one go; what it learnt is a dict of tensors, so that it can be kept."""

    def fit(self, batch: Any, seed: int) -> dict[str, Tensor]: ...

    def predict(self, fitted: dict[str, Tensor], x: Tensor) -> Any: ...  # a predictive


@runtime_checkable
class Generative(Protocol):
    """An estimator that models x too: p(y|x) ∝ p(y) Π_i p(x_i|y), C classes."""

    def fit(self, batch: Any, seed: int) -> dict[str, Tensor]: ...

    def log_class(self, fitted: dict[str, Tensor]) -> Tensor: ...  # log p(y) [C]

    def log_features(self, fitted: dict[str, Tensor], x: Tensor) -> Tensor: ...  # log p(x_i|y) [B, C, D]

    def log_conditional(self, fitted: dict[str, Tensor], x: Tensor) -> Tensor: ...  # log p(x|y) [B, C]

    def predict(self, fitted: dict[str, Tensor], x: Tensor) -> Any: ...  # a predictive


@runtime_checkable
class StateSpace(Protocol):
    """x_0 ~ init, x_t ~ transition(x_{t-1}), y_t ~ observation(x_t); all with leading dimensions [R, N]."""

    def init(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor: ...  # [R, N, dx]

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor: ...  # [R, N, dx]

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor: ...  # y [R, dy], x [R, N, dx] -> [R, N]

    def observation_mean(self, x: Tensor, t: int) -> Tensor: ...  # E[y_t | x_t] [R, N, dy]


@runtime_checkable
class PowerIntegral(Protocol):
    """An observation density whose power can be integrated over y, as the β-divergence asks."""

    def log_power_integral(self, x: Tensor, t: int, power: float) -> Tensor: ...  # log ∫ g(y|x)^power dy, [R, N] or []


@runtime_checkable
class LinearGaussian(Protocol):
    """x_t = A x_{t-1} + N(0, Q), y_t = H x_t + N(0, Σ), x_0 ~ N(m_0, P_0): what a Kalman filter needs."""

    A: Tensor
    Q: Tensor
    H: Tensor
    Sigma: Tensor
    m0: Tensor
    P0: Tensor


@runtime_checkable
class QFunction(Protocol):
    """Action values Q(s, a, b) for R replicates: a table or an approximator."""

    def q(self, s: Tensor) -> Tensor: ...  # s [R] -> [R, A, B]


CAPABILITIES = {
    "log_joint": LogJoint,
    "conditionals": Conditionals,
    "conjugate": Conjugate,
    "elbo": Elbo,
    "network": Network,
    "weight_space": WeightSpace,
    "estimator": Estimator,
    "generative": Generative,
    "state_space": StateSpace,
    "power_integral": PowerIntegral,
    "linear_gaussian": LinearGaussian,
    "q_function": QFunction,
}
