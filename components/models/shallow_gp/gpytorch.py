"""A user's own Gaussian process, written for GPyTorch."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.models import ApproximateGP, ExactGP
from pydantic import PositiveFloat, PositiveInt

from components.contracts.requirements import SUPERVISED
from components.contracts.roles import Model
from components.contracts.streams import Rng, seed_from
from components.contracts.user_code import ImportPath, import_object
from components.errors import ConfigMismatchError
from components.maths.exponential.global_stream import keep_global_streams
from components.models.deep_gp.likelihoods import Link, make_likelihood
from components.models.shallow_gp.user_gp import UserExactGP, UserSparseGP, exactly
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "gpytorch")
class GPyTorch(Model[Supervised, UserExactGP | UserSparseGP]):
    """A user's Gaussian process, derived from GPyTorch's ``ExactGP`` or ``ApproximateGP``.

    It is constructed as in GPyTorch's documentation: ``GP(train_x, train_y, likelihood,
    **arguments)`` constructs an ``ExactGP``: real labels of one task, with the bound log p(y).
    ``GP(inducing_points, **arguments)`` constructs an ``ApproximateGP``: any labels, minibatches,
    and inducing points initialised at training rows drawn from the seed:

        ELBO = N/B Σ_b E_q[log p(y_b|f_b)] − KL[q(u) ‖ p(u)]
               + log p(hyper-parameters), if it registers priors

    Likelihoods are those of model=gpytorch_gp, which supports custom kernels without a class. The
    module of the class must also be listed in ``plugins``. x [B, D], y [B, T].

    Raises:
        ConfigMismatchError: the class does not exist, has another base class, raises or returns a
            wrong number of functions, or does not support the labels.

    Source: Gardner, Pleiss, Bindel, Weinberger and Wilson (2018).
    """

    requires = SUPERVISED
    imports = {"class_path"}

    class_path: ImportPath
    arguments: dict[str, Any] | None
    noise_variance: PositiveFloat
    n_inducing: PositiveInt
    link: Link
    quadrature_nodes: PositiveInt

    def build(self, problem: Supervised, rng: Rng) -> UserExactGP | UserSparseGP:
        where = f"model.class_path={self.class_path}"
        arguments = self.arguments or {}
        cls = import_object("model.class_path", self.class_path)
        if not (isinstance(cls, type) and issubclass(cls, ExactGP | ApproximateGP)):
            raise ConfigMismatchError(
                f"{where}: must derive from gpytorch.models.ExactGP or ApproximateGP"
            )
        seed = seed_from(rng.init)
        with exactly(where, cls), keep_global_streams(problem.train.x.device):
            # constructors draw random numbers, and q(u) starts with a little noise
            torch.manual_seed(seed)
            if issubclass(cls, ExactGP):
                return self._exact(cls, arguments, problem, where)
            x = problem.train.x
            rows = torch.randperm(len(x), generator=rng.init, device=rng.init.device)[
                : self.n_inducing
            ]
            gp = cls(x[rows.to(x.device)].clone(), **arguments).to(x)
            likelihood = make_likelihood(
                problem, self.noise_variance, self.link, self.quadrature_nodes
            )
            module = UserSparseGP(gp, likelihood, problem.n_tasks, where)
            module.marginals(x[:2])
            return module

    def _exact(
        self, cls: type[ExactGP], given: dict[str, Any], problem: Supervised, where: str
    ) -> UserExactGP:
        if problem.target != "real" or problem.n_tasks > 1:
            label_text = (
                f"{problem.n_tasks} tasks" if problem.n_tasks > 1 else f"{problem.target} labels"
            )
            raise ConfigMismatchError(
                f"{where}: an ExactGP requires real labels of one task, but {problem.name} has {label_text}; use ApproximateGP"
            )
        is_labelled = problem.train.mask[:, 0]
        x = problem.train.x[is_labelled]
        y = problem.train.y[is_labelled, 0]
        likelihood = GaussianLikelihood().to(x)
        likelihood.noise = self.noise_variance
        return UserExactGP(cls(x, y, likelihood, **given).to(x), where)
