"""Any posterior of a posteriordb folder, from its Stan program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from torch import Tensor

from components.contracts.roles import Setting
from components.datasets.foreign.foreign_density import ForeignDensity
from components.datasets.foreign.foreign_function import ForeignFunctions
from components.datasets.foreign.stan import (
    Compiler,
    open_program,
    stan_functions,
    stan_name,
    stan_packages,
)
from components.errors import ConfigMismatchError, DataUnavailableError
from components.registry import register


@register("dataset", "posteriordb_stan")
class PosteriordbStan(ForeignDensity):
    """Any posterior of a posteriordb folder: its Stan program, data and reference draws.

    The package posteriordb reads the folder, posterior_database of a clone of
    stan-dev/posteriordb, which has 147 posteriors.  Draws contain the parameters of the reference
    draws.  The moments of these draws are the reference, with standard errors as for independent
    draws.  Without reference draws, draws contain the program's parameters, and there are no errors.
    ``dataset=posteriordb`` has eleven of these posteriors without Stan.

    Raises:
        DataUnavailableError: the folder is not a posteriordb, or lacks a file.
        ConfigMismatchError: a package is not installed, the posterior does not exist, or a reason
            of dataset=stan applies.

    Source: Magnusson, Torgander, Bürkner, Zhang, Carpenter & Vehtari (2025).
    """

    extra = "stan"

    folder: str
    posterior: str
    compiler: Compiler

    @property
    def packages(self) -> tuple[str, ...]:
        return ("posteriordb", *stan_packages(self.compiler))

    @property
    def where(self) -> str:
        return f"dataset.posterior={self.posterior}"

    def content(self, data_dir: Path) -> tuple[str, list[bytes]]:
        posterior = self._open_posterior(data_dir)
        with self._report_missing():
            program = Path(posterior.model.stan_code_file_path()).read_bytes()
            data = json.dumps(posterior.data.values(), sort_keys=True).encode()
        return self.posterior, [program, data]

    def open_functions(self, data_dir: Path) -> ForeignFunctions:
        posterior = self._open_posterior(data_dir)
        with self._report_missing():
            program = Path(posterior.model.stan_code_file_path())
            data = json.dumps(posterior.data.values())
            chains = _read_draws(posterior)
        model = open_program(program, data, self.compiler, self.where)
        if chains is None:
            return stan_functions(model, derived=False)
        names = list(chains[0])
        parameters = {stan_name(name) for name in model.param_names(include_tp=True)}
        if lacking := [name for name in names if name not in parameters]:
            raise ConfigMismatchError(
                f"{self.where}: its program lacks the parameter {lacking[0]} of the reference draws; use another "
                "posterior"
            )
        return stan_functions(model, derived=True, chosen=names)

    def read_reference(self, functions: ForeignFunctions, setting: Setting) -> dict[str, Tensor]:
        chains = _read_draws(self._open_posterior(Path(setting.data_dir)))
        if chains is None:
            return {}
        rows = [[chain[name] for name in functions.names] for chain in chains]
        # [C, N, P']
        draws = setting.tensor(rows).mT
        n = draws.shape[0] * draws.shape[1]
        square = draws.square()
        return {
            "mean": draws.mean((0, 1)),
            "second_moment": square.mean((0, 1)),
            "mean_error": draws.std((0, 1)) / n**0.5,
            "second_moment_error": square.std((0, 1)) / n**0.5,
            "reference_draws": draws,
        }

    def _open_posterior(self, data_dir: Path) -> Any:
        """The package's posterior.

        Raises:
            DataUnavailableError: the folder does not contain a database.
            ConfigMismatchError: the posterior does not exist."""
        self.require_packages()
        from posteriordb import PosteriorDatabase

        places = (Path(data_dir) / self.folder, Path(self.folder))
        place = next((p for p in places if (p / "posteriors").is_dir()), None)
        if place is None:
            raise DataUnavailableError(
                f"dataset.folder={self.folder}: contains no folder posteriors, here or in "
                f"{data_dir}; set it to posterior_database in a clone of stan-dev/posteriordb"
            )
        database = PosteriorDatabase(str(place.resolve()))
        names = database.posterior_names()
        if self.posterior not in names:
            near = get_close_matches(self.posterior, names, n=1, cutoff=0.0)
            raise ConfigMismatchError(
                f"{self.where}: not among the {len(names)} posteriors of {place}; the nearest is "
                f"{', '.join(near) or 'none'}"
            )
        with self._report_missing():
            return database.posterior(self.posterior)

    @contextmanager
    def _report_missing(self) -> Iterator[None]:
        """Re-raise a missing file or key of the database in one line.

        Raises:
            DataUnavailableError: a file or key is missing."""
        try:
            yield
        except (OSError, KeyError) as error:
            raise DataUnavailableError(
                f"{self.where}: {type(error).__name__}: {error}; complete {self.folder}"
            ) from error


def _read_draws(posterior: Any) -> list[dict[str, list[float]]] | None:
    """Reference draws of each chain by parameter; None if the posterior has none."""
    if posterior.posterior_info.get("reference_posterior_name") is None:
        return None
    chains: list[dict[str, list[float]]] = posterior.reference_draws()
    return chains
