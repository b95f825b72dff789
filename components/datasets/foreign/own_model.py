"""Base class of models defined in another package by a user's function."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from components.contracts.user_code import ImportPath, import_object, short_digest
from components.datasets.foreign.foreign_density import OwnDensity, to_array


class OwnModel(OwnDensity):
    """A model defined by a function of a plug-in, called with ``data`` and ``arguments``.

    Its module must also be listed in ``plugins``, and the data's name includes a checksum of
    its file.
    """

    imports = {"function"}

    function: ImportPath
    arguments: dict[str, Any] | None

    @property
    def packages(self) -> tuple[str, ...]:
        return (self.extra,)

    @property
    def where(self) -> str:
        return f"dataset.function={self.function}"

    def content(self, data_dir: Path) -> tuple[str, list[bytes]]:
        self.require_packages()  # before the module imports them
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
        """Keyword arguments of the function; lists of numbers become arrays.

        Raises:
            DataUnavailableError: the data file does not exist.
            ConfigMismatchError: the data file is not a JSON object."""
        given = json.loads(self.read_text(data_dir)) | (self.arguments or {})
        return {name: to_array(value) for name, value in given.items()}
