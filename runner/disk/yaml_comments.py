"""Keys of a YAML file with their comments, which YAML parsers drop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

# the C parser is ten times faster
Loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
Dumper = yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper


@dataclass(frozen=True)
class YamlKey:
    """One key of a file: dotted path, literal value, and its comments on the line and above."""

    path: str
    text: str
    comment: str
    nested: bool = False  # a mapping; its own keys follow


ParsedYaml = tuple[list[YamlKey], Any]  # with the content of the file


def _comment(line: str) -> str:
    return line.strip().lstrip("#").strip()


class _Reader:
    def __init__(self, text: str):
        self.text = text
        self.lines = text.splitlines()
        self.keys: list[YamlKey] = []

    def _inline(self, line: int, column: int) -> tuple[str, int]:
        """Comment after a column of a line, and its column (−1 without a comment)."""
        rest = self.lines[line][column:] if line < len(self.lines) else ""
        start = rest.find("#")
        # Only white space is allowed between a value and its comment.
        if start < 0 or rest[:start].strip(" \t:,"):
            return "", -1
        return _comment(rest[start:]), column + start

    def _comments(self, lines: Iterable[int], column: int) -> list[str]:
        """Comments on these lines that begin in a given column."""
        comments: list[str] = []
        for line in lines:
            text = self.lines[line]
            if not text.strip().startswith("#") or len(text) - len(text.lstrip()) != column:
                break
            comments.append(_comment(text))
        return comments

    def read(self, node: yaml.MappingNode, prefix: str) -> None:
        for key, value in node.value:
            path = f"{prefix}{key.value}"
            nested = isinstance(value, yaml.MappingNode) and not value.flow_style
            empty = value.start_mark.index == value.end_mark.index
            block = (
                nested or empty or (isinstance(value, yaml.SequenceNode) and not value.flow_style)
            )
            mark = key.end_mark if block else value.end_mark
            inline, column = self._inline(mark.line, mark.column)
            start = key.start_mark
            above = self._comments(range(start.line - 1, -1, -1), start.column)[::-1]
            below = self._comments(range(mark.line + 1, len(self.lines)), column)
            # without pragmas such as ``# @package``
            words = [*(w for w in above if not w.startswith("@")), inline, *below]
            self.keys.append(
                YamlKey(path, self._to_text(value, block), " ".join(w for w in words if w), nested)
            )
            if isinstance(value, yaml.MappingNode) and nested:
                self.read(value, f"{path}.")

    def _to_text(self, value: yaml.Node, block: bool) -> str:
        if isinstance(value, yaml.MappingNode) and block:
            return ""
        if isinstance(value, yaml.SequenceNode) and block:
            content = yaml.constructor.SafeConstructor().construct_object(value, deep=True)
            return yaml.safe_dump(
                content, default_flow_style=True, width=10_000, allow_unicode=True
            ).strip()
        if isinstance(value, yaml.ScalarNode) and value.style in ("|", ">"):
            return " ".join(value.value.split())
        return " ".join(self.text[value.start_mark.index : value.end_mark.index].split()) or "null"


def read_keys(text: str) -> list[YamlKey]:
    """Keys of a YAML text in file order, nested ones by dotted path."""
    node = yaml.compose(text, Loader=Loader)
    reader = _Reader(text)
    if isinstance(node, yaml.MappingNode):
        reader.read(node, "")
    return reader.keys


def read_text(text: str) -> ParsedYaml:
    """Keys and content of a YAML text."""
    return read_keys(text), yaml.load(text, Loader)
