"""An environment of the user: calls of its methods, and refusals that name the place in its
code."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NoReturn

from components.contracts.user_code import format_code_location, reraise_user_error
from components.errors import ConfigMismatchError
from components.games.parallel.parallel_values import parallel_conversion_hint


class UserEnvironment:
    """A ``ParallelEnv`` of the user; ``where`` is the key that names it.

    Raises:
        ConfigMismatchError: it is another object.
    """

    def __init__(self, made: Any, where: str):
        from pettingzoo import ParallelEnv

        self.where = where
        if not isinstance(made, ParallelEnv):
            kind = type(made).__name__
            hint = parallel_conversion_hint(made)
            raise ConfigMismatchError(f"{where}: makes a {kind}, no ParallelEnv{hint}")
        self.env = made
        with self.calls("unwrapped"):
            self._kind = type(made.unwrapped)  # the user's own class, below PettingZoo's wrappers

    def calls(self, what: str, method: str | None = None) -> AbstractContextManager[None]:
        """Re-raises errors of the user's code as ConfigMismatchError in one line."""
        return reraise_user_error(f"{self.where}: {what}", self._code(method))

    def refuse(self, what: str, code: Any = None) -> NoReturn:
        """Refuses the environment, with the place in the code of a method by name, of an object,
        or of the class."""
        code = self._code(code) if code is None or isinstance(code, str) else code
        raise ConfigMismatchError(f"{self.where}: {what} ({format_code_location(code)})")

    def _code(self, method: str | None) -> Any:
        return type(self.env) if method is None else vars(self._kind).get(method, self._kind)

    def in_order(self, what: str, agents: Any, method: str | None = None) -> list[Any]:
        """Agents in their own order."""
        if isinstance(agents, set | frozenset):
            self.refuse(
                f"{what} is a set, whose order differs from process to process; make it a list",
                method,
            )
        return list(agents)
