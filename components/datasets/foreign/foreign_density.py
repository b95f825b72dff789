"""Base class of datasets with a log density that another package evaluates."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
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


class ForeignDensity(NormalStart):
    """A density of another package over its unconstrained parameters θ [K, P].

    Chains start at N(start_mean, start_sd² I) in θ; draws are of the constrained parameters
    [K, P'], with those derived from them if ``derived``.  ``mean`` and ``sd`` of the P'
    parameters, if known, are the reference for scoring estimates.
    """

    own_file: ClassVar[bool] = True  # only its files show whether they have changed
    extra: ClassVar[str]  # of pyproject.toml, with the packages that it needs

    data: str | None
    derived: bool
    start_mean: FiniteFloat | list[FiniteFloat]
    mean: list[FiniteFloat] | None
    sd: list[PositiveFloat] | None

    @model_validator(mode="after")
    def _check_reference(self) -> ForeignDensity:
        if (self.mean is None) != (self.sd is None):
            raise ValueError("mean, sd: one of the two is not given; give both or neither")
        return self

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
        """A word for the model, and all that decides its density besides the data."""

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The model's word and the beginning of a checksum of its code and its data: others are
        another target.

        Raises:
            DataUnavailableError: a file does not exist.
            ConfigMismatchError: the package or the function does not exist."""
        word, parts = self.content(data_dir)
        data = b"" if self.data is None else find_file("data", self.data, data_dir).read_bytes()
        digest = hashlib.sha256()
        for part in (*parts, data):
            digest.update(len(part).to_bytes(8, "little") + part)
        return f"{self.name}-{word}-{digest.hexdigest()[:8]}"

    def read_data(self, data_dir: Path) -> dict[str, Any]:
        """Content of the JSON file ``data``, {name: number, or nested lists as an array}.

        Raises:
            DataUnavailableError: there is no such file.
            ConfigMismatchError: it holds something else."""
        if self.data is None:
            return {}
        try:
            content = json.loads(find_file("data", self.data, data_dir).read_bytes())
            if not isinstance(content, dict):
                raise ValueError("no object")
            return {name: to_array(value) for name, value in content.items()}
        except ValueError as error:
            raise ConfigMismatchError(
                f"dataset.data={self.data}: {error}; must be JSON, an object of numbers and arrays"
            ) from error

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
        tensor = partial(torch.as_tensor, device=setting.device, dtype=setting.dtype)
        for key, size in (("start_mean", functions.dim), ("mean", len(functions.names))):
            self._check_length(key, size, functions.names)
        begin = tensor(self.start_mean).expand(functions.dim)
        log_density = ForeignLogDensity(functions, self.where)
        sample_prior = self.prior_sampler(functions.dim, setting, begin)
        self._check_starts(log_density, sample_prior(TRIED, rng.at("data", 0)))
        mean, sd = (None if v is None else tensor(v) for v in (self.mean, self.sd))
        reach = 4 * self.start_sd

        def constrain(theta: Tensor) -> Tensor:
            return to_tensor(functions.constrain(to_rows(theta)), theta)  # [K, P']

        return Density(
            name=self.identity(Path(setting.data_dir), setting.offline),
            replicates=setting.replicates,
            names=functions.names,
            log_density=log_density,
            sample_prior=sample_prior,
            mean=mean,
            second_moment=None if mean is None or sd is None else mean.square() + sd.square(),
            box=[(float(b) - reach, float(b) + reach) for b in begin],
            constrain=constrain,
            free=functions.dim,
            figures=[trace],
        )

    def _check_length(self, key: str, size: int, names: list[str]) -> None:
        value = dict(self)[key]
        if isinstance(value, list) and len(value) != size:
            raise ConfigMismatchError(
                f"dataset.{key}: {len(value)} of them, {self.where} has {size}"
                f"{'' if key == 'start_mean' else f' ({short_list(names)})'}; give {size}"
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


def short_list(names: list[str]) -> str:
    """The first six names."""
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
