"""Conjugate posterior of linear coefficients, with its regions and risks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from components.contracts.predictive import Predictive
from components.maths.conjugate_regression import Coefficients
from components.maths.least_squares import LinearData
from components.posteriors.decisions import (
    CostMatrixLoss,
    Loss,
    model_probabilities,
    to_samples,
)
from components.posteriors.draws import Draws

if TYPE_CHECKING:
    from components.figures.style import Figures


def region_radius(level: float, dim: int, shape: float | None) -> float:
    """The α for which P((β − m)ᵀΛ(β − m) ≤ α s²) = level, s² = σ² if known and b/a if σ² ~
    InvGamma(a, b)."""
    from scipy import stats  # slow to import

    if shape is None:
        return float(stats.chi2.ppf(level, dim))
    return dim * float(stats.f.ppf(level, dim, 2 * shape))


@dataclass(frozen=True)
class ConjugatePosterior:
    """The exact posterior, draws from it, Bayes decisions, and the coverage of its regions."""

    data: LinearData
    draws: Draws  # one chain of independent draws
    known_coefficients: Coefficients
    noise: float | tuple[float, float]  # σ², or (a, b) of its posterior InvGamma
    level: float
    losses: dict[str, Loss]
    candidates: list[str]  # candidate models
    log_evidence: Tensor  # [M]
    n: int  # simulated data sets
    over_prior: int  # data sets with β from the prior: regions that contain it
    at_beta: int  # data sets with the given β: regions that contain it

    @property
    def theta_draws(self) -> Tensor:
        """Parameters θ = (β, log σ²), or only β, of every draw."""
        return self.draws.flat

    @property
    def scale(self) -> float:
        """s²: σ², or b/a."""
        return self.noise if isinstance(self.noise, float) else self.noise[1] / self.noise[0]

    @property
    def radius(self) -> float:
        """Credible region: (β − m)ᵀΛ(β − m) ≤ radius · s²."""
        return region_radius(
            self.level,
            len(self.known_coefficients.m),
            None if isinstance(self.noise, float) else self.noise[0],
        )

    @property
    def model_probabilities(self) -> Tensor:
        """Posterior probabilities of the candidates, equally probable before the data [M]."""
        return model_probabilities(self.log_evidence)

    def decisions(self) -> list[dict[str, Any]]:
        """One row per parameter and loss with the Bayes action and its posterior expected loss; one
        row for the choice of model."""
        belief = to_samples(self.draws)
        rows = []
        for name, loss in self.losses.items():
            action = loss.act(belief)
            costs = loss.expected_loss(action, belief)
            for j, parameter in enumerate(self.draws.names):
                bounds = [float(v) for v in action[..., j].flatten()]
                rows.append(
                    {
                        "about": parameter,
                        "loss": name,
                        "action": bounds[0],
                        "to": bounds[1] if len(bounds) == 2 else None,
                        "expected_loss": float(costs[j]),
                    }
                )
        choice = CostMatrixLoss.zero_one(len(self.candidates))
        best = choice.act(self.model_probabilities)
        cost = float(choice.expected_loss(best, self.model_probabilities))
        rows.append(
            {
                "about": "model",
                "loss": "zero_one",
                "action": self.candidates[int(best)],
                "expected_loss": cost,
            }
        )
        return rows

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Mixture over the draws at x [B, D]."""
        return self.draws.predict(x, generator)

    def scores(self) -> dict[str, float]:
        rows = self.decisions()
        out = {"log_evidence": float(self.log_evidence[0])}
        for name in self.losses:
            costs = [row["expected_loss"] for row in rows if row["loss"] == name]
            out[f"expected_loss/{name}"] = sum(costs) / len(costs)  # mean over the parameters
        out["expected_loss/model_choice"] = rows[-1]["expected_loss"]
        out["coverage/credible"] = self.over_prior / self.n
        return out | {"coverage/credible_at_beta": self.at_beta / self.n}

    def figures(self) -> Figures:
        from components.figures.supervised.credible_region import credible_region

        figure = credible_region(
            self.data,
            self.known_coefficients,
            self.noise,
            self.theta_draws,
            self.candidates,
            self.model_probabilities,
            level=self.level,
            scale=self.scale,
            radius=self.radius,
        )
        return {"savage": figure}
