"""Shrinkage of the channels' effects towards each other, before a budget is planned from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.series.budget.sum_law import Array, SumLaw

SHARES = (np.arange(200) + 0.5) / 200  # s²/(s² + τ²)
POWERS = (0.0, 0.5, 1.0)  # κ: exponent of an effect's posterior variance in its prior variance
# smallest posterior variance in the prior variance, as a share of the mean variance
LEAST_VARIANCE = 1e-4


def shrink_effects(law: SumLaw, channels: int, rng: np.random.Generator) -> SumLaw:
    """Condition the law on similar effects of all channels, against the optimiser's curse.

    A plan spends on the channels with the largest estimated effects, which are on average
    overestimated, unless the prior limits their differences.  With e_i the rise of the sum of sales
    by a unit spent on channel i in the first week, in the units of the budget and so comparable, ē
    and C its posterior mean and covariance, and s² = tr C/c,

        e_i ~ N(m, τ² (C_ii/s²)^κ),   m flat,   s²/(s² + τ²) ~ U(0, 1),   κ ~ U{0, ½, 1}

    is learnt from the posterior itself, taken as a Gaussian likelihood of e.  With κ = 0 effects
    are similar in money; with κ = 1 in units of their posterior standard deviation, as under a
    g-prior.  With V = C + τ² diag((C_ii/s²)^κ)

        p(τ, κ | ē) ∝ p(τ) |V|^{−½} (1'V⁻¹1)^{−½} exp(−½ (ē − m̂1)'V⁻¹(ē − m̂1)),
        m | τ, κ ~ N(m̂, 1/(1'V⁻¹1)),   m̂ = 1'V⁻¹ē/(1'V⁻¹1)

    on a grid of ``SHARES`` and ``POWERS``.  Each draw (a, r) gets its own τ, κ and m and is
    conditioned on e = m1 + (V − C)^{½} z, z ~ N(0, I), by Matheron's rule,

        (a, r) ← (a, r) + Cov((a, r), e) V⁻¹ (m1 + (V − C)^{½} z − e),

    which is exact if the draws are Gaussian.  A channel that some draws exclude is already shrunk
    by its spike, and is left out here; a single channel, or effects that do not vary over the
    draws, are unchanged.

    Args:
        law: with r [S, k·c] in the order of weeks, then channels.
        channels: c.

    Source: Smith and Winkler (2006), sections 4 and 5; Daniels (1999) for the prior of τ;
    Wilson et al. (2021), section 3, for Matheron's rule.
    """
    draws = len(law.r)
    e = law.r[:, :channels]
    e = e[:, (e != 0).all(0)]
    if e.shape[1] < 2 or draws < 2:
        return law
    away = e - e.mean(0)
    covariance = away.T @ away / (draws - 1)
    if not covariance.trace() > 0:
        return law
    x = np.concatenate([law.a[:, None], law.r], 1)
    shared = (x - x.mean(0)).T @ away / (draws - 1)
    priors = [_Alike.of(e.mean(0), covariance, power) for power in POWERS]
    log_p = np.stack([prior.log_p for prior in priors])
    p = np.exp(log_p - log_p.max()).ravel()
    cell = np.minimum(np.searchsorted(p.cumsum() / p.sum(), rng.random(draws)), p.size - 1)
    for k, prior in enumerate(priors):
        mine = cell // len(SHARES) == k
        x[mine] += prior.pull(e[mine], cell[mine] % len(SHARES), rng) @ shared.T
    return SumLaw(x[:, 0], x[:, 1:], law.v)


@dataclass(frozen=True)
class _Alike:
    """e_i ~ N(m, τ² w_i) on a grid of τ, along the axes of W^{−½} C W^{−½}."""

    root: Array  # w^{½} [c]
    axes: Array  # [c, c]
    ones: Array  # W^{−½} 1 along them [c]
    tau2: Array  # [grid]
    precision: Array  # of V along the axes [grid, c]
    weight: Array  # 1'V⁻¹1 [grid]
    mean: Array  # m̂ [grid]
    log_p: Array  # of τ, up to a constant [grid]

    @classmethod
    def of(cls, estimate: Array, covariance: Array, power: float) -> _Alike:
        variance = covariance.diagonal()
        typical = variance.mean()
        root = np.maximum(variance / typical, LEAST_VARIANCE) ** (power / 2)
        variances, axes = np.linalg.eigh(covariance / np.outer(root, root))
        ones = (1 / root) @ axes
        along = (estimate / root) @ axes
        tau2 = typical * (1 - SHARES) / SHARES
        precision = 1 / (variances.clip(0.0) + tau2[:, None])
        weight = precision @ ones**2
        mean = precision @ (ones * along) / weight
        error = along - mean[:, None] * ones
        log_p = 0.5 * (np.log(precision).sum(1) - np.log(weight) - (precision * error**2).sum(1))
        return cls(
            root=root,
            axes=axes,
            ones=ones,
            tau2=tau2,
            precision=precision,
            weight=weight,
            mean=mean,
            log_p=log_p - np.log(root).sum(),
        )

    def pull(self, e: Array, cell: Array, rng: np.random.Generator) -> Array:
        """V⁻¹ (m1 + (V − C)^{½} z − e) of draws e [S, c] with the τ of these cells [S]."""
        m = self.mean[cell] + rng.standard_normal(len(e)) / np.sqrt(self.weight[cell])
        z = rng.standard_normal(e.shape) * np.sqrt(self.tau2[cell])[:, None]
        target = m[:, None] + z * self.root
        return (
            ((target - e) / self.root @ self.axes * self.precision[cell]) @ self.axes.T / self.root
        )
