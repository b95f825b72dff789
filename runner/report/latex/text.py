"""LaTeX text of tables: escaping, and columns and headings that wrap."""

from __future__ import annotations

import re
import textwrap

from runner.terminal.plain import plain

HEADING_CHARACTERS = 14  # length of a line in a heading
LABEL_CHARACTERS = 26  # longest label that is not wrapped
LABEL_WIDTH = r">{\raggedright\arraybackslash}p{0.28\linewidth}"
LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "−": "$-$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "θ": r"$\theta$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "∞": r"$\infty$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "…": r"\dots{}",
    "R̂": r"$\widehat{R}$",
    "†": r"$\dagger$",
    "¶": r"\P{}",
    "–": "--",
}
LATEX_SPECIAL_PATTERN = re.compile(
    "|".join(re.escape(sign) for sign in sorted(LATEX_ESCAPES, key=len, reverse=True))
)


def latex(text: str) -> str:
    """Escape special characters of LaTeX."""
    return LATEX_SPECIAL_PATTERN.sub(lambda found: LATEX_ESCAPES[found.group()], plain(text))


def label_column(labels: list[str]) -> str:
    """Column type with the width of its labels, or one in which they wrap."""
    return LABEL_WIDTH if max(map(len, labels), default=0) > LABEL_CHARACTERS else "l"


def wrap_heading(text: str) -> str:
    r"""Wrap a long heading; braces protect it in an ``S`` column."""
    lines = textwrap.wrap(text, HEADING_CHARACTERS, break_long_words=False) or [""]
    if len(lines) == 1:
        return f"{{{latex(text)}}}"
    return r"{\shortstack{" + r"\\".join(map(latex, lines)) + "}}"
