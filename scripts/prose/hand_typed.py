"""Numbers typed by hand in prose of results, in digits and in words, and comparisons without a test."""

from __future__ import annotations

import re

from scripts.prose.fields import FIELD, MARKER

NUMBER = r"[−+-]?[.½¼¾]?\d+(?:[.,]\d+)*"
# not p, t and z, which have values of tests
SYMBOL = r"(?:(?![ptz]\b)[A-Za-zα-ωΑ-Ωℓ∞]|log (?!p)[a-z]|[a-z]_[a-zA-Z0-9])[₀-₉]?(?:_\w+)?"
LIST = rf"(?:{NUMBER}|½|¼|¾)(?:e[−-]?\d+)?(?: %)?"
REFERENCE = r"[A-Z]?\.?(?!0\b)\d[\w.]*"
COMMAND = r"(?:[A-Z_]+=\S+ )*(?:runner|make|python|pip|git)\b"
COUNT = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    r"|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    r"|hundred|thousand)"
)
PART = r"(?:half|halves|thirds?|quarters?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?)"
# text in which numbers are allowed, in this order
ALLOWED = (
    re.compile(rf"^```.*?^```|^    {COMMAND}(?:(?! #)[^\n])*", re.M | re.S),  # commands
    re.compile(r"<!--.*?-->", re.S),
    FIELD,
    MARKER,
    re.compile(r"`[^`]*`"),
    re.compile(r"\$[^$]+\$"),
    re.compile(r"\]\([^)]*\)"),  # targets of links and pictures
    re.compile(r"^#+ ", re.M),
    re.compile(  # Figure 6.1, Tables D.1 and D.3, sections 2.4, 3.1.3 to 8
        r"\b(?:Fig(?:ure)?s?\.?|Tables?|[Ss]ections?|[Cc]hapters?|Eqs?\.?|Algorithms?|Bardenet|Boustati"
        rf"|appendix|Gallego)\s+{REFERENCE}(?:(?:, | and | to |, and ){REFERENCE})*"
    ),
    re.compile(r"(?<![−.,\d-])\b(?:19|20)\d\d\b(?!\s*(?:%|±|nats|s\b|ms\b|SE\b))"),  # years
    # settings: N = 1,000; β = 0.1, 0.2 and 0.5; p < 0.05 is not one
    re.compile(rf"\b{SYMBOL} ?(?:=|∈) ?{LIST}(?:(?:, | and | or | to |, and ){LIST})*"),
    re.compile(r"[A-Za-zα-ωΑ-Ωℓ](?:\w|-(?=\w))*\d(?:\w|-(?=\w))*"),  # names: VIS-5-10, kin8nm, ℓ1
    re.compile(r"\b[A-D]\.\d+(?:\.\d+)*"),  # sections of appendices: A.1.2
    re.compile(r"\blevels? \d\b|\b\d+ × \d+\b"),  # level 2; 8 × 8 pixels
    re.compile(r"\b\d+(?:-\d+){2,}\b"),  # layers: 784-200-200
)
# a number in the typeface of a name: `0.42`, `RMSE = 0.42`, $0.42$
BARE = re.compile(
    r"[`$][^A-Za-zα-ω_]*[`$]|`[^`\n]*[A-Za-zα-ω²]\)? +[=≈:]? *[−+-]?\d*\.\d[^`\n]*`|\$[^$]*\d\.\d[^$]*\$"
)
DIGIT = re.compile(rf"{NUMBER}|[½¼¾⅐-⅞]")
# ratios in words; a count of models or sets is not a ratio
WORDS = re.compile(
    rf"\b(?:twice|thrice|halve[sd]?|doubled|trebled|tripled"
    rf"|(?:{COUNT}|several|many)-?fold"
    rf"|{COUNT} times"
    rf"|(?:an?|one|{COUNT})[ -]{PART} (?:of|as|less|more|larger|smaller|lower|higher|faster|slower)"
    rf"|half (?:of|as|the)"
    rf"|{COUNT} (?:out )?of (?:the )?{COUNT}"
    rf"|{COUNT} (?:\w+ )?(?:standard errors|per ?cent|nats|milliseconds|SE\b))\b",
    re.I,
)

# words that compare, and functions of fields with tests that support them
CLAIM = re.compile(
    r"\b(?:ahead|behind|better|worse|beats?|outperforms?|leads?|superior|told apart"
    r"|level(?: with\b|(?=[,;:)])))\b|\blevel\)",
    re.I,
)
SUPPORT = re.compile(r"\b(?:ahead|behind|undecided|level)\(")
SENTENCE = re.compile(r"(?:[^.;|\n]|\.(?=\S)|\n(?![\n|#-]))+")
NO_PROSE = re.compile(
    rf"^```.*?^```|^    [^\n]*|`[^`\n]*`|\"[^\"\n]*\"|\]\([^)]*\)|{FIELD.pattern}|{MARKER.pattern}",
    re.M | re.S,
)


def _blank(match: re.Match[str]) -> str:
    return match[0] if BARE.fullmatch(match[0]) else re.sub(r"[^\n]", " ", match[0])


def blank_allowed(text: str) -> str:
    """The text with blanks where numbers are allowed."""
    for pattern in ALLOWED:
        text = pattern.sub(_blank, text)
    return text


def find_hand_typed(template: str) -> list[tuple[int, str]]:
    """Line and text of every number that is neither filled in nor marked as printed or as a setting."""
    text = blank_allowed(template)
    matches = sorted([*DIGIT.finditer(text), *WORDS.finditer(text)], key=re.Match.start)
    return [(text.count("\n", 0, match.start()) + 1, match[0]) for match in matches]


def find_untested(template: str) -> list[tuple[int, str]]:
    """Line and word of every comparison in a sentence without a field that tests it."""
    text = NO_PROSE.sub(lambda match: re.sub(r"[^\n]", "\0", match[0]), template)
    claims = []
    for sentence in SENTENCE.finditer(text):
        claim = CLAIM.search(sentence[0])
        if claim and not SUPPORT.search(template, *sentence.span()):
            claims.append((text.count("\n", 0, sentence.start() + claim.start()) + 1, claim[0]))
    return claims
