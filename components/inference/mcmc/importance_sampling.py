"""Self-normalised importance sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.checks import Check
from components.contracts.requirements import WHOLE_DATA
from components.contracts.roles import FinishedRun, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng, seed_from
from components.errors import ConfigMismatchError, NumericalError
from components.inference.chains import (
    Chains,
    ModelBatch,
    SampleableProblem,
    Sampler,
    advance,
    first_batch,
    to_draws,
)
from components.inference.log_joint import finite_log_joint, log_joint
from components.inference.mcmc.laplace import laplace
from components.inference.mcmc.sobol import SobolPoints
from components.inference.mcmc.t_mixture import TMixture, fit_mixture
from components.inference.mcmc.tails import tail_growth
from components.metrics import limits
from components.posteriors.draws import Draws
from components.registry import register

N_SCREENING_DRAWS = 100
N_MODE_STARTS = 4  # draws of the prior, and number of the best ones used as starts for modes


@dataclass(kw_only=True)
class Weighted(Chains):
    """Independent draws with weights w, stored as logarithms []."""

    fit: TMixture | None  # q; None means the prior
    points: SobolPoints | None = not_checkpointed()  # None for independent draws
    sum: Tensor  # log Σ w
    sum_of_squares: Tensor
    largest: Tensor


@register("inference", "importance_sampling")
class ImportanceSampling(Sampler[Weighted]):
    """Self-normalised importance sampling, C independent draws per step.

        Î(f) = Σ_t w_t f(θ_t) / Σ_t w_t,   w_t = π_u(θ_t)/q(θ_t),   θ_t ~ q

    q is the prior of the model, or a Gaussian or Student-t at the mode θ̂ of π_u with scale
    c² (−∇∇ᵀlog π_u(θ̂))⁻¹, or a mixture of Student-t's fitted from there by population Monte Carlo
    before the first step, on draws that are discarded; π_u need not be normalised.  ``points:
    sobol`` computes the θ_t from one scrambled Sobol sequence (randomised quasi-Monte Carlo): each
    is distributed as q, and errors of averages fall faster than T^−½ if the integrand is smooth and
    low-dimensional; diagnostics that treat draws as independent are then conservative.  Log-weights
    are stored with the draws [C, N].  Info: ess = (Σw)²/Σw² of all draws so far, largest_weight
    (its share of the total), log_evidence = log T⁻¹ Σw, an estimate of log ∫π_u.  The notes print
    the weight of a normalised π without the factor 1/T of its estimator.

    Raises NumericalError if a log density is NaN or +∞, or all weights are zero; ConfigError for
    Sobol points of the prior, or in blocks whose sizes are not powers of two; ConfigMismatchError
    for a density (which has no prior) with q = prior, and if the Laplace fit fails.

    Source: Bardenet (2021), section 4.1; Cappé et al. (2008) (``mixture``); Owen (1997), Gerber
    and Chopin (2015) (``sobol``).
    """

    requires = WHOLE_DATA
    proposal: Literal["prior", "gaussian", "student_t", "mixture"]
    points: Literal["random", "sobol"]
    dof: PositiveFloat
    inflation: PositiveFloat
    components: PositiveInt
    rounds: PositiveInt
    pilot: PositiveInt

    @model_validator(mode="after")
    def _check_points(self) -> ImportanceSampling:
        if self.points == "random":
            return self
        if self.proposal == "prior":
            raise ValueError(
                "points: sobol requires a q with a known inverse, which the prior of a model "
                "lacks; use proposal=gaussian, student_t or mixture"
            )
        if self.chains & (self.chains - 1):
            raise ValueError(
                f"chains: {self.chains} is not a power of two, which Sobol points require; use "
                f"{2 ** (self.chains.bit_length() - 1)} or {2 ** self.chains.bit_length()}"
            )
        return self

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> Weighted:
        batch = first_batch(problem, self.requires.batch_kind, rng)
        start = model.sample_prior(self.chains, rng.init)  # [C, P]
        nothing = start.new_full((), -torch.inf)
        fit = self._fit(model, batch, rng)
        points = None
        if self.points == "sobol" and fit is not None:
            points = SobolPoints(fit.n_uniforms, seed_from(rng.init))
        return Weighted(
            model=model,
            start=start,
            theta=start,
            fit=fit,
            points=points,
            sum=nothing,
            sum_of_squares=nothing,
            largest=nothing,
        )

    def _fit(self, model: LogJoint, batch: ModelBatch, rng: Rng) -> TMixture | None:
        """q; None if it is the prior."""
        if self.proposal == "prior":
            if batch is None:
                raise ConfigMismatchError(
                    "inference.proposal: a density has no prior to propose from; use gaussian, student_t or mixture"
                )
            return None
        theta = model.sample_prior(N_SCREENING_DRAWS, rng.init)
        value = finite_log_joint(model, theta, batch)
        if not torch.isfinite(value).any():
            raise NumericalError(
                f"log density is not finite at any of {N_SCREENING_DRAWS} draws of the prior",
                "change the starting points in the dataset or the model's prior, or change seed",
            )
        best = value.topk(N_MODE_STARTS).indices
        centre, L = laplace(model, theta[best[torch.isfinite(value[best])]], batch)
        dof = math.inf if self.proposal == "gaussian" else self.dof
        factor = (self.inflation * L).contiguous()  # in the memory layout of a loaded checkpoint
        single = TMixture(centre.new_ones(1), centre.unsqueeze(0), factor.unsqueeze(0), dof)
        if self.proposal != "mixture":
            return single
        return fit_mixture(model, batch, single, self.components, self.rounds, self.pilot, rng.init)

    @torch.no_grad()
    def step(self, state: Weighted, batch: ModelBatch, rng: Rng) -> tuple[Weighted, Info]:
        model = state.model
        fit = state.fit
        t = state.t + 1
        if fit is None:
            assert batch is not None  # guaranteed by ``init``
            theta = model.sample_prior(self.chains, rng.noise)
            # π_u = prior × likelihood
            log_weight = batch.scale * model.log_likelihood(theta, batch).sum(1)
            lp = model.log_prior(theta) + log_weight
        else:
            theta = (
                fit.draw(self.chains, rng.noise)
                if state.points is None
                else fit.from_uniforms(
                    state.points.block(state.t * self.chains, self.chains, fit.centres)
                )
            )
            lp = log_joint(model, theta, batch)
            log_weight = lp - fit.log_prob(theta)  # [C]
        if (torch.isnan(log_weight) | (log_weight == torch.inf)).any():
            raise NumericalError(
                f"an importance weight is not a number at step {t}", "fix the density of the model"
            )
        state = replace(
            advance(state, theta, 0, 1, {"lp": lp, "log_weight": log_weight}),
            sum=torch.logaddexp(state.sum, log_weight.logsumexp(0)),
            sum_of_squares=torch.logaddexp(state.sum_of_squares, (2 * log_weight).logsumexp(0)),
            largest=torch.maximum(state.largest, log_weight.max()),
        )
        if state.sum == -torch.inf:
            raise NumericalError(
                f"all weights of the first {t * self.chains} draws are zero",
                "change inference.proposal, or raise chains",
            )
        info = {
            "log_joint": lp.mean(),
            "ess": (2 * state.sum - state.sum_of_squares).exp(),
            "largest_weight": (state.largest - state.sum).exp(),
            "log_evidence": state.sum - math.log(t * self.chains),
            "draws": t,
        }
        return state, info

    def checks(self, run: FinishedRun) -> list[Check]:
        """Check that weights do not grow outside the range of the draws."""
        state: Weighted = run.state
        if state.fit is None:
            return []
        batches = run.problem.batches(self.requires.batch_kind, run.rng, 0, 1)
        _, batch = next(iter(batches))
        value = tail_growth(state.fit, state.model, batch)
        most = limits.pareto_k(max(len(state.theta) * max(state.t, 1), 11))
        detail = f"k is {value:.2f} beyond the draws and must be below {most:.2f}"
        if value >= most:
            detail += "; the weights grow outside the range of the draws: use inference.proposal=student_t or a lower dof"
        return [Check("the proposal's tails are as heavy as the target's", value < most, detail)]

    def posterior(self, state: Weighted) -> Draws:
        """Draws [C, N, P] with log_weights [C, N]."""
        draws = to_draws(state)
        log_weights = draws.stats.pop("log_weight", draws.draws[..., 0])
        return replace(draws, log_weights=log_weights)
