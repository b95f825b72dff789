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
    log_normaliser: Tensor  # log ∏_t ∫ G_t dπ_t|t−1; the log evidence where G is the likelihood [R]

    @classmethod
    def allocate(cls, observations: Tensor, dx: int) -> Filtered:
        """Room for the filtering distributions of all observations [R, T, dy]."""
        r, times, dy = observations.shape

        def room(d: int) -> Tensor:
            return observations.new_full((r, times, d), float("nan"))

        return cls(0, room(dx), room(dx), room(dx), room(dx), room(dy), observations.new_zeros(r))

    def so_far(self) -> Filtered:
        """The times that have been filtered, as views."""
        parts = {name: getattr(self, name)[:, : self.t] for name in ("mean", "variance", "lower", "upper", "predicted")}
        return replace(self, **parts)
