"""Scores of the likelihood of held-out rows, the same for every model with latent variables and any
training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from components.contracts.capabilities import LatentVariable
from components.contracts.posteriors import module_of
from components.contracts.problems import RowBatch
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.exponential.standard_draws import standard_normal
from components.maths.particles.resampling import effective_sample_size
from components.metrics.evidence.annealed import annealed_log_weights
from components.metrics.evidence.best_q import elbo, fit_q
from components.metrics.evidence.proposal import Target, log_weights
from components.metrics.importance_weights import FEWEST_WEIGHTS, pareto_k
from components.metrics.unlabelled.likelihood_bounds import log_mean_exp

Proposal = Literal["guide", "laplace"]

WORST = 0.05  # share of rows: the worst twentieth represents the weights of all
BOUND_PAIRS = 250  # number of antithetic draws for the bounds in gaps
TAILS = 500  # number of rows for fits of tails: 20 ms each
# first evaluation stream of these scores, so that the guide's own bound does not change
BESIDE = 10**6


def reliability(weights: Tensor) -> dict[str, float]:
    """``weight_ess`` and ``pareto_k`` of log weights [S, B], as quantiles over the rows.

    One row in twenty has worse values; k̂ is computed for the first 500 rows.

    Source: Kong (1992); Vehtari et al. (2024).
    """
    ess = effective_sample_size(weights.double().softmax(0).T)  # [B]
    out = {"weight_ess": float(ess.quantile(WORST))}
    if len(weights) >= FEWEST_WEIGHTS:
        shapes = torch.tensor([pareto_k(row) for row in weights.T[:TAILS]], dtype=torch.float64)
        out["pareto_k"] = float(shapes.nan_to_num(neginf=-1.0).quantile(1 - WORST))
    return out


@dataclass(frozen=True)
class LatentEvidence:
    """Settings of the estimate of log p(x) of held-out rows, in addition to the guide's bound.

    The estimate needs only p(x, z) and the location of a guide q(z|x) from a posterior: two
    posteriors that share p(x, z) differ only by Monte Carlo error.
    """

    proposal: Proposal
    importance_samples: int
    ais_temperatures: int  # 0: none
    ais_chains: int
    ais_rows: int
    best_q_steps: int = 0  # 0: no gaps

    @property
    def asks(self) -> bool:
        """True if it requires more than the weights of the guide."""
        return self.proposal != "guide" or self.ais_temperatures + self.best_q_steps > 0

    def scores(self, posterior: object, parts: Sequence[RowBatch], rng: Rng) -> dict[str, float]:
        """``nll_bound`` with ``weight_ess`` and ``pareto_k`` if the proposal is a fit; ``nll_ais``
        of the first rows, with ``ais_acceptance`` and, if the proposal is a fit, ``ais_gain``, the
        increase of log p(x) over importance sampling on the same rows; ``amortisation_gap`` and
        ``approximation_gap``.  In nats per row.

        Raises:
            ConfigMismatchError: the posterior has no latent variables with a Gaussian guide."""
        module = module_of(posterior)
        if not isinstance(module, LatentVariable):
            raise ConfigMismatchError(
                "dataset.proposal, dataset.ais_temperatures, dataset.best_q_steps: require latent "
                "variables with a Gaussian guide, which this posterior lacks; use "
                "dataset.proposal=guide dataset.ais_temperatures=0 dataset.best_q_steps=0"
            )
        out = {}
        estimates = torch.empty(0)
        if self.proposal == "laplace":
            fitted = [
                self._fit(module, part, rng.at("evaluation", BESIDE + i))
                for i, part in enumerate(parts)
            ]
            weights = torch.cat(fitted, 1)  # [S, N]
            estimates = log_mean_exp(weights)
            out = {"nll_bound": -float(estimates.mean())} | reliability(weights)
        if self.ais_temperatures > 0:
            out |= self._annealed_scores(module, parts, estimates, rng)
        if self.best_q_steps > 0:
            out |= self._gaps(module, parts, out.get("nll_ais", math.inf), rng)
        return out

    def _first(
        self, module: LatentVariable[RowBatch], parts: Sequence[RowBatch]
    ) -> Iterator[tuple[Target, Tensor, Tensor]]:
        """log p(x, z) of the first ``ais_rows`` rows, in chunks, and their guide's m and s."""
        n_remaining = self.ais_rows
        for part in parts:
            if n_remaining <= 0:
                break
            some = part.part(slice(0, n_remaining), 1.0)
            with torch.no_grad():
                m, s = module.encode(some)
            yield partial(module.log_joint, some), m, s
            n_remaining -= part.n_rows

    def _gaps(
        self, module: LatentVariable[RowBatch], parts: Sequence[RowBatch], nll_ais: float, rng: Rng
    ) -> dict[str, float]:
        """Gaps of the first rows, q*_b the best diagonal Gaussian of each row:

            amortisation_gap = ELBO(q*) − ELBO(q(z|x)),   approximation_gap = log p̂ − ELBO(q*)

        with the same noise in both bounds, which differs from the noise in the fit of q*.  log p̂
        is the larger of importance sampling around q* and annealed importance sampling.

        Source: Cremer, Li and Duvenaud (2018), eqs. (4) to (6)."""
        rows = []
        for i, (target, m, s) in enumerate(self._first(module, parts)):
            generator = rng.at("evaluation", 3 * BESIDE + i)
            best_m, best_s = fit_q(target, m, s, self.best_q_steps, generator)
            weights = log_weights(target, best_m, best_s, self.importance_samples, generator)
            half = standard_normal((BOUND_PAIRS, *m.shape), generator, m)
            noise = torch.cat([half, -half])
            with torch.no_grad():
                bounds = [elbo(target, *q, noise) for q in ((best_m, best_s), (m, s))]
            rows.append(torch.stack([log_mean_exp(weights), *bounds]))
        evidence, best, learnt = torch.cat(rows, 1).double().mean(1).tolist()
        return {
            "amortisation_gap": best - learnt,
            "approximation_gap": max(evidence, -nll_ais) - best,
        }

    def _fit(
        self, module: LatentVariable[RowBatch], part: RowBatch, generator: torch.Generator
    ) -> Tensor:
        with torch.no_grad():
            m, s = module.encode(part)
        return log_weights(
            partial(module.log_joint, part), m, s, self.importance_samples, generator
        )

    def _annealed_scores(
        self,
        module: LatentVariable[RowBatch],
        parts: Sequence[RowBatch],
        estimates: Tensor,
        rng: Rng,
    ) -> dict[str, float]:
        log_evidences = []
        rates = []
        for i, (target, like, _) in enumerate(self._first(module, parts)):
            generator = rng.at("evaluation", 2 * BESIDE + i)
            log_w, rate = annealed_log_weights(
                target, like, self.ais_temperatures, self.ais_chains, generator
            )
            log_evidences.append(log_mean_exp(log_w))
            rates.append(rate)
        annealed = torch.cat(log_evidences)
        out = {"nll_ais": -float(annealed.mean()), "ais_acceptance": float(torch.cat(rates).mean())}
        if len(estimates):
            out["ais_gain"] = float((annealed - estimates[: len(annealed)]).mean())
        return out
