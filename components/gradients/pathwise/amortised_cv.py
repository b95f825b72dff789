"""Control variates with coefficients from a recognition network for each row."""

from __future__ import annotations

from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import RowContext
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.gradients.learnt import Learnt
from components.gradients.pathwise.controlled import ControlVariateGradient
from components.models.latent.perceptron import Perceptron
from components.models.networks.activations import Activation
from components.registry import register

LARGEST = (
    2**28
    # maximum weights in the last layer of a recognition network: 1 GiB in single precision, three times
    # that with Adam's state
)


@register("gradient", "amortised_cv")
class AmortisedCV(ControlVariateGradient[RowContext[RowBatch], Learnt[Perceptron]]):
    """Amortised control variates: a polynomial of its noise corrects each row's gradient.

    Each row has its own coefficients.

        G̃_p = Σ_b (ĝ_bp(ε_b) − c_bpᵀ w(ε_b)),   c_bp = [r_φ(y_b)]_p
        w(ε) = (ε^k − E ε^k)_{k = 1…K},   ε_b ~ N(0, I_D)
        φ ← φ − lr · Adam(∇_φ Σ_p Ṽ_p(d_bp + c_bpᵀ w))
        d_bp = 0, or learned with c_bp if ``centred``

    y_b [C] is the context of a row; c [B, P, K·D] are used before φ is updated with Ṽ of this
    noise, so that G̃ has the mean of Ĝ.  Ṽ is ``objective``; its mean is Tr Cov[G̃] up to a
    constant.  ``unit: scale`` expresses c in units of N/B, the weight of a row.  With ``centred``
    the network also learns the mean d_b of ĝ_b.  It does not correct the gradient, but removes from
    Ṽ's gradient 2w(d + cᵀw − ĝ) the noise due to a nonzero mean.  With S draws w is their mean.
    ``partial_gradients`` computes ĝ_bp [B, P] of all rows in one vectorised pass.

    Raises:
        ConfigMismatchError: there are no distinct rows; rows share their noise, and ``objective``
            assumes that they are independent; or the network's last layer exceeds memory.

    Source: Boustati (2021), eqs. (4.5), (4.7), (4.10), (4.14), (4.15), (4.21) and
    Algorithm 4; 4.6.1 for the network.
    """

    requires = Requirements(capabilities={RowContext})

    centred: bool
    widths: list[PositiveInt]
    activation: Activation
    lr: PositiveFloat

    def init(self, module: RowContext[RowBatch], rng: Rng) -> Learnt[Perceptron]:
        if not module.context_dim:
            raise ConfigMismatchError(
                "gradient=amortised_cv has separate coefficients for each row, but there are no "
                "rows; use "
                "gradient=context_free_cv"
            )
        parameters = list(module.parameters())
        out = sum(p.numel() for p in parameters) * (
            (self.order + self.radial) * module.noise_dim + self.centred
        )
        # context y_b [C] -> [P · K·D], or [P · (K·D + 1)] with d_b
        sizes = [module.context_dim, *self.widths, out]
        if out * sizes[-2] > LARGEST:
            raise ConfigMismatchError(
                f"the network of gradient=amortised_cv would have {out * sizes[-2]} weights in its "
                f"last layer; lower gradient.widths, or use a model with fewer parameters"
            )
        network = Perceptron(sizes, self.activation, rng).to(parameters[0])
        return Learnt.begin(network, self.lr)

    def coefficients(
        self, module: RowContext[RowBatch], batch: RowBatch, state: Learnt[Perceptron]
    ) -> tuple[Tensor, Tensor | None]:
        K = (self.order + self.radial) * module.noise_dim
        # [B, P, K·D (+ 1)]
        output: Tensor = state.control(module.context(batch)).unflatten(-1, (-1, K + self.centred))
        return output[..., :K], output[..., K] if self.centred else None
