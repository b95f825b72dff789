"""Variationally inferred sampling: a guide refined by sampler steps and trained through them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from components.contracts.capabilities import (
    ClassConditional,
    ForecastsSeries,
    LatentVariable,
    LogJoint,
    Pathwise,
    ThetaPredictive,
)
from components.contracts.capabilities.modules import Trainable
from components.contracts.posteriors import BoundsLikelihood, HoldsModule
from components.contracts.problems import RowBatch, Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info, NonEmptyList
from components.contracts.streams import Rng, seed_from
from components.errors import ConfigMismatchError, NumericalError
from components.gradients.pathwise.bound import whole_gradient
from components.inference.chains import INDEPENDENT_CHAINS, SampleableProblem, training_data
from components.inference.latent.views import prior_guide, replace_guide
from components.inference.point.descent import DescentKeys
from components.inference.refined.by_class import ClassPosterior
from components.inference.refined.guides import PointGuide, StepSize, sample_parameter_guide
from components.inference.refined.kernels import Kernel, KernelStep
from components.inference.refined.path import Entropy, Refinement
from components.inference.refined.row_guide import refined_guide
from components.inference.refined.states import (
    ParameterRefinementState,
    RefinementState,
    RowRefinementState,
)
from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.sgmcmc.repulsion import Bandwidth
from components.inference.variational.ascent import climb
from components.inference.variational.global_gaussian import GlobalGaussian
from components.inference.variational.guide_fit import FIT_OUTPUTS, find_start
from components.maths.exponential.standard_draws import standard_normal
from components.maths.optimizers import Optimizer
from components.metrics.evidence.held_out import Proposal
from components.posteriors.latent import LatentPosterior
from components.posteriors.variational import RefinedPosterior
from components.problems.unlabelled import Unlabelled
from components.registry import register

CHUNK = 100  # number of draws refined together
MOST = 100  # largest P for a Hessian

INTERACTING = ("svgd", "sgld_r")


@register("inference", "vis")
class VIS(
    Inference[Any, SampleableProblem | Unlabelled, RowBatch | None, RefinementState], DescentKeys
):
    """Variationally inferred sampling (VIS): a guide trained through sampler steps.

        z_T ~ Q_{η,T}(z | z_0),   z_0 ~ q_0(z | x)
        φ, η ← + lr · Adam(∇ / N),   E[log p(x, z_T)] + H
        z_t = z_{t−1} + Δz(z_{t−1})   (full),   z_t = z_{t−1} + ⊥(Δz(z_{t−1}))  (fast)

    Δz is a step of ``kernel`` and H is ``entropy``.  Two objectives bound log p(x) and are called
    ``elbo``: the one for T = 0, which is variational inference, and the one for ``jacobian``, with
    the density of z_T itself, log q(z_T) = log q_0(z_0) − Σ_t log|det(I + η∇² log p(z_{t−1}))|,
    exact while −η∇² log p < I and ∇log p is continuous: where it jumps (a Laplace density, ReLUs)
    steps may fold over the kink, which no Hessian captures, and the bound does not hold.  For
    parameters the bound holds only with all rows; otherwise the quantity is ``objective``, because
    draws that follow a minibatch are scored on the same minibatch.  The other entropies are not the
    entropy of z_T, so their quantities are also called ``objective``.  T is ``refine_steps`` in
    training and ``infer_steps`` for returned draws.

    For parameters θ, q_0 is N(m, L Lᵀ) or a point; z [S, 1, P].  The posterior consists of
    draws of θ_T from fixed noise.  For rows, q_0 is the encoder of the model, z [S, B, D];
    decoder and encoder share one objective; with q0 ``prior`` draws start from N(0, I), a sampler
    without a trained guide.  Held-out rows are weighted by N(m_T(x), diag s(x)²), with the mean of
    q_0 after the noise-free steps as its mean: this is a density, so the weights are valid.  For
    rows given their class the same applies with q_0(z|x, y); classes are predicted by p(y) p(x|y),
    with ``draws`` importance samples for each class, from that density or, independent of the
    training, from a ``proposal`` around a Laplace fit.
    Info: the objective for the whole data set in nats, its two terms, η, the norm of ∇/N.

    Raises:
        NumericalError: η is too large to invert a step of ``jacobian``, or the guide becomes
        non-finite.
        ConfigMismatchError: the log joint cannot be differentiated, or has too many parameters
            for a Hessian.

    Source: Gallego (2021), section 2.4, Algorithm 2.3, appendix 2.A.
    """

    requires = Requirements(
        kinds={"density", "supervised", "sequence", "unlabelled"},
        capabilities=frozenset(),
        capabilities_by_kind={
            "density": {LogJoint},
            "supervised": {LogJoint, ThetaPredictive},
            "sequence": {LogJoint, ForecastsSeries},
            "unlabelled": {LatentVariable},
        },
        alternatives_by_kind={"supervised": {ClassConditional}},
    )
    provides_by_kind = {
        "density": FIT_OUTPUTS,
        # draws of parameters; classifiers with latent variables only predict
        "supervised": FIT_OUTPUTS,
        "sequence": FIT_OUTPUTS,
        "unlabelled": {BoundsLikelihood, HoldsModule},
    }
    mixes = False  # independent draws of a fit
    folds_replicates = frozenset()

    kernel: Kernel
    entropy: Entropy
    differentiate: Literal["full", "fast"]
    refine_steps: NonNegativeInt
    infer_steps: NonNegativeInt | None
    eta: PositiveFloat | NonEmptyList[PositiveFloat]
    learn_eta: bool
    n_samples: PositiveInt
    bandwidth: Bandwidth
    leapfrog_steps: PositiveInt
    jitter: PositiveFloat
    q0: Literal["gaussian", "point", "prior"]
    covariance: Literal["diagonal", "full"]
    start: Literal["zero", "drawn"]
    initial_std: PositiveFloat
    draws: PositiveInt
    proposal: Proposal

    @model_validator(mode="after")
    def _fit(self) -> VIS:
        interacting = (
            self.kernel
            if self.kernel in INTERACTING
            else "fokker_planck" * (self.entropy == "fokker_planck")
        )
        if interacting and self.n_samples < 2:
            raise ValueError(
                f"n_samples: particles of {interacting} interact; use at least 2, not "
                f"{self.n_samples}"
            )
        if interacting and self.q0 == "point":
            raise ValueError(
                f"q0: particles of {interacting} must have different starts; use gaussian"
            )
        if self.entropy in ("jacobian", "fokker_planck") and self.kernel != "sgd":
            raise ValueError(
                f"entropy: {self.entropy} requires a deterministic flow; use kernel=sgd, not "
                f"{self.kernel}"
            )
        if self.entropy == "joint" and self.kernel not in ("sgld", "sgld_r"):
            raise ValueError(
                f"entropy: joint requires a kernel with a density; use sgld or sgld_r, not "
                f"{self.kernel}"
            )
        if self.entropy in ("jacobian", "gaussian") and self.q0 == "point":
            raise ValueError(
                f"entropy: {self.entropy} requires a q0 with a density; use gaussian, not point"
            )
        if self.learn_eta and self.differentiate == "fast":
            raise ValueError(
                "learn_eta: with differentiate=fast no gradient reaches η; use differentiate=full"
            )
        return self

    @property
    def _refinement(self) -> Refinement:
        move = KernelStep(self.kernel, self.bandwidth, self.leapfrog_steps, self.jitter)
        return Refinement(move, self.entropy, self.differentiate == "full")

    @property
    def _last(self) -> int:
        """T for returned draws."""
        return self.refine_steps if self.infer_steps is None else self.infer_steps

    def _bounds(self, guide: Trainable, steps: int, whole: bool = True) -> bool:
        """True if the objective with this number of steps is a lower bound.

        With ``whole``, the steps use all rows on which the draws depend.  With a minibatch,
        parameters are fitted and scored on the same rows, which exceeds log p(y) of all rows.
        """
        return not isinstance(guide, PointGuide) and (
            steps == 0 or (self.entropy == "jacobian" and whole)
        )

    # Training
    def init(
        self, model: Any, problem: SampleableProblem | Unlabelled, rng: Rng
    ) -> RefinementState:
        if isinstance(problem, Unlabelled) or isinstance(model, ClassConditional):
            model = replace_guide(model, prior_guide) if self.q0 == "prior" else model
            sampler = StepSize(
                self.eta, self.learn_eta, next(iter(model.parameters())).new_zeros(model.latent_dim)
            )
            return RowRefinementState(
                module=model, sampler=sampler, optimizer=self._optimizer(model, sampler)
            )
        if self.q0 == "prior":
            raise ConfigMismatchError(
                "inference.q0=prior applies to latent variables of rows, but this model has "
                "parameters; use inference.q0=gaussian, or inference=sgld for a plain sampler"
            )
        mean = find_start(model, problem, self.requires.batch_kind, rng, self.start)
        P = len(mean)
        if self.entropy == "jacobian" and P > MOST:
            raise ConfigMismatchError(
                f"inference.entropy=jacobian: requires the Hessian of {P:,} parameters at every "
                f"step, more than {MOST}; use another entropy, or inference=gaussian_vi"
            )
        train = training_data(problem)
        assert not isinstance(train, Rows)
        target = RowwiseLogJoint.of(model, problem)
        full = self.covariance == "full"
        q = (
            PointGuide(mean)
            if self.q0 == "point"
            else GlobalGaussian(target, mean, self.initial_std, full, "shared")
        )
        sets = math.ceil(self.draws / self.n_samples)  # same number of particles as in training
        shape = (INDEPENDENT_CHAINS, sets * self.n_samples, P)
        base = standard_normal(shape, rng.init, mean)
        seed = seed_from(rng.init)
        sampler = StepSize(self.eta, self.learn_eta, mean)
        optimizer = self._optimizer(q, sampler)
        return ParameterRefinementState(
            module=q,
            sampler=sampler,
            optimizer=optimizer,
            model=model,
            train=train,
            base=base,
            seed=seed,
        )

    def _optimizer(self, guide: Trainable, sampler: StepSize) -> Optimizer:
        return self.build_optimizer([*guide.parameters(), *sampler.parameters()])

    def step(
        self, state: RefinementState, batch: RowBatch | None, rng: Rng
    ) -> tuple[RefinementState, Info]:
        guide = state.module
        eta = state.sampler.eta
        data = batch
        every = [*guide.parameters(), *state.sampler.parameters()]
        if data is None:  # a density has one row without data
            data = Rows(eta.new_zeros(1, 0), 1.0)
        if self.refine_steps == 0 and isinstance(guide, Pathwise):  # variational inference
            noise = guide.draw_noise(data, self.n_samples, rng.noise)
            guide_gradients, info = whole_gradient(guide, data, noise)
            gradients = [*guide_gradients, None]
        else:
            start = state.begin(batch, self.n_samples, rng.noise)
            parameters = [p for p in every if p.requires_grad]
            z, entropy = self._refinement(start, eta, self.refine_steps, rng.noise)
            joint = start.weight * start.target(z).mean(0).sum()
            spread = start.weight * entropy.expand(z.shape[:2]).mean(0).sum()
            value = joint + spread
            by_parameter = dict(
                zip(
                    parameters,
                    torch.autograd.grad(value, parameters, allow_unused=True),
                    strict=True,
                )
            )
            gradients = [by_parameter.get(p) for p in every]
            has_all_rows = isinstance(state, RowRefinementState) or float(data.scale) == 1
            name = "elbo" if self._bounds(guide, self.refine_steps, has_all_rows) else "objective"
            info = {name: value.detach(), "log_joint": joint.detach(), "entropy": spread.detach()}
            info["eta"] = eta.detach().mean()
        norm = climb(every, gradients, data.scale * data.n_rows, state.optimizer)
        if not torch.isfinite(norm):
            raise NumericalError(
                "the guide became non-finite",
                "lower inference.eta or inference.lr, or raise inference.n_samples",
            )
        return state, info | {"grad_norm": norm}

    # Inference
    def posterior(
        self, state: RefinementState
    ) -> RefinedPosterior | LatentPosterior | ClassPosterior:
        with torch.no_grad():
            eta = state.sampler.eta.clone()
            if isinstance(state, RowRefinementState):
                guide = refined_guide(state.module, eta, self._last)
                if isinstance(state.module, ClassConditional):
                    return ClassPosterior(
                        guide, state.module.log_share, self.proposal, n_predict=self.draws
                    )
                return LatentPosterior(guide)
            assert isinstance(state, ParameterRefinementState)
            return self._draws(state, eta)

    def _draws(self, state: ParameterRefinementState, eta: Tensor) -> RefinedPosterior:
        """θ_T in sets of S particles, and the objective from all of them."""
        refinement = replace(self._refinement, full=False)
        S = self.n_samples
        C, N, P = state.base.shape
        sets = state.base.reshape(-1, S, P).transpose(0, 1)  # [S, sets, P]
        generator = torch.Generator(state.base.device).manual_seed(state.seed)
        samples = []
        values = []
        for noise in sets.split(max(1, CHUNK // S), 1):
            start = sample_parameter_guide(state.module, state.model, state.train, noise)
            z, entropy = refinement(start, eta, self._last, generator)
            samples.append(z)
            values.append((start.target(z) + entropy).flatten())
        draws = torch.cat(samples, 1).transpose(0, 1).reshape(C, N, P)
        objective = torch.cat(values).mean()
        if self._last == 0 and isinstance(state.module, GlobalGaussian) and state.train is not None:
            # with the closed-form KL
            objective = state.module.elbo(state.train, state.base.flatten(0, 1))
        return RefinedPosterior(
            draws[:, : self.draws],
            state.module.mean.detach().expand(C, -1),
            list(state.model.names),
            state.model,
            objective=float(objective),
            bounds=self._bounds(state.module, self._last),
        )
