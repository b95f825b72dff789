"""Limits for untrusted YAML, checked before it is parsed into objects.

They bound the numbers of values, levels and digits after expansion of aliases.

A file of a few hundred bytes can expand to more values than fit in memory:
``a: &a [x, x]``, ``b: &b [*a, *a]``, …  PyYAML's events neither follow aliases nor
recurse, so they are counted here, and reading ends at the first value over a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from runner import CONF
from runner.disk.plain_file import read_plain
from runner.disk.yaml_comments import Loader

MAX_VALUES = 50_000  # keys and values of one file
MAX_SNAPSHOT_VALUES = 1_000_000  # for a study's snapshot, which has the config of every run
MAX_KEYS = 10_000  # keys of one mapping
DEEPEST = 32  # levels of nested mappings and lists
BYTES_PER_VALUE = 100  # file size allowed per value
DIGITS = re.compile(r"[-+]?[0-9_:]{4000,}")  # Python refuses longer numbers


class YamlLimitError(yaml.YAMLError):
    """YAML that is too large, too deep or recursive; ``line`` counts from 1, or is 0 if unknown."""

    def __init__(self, problem: str, line: int = 0):
        super().__init__(problem)
        self.problem = problem
        self.line = line


@dataclass
class _Node:
    """An open mapping or list: its anchor, number of values and height."""

    anchor: str | None
    is_mapping: bool
    values: int = 1
    height: int = 1  # number of levels, including this one
    entries: int = 0


def _too_many(most: int) -> str:
    return f"more than {most:,} values after expanding aliases; shorten the file, or write it without aliases"


def _too_deep() -> str:
    return f"more than {DEEPEST} levels of mappings and lists after expanding aliases; reduce the nesting"


def check_text(text: str, most: int = MAX_VALUES) -> None:
    """Refuse YAML beyond the limits, in time linear in the text and at worst in ``most``.

    Raises:
        YamlLimitError: a limit is exceeded.
        yaml.YAMLError: the text is not YAML.
    """
    counter = _ValueCounter()
    for event in yaml.parse(text, Loader=Loader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        height = counter.add(event, line)
        if height is None:
            continue
        if counter.total > most:
            raise YamlLimitError(_too_many(most), line)
        nodes = counter.nodes
        if len(nodes) + height > DEEPEST:
            raise YamlLimitError(_too_deep(), line)
        if nodes and nodes[-1].is_mapping and nodes[-1].entries > 2 * MAX_KEYS:
            raise YamlLimitError(
                f"more than {MAX_KEYS:,} keys in one mapping; reduce their number", line
            )


class _ValueCounter:
    """Counter of values and of open mappings and lists."""

    def __init__(self) -> None:
        self.extents: dict[str, tuple[int, int]] = {}  # values and height by anchor
        self.nodes: list[_Node] = []
        self.total = 0

    def add(self, event: yaml.Event, line: int) -> int | None:
        """Count an event.

        Returns:
            Height of the collection that the event begins, or None.

        Raises:
            YamlLimitError: a number is too long, or an anchor contains itself.
        """
        if isinstance(event, yaml.CollectionEndEvent):
            node = self.nodes.pop()
            self._close(node.anchor, node.values, node.height)
            return None
        if isinstance(event, yaml.CollectionStartEvent):
            self.nodes.append(_Node(event.anchor, isinstance(event, yaml.MappingStartEvent)))
            self.total += 1
            return 0
        if isinstance(event, yaml.ScalarEvent):
            if event.implicit[0] and DIGITS.fullmatch(event.value):
                raise YamlLimitError(
                    f"a number of {len(event.value):,} digits; quote it, or shorten it",
                    line,
                )
            self._close(event.anchor, 1, 0)
            self.total += 1
            return 0
        if isinstance(event, yaml.AliasEvent):
            if any(node.anchor == event.anchor for node in self.nodes):
                raise YamlLimitError(
                    f"*{event.anchor} contains itself; write it without the alias", line
                )
            values, height = self.extents.get(str(event.anchor), (1, 0))
            self._close(None, values, height)
            self.total += values
            return height
        return None

    def _close(self, anchor: str | None, values: int, height: int) -> None:
        """Add a completed node to its parent."""
        if anchor:
            self.extents[anchor] = values, height
        if self.nodes:
            self.nodes[-1].values += values
            self.nodes[-1].height = max(self.nodes[-1].height, height + 1)
            self.nodes[-1].entries += 1


def check_file(path: Path, most: int = MAX_VALUES) -> str:
    """Read the text of a YAML file within the limits.

    Raises:
        YamlLimitError, yaml.YAMLError, UnicodeDecodeError, OSError: the file exceeds the limits or
            cannot be read.
    """
    if (size := path.stat().st_size) > BYTES_PER_VALUE * most:
        raise YamlLimitError(
            f"{size:,} bytes exceed the limit of {BYTES_PER_VALUE * most:,}; shorten the file"
        )
    text = read_plain(path).decode("utf-8")
    if CONF not in path.parents:  # the runner's own files are trusted
        check_text(text, most)
    return text


def check_values(values: object) -> None:
    """Refuse dicts and lists beyond the limits.

    Raises:
        YamlLimitError: there are too many values or levels.
    """
    pending: list[tuple[object, int]] = [(values, 0)]
    count = 0
    while pending:
        value, depth = pending.pop()
        count += 1
        inner: list[object] = []
        if isinstance(value, Mapping):
            inner = list(value.values())
        elif isinstance(value, list | tuple):  # numbers and strings have no inner values
            inner = [item for item in value if isinstance(item, Mapping | list | tuple)]
        if count + len(pending) > MAX_VALUES:
            raise YamlLimitError(_too_many(MAX_VALUES))
        if inner and depth > DEEPEST:
            raise YamlLimitError(_too_deep())
        pending.extend((item, depth + 1) for item in inner)


def check_words(words: Iterable[str]) -> None:
    """Refuse command-line words with brackets nested too deep for Hydra's grammar.

    Raises:
        YamlLimitError: the nesting is too deep.
    """
    for word in words:
        depth = 0
        for bracket in re.findall(r"[\[\]{}()]", word):
            depth += 1 if bracket in "[{(" else -1
            if depth > DEEPEST:
                raise YamlLimitError(f"{word.partition('=')[0]}: {_too_deep()}")
