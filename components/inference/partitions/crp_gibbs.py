"""Collapsed Gibbs sampling of a Dirichlet process mixture, with split–merge moves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.capabilities import DirichletProcess
from components.contracts.costs.counts import count
from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.contracts.traces import Trace, is_kept_step
from components.errors import ConfigMismatchError
from components.inference.partitions.clusters import Clusters
from components.inference.partitions.crp_sweep import count_uniforms, init_clusters, sweep
from components.inference.partitions.partition_draws import PartitionDraws
from components.problems.unlabelled import Unlabelled
from components.registry import register

MOST_AT_FIRST = 20  # largest initial number of clusters of a chain


@dataclass(frozen=True, kw_only=True)
class CrpState:
    """Current labels, and the stored ones."""

    model: DirichletProcess = not_checkpointed()
    x: Tensor = not_checkpointed()  # [N, D]
    clusters: Clusters = not_checkpointed()
    z: Tensor  # long [C, N], 0 … K − 1 of each chain
    log_joint: Tensor  # [C]
    n: int = 0  # sweeps
    accepted: float = 0.0  # of split–merge proposals
    kept: Trace = field(default_factory=Trace)  # rows [C, N] of int32
    kept_log_joint: Trace = field(default_factory=Trace)  # rows [C]


@register("inference", "crp_gibbs")
class CrpGibbs(Inference[DirichletProcess, Unlabelled, Rows, CrpState]):
    """Collapsed Gibbs sampling of the partition under a Dirichlet process mixture of Gaussians,
    with split–merge moves.

    p(z_b = k | z_−b, x) ∝ n_k p(x_b | rows of k), and ∝ α p(x_b) for a new cluster, for every row
    in turn (Chinese restaurant process).  Each sweep begins with ``split_merge`` proposals, each
    for two random rows: if they share a cluster it is split between them, otherwise their clusters
    are merged.  A split results from ``scans`` restricted Gibbs scans of a random launch state, and
    is accepted with probability min(1, p(z*, x) q(z | z*)/(p(z, x) q(z* | z))).  Chains start from
    random partitions into up to 20 clusters.  z [C, N].  Info: clusters, log p(z, x) and share of
    accepted proposals.

    Source: Neal (2000), algorithm 3; Jain & Neal (2004), section 3; Bardenet (2021), chapter 7."""

    requires = Requirements(
        kinds={"unlabelled"},
        batch_kind="whole",
        capabilities={DirichletProcess},
    )
    chains: PositiveInt
    burn_in: NonNegativeInt
    thinning: PositiveInt
    split_merge: NonNegativeInt
    scans: NonNegativeInt
    loss: Literal["binder", "variation"]

    def init(self, model: DirichletProcess, problem: Unlabelled, rng: Rng) -> CrpState:
        assert isinstance(problem.train, Rows)
        x = problem.train.x.flatten(1)
        prior = model.prior
        if not len(x):
            raise ConfigMismatchError(
                f"dataset={problem.name}: there are no training rows to cluster"
            )
        clusters = init_clusters(
            (x - prior.m).double().cpu().numpy(),
            model.concentration,
            prior.V.double().cpu().numpy(),
            float(prior.beta),
            float(prior.nu),
        )
        device = rng.init.device
        counts = torch.randint(
            1, min(len(x), MOST_AT_FIRST) + 1, (self.chains, 1), generator=rng.init, device=device
        )
        u = torch.rand(self.chains, len(x), generator=rng.init, dtype=torch.float64, device=device)
        z = (u * counts).long().cpu()
        for row in z:  # labels without gaps
            row.copy_(torch.unique(row, return_inverse=True)[1])
        return CrpState(
            model=model,
            x=x,
            clusters=clusters,
            z=z,
            log_joint=torch.full((self.chains,), torch.nan).double(),
        )

    def step(self, state: CrpState, batch: Rows, rng: Rng) -> tuple[CrpState, Info]:
        shape = (self.chains, count_uniforms(batch.n_rows, self.split_merge, self.scans))
        u = (
            torch.rand(shape, generator=rng.noise, dtype=torch.float64, device=rng.noise.device)
            .cpu()
            .numpy()
        )
        z = state.z.clone()
        log_joint, accepted = (
            torch.as_tensor(v)
            for v in sweep(state.clusters, z.numpy(), u, self.split_merge, self.scans)
        )
        count(forwards=self.chains * self.scans * batch.n_rows)
        n = state.n + 1
        if is_kept_step(n, self.burn_in, self.thinning):
            state.kept.append(z.int())
            state.kept_log_joint.append(log_joint)
        share = float(accepted.mean()) / max(self.split_merge, 1)
        state = replace(state, z=z, log_joint=log_joint, n=n, accepted=state.accepted + share)
        return state, {
            "clusters": (z.amax(1) + 1).double().mean(),
            "log_joint": log_joint.mean(),
            "acceptance": share,
        }

    def posterior(self, state: CrpState) -> PartitionDraws:
        is_empty = not len(state.kept)  # before the first stored draw: the current labels
        z = state.z[:, None] if is_empty else state.kept.stack_rows(1).long()
        log_joint = state.log_joint[:, None] if is_empty else state.kept_log_joint.stack_rows(1)
        accepted = state.accepted / max(state.n, 1) if self.split_merge else float("nan")
        model = state.model
        return PartitionDraws(
            model.concentration, model.prior, state.x, z, log_joint, self.loss, accepted
        )
