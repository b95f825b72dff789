"""Metropolis–Hastings samplers of a log joint with proposals learned in warm-up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.requirements import WHOLE_DATA
from components.contracts.roles import Info
from components.inference.chains import Chains, Sampler, advance
from components.inference.mcmc.adaptation import AdaptedProposal, Proposal
from components.inference.mcmc.metropolis import metropolis_hastings
from components.inference.superchains import Superchains


@dataclass(kw_only=True)
class MetropolisChains(Chains):
    value: Tensor  # log π(θ) [C]
    proposal: Proposal


S = TypeVar("S", bound=MetropolisChains)


class AdaptedMetropolis(Superchains, AdaptedProposal, Sampler[S], Generic[S]):
    """Base of samplers that accept or reject a proposal for each chain."""

    requires = WHOLE_DATA
    thinning: PositiveInt

    def settle(
        self,
        state: S,
        proposal: Tensor,
        proposed: Tensor,
        correction: Tensor | float,
        generator: torch.Generator,
        **others: Tensor,
    ) -> tuple[S, Info]:
        """The next state: each chain at its proposal [C, P] with log density ``proposed`` [C], or
        at its old position.  ``correction`` is the argument of ``metropolis_hastings``; ``others``
        are the state's other fields at the proposals [C, P]."""
        t = state.t + 1
        accept, alpha = metropolis_hastings(state.value, proposed, correction, t, generator)
        kept: dict[str, Any] = {
            name: torch.where(accept[:, None], x, getattr(state, name))
            for name, x in {"theta": proposal, **others}.items()
        }
        theta = kept["theta"]
        value = torch.where(accept, proposed, state.value)
        eps = state.proposal.log_step.exp()  # [C]
        stats = {"lp": value, "acceptance_rate": alpha, "step_size": eps}
        state = advance(state, theta, self.warmup, self.thinning, stats)
        learnt = self.update_proposal(state.proposal, theta, t, alpha)
        info = {
            "log_joint": value.mean(),
            "acceptance": alpha.mean(),
            "step_size": eps.mean(),
            "draws": len(state.kept),
        }
        return replace(state, value=value, proposal=learnt, **kept), info
