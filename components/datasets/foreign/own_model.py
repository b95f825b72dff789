"""Base class of models that a function of the user's states in another package."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from components.contracts.user_code import Place, import_object, short_digest
from components.datasets.foreign.foreign_density import OwnDensity, to_array


class OwnModel(OwnDensity):
    """A model that a function of a plug-in states, called with ``data`` and ``arguments``.

    The function is code: its module must be among ``plugins`` too, and the data's name includes
    the content of its file.
    """

    imports = {"function"}

    function: Place
    arguments: dict[str, Any] | None

    @property
    def packages(self) -> tuple[str, ...]:
        return (self.extra,)

    @property
    def where(self) -> str:
        return f"dataset.function={self.function}"

    def content(self, data_dir: Path) -> tuple[str, list[bytes]]:
        self.require_packages()  # the module imports them
        self.import_function()
        arguments = json.dumps(self.arguments or {}, sort_keys=True, default=str)
        return self.function.replace(":", "."), [
            short_digest(self.function).encode(),
            arguments.encode(),
            self.read_text(data_dir).encode(),
        ]

    def import_function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = import_object("dataset.function", self.function)
        return function

    def keywords(self, data_dir: Path) -> dict[str, Any]:
        """Keywords of the function's call; lists of numbers are arrays.

        Raises:
            DataUnavailableError: there is no such file of data.
            ConfigMismatchError: it holds something else."""
        given = json.loads(self.read_text(data_dir)) | (self.arguments or {})
        return {name: to_array(value) for name, value in given.items()}
