"""Two Gaussian processes, written as in GPyTorch's documentation."""

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import LinearKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gpytorch.models import ApproximateGP, ExactGP
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy


class Exact(ExactGP):
    def __init__(self, train_x, train_y, likelihood):
        super().__init__(train_x, train_y, likelihood)
        self.mean = ConstantMean()
        self.kernel = ScaleKernel(RBFKernel(ard_num_dims=train_x.shape[1])) + LinearKernel()

    def forward(self, x):
        return MultivariateNormal(self.mean(x), self.kernel(x))


class Sparse(ApproximateGP):
    def __init__(self, inducing_points, functions=1):
        batch = torch.Size([functions] if functions > 1 else [])
        q = CholeskyVariationalDistribution(len(inducing_points), batch_shape=batch)
        super().__init__(VariationalStrategy(self, inducing_points, q))
        self.mean = ConstantMean(batch_shape=batch)
        self.kernel = ScaleKernel(RBFKernel(batch_shape=batch), batch_shape=batch)

    def forward(self, x):
        return MultivariateNormal(self.mean(x), self.kernel(x))
