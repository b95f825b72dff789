"""An inference method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, runtime_checkable

from components.contracts.checks import Bias, Check, Scores, Trace
from components.contracts.plugins.protocols import ReturnedProtocols
from components.contracts.posteriors import POSTERIORS
from components.contracts.problems import Kind
from components.contracts.roles.component import B, Component, Info, M, P, S
from components.contracts.roles.problem import Problem
from components.contracts.streams import Rng


@dataclass(frozen=True)
class FinishedRun:
    """A replicate after its last step, as input of the checks of its method and posterior."""

    problem: Problem
    posterior: object
    inference: Inference
    state: Any  # of the class that the method returns
    scores: Scores
    trace: Trace
    rng: Rng


@runtime_checkable
class ChecksRuns(Protocol):
    """A posterior with checks of its run, for example that its chains have mixed."""

    def checks(self, run: FinishedRun) -> list[Check]: ...  # in display order


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
    # protocols of ``contracts.posteriors`` that its posterior implements; by default, from the
    # return annotation of ``posterior``
    provides: ClassVar[Set[type]] = ReturnedProtocols("posterior", POSTERIORS)  # type: ignore[assignment]
    # additional protocols by kind of problem
    provides_by_kind: ClassVar[Mapping[str, Set[type]]] = {}
    # kinds of problems for which all replicates are computed together along a leading dimension;
    # for a density they are folded into the chains, [R·C, P]
    folds_replicates: ClassVar[Set[str]] = {"sequence", "game"}
    # kind of its draws, Markov chains or weighted, which selects the checks by R̂, ESS or k̂
    mixes: ClassVar[bool] = True
    # bias of its draws at stationarity; None if they follow the target
    draw_bias: ClassVar[Bias | None] = None
    # True if ``init`` receives test labels and true parameters to measure errors
    reads_truth: ClassVar[bool] = False
    # of filters: True if filtered states can be differentiated with respect to the observations
    differentiable: ClassVar[bool] = True

    def provided(self, kind: Kind) -> Set[type]:
        """Protocols that its posterior implements for a kind of problem."""
        return self.provides | self.provides_by_kind.get(kind, frozenset())

    def variational_capabilities(self) -> Set[type]:
        """Capabilities of the module that the method builds from the model, as configured.

        Nested gradients require them.  Empty if the module is the model.
        """
        return frozenset()

    def asked_by_keys(self) -> dict[type, str]:
        """Further capabilities of the model required by keys of this method.

        Returns:
            Capability -> the key.
        """
        return {}

    def required_capabilities(self, kind: Kind, offered: Set[type] = frozenset()) -> Set[type]:
        """Capabilities that the model must offer, as configured.

        Args:
            kind: kind of the problem.
            offered: capabilities that the model offers; they select among alternatives.

        Returns:
            Protocols of ``contracts.capabilities``.
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
            state: state after the previous step; may be changed in place.
            batch: data of this step, in the view that the class declares.
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
        """Checks specific to this method, in addition to the checks of chains, filters and bounds.

        Args:
            run: the finished replicate; ``run.state`` is the last state.

        Returns:
            The checks, in display order.
        """
        return []

    def side_by_side(self) -> Inference | None:
        """Method for all replicates of a supervised problem in parallel; None if not supported.

        Used with ``side_by_side=true``.  Its model and its posterior hold one instance per
        replicate; its problem and batches come from ``problems.replicates.side_by_side``.
        """
        return None

    def variants(self) -> tuple[str, ...]:
        """Names of the settings with separate posteriors; empty for a single posterior.

        All are learned in parallel, like replicates.  The posterior of a replicate is then
        ``problems.replicates.variants.Variants``.
        """
        return ()


def variant_info_names(names: Iterable[str], inference: Inference) -> list[str]:
    """Names of the given quantities in the method's info.

    They are unchanged, or ``name/variant`` for each variant.
    """
    variants = inference.variants()
    return (
        [f"{name}/{variant}" for name in names for variant in variants] if variants else list(names)
    )
