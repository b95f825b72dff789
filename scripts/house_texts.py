"""Texts of the repository by kind, and the rates of phrases that a native speaker would not write."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

Texts = dict[str, list[str]]  # by kind: docstrings, comments, messages, pages, yaml
STIFF = (
    r"\balone\b",
    r"\bbeside\b",
    r"\bwhatever\b",
    r"\bof which\b",
    r"\bof what\b",
    r"\bthat of\b",
    r"\bthose of\b",
    r"\bwhose\b",
    r"\bstands\b",
    r"\bis none\b",
    r"\bat once\b",
)
ODD = (
    r"\bwhat (it|is|a|an|the|they|was|has|he|she|one|there|may|does)\b",
    r"\bis no (?!longer|more|such|different)\w+",
    r"\bno (word|number|file|news|text|name) (is|of|that|to)\b",
    r"\b(says|tells|knows)\b",
    r"\b(goes|go|went|going) on\b",
    r"\b(is|are|was|were) of\b",
    r"\bmend(s|ed)?\b",
    r"\b(whoever|anew|so\smany|as\smany|made\sup\sfor)\b",
    r"\bbe had\b",
    r"\b(is|are) (told|said|asked|shown)\b",
)
PHRASES = {"odd": ODD, "stiff": STIFF}
# made by commands, or records of results
NO_PAGES = ("docs/results/", "docs/contracts", "docs/study_keys")


def list_docstrings(tree: ast.Module) -> Iterator[tuple[str, ast.Expr]]:
    """Docstrings with their statements."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (
            text := ast.get_docstring(node)
        ):
            yield text, node.body[0]  # type: ignore[misc]


def read_texts(source: str, tree: ast.Module) -> Texts:
    """Docstrings, comments and messages (strings of four or more words) of a file."""
    docstrings = {id(statement.value): text for text, statement in list_docstrings(tree)}
    messages = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
        and node.value.count(" ") >= 3
    ]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string[1:] for token in tokens if token.type == tokenize.COMMENT]
    return {"docstrings": [*docstrings.values()], "comments": comments, "messages": messages}


def read_pages(root: Path) -> Texts:
    """Pages, and comments of YAML files."""
    pages = [
        path.read_text(encoding="utf-8")
        for path in [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
        if not path.relative_to(root).as_posix().startswith(NO_PAGES)
    ]
    lines = [
        line.partition("#")[2]
        for path in (root / "conf").rglob("*.yaml")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return {"pages": pages, "yaml": lines}


def rate_phrases(texts: Mapping[str, list[str]]) -> dict[str, float]:
    """Phrases per 1,000 words, by family and kind of text: ``odd_pages``."""
    rates = {}
    for kind, parts in texts.items():
        text = " \n ".join(parts).lower()
        words = len(re.findall(r"[a-zäöü]+", text))
        for family, patterns in PHRASES.items():
            count = sum(len(re.findall(pattern, text)) for pattern in patterns)
            rates[f"{family}_{kind}"] = 1000 * count / max(words, 1)
    return rates
