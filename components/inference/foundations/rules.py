"""Stopping rules as tables over the observed counts, and the number of sequences that they stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from components.maths.compiled.loops import Array
from components.maths.divergences.binomial_bound import lower_bound, upper_bound

Rule = Literal["fixed", "until_significant", "until_short", "negative_binomial"]
Alternative = Literal["greater", "two_sided"]


def tail_probability(n: Array, k: Array, null: float, alternative: Alternative) -> Array:
    """p-values of k heads in n tosses as if n were fixed: P(K ≥ k | θ₀), or twice the smaller of
    the two tails."""
    from scipy import special

    above = special.bdtrc(k - 1.0, n, null)  # P(K ≥ k)
    above = np.where(k == 0, 1.0, above)
    if alternative == "greater":
        return above
    return np.minimum(1.0, 2 * np.minimum(above, special.bdtr(k.astype(float), n, null)))


def waiting_probability(heads: int, tails: int, null: float) -> float:
    """p-value of h heads before the last of a fixed number t of tails: P(H ≥ h | θ₀) = I_θ₀(h,
    t)."""
    from scipy import special

    if tails == 0:
        return float("nan")  # no tails were waited for
    return float(special.betainc(heads, tails, null)) if heads else 1.0


def confidence_interval(n: Array, k: Array, level: float) -> tuple[Array, Array]:
    """Ends of the Clopper–Pearson interval, which contains θ with at least the given probability if
    n is fixed.

    Source: Clopper & Pearson (1934)."""
    half = 0.5 * (1 - level)
    return lower_bound(k, n, half), upper_bound(k, n, half)


def credible_interval(
    n: Array, k: Array, level: float, prior: tuple[float, float]
) -> tuple[Array, Array]:
    """Ends of the central interval of Beta(a + k, b + n − k)."""
    from scipy import special

    half = 0.5 * (1 - level)
    a = prior[0] + k
    b = prior[1] + n - k
    return special.betaincinv(a, b, half), special.betaincinv(a, b, 1 - half)


def grid(n_max: int) -> tuple[Array, Array, Array]:
    """n [N + 1, 1], k [1, N + 1], and True where k ≤ n."""
    n = np.arange(n_max + 1)[:, None]
    k = np.arange(n_max + 1)[None]
    return n, k, k <= n


@dataclass(frozen=True)
class Stopped:
    """The M points (n tosses, k heads) at which a rule stops, with the number of paths to each.

    A path is a sequence of tosses that reaches such a point first.

    P(end at (n, k) | θ) = c_nk θᵏ (1 − θ)ⁿ⁻ᵏ: the rule enters only through c, the number of
    paths, which does not depend on θ.
    """

    stop: Array  # [N + 1, N + 1] bool; True in row N
    n: Array  # [M]
    k: Array  # [M]
    log_paths: Array  # log c [M]

    @classmethod
    def by(cls, stop: Array) -> Stopped:
        """Compute c by induction: c_nk = c_{n−1,k−1} + c_{n−1,k}, without the stopped sequences."""
        stop = stop.copy()
        n_max = len(stop) - 1
        stop[n_max] = True
        stop[0] = False  # rules cannot stop before the first toss
        endpoints: list[tuple[Array, Array, Array]] = []
        log_counts = np.full(n_max + 1, -np.inf)
        log_counts[0] = 0.0
        for n in range(1, n_max + 1):
            log_counts = np.logaddexp(log_counts, np.concatenate([[-np.inf], log_counts[:-1]]))
            stopped_heads = np.flatnonzero(stop[n] & (log_counts > -np.inf))
            endpoints.append(
                (np.full(len(stopped_heads), n), stopped_heads, log_counts[stopped_heads])
            )
            log_counts = np.where(stop[n], -np.inf, log_counts)
        places, heads, paths = (np.concatenate(parts) for parts in zip(*endpoints, strict=True))
        return cls(stop, places, heads, paths)

    def probabilities(self, theta: float) -> Array:
        """P(stop at each of the M points | θ)."""
        from scipy import special

        return np.exp(
            self.log_paths + special.xlogy(self.k, theta) + special.xlog1py(self.n - self.k, -theta)
        )

    def mean_probabilities(self, prior: tuple[float, float]) -> Array:
        """The same, integrated over θ ~ Beta(a, b): c B(a + k, b + n − k)/B(a, b)."""
        from scipy import special

        a, b = prior
        return np.exp(
            self.log_paths + special.betaln(a + self.k, b + self.n - self.k) - special.betaln(a, b)
        )

    def coverage(self, low: Array, high: Array, theta: float) -> float:
        """P(low ≤ θ ≤ high | θ) of intervals at the points."""
        return float(self.probabilities(theta)[(low <= theta) & (theta <= high)].sum())

    def mean_coverage(self, low: Array, high: Array, nature: tuple[float, float]) -> float:
        """The same, integrated over θ ~ Beta(a, b)."""
        from scipy import special

        a = nature[0] + self.k
        b = nature[1] + self.n - self.k
        mass = special.betainc(a, b, high) - special.betainc(a, b, low)
        return float((self.mean_probabilities(nature) * mass).sum())
