"""A frozen module, and measurements of its gradient estimators."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from components.contracts.capabilities import LogRatio, NormalNoise
from components.contracts.capabilities.modules import Trainable
from components.contracts.problems import Batch, RowBatch
from components.contracts.streams import Rng, SeparateStreams
from components.errors import ConfigMismatchError
from components.gradients.pathwise.bound import whole_gradient
from components.inference.variational.global_gaussian import GlobalGaussian
from components.inference.variational.laboratory.best_coefficients import BestRatios, best_ratios
from components.inference.variational.laboratory.evidence import (
    log_evidence,
    log_importance_weights,
)
from components.inference.variational.laboratory.measured import Dependence
from components.inference.variational.laboratory.row_scores import corrections, rows_of
from components.inference.variational.laboratory.spread import (
    MeasuredEstimator,
    Over,
    Spread,
    measure_spread,
    spread_over_batches,
)
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled

RowProblem = Supervised | Unlabelled

# streams of a freeze, by purpose; the streams of estimators follow from INIT on
FIXED, NOISE, FRESH, AGAIN, BEST, LEARN, SCORE, BOUND, INIT = range(9)


@dataclass(frozen=True)
class Frozen:
    """The module after a training step, the data, and separate random streams."""

    module: Trainable
    problem: RowProblem
    streams: int  # index of the first stream
    rng: Rng
    guide: bool  # only parameters of q are measured

    def own(self, purpose: int) -> Rng:
        return SeparateStreams(self.rng, self.streams + purpose)

    def iterate_batches(self, purpose: int, start: int, stop: int) -> Iterator[RowBatch]:
        """Minibatches start+1 … stop in the laboratory's own order."""
        for _, batch in self.problem.batches("minibatch", self.own(purpose), start, stop):
            yield batch

    @cached_property
    def chosen(self) -> list[bool]:
        """Flag for each parameter, True if it is measured.

        Raises:
            ConfigMismatchError: the parameters of q are requested for a module without a
                density of q.
        """
        module = self.module
        parameters = list(module.parameters())
        if not self.guide:
            return [p.requires_grad for p in parameters]
        if not isinstance(module, LogRatio):
            raise ConfigMismatchError(
                "inference.parameters=guide requires a log q, which this model lacks; set "
                "inference.parameters=all"
            )
        (batch,) = self.iterate_batches(FIXED, 0, 1)
        log_q = module.log_q(batch, module.sample(batch, 1, self.own(INIT).noise)).sum()
        return [g is not None for g in torch.autograd.grad(log_q, parameters, allow_unused=True)]

    def teach(self, watched: list[MeasuredEstimator], start: int, stop: int) -> None:
        """Train the estimators in iterations start+1 … stop, all with the same rows."""
        learning = [estimator for estimator in watched if estimator.state is not None]
        for batch in self.iterate_batches(LEARN, start, stop) if learning else ():
            for estimator in learning:
                estimator.learn(self.module, batch)

    def spread(self, one: MeasuredEstimator, batches: int, draws: int) -> list[Spread]:
        """Spread of ``draws`` estimates at each fixed batch, due only to the noise of the draws.

        Estimators with the same kind of draws share the noise.
        """
        rng = self.own(NOISE)
        return [
            measure_spread(
                one.estimate(self.module, batch, rng, self.chosen)[0] for _ in range(draws)
            )
            for batch in self.iterate_batches(FIXED, 0, batches)
        ]

    def time(self, watched: list[MeasuredEstimator], n: int) -> list[list[float]]:
        """Seconds of n estimates of each estimator at the first fixed batch [K, n].

        Estimators take turns, because the load of a machine changes: estimates of one round run
        under the same load, so that the ratio of two times within a round does not depend on it.
        """
        (batch,) = self.iterate_batches(FIXED, 0, 1)
        streams = [(estimator, self.own(NOISE)) for estimator in watched]
        rounds = [
            [
                estimator.estimate(self.module, batch, rng, self.chosen)[1]
                for estimator, rng in streams
            ]
            for _ in range(n)
        ]
        return [list(times) for times in zip(*rounds, strict=True)]

    def count_passes(self, watched: list[MeasuredEstimator]) -> list[float]:
        """Rows through the model in an estimate of each estimator at the first fixed batch."""
        (batch,) = self.iterate_batches(FIXED, 0, 1)
        return [
            estimator.count_passes(self.module, batch, self.own(NOISE), self.chosen)
            for estimator in watched
        ]

    def over(self, watched: list[MeasuredEstimator], draws: int) -> list[Over]:
        """Share of the variance due to the choice of rows, and the bias, for every estimator."""
        same = [self.own(AGAIN) for _ in watched]
        batches = self.iterate_batches(FRESH, 0, draws)
        return spread_over_batches(watched, self.module, batches, same, self.chosen)

    def best(self, n_samples: int, order: int, batches: int, draws: int) -> BestRatios:
        """The smallest trace ratios with polynomials of an order, averaged over the fixed batches.

        Raises:
            ConfigMismatchError: the noise has no known moments."""
        if not isinstance(self.module, NormalNoise):
            raise ConfigMismatchError(
                "inference.best_orders requires normal noise, which this model lacks; set "
                "inference.best_orders=[]"
            )
        generator = self.own(BEST).noise
        ratios = [
            best_ratios(self.module, batch, n_samples, order, draws, generator)
            for batch in self.iterate_batches(FIXED, 0, batches)
        ]
        return BestRatios(*map(statistics.fmean, zip(*ratios, strict=True)))

    def dependence(self, draws: int) -> Dependence:
        """First component of ĝ/N against the first coordinate of one ε for all rows, at two fixed
        batches: {"noise": [[ε] of each batch], "gradient": …}, sorted by ε.

        Raises:
            ConfigMismatchError: the module's noise is not normal."""
        module = self.module
        if not isinstance(module, NormalNoise):
            raise ConfigMismatchError(
                "inference.illustrated requires normal noise, which this model lacks; set it to "
                "null"
            )
        out: Dependence = {"noise": [], "gradient": []}
        for batch in self.iterate_batches(FIXED, 0, 2):
            noise = module.draw_noise(batch, draws, self.own(NOISE).noise)[:, :1]  # [S, 1, D]
            noise = noise[noise[:, 0, 0].argsort()].expand(-1, batch.n_rows, -1)
            estimates = (whole_gradient(module, batch, epsilon[None])[0] for epsilon in noise)
            first = (next(g for g in gradients if g is not None) for gradients in estimates)
            n = batch.scale * batch.n_rows
            out["noise"].append(noise[:, 0, 0].tolist())
            out["gradient"].append([float(g.flatten()[0]) / n for g in first])
        return out

    def corrections(self, batches: int, draws: int) -> dict[str, Tensor]:
        """δ^CV/E[a_VarGrad] for the vector parameters of q (biases; mean and spread of a global q),
        by name [n, …]: for each row of the fixed batches if rows have their own latent variables,
        otherwise for each batch.

        Raises:
            ConfigMismatchError: the module has no score function."""
        module = self.module
        if not isinstance(module, LogRatio) or not isinstance(module, nn.Module):
            raise ConfigMismatchError(
                "inference.correction_draws requires a log q, which this model lacks; set it to "
                "null"
            )
        named = zip(module.named_parameters(), self.chosen, strict=True)
        vectors = {name: p for (name, p), is_chosen in named if is_chosen and p.dim() == 1}
        generator = self.own(SCORE).noise
        ratios = [
            corrections(module, part, list(vectors.values()), draws, generator)
            for part in rows_of(module, self.iterate_batches(FIXED, 0, batches))
        ]
        return {
            name: torch.stack(values)
            for name, values in zip(vectors, zip(*ratios, strict=True), strict=True)
        }

    def kl(self, log_evidence: float, draws: int) -> dict[str, float]:
        """KL(q ‖ p(θ|y)) = log p(y) − ELBO; the same with log p(y) by importance sampling from q;
        and the denominator of Boustati (2021), eq. (C.3)."""
        q = self.gaussian()
        with torch.no_grad():
            log_weights = log_importance_weights(q, self.train(), draws, self.own(BOUND).noise)
        elbo = float(log_weights.mean())
        by_q = float(log_weights.logsumexp(0)) - math.log(draws)
        kl = max(log_evidence - elbo, 1e-12)
        return {
            "kl": kl,
            "kl_by_q": by_q - elbo,
            "bound_denominator": abs(math.sqrt(kl) - log_evidence / math.sqrt(kl)),
        }

    def log_evidence(self, particles: int) -> float:
        """log p(y) of the log joint to which q is fitted."""
        q = self.gaussian()
        return float(
            log_evidence(q.target.model, self.train(), q.mean, particles, self.own(BOUND).noise)
        )

    def gaussian(self) -> GlobalGaussian:
        """Raises ConfigMismatchError: the module is not a Gaussian q of all parameters."""
        if not isinstance(self.module, GlobalGaussian):
            raise ConfigMismatchError(
                "inference.evidence_particles requires inference.train=gaussian_vi; set it to null"
            )
        return self.module

    def train(self) -> Batch:
        assert isinstance(self.problem, Supervised)
        return self.problem.train
