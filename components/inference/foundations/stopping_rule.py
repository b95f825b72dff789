"""Data collected under a stopping rule: validity of credible intervals, confidence intervals and
p-values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.contracts.capabilities import BetaPosterior
from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import (
    BetweenZeroAndOne,
    Inference,
    Info,
    NonEmptyList,
    PositivePair,
    ZeroToOne,
)
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.inference.foundations import rules
from components.inference.foundations.rules import Alternative, Array, Rule, Stopped
from components.inference.foundations.stopping_report import KINDS, RuleTables, StoppingReport
from components.problems.unlabelled import Unlabelled
from components.registry import register


@dataclass(frozen=True, kw_only=True)
class StoppingState:
    """Running counts of the simulated sequences."""

    model: BetaPosterior = not_checkpointed()
    tables: RuleTables = not_checkpointed()
    counts: tuple[int, int] = not_checkpointed()
    n: int = 0
    held: Tensor  # [2, rules, 1 + thetas]
    rejected: Tensor  # [rules]
    tosses: Tensor  # [rules]
    first: Tensor  # [N + 1]


@register("inference", "stopping_rule")
class StoppingRule(Inference[BetaPosterior, Unlabelled, Rows, StoppingState]):
    """Coin tossing under stopping rules: interval coverage and test errors, by rule.

    Both credible and confidence intervals are assessed.

    fixed: n = N;  until_significant: p(n, k) < α;  until_short: the confidence interval is
    at most ``width`` long;  negative_binomial: ``tails`` tails;  all stop at N = ``n_max``.
    p and the Clopper–Pearson interval are computed as if n had been fixed.  P(end at (n,
    k) | θ) = c_nk θᵏ(1 − θ)ⁿ⁻ᵏ contains the rule only in c, so the posterior is Beta(a + k,
    b + n − k) under each rule, and its intervals contain θ ~ Beta(a, b) at their nominal
    rate; at a single θ the coverage of both kinds of intervals may differ from it.  Every step
    simulates ``simulations`` sequences with θ from ``nature``, and the same number at each θ; c
    gives the exact values.  For the observed tosses: p-values against θ > θ₀ with the number of
    tosses fixed and with the number of tails fixed (9 and 3: 0.0730 and 0.0327, printed as 0.075
    and 0.0325).

    Raises ConfigMismatchError if a rule cannot stop before ``n_max``.

    Source: Bardenet (2021), section 3.1.3; Berger & Wolpert (1988), section 4.2; Lindley &
    Phillips (1976).
    """

    requires = Requirements(
        kinds={"unlabelled"},
        batch_kind="whole",
        capabilities={BetaPosterior},
    )
    rules: NonEmptyList[Rule]
    n_max: Annotated[int, Field(ge=1, le=2000)]
    alpha: BetweenZeroAndOne
    hypothesis: BetweenZeroAndOne
    alternative: Alternative
    level: BetweenZeroAndOne
    width: BetweenZeroAndOne
    tails: PositiveInt
    thetas: list[ZeroToOne]
    nature: PositivePair | None
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
            "until_significant": (
                f"alpha={self.alpha:g}: no result is significant",
                "raise either",
            ),
            "until_short": (f"width={self.width:g}: no interval is that short", "raise either"),
            "negative_binomial": (
                f"tails={self.tails}: they cannot all occur",
                "lower the first or raise the second",
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
                # first n at which the rule stops [R]
                end_times = tables.stopped[rule].stop[n, k].argmax(1)
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
