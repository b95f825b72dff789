"""Semi-implicit variational inference."""

from __future__ import annotations

from pydantic import NonNegativeInt
from torch import Tensor

from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import ModelBatch
from components.inference.log_joint import log_joint
from components.inference.semi_implicit.fitting import (
    SemiImplicitTrainingState,
    SemiImplicitVI,
    rows_of,
)
from components.registry import register


@register("inference", "sivi")
class SIVI(SemiImplicitVI):
    """Semi-implicit variational inference (SIVI): ascent of a surrogate lower bound.

    The bound uses K further draws of the noise:

        q(z) = ∫ q(z|ε) q(ε) dε,   q(z|ε) = N(m(ε), diag s²),  q(ε) = N(0, I)
        L_K = E[log p(x, z) − log (K + 1)⁻¹ Σ_{k=0}^K q(z|ε_k)],
        z ~ q(z|ε_0),  ε_0, …, ε_K ~ q(ε)

    E[log p(x, z)] uses all rows, or an unbiased estimate from a minibatch.  L_K is a lower
    bound of the ELBO of q, so of log p(x) (for a density: of its log normaliser), for every
    K: hence ``elbo``.  It increases with K; L_0 is the mean ELBO of q(z|ε), L_∞ the ELBO of
    q.  The S draws z [S, P] share the K others.  The posterior is two chains of draws of q,
    and its ``nelbo`` is −L_K with K = ``bound_samples``, for any method that trained q.
    Info: L_K in nats and its two terms.

    Raises:
        NumericalError: the log joint is not finite where q starts, or q has left the
            finite numbers.
        ConfigMismatchError: the log joint cannot be differentiated.

    Source: Yin and Zhou (2018), section 3 and Algorithm 1, with one sample z of the log
    ratio (its J = 1).
    """

    extra_samples: NonNegativeInt

    def step(
        self, state: SemiImplicitTrainingState, batch: ModelBatch, rng: Rng
    ) -> tuple[SemiImplicitTrainingState, Info]:
        _, mean, z = self.sample(state.q, rng.noise)
        others = state.q.mean(state.q.mixing(self.extra_samples, rng.noise))
        joint: Tensor = log_joint(state.model, z, batch).mean()
        entropy = -state.q.log_surrogate(z, mean, others).mean()
        bound = joint + entropy
        norm = self.ascend(state, bound, rows_of(batch))
        terms = {"elbo": bound, "log_joint": joint, "entropy": entropy}
        return state, {name: value.detach() for name, value in terms.items()} | {"grad_norm": norm}
