"""How far VarGrad's coefficient is from the best one: the correction δ of the score function as
control variate."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from components.contracts.capabilities import LogRatio, RowGuide
from components.contracts.problems import RowBatch
from components.gradients.score.log_ratio import sample_guide, scores
from components.inference.variational.global_gaussian import GlobalGaussian

TOGETHER = 40  # draws whose scores are found in one backward pass


def rows_of(module: LogRatio[RowBatch], batches: Iterator[RowBatch]) -> Iterator[RowBatch]:
    """Units that share one f: a row with its own latent variables or draw, otherwise a batch."""
    shared = (
        module.noise == "shared"
        if isinstance(module, GlobalGaussian)
        else not isinstance(module, RowGuide)
    )
    for batch in batches:
        if shared:
            yield batch
            continue
        for row in range(batch.n_rows):
            yield batch.part(slice(row, row + 1), batch.scale * batch.n_rows)


def corrections(
    module: LogRatio[RowBatch],
    batch: RowBatch,
    parameters: list[nn.Parameter],
    draws: int,
    generator: torch.Generator,
) -> list[Tensor]:
    """δ_i^CV / E[a_VarGrad] for each parameter, in its shape, from moments of ``draws`` draws.

        δ_i = Cov(f, h_i²)/Var(h_i),   h_i = ∂_i log q(z|x),   E[a_VarGrad] = E f = −ELBO

    f is computed for the whole batch, and so is the score: if its rows share one z, log q
    is counted once for each row.

    Source: Boustati (2021), eq. (5.14) and Lemma 5.4.1.
    """
    count = 0
    f_sum = 0.0
    square = [torch.zeros_like(p, dtype=torch.float64) for p in parameters]  # Σ h²
    product = [s.clone() for s in square]  # Σ f h²
    while count < draws:
        S = min(TOGETHER, draws - count)
        samples = sample_guide(module, batch, S, generator)
        f = samples.f.sum(1).double()  # [S]
        (h,) = scores(module, batch, samples.z, parameters, [torch.ones_like(samples.f)])
        for s, p, one in zip(square, product, h, strict=True):
            h2 = one.double().square()  # [S, …]
            s += h2.sum(0)
            p += torch.tensordot(f, h2, 1)
        count = count + S
        f_sum = f_sum + float(f.sum())
    mean = f_sum / draws
    return [
        (p / draws - mean * s / draws) / (s / draws) / mean
        for s, p in zip(square, product, strict=True)
    ]
