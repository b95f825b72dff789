"""Simulation-based calibration of ``structural_gibbs``: every parameter and two forecasts, and that
broken samplers are seen.

    python scripts/structural_sbc.py --to docs/results                  # 500 series a row: half an hour of one core
    python scripts/structural_sbc.py --to elsewhere --series 60 --only "level and regression"

θ* is drawn from the prior (``proper``: ``model.df=5``, in units that no series changes), a series
and what follows it from the model given θ*, and the rank of θ*, and of the two observations that
follow, is taken among 99 draws given the series, ties broken at random: a coefficient is 0 with
positive probability.  If the sampler is right ranks are uniform on 0 … 99 (Talts et al. 2018,
Theorem 1).  The last rows are samplers with one fault each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components import registry
from components.contracts.sequences import FutureCovariates
from components.contracts.structural import Dynamics, Structure
from components.series.fast.own_dynamics import is_stationary
from components.series.fast.sweep import SweepRandomNumbers
from components.series.fast.truncated_gamma import variance_from_gamma
from components.series.forecasting import Forecasting
from components.series.sequence import Sequence
from components.series.structural.structural_gibbs import pack_theta
from components.series.structural.sweep import Sweep
from runner.execution.rng import Streams
from scripts.sbc import DRAWS, component, load_ranks, parse_options, summary

F64 = torch.float64
TIMES, AHEAD = 20, 2
CHAINS, BURN_IN, THINNING = 33, 150, 20  # three draws of each chain


def block(name: str, **keys: Any) -> dict[str, Any]:
    return {"name": name} | keys


WANDERS = {"guess": 0.4, "upper": 1.5}  # of sd(y), so that data and prior both speak
CHOICE = {"expected_size": 1.0, "information": 1.0}
LEVEL, REGRESSION = block("local_level", **WANDERS), block("regression", **CHOICE)


@dataclass(frozen=True)
class Row:
    """A model, and what is wrong with the sampler."""

    blocks: list[dict[str, Any]]
    keys: dict[str, Any] = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    broken: Callable[[Sweep], None] | None = None


def one_too_many(sweep: Sweep) -> None:
    """The prior of one scale has one degree of freedom too many, in both of its draws."""
    scales = sweep.model.scales
    scales.shape[1] += 0.5
    scales.df[1] += 1


def silent(sweep: Sweep) -> None:
    """Observations that are drawn with the states have no noise."""
    numbers = sweep.numbers

    def without_errors(*args: Any) -> SweepRandomNumbers:
        drawn = numbers(*args)
        drawn.states.errors[:] = 0.0
        return drawn

    vars(sweep).update(numbers=without_errors)


ROWS: dict[str, Row] = {
    "level and regression": Row([LEVEL, REGRESSION], missing=(4, 11)),
    "trend and seasons": Row(
        [block("local_linear_trend", **WANDERS), block("seasonal", period=4, guess=0.3)],
        missing=(7,),
    ),
    "goodwill and regression": Row(
        [block("nerlove_arrow", **WANDERS, **CHOICE), REGRESSION], missing=(4,)
    ),
    "autoregression": Row([block("autoregressive", lags=2, **WANDERS)]),
    "slope that returns": Row([block("semilocal_trend", **WANDERS)]),
    "level, errors of Student's t": Row([LEVEL, REGRESSION], {"errors": "student_t"}, missing=(4,)),
    "coefficients that wander": Row([LEVEL, block("dynamic_regression", **WANDERS)]),
    "broken: one degree of freedom too many": Row([LEVEL, REGRESSION], broken=one_too_many),
    "broken: observations drawn without noise": Row([LEVEL, REGRESSION], broken=silent),
}


def is_allowed(moves: Dynamics, phi: np.ndarray) -> bool:
    """True if φ [k] lies where the prior has it."""
    if moves.within is None:
        return is_stationary(phi.copy(), np.empty(len(phi)))
    return bool(((phi > moves.within[0]) & (phi < moves.within[1])).all())


def drawn_prior(structure: Structure, g: torch.Generator) -> Tensor:
    """θ* [1, P]."""

    def one(*shape: int) -> Tensor:
        return torch.randn(1, *shape, generator=g, dtype=F64)

    sigma = []
    for scale in structure.scales:
        shape = scale.df / 2
        gamma = torch._standard_gamma(torch.full((1,), shape, dtype=F64), generator=g)
        with np.errstate(over="ignore"):  # of a hash
            variance = variance_from_gamma(float(gamma), shape, shape * scale.guess**2, scale.upper)
        sigma.append(torch.tensor([variance], dtype=F64).sqrt())
    phi = []
    for moves in structure.transitions:
        while True:
            if moves.sd == torch.inf:
                low, high = moves.within or (-float(moves.count), float(moves.count))
                tried = low + (high - low) * torch.rand(1, moves.count, generator=g, dtype=F64)
            else:
                tried = moves.mean + moves.sd * one(moves.count)
            if is_allowed(moves, tried[0].numpy()):
                break
        phi.append(tried)
    beta = torch.zeros(1, len(structure.inclusion), dtype=F64)
    inside = torch.rand(len(structure.inclusion), generator=g, dtype=F64) < structure.inclusion
    if inside.any():
        L = torch.linalg.cholesky(structure.precision[inside][:, inside])
        z = one(int(inside.sum())).T
        beta[0, inside] = sigma[0] * torch.linalg.solve_triangular(L.mT, z, upper=True).squeeze(1)
    parts = [torch.stack(sigma, 1), *phi, beta]
    errors = structure.errors
    if errors.student and errors.nu is None:
        x = (
            torch._standard_gamma(torch.full((1, 1), errors.shape, dtype=F64), generator=g)
            / errors.rate
        )
        parts.append(2 + x)
    return torch.cat(parts, 1)


def built(row: Row, problem: Sequence) -> Any:
    """The model, whose priors no series changes."""
    proper = {"df": 5.0}
    blocks = [
        component(
            "block",
            **(proper if "df" in registry.get("block", keys["name"]).model_fields else {}) | keys,
        )
        for keys in row.blocks
    ]
    keys = {"scale": 1.0, "centre": 0.0, "upper": 1.5} | proper | row.keys
    return component("model", "structural", blocks=blocks, **keys).build(problem, Streams(0))


def simulated(row: Row, seed: int) -> tuple[Forecasting, Tensor, Tensor]:
    """A series, the θ* [P] it was drawn from, and what follows it [2]."""
    g = torch.Generator().manual_seed(seed)
    n = TIMES + AHEAD
    x, u = torch.randn(n, 3, generator=g, dtype=F64), torch.rand(n, 2, generator=g, dtype=F64)
    y = torch.arange(n, dtype=F64)

    def problem(y: Tensor) -> Forecasting:
        return Forecasting(
            name="drawn", states=None, observations=y[:TIMES].view(1, -1, 1), system=None, state_names=["y"],
            regressors=x[:TIMES], regressor_names=["a", "b", "c"], inputs=u[:TIMES], input_names=["tv", "web"],
            beyond=FutureCovariates(x[TIMES:], u[TIMES:]), future=y[TIMES:].view(1, -1, 1),
        )  # fmt: skip

    model = built(row, problem(y))
    theta = drawn_prior(model.structure, g)
    design = model.design(problem(y).series, AHEAD)
    system = model.system(theta, design)
    state = system.mean + system.sd * torch.randn(1, len(system.mean), generator=g, dtype=F64)
    errors = model.structure.errors
    nu = theta[0, -1] if errors.student and errors.nu is None else errors.nu
    for t in range(n):
        lam = (
            torch._standard_gamma(nu / 2 * torch.ones(1, dtype=F64), generator=g) / (nu / 2)
            if errors.student
            else 1.0
        )
        noise = (system.noise[:, t] / lam).sqrt() * torch.randn(1, generator=g, dtype=F64)
        y[t] = (state @ system.F[t] + system.offset[:, t] + noise)[0]
        steps = system.W.sqrt() * torch.randn(state.shape, generator=g, dtype=F64)
        state = (system.G @ state.unsqueeze(2)).squeeze(2) + steps
    later = y[TIMES:].clone()
    y[list(row.missing)] = torch.nan
    return problem(y), theta[0], later


def fitted(row: Row, problem: Forecasting, seed: int) -> Tensor:
    """99 draws of θ and of the two observations that follow [99, P + 2]."""
    rng = Streams(seed)
    gibbs = component(
        "inference", "structural_gibbs", chains=CHAINS, burn_in=BURN_IN, thinning=THINNING
    )
    state = gibbs.init(built(row, problem), problem, rng)
    if row.broken is not None:
        row.broken(state.sweeps)
    per_chain = DRAWS // CHAINS
    for _, batch in problem.batches("series", rng, 0, BURN_IN + per_chain * THINNING):
        state, _ = gibbs.step(state, batch, rng)
    assert torch.equal(pack_theta(state.model.structure, state.place), state.kept.rows[-1])
    posterior = gibbs.posterior(state)
    ahead = posterior.forecast(problem.series, AHEAD, rng.evaluation)
    mean, variance = ahead.mu[..., 0], ahead.v[..., 0]  # [99, 2]
    later = mean + variance.sqrt() * torch.randn(mean.shape, generator=rng.evaluation, dtype=F64)
    return torch.cat([posterior.flat, later], 1)


def names(row: Row) -> list[str]:
    problem, _, _ = simulated(row, 0)
    return [*built(row, problem).structure.names, *(f"y in {h + 1}" for h in range(AHEAD))]


def ranks(row: Row, series: int) -> np.ndarray:
    """Of each parameter and forecast [R, P + 2], in 0 … 99."""
    rows = []
    for seed in range(series):
        problem, theta, later = simulated(row, seed)
        draws, truth = fitted(row, problem, 10_000 + seed), torch.cat([theta, later])
        ties = (draws == truth).sum(0)
        extra = (
            torch.rand(len(truth), generator=torch.Generator().manual_seed(seed)) * (ties + 1)
        ).long()
        rows.append(((draws < truth).sum(0) + extra).numpy())
    return np.stack(rows)


def kept(name: str, series: int, folder: Path) -> np.ndarray:
    """Ranks of a row."""
    file = folder / f"{name.replace(':', '')} {series}.npy"
    return load_ranks(file, lambda: ranks(ROWS[name], series))


def table(name: str, found: np.ndarray) -> list[str]:
    """Lines of the table."""
    lines = []
    for j, parameter in enumerate(names(ROWS[name])):
        one = summary(found[:, j])
        cells = (
            f"{one['chi2_p']:.3f}",
            f"{one['ks_p']:.3f}",
            f"{one['spread']:.3f}",
            f"{one['coverage90']:.3f}",
        )
        lines.append(f"| {name if j == 0 else ''} | {parameter} | {' | '.join(cells)} |")
    return lines


def worst(found: np.ndarray) -> float:
    """The smallest p of ranks [R, m], of χ² and of Kolmogorov and Smirnov, times how many there
    are."""
    ps = [summary(found[:, j])[p] for j in range(found.shape[1]) for p in ("chi2_p", "ks_p")]
    return min(1.0, len(ps) * min(ps))


def main() -> None:
    options = parse_options(__doc__, "structural_sbc", "structural_sbc.md", ROWS, ("--series", 500))
    torch.set_num_threads(1)
    columns = ["sampler", "of", "p (χ²)", "p (KS)", "spread", "coverage of 90 %"]
    lines, verdicts = (
        [f"| {' | '.join(columns)} |", "|---|---" + "|---:" * (len(columns) - 2) + "|"],
        [],
    )
    for name in options.only.split(";"):
        rank_table = kept(name, options.series, options.kept)
        lines += table(name, rank_table)
        verdicts.append(
            f"- {name}: smallest p of all, corrected for their number: {worst(rank_table):.2g}"
        )
        print("\n".join([*table(name, rank_table), verdicts[-1]]), flush=True)
    caption = (
        f"{options.series} series of {TIMES} observations, {DRAWS} draws of each posterior; χ² of ten bins. Uniform ranks have "
        "spread 1; above it a posterior is too narrow, below too wide."
    )
    page = [
        "# Simulation-based calibration of structural series",
        str(__doc__).splitlines()[0],
        caption,
    ]
    page += ["\n".join(lines), "\n".join(verdicts)]
    options.to.mkdir(parents=True, exist_ok=True)
    (options.to / "structural_sbc.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
