"""A laboratory of gradient estimators: bias, variance and cost, compared while a model is
trained."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from components.contracts.capabilities.modules import Trainable
from components.contracts.checks import Check
from components.contracts.posteriors import BoundsLikelihood, Predicts
from components.contracts.problems import Kind, RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import (
    FinishedRun,
    Gradient,
    Increasing,
    Inference,
    Info,
    NonEmptyList,
)
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng, SeparateStreams
from components.inference.variational.ascent import TrainingState
from components.inference.variational.laboratory.frozen import INIT, Frozen, RowProblem
from components.inference.variational.laboratory.measured import (
    Findings,
    Measured,
    MeasuredBound,
    MeasuredPredictions,
)
from components.inference.variational.laboratory.row_scores import (
    EstimatorScores,
    add_costs,
    scores_of,
)
from components.inference.variational.laboratory.spread import MeasuredEstimator, Spread
from components.inference.variational.laboratory.trajectories import TRAJECTORY, squared_distances
from components.registry import register

FIRST = 10**7  # index of the laboratory's own streams, above the streams of all steps
EACH = 10**3  # streams at each step
QUANTILES = 101
TIMED = 50  # number of timed estimates of each estimator, in turn
BOUND_DRAWS = 2_000  # number of draws for a bound (Boustati C.3.1)
GRADIENT = "gradient"  # label of the estimator of that key
BESIDE = 500  # first stream of estimators that learn during training


@dataclass
class LaboratoryState:
    """Model in training, the states of the estimators, and the findings so far."""

    fitting: TrainingState[Any]
    step: int
    # states of the estimators that learn during the training; empty if they learn at each freeze
    learnt: list[Any]
    # states that learn from other minibatches and noise: of each estimator in each trajectory
    trajectories: list[list[Any]]
    findings: Findings
    problem: RowProblem = not_checkpointed()


def labels(estimators: list[Gradient]) -> list[str]:
    """A label for each estimator: its name and, if others share it, the keys in which they
    differ."""
    out = []
    for estimator in estimators:
        alike = [other for other in estimators if other.name == estimator.name]
        values = [dict(other) for other in alike]
        keys = [key for key in dict(estimator) if any(v[key] != values[0][key] for v in values)]
        settings = [f"{key}={dict(estimator)[key]}" for key in keys]
        out.append(" ".join([estimator.name, *settings]))
    return out


@register("inference", "gradient_variance")
class GradientVariance(Inference[Any, RowProblem, RowBatch, LaboratoryState]):
    """Gradient laboratory: measure gradient estimators on a frozen, partly trained model.

        trace(g) = B⁻¹ Σ_B Tr Cov[ĝ/N | B],   trace_ratio(g) = trace(g)/trace(g₀)
        g₀ the first of ``gradients``

    One method trains the model, which is frozen after each step t in ``at``.  For each number of
    ``iterations``, estimators learn from scratch (coefficients, baselines, surrogates) on separate
    minibatches; their states are then fixed while ``draws`` estimates are taken at each of
    ``batches`` fixed batches.  Without iterations they learn during the training instead, on its
    batches with separate noise.  Estimators with the same kind of draws share the base noise.
    ``parameters: guide`` measures only the parameters of q; score-function estimators have the same
    gradient for all others.  ``gradient`` is one more estimator: its scores end in /gradient/<t>
    for any choice, and the training continues with it after the last freeze.

    Scores, each followed by /<gradient>/<t>: trace, trace_ratio, norm_ratio (of Var‖ĝ‖, as
    published by Boustati), minibatch_share (of the variance, over draws/2 fresh batches), bias
    (unbiased estimate of its squared norm), bias_p (p-value of no bias relative to g₀), bias_z (p
    as a normal quantile), total (variance over the noise and fresh batches), milliseconds (median
    time of an estimate), passes (rows through the model per estimate, a backward pass counts as
    two), variance_seconds (trace ratio · time ratio), total_seconds and total_passes (ratio of the
    total · ratio of the time or passes).  With ``trajectories``: mse, the mean squared distance from
    a long-run gradient over that many trajectories, in which the states learn again along the
    training's parameters from other minibatches and noise, and mse_ratio, relative to g₀; it is a
    fair measure of an estimator that is biased given its state (sarah), if the freeze is not a
    restart.  Further, best_per_row, best_context_free /order <k>/<t>: the
    smallest trace ratio with a polynomial of order k in the noise, in closed form.  With
    ``correction_draws``: correction/<parameter>/<t>, the mean of |δ_i^CV/E[a_VarGrad]| over a
    vector of parameters and, for all of them, correction/all/<t> and correction_q95/all/<t>.  With
    ``evidence_particles``: log_evidence, kl/<t>, kl_by_q/<t>, bound_denominator/<t>.  With
    ``illustrated``: a figure of the gradient against the noise at two minibatches.  The posterior
    comes from the training method.

    Raises:
        ConfigError: ``train`` holds no gradient; fewer than 2 draws.
        ConfigMismatchError: the best ratio of a module with non-normal noise, or the guide of a
            module without one.

    Source: Boustati (2021), sections 4.6.2, 4.6.3, 5.6.2 and eqs. (4.8), (5.14) and (C.3).
    """

    requires = Requirements(kinds={"supervised", "unlabelled"}, capabilities=frozenset())
    # keys inherited by nested components
    inherited_keys = {"n_samples"}

    train: Inference
    gradients: NonEmptyList[Gradient]
    gradient: Gradient | None
    n_samples: PositiveInt
    at: Annotated[list[NonNegativeInt], Field(min_length=1), Increasing]
    iterations: Annotated[list[PositiveInt], Increasing]
    draws: Annotated[int, Field(ge=4)]
    batches: PositiveInt
    trajectories: Annotated[int, Field(ge=0, le=300)]
    parameters: Literal["all", "guide"]
    best_orders: Annotated[list[PositiveInt], Increasing]
    best_draws: PositiveInt
    correction_draws: PositiveInt | None
    evidence_particles: PositiveInt | None
    illustrated: Annotated[int, Field(ge=10)] | None

    @model_validator(mode="after")
    def _check_measurable(self) -> GradientVariance:
        if not any(isinstance(value, Gradient) for value in dict(self.train).values()):
            raise ValueError(
                f"train: {self.train.name} has no gradient estimator to measure; use vi or "
                f"gaussian_vi"
            )
        if self.trajectories and self.iterations:
            raise ValueError(
                "trajectories: estimators must learn during the training; set iterations=[]"
            )
        return self

    def required_capabilities(self, kind: Kind, offered: Set[type] = frozenset()) -> Set[type]:
        capabilities = (
            frozenset()
            if self.train.variational_capabilities()
            else frozenset().union(*(g.requires.capabilities for g in self._estimators))
        )
        return (
            super().required_capabilities(kind, offered)
            | self.train.required_capabilities(kind, offered)
            | capabilities
        )

    def variational_capabilities(self) -> Set[type]:
        return self.train.variational_capabilities()

    def init(self, model: Any, problem: RowProblem, rng: Rng) -> LaboratoryState:
        fitting = self.train.init(model, problem, rng)
        states = (
            []
            if self.iterations
            else self._initial_states(fitting.module, SeparateStreams(rng, FIRST + BESIDE))
        )
        trajectories = [
            self._initial_states(fitting.module, SeparateStreams(rng, FIRST + TRAJECTORY + r))
            for r in range(self.trajectories)
        ]
        return self._measure_if_freeze_step(
            LaboratoryState(fitting, 0, states, trajectories, Findings(), problem), rng
        )

    def step(
        self, state: LaboratoryState, batch: RowBatch, rng: Rng
    ) -> tuple[LaboratoryState, Info]:
        learnt = list(state.learnt)
        for k, estimator in enumerate(self._estimators if learnt else []):
            streams = SeparateStreams(rng, FIRST + state.step * EACH + BESIDE + k)
            learnt[k] = estimator.estimate(state.fitting.module, batch, streams, learnt[k])[2]
        trajectories = self._advance_trajectories(state, rng)
        fitting, info = self._trainer(state.step).step(state.fitting, batch, rng)
        return self._measure_if_freeze_step(
            replace(
                state,
                fitting=fitting,
                step=state.step + 1,
                learnt=learnt,
                trajectories=trajectories,
            ),
            rng,
        ), info

    def posterior(self, state: LaboratoryState) -> Measured:
        inner = self.train.posterior(state.fitting)
        unbiased = [g.unbiased and g.bound == "elbo" for g in self._estimators]
        facts = (
            self._labels,
            unbiased,
            list(self.at),
            list(self.iterations),
            copy.deepcopy(state.findings),
        )
        if isinstance(inner, BoundsLikelihood):
            return MeasuredBound(*facts, inner)
        assert isinstance(inner, Predicts)
        return MeasuredPredictions(*facts, inner)

    def checks(self, run: FinishedRun) -> list[Check]:
        assert isinstance(run.posterior, Measured)
        return [run.posterior.check_bias(run.scores)]

    @property
    def _estimators(self) -> list[Gradient]:
        return [*self.gradients, *([] if self.gradient is None else [self.gradient])]

    @property
    def _labels(self) -> list[str]:
        return [*labels(self.gradients), *([] if self.gradient is None else [GRADIENT])]

    def _trainer(self, step: int) -> Inference:
        """The method for the next step, with ``gradient`` after the last freeze."""
        if self.gradient is None or step < self.at[-1]:
            return self.train
        (key,) = (key for key, value in dict(self.train).items() if isinstance(value, Gradient))
        return self.train.model_copy(update={key: self.gradient})

    def _initial_states(self, module: Trainable, rng: Rng) -> list[Any]:
        """Initial state of each estimator."""
        return [estimator.init(module, rng) for estimator in self._estimators]

    def _advance_trajectories(self, state: LaboratoryState, rng: Rng) -> list[list[Any]]:
        """States of the trajectories after the next minibatch in an order of their own."""
        module = state.fitting.module
        t = state.step
        trajectories = []
        for r, states in enumerate(state.trajectories):
            order = SeparateStreams(rng, FIRST + TRAJECTORY + r)
            ((_, batch),) = state.problem.batches("minibatch", order, t, t + 1)
            streams = SeparateStreams(rng, FIRST + t * EACH + TRAJECTORY + r)
            pairs = zip(self._estimators, states, strict=True)
            trajectories.append([g.estimate(module, batch, streams, s)[2] for g, s in pairs])
        return trajectories

    def _measure_if_freeze_step(self, state: LaboratoryState, rng: Rng) -> LaboratoryState:
        """Return the state, which includes the findings if the model is frozen at this step.

        The training streams are not advanced.
        """
        t = state.step
        module = state.fitting.module
        if t not in self.at:
            return state
        frozen = Frozen(module, state.problem, FIRST + t * EACH, rng, self.parameters == "guide")
        learnt = copy.deepcopy(state.learnt) or self._initial_states(module, frozen.own(INIT))
        noise = (frozen.own(INIT + 1 + k) for k in range(len(learnt)))
        watched = [
            MeasuredEstimator(*parts)
            for parts in zip(self._labels, self._estimators, learnt, noise, strict=True)
        ]
        new = copy.deepcopy(state.findings)
        scores = self._measure_spreads(frozen, watched, new, t)
        seconds = frozen.time(watched, min(self.draws, TIMED))
        overs = frozen.over(watched, max(4, self.draws // 2))
        add_costs(scores, seconds, overs, frozen.count_passes(watched))
        if state.trajectories:
            distances = squared_distances(frozen, watched, state.trajectories, self.draws)
            for values, distance in zip(scores.values(), distances, strict=True):
                values["mse"] = distance
                values["mse_ratio"] = distance / distances[0] if distances[0] else math.nan
        for label, values in scores.items():
            new.scores |= {f"{name}/{label}/{t}": value for name, value in values.items()}
        for order in self.best_orders:
            best = frozen.best(self.n_samples, order, self.batches, self.best_draws)
            new.scores |= {
                f"best_{name}/order {order}/{t}": value for name, value in best._asdict().items()
            }
        if self.correction_draws is not None:
            by_name = frozen.corrections(self.batches, self.correction_draws)
            _record_corrections(new, by_name, t)
        if self.illustrated is not None:
            new.dependence[str(t)] = frozen.dependence(self.illustrated)
        if self.evidence_particles is not None:
            if "log_evidence" not in new.scores:
                new.scores["log_evidence"] = frozen.log_evidence(self.evidence_particles)
            new.scores |= {
                f"{name}/{t}": value
                for name, value in frozen.kl(new.scores["log_evidence"], BOUND_DRAWS).items()
            }
        if self.gradient is not None and t == self.at[-1]:
            state = replace(state, fitting=replace(state.fitting, gradient=watched[-1].state))
        return replace(state, findings=new)

    def _measure_spreads(
        self,
        frozen: Frozen,
        watched: list[MeasuredEstimator],
        findings: Findings,
        t: int,
    ) -> EstimatorScores:
        """Scores of the estimators after each number of learning iterations; the curves are added
        to the findings."""
        scores: EstimatorScores = {}
        unmoved: dict[int, list[Spread]] = {}  # for estimators that learn nothing
        for start, stop in itertools.pairwise([0, *(self.iterations or [0])]):
            frozen.teach(watched, start, stop)
            now = [
                unmoved.get(k) or frozen.spread(estimator, self.batches, self.draws)
                for k, estimator in enumerate(watched)
            ]
            unmoved = {k: now[k] for k, estimator in enumerate(watched) if estimator.state is None}
            scores = scores_of(watched, now)
            for label, values in scores.items() if self.iterations else ():
                findings.curves[f"{label}/{t}/{stop}"] = values["trace_ratio"]
        return scores


def _record_corrections(findings: Findings, by_name: dict[str, torch.Tensor], t: int) -> None:
    """Sizes of the corrections at step t, by name and for all together."""
    ratios = torch.cat([r.flatten() for r in by_name.values()]).abs()
    findings.scores |= {
        f"correction/{name}/{t}": float(r.abs().mean()) for name, r in by_name.items()
    }
    findings.scores |= {
        f"correction/all/{t}": float(ratios.mean()),
        f"correction_q95/all/{t}": float(ratios.quantile(0.95)),
    }
    levels = torch.linspace(0, 1, QUANTILES).to(ratios)
    findings.corrections[str(t)] = ratios.quantile(levels).tolist()
