"""Files and code that keys of components name: checksums of the files, and the user's consent."""

from __future__ import annotations

import hashlib
from pathlib import Path

from runner.compose.parts import all_parts, known_keys
from runner.compose.settings import Values
from runner.errors import ConfigError

GAMES_MODULE = "runner.python.games"  # the one module of ours that a dataset may name


def note_checksums(role: str, values: Values) -> None:
    """Gives a component's full mapping, and those inside it, the SHA-256 of each file that a key
    names, in the key that is for it.  A config that has one already, as a record's has, asks for
    that very file.

    Raises:
        ConfigError: there is no such file, or it is another.
    """
    for where, inner, part in all_parts(role, values):
        for key, checksum in known_keys(inner, part, where).reads.items():
            expected = part.get(checksum)
            name = part.get(key)
            if name is None:
                if expected is not None:
                    raise ConfigError(
                        f"{where}.{checksum}: there is no file that it could be of; name one, {where}.{key}=…"
                    )
                continue
            digest = _sha256(name, f"{where}.{key}")
            if expected is not None and not (
                len(str(expected)) >= 8 and digest.startswith(str(expected))
            ):
                raise ConfigError(
                    f"{where}.{key}={name}: has the SHA-256 {digest[:12]}…, {where}.{checksum} "
                    f"asks for {str(expected)[:12]}…; put "
                    f"that file back, or set {where}.{checksum}=null to use this one"
                )
            part[checksum] = digest


def _sha256(name: object, where: str) -> str:
    path = Path(str(name))
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        why = (
            "no such file"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read ({error.strerror})"
        )
        raise ConfigError(
            f"{where}={name}: {why}; name one, whole or as seen from {Path.cwd()}"
        ) from None


def refuse_untrusted(role: str, values: Values, plugins: list[str]) -> None:
    """Code that a key of a component, or of one inside it, names is of a module that the user named
    in ``plugins``, or makes our own games.

    Raises:
        ConfigError: it is of another."""
    for where, inner, part in all_parts(role, values):
        for key in sorted(known_keys(inner, part, where).imports):
            if part.get(key) is None:
                continue
            module, colon, name = str(part.get(key)).partition(":")
            if module.endswith(".py"):
                named = f"{Path(module).stem}:{name}" if colon else Path(module).stem
                raise ConfigError(
                    f"{where}.{key}={part.get(key)}: {module} is a file; write the module's name, {where}.{key}={named}, and "
                    "start the runner from the file's folder or with it in PYTHONPATH"
                )
            before, _, last = module.rpartition(".")
            if not colon and before in plugins and module not in plugins:
                raise ConfigError(
                    f"{where}.{key}={module}: a module and a name in it; write it as {before}:{last}"
                )
            if module not in (*plugins, GAMES_MODULE):
                raise ConfigError(
                    f"{where}.{key}={part.get(key)}: code that is not the runner's; add 'plugins=[{module}]' if you know it"
                )
