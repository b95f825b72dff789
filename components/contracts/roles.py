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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Protocol,
    TypeVar,
    runtime_checkable,
)

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from components.contracts.problems import BatchKind, Domain, Kind, Target, Values
from components.contracts.requirements import DataFacts, Requirements, inherit_requirements
from components.contracts.sequences import Series
from components.contracts.streams import Rng
from components.contracts.structural import Facts, Terms
from components.old_names import CLASS_VARS, resolve_old_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Probability = Annotated[float, Field(ge=0, le=1)]
# name -> number or tensor: for diagnostics, never needed by the next step
Info = dict[str, Any]

P = TypeVar("P")  # a problem
Q = TypeVar("Q", contravariant=True)  # a posterior that it can score
M = TypeVar("M")  # a built model, or the requested capabilities of one
B = TypeVar("B")  # input of a step
# a state: a dataclass of tensors, numbers, modules and optimizers, with everything the next step
# needs
S = TypeVar("S")


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
    inherited_keys: ClassVar[frozenset[str]] = frozenset()
    # keys of its YAML that belong to the evaluation
    threat_keys: ClassVar[frozenset[str]] = frozenset()
    # keys that name user code, "module:function"
    imports: ClassVar[frozenset[str]] = frozenset()
    # keys that name a user's file -> the key that holds its SHA-256
    reads: ClassVar[dict[str, str]] = {}
    # keys added later, and the earlier behaviour: records from then have none
    legacy_defaults: ClassVar[dict[str, Any]] = {}
    name: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.requires = inherit_requirements(cls)

    @classmethod
    def yaml_keys(cls) -> frozenset[str]:
        """All that its YAML holds."""
        return frozenset(cls.model_fields) | cls.threat_keys


# old names of ClassVars need no annotation, like the new ones
Component.__class_vars__.update(name for names in CLASS_VARS.values() for name in names)


class Dataset(Component, Generic[P]):
    kind: ClassVar[Kind]
    target: ClassVar[Target | None] = None  # of a supervised problem; None there: by its keys
    domain: ClassVar[Domain] = "continuous"  # of the inputs of a supervised problem
    values: ClassVar[Values | None] = None  # of an unlabelled problem; None there: by its keys
    vectorised: ClassVar[bool] = False  # its problems can hold all replicates together
    # words of ``contracts.requirements.TRAITS``: traits of its data
    traits: ClassVar[frozenset[str]] = frozenset()
    # and words that a setting adds: word -> the setting, "key=value"
    traits_where: ClassVar[dict[str, str]] = {}
    # the key with the largest number of steps, if there is one
    length_key: ClassVar[str | None] = None
    # Capabilities of the system, or of the environment, that its problems hold and that a model may assume.
    simulates: ClassVar[frozenset[str]] = frozenset()

    def identity(self, data_dir: Path, offline: bool) -> str:
        """Name of the data that ``load`` would use now (it enters the run's signature); reads no
        data."""
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

    def data_traits(self) -> frozenset[str]:
        """Traits of its data, as this data set is configured."""
        return self.traits | ({"binary_inputs"} if self.domain == "binary" else frozenset())

    def asked_by_keys(self) -> dict[str, tuple[str, str]]:
        """Capabilities that the model must offer to be scored as keys of this data set say:
        capability -> how these are set, and the settings that ask nothing."""
        return {}

    def folds(self, data_dir: Path) -> int | None:
        """Standard splits or folds that replicates take in turn, so many at most; None: any number
        of replicates."""
        return None

    def load(self, rng: Rng, setting: Setting) -> P:
        raise TypeError(f"{type(self).__name__} has no load")


class Model(Component, Generic[P, M]):
    differentiable: ClassVar[bool] = True  # in its inputs: used by gradient attacks
    # names of the capabilities that every built model has, in snake case
    offers: ClassVar[frozenset[str]]
    # and those that some configurations have: capability -> the setting
    offers_where: ClassVar[dict[str, str]] = {}

    def capabilities(self) -> frozenset[str]:
        """Capabilities of a model built as configured.

        They are ``offers``, and the names in ``offers_where`` that its keys activate.
        """
        return self.offers

    def labels_misfit(self, target: Target) -> tuple[str, str] | None:
        """A key, with its value, that cannot be of such labels though the class has a likelihood
        for them, and the key with a value that can; None: all keys can."""
        return None

    def assumptions(self) -> frozenset[str]:
        """Required entries of the dataset's ``simulates``, as configured."""
        return self.requires.simulated

    def build(self, problem: P, rng: Rng) -> M:
        raise TypeError(f"{type(self).__name__} has no build")


class Inference(Component, Generic[M, P, B, S]):
    max_useful_steps: ClassVar[int | None] = None  # by default all of them
    # protocols of ``contracts.posteriors`` that its posterior keeps, in snake case
    provides: ClassVar[frozenset[str]]
    # and those that it keeps only for one kind of problem
    provides_by_kind: ClassVar[dict[str, frozenset[str]]] = {}
    # kinds of problems where it carries all replicates together, as a leading dimension; for a
    # density they are folded into the chains, [R·C, P]
    folds_replicates: ClassVar[frozenset[str]] = frozenset({"sequence", "game"})
    # where it draws: by Markov chains, or weighted, so that R̂, ESS or k̂ judge them
    mixes: ClassVar[bool] = True

    # Capabilities of the module that it makes from the model, required by gradients inside it.
    # Empty: the module is the model.
    makes: ClassVar[frozenset[str]] = frozenset()

    def variational_capabilities(self) -> frozenset[str]:
        """``makes`` of this method as it is configured."""
        return self.makes

    def labels_misfit(self, target: Target) -> tuple[str, str] | None:
        """A key, with its value, that cannot be with such labels, and the key with a value that
        can; None: all keys can."""
        return None

    def asked_by_keys(self) -> dict[str, str]:
        """Capabilities that keys of this method, as they are set, ask of the model besides:
        capability -> the key."""
        return {}

    def required_capabilities(
        self, kind: Kind, offered: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        """Capabilities that the model, which offers these, must offer for a problem of a kind, as
        this method is configured."""
        return self.requires.capabilities_for(kind, offered) | self.asked_by_keys().keys()

    def init(self, model: M, problem: P, rng: Rng) -> S:
        raise TypeError(f"{type(self).__name__} has no init")

    def step(self, state: S, batch: B, rng: Rng) -> tuple[S, Info]:
        raise TypeError(f"{type(self).__name__} has no step")

    def posterior(self, state: S) -> object:
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
    """

    bound: ClassVar[str] = "elbo"  # the quantity to estimate the gradient of
    unbiased: ClassVar[bool]  # its mean is the gradient of that bound

    def init(self, module: M, rng: Rng) -> S:
        raise TypeError(f"{type(self).__name__} has no init")

    def estimate(
        self, module: M, batch: B, rng: Rng, state: S
    ) -> tuple[list[Tensor | None], dict[str, Tensor], S]:
        """Gradients of the bound for the whole data set, one for each of ``module.parameters()`` in
        their order (None: it does not matter to the bound), the terms of the bound ([] each,
        ``elbo`` among them, in nats) and the next state."""
        raise TypeError(f"{type(self).__name__} has no estimate")


class Block(Component):
    """One of the parts that add up to a structural time series; it lives only inside models."""

    def terms(self, facts: Facts) -> Terms:
        """Its states and columns, their dynamics, and the priors of unknown quantities.

        Raises:
            Misfit: the series lacks something that the block requires.
        """
        raise TypeError(f"{type(self).__name__} has no terms")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return resolve_old_name(__name__, name)
