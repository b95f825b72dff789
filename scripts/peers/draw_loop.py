"""Adversarial α-divergences by a loop over the draws: K passes of ordinary layers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from components.contracts.problems import Batch
from components.inference.alpha.power_mean import log_power_mean
from components.inference.implicit.adversarial import Adversarial, AdversarialState
from components.inference.implicit.contrast import contrast, discrimination_loss
from runner.execution.rng import Streams


def step_by_loop(
    method: Adversarial, state: AdversarialState, batch: Batch, rng: Streams
) -> Tensor:
    """The objective by a loop over draws, each a network of its own; gradients and both steps are
    taken as ever."""
    q, T, network = state.q, state.discriminator, state.q.network
    assert T is not None
    K = method.n_samples
    noise = torch.randn(K, len(q.noise_mean), generator=rng.noise)
    draws, fits = [], []
    for k in range(K):
        theta = q.body(q.noise_mean + (0.5 * q.noise_log_variance).exp() * noise[k])
        h = batch.x
        layers = network.layers(theta)
        for weight, bias in layers[:-1]:
            h = F.leaky_relu(F.linear(h, weight, bias), 0.2)
        draws.append(theta)
        fits.append(network.log_prob(F.linear(h, *layers[-1])[..., None], batch))
    moments = contrast(torch.stack(draws))
    for p in T.parameters():
        p.requires_grad_(False)
    ratio = torch.stack([T(row) for row in moments.z_scores]).mean()
    for p in T.parameters():
        p.requires_grad_(True)
    fit = batch.scale * log_power_mean(torch.stack(fits), method.power).sum()
    objective = fit - moments.kl(network.prior_std, ratio)
    state.optimizer.zero_grad()
    (-objective / (batch.scale * len(batch.x))).backward()
    state.optimizer.step()
    ours = moments.z_scores.detach()
    other = torch.randn(ours.shape, generator=rng.noise)
    losses = [discrimination_loss(T, ours[k : k + 1], other[k : k + 1]) for k in range(K)]
    assert state.discriminator_optimizer is not None
    state.discriminator_optimizer.zero_grad()
    torch.stack(losses).mean().backward()
    state.discriminator_optimizer.step()
    return objective.detach()
