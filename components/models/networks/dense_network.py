"""Feed-forward network of affine layers with an explicit gradient at K weight vectors."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from components.contracts.problems import Batch
from components.maths.compiled.affine import affine
from components.models.networks.feed_forward import FeedForward

CACHE = 2**21  # bytes of one layer's activations


class DenseNetwork(FeedForward):
    """The log joint of K networks and its gradient, computed without autograd and written directly
    into one [K, P].

        z_l = W_l h_{l−1} + b_l,  h_l = a(z_l),  f = z_L
        δ_L = ∂(N/B Σ_b log p(y_b|f))/∂f,  δ_l = a′(z_l) ∘ W_{l+1}ᵀ δ_{l+1}
        ∂/∂W_l = δ_l h_{l−1}ᵀ,  ∂/∂b_l = δ_l 1

    Rows of the batch are the last dimension, h_l [K, U_l, B], so the first layer of all K networks
    is one product if they share x, with b_1 as the weight of a constant input 1.

    Source: Rumelhart, Hinton and Williams (1986), eqs. (4)-(6)."""

    def score(self, theta: Tensor, batch: Batch, value: bool) -> tuple[Tensor, Tensor]:
        """Log joint [K], empty without ``value``, and its gradient [K, P]."""
        gradient = torch.empty_like(theta)
        n = len(self.prior_std)
        log_joint, by_noise = self.pull(
            theta, batch, self._split_log_noise(theta)[:, 0], gradient, value
        )
        w = self._weights(theta)
        self._weights(gradient).addcmul_(w, self.prior_precision, value=-1)
        if value:
            log_joint.addmv_(w.square(), self.prior_precision, alpha=-0.5).sub_(self.log_normaliser)
        if self.learns_noise:
            log_noise = theta[:, n:]
            torch.add(by_noise, self.noise_prior_gradient(log_noise), out=gradient[:, n:])
            if value:
                log_joint += self.noise_log_prior(log_noise)
        return log_joint, gradient

    def pull(
        self, theta: Tensor, batch: Batch, log_noise: Tensor, gradient: Tensor, value: bool
    ) -> tuple[Tensor, Tensor]:
        """N/B Σ_b log p(y_b|x_b) [K], empty without ``value``, and its slope by log σ² [K, T].

        The gradient by the weights is written to the first columns of ``gradient`` [K, P'], θ [K,
        P'].  Networks are processed in blocks with activations that fit in a core's cache."""
        x = batch.x
        of_one = max(n for n, _ in self.shapes) * x.shape[-2] * x.element_size()
        size = max(1, CACHE // max(1, of_one))
        if len(theta) <= size or x.device.type != "cpu":
            return self._pull(theta, batch, log_noise, gradient, value)
        parts = []
        for start in range(0, len(theta), size):
            rows = slice(start, start + size)
            part = batch if x.ndim == 2 else replace(batch, x=x[rows])
            noise = log_noise if len(log_noise) == 1 else log_noise[rows]
            parts.append(self._pull(theta[rows], part, noise, gradient[rows], value))
        likelihoods, by_noise = zip(*parts, strict=True)
        return torch.cat(likelihoods), torch.cat(by_noise)

    def _pull(
        self, theta: Tensor, batch: Batch, log_noise: Tensor, gradient: Tensor, value: bool
    ) -> tuple[Tensor, Tensor]:
        """``pull`` for one block of networks."""
        layers = self.layers(self._weights(theta))
        slopes = self.layers(self._weights(gradient))
        x = batch.x.mT
        last = len(layers) - 1  # [I, B] or [K, I, B]
        shared = x.ndim == 2
        if shared:
            x = torch.cat([x, x.new_ones(1, x.shape[1])])  # [I + 1, B]
        below = [x]
        activations = []  # h_0 … h_{L−1}, and the input of each a′
        for layer, (weight, bias) in enumerate(layers):
            if layer == 0 and shared:
                both = torch.cat([weight, bias.unsqueeze(-1)], -1)  # [K, U, I + 1]
                z = affine(both.flatten(0, 1), x.T).view(*bias.shape, x.shape[1])
            else:
                z = torch.baddbmm(bias.unsqueeze(-1), weight, below[-1])  # [K, U, B]
            if layer < last:
                h = self.bend.value(z)
                below.append(h)
                activations.append(z if self.bend.keeps else h)
        f = z.view(len(z), self.n_tasks, self.n_outputs, z.shape[2])
        likelihood, by_f, by_noise = self.likelihood_gradients(f, batch, log_noise, value)
        delta = by_f.flatten(1, 2)
        factor = None  # δ_l is factor [K, U, 1] times delta, or delta itself
        for layer in range(last, -1, -1):
            (weight, _), (of_weight, of_bias), h = layers[layer], slopes[layer], below[layer]
            if layer == 0 and shared:
                # for few inputs, twice as fast as the transpose
                both = affine(h, delta.flatten(0, 1)).view(-1, *weight.shape[:2]).permute(1, 2, 0)
                by_weight = both[..., :-1]
                by_bias = both[..., -1]
            else:
                by_weight = delta @ h.mT
                by_bias = delta.sum(-1)
            if factor is None:
                of_weight.copy_(by_weight)
                of_bias.copy_(by_bias)
            else:
                torch.mul(by_weight, factor, out=of_weight)
                torch.mul(by_bias, factor[..., 0], out=of_bias)
            if layer > 0:
                weight = weight if factor is None else weight * factor
                # for one row, the product is taken after the sum over the batch
                is_single_row = weight.shape[1] == 1
                factor = weight.mT if is_single_row else None
                activation = activations[layer - 1]
                delta = self.bend.derivative(
                    delta if is_single_row else weight.mT @ delta, activation, activation
                )
        return likelihood, by_noise
