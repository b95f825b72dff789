"""Probabilistic principal component analysis, and matrix factorisation of rows with gaps."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.models.latent.linear_rows import LinearFactors, LinearRows, fit_factors
from components.models.latent.principal_axes import principal_axes
from components.problems.unlabelled import Unlabelled
from components.registry import register


@register("model", "ppca")
class PPCA(Model[Unlabelled, LinearRows]):
    """Probabilistic principal component analysis at its maximum likelihood, with the exact p(z|x)
    as guide.

        x ~ N(W z + μ, σ² I), z ~ N(0, I):   μ = x̄,   σ² = (I − Q)⁻¹ Σ_{j>Q} λ_j,
        W = U_Q (Λ_Q − σ² I)^½,   p(z|x) = N(Λ_Q⁻¹ Wᵀ (x − μ), σ² Λ_Q⁻¹)

    λ_j, u_j are eigenvalues and eigenvectors of the covariance of the training rows.  −ELBO of a
    row equals −log p(x), so inference=fixed scores it without training.  It is the vae without
    hidden layers; other inference methods start at the maximum.

    Rows with gaps (NaN) have no closed form: EM over their observed values (``linear_rows``),
    initialised at the closed form for rows with gaps filled by column means; p(z|x) is exact for
    every pattern of gaps, and gaps are imputed by their conditional Gaussian.  With ``weight_sd``
    the columns of W have the prior N(0, τ² I), eqs. (2.9) to (2.11) with x integrated out;
    ``latents: points`` also puts z at its mode, which is probabilistic matrix factorisation.  x [N,
    …].

    Raises ConfigMismatchError if a row does not have more values than ``latent_dim``, or a column
    has no observed value.

    Source: Tipping and Bishop (1999), eqs. (6) to (8), section 3.3 (gaps); Salakhutdinov and Mnih
    (2008); Boustati (2021), section 2.1.1.1."""

    requires = Requirements(kinds={"unlabelled"}, values={"real", "incomplete"})

    latent_dim: PositiveInt
    latents: Literal["integrated", "points"]
    weight_sd: PositiveFloat | None

    def _closed_form(self, rows: Tensor) -> LinearFactors:
        Q = self.latent_dim
        axes = principal_axes(rows, Q, self.name)
        noise = axes.variances[Q:].mean()  # eq. (8)
        largest = axes.variances[:Q]
        W = axes.directions * (largest - noise).clamp_min(0).sqrt()  # eq. (7)  [I, Q]
        return LinearFactors(W, axes.center, noise)

    def _fit(self, rows: Tensor) -> LinearFactors:
        """Factors of rows [N, I], with NaN for gaps."""
        gaps = rows.isnan()
        points = self.latents == "points"
        weight_sd = self.weight_sd or (1.0 if points else math.inf)
        if not gaps.any() and weight_sd == math.inf:
            return self._closed_form(rows)
        if bool((empty := gaps.all(0)).any()):
            raise ConfigMismatchError(
                f"model=ppca: column {int(empty.long().argmax()) + 1} has no observed value in the "
                "training rows; remove it"
            )
        start = self._closed_form(torch.where(gaps, rows.nanmean(0), rows))
        return fit_factors(rows, start, weight_sd, points)

    def build(self, problem: Unlabelled, rng: Rng) -> LinearRows:
        x = problem.train.x
        return LinearRows(self._fit(x.flatten(1)), x, rng)
