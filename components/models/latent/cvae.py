"""The conditional variational auto-encoder, a classifier by the evidence of each class."""

from __future__ import annotations

import math
from functools import partial

import torch
from pydantic import PositiveInt
from torch import Tensor
from torch.nn.functional import one_hot

from components.contracts.capabilities import LatentVariable
from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.exponential.standard_draws import standard_normal
from components.metrics.evidence.held_out import Proposal
from components.metrics.evidence.proposal import sample_proposal
from components.models.latent.amortised import Amortised, GaussianGuide, Scale, gaussian_guide
from components.models.latent.generative import BernoulliModel
from components.models.latent.perceptron import Perceptron
from components.models.networks.activations import Activation
from components.problems.supervised import Supervised
from components.registry import register


def class_evidence(
    guide: LatentVariable[Batch],
    x: Tensor,
    n_classes: int,
    n_samples: int,
    generator: torch.Generator,
    proposal: Proposal = "guide",
) -> Tensor:
    """Log evidence log p(x_b | y = c) by S importance samples z ~ q for each class, [B, C].

        p̂(x|y) = S⁻¹ Σ_s p(x|y, z_s) p(z_s) / q(z_s)

    q is the guide's q(z|x_b, c), or a mixture around a Laplace fit to p(z|x_b, c), which
    does not depend on training. All classes use the same noise. The result is
    differentiable in x; fitted samples z are fixed, and the gradient is Σ_s w̃_s ∇_x
    log p(x|y, z_s).

    Source: Gallego (2021), eq. (2.15), which lacks p(z)/q(z|x, y).
    """
    log_evidence = []
    for c in range(n_classes):
        y = torch.full((len(x), 1), c, device=x.device)
        batch = Batch(x, y, torch.ones_like(y, dtype=torch.bool), 1.0)
        m, s = guide.encode(batch)
        if c == 0:
            noise = standard_normal((n_samples, *m.shape), generator, m)
        if proposal == "laplace":
            fixed = Batch(x.detach(), y, batch.mask, 1.0)
            z, log_q = sample_proposal(
                partial(guide.log_joint, fixed), m.detach(), s.detach(), noise
            )
        else:
            z = m + s * noise
            log_q = guide.log_q(batch, z)
        log_evidence.append((guide.log_joint(batch, z) - log_q).logsumexp(0) - math.log(n_samples))
    return torch.stack(log_evidence, -1)


def class_predictive(
    guide: LatentVariable[Batch],
    log_share: Tensor,
    x: Tensor,
    n_samples: int,
    generator: torch.Generator,
    proposal: Proposal = "guide",
) -> Categorical:
    """p(y|x) ∝ p(y) p̂(x|y), log p(y) [C], at x [B, …], with one draw of the importance samples (S
    = 1)."""
    evidence = class_evidence(guide, x, len(log_share), n_samples, generator, proposal)
    return Categorical((evidence + log_share)[None, :, None])


class ConditionalAutoEncoder(Amortised[Batch]):
    """p(y) p(z) p(x|z, y) and q(z|x, y) for one class y of C.

    The inputs of the networks are (z, y) and (x, y).
    """

    log_share: Tensor

    def __init__(
        self,
        generative: BernoulliModel,
        guide: GaussianGuide,
        latent_dim: int,
        train: Batch,
        n_classes: int,
    ):
        self.n_classes = n_classes
        super().__init__(generative, guide, latent_dim, train.x)
        counts = torch.bincount(train.y[:, 0], minlength=n_classes).to(train.x)
        # log p(y) [C], never −∞
        self.register_buffer("log_share", ((counts + 1) / (counts + 1).sum()).log())

    @property
    def context_dim(self) -> int:
        return self.row_shape.numel() + self.n_classes

    def context(self, batch: Batch) -> Tensor:
        return torch.cat([batch.x.flatten(1), self._classes(batch)], 1)  # [B, I + C]

    def _classes(self, batch: Batch) -> Tensor:
        return one_hot(batch.y[:, 0], self.n_classes).to(batch.x)  # [B, C]

    def rows_at(self, batch: Batch, theta: Tensor) -> Tensor:
        """log p(x_b|z, y_b) at z [S, B, D]: [S, B]."""
        y = self._classes(batch).expand(*theta.shape[:2], -1)
        return self.generative.log_prob(batch.x.flatten(1), torch.cat([theta, y], -1))

    # Model of labels
    def elbo(self, batch: Batch, noise: Tensor) -> dict[str, Tensor]:
        """The bound on Σ log p(x_b|y_b) + log p(y_b) of the whole data set in nats; kl is 0 because
        rows share no variables."""
        rows = self.elbo_rows(batch, noise).mean(0) + self.log_share[batch.y[:, 0]]
        total = batch.scale * rows.sum()
        return {"elbo": total, "log_likelihood": total, "kl": self.kl()}

    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> Categorical:
        """p(y|x) ∝ p(y) p̂(x|y) by n importance samples per class."""
        return class_predictive(self, self.log_share, x, n, generator)


@register("model", "cvae")
class CVAE(Model[Supervised, ConditionalAutoEncoder]):
    """Conditional variational auto-encoder of rows x in {0, 1} from z ~ N(0, I) and a class y.

    The guide q(z|x, y) depends on both x and y.

        p(y|x) ∝ p(y) p(x|y),   p(x|y) = ∫ p(x|z, y) p(z) dz

    A deep Bayes classifier: it is trained on a bound of log p(x|y) and predicts by p(x|y), with
    ``n_predict`` (a key of the inference) importance samples from q(z|x, y). p(y) are the class
    frequencies in training. The networks are those of ``vae``, and q has one for m and one for s. x
    [B, I], y [B, 1], z [S, B, D].

    Raises:
        ConfigMismatchError: there are several labels, or inputs are not binary.

    Source: Gallego (2021), section 2.4.2 (Variational autoencoder as a deep Bayes
    classifier), Figure 2.13, eq. (2.15).
    """

    requires = Requirements(
        kinds={"supervised"},
        targets={"binary", "classes"},
        refused_traits={"several_tasks": "supports only one label"},
        required_traits={"binary_inputs": "supports only inputs 0 and 1"},
    )

    latent_dim: PositiveInt
    widths: list[PositiveInt]
    activation: Activation
    scale: Scale

    def build(self, problem: Supervised, rng: Rng) -> ConditionalAutoEncoder:
        x = problem.train.x.flatten(1).cpu()
        C = problem.n_classes
        if problem.n_tasks != 1 or not bool(((x == 0) | (x == 1)).all()):
            raise ConfigMismatchError(
                "model=cvae requires one label and inputs 0 or 1; set dataset.binarised=threshold "
                "if the dataset has this key, or choose a data set with binary inputs"
            )
        values = x.shape[1]
        below = [*reversed(self.widths)]
        up = Perceptron([self.latent_dim + C, *self.widths, values], self.activation, rng)
        guide = gaussian_guide(
            values + C, below, self.latent_dim, self.activation, True, self.scale, rng
        )
        return ConditionalAutoEncoder(
            BernoulliModel(up, x), guide, self.latent_dim, problem.train, C
        )
