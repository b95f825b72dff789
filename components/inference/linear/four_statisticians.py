"""The same linear regression by Fisher, Wald, Savage, and Hoerl and Kennard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import Conjugate
from components.contracts.checks import NamedScores
from components.contracts.posteriors import Analyses
from components.contracts.predictive import Predictive
from components.contracts.problems import Batch
from components.contracts.roles import AtLeastTwo, BetweenZeroAndOne, Info
from components.contracts.streams import Rng
from components.inference.linear.conjugate_bayes import ConjugateBayes, Decision
from components.inference.linear.conjugate_posterior import ConjugatePosterior
from components.inference.linear.known_data import LinearAnalysis
from components.inference.linear.maximum_likelihood import (
    MaximumLikelihood,
    MaximumLikelihoodEstimate,
)
from components.inference.linear.ridge_path import Choice, RidgeEstimates, RidgePath
from components.inference.linear.statistical_risk import ESTIMATORS, Risks, StatisticalRisk
from components.posteriors.tables import write_tables
from components.problems.supervised import Supervised
from components.registry import register

if TYPE_CHECKING:
    import pandas as pd

    from components.figures.style import Figures


@dataclass(frozen=True)
class FourAnalyses:
    """Results of the four analyses; predictions are Savage's.

    Only Savage's account for the uncertainty about β.
    """

    fisher: MaximumLikelihoodEstimate
    wald: Risks
    savage: ConjugatePosterior
    hoerl_kennard: RidgeEstimates

    @property
    def parts(self) -> tuple[Analyses, ...]:
        return (self.fisher, self.wald, self.savage, self.hoerl_kennard)

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        return self.savage.predict(x, generator)

    def scores(self) -> NamedScores:
        return {name: value for part in self.parts for name, value in part.scores().items()}

    def figures(self) -> Figures:
        return {name: figure for part in self.parts for name, figure in part.figures().items()}

    def estimates(self) -> pd.DataFrame:
        """One row per coefficient: the four estimates, with the marginal intervals of Fisher and
        Savage."""
        import pandas as pd
        from scipy import stats

        data = self.fisher.data
        fit = self.fisher.fit
        beta_posterior = self.savage.known_coefficients
        half = 0.5 + 0.5 * self.fisher.level
        width = (
            stats.norm.ppf(half) if fit.known_noise is not None else stats.t.ppf(half, fit.spare)
        )
        confidence = float(width) * (fit.noise * fit.covariance.diagonal()).sqrt()
        noise = self.savage.noise
        width = (
            stats.norm.ppf(half) if isinstance(noise, float) else stats.t.ppf(half, 2 * noise[0])
        )
        credible = float(width) * (self.savage.scale * beta_posterior.covariance.diagonal()).sqrt()
        columns = {
            "coefficient": data.names,
            **({"true": data.beta.tolist()} if data.is_simulated else {}),
            "maximum_likelihood": fit.beta.tolist(),
            "confidence_half_width": confidence.tolist(),
            "least_integrated_risk": self.wald.chosen.tolist(),
            "posterior_mean": beta_posterior.m.tolist(),
            "credible_half_width": credible.tolist(),
            "ridge": self.hoerl_kennard.estimate(
                self.hoerl_kennard.selected[self.hoerl_kennard.choice]
            ).tolist(),
        }
        return pd.DataFrame(columns)

    def risks(self) -> pd.DataFrame:
        """One row per estimator and multiple of β₀, the risks integrated over the prior last."""
        import pandas as pd

        wald = self.wald
        rows = [
            {
                "estimator": name,
                "beta": f"{r:g} beta0",
                "risk": float(wald.risk[e, m]),
                "error": float(wald.error[e, m]),
                "less_least_squares": float(wald.gain[e, m]),
                "its_error": float(wald.gain_error[e, m]),
            }
            for e, name in enumerate(ESTIMATORS)
            for m, r in enumerate(wald.multiples)
        ]
        return pd.DataFrame(
            rows
            + [
                {
                    "estimator": name,
                    "beta": "prior",
                    "risk": float(wald.bayes_risk[e]),
                    "error": float(wald.bayes_error[e]),
                }
                for e, name in enumerate(ESTIMATORS)
            ]
        )

    def artefacts(self, folder: Path) -> list[Path]:
        """The tables ``estimates``, ``risks`` and ``decisions``."""
        import pandas as pd

        tables = {
            "estimates": self.estimates(),
            "risks": self.risks(),
            "decisions": pd.DataFrame(self.savage.decisions()),
        }
        return write_tables(folder, tables)


# statisticians, by the names in ``FourAnalyses``
SCHOOLS: dict[str, type[LinearAnalysis[Any]]] = {
    "fisher": MaximumLikelihood,
    "wald": StatisticalRisk,
    "savage": ConjugateBayes,
    "hoerl_kennard": RidgePath,
}


@dataclass(frozen=True)
class FourStates:
    """The states of the four analyses."""

    by_school: dict[str, Any]


@register("inference", "four_statisticians")
class FourStatisticians(LinearAnalysis[FourStates]):
    """One linear regression analysed by Fisher, Wald, Savage, and Hoerl & Kennard.

    Each has a figure, and tables compare all four.  Composes ``maximum_likelihood``,
    ``statistical_risk``, ``conjugate_bayes`` and ``ridge_path``, which also run separately, on the
    same data set, with the same level for confidence and credible regions; a step runs one step of
    each.

    Raises the errors of these four.

    Source: Bardenet (2021), chapter 1.
    """

    level: BetweenZeroAndOne
    simulations: PositiveInt
    loss: Literal["estimation", "prediction"]
    loss_power: PositiveFloat
    multiples: Annotated[list[NonNegativeFloat], Field(min_length=2)]
    draws: PositiveInt
    decisions: list[Decision]
    pinball_level: BetweenZeroAndOne
    missed_radius: PositiveFloat
    density_price: PositiveFloat
    lowest: PositiveFloat
    highest: PositiveFloat
    number: AtLeastTwo
    choice: Choice

    @property
    def _parts(self) -> dict[str, LinearAnalysis[Any]]:
        """The analyses, each with its own subset of the keys of this one."""
        settings = self.model_dump(exclude={"name"})
        return {
            school: kind(
                name=self.name, **{k: v for k, v in settings.items() if k in kind.model_fields}
            )
            for school, kind in SCHOOLS.items()
        }

    def init(self, model: Conjugate, problem: Supervised, rng: Rng) -> FourStates:
        return FourStates(
            {school: part.init(model, problem, rng) for school, part in self._parts.items()}
        )

    def step(self, state: FourStates, batch: Batch, rng: Rng) -> tuple[FourStates, Info]:
        states = {}
        info: Info = {}
        for school, part in self._parts.items():
            states[school], terms = part.step(state.by_school[school], batch, rng)
            info |= terms
        return FourStates(states), info

    def posterior(self, state: FourStates) -> FourAnalyses:
        parts: dict[str, Any] = {
            school: part.posterior(state.by_school[school]) for school, part in self._parts.items()
        }
        return FourAnalyses(**parts)
