"""Variance reduction by a recursion over steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import Pathwise
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate, as_gradients, flat
from components.gradients.pathwise.bound import whole_gradient
from components.gradients.pathwise.snapshot import PassSnapshot, gather, gradient_at, init_snapshot
from components.maths.line_search.module_bound import flatten
from components.registry import register


@dataclass
class SarahState:
    """The snapshot at the start of a recursion, and its last parameters and gradient."""

    snapshot: PassSnapshot
    phi: Tensor  # φ_{t−1} [P]
    gradient: Tensor  # g_{t−1} [P]
    steps: int  # length of the recursion so far; 0: restart


@register("gradient", "sarah")
class SARAH(Gradient[Pathwise[RowBatch], RowBatch, SarahState]):
    """Stochastic recursive gradient of a bound.

        g_t = ĝ_B(φ_t, ε) − ĝ_B(φ_{t−1}, ε) + g_{t−1}

    Minibatch B and noise ε are the same in both gradients, so that g_t changes in proportion to φ.
    The recursion restarts after ``restart`` steps at SVRG's estimate with a = 1 (at ĝ in the first
    pass); its snapshot is gathered as in ``svrg``.  Given earlier steps g_t is biased, because it
    inherits the error of g_{t−1}; E g_t = E ∇L(φ_t) over all steps holds only if the steps do not
    depend on it.

    Source: Nguyen, Liu, Scheinberg and Takáč (2017), Algorithm 1.
    """

    requires = Requirements(capabilities={Pathwise})
    unbiased = False

    n_samples: PositiveInt
    snapshot_samples: PositiveInt
    restart: PositiveInt

    def init(self, module: Pathwise[RowBatch], rng: Rng) -> SarahState:
        snapshot = init_snapshot(module)
        return SarahState(snapshot, snapshot.phi.clone(), snapshot.mean.clone(), 0)

    def estimate(
        self, module: Pathwise[RowBatch], batch: RowBatch, rng: Rng, state: SarahState
    ) -> Estimate[SarahState]:
        noise = module.draw_noise(batch, self.n_samples, rng.noise)
        raw, terms = whole_gradient(module, batch, noise)
        gradient = flat(raw, module.parameters())
        snapshot = state.snapshot
        if state.steps:
            gradient = gradient - gradient_at(module, batch, noise, state.phi) + state.gradient
        elif snapshot.known:
            gradient = gradient - gradient_at(module, batch, noise, snapshot.phi) + snapshot.mean
        steps = (state.steps + 1) % self.restart
        later = replace(
            state,
            snapshot=gather(snapshot, module, batch, self.snapshot_samples, rng.noise),
            phi=flatten(module.parameters()),
            gradient=gradient,
            steps=steps,
        )
        return as_gradients(gradient, raw, module), terms, later
