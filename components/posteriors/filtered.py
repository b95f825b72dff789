"""What a filter hands back: the filtering distributions of R replicates at every time so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor


@dataclass
class Filtered:
    """Summaries of p(x_t | y_1:t) for t = 1 … ``t``; a filter allocates all T times once and fills them in place."""

    t: int  # times filtered so far
    mean: Tensor  # [R, T, dx]
    variance: Tensor  # [R, T, dx]
    lower: Tensor  # 5 % quantile [R, T, dx]
    upper: Tensor  # 95 % quantile [R, T, dx]
    predicted: Tensor  # E[y_t | y_1:t−1] [R, T, dy]
    log_normaliser: Tensor  # log ∏_t ∫ G_t dπ_t|t−1 [R]
    evidence: bool = True  # G is the likelihood, and the normaliser the evidence

    @classmethod
    def allocate(cls, observations: Tensor, dx: int, evidence: bool = True) -> Filtered:
        """Room for the filtering distributions of all observations [R, T, dy]."""
        r, times, dy = observations.shape

        def room(d: int) -> Tensor:
            return observations.new_full((r, times, d), float("nan"))

        return cls(0, room(dx), room(dx), room(dx), room(dx), room(dy), observations.new_zeros(r), evidence)

    def so_far(self) -> Filtered:
        """The times that have been filtered, as views."""
        t = self.t
        return replace(
            self,
            mean=self.mean[:, :t],
            variance=self.variance[:, :t],
            lower=self.lower[:, :t],
            upper=self.upper[:, :t],
            predicted=self.predicted[:, :t],
        )
