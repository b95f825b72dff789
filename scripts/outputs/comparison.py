"""Selection of the lines of an output for a page, and comparison of two outputs."""

from __future__ import annotations

import re

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
# ignored text: times, widths of columns, signatures of runs
IGNORED = re.compile(r"\([\d.]+ s\)|\b[0-9a-f]{12}\b|[━─┏┳┓┡╇┩└┴┘]+|[+-](?=\d)")
TOLERANCE = 0.1  # relative tolerance for numbers computed on another machine


def select_lines(text: str, keep: list[str]) -> str:
    """Lines that match one of the regular expressions; other sequences of lines become "…".

    Blank lines are dropped if lines are selected.
    """
    lines: list[str] = []
    for line in text.splitlines():
        if keep and not line.strip():
            continue
        if not keep or any(re.search(pattern, line) for pattern in keep):
            lines.append(line.rstrip())
        elif not lines or lines[-1] != "…":
            lines.append("…")
    return "\n".join(lines).strip("\n") + "\n"


def is_same_output(first: str, second: str, timed: bool = False) -> bool:
    """True if two outputs have the same words and similar numbers.

    If ``timed``, only the words are compared.
    """
    texts = [IGNORED.sub("", text) for text in (first, second)]
    words = [NUMBER.sub("0", text).split() for text in texts]
    if words[0] != words[1] or timed:
        return words[0] == words[1]
    numbers = [[float(n.replace(",", "")) for n in NUMBER.findall(text)] for text in texts]
    return all(
        abs(a - b) <= TOLERANCE * max(abs(a), abs(b), 0.1) for a, b in zip(*numbers, strict=True)
    )
