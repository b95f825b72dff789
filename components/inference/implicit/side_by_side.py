"""Adversarial posteriors of R replicates, each with V powers of the likelihood, in parallel."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from components.contracts.capabilities import WeightSpace
from components.contracts.checks import Check
from components.contracts.costs.counts import counting_gradients
from components.contracts.problems import Batch
from components.contracts.roles import FinishedRun, Inference, Info
from components.contracts.streams import Rng
from components.gradients.by_parameter import Called, Terms
from components.inference.gaussian_weights.mean_field import MeanFieldPosterior
from components.inference.implicit.adversarial import Adversarial, AdversarialState
from components.inference.implicit.contrast import discrimination_loss, discriminator_checks
from components.inference.implicit.generator import Generator
from components.inference.point.descent import frozen
from components.inference.variational.ascent import warmup_weight
from components.maths.exponential.standard_draws import standard_normal
from components.maths.optimizers import Adam
from components.models.latent.perceptron import Perceptron
from components.problems.replicates.side_by_side import Batches, SupervisedReplicates
from components.problems.replicates.variants import Variants

N = TypeVar("N", bound=nn.Module)

F = TypeVar("F")

Parameters = dict[str, Tensor]  # by name


class StackedModules(nn.Module, Generic[N]):
    """R modules of one architecture with parameters stacked along a leading dimension, [R, …].

    All other data of the modules are shared.  No operation mixes the modules: each function
    of a module is mapped over R by ``torch.func.vmap``, and a sum over the R results has R
    independent gradients.
    """

    def __init__(self, modules: Sequence[N]):
        super().__init__()
        first = modules[0]
        # in a list, so that its parameters are not registered here
        self._one = [copy.deepcopy(first)]
        self.names = [f"module.{name}" for name, _ in first.named_parameters()]  # as in ``Called``
        each = [list(module.parameters()) for module in modules]
        self.values = nn.ParameterList(
            nn.Parameter(
                torch.stack([p.detach() for p in same]), requires_grad=same[0].requires_grad
            )
            for same in zip(*each, strict=True)
        )

    @property
    def one(self) -> N:
        """One of the modules, for values that do not depend on parameters."""
        return self._one[0]

    def trainable_parameters(self) -> list[Tensor]:
        """Parameters that require gradients."""
        return [value for value in self.values if value.requires_grad]

    def parameters_by_name(self, *, still: bool = False) -> Parameters:
        """All parameters [R, …] by name, detached if ``still``."""
        return {
            name: p.detach() if still else p
            for name, p in zip(self.names, self.values, strict=True)
        }

    def read(self, values: Parameters, f: Callable[[N], F]) -> F:
        """f of one module with these parameters."""
        result: F = torch.func.functional_call(Called(self.one, f), values, (self.one,))
        return result

    def call(self, values: Parameters, x: Tensor) -> Tensor:
        """The output of one module with these parameters."""
        output: Tensor = self.read(values, lambda one: one(x))
        return output

    @torch.no_grad()
    def module(self, r: int) -> N:
        """A copy of the module of a replicate."""
        replica = copy.deepcopy(self.one)
        for parameter, stacked in zip(replica.parameters(), self.values, strict=True):
            parameter.copy_(stacked[r])
        return replica


ParallelAdversarialState = AdversarialState[StackedModules[Generator], StackedModules[Perceptron]]


class ParallelAdversarial(
    Inference[Sequence[WeightSpace], SupervisedReplicates, Batches, ParallelAdversarialState]
):
    """Joint steps of L = R V generators and their discriminators, one per replicate and power.

    Each uses the batch and the noise of its own replicate; the V powers of a replicate (1 if
    ``powers`` is empty) are adjacent: l = r V + v.  The ascended objective is Σ_l L_l(φ_l); its
    gradient in φ_l is the gradient of L_l, and Adam treats every number independently, so training
    in parallel equals sequential training up to rounding.  θ [L, K, P]; the terms of the objective
    and the discriminator's loss [R], with several powers under ``name/variant``.
    """

    requires = Adversarial.requires
    provides = frozenset()

    one: Adversarial  # the method of every replicate

    def init(
        self, model: Sequence[WeightSpace], problem: SupervisedReplicates, rng: Rng
    ) -> ParallelAdversarialState:
        method = self.one
        V = self.n_variants
        each = enumerate(zip(model, problem.splits, strict=True))
        # stacking copies them
        states = [state for r, inputs in each for state in [method.init(*inputs, rng.of(r))] * V]
        q = StackedModules([state.q for state in states])
        optimizer = Adam(q.trainable_parameters(), method.lr)
        judges = [state.discriminator for state in states if state.discriminator is not None]
        if not judges:
            return ParallelAdversarialState(q, optimizer, None, None)
        T = StackedModules(judges)
        return ParallelAdversarialState(
            q, optimizer, T, Adam(T.trainable_parameters(), method.discriminator_lr)
        )

    @property
    def n_variants(self) -> int:
        return len(self.one.powers) or 1

    def repeat_for_generators(self, of: Sequence[Tensor] | Tensor) -> Tensor:
        """Repeat data of the R replicates, [R, …], for the L generators, [L, …]."""
        each = of if isinstance(of, Tensor) else torch.stack(list(of))
        return each.repeat_interleave(self.n_variants, 0) if self.n_variants > 1 else each

    def powers(self, like: Tensor) -> Tensor:
        """Powers of the L generators [L], if they differ; ``like`` [R, …]."""
        each = torch.tensor(self.one.powers, dtype=like.dtype, device=like.device)
        return each.repeat(len(like))

    def terms(
        self, state: ParallelAdversarialState, batch: Batches, noise: Tensor
    ) -> tuple[Terms, Tensor]:
        """N/B Σ_b data term − β KL and its parts, each [L], and the standardised draws θ̃ [L, K,
        P]; from ``noise`` [L, K, D]."""
        method = self.one
        q = state.q
        discriminator = state.discriminator
        beta = warmup_weight(state.t, method.warmup)

        def of_one(
            values: Parameters,
            still: Parameters,
            x: Tensor,
            y: Tensor,
            mask: Tensor,
            noise: Tensor,
            power: float | Tensor,
        ) -> tuple[Terms, Tensor]:
            def score_draws(q: Generator) -> tuple[Terms, Tensor]:
                judge = discriminator and partial(discriminator.call, still)
                terms, contrast = method.terms(
                    q, judge, Batch(x, y, mask, batch.scale), noise, beta, power
                )
                return terms, contrast.z_scores

            return q.read(values, score_draws)

        still = {} if discriminator is None else discriminator.parameters_by_name(still=True)
        result: tuple[Terms, Tensor]
        x, y, mask = map(self.repeat_for_generators, (batch.x, batch.y, batch.mask))
        power, of_each = (self.powers(batch.x), 0) if method.powers else (method.power, None)
        mapped = torch.func.vmap(of_one, in_dims=(0, 0, 0, 0, 0, 0, of_each))
        result = mapped(q.parameters_by_name(), still, x, y, mask, noise, power)
        return result

    def step(
        self, state: ParallelAdversarialState, batch: Batches, rng: Rng
    ) -> tuple[ParallelAdversarialState, Info]:
        method = self.one
        streams = [rng.of(r).noise for r in range(len(batch.x))]
        noise = self.repeat_for_generators(
            [state.q.one.noise(method.draws(batch.n_rows), g) for g in streams]
        )
        with counting_gradients(len(noise)):
            terms, ours = self.terms(state, batch, noise)
        state.optimizer.descend(-terms["objective"].sum() / (batch.scale * batch.n_rows))
        info = {name: value.detach() for name, value in terms.items()}
        if state.discriminator is not None and state.discriminator_optimizer is not None:
            ours = ours.detach()
            each = [standard_normal(ours.shape[1:], g, ours) for g in streams]
            T = state.discriminator

            def of_one(values: Parameters, ours: Tensor, noise: Tensor) -> Tensor:
                return T.read(values, lambda T: discrimination_loss(T, ours, noise))

            loss = torch.func.vmap(of_one)(
                T.parameters_by_name(), ours, self.repeat_for_generators(each)
            )
            state.discriminator_optimizer.descend(loss.sum())
            info["discriminator_loss"] = loss.detach()
        return replace(state, t=state.t + 1), self.describe(info)

    def checks(self, run: FinishedRun) -> list[Check]:
        return discriminator_checks(self, run.trace)

    def variants(self) -> tuple[str, ...]:
        return self.one.variants()

    def describe(self, info: Terms) -> Info:
        """Info of the replicates [R], by variant if there are several."""
        names = self.variants()
        if not names:
            return info
        each = {
            name: value.unflatten(0, (-1, len(names))).unbind(1) for name, value in info.items()
        }
        return {
            f"{name}/{v}": value
            for name, parts in each.items()
            for v, value in zip(names, parts, strict=True)
        }

    def posterior(
        self, state: ParallelAdversarialState
    ) -> tuple[MeanFieldPosterior | Variants, ...]:
        each = [
            MeanFieldPosterior(q=frozen(state.q.module(index)), n_predict=self.one.n_predict)
            for index in range(len(state.q.values[0]))
        ]
        names = self.variants()
        if not names:
            return tuple(each)
        starts = range(0, len(each), len(names))
        return tuple(
            Variants(dict(zip(names, each[index : index + len(names)], strict=True)))
            for index in starts
        )


class ReplicableAdversarial(Adversarial):
    """An adversarial posterior with replicates trained sequentially or in parallel."""

    def side_by_side(self) -> ParallelAdversarial:
        return ParallelAdversarial(name=self.name, one=self)
