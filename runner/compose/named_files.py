"""Files that keys of components name.

Their content is part of a run's identity, so the config keeps their checksums.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from runner.compose.parts import known_keys, nested_parts
from runner.mistakes import ConfigError


def note_checksums(role: str, values: dict[str, Any]) -> None:
    """Gives a component's full mapping, and those inside it, the SHA-256 of each file that a key
    names, in the key that is for it.  A config that has one already, as a record's has, asks for
    that very file.

    Raises:
        ConfigError: there is no such file, or it is another.
    """
    for where, inner, part in [(role, role, values), *nested_parts(role, values, role)]:
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
