"""Tables and figures of a stopping rule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from components.contracts.capabilities import BetaPosterior
from components.contracts.posteriors import PredictsRows
from components.contracts.problems import Rows
from components.inference.foundations import rules
from components.inference.foundations.rules import Array, Rule, Stopped
from components.posteriors.tables import write_tables

if TYPE_CHECKING:
    import pandas as pd

    from components.figures.style import Figures


KINDS = ("credible", "confidence")


@dataclass(frozen=True)
class RuleTables:
    """Tables over (n, k) [N + 1, N + 1], and the stopping points of each rule.

    The tables hold p-values and interval ends, which depend only on (n, k).
    """

    p: Array
    ends: dict[str, tuple[Array, Array]]  # of KINDS
    stopped: dict[Rule, Stopped]
    significant: Stopped  # for until_significant, which is tested at every N


@dataclass(frozen=True)
class StoppingReport(PredictsRows[Rows]):
    """Coverage of intervals and rejection rates of a true θ₀ under every rule, simulated and exact;
    and the observed tosses."""

    model: BetaPosterior
    heads: int
    tails: int
    null: float
    level: float
    alpha: float
    rules: list[Rule]
    thetas: list[float]  # the null value first
    nature: tuple[float, float]
    tables: RuleTables
    n: int  # simulated sequences of each rule
    held: Tensor  # [2, rules, 1 + thetas] for KINDS, over nature first
    rejected: Tensor  # [rules] rejections among sequences with θ = null
    tosses: Tensor  # [rules] total tosses of these sequences
    first: Tensor  # [N + 1] number of these sequences first significant after n tosses

    def log_predictive(self, batch: Rows) -> Tensor:
        """log p(x | observed tosses) [B]."""
        return self.model.log_predictive((self.heads, self.tails), batch)

    @property
    def beta(self) -> tuple[float, float]:
        """(a + h, b + t) of the posterior."""
        a, b = self.model.prior
        return a + self.heads, b + self.tails

    @property
    def p_values(self) -> dict[str, float]:
        """p-values of the observed tosses against θ > θ₀, for a fixed number of tosses or of
        tails."""
        n = np.array(self.heads + self.tails)
        k = np.array(self.heads)
        return {
            "binomial": float(rules.tail_probability(n, k, self.null, "greater")),
            "negative_binomial": rules.waiting_probability(self.heads, self.tails, self.null),
        }

    @property
    def posterior_null(self) -> float:
        """P(θ ≤ θ₀ | observed tosses), independent of the stopping rule."""
        from scipy import special

        return float(special.betainc(*self.beta, self.null))

    def coverage(self, kind: str, rule: Rule) -> tuple[Array, Array]:
        """Share of intervals that contain θ, over nature and at every θ, with standard errors."""
        share = self.held[KINDS.index(kind), self.rules.index(rule)].double().numpy() / self.n
        return share, np.sqrt(share * (1 - share) / self.n)

    def exact_coverage(self, kind: str, rule: Rule) -> list[float]:
        """Exact coverage."""
        stopped = self.tables.stopped[rule]
        low, high = (bound[stopped.n, stopped.k] for bound in self.tables.ends[kind])
        over = stopped.mean_coverage(low, high, self.nature)
        return [over, *(stopped.coverage(low, high, theta) for theta in self.thetas)]

    def exact_error(self, rule: Rule) -> float:
        """P(p < α at the end | θ₀), exact."""
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

    def figures(self) -> Figures:
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
        """One row per rule and θ: coverage and errors, simulated with standard error, and exact."""
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
        p_values = pd.DataFrame([at_hand | {"posterior_null": self.posterior_null}])
        return write_tables(folder, {"stopping": self.table(), "p_values": p_values})
