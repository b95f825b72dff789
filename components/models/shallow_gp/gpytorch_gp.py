"""Gaussian processes, one per task, with a kernel of GPyTorch or of the user."""

from __future__ import annotations

from components.contracts.streams import Rng
from components.models.shallow_gp.build import ShallowGPModel, build_shallow_gp
from components.models.shallow_gp.exact import ExactGP
from components.models.shallow_gp.gpytorch_kernel import GPyTorchCovariance, parse_kernel
from components.models.shallow_gp.sparse import SparseGP
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "gpytorch_gp")
class GPyTorchGP(ShallowGPModel):
    """Gaussian processes with any kernel of GPyTorch, one per task, exact or with variational
    inducing points.

    y_t = f_t(x) + N(0, σ_t²), f_t ~ GP(m_t, k_t), k_t given by ``kernel`` with task-specific
    hyper-parameters; everything else as in igp.  ``hyperprior`` τ adds Σ log N(ρ | ρ₀, τ²) over
    GPyTorch's raw (unconstrained) parameters ρ of k and over ln σ².  A user's kernel is a subclass
    of ``gpytorch.kernels.Kernel`` in a module listed in ``plugins``.

    Source: Gardner, Pleiss, Bindel, Weinberger and Wilson (2018); Rasmussen and Williams (2006),
    chapters 2 and 4."""

    kernel: str

    def build(self, problem: Supervised, rng: Rng) -> ExactGP | SparseGP:
        """Build ``ExactGP`` or ``SparseGP`` with the training labels.

        Raises:
            ConfigMismatchError: the kernel does not exist, or the posterior is exact but labels are
                not real.
        """
        kernel = parse_kernel(self.kernel, problem.train.x.shape[-1])
        covariance = GPyTorchCovariance(kernel, problem.n_tasks, problem.train.x)
        return build_shallow_gp(self, problem, covariance, rng)
