"""Variances of minibatch gradients, from two halves of each minibatch."""

from __future__ import annotations

from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.problems import Batch
from components.errors import ConfigMismatchError
from components.inference.chains import ModelBatch, SampleableProblem
from components.inference.sgmcmc.control_variates import GradientEstimates, Reference
from components.problems.supervised import Supervised


class GradientNoise(GradientEstimates):
    """Gradient estimates and, with ``noise_estimate``, a running mean V̂ of their variances.

    Each step has (1 − B/N) (ĝ₁ − ĝ₂)²/4 from the two halves of its minibatch, for each
    coordinate, and V̂ remembers about ``noise_window`` steps.  With an odd number of rows one
    row is then left out.
    """

    noise_estimate: bool
    noise_window: PositiveInt

    def check_noise_estimate(self, problem: SampleableProblem) -> None:
        """Raises ConfigMismatchError where ``noise_estimate`` has no minibatches."""
        if self.noise_estimate and not isinstance(problem, Supervised):
            raise ConfigMismatchError(
                "inference.noise_estimate: a density has no gradient noise; use false"
            )

    def split_gradient(
        self, control: Reference | None, model: LogJoint, theta: Tensor, batch: Batch
    ) -> tuple[Tensor, Tensor, Tensor]:
        """log joint [K] and gradient [K, P] of a batch, and an unbiased estimate of the variance of
        the latter [K, P]."""
        half = len(batch.x) // 2
        if half == 0:
            raise ConfigMismatchError(
                "inference.noise_estimate: a batch of 1 row has no halves; raise dataset.batch_size or use false"
            )
        n = batch.scale * len(batch.x)
        one, two = (
            self.estimate(control, model, theta, batch.part(rows, n / half))
            for rows in (slice(half), slice(half, 2 * half))
        )
        # rows are drawn without replacement
        variance = (1 - 2 * half / n) * (one[1] - two[1]).square() / 4
        return (one[0] + two[0]) / 2, (one[1] + two[1]) / 2, variance

    def estimate_with_noise(
        self,
        control: Reference | None,
        model: LogJoint,
        theta: Tensor,
        batch: ModelBatch,
        V: Tensor,
        t: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """log joint [K], gradient [K, P] and V̂ [K, P] at the step that follows t steps."""
        if not self.noise_estimate:
            return *self.estimate(control, model, theta, batch), V
        assert isinstance(batch, Batch)  # as ``check_noise_estimate`` ensures
        value, gradient, variance = self.split_gradient(control, model, theta, batch)
        return value, gradient, V + (variance - V) / min(t + 1, self.noise_window)
