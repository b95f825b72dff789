"""YAML of a file in block style, as wide as a page, with its comments and anchors.

Files of this project write rows as mappings of one long line, which are good to edit in columns
and hard to read on a terminal. The text is made from the events of PyYAML's parser, which keep the
anchors and the quotes of the file; comments lie in the gaps between its tokens.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from runner.disk.yaml_comments import Comment, Loader, read_comments

INDENT = 2
BLOCK_STYLES = ("|", ">")
SHORT = 8  # letters of an item that is not worth a line
GLUE = "\0"  # in place of a space at which no line ends


@dataclass
class YamlValue:
    """A value: its text, or its parts."""

    start: int  # index of its first letter, in the text
    line: int
    text: str = ""  # of a scalar or an alias, as the file has it
    mark: str = ""  # its anchor, ``&name``
    style: str = ""  # mapping, sequence, or the sign of a block scalar
    entries: list[YamlEntry] = field(default_factory=list)


@dataclass
class YamlEntry:
    """A key with its value, or an item of a sequence."""

    key: str | None
    value: YamlValue
    start: int
    line: int
    above: list[str] = field(default_factory=list)
    inline: str = ""

    @property
    def is_commented(self) -> bool:
        return bool(self.above or self.inline)


def to_block_style(text: str, width: int) -> str:
    """A YAML text in block style, in lines of ``width`` columns where it can be folded.

    Sequences of scalars stay in brackets where they fit; everything else has a line for each
    entry. A text with a content that has no such form (tags, several documents) is returned
    unchanged.
    """
    events = iter(list(yaml.parse(text, Loader=yaml.SafeLoader)))
    first = next((event for event in events if isinstance(event, yaml.DocumentStartEvent)), None)
    if first is None:
        return text
    root = _BlockReader(text, events).build(next(events))
    left = _attach(read_comments(text), list(_entries(root)))
    lines = [*_BlockWriter(width).value_lines(root, 0), *(f"# {comment}" for comment in left)]
    block = "\n".join(lines) + "\n"
    return block if _is_equal(block, text) else text


def _is_equal(block: str, text: str) -> bool:
    """True if both texts have the same content."""
    try:
        return bool(yaml.load(block, Loader=Loader) == yaml.load(text, Loader=Loader))
    except yaml.YAMLError:
        return False


# ---- reading
# --------------------------------------------------------------------------------------------------
class _BlockReader:
    def __init__(self, text: str, events: Iterator[yaml.Event]):
        self.text = text
        self.events = events

    def build(self, event: yaml.Event) -> YamlValue:
        """The value that an event begins."""
        mark = event.start_mark
        assert mark is not None
        part = YamlValue(mark.index, mark.line)
        if isinstance(event, yaml.AliasEvent):
            part.text = f"*{event.anchor}"
            return part
        assert isinstance(event, yaml.NodeEvent)
        part.mark = f"&{event.anchor}" if event.anchor else ""
        if isinstance(event, yaml.ScalarEvent):
            self._read_scalar(event, part)
        elif isinstance(event, yaml.SequenceStartEvent):
            part.style = "sequence"
            while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
                value = self.build(event)
                part.entries.append(YamlEntry(None, value, value.start, value.line))
        else:
            part.style = "mapping"
            while not isinstance(event := next(self.events), yaml.MappingEndEvent):
                key = self.build(event)
                value = self.build(next(self.events))
                part.entries.append(YamlEntry(key.text, value, key.start, key.line))
        return part

    def _read_scalar(self, event: yaml.ScalarEvent, part: YamlValue) -> None:
        assert event.end_mark is not None
        source = self.text[part.start : event.end_mark.index]
        if event.style in BLOCK_STYLES:
            part.style = source[source.index(event.style) :].split()[0]
            part.text = event.value
        elif "\n" not in source:
            part.text = source.removeprefix(part.mark).strip()
        else:
            is_plain = event.style is None and "\n" not in event.value
            part.text = event.value if is_plain else json.dumps(event.value, ensure_ascii=False)


def _entries(part: YamlValue) -> Iterator[YamlEntry]:
    """All entries in the order of the file."""
    for entry in part.entries:
        yield entry
        yield from _entries(entry.value)


def _attach(comments: list[Comment], entries: list[YamlEntry]) -> list[str]:
    """Give each comment to the entry that it explains; those behind the last entry.

    A comment that follows something explains the first entry of its line, another one the entry
    below it.
    """
    left = []
    for comment in comments:
        before = [entry for entry in entries if entry.start < comment.index]
        if comment.is_trailing and before:
            same = [entry for entry in before if entry.line == before[-1].line]
            _add_inline(same[0], comment.text)
            continue
        below = next((entry for entry in entries if entry.start > comment.index), None)
        if below is None:
            left.append(comment.text)
        else:
            below.above.append(comment.text)
    return left


def _add_inline(entry: YamlEntry, text: str) -> None:
    entry.inline = f"{entry.inline}; {text}" if entry.inline else text


# ---- writing
# --------------------------------------------------------------------------------------------------
class _BlockWriter:
    def __init__(self, width: int):
        self.width = width

    def value_lines(self, part: YamlValue, indent: int) -> list[str]:
        """Lines of a mapping or a sequence in block style."""
        lines: list[str] = []
        for entry in part.entries:
            lines += self._entry_lines(entry, indent)
        return lines

    def _entry_lines(self, entry: YamlEntry, indent: int) -> list[str]:
        space = " " * indent
        head = f"{space}-" if entry.key is None else f"{space}{entry.key}:"
        head += f" {entry.value.mark}" if entry.value.mark else ""
        lines = self._body(entry, head, indent)
        comments = list(entry.above)
        if entry.inline:
            commented = f"{lines[0]} # {entry.inline}"
            if len(lines) == 1 and len(commented) <= self.width:
                lines = [commented]
            else:
                comments.append(entry.inline)
        return [*(line for text in comments for line in self._comment_lines(text, space)), *lines]

    def _comment_lines(self, text: str, space: str) -> list[str]:
        return self._wrap(text, f"{space}# ", f"{space}# ") or [f"{space}#"]

    def _body(self, entry: YamlEntry, head: str, indent: int) -> list[str]:
        """A key or the sign of an item, followed by the value."""
        value = entry.value
        deeper = indent + INDENT
        if value.style in ("", "sequence") and (flow := self._flow(value, head, deeper)):
            return flow
        if value.style.startswith(BLOCK_STYLES):
            return [f"{head} {value.style}", *self._block_scalar_lines(value, " " * deeper)]
        if not value.entries:
            return [f"{head} {{}}"]
        lines = self.value_lines(value, deeper)
        if entry.key is None and not value.mark and not value.entries[0].is_commented:
            return [f"{head} {lines[0].lstrip()}", *lines[1:]]
        return [head, *lines]

    def _flow(self, value: YamlValue, head: str, deeper: int) -> list[str]:
        """A scalar, or a sequence of scalars in brackets; [] if it must be in block style."""
        if not value.style:
            return self._wrap(value.text, f"{head} ", " " * deeper) or [head]
        if any(entry.value.style or entry.is_commented for entry in value.entries):
            return []
        items = [f"{e.value.mark} {e.value.text}".strip() for e in value.entries]
        line = f"{head} [{', '.join(items)}]"
        if len(line) <= self.width or all(len(item) < SHORT for item in items):
            return self._wrap(f"[{', '.join(items)}]", f"{head} ", " " * (deeper + 1))
        return []

    def _block_scalar_lines(self, value: YamlValue, space: str) -> list[str]:
        paragraphs = value.text.rstrip("\n").split("\n")
        if value.style.startswith("|"):
            return [f"{space}{line}".rstrip() for line in paragraphs]
        lines: list[str] = []
        for text in paragraphs:  # an empty line separates them
            lines += (
                ["", *self._wrap(text, space, space)] if lines else self._wrap(text, space, space)
            )
        return lines

    def _wrap(self, text: str, first: str, others: str) -> list[str]:
        """Lines of a text, broken at single spaces: YAML folds a line break to one space."""
        lines = textwrap.wrap(
            re.sub("  +", lambda spaces: GLUE * len(spaces[0]), text),
            self.width,
            initial_indent=first,
            subsequent_indent=others,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [line.replace(GLUE, " ") for line in lines]
