"""One control variate for the noise of the draws and the noise of the minibatch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import GlobalLatent
from components.contracts.problems import Batch, RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.gradients.by_parameter import Estimate
from components.gradients.pathwise.bound import whole_gradient
from components.gradients.pathwise.surrogate import (
    Derivatives,
    apply_affine,
    detach_affine,
    mean_path,
    path,
    without,
)
from components.registry import register

LARGEST = 2**27  # maximum numbers in a table: 1 GiB in double precision


@dataclass
class Expansions:
    """∇f̃_n(θ) = h_n + H_n θ for every row n."""

    h: Tensor  # [N, D]
    H: Tensor  # [N, D, D]
    known: Tensor  # [N] bool: False (and entries 0) for rows not yet visited


@dataclass
class ExpansionTables:
    """Table used for the correction, and table filled by the current pass."""

    used: Expansions
    h: Tensor  # sums over the rows of the table in use [D]
    H: Tensor  # [D, D]
    filled: Expansions
    seen: int  # number of rows in the current pass


@register("gradient", "joint_cv")
class JointCV(Gradient[GlobalLatent[RowBatch], RowBatch, ExpansionTables]):
    """Joint control variate: every row's f is replaced by its own quadratic with a known mean.

    The mean over draws and over all rows is known.

        g̃ = ĝ − N/B Σ_b S⁻¹ Σ_s ∂θ(ε_sb)ᵀ r_b(θ(ε_sb)) + Σ_n E[∂θ(ε)ᵀ r_n(θ(ε))]
        r_n(θ) = h_n + H_n θ
        H_n ← ∇²f_n(m),   h_n ← ∇f_n(m) − H_n m   when row n is visited, after use

    ∂θ is the Jacobian of θ = m + L ε with respect to the parameters of the current q.  Wang et al.
    store the q of each row's last visit and evaluate its expansion there, with the same memory.
    The noise of the draws and of the choice of rows both decrease.  The sum over n uses the table
    after the last complete pass: in a shuffled pass a row is visited only while its entry is old,
    so that a running sum would be biased.  A row without entry is corrected by its own expansion
    minus its mean, which reduces only the noise of its draws.  Two tables h [N, D], H [N, D, D]; D
    backward passes.

    Raises:
        ConfigMismatchError: there are no rows, or their numbers are unknown; or the table exceeds
            memory.

    Source: Wang, Geffner and Domke (2024), section 4 and Algorithm 1; Johnson and Zhang
    (2013) for a fixed mean.
    """

    requires = Requirements(
        capabilities={GlobalLatent},
    )
    unbiased = True

    n_samples: PositiveInt

    def init(self, module: GlobalLatent[RowBatch], rng: Rng) -> ExpansionTables:
        N = module.n_data
        D = module.noise_dim
        if not N:
            raise ConfigMismatchError(
                "gradient=joint_cv stores an expansion of each row, but there are no rows; use "
                "gradient=taylor_cv"
            )
        if N * D * D > LARGEST:
            raise ConfigMismatchError(
                f"the table of gradient=joint_cv would have {N * D * D} numbers; use "
                f"gradient=taylor_cv"
            )
        like = next(iter(module.parameters())).detach()

        def empty() -> Expansions:
            return Expansions(
                like.new_zeros(N, D), like.new_zeros(N, D, D), like.new_zeros(N, dtype=torch.bool)
            )

        return ExpansionTables(empty(), like.new_zeros(D), like.new_zeros(D, D), empty(), 0)

    def estimate(
        self, module: GlobalLatent[RowBatch], batch: RowBatch, rng: Rng, state: ExpansionTables
    ) -> Estimate[ExpansionTables]:
        numbers = self.numbers(batch, len(state.used.h))
        noise = module.draw_noise(batch, self.n_samples, rng.noise)
        raw_gradients, terms = whole_gradient(module, batch, noise)
        q = module.location_scale(batch)
        used = state.used
        B = batch.n_rows
        m, L = detach_affine(q)
        derivatives = Derivatives(module, batch, m.expand(1, B, -1))
        # [B, D, D]
        H_now = derivatives.columns(
            torch.eye(len(m[0]), dtype=m.dtype, device=m.device).expand(B, -1, -1)
        )
        h_now = derivatives.slope[0] - (H_now @ m[0])
        is_known = used.known[numbers][:, None]
        h = torch.where(is_known, used.h[numbers], h_now)
        H = torch.where(is_known[..., None], used.H[numbers], H_now)
        r = h + torch.einsum("bij,sbj->sbi", H, apply_affine((m, L), noise))
        batch_mean = mean_path(
            q, ~is_known * derivatives.slope[0], ~is_known[..., None] * (H_now @ L)
        )
        table_mean = mean_path(q, state.h + state.H @ m[0], state.H @ L)
        surrogate = batch.scale * (path(q, noise, r) - batch_mean) - table_mean
        gradients = without(raw_gradients, surrogate, list(module.parameters()))
        return gradients, terms, self.fill_table(state, numbers, Expansions(h_now, H_now, is_known))

    def numbers(self, batch: RowBatch, n: int) -> Tensor:
        """Row numbers of a batch in the data set [B]."""
        if isinstance(batch, Batch):
            if batch.numbers is not None:
                return batch.numbers
            if batch.n_rows == n:
                return torch.arange(n, device=batch.x.device)
        raise ConfigMismatchError(
            "gradient=joint_cv requires row numbers, which the batches do not have; use "
            "gradient=taylor_cv"
        )

    def fill_table(
        self, state: ExpansionTables, numbers: Tensor, seen: Expansions
    ) -> ExpansionTables:
        """Fill the table with the visited rows; after a complete pass it replaces the one in
        use."""
        new = state.filled
        n = len(state.used.h)
        new.h[numbers] = seen.h
        new.H[numbers] = seen.H
        new.known[numbers] = True
        rows = state.seen + len(numbers)
        if rows + len(numbers) <= n:
            return ExpansionTables(state.used, state.h, state.H, new, rows)
        used = Expansions(new.h.clone(), new.H.clone(), new.known.clone())
        return ExpansionTables(used, used.h.sum(0), used.H.sum(0), new, 0)
