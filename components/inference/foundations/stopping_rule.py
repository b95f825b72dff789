"""Data gathered until a rule says stop: what credible intervals, confidence intervals and p-values
still mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import BetaPosterior
from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import BetweenZeroAndOne, Inference, Info, ZeroToOne
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.inference.foundations import rules
from components.inference.foundations.rules import Alternative, Array, Rule, Stopped
from components.posteriors.tables import write_tables
from components.problems.unlabelled import Unlabelled
from components.registry import register

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

KINDS = ("credible", "confidence")


@dataclass(frozen=True)
class RuleTables:
    """Tables over (n, k) [N + 1, N + 1], and the stopping points of each rule.

    The tables hold p-values and interval ends, which depend only on (n, k).
    """

    p: Array
    ends: dict[str, tuple[Array, Array]]  # of KINDS
    stopped: dict[Rule, Stopped]
    significant: Stopped  # of until_significant, which is checked at every N


@dataclass(frozen=True)
class StoppingReport:
    """How often intervals held θ and tests rejected a true θ₀ under every rule, simulated and
    exact; and the tosses at hand."""

    model: BetaPosterior
    heads: int
    tails: int
    null: float
    level: float
    alpha: float
    rules: list[Rule]
    thetas: list[float]  # null first
    nature: tuple[float, float]
    tables: RuleTables
    n: int  # imagined sequences of each rule
    held: Tensor  # [2, rules, 1 + thetas] of KINDS, over nature first
    rejected: Tensor  # [rules] rejections among those with θ = null
    tosses: Tensor  # [rules] tosses of the same, in total
    first: Tensor  # [N + 1] of the same, number first significant after n tosses

    def log_predictive(self, batch: Rows) -> Tensor:
        """log p(x | tosses at hand) [B]."""
        return self.model.log_predictive((self.heads, self.tails), batch)

    def clusters(self, batch: Rows) -> None:
        """ObservedTosses have none."""

    @property
    def beta(self) -> tuple[float, float]:
        """(a + h, b + t) of the posterior."""
        a, b = self.model.prior
        return a + self.heads, b + self.tails

    @property
    def p_values(self) -> dict[str, float]:
        """p-values of the observed tosses against θ > θ₀, with their number or their tails
        fixed."""
        n = np.array(self.heads + self.tails)
        k = np.array(self.heads)
        return {
            "binomial": float(rules.tail_probability(n, k, self.null, "greater")),
            "negative_binomial": rules.waiting_probability(self.heads, self.tails, self.null),
        }

    @property
    def posterior_null(self) -> float:
        """P(θ ≤ θ₀ | tosses at hand), the same under either."""
        from scipy import special

        return float(special.betainc(*self.beta, self.null))

    def coverage(self, kind: str, rule: Rule) -> tuple[Array, Array]:
        """Share that held θ, over nature and at every θ, and its standard errors."""
        share = self.held[KINDS.index(kind), self.rules.index(rule)].double().numpy() / self.n
        return share, np.sqrt(share * (1 - share) / self.n)

    def exact_coverage(self, kind: str, rule: Rule) -> list[float]:
        """The same without simulation."""
        stopped = self.tables.stopped[rule]
        low, high = (bound[stopped.n, stopped.k] for bound in self.tables.ends[kind])
        over = stopped.mean_coverage(low, high, self.nature)
        return [over, *(stopped.coverage(low, high, theta) for theta in self.thetas)]

    def exact_error(self, rule: Rule) -> float:
        """P(p < α at the end | θ₀)."""
        stopped = self.tables.stopped[rule]
        return float(
            stopped.probabilities(self.null)[self.tables.p[stopped.n, stopped.k] < self.alpha].sum()
        )

    def error_by_n_max(self) -> tuple[Array, Array]:
        """P(significant after some n ≤ N | θ₀) for N = 0 … n_max: simulated and exact."""
        stops = self.tables.significant
        exact = np.zeros(len(self.tables.p))
        is_significant = self.tables.p[stops.n, stops.k] < self.alpha
        np.add.at(exact, stops.n[is_significant], stops.probabilities(self.null)[is_significant])
        return self.first.cumsum(0).double().numpy() / self.n, exact.cumsum()

    def scores(self) -> dict[str, float]:
        out = {f"p_value/{name}": value for name, value in self.p_values.items()}
        out["posterior_null"] = self.posterior_null
        for r, rule in enumerate(self.rules):
            for kind in KINDS:
                share = self.coverage(kind, rule)[0]
                out |= {
                    f"coverage/{kind}/{rule}": float(share[0]),
                    f"coverage/{kind}_at_null/{rule}": float(share[1]),
                }
            out[f"type_1_error/{rule}"] = float(self.rejected[r]) / self.n
            out[f"tosses/{rule}"] = float(self.tosses[r]) / self.n
        return out

    def figures(self) -> dict[str, Figure]:
        from components.figures.foundations.stopping import Coverage, ObservedTosses, stopping

        coverages = {
            kind: {
                rule: Coverage(*self.coverage(kind, rule), self.exact_coverage(kind, rule))
                for rule in self.rules
            }
            for kind in KINDS
        }
        tosses = ObservedTosses(
            self.heads, self.tails, self.null, self.beta, self.p_values, self.posterior_null
        )
        figure = stopping(coverages, self.error_by_n_max(), self.level, self.alpha, tosses)
        return {"stopping": figure}

    def table(self) -> pd.DataFrame:
        """One row per rule and θ: coverage and errors, each simulated, with its standard error, and
        exact."""
        import pandas as pd

        rows = []
        for r, rule in enumerate(self.rules):
            coverages = {
                kind: (*self.coverage(kind, rule), self.exact_coverage(kind, rule))
                for kind in KINDS
            }
            for i, theta in enumerate(["prior", *self.thetas]):
                row: dict[str, object] = {"rule": rule, "theta": theta}
                for kind, (share, error, exact) in coverages.items():
                    row |= {kind: share[i], f"{kind}_error": error[i], f"{kind}_exact": exact[i]}
                if i == 1:  # θ₀
                    wrong = float(self.rejected[r]) / self.n
                    row |= {"rejected": wrong, "rejected_exact": self.exact_error(rule)}
                    row["tosses"] = float(self.tosses[r]) / self.n
                rows.append(row)
        return pd.DataFrame(rows)

    def artefacts(self, folder: Path) -> list[Path]:
        """The tables ``stopping`` and ``p_values``."""
        import pandas as pd

        at_hand = {"heads": self.heads, "tails": self.tails, "null": self.null, **self.p_values}
        one = pd.DataFrame([at_hand | {"posterior_null": self.posterior_null}])
        return write_tables(folder, {"stopping": self.table(), "p_values": one})


@dataclass(frozen=True, kw_only=True)
class StoppingState:
    """Running counts from the simulated sequences."""

    model: BetaPosterior = rebuilt()
    tables: RuleTables = rebuilt()
    counts: tuple[int, int] = rebuilt()
    n: int = 0
    held: Tensor  # [2, rules, 1 + thetas]
    rejected: Tensor  # [rules]
    tosses: Tensor  # [rules]
    first: Tensor  # [N + 1]


@register("inference", "stopping_rule")
class StoppingRule(Inference[BetaPosterior, Unlabelled, Rows, StoppingState]):
    """Coin tossing under stopping rules: interval coverage and test errors, by rule.

    The intervals are credible and confidence intervals.

    fixed: n = N;  until_significant: p(n, k) < α;  until_short: the confidence interval is
    at most ``width`` long;  negative_binomial: ``tails`` tails;  all stop at N = ``n_max``.
    p and the Clopper–Pearson interval are computed as if n had been fixed.  P(end at (n,
    k) | θ) = c_nk θᵏ(1 − θ)ⁿ⁻ᵏ contains the rule only in c, so the posterior is Beta(a + k,
    b + n − k) under each rule, and its intervals contain θ ~ Beta(a, b) at their nominal
    rate; at a single θ neither kind of interval needs to.  Every step simulates
    ``simulations`` sequences with θ from ``nature`` and as many at each θ; c gives the
    exact values.  For the observed tosses: p-values against θ > θ₀ with the number of
    tosses fixed and with the number of tails fixed (9 and 3: 0.0730 and 0.0327, printed as
    0.075 and 0.0325).

    Raises ConfigMismatchError for a rule that cannot stop before ``n_max``.

    Source: Bardenet (2021), section 3.1.3; Berger & Wolpert (1988), section 4.2; Lindley &
    Phillips (1976).
    """

    requires = Requirements(
        kinds={"unlabelled"},
        batch_kind="whole",
        capabilities={"beta_posterior"},
    )
    provides = {"predicts_rows", "analyses", "writes_files"}
    rules: Annotated[list[Rule], Field(min_length=1)]
    n_max: Annotated[int, Field(ge=1, le=2000)]
    alpha: BetweenZeroAndOne
    hypothesis: BetweenZeroAndOne
    alternative: Alternative
    level: BetweenZeroAndOne
    width: BetweenZeroAndOne
    tails: PositiveInt
    thetas: list[ZeroToOne]
    nature: Annotated[list[PositiveFloat], Field(min_length=2, max_length=2)] | None
    simulations: PositiveInt

    def _ends(self, p: Array, lengths: Array) -> dict[Rule, Array]:
        """Points at which each rule stops, before N."""
        n, k, is_valid = rules.grid(self.n_max)
        return {
            "fixed": np.zeros_like(is_valid),
            "until_significant": is_valid & (p < self.alpha),
            "until_short": is_valid & (lengths <= self.width),
            "negative_binomial": is_valid & (n - k == self.tails),
        }

    def _tables(self, prior: tuple[float, float]) -> RuleTables:
        n, k, _ = rules.grid(self.n_max)
        n, k = np.broadcast_arrays(n, np.minimum(k, n))
        p = rules.tail_probability(n, k, self.hypothesis, self.alternative)
        intervals = {
            "credible": rules.credible_interval(n, k, self.level, prior),
            "confidence": rules.confidence_interval(n, k, self.level),
        }
        low, high = intervals["confidence"]
        stop = self._ends(p, high - low)
        never = {
            "until_significant": (f"alpha={self.alpha:g}: no test is significant", "raise either"),
            "until_short": (f"width={self.width:g}: no interval is as short", "raise either"),
            "negative_binomial": (
                f"tails={self.tails}: they do not come",
                "lower the one or raise the other",
            ),
        }
        for rule in self.rules:
            if rule != "fixed" and not stop[rule].any():
                reason, mend = never[rule]
                raise ConfigMismatchError(
                    f"inference.{reason} within inference.n_max={self.n_max} tosses; {mend}"
                )
        stopped = {rule: Stopped.by(stop[rule]) for rule in self.rules}
        return RuleTables(p, intervals, stopped, Stopped.by(stop["until_significant"]))

    def init(self, model: BetaPosterior, problem: Unlabelled, rng: Rng) -> StoppingState:
        assert isinstance(problem.train, Rows)
        R = len(self.rules)
        T = 1 + len(self._thetas)
        return StoppingState(
            model=model,
            tables=self._tables(model.prior),
            counts=model.counts(problem.train),
            held=torch.zeros(2, R, T, dtype=torch.long),
            rejected=torch.zeros(R, dtype=torch.long),
            tosses=torch.zeros(R, dtype=torch.long),
            first=torch.zeros(self.n_max + 1, dtype=torch.long),
        )

    @property
    def _thetas(self) -> list[float]:
        return [self.hypothesis, *(theta for theta in self.thetas if theta != self.hypothesis)]

    def _nature_parameters(self, model: BetaPosterior) -> tuple[float, float]:
        return model.prior if self.nature is None else (self.nature[0], self.nature[1])

    def step(self, state: StoppingState, batch: Rows, rng: Rng) -> tuple[StoppingState, Info]:
        R = self.simulations
        N = self.n_max
        tables = state.tables
        device = rng.noise.device
        u = torch.rand(R, N, generator=rng.noise, dtype=torch.float64, device=device).cpu()
        shapes = torch.tensor(
            self._nature_parameters(state.model), dtype=torch.float64, device=device
        ).expand(R, 2)
        gammas = torch._standard_gamma(shapes.contiguous(), generator=rng.noise).cpu()
        prior_thetas = gammas[:, 0] / gammas.sum(1)  # θ ~ Beta(a, b) [R]
        n_covered, rejected, tosses, first = (
            t.clone() for t in (state.held, state.rejected, state.tosses, state.first)
        )
        for i, theta in enumerate(
            [prior_thetas, *(torch.full((R,), t, dtype=torch.float64) for t in self._thetas)]
        ):
            # heads after n tosses [R, N + 1]
            k = np.pad((u < theta[:, None]).cumsum(1).numpy(), ((0, 0), (1, 0)))
            n = np.arange(N + 1)
            for r, rule in enumerate(self.rules):
                end_times = (
                    tables.stopped[rule].stop[n, k].argmax(1)
                )  # the first n at which it ends [R]
                heads = k[np.arange(R), end_times]
                for j, kind in enumerate(KINDS):
                    low, high = (bound[end_times, heads] for bound in tables.ends[kind])
                    n_covered[j, r, i] += int(
                        ((low <= theta.numpy()) & (theta.numpy() <= high)).sum()
                    )
                if i == 1:  # θ₀
                    rejected[r] += int((tables.p[end_times, heads] < self.alpha).sum())
                    tosses[r] += int(end_times.sum())
            if i == 1:
                end_times = tables.significant.stop[n, k].argmax(1)
                wrong = end_times[tables.p[end_times, k[np.arange(R), end_times]] < self.alpha]
                first += torch.bincount(torch.as_tensor(wrong), minlength=N + 1)
        state = replace(
            state, n=state.n + R, held=n_covered, rejected=rejected, tosses=tosses, first=first
        )
        return state, {
            f"type_1_error/{rule}": float(rejected[r]) / state.n
            for r, rule in enumerate(self.rules)
        }

    def posterior(self, state: StoppingState) -> StoppingReport:
        heads, tails = state.counts
        return StoppingReport(
            model=state.model,
            heads=heads,
            tails=tails,
            null=self.hypothesis,
            level=self.level,
            alpha=self.alpha,
            rules=list(self.rules),
            thetas=self._thetas,
            nature=self._nature_parameters(state.model),
            tables=state.tables,
            n=max(state.n, 1),
            held=state.held,
            rejected=state.rejected,
            tosses=state.tosses,
            first=state.first,
        )
