"""Faults of a user's table, reported together with the keys that avoid them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from components.errors import ConfigMismatchError

REMEDY = re.compile(r"set (dataset\.\w+=\w+)")  # in the message of a fault


class TableFaults:
    """Messages of faults, each with the column that can be left out to avoid it."""

    def __init__(self) -> None:
        self.faults: dict[str, str | None] = {}

    @contextmanager
    def collect(self, column: str | None = None) -> Iterator[None]:
        """Keep an error in place of raising it."""
        try:
            yield
        except ConfigMismatchError as error:
            self.faults.setdefault(str(error), column)

    def check(
        self,
        file: Path,
        inputs: Sequence[str],
        excluded: Sequence[str],
        constant: Sequence[str],
        key: str,
    ) -> None:
        """Raise the faults, several as lines, with overrides that avoid them if there are such.

        Args:
            constant: columns without two different values, listed next to several faults.
            key: exclude, or inputs if the user names these.

        Raises:
            ConfigMismatchError: there is a fault.
        """
        if not self.faults:
            return
        if len(self.faults) == 1:
            raise ConfigMismatchError(*self.faults)
        lines = [f"{file} has {len(self.faults)} faults:"]
        lines += [re.sub(rf"^{re.escape(str(file))}[,:] ", "", text) for text in self.faults]
        lines += [f"{name} has the same value in every row; leave it out" for name in constant]
        remedies = {text: REMEDY.search(text) for text in self.faults}
        words = sorted({found[1] for found in remedies.values() if found})
        out = {
            *excluded,
            *constant,
            *(name for text, name in self.faults.items() if not remedies[text]),
        }
        names = [name for name in (*excluded, *inputs) if (name in out) == (key == "exclude")]
        if None not in out and any(name not in out for name in inputs):
            listed = json.dumps(names, ensure_ascii=False)
            words += [shlex.quote(f"dataset.{key}={listed}")] * bool(out)
            lines.append(f"to proceed: {' '.join(words)}")
        raise ConfigMismatchError("\n  ".join(lines))
