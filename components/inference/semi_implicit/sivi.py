"""Semi-implicit variational inference."""

from __future__ import annotations

from pydantic import NonNegativeInt

from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import ModelBatch
from components.inference.semi_implicit.fitting import (
    AnyState,
    SemiImplicitRowsVI,
    joint_at,
    q_and_weight,
)
from components.inference.variational.ascent import ascend_value
from components.registry import register


@register("inference", "sivi")
class SIVI(SemiImplicitRowsVI):
    """Semi-implicit variational inference (SIVI): ascent of a surrogate lower bound.

    The bound uses K further draws of the noise:

        q(z) = ∫ q(z|ε) q(ε) dε,   q(z|ε) = N(m(ε), diag s²),  q(ε) = N(0, I)
        L_K = E[log p(x, z) − log (K + 1)⁻¹ Σ_{k=0}^K q(z|ε_k)],
        z ~ q(z|ε_0),  ε_0, …, ε_K ~ q(ε)

    E[log p(x, z)] uses all rows, or an unbiased estimate from a minibatch.  L_K is a lower
    bound of the ELBO of q, so of log p(x) (for a density: of its log normaliser), for every K, and
    therefore called ``elbo``.  It increases with K; L_0 is the mean ELBO of q(z|ε), L_∞ the ELBO of
    q.  The S draws z [S, P] share the K others.  The posterior is two chains of draws of q, and its
    ``nelbo`` is −L_K with K = ``bound_samples``, for any method that trained q.  For rows without
    labels, q(z|x_b) = ∫ N(z | m(x_b, ε), diag s²) q(ε) dε replaces the model's own encoder, z [S,
    B, D], with separate noise for each row [K, B, E]; encoder and decoder maximise N/B Σ_b
    L_K(x_b).  Held-out rows have −L_K with K = ``bound_samples`` as ``nelbo``.
    Info: L_K in nats and its two terms.

    Raises:
        NumericalError: the log joint is not finite at the initial q, or q becomes non-finite.
        ConfigMismatchError: the log joint cannot be differentiated.

    Source: Yin and Zhou (2018), section 3 and Algorithm 1, with one sample z of the log
    ratio (its J = 1).
    """

    extra_samples: NonNegativeInt

    def step(self, state: AnyState, batch: ModelBatch, rng: Rng) -> tuple[AnyState, Info]:
        q, weight = q_and_weight(state, batch)
        _, mean, z = q.sample(self.n_samples, rng.noise)
        others = q.mean(q.mixing(self.extra_samples, rng.noise))
        joint = weight * joint_at(state, z, batch).mean()
        entropy = -weight * q.log_surrogate(z, mean, others).mean()
        bound = joint + entropy
        norm = ascend_value(state.q, bound, batch, state.optimizer)
        terms = {"elbo": bound, "log_joint": joint, "entropy": entropy}
        return state, {name: value.detach() for name, value in terms.items()} | {"grad_norm": norm}
