"""Effects of coaching in eight schools, with a non-centred parameterisation."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from components.datasets.named_target import NamedTarget, Variable
from components.datasets.posteriordb_densities.scale_priors import half_cauchy
from components.maths.bijectors import POSITIVE

HEIGHT = 5.0
TAU = half_cauchy(5.0)  # prior standard deviation of μ, prior of τ


def eight_schools(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """y_j ~ N(ϑ_j, σ_j²), ϑ = μ + τη, η_j ~ N(0, 1), μ ~ N(0, 5²), τ ~ half-Cauchy(5);  θ = (η, μ, log τ).

    Starts have η ~ N(0, 1) and μ ~ N(0, 5²) from the prior, log τ ~ N(1, ½²), which avoids the
    prior's far tail, where the η are a hundred times narrower and a chain with a shared step size
    would get stuck."""
    y, sigma = (like.new_tensor(data[key]) for key in ("y", "sigma"))

    def report(eta: Tensor, mu: Tensor, tau: Tensor) -> tuple[Tensor, ...]:
        return mu + tau * eta, mu, tau

    def recover(effect: Tensor, mu: Tensor, tau: Tensor) -> tuple[Tensor, ...]:
        return (effect - mu) / tau, mu, tau

    def log_density(theta: Tensor) -> Tensor:
        eta, mu, log_tau = theta.split([len(y), 1, 1], 1)
        error = (y - (mu + log_tau.exp() * eta)) / sigma
        log_prior = -0.5 * eta.square().sum(1, True) - 0.5 * (mu / HEIGHT).square() + TAU(log_tau)
        # the last: log-Jacobian
        return (log_prior - 0.5 * error.square().sum(1, True) + log_tau).squeeze(1)

    variables = (
        Variable("theta", len(y)),
        Variable("mu", spread=HEIGHT),
        Variable("tau", bijector=POSITIVE, centre=1.0, spread=0.5),
    )
    return NamedTarget(variables, log_density, like, report, recover)
