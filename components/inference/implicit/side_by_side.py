"""Adversarial posteriors of R replicates side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from components.contracts.problems import Batch
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.implicit.adversarial import Adversarial
from components.inference.implicit.contrast import discrimination
from components.inference.implicit.generator import Generator
from components.inference.implicit.stacked import Stacked
from components.inference.point.descent import frozen
from components.inference.variational.ascent import risen
from components.inference.variational.mean_field_vi import MeanFieldPosterior, WeightNetwork
from components.maths.optimizers import Adam
from components.models.latent.perceptron import Perceptron
from components.problems.replicates.side_by_side import Batches, SupervisedReplicates


@dataclass(frozen=True)
class SideBySideState:
    """R generators q(θ) and R discriminators T, and an optimizer of all of each."""

    q: Stacked[Generator]
    optimizer: Adam
    discriminator: Stacked[Perceptron] | None
    discriminator_optimizer: Adam | None
    t: int = 0


class AdversarialSideBySide(Inference[Sequence[WeightNetwork], SupervisedReplicates, Batches, SideBySideState]):
    """Steps of R generators and their discriminators at once, each on the batch and with the noise of its own replicate.

    What is climbed is Σ_r L_r(φ_r), whose gradient in φ_r is that of L_r, and Adam moves every number by itself: R
    replicates side by side are R that follow each other, up to rounding.  θ [R, K, P], the terms of L and the
    discriminator's loss [R]."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    needs: ClassVar[frozenset[str]] = frozenset({"network", "weight_space", "own_inputs"})
    gives: ClassVar[frozenset[str]] = frozenset()

    one: Adversarial  # what is done of each

    def init(self, model: Sequence[WeightNetwork], problem: SupervisedReplicates, rng: Rng) -> SideBySideState:
        one = self.one
        each = enumerate(zip(model, problem.splits, strict=True))
        alone = [one.init(network, split, rng.of(r)) for r, (network, split) in each]
        q = Stacked([state.q for state in alone])
        optimizer = Adam(q.learned(), one.lr)
        judges = [state.discriminator for state in alone if state.discriminator is not None]
        if not judges:
            return SideBySideState(q, optimizer, None, None)
        T = Stacked(judges)
        return SideBySideState(q, optimizer, T, Adam(T.learned(), one.discriminator_lr))

    def terms(self, state: SideBySideState, batch: Batches, noise: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """N/B Σ_b data term − β KL and its parts, each [R], and the standardised draws θ̃ [R, K, P]; of ``noise`` [R, K, D]."""
        one = self.one
        q, discriminator, beta = state.q, state.discriminator, risen(state.t, one.warmup)

        def of_one(
            values: dict[str, Tensor], still: dict[str, Tensor], x: Tensor, y: Tensor, mask: Tensor, noise: Tensor
        ) -> tuple[dict[str, Tensor], Tensor]:
            def T(theta: Tensor) -> Tensor:
                assert discriminator is not None
                value: Tensor = discriminator.read(still, lambda T: T(theta))
                return value

            def seen(q: Generator) -> tuple[dict[str, Tensor], Tensor]:
                shown = Batch(x, y, mask, batch.scale)
                terms, contrast = one.terms(q, T if discriminator is not None else None, shown, noise, beta)
                return terms, contrast.standardised

            return q.read(values, seen)

        still = {} if discriminator is None else discriminator.named(still=True)
        found: tuple[dict[str, Tensor], Tensor]
        found = torch.func.vmap(of_one)(q.named(), still, batch.x, batch.y, batch.mask, noise)
        return found

    def step(self, state: SideBySideState, batch: Batches, rng: Rng) -> tuple[SideBySideState, Info]:
        one = self.one
        R = len(batch.x)
        streams = [rng.of(r).noise for r in range(R)]
        noise = [state.q.one.noise(one.draws(batch.n_rows), g) for g in streams]
        terms, ours = self.terms(state, batch, torch.stack(noise))
        _descend(state.optimizer, -terms["objective"].sum() / (batch.scale * batch.n_rows))
        info = {name: value.detach() for name, value in terms.items()}
        if state.discriminator is not None and state.discriminator_optimizer is not None:
            ours = ours.detach()
            noise = [torch.randn(ours.shape[1:], generator=g, dtype=ours.dtype, device=ours.device) for g in streams]
            T = state.discriminator

            def of_one(values: dict[str, Tensor], ours: Tensor, noise: Tensor) -> Tensor:
                return T.read(values, lambda T: discrimination(T, ours, noise))

            loss = torch.func.vmap(of_one)(T.named(), ours, torch.stack(noise))
            _descend(state.discriminator_optimizer, loss.sum())
            info["discriminator_loss"] = loss.detach()
        return replace(state, t=state.t + 1), info

    def posterior(self, state: SideBySideState) -> tuple[MeanFieldPosterior, ...]:
        R = len(state.q.values[0])
        return tuple(MeanFieldPosterior(frozen(state.q.module(r)), self.one.n_predict) for r in range(R))


class Replicable(Adversarial):
    """An adversarial posterior whose replicates can be trained one after the other and side by side."""

    def side_by_side(self) -> AdversarialSideBySide:
        return AdversarialSideBySide(name=self.name, one=self)


def _descend(optimizer: Adam, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
