"""A simulated series with a known transition that has a kink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from components.contracts.checks import NamedScores
from components.contracts.posteriors import Forecasts, SmoothedStates
from components.contracts.predictive import GaussianMixture
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.figures.style import BLACK, Figures, legend_above, new_figure
from components.maths.spacing import evenly_spaced
from components.posteriors.draws import Draws
from components.registry import register
from components.series.figures.bands import draw_band
from components.series.forecast_data.dlm_sim import DlmSim
from components.series.forecasting import Forecasting
from components.series.models.gp_ssm import GPStateSpace

DRAWS = 200  # posterior draws for scores and the figure of f


def kink(x: Tensor) -> Tensor:
    """f(x) = 0.8 + (x + 0.2) (1 − 5/(1 + e^{−2x}))."""
    return 0.8 + (x + 0.2) * (1 - 5 * torch.sigmoid(2 * x))


@dataclass(kw_only=True)
class KnownTransition(Forecasting):
    """A series with true states and true f, for models that learn both."""

    f: Callable[[Tensor], Tensor]
    path: Tensor  # x_0 … x_T of the observed part

    def _learnt(
        self, posterior: SmoothedStates | Forecasts, x: Tensor
    ) -> tuple[GaussianMixture, Tensor] | None:
        """f at x [N], [S, N, 1], and E[x_1:T | y] [T] by evenly spaced draws of a model of f; None
        for any other model."""
        if not isinstance(posterior, Draws) or not isinstance(posterior.model, GPStateSpace):
            return None
        every = posterior.flat if posterior.n_draws else posterior.start
        theta = evenly_spaced(every, DRAWS)
        with torch.no_grad():
            f = posterior.model.transition(theta, x[None])
        return f, theta[:, 1 - len(self.path) :].mean(0)

    def score(self, posterior: SmoothedStates | Forecasts, rng: Rng) -> NamedScores:
        """Scores of the forecasts, root mean squared errors of E[f | y] at the true states and of
        E[x_1:T | y], and the coverage of the central 90 % intervals of f."""
        out = super().score(posterior, rng)
        estimate = self._learnt(posterior, self.path[:-1])
        if estimate is None:
            return out
        learnt, states = estimate
        truth = self.f(self.path[:-1]).unsqueeze(1)
        below = learnt.cdf(truth)
        return out | {
            "rmse_f": float((learnt.mean - truth).square().mean().sqrt()),
            "rmse_states": float((states - self.path[1:]).square().mean().sqrt()),
            "coverage90_f": float(((below > 0.05) & (below < 0.95)).to(truth).mean()),
        }

    def draw(self, posterior: SmoothedStates | Forecasts, rng: Rng) -> Figures:
        figures = super().draw(posterior, rng)
        x = torch.linspace(float(self.path.min()) - 1, float(self.path.max()) + 1, 200)
        estimate = self._learnt(posterior, x.to(self.path))
        if estimate is None:
            return figures
        learnt = estimate[0]
        lower, upper = (learnt.quantile(level)[:, 0] for level in (0.05, 0.95))
        figure, (axis,) = new_figure(1, 1)
        draw_band(axis, x, (learnt.mean[:, 0], lower, upper), "posterior mean", 90)
        axis.plot(x, self.f(x), "--", color=BLACK, label="truth")
        axis.set(xlabel="x", ylabel="f(x)")
        legend_above(axis)
        return figures | {"transition": figure}


@register("dataset", "kink")
class Kink(DlmSim):
    """A simulated state whose transition function has a kink, observed with noise.

    x_0 = ½, x_t = f(x_{t−1}) + N(0, σ_x²), y_t = x_t + N(0, σ_y²), t = 1 … T, with
    f(x) = 0.8 + (x + 0.2) (1 − 5/(1 + e^{−2x})), which rises with slope 1 up to the kink near 0 and
    falls with slope −4 after it; y [1, T, 1].  The last ``n_ahead`` observations are to be forecast.

    Raises ConfigMismatchError if no observations are left to learn from.

    Source: Ialongo et al. (2019)."""

    def load(self, rng: Rng, setting: Setting) -> Forecasting:
        noise = torch.randn(2, self.n_steps, generator=rng.data, dtype=torch.float64)
        path = [torch.tensor(0.5, dtype=torch.float64)]
        for t in range(self.n_steps):
            path.append(kink(path[-1]) + self.transition_sd * noise[0, t])
        x = torch.stack(path)
        observed = self.hide_future(x[1:] + self.observation_sd * noise[1], setting)
        given = {each.name: getattr(observed, each.name) for each in fields(observed) if each.init}
        path_seen = x[: self.n_steps - self.n_ahead + 1].to(observed.observations)
        return KnownTransition(**given, f=kink, path=path_seen)
