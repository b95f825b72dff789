"""A Stan program as a target."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import field_validator

from components.datasets.data_files import find_own_file
from components.datasets.foreign.foreign_density import OwnDensity
from components.datasets.foreign.foreign_function import ForeignFunctions, Rows
from components.errors import ConfigMismatchError
from components.registry import register

Compiler = Literal["bridgestan", "stanli"]
_INCLUDE = re.compile(r"^\s*#include\s+[\"<]?([^\s\">]+)", re.MULTILINE)


@register("dataset", "stan")
class Stan(OwnDensity):
    """A Stan program with its data: its log density, differentiated by Stan.

    θ [K, P] are Stan's unconstrained parameters, in its order; the log density includes the
    log-Jacobian and drops constants, as in Stan's own samplers.  Chains are evaluated one after
    another.  ``compiler`` bridgestan compiles the program with make, a C++ compiler and the sources
    of Stan (downloaded by BridgeStan, or in the folder BRIDGESTAN) into a library next to it;
    stanli interprets it behind the same interface, without a compiler.  Points that the program
    rejects have the log density −∞.

    Raises:
        DataUnavailableError: a file does not exist.
        ConfigMismatchError: a package is not installed, the program does not compile, its data do
            not match, or its density is not finite at the starting points.

    Source: Roualdes, Ward, Carpenter, Seyboldt & Axen (2023).
    """

    extra = "stan"

    program: str
    compiler: Compiler

    @field_validator("program")
    @classmethod
    def _check_program(cls, program: str) -> str:
        if Path(program).suffix != ".stan":
            raise ValueError(f"program: {program} is not a Stan program; give a .stan file")
        return program

    @property
    def packages(self) -> tuple[str, ...]:
        return stan_packages(self.compiler)

    @property
    def where(self) -> str:
        return f"dataset.program={self.program}"

    def content(self, data_dir: Path) -> tuple[str, list[bytes]]:
        program = find_own_file("program", self.program, data_dir)
        return program.stem, [
            *(path.read_bytes() for path in (program, *included_files(program))),
            self.read_text(data_dir).encode(),
        ]

    def open_functions(self, data_dir: Path) -> ForeignFunctions:
        program = find_own_file("program", self.program, data_dir)
        model = open_program(program, self.read_text(data_dir), self.compiler, self.where)
        return stan_functions(model, self.derived)


def stan_packages(compiler: Compiler) -> tuple[str, ...]:
    """Packages that a compiler needs."""
    return ("bridgestan",) if compiler == "bridgestan" else ("bridgestan", "stanli")


def included_files(program: Path) -> list[Path]:
    """Files of the program's folder that it includes directly or indirectly, sorted by name."""
    included: set[Path] = set()
    pending = [program]
    while pending:
        text = pending.pop().read_text(encoding="utf-8")
        files = {program.parent / name for name in _INCLUDE.findall(text)}
        new = {file for file in files if file.is_file()} - included
        included |= new
        pending += new
    return sorted(included)


def open_program(program: Path, data: str, compiler: Compiler, where: str) -> Any:
    """The bridgestan.StanModel of a program with its data, a JSON text.

    Raises:
        ConfigMismatchError: the program does not compile, or the data do not match."""
    try:
        return _open_model(program, data, compiler)
    except (RuntimeError, ValueError, OSError) as error:
        fix = "fix the program or its data (dataset.data, or --data of runner fit)"
        if compiler == "bridgestan":
            fix += "; dataset.compiler=stanli works without a compiler"
        raise ConfigMismatchError(f"{where}: {_one_line(error)}; {fix}") from error


def stan_functions(model: Any, derived: bool, chosen: list[str] | None = None) -> ForeignFunctions:
    """Functions of a bridgestan.StanModel.

    ``derived`` adds transformed parameters; ``chosen`` are the names of the parameters to draw,
    None for all of them."""
    every = [stan_name(name) for name in model.param_names(include_tp=derived)]
    names = every if chosen is None else chosen
    columns = [every.index(name) for name in names]
    dim: int = model.param_unc_num()

    def value(theta: Rows) -> Rows:
        return np.array([_evaluate(model.log_density, row, -np.inf) for row in theta])

    def value_and_gradient(theta: Rows) -> tuple[Rows, Rows]:
        outside = (-np.inf, np.zeros(dim))
        pairs = [_evaluate(model.log_density_gradient, row, outside) for row in theta]
        return np.array([v for v, _ in pairs]), np.array([g for _, g in pairs])

    def constrain(theta: Rows) -> Rows:
        rows = np.array([model.param_constrain(row, include_tp=derived) for row in theta])
        return rows.reshape(len(theta), -1)[:, columns]

    return ForeignFunctions(
        names=names,
        dim=dim,
        value=value,
        value_and_gradient=value_and_gradient,
        constrain=constrain,
    )


def stan_name(name: str) -> str:
    """theta[1], w[1,2] for BridgeStan's theta.1, w.1.2; other names are unchanged."""
    base, *index = name.split(".")
    return f"{base}[{','.join(index)}]" if index and all(i.isdigit() for i in index) else name


def _open_model(program: Path, data: str, compiler: Compiler) -> Any:
    """The bridgestan.StanModel of a program."""
    if compiler == "stanli":
        import stanli

        return stanli.bridgestan_model(stan_file=str(program), data=data)
    import bridgestan
    from filelock import FileLock

    # one process at a time builds the library, which the others reuse
    with FileLock(Path(tempfile.gettempdir()) / f"runner-stan-{program.stem}.lock"):
        return bridgestan.StanModel(str(program), data, warn=False)


def _evaluate(function: Any, theta: Rows, outside: Any) -> Any:
    """The function's value at θ [P], or the given one if the program rejects θ."""
    try:
        return function(theta)
    except RuntimeError:  # BridgeStan's only error for a rejection
        return outside


def _one_line(error: Exception) -> str:
    """The last 300 characters of Stan's message, because its compilers print the cause at the
    end."""
    return " ".join(str(error).split())[-300:]
