"""A user-defined target: a log density given as a function of a plug-in."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import FiniteFloat, PositiveInt, model_validator
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.contracts.user_code import (
    FIX_DATA,
    ImportPath,
    import_object,
    reraise_user_error,
    short_digest,
)
from components.datasets.densities.normal_start import (
    KnownMoments,
    NormalStart,
    number_coordinates,
)
from components.errors import ConfigMismatchError
from components.maths.bijectors import POSITIVE, Interval
from components.problems.density import Density
from components.registry import register

Support = Literal["real", "positive", "unit"]
TRIED = 3  # rows for the checks of the function


@register("dataset", "log_density")
class LogDensity(NormalStart, KnownMoments):
    """User-defined log density log π(x) [S] of a batch of parameters x [S, P].

    It need not be normalised.  Samplers use unconstrained θ, coordinate by coordinate
    x = θ (``support`` real), x = e^θ (positive) or x = 1/(1 + e^−θ) (unit), and the
    log-Jacobian is added here:

        log π(θ) = log π(x(θ)) + Σ_j log |∂x_j/∂θ_j|

    ``mean`` and ``sd`` of x, if known, are the reference for scoring estimates.  The module of the
    function must also be listed in ``plugins``, and the data's name includes a checksum of its
    file.  θ [S, P].

    Raises:
        ConfigMismatchError: the function does not exist, raises, returns another shape, mixes rows,
            or is not finite at the starting points.

    Source: Gallego (2021), section 2.2.1.
    """

    imports = {"function"}

    function: ImportPath
    arguments: dict[str, Any] | None
    dim: PositiveInt
    names: list[str] | None
    support: Support | list[Support]
    start_mean: FiniteFloat | list[FiniteFloat]

    @model_validator(mode="after")
    def _check_consistency(self) -> LogDensity:
        for key in ("names", "support", "start_mean", "mean", "sd"):
            value = dict(self)[key]
            if isinstance(value, list) and len(value) != self.dim:
                raise ValueError(f"{key}: {len(value)} values for dim={self.dim}; give {self.dim}")
        if self.names is not None and len(set(self.names)) < self.dim:
            raise ValueError("names: two parameters have the same name; rename one")
        return self

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The function's name and the beginning of its file's checksum, so that other code is a
        different target."""
        import_object("dataset.function", self.function)
        return f"{self.name}-{self.function.replace(':', '.')}-{short_digest(self.function)}"

    def load(self, rng: Rng, setting: Setting) -> Density:
        where = f"dataset.function={self.function}"
        user_function = partial(
            import_object("dataset.function", self.function), **(self.arguments or {})
        )
        begin = setting.tensor(self.start_mean).expand(self.dim)

        def constrain(theta: Tensor) -> Tensor:
            return self._transform(theta)[0]  # [K, P]

        def log_density(theta: Tensor) -> Tensor:
            x, log_jacobian = self._transform(theta)
            with reraise_user_error(where, user_function.func):
                return user_function(x) + log_jacobian  # [K]

        theta = self.prior_sampler(self.dim, setting, begin)(TRIED, rng.at("data", 0))
        _check_density_contract(user_function, constrain(theta), where)
        if not bool(torch.isfinite(log_density(theta)).any()):
            raise ConfigMismatchError(
                f"{where}: not finite at any of {TRIED} starts; set dataset.start_mean, start_sd or support"
            )
        return self.make_density(
            setting,
            self.names or number_coordinates(self.dim),
            log_density,
            begin,
            box=self.start_box(begin),
            **self.moments(setting),
            constrain=constrain if self._places("positive") or self._places("unit") else None,
        )

    def _places(self, kind: str) -> list[int]:
        """Indices of parameters with a constraint."""
        support = self.support if isinstance(self.support, list) else [self.support] * self.dim
        return [j for j, constraint in enumerate(support) if constraint == kind]

    def _transform(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """x(θ) [K, P] and log |∂x/∂θ| [K]."""
        x = theta.clone()
        log_jacobian = theta.new_zeros(len(theta))
        for kind, bijector in (("positive", POSITIVE), ("unit", Interval(0.0, 1.0))):
            if places := self._places(kind):
                x[:, places], more = bijector.forward(theta[:, places])
                log_jacobian = log_jacobian + more
        return x, log_jacobian


def _check_density_contract(given: partial[object], x: Tensor, where: str) -> None:
    """Check the function's contract with a few rows x [S, P].

    Raises:
        ConfigMismatchError: the function breaks it.
    """
    with reraise_user_error(where, given.func, FIX_DATA):
        value = given(x)
        single = given(x[:1])
    if not isinstance(value, Tensor) or value.shape != (len(x),):
        got = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ConfigMismatchError(
            f"{where}: returns {got} for theta {list(x.shape)}, but must return one number per row, [{len(x)}]; use .sum(1)"
        )
    if value.dtype != x.dtype or not isinstance(single, Tensor) or single.shape != (1,):
        raise ConfigMismatchError(
            f"{where}: returns {value.dtype}, but must return one number per row, also for a single row, of "
            f"the type of theta, {x.dtype}; convert data with .to(theta)"
        )
    if not torch.allclose(value[:1], single, equal_nan=True):
        raise ConfigMismatchError(
            f"{where}: the result for a row depends on other rows; sum only over the last dimension, .sum(1)"
        )
