"""Log joint to which q(θ) is fitted, for a density or for rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import GaussianPrior, LogJoint
from components.contracts.problems import Batch, RowBatch, Rows
from components.contracts.sequences import Series
from components.inference.chains import SampleableProblem
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled


@dataclass(frozen=True)
class RowwiseLogJoint:
    """Log joint to which q(θ) is fitted; its parameters are not among the parameters of q."""

    model: LogJoint
    context_dim: int = 0  # number of values of a row, inputs and labels; 0 for a density
    n_data: int = 0  # N, rows of the training set; 0 for a density

    @classmethod
    def of(cls, model: LogJoint, problem: SampleableProblem) -> RowwiseLogJoint:
        """Log joint of a model for a density, for labels, or for rows without labels."""
        if isinstance(problem, Unlabelled) and isinstance(problem.train, Rows):
            return cls(model, problem.train.x[0].numel(), problem.n)
        return (
            cls(model, problem.n_inputs + problem.n_tasks, problem.n)
            if isinstance(problem, Supervised)
            else cls(model)
        )

    @property
    def prior_std(self) -> Tensor | None:
        """s [P] if the prior is N(0, diag s²)."""
        return self.model.gaussian_prior() if isinstance(self.model, GaussianPrior) else None

    def log_prior(self, theta: Tensor) -> Tensor:
        """[S, B, P] -> [S, B]."""
        return self.model.log_prior(theta.flatten(0, 1)).unflatten(0, theta.shape[:2])

    def log_likelihood(self, theta: Tensor, batch: RowBatch) -> Tensor:
        """log p(y_b | θ_sb) [S, B] for θ [S, B, P], or for one θ for all rows [S, 1, P].

        It is 0 for a density, which has no data.  If every row has its own θ, the model is
        evaluated for all B² pairs and B of them are used.
        """
        if isinstance(batch, Series):
            return self.model.log_likelihood(theta[:, 0], batch)  # one row, for any noise
        if not isinstance(batch, Batch) and not self.n_data:
            return theta.new_zeros(len(theta), batch.n_rows)
        assert isinstance(batch, Batch | Rows)
        if theta.shape[1] == 1:
            return self.model.log_likelihood(theta[:, 0], batch)
        pairs = self.model.log_likelihood(theta.flatten(0, 1), batch)  # [S·B, B]
        return torch.linalg.diagonal(pairs.unflatten(0, theta.shape[:2]))
