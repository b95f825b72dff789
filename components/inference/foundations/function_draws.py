"""Draws of functions from an untrained Gaussian process or deep Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import GivenFunction
from components.contracts.predictive import Predictive, components_of, join
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.errors import ConfigMismatchError
from components.models.shallow_gp.exact import ExactGP
from components.problems.supervised import Supervised
from components.registry import register

if TYPE_CHECKING:
    from components.figures.style import Figures

Given = Literal["prior", "rows"]
FLAT = 0.05  # fraction of a function's root mean square slope below which it is flat
SHOWN = 6  # number of functions in the figure


def draw_function(
    model: GivenFunction, x: Tensor, given: Given, generator: torch.Generator
) -> Predictive:
    """p(y | f) at one f, jointly at x [B, D]."""
    if given == "rows":
        assert isinstance(model, ExactGP)
        return model.sample_f(x, generator)
    return model.sample_prior_f(x, generator)


@dataclass(frozen=True)
class DrawnFunctions:
    """Functions of the first task on a line of inputs, and statistics of their slopes."""

    model: GivenFunction
    given: Given
    n_predict: int
    grid: Tensor  # x₁ [n]
    functions: Tensor  # f [S, n]
    rows: tuple[Tensor, Tensor] | None  # x₁ and y of the conditioning rows

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """p(y | x) as a mixture over ``n_predict`` new functions, each jointly at x [B, D]."""
        each = [draw_function(self.model, x, self.given, generator) for _ in range(self.n_predict)]
        return join(each, 0)

    def scores(self) -> dict[str, float]:
        """``flat_share``, ``log_slope_mean`` and ``log_slope_sd`` of the slopes between points."""
        if not len(self.functions):
            return {}
        slope = self.functions.diff(dim=-1) / self.grid.diff()
        size = slope.square().mean(-1, keepdim=True).sqrt()
        logs = slope.abs().clamp_min(torch.finfo(slope.dtype).tiny).log()
        return {
            "flat_share": float((slope.abs() < FLAT * size).to(slope.dtype).mean()),
            "log_slope_mean": float(logs.mean()),
            "log_slope_sd": float(logs.std(correction=0)),
        }

    def figures(self) -> Figures:
        if not len(self.functions):
            return {}
        from components.figures.style import colour_of, new_figure

        figure, (ax,) = new_figure(width=4.8, height=3.3)
        for k, f in enumerate(self.functions[:SHOWN].cpu()):
            ax.plot(self.grid.cpu(), f, color=colour_of(k), linewidth=1.3)
        if self.rows is not None:
            x, y = self.rows
            ax.scatter(x.cpu(), y.cpu(), marker="x", color="black", s=36, zorder=3)
        ax.set(xlabel="$x$", ylabel="$f(x)$")
        return {"functions": figure}


@dataclass(frozen=True, kw_only=True)
class FunctionState:
    """The built model, and the functions drawn from it."""

    model: GivenFunction = not_checkpointed()
    grid: Tensor = not_checkpointed()
    rows: tuple[Tensor, Tensor] | None = not_checkpointed()
    functions: Trace = field(default_factory=Trace)  # f [n], one per step


@register("inference", "function_draws")
class FunctionDraws(Inference[GivenFunction, Supervised, Batch, FunctionState]):
    """Draws of functions from the prior of a Gaussian process or a deep one or, for an exact
    Gaussian process, given the training rows; hyper-parameters have their initial values.

        f = f_L ∘ … ∘ f_1,   f_l ~ GP(m_l, k_l) jointly at ``points`` inputs x₁ from ``low`` to
        ``high``, the other inputs 0

    A step draws one function.  With one process of squared exponential kernel and zero mean in each
    of L layers, slopes are products of L independent normal variables: ln |f′| has mean Σ_l
    ln(σ_l/ℓ_l) − L (γ + ln 2)/2 and standard deviation π (L/8)^½, so that deep functions are flat
    almost everywhere.  An identity mean function with small process variance, or passing the inputs
    to every layer, avoids this.  Scores, over functions and points of the first task: flat_share
    (share of slopes below a twentieth of their root mean square), log_slope_mean, log_slope_sd;
    nlpp of the labels and other scores of predictions by ``n_predict`` new functions.  Info: the
    function's range.

    Raises:
        ConfigMismatchError: ``given: rows`` with a model that has no exact posterior.

    Source: Boustati (2021), Figs 2.2 to 2.6, eqs. (2.15) to (2.17), section 2.1.2.3; Duvenaud et
    al. (2014), section 4."""

    requires = Requirements(
        kinds={"supervised"},
        batch_kind="whole",
        capabilities={GivenFunction},
    )

    given: Given
    points: PositiveInt
    low: float
    high: float
    n_predict: PositiveInt

    def init(self, model: GivenFunction, problem: Supervised, rng: Rng) -> FunctionState:
        if self.given == "rows" and not isinstance(model, ExactGP):
            raise ConfigMismatchError(
                "inference.given=rows: the model has no exact posterior; use inference.given=prior, "
                "or model=igp model.posterior=exact"
            )
        train = problem.train
        grid = torch.linspace(
            self.low, self.high, self.points, dtype=train.x.dtype, device=train.x.device
        )
        rows = None
        if self.given == "rows":
            observed = train.mask[:, 0]
            rows = (train.x[observed, 0], train.y[observed, 0])
        return FunctionState(model=model, grid=grid, rows=rows)

    def step(self, state: FunctionState, batch: Batch, rng: Rng) -> tuple[FunctionState, Info]:
        x = batch.x.new_zeros(self.points, batch.x.shape[1])
        x[:, 0] = state.grid
        law = draw_function(state.model, x, self.given, rng.noise)
        f = components_of(law)[0, :, 0].detach()  # of classes: the logits of the first task
        f = f if f.dim() == 1 else f[:, 0]
        state.functions.append(f)
        return state, {"range": float(f.max() - f.min())}

    def posterior(self, state: FunctionState) -> DrawnFunctions:
        functions = state.functions.rows if len(state.functions) else state.grid.new_zeros(0, 1)
        return DrawnFunctions(
            state.model, self.given, self.n_predict, state.grid, functions, state.rows
        )
