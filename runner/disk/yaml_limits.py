"""Limits for foreign YAML, checked before any of it is built.

They bound its values, depth and digits, with aliases expanded.

A file of some hundred bytes can stand for more values than a machine holds:
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
MAX_SNAPSHOT_VALUES = 1_000_000  # of a study's snapshot, which holds the config of every run
MAX_KEYS = 10_000  # of one mapping
DEEPEST = 32  # mappings and lists inside each other
BYTES_PER_VALUE = 100  # for each value that a file may hold
DIGITS = re.compile(r"[-+]?[0-9_:]{4000,}")  # Python reads no longer numbers


class YamlLimitError(yaml.YAMLError):
    """YAML that is too large, too deep or holds itself; ``line`` counts from 1, 0: none."""

    def __init__(self, problem: str, line: int = 0):
        super().__init__(problem)
        self.problem = problem
        self.line = line


@dataclass
class _Node:
    """A mapping or list that is being read: its anchor, and what it has come to."""

    anchor: str | None
    is_mapping: bool
    values: int = 1
    height: int = 1  # levels below and with it
    entries: int = 0


def _too_many(most: int) -> str:
    return f"more than {most:,} values, aliases written out: that many are read at most; write less, or without aliases"


def _too_deep() -> str:
    return f"deeper than {DEEPEST} mappings and lists inside each other, aliases written out; write it flatter"


def check_text(text: str, most: int = MAX_VALUES) -> None:
    """Refuses YAML beyond the limits; time grows with what is written, and with ``most`` at worst.

    Raises:
        YamlLimitError: naming the line.
        yaml.YAMLError: it is no YAML.
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
            raise YamlLimitError(f"more than {MAX_KEYS:,} keys of one mapping; write less", line)


class _ValueCounter:
    """Count of the values that have been read, and of the open ones."""

    def __init__(self) -> None:
        self.extents: dict[str, tuple[int, int]] = {}  # by anchor: values and height
        self.nodes: list[_Node] = []
        self.total = 0

    def add(self, event: yaml.Event, line: int) -> int | None:
        """Count an event.

        Returns:
            Height of the collection that begins with it; None if nothing does.

        Raises:
            YamlLimitError: a number is too long, or an anchor holds itself.
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
                    f"a number of {len(event.value):,} digits; put it in quotes, or write less",
                    line,
                )
            self._close(event.anchor, 1, 0)
            self.total += 1
            return 0
        if isinstance(event, yaml.AliasEvent):
            if any(node.anchor == event.anchor for node in self.nodes):
                raise YamlLimitError(
                    f"*{event.anchor} holds itself; write it without the alias", line
                )
            values, height = self.extents.get(str(event.anchor), (1, 0))
            self._close(None, values, height)
            self.total += values
            return height
        return None

    def _close(self, anchor: str | None, values: int, height: int) -> None:
        """Counts a node that is complete in the one that holds it."""
        if anchor:
            self.extents[anchor] = values, height
        if self.nodes:
            self.nodes[-1].values += values
            self.nodes[-1].height = max(self.nodes[-1].height, height + 1)
            self.nodes[-1].entries += 1


def check_file(path: Path, most: int = MAX_VALUES) -> str:
    """The text of a YAML file within the limits.

    Raises:
        YamlLimitError, yaml.YAMLError, UnicodeDecodeError, OSError: it is not, or cannot be read.
    """
    if (size := path.stat().st_size) > BYTES_PER_VALUE * most:
        raise YamlLimitError(
            f"{size:,} bytes: {BYTES_PER_VALUE * most:,} are read at most; write less"
        )
    text = read_plain(path).decode("utf-8")
    if CONF not in path.parents:  # the runner's own files need no counting
        check_text(text, most)
    return text


def check_values(values: object) -> None:
    """Refuses dicts and lists beyond the limits.

    Raises:
        YamlLimitError: they are too many, or too deep.
    """
    pending: list[tuple[object, int]] = [(values, 0)]
    count = 0
    while pending:
        value, depth = pending.pop()
        count += 1
        inner: list[object] = []
        if isinstance(value, Mapping):
            inner = list(value.values())
        elif isinstance(value, list | tuple):  # one of numbers or words has none
            inner = [one for one in value if isinstance(one, Mapping | list | tuple)]
        if count + len(pending) > MAX_VALUES:
            raise YamlLimitError(_too_many(MAX_VALUES))
        if inner and depth > DEEPEST:
            raise YamlLimitError(_too_deep())
        pending.extend((one, depth + 1) for one in inner)


def check_words(words: Iterable[str]) -> None:
    """Refuse command-line words with brackets nested too deep for Hydra's grammar.

    Raises:
        YamlLimitError: naming the key.
    """
    for word in words:
        depth = 0
        for bracket in re.findall(r"[\[\]{}()]", word):
            depth += 1 if bracket in "[{(" else -1
            if depth > DEEPEST:
                raise YamlLimitError(f"{word.partition('=')[0]}: {_too_deep()}")
