"""Corrections of estimators, and scores and costs of their spreads, by row."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import asdict

import torch
from torch import Tensor, nn

from components.contracts.capabilities import LogRatio, RowGuide
from components.contracts.problems import RowBatch
from components.gradients.score.log_ratio import sample_guide, scores
from components.inference.variational.global_gaussian import GlobalGaussian
from components.inference.variational.laboratory.spread import (
    MeasuredEstimator,
    Over,
    Spread,
    time_ratios,
)

TOGETHER = 40  # draws with scores from one backward pass

EstimatorScores = dict[str, dict[str, float]]  # by estimator and name of the score


def rows_of(module: LogRatio[RowBatch], batches: Iterator[RowBatch]) -> Iterator[RowBatch]:
    """Units with a common f: a row with its own latent variables or draw, otherwise a batch."""
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
        for s, p, score in zip(square, product, h, strict=True):
            h2 = score.double().square()  # [S, …]
            s += h2.sum(0)
            p += torch.tensordot(f, h2, 1)
        count = count + S
        f_sum = f_sum + float(f.sum())
    mean = f_sum / draws
    return [
        (p / draws - mean * s / draws) / (s / draws) / mean
        for s, p in zip(square, product, strict=True)
    ]


def scores_of(watched: list[MeasuredEstimator], spreads: list[list[Spread]]) -> EstimatorScores:
    """Scores of the variance by estimator and score name.

    Ratios divide sums over the batches by those for the first estimator.
    """

    def means(of_one: list[Spread]) -> tuple[float, float]:
        n = len(of_one)
        trace, norm = (
            math.fsum(values) / n
            for values in zip(*((s.trace, s.norm_variance) for s in of_one), strict=True)
        )
        return trace, norm

    trace0, norm0 = means(spreads[0])
    out = {}
    for estimator, of_one in zip(watched, spreads, strict=True):
        trace, norm = means(of_one)
        out[estimator.label] = {
            "trace": trace,
            "trace_ratio": trace / trace0 if trace0 else math.nan,
            "norm_ratio": norm / norm0 if norm0 else math.nan,
        }
    return out


def add_costs(
    scores: EstimatorScores,
    seconds: list[list[float]],
    overs: list[Over],
    passes: list[float],
) -> None:
    """Add scores of bias, total variance and time of an estimate, and of variance × cost relative
    to the first estimator, by seconds and, if the model counts them, by passes."""
    costs = zip(seconds, time_ratios(seconds), overs, passes, strict=True)
    for values, (of_one, seconds_ratio, over, count) in zip(scores.values(), costs, strict=True):
        ratio = over.total / overs[0].total if overs[0].total else math.nan
        values["milliseconds"] = 1e3 * statistics.median(of_one)
        values["variance_seconds"] = values["trace_ratio"] * seconds_ratio
        values |= asdict(over) | {"total_seconds": ratio * seconds_ratio}
        if passes[0]:
            values |= {"passes": count, "total_passes": ratio * count / passes[0]}
