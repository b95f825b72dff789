"""Base class of datasets with a log density evaluated by another package."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import FiniteFloat
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.contracts.user_code import reraise_user_error
from components.datasets.data_files import find_own_file
from components.datasets.densities.normal_start import KnownMoments, NormalStart
from components.datasets.foreign.foreign_function import (
    ForeignFunctions,
    ForeignLogDensity,
    to_rows,
    to_tensor,
)
from components.errors import ConfigMismatchError, require_package
from components.problems.density import Density

TRIED = 3  # starts for the checks of the density
NO_PARAMETER = "the model has no continuous parameter; add one with a prior"


class ForeignDensity(NormalStart):
    """A density evaluated by another package over unconstrained parameters θ [K, P].

    Chains start at N(start_mean, start_sd² I) in θ; draws contain the constrained parameters
    [K, P'].
    """

    own_file: ClassVar[bool] = True  # changes are detected from its files
    extra: ClassVar[str]  # optional dependency group of pyproject.toml with the required packages

    start_mean: FiniteFloat | list[FiniteFloat]

    @property
    @abstractmethod
    def packages(self) -> tuple[str, ...]:
        """Required packages."""

    @property
    @abstractmethod
    def where(self) -> str:
        """The key that names the model, with its value, for messages."""

    @abstractmethod
    def open_functions(self, data_dir: Path) -> ForeignFunctions:
        """The model's functions."""

    @abstractmethod
    def content(self, data_dir: Path) -> tuple[str, list[bytes]]:
        """A name for the model, and all inputs that determine its density."""

    @abstractmethod
    def read_reference(self, functions: ForeignFunctions, setting: Setting) -> dict[str, Tensor]:
        """Known moments of the parameters, in the order of their names, as fields of
        ``Density``."""

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The model's name and the beginning of a checksum of its code and data.

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
            ConfigMismatchError: a package is missing; the message names the extra."""
        for package in self.packages:
            require_package(package, f"dataset={self.name}", self.extra)

    def load(self, rng: Rng, setting: Setting) -> Density:
        self.require_packages()
        functions = self.open_functions(Path(setting.data_dir))
        if functions.dim == 0:
            raise ConfigMismatchError(f"{self.where}: {NO_PARAMETER}")
        check_length("start_mean", self.start_mean, functions.dim, self.where)
        begin = setting.tensor(self.start_mean).expand(functions.dim)
        log_density = ForeignLogDensity(functions, self.where)
        sample_prior = self.prior_sampler(functions.dim, setting, begin)
        self._check_starts(log_density, sample_prior(TRIED, rng.at("data", 0)))

        def constrain(theta: Tensor) -> Tensor:
            return to_tensor(functions.constrain(to_rows(theta)), theta)  # [K, P']

        return self.make_density(
            setting,
            functions.names,
            log_density,
            begin,
            box=self.start_box(begin),
            constrain=constrain,
            free=functions.dim,
            **self.read_reference(functions, setting),
        )

    def _check_starts(self, log_density: ForeignLogDensity, theta: Tensor) -> None:
        """Evaluate the density and its gradient at starts θ [K, P]."""
        with reraise_user_error(self.where), torch.enable_grad():
            value = log_density(theta.requires_grad_())
        if not bool(torch.isfinite(value).any()):
            raise ConfigMismatchError(
                f"{self.where}: not finite at any of {len(theta)} starts; set dataset.start_mean "
                "or start_sd"
            )


class OwnDensity(ForeignDensity, KnownMoments):
    """A user-defined density with its data and, if known, its moments.

    With ``derived``, draws also contain derived parameters.  ``mean`` and
    ``sd`` of the P' parameters, if known, are the reference for scoring estimates.
    """

    data: str | None
    derived: bool

    def read_reference(self, functions: ForeignFunctions, setting: Setting) -> dict[str, Tensor]:
        for key, value in (("mean", self.mean), ("sd", self.sd)):
            check_length(key, value, len(functions.names), self.where, functions.names)
        return self.moments(setting)

    def read_text(self, data_dir: Path) -> str:
        """Content of the file ``data``, or an empty object, as in ``read_object``."""
        return "{}" if self.data is None else read_object(self.data, data_dir)


def read_object(file: str, data_dir: Path) -> str:
    """Content of a JSON file.

    Raises:
        DataUnavailableError: the file does not exist.
        ConfigMismatchError: the file is not a JSON object."""
    text = find_own_file("data", file, data_dir).read_text(encoding="utf-8")
    try:
        if not isinstance(json.loads(text), dict):
            raise ValueError("no object")
    except ValueError as error:
        raise ConfigMismatchError(
            f"dataset.data={file}: {error}; must be a JSON object of numbers and arrays"
        ) from error
    return text


def check_length(
    key: str, value: object, size: int, where: str, names: list[str] | None = None
) -> None:
    """Check a key that may be a list.

    Raises:
        ConfigMismatchError: the length differs from the expected one."""
    if isinstance(value, list) and len(value) != size:
        listed = f" ({', '.join(names[:6])}{', …' if size > 6 else ''})" if names else ""
        raise ConfigMismatchError(
            f"dataset.{key}: {len(value)} values, but {where} has {size}{listed}; give {size}"
        )


def to_array(value: Any) -> Any:
    """Convert nested lists of numbers to an array; other values are unchanged.

    Raises:
        ValueError: the lists are ragged or contain null."""
    if not isinstance(value, list):
        return value
    array = np.asarray(value)
    if array.dtype == object:
        raise ValueError("a list of the data contains null; give only numbers")
    return array


def indexed_names(base: str, shape: tuple[int, ...]) -> list[str]:
    """mu, theta[0], theta[1], w[0,1]: the names of an array's elements, the last index fastest."""
    if not shape:
        return [base]
    return [f"{base}[{','.join(map(str, index))}]" for index in np.ndindex(*shape)]
