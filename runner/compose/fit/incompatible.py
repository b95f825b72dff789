"""Parts that do not fit each other, and what could be put in the place of one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from runner.errors import ConfigError

SETTINGS = r" (?=\w+\.\w+=)"  # pattern of what is between two settings


class IncompatibleError(ConfigError):
    """Components that do not fit as configured.

    Args:
        problem: why they do not.
        keys: keys that could hold another component; its name is suggested if the whole composition
            takes it.
        fix: settings that could help, ``model.posterior=sparse model.bound=variational``; they are
            suggested likewise.
    """

    def __init__(self, problem: str, *keys: str, fix: str = ""):
        super().__init__(problem)
        self.problem = problem
        self.keys = keys
        self.fix = fix


@contextmanager
def prefix_key_path(path: str, **keys: str) -> Iterator[None]:
    """Puts the key that holds a part before what is wrong with it; ``keys`` are the keys that hold
    parts by their role."""
    try:
        yield
    except IncompatibleError as error:
        raise IncompatibleError(f"{path}: {error.problem}", *_nest(error.keys, keys)) from None


def _nest(keys: tuple[str, ...], by_role: Mapping[str, str]) -> list[str]:
    """Keys of a part in the place of those of the run; keys without a part are left out."""
    return [by_role.get(key, key) for key in keys if key in by_role or "." in key]
