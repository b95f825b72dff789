"""The roles, and what passes between them; attackers are in ``contracts.attackers``.

A component is a frozen pydantic model: its fields are its configuration (types and constraints
here, every default in its YAML), its methods are the science.  Nothing in this package imports
``runner``.

    problem = dataset.load(rng, setting)
    model   = model.build(problem, rng)
    state   = inference.init(model, problem, rng)
    for step, batch in problem.batches(inference.requires.batch_kind, rng, start, stop):
        state, info = inference.step(state, batch, rng)
    posterior = inference.posterior(state)
    problem.score(posterior, rng);  problem.draw(posterior, rng)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Protocol, runtime_checkable

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from typing_extensions import TypeVar

from components.contracts.checks import Bias
from components.contracts.problems import BatchKind, Domain, Kind, Target, Values
from components.contracts.requirements import DataFacts, Requirements, inherit_requirements
from components.contracts.sequences import Series
from components.contracts.streams import Rng
from components.contracts.structural import Facts, Terms

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Types of keys that are numbers in an interval.
ZeroToOne = Annotated[float, Field(ge=0, le=1)]
ZeroToBelowOne = Annotated[float, Field(ge=0, lt=1)]
AboveZeroToOne = Annotated[float, Field(gt=0, le=1)]
BetweenZeroAndOne = Annotated[float, Field(gt=0, lt=1)]
AtLeastTwo = Annotated[int, Field(ge=2)]
# name -> number or tensor: for diagnostics, never needed by the next step
Info = dict[str, Any]

# Defaults are Any: the runner passes problems, models and states on without looking into them.
P = TypeVar("P", default=Any)  # a problem
Q = TypeVar("Q", contravariant=True, default=Any)  # a posterior that it can score
M = TypeVar("M", default=Any)  # a built model, or the requested capabilities of one
B = TypeVar("B", default=Any)  # input of a step
# a state: a dataclass of tensors, numbers, modules and optimizers, with everything the next step
# needs
S = TypeVar("S", default=Any)


@dataclass(frozen=True)
class Setting:
    """Location and options for loading a dataset."""

    data_dir: Path
    device: torch.device
    dtype: torch.dtype
    replicates: int  # > 1 only for datasets that carry replicates as a leading tensor dimension
    offline: bool = False  # True: attempt no download


class Problem(Protocol[Q]):
    """The result of loading a dataset.

    It holds data, shows them, scores a posterior on them and draws it.
    """

    @property
    def kind(self) -> Kind: ...

    @property
    # the data's own name: "sarcos-test-file" and "sarcos-sim" are never called "sarcos"
    def name(self) -> str: ...

    @property
    # size of the leading replicate dimension (1: no such dimension, the runner loops)
    def replicates(self) -> int: ...

    def length(self, batch_kind: BatchKind) -> int | None:
        """Number of steps there are, where what is seen comes to an end: observations, episodes.
        None: no end."""
        ...

    def batches(
        self, batch_kind: BatchKind, rng: Rng, start: int, stop: int
    ) -> Iterator[tuple[int, Any]]:
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
class TabulatingProblem(Problem[Q], Protocol[Q]):
    """A problem that has tables to show of a posterior."""

    def tables(self, posterior: Q, rng: Rng) -> dict[str, pd.DataFrame]: ...


@runtime_checkable
class HoldOutProblem(Problem[Q], Protocol[Q]):
    """A problem in which some training rows can replace the test rows.

    ``validation`` requires it.
    """

    def held_out(self, share: float, rng: Rng) -> Problem: ...


@runtime_checkable
class SeriesProblem(Problem[Q], Protocol[Q]):
    """A problem with a whole series as its data."""

    @property
    def series(self) -> Series: ...


class Component(BaseModel):
    """One registered class; ``extra="forbid"`` makes an unknown key an error that names it."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, protected_namespaces=(), allow_inf_nan=False
    )
    # requirements on the other components of a run
    requires: ClassVar[Requirements] = Requirements()
    # keys that the components inside it inherit
    inherited_keys: ClassVar[Set[str]] = frozenset()
    # keys of its YAML that belong to the evaluation
    threat_keys: ClassVar[Set[str]] = frozenset()
    # keys that name user code, "module:function"
    imports: ClassVar[Set[str]] = frozenset()
    # keys that name a user's file -> the key that holds its SHA-256
    reads: ClassVar[dict[str, str]] = {}
    name: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.requires = inherit_requirements(cls)
        for name, value in list(vars(cls).items()):
            if isinstance(value, set) and name[0] != "_":  # not those of pydantic
                setattr(cls, name, frozenset(value))

    @classmethod
    def yaml_keys(cls) -> Set[str]:
        """All that its YAML holds."""
        return frozenset(cls.model_fields) | cls.threat_keys


class Dataset(Component, Generic[P]):
    """Source of a problem: data from files, or simulated data, and the scores on them.

    Example:
        >>> from pathlib import Path
        >>> import torch
        >>> from components.contracts.roles import Dataset, Setting
        >>> from components.problems.density import Density
        >>> from runner.execution.rng import Streams
        >>> class Normal(Dataset):
        ...     kind = "density"
        ...     sd: float
        ...
        ...     def load(self, rng, setting):
        ...         return Density(
        ...             name=self.name,
        ...             names=["x"],
        ...             log_density=lambda theta: -0.5 * (theta[:, 0] / self.sd).square(),
        ...             sample_prior=lambda n, g: torch.randn(n, 1, generator=g),
        ...             mean=torch.zeros(1),
        ...             second_moment=torch.full((1,), self.sd**2),
        ...             box=[(-3 * self.sd, 3 * self.sd)],
        ...         )
        >>> setting = Setting(Path(), torch.device("cpu"), torch.float32, replicates=1)
        >>> problem = Normal(name="normal", sd=2.0).load(Streams(0), setting)
        >>> problem.log_density(torch.tensor([[0.0], [2.0]]))
        tensor([-0.0000, -0.5000])
    """

    kind: ClassVar[Kind]
    target: ClassVar[Target | None] = None  # of a supervised problem; None there: by its keys
    domain: ClassVar[Domain] = "continuous"  # of the inputs of a supervised problem
    values: ClassVar[Values | None] = None  # of an unlabelled problem; None there: by its keys
    vectorised: ClassVar[bool] = False  # its problems can hold all replicates together
    # words of ``contracts.requirements.TRAITS``: traits of its data
    traits: ClassVar[Set[str]] = frozenset()
    # and words that a setting adds: word -> the setting, "key=value"
    traits_where: ClassVar[dict[str, str]] = {}
    # the key with the largest number of steps, if there is one
    length_key: ClassVar[str | None] = None
    # Capabilities of the system, or of the environment, that its problems hold and that a model may
    # assume.
    simulates: ClassVar[Set[str]] = frozenset()

    def identity(self, data_dir: Path, offline: bool) -> str:
        """Name of the data that ``load`` would use now; no data are read.

        The name enters the run's signature.

        Args:
            data_dir: folder of the data files.
            offline: True: no download will be attempted.

        Returns:
            The name: ``name``, unless files or their absence change the data.
        """
        return self.name

    def poses(self) -> Kind:
        """The kind of its problem, as this data set is configured."""
        return self.kind

    def holds(self) -> Values | None:
        """Kind of values in the rows of an unlabelled problem, as this data set is configured."""
        return self.values

    def target_kind(self) -> Target | None:
        """Kind of labels of a supervised problem, as this data set is configured."""
        return self.target

    def data_facts(self) -> DataFacts:
        """Facts of its data that a model may require, as this data set is configured."""
        return DataFacts(self.poses(), self.target_kind(), self.holds(), self.domain)

    def data_traits(self) -> Set[str]:
        """Traits of its data, as this data set is configured."""
        return self.traits | ({"binary_inputs"} if self.domain == "binary" else frozenset())

    def asked_by_keys(self) -> dict[str, tuple[str, str]]:
        """Capabilities that the model must offer because of keys of this data set.

        Returns:
            Capability -> the keys as they are set, and the settings that need no capability.
        """
        return {}

    def folds(self, data_dir: Path) -> int | None:
        """Number of standard splits or folds, which replicates take in turn.

        Args:
            data_dir: folder of the data files.

        Returns:
            The largest number of replicates; None: any number.
        """
        return None

    def load(self, rng: Rng, setting: Setting) -> P:
        """Load or simulate the data of one replicate, or of all if the setting has several.

        Args:
            rng: random streams of the replicate; ``rng.data`` draws splits and simulated rows.
            setting: folder, device, dtype, number of replicates.

        Returns:
            The problem.

        Raises:
            DataUnavailableError: files are missing and cannot be downloaded.
        """
        raise TypeError(f"{type(self).__name__} has no load")


class Model(Component, Generic[P, M]):
    """Probabilistic model, which is built for a problem and offers capabilities to inference.

    Example:
        y_b ~ N(θ, 1), θ ~ N(0, s²), with the members of ``log_joint``:

        >>> import torch
        >>> from components.contracts.capabilities import LogJoint
        >>> from components.contracts.roles import Model
        >>> from runner.execution.rng import Streams
        >>> class NormalMean(Model):
        ...     offers = frozenset({"log_joint"})
        ...     scale: float
        ...
        ...     def build(self, problem, rng):
        ...         return BuiltNormalMean(self.scale)
        >>> class BuiltNormalMean:
        ...     dim = 1
        ...     names = ["mean"]
        ...
        ...     def __init__(self, scale):
        ...         self.scale = scale
        ...
        ...     def constrain(self, theta):
        ...         return theta
        ...
        ...     def sample_prior(self, n, generator):
        ...         return self.scale * torch.randn(n, 1, generator=generator)
        ...
        ...     def log_prior(self, theta):
        ...         return -0.5 * (theta / self.scale).square().sum(1)
        ...
        ...     def log_likelihood(self, theta, batch):
        ...         return -0.5 * (batch.x[:, 0] - theta).square()
        >>> model = NormalMean(name="normal_mean", scale=2.0).build(problem=None, rng=Streams(0))
        >>> isinstance(model, LogJoint)
        True
        >>> model.log_prior(torch.tensor([[0.0], [2.0]]))
        tensor([-0.0000, -0.5000])
    """

    differentiable: ClassVar[bool] = True  # in its inputs: used by gradient attacks
    # names of the capabilities that every built model has, in snake case
    offers: ClassVar[Set[str]]
    # and those that some configurations have: capability -> the setting
    offers_where: ClassVar[dict[str, str]] = {}

    def capabilities(self) -> Set[str]:
        """Capabilities of a model built as configured.

        They are ``offers``, and the names in ``offers_where`` that its keys activate.
        """
        return self.offers

    def labels_misfit(self, target: Target) -> tuple[str, str] | None:
        """A setting that is incompatible with a kind of labels, if there is one.

        Args:
            target: kind of labels, for which the class has a likelihood.

        Returns:
            The key with its value, and the key with a compatible value; None: all keys fit.
        """
        return None

    def assumptions(self) -> Set[str]:
        """Required entries of the dataset's ``simulates``, as configured."""
        return self.requires.simulated

    def build(self, problem: P, rng: Rng) -> M:
        """Build the model for a problem.

        Args:
            problem: data, or their shapes and units.
            rng: random streams of the replicate; ``rng.init`` draws initial values.

        Returns:
            The built model, with the members of all its ``capabilities()``.

        Raises:
            ConfigMismatchError: the problem lacks something that the model requires.
        """
        raise TypeError(f"{type(self).__name__} has no build")


class Inference(Component, Generic[M, P, B, S]):
    """Inference method: an initial state, a step, and the posterior of a state.

    Example:
        Normal observations with unknown mean θ ~ N(0, 1) and known variance 1, in batches:
        n_{t+1} = n_t + B, s_{t+1} = s_t + Σ_b y_b, posterior N(s/(n + 1), 1/(n + 1)).

        >>> from dataclasses import dataclass
        >>> import torch
        >>> from torch.distributions import Normal
        >>> from components.contracts.roles import Inference
        >>> from runner.execution.rng import Streams
        >>> @dataclass
        ... class Sums:
        ...     n: int
        ...     total: torch.Tensor
        >>> class NormalMean(Inference):
        ...     def init(self, model, problem, rng):
        ...         return Sums(0, torch.zeros(()))
        ...
        ...     def step(self, state, batch, rng):
        ...         state = Sums(state.n + len(batch), state.total + batch.sum())
        ...         return state, {"rows": state.n}
        ...
        ...     def posterior(self, state):
        ...         return Normal(state.total / (state.n + 1), (state.n + 1) ** -0.5)
        >>> method = NormalMean(name="normal_mean")
        >>> rng = Streams(0)
        >>> state = method.init(model=None, problem=None, rng=rng)
        >>> for batch in (torch.tensor([1.0, 2.0]), torch.tensor([3.0])):
        ...     state, info = method.step(state, batch, rng)
        >>> method.posterior(state)
        Normal(loc: 1.5, scale: 0.5)
        >>> info
        {'rows': 3}
    """

    max_useful_steps: ClassVar[int | None] = None  # by default all of them
    # protocols of ``contracts.posteriors`` that its posterior keeps, in snake case
    provides: ClassVar[Set[str]]
    # and those that it keeps only for one kind of problem
    provides_by_kind: ClassVar[Mapping[str, Set[str]]] = {}
    # kinds of problems where it carries all replicates together, as a leading dimension; for a
    # density they are folded into the chains, [R·C, P]
    folds_replicates: ClassVar[Set[str]] = {"sequence", "game"}
    # where it draws: by Markov chains, or weighted, so that R̂, ESS or k̂ judge them
    mixes: ClassVar[bool] = True
    # bias of the draws where it mixes; None: they have the law of the target
    draw_bias: ClassVar[Bias | None] = None
    # shown test labels and true parameters by ``init``: for what measures itself by them
    reads_truth: ClassVar[bool] = False
    # of filters: the gradient of the filtered states in the observations can be computed
    differentiable: ClassVar[bool] = True

    # Capabilities of the module that it makes from the model, required by gradients inside it.
    # Empty: the module is the model.
    makes: ClassVar[Set[str]] = frozenset()

    def variational_capabilities(self) -> Set[str]:
        """``makes`` of this method as it is configured."""
        return self.makes

    def labels_misfit(self, target: Target) -> tuple[str, str] | None:
        """A setting that is incompatible with a kind of labels, if there is one.

        Args:
            target: kind of labels.

        Returns:
            The key with its value, and the key with a compatible value; None: all keys fit.
        """
        return None

    def asked_by_keys(self) -> dict[str, str]:
        """Further capabilities that the model must offer because of keys of this method.

        Returns:
            Capability -> the key.
        """
        return {}

    def required_capabilities(self, kind: Kind, offered: Set[str] = frozenset()) -> Set[str]:
        """Capabilities that the model must offer, as this method is configured.

        Args:
            kind: kind of the problem.
            offered: capabilities that the model offers; they select among alternatives.

        Returns:
            Names of the capabilities, in snake case.
        """
        return self.requires.capabilities_for(kind, offered) | self.asked_by_keys().keys()

    def init(self, model: M, problem: P, rng: Rng) -> S:
        """State before the first step.

        Args:
            model: built model, with the required capabilities.
            problem: problem of the run.
            rng: random streams of the replicate; ``rng.init`` draws initial values.

        Returns:
            A dataclass with everything the next step needs.

        Raises:
            ConfigMismatchError: keys do not fit the model or the problem.
        """
        raise TypeError(f"{type(self).__name__} has no init")

    def step(self, state: S, batch: B, rng: Rng) -> tuple[S, Info]:
        """Advance the state by one step.

        Args:
            state: state of the step before; it may be changed in place.
            batch: data of this step, by the view of the data that the class declares.
            rng: random streams of the replicate; ``rng.noise`` draws the noise of samplers.

        Returns:
            The next state, and diagnostics by name.

        Raises:
            NumericalError: the step diverged.
        """
        raise TypeError(f"{type(self).__name__} has no step")

    def posterior(self, state: S) -> object:
        """Posterior of a state.

        Args:
            state: state of any step; it does not change.

        Returns:
            An object with the declared protocols of ``contracts.posteriors``.
        """
        raise TypeError(f"{type(self).__name__} has no posterior")

    def side_by_side(self) -> Inference | None:
        """Method for all replicates of a supervised problem in parallel; None: not supported.

        ``side_by_side=true`` asks for it.  Its model and its posterior hold one per replicate;
        its problem and batches come from ``problems.replicates.side_by_side``.
        """
        return None

    def variants(self) -> tuple[str, ...]:
        """Names of the settings that each get their own posterior; (): one posterior.

        All are learnt in parallel, side by side like replicates.  The posterior of a replicate
        is then ``problems.replicates.variants.Variants``.
        """
        return ()


def variant_info_names(names: Iterable[str], inference: Inference) -> list[str]:
    """Names of these quantities in a method's information.

    They are unchanged, or each of its variants' own, ``name/variant``.
    """
    variants = inference.variants()
    return (
        [f"{name}/{variant}" for name in names for variant in variants] if variants else list(names)
    )


class Gradient(Component, Generic[M, B, S]):
    """An estimator of the gradient of a bound, which is an expectation.

    It exists only inside inference methods.  Its configuration holds all that it draws with
    (``n_samples``, shared from the inference that holds it).  Quantities that it learns on
    the way (coefficients, baselines, surrogates and their optimizers) are its state, a part
    of the inference's; ``estimate`` does not move the module's parameters, so an estimator
    can be measured on a fixed module.

    Example:
        Pathwise gradient for q(z) = N(m, 1) and p(z) = N(0, 1): the bound is −m²/2, its gradient
        −m.

        >>> import torch
        >>> from components.contracts.roles import Gradient
        >>> from runner.execution.rng import Streams
        >>> class Guide(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.m = torch.nn.Parameter(torch.tensor(2.0))
        >>> class Pathwise(Gradient):
        ...     n_samples: int
        ...
        ...     def init(self, module, rng):
        ...         return None
        ...
        ...     def estimate(self, module, batch, rng, state):
        ...         z = module.m + torch.randn(self.n_samples, generator=rng.noise)
        ...         elbo = 0.5 - 0.5 * z.square().mean()
        ...         gradients = torch.autograd.grad(elbo, list(module.parameters()))
        ...         return list(gradients), {"elbo": elbo.detach()}, state
        >>> estimator = Pathwise(name="pathwise", n_samples=10_000)
        >>> gradients, terms, state = estimator.estimate(Guide(), None, Streams(0), None)
        >>> round(float(gradients[0]), 1), round(float(terms["elbo"]), 1)
        (-2.0, -2.0)
    """

    bound: ClassVar[str] = "elbo"  # the quantity to estimate the gradient of
    unbiased: ClassVar[bool]  # its mean is the gradient of that bound

    def init(self, module: M, rng: Rng) -> S:
        """State of the estimator before the first step.

        Args:
            module: module with the parameters that the gradients are of.
            rng: random streams of the replicate.

        Returns:
            Quantities that the estimator learns; None: it learns none.
        """
        raise TypeError(f"{type(self).__name__} has no init")

    def estimate(
        self, module: M, batch: B, rng: Rng, state: S
    ) -> tuple[list[Tensor | None], dict[str, Tensor], S]:
        """Estimate the gradient of the bound for the whole data set.

        Args:
            module: module with the parameters; they do not change.
            batch: rows of this step, weighted by ``batch.scale`` to the whole data set.
            rng: random streams of the replicate; ``rng.noise`` draws the samples.
            state: state of the estimator.

        Returns:
            gradients: one for each of ``module.parameters()``, in their order and shapes;
                None: the bound does not depend on it.
            terms: terms of the bound in nats, [] each, with ``elbo``.
            state: the next state of the estimator.
        """
        raise TypeError(f"{type(self).__name__} has no estimate")


class Block(Component):
    """One of the parts that add up to a structural time series; it lives only inside models.

    y_t = F_t α_t + ε_t,   α_{t+1} = G α_t + N(0, diag W(σ)): a block adds d states.

    Example:
        Local level, with one state:

        >>> import torch
        >>> from components.contracts.roles import Block
        >>> from components.contracts.structural import Covariates, Facts, Terms
        >>> class Level(Block):
        ...     guess: float
        ...
        ...     def terms(self, facts):
        ...         one = torch.ones(1).to(facts.like)
        ...         return Terms(
        ...             label="level",
        ...             states=("level",),
        ...             rows=lambda series: one.expand(len(series.y), 1),
        ...             G=one.view(1, 1),
        ...             mean=facts.centre * one,
        ...             sd=facts.scale * one,
        ...             scales=(facts.noise("level_sd", self.guess, 1.0, None, (0,)),),
        ...         )
        >>> series = Covariates(torch.tensor([1.0, 2.0, 4.0]))
        >>> facts = Facts(series, scale=1.5, centre=1.0, x_names=[], u_names=[], where="here")
        >>> terms = Level(name="level", guess=0.1).terms(facts)
        >>> terms.rows(series).T @ series.y
        tensor([7.])
    """

    def terms(self, facts: Facts) -> Terms:
        """States and columns of the block, their dynamics, and the priors of unknown quantities.

        Args:
            facts: the observed series [n], its units, and names of its covariates.

        Returns:
            The terms: rows F [n, d], base transition G [d, d], first moments [d], priors.

        Raises:
            ConfigMismatchError: the series lacks something that the block requires.
        """
        raise TypeError(f"{type(self).__name__} has no terms")
