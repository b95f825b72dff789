"""Numbers typed by hand in prose of results."""

from __future__ import annotations

import re

from scripts.prose.fill import FIELD, MARKER

NUMBER = r"[−+-]?[.½¼¾]?\d+(?:[.,]\d+)*"
SYMBOL = r"(?:[A-Za-zα-ωΑ-Ωℓ∞]|log [a-z]|[a-z]_[a-zA-Z0-9])[₀-₉]?(?:_\w+)?"
LIST = rf"(?:{NUMBER}|½|¼|¾)(?:e[−-]?\d+)?(?: %)?"
# what a number may stand in, in this order
ALLOWED = (
    re.compile(r"^(?:```.*?^```|(?:    [^\n]*\n)+)", re.M | re.S),  # commands
    re.compile(r"<!--.*?-->", re.S),
    FIELD,
    MARKER,
    re.compile(r"`[^`]*`"),
    re.compile(r"\$[^$]+\$"),
    re.compile(r"^!\[[^\]]*\]\([^)]*\)", re.M),
    re.compile(r"\]\([^)]*\)"),  # targets of links
    re.compile(r"^#.*$", re.M),
    re.compile(  # Figure 6.1, Tables D.1 and D.3, sections 2.4, 3.1.3 to 8
        r"\b(?:Fig(?:ure)?s?\.?|Tables?|[Ss]ections?|[Cc]hapters?|Eqs?\.?|Algorithms?|Bardenet|Boustati"
        r"|appendix|Gallego)\s+[A-Z]?\.?\d[\w.]*(?:(?:, | and | to |, and )[A-Z]?\.?\d[\w.]*)*"
    ),
    re.compile(r"\b(?:19|20)\d\d\b"),
    # settings: N = 1,000; β = 0.1, 0.2 and 0.5; p < 0.05 is not one
    re.compile(rf"\b{SYMBOL} ?(?:=|∈) ?{LIST}(?:(?:, | and | or | to |, and ){LIST})*"),
    re.compile(r"[A-Za-zα-ωΑ-Ωℓ](?:\w|-(?=\w))*\d(?:\w|-(?=\w))*"),  # names: VIS-5-10, kin8nm, ℓ1
    re.compile(r"\b[A-D]\.\d+(?:\.\d+)*"),  # sections of appendices: A.1.2
    re.compile(r"\blevels? \d\b|\b\d+ × \d+\b"),  # level 2; 8 × 8 pixels
    re.compile(r"\b\d+(?:-\d+)+\b"),  # layers: 784-200-200
)
DIGIT = re.compile(rf"{NUMBER}|[½¼¾]")


def find_hand_typed(template: str) -> list[tuple[int, str]]:
    """Line and text of every number that is neither filled in nor marked as print or a setting."""
    text = template
    for pattern in ALLOWED:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return [
        (number, match[0])
        for number, line in enumerate(text.splitlines(), start=1)
        for match in DIGIT.finditer(line)
    ]
