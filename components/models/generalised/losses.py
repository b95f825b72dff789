"""Losses ℓ(θ, y) of supervised models, as log potentials −ℓ of every label [K, B, T].

They depend on a model only through its predictive: N(μ_k, v_k) or a categorical distribution for
each of K parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from components.contracts.predictive import (
    Categorical,
    GaussianMixture,
    PoissonMixture,
    Predictive,
    component_log_probs,
)
from components.errors import ConfigMismatchError
from components.maths.cholesky import LOG_2PI
from components.maths.losses.robust import beta_potential, gamma_potential, huber

LossName = Literal["likelihood", "beta", "gamma", "huber", "absolute", "hinge"]


def log_power_integral(predictive: GaussianMixture | Categorical, power: float) -> Tensor:
    """log ∫ g(y' | θ_k)^power dy', a sum over classes for a categorical distribution: [K, B, T]."""
    if isinstance(predictive, GaussianMixture):
        return 0.5 * ((1 - power) * (LOG_2PI + predictive.v.log()) - math.log(power))
    return (power * predictive.logits.log_softmax(-1)).logsumexp(-1)


@dataclass(frozen=True)
class SupervisedLoss:
    """One of the losses, with its constant.

    r = (y − μ)/σ;  f_c are the scores of the classes, p_c their probabilities.
    """

    name: LossName
    constant: float  # β, γ or k; unused by the others

    def potential(self, predictive: Predictive, y: Tensor, width: float = 0.0) -> Tensor:
        """−ℓ of labels y [B, T]: [K, B, T].

            likelihood   log g                                     (2.96)
            beta, gamma  β- and γ-potentials                       (6.6)
            huber        −ρ_k(r) − log σ − ½ log 2π
            absolute     −|r| − log 2σ;  −Σ_c |1[y = c] − p_c| = 2 p_y − 2 for classes
            hinge        −max(0, 1 − f_y + max_{c ≠ y} f_c)

        Args:
            predictive: distribution for each parameter and input.
            y: labels; class numbers are integers.
            width: half-width of the interval in which a kink is replaced by a parabola.

        Raises:
            ConfigMismatchError: the loss does not support the labels.
        """
        if isinstance(predictive, PoissonMixture):
            raise ConfigMismatchError("model=generalised_bayes does not support counts")
        match self.name:
            case "likelihood":
                return component_log_probs(predictive, y)
            case "beta" | "gamma":
                rule = beta_potential if self.name == "beta" else gamma_potential
                integral = log_power_integral(predictive, 1 + self.constant)
                return rule(component_log_probs(predictive, y), integral, self.constant)
            case "huber" | "absolute" if isinstance(predictive, GaussianMixture):
                return self._of_residual(predictive, y, width)
            case "absolute" if isinstance(predictive, Categorical):
                return 2 * component_log_probs(predictive, y).expm1()
            case "hinge" if isinstance(predictive, Categorical):
                f = predictive.logits
                label_index = y.expand(f.shape[:-1]).unsqueeze(-1)
                others = f.scatter(-1, label_index, -math.inf).amax(-1)
                z = 1 - f.gather(-1, label_index).squeeze(-1) + others
                if not width:
                    return -z.clamp(min=0)
                return -torch.where(z.abs() < width, (z + width).square() / (4 * width), z.relu())
        fit = (
            "hinge requires classes"
            if self.name == "hinge"
            else f"{self.name} requires real labels"
        )
        raise ConfigMismatchError(
            f"model.loss={self.name}: {fit}; set model.loss=beta, gamma or absolute"
        )

    def _of_residual(self, predictive: GaussianMixture, y: Tensor, width: float) -> Tensor:
        r = (y - predictive.mu) / predictive.v.sqrt()
        if self.name == "huber":
            return -huber(r, self.constant) - 0.5 * (LOG_2PI + predictive.v.log())
        rho = huber(r, width) / width + 0.5 * width if width else r.abs()
        return -rho - math.log(2) - 0.5 * predictive.v.log()
