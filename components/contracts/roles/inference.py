"""An inference method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

from typing_extensions import TypeVar

from components.contracts.checks import Bias, Check, Scores, Trace
from components.contracts.problems import Kind
from components.contracts.roles.component import Component, Info
from components.contracts.roles.problem import Problem
from components.contracts.streams import Rng

P = TypeVar("P", default=Any)  # a problem
M = TypeVar("M", default=Any)  # a built model, or the requested capabilities of one
B = TypeVar("B", default=Any)  # input of a step
# a state: a dataclass of tensors, numbers, modules and optimizers, with everything the next step
# needs
S = TypeVar("S", default=Any)


@dataclass(frozen=True)
class FinishedRun:
    """A replicate after its last step, as ``Inference.checks`` judges it."""

    problem: Problem
    posterior: object
    state: object
    scores: Scores
    trace: Trace
    rng: Rng


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
        raise NotImplementedError

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
        raise NotImplementedError

    def posterior(self, state: S) -> object:
        """Posterior of a state.

        Args:
            state: state of any step; it does not change.

        Returns:
            An object with the declared protocols of ``contracts.posteriors``.
        """
        raise NotImplementedError

    def checks(self, run: FinishedRun) -> list[Check]:
        """Checks of this method's own final state; those of chains, filters and bounds exist.

        Args:
            run: the finished replicate; ``run.state`` is the last state.

        Returns:
            The checks, in the order in which they are shown.
        """
        return []

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
