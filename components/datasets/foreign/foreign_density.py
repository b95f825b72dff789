"""Base class of datasets with a log density that another package evaluates."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import FiniteFloat, PositiveFloat, model_validator
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.contracts.user_code import reraise_user_error
from components.datasets.densities.normal_start import NormalStart
from components.datasets.foreign.foreign_function import (
    ForeignFunctions,
    ForeignLogDensity,
    to_rows,
    to_tensor,
)
from components.errors import ConfigMismatchError, DataUnavailableError
from components.figures.samples.trace import trace
from components.problems.density import Density

TRIED = 3  # starts at which the density is tried


@dataclass(frozen=True)
class DensityReference:
    """What is known of the parameters: moments [P'], their standard errors, draws [C, N, P']."""

    mean: Tensor | None = None
    second_moment: Tensor | None = None
    mean_error: Tensor | None = None
    second_moment_error: Tensor | None = None
    reference_draws: Tensor | None = None


class ForeignDensity(NormalStart):
    """A density of another package over its unconstrained parameters θ [K, P].

    Chains start at N(start_mean, start_sd² I) in θ; draws are of the constrained parameters
    [K, P'].
    """

    own_file: ClassVar[bool] = True  # only its files show whether they have changed
    extra: ClassVar[str]  # of pyproject.toml, with the packages that it needs

    start_mean: FiniteFloat | list[FiniteFloat]

    @property
    @abstractmethod
    def packages(self) -> tuple[str, ...]:
        """Packages that it needs."""

    @property
    @abstractmethod
    def where(self) -> str:
        """The key that names the model, with its value: the beginning of messages."""

    @abstractmethod
    def open_functions(self, data_dir: Path) -> ForeignFunctions:
        """The model's functions."""

    @abstractmethod
    def content(self, data_dir: Path) -> tuple[str, list[bytes]]:
        """A word for the model, and all that decides its density."""

    @abstractmethod
    def read_reference(self, functions: ForeignFunctions, setting: Setting) -> DensityReference:
        """What is known of the parameters, in the order of their names."""

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The model's word and the beginning of a checksum of its code and its data: others are
        another target.

        Raises:
            DataUnavailableError: a file does not exist.
            ConfigMismatchError: the package or the function does not exist."""
        word, parts = self.content(Path(data_dir))
        digest = hashlib.sha256()
        for part in parts:
            digest.update(len(part).to_bytes(8, "little") + part)
        return f"{self.name}-{word}-{digest.hexdigest()[:8]}"

    def require_packages(self) -> None:
        """Check that the packages are installed, without importing them.

        Raises:
            ConfigMismatchError: one is not; the message names the extra."""
        for package in self.packages:
            if find_spec(package) is None:
                raise ConfigMismatchError(
                    f"dataset={self.name}: needs the package {package}; "
                    f"pip install 'bayes-runner[{self.extra}]'"
                )

    def load(self, rng: Rng, setting: Setting) -> Density:
        self.require_packages()
        functions = self.open_functions(Path(setting.data_dir))
        if functions.dim == 0:
            raise ConfigMismatchError(
                f"{self.where}: the model has no continuous parameter to draw; give it a prior for one"
            )
        check_length("start_mean", self.start_mean, functions.dim, self.where)
        begin = torch.as_tensor(self.start_mean, device=setting.device, dtype=setting.dtype)
        begin = begin.expand(functions.dim)
        log_density = ForeignLogDensity(functions, self.where)
        sample_prior = self.prior_sampler(functions.dim, setting, begin)
        self._check_starts(log_density, sample_prior(TRIED, rng.at("data", 0)))
        reach = 4 * self.start_sd

        def constrain(theta: Tensor) -> Tensor:
            return to_tensor(functions.constrain(to_rows(theta)), theta)  # [K, P']

        return Density(
            name=self.identity(setting.data_dir, setting.offline),
            replicates=setting.replicates,
            names=functions.names,
            log_density=log_density,
            sample_prior=sample_prior,
            box=[(float(b) - reach, float(b) + reach) for b in begin],
            constrain=constrain,
            free=functions.dim,
            figures=[trace],
            **vars(self.read_reference(functions, setting)),
        )

    def _check_starts(self, log_density: ForeignLogDensity, theta: Tensor) -> None:
        """Evaluate the density and its gradient at starts θ [K, P]."""
        with reraise_user_error(self.where), torch.enable_grad():
            value = log_density(theta.requires_grad_())
        if not bool(torch.isfinite(value).any()):
            raise ConfigMismatchError(
                f"{self.where}: finite at none of {len(theta)} starts; "
                "set dataset.start_mean or start_sd"
            )


class OwnDensity(ForeignDensity):
    """A density that the user states, with its data and, if known, its moments.

    With ``derived``, draws have the parameters that are derived from others too.  ``mean`` and
    ``sd`` of the P' parameters, if known, are the reference for scoring estimates.
    """

    data: str | None
    derived: bool
    mean: list[FiniteFloat] | None
    sd: list[PositiveFloat] | None

    @model_validator(mode="after")
    def _check_reference(self) -> OwnDensity:
        if (self.mean is None) != (self.sd is None):
            raise ValueError("mean, sd: one of the two is not given; give both or neither")
        return self

    def read_reference(self, functions: ForeignFunctions, setting: Setting) -> DensityReference:
        if self.mean is None or self.sd is None:
            return DensityReference()
        for key, value in (("mean", self.mean), ("sd", self.sd)):
            check_length(key, value, len(functions.names), self.where, functions.names)
        tensor = partial(torch.as_tensor, device=setting.device, dtype=setting.dtype)
        mean, sd = tensor(self.mean), tensor(self.sd)
        return DensityReference(mean, mean.square() + sd.square())

    def read_text(self, data_dir: Path) -> str:
        """Content of the file ``data``, or an empty object.

        Raises:
            DataUnavailableError: there is no such file.
            ConfigMismatchError: it is not JSON, or no object."""
        if self.data is None:
            return "{}"
        text = find_file("data", self.data, data_dir).read_text(encoding="utf-8")
        try:
            if not isinstance(json.loads(text), dict):
                raise ValueError("no object")
        except ValueError as error:
            raise ConfigMismatchError(
                f"dataset.data={self.data}: {error}; must be JSON, an object of numbers and arrays"
            ) from error
        return text


def check_length(
    key: str, value: object, size: int, where: str, names: list[str] | None = None
) -> None:
    """Check a key that may be a list.

    Raises:
        ConfigMismatchError: it has another length."""
    if isinstance(value, list) and len(value) != size:
        listed = f" ({', '.join(names[:6])}{', …' if size > 6 else ''})" if names else ""
        raise ConfigMismatchError(
            f"dataset.{key}: {len(value)} of them, {where} has {size}{listed}; give {size}"
        )


def find_file(key: str, path: str, data_dir: Path) -> Path:
    """Path of a file in the data folder, or from where the runner was started.

    Raises:
        DataUnavailableError: there is none."""
    places = (Path(data_dir) / path, Path(path))
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise DataUnavailableError(
            f"dataset.{key}={path}: no such file, neither here nor in {Path(data_dir)}"
        )
    return file


def to_array(value: Any) -> Any:
    """Nested lists of numbers as an array; anything else as it is.

    Raises:
        ValueError: the lists are ragged."""
    return np.asarray(value) if isinstance(value, list) else value


def indexed_names(base: str, shape: tuple[int, ...], first: int = 0) -> list[str]:
    """mu, theta[0], theta[1], w[0,1]: the names of an array's elements, the last index fastest."""
    if not shape:
        return [base]
    return [f"{base}[{','.join(str(i + first) for i in index)}]" for index in np.ndindex(*shape)]
