"""LaTeX of a table: escaped text, columns and headings that wrap, and floats that fit the page."""

from __future__ import annotations

import re
import textwrap

from runner.terminal.plain import plain

HEADING_CHARACTERS = 14  # of a line of a heading
LABEL_CHARACTERS = 26  # of a label that is not wrapped
LABEL_WIDTH = r">{\raggedright\arraybackslash}p{0.28\linewidth}"
PACKAGES = (
    r"\usepackage{array, booktabs, graphicx, longtable, siunitx} "
    r"and \sisetup{detect-weight=true, mode=text}"
)
PAGE_LINES = 45  # lines of a table that fit a page
LONG_TABLE_COLUMNS = 7  # a table of more is made smaller instead
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
    "–": "--",
}
LATEX_SPECIAL_PATTERN = re.compile(
    "|".join(re.escape(sign) for sign in sorted(LATEX_ESCAPES, key=len, reverse=True))
)


def latex(text: str) -> str:
    """Text in LaTeX, with any special characters escaped."""
    return LATEX_SPECIAL_PATTERN.sub(lambda found: LATEX_ESCAPES[found.group()], plain(text))


def floating_table(
    label: str, caption: str, columns: list[str], headings: list[str], body: list[str]
) -> str:
    """A floating ``table``, no wider than the line, or a ``longtable``."""
    if len(body) > PAGE_LINES and len(columns) <= LONG_TABLE_COLUMNS:
        return _long_table(label, caption, columns, headings, body)
    lines = [
        f"% {label}; needs {PACKAGES}",
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{caption}}}",
        f"\\label{{tab:{label}}}",
        r"\par\medskip",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        f"\\begin{{tabular}}{{{' '.join(columns)}}}",
        r"\toprule",
        " & ".join(headings) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    return "\n".join([*lines, ""])


def _long_table(
    label: str, caption: str, columns: list[str], headings: list[str], body: list[str]
) -> str:
    """A table over several pages, with its headings on each."""
    head = [r"\toprule", " & ".join(headings) + r" \\", r"\midrule"]
    lines = [
        f"% {label}; needs {PACKAGES}",
        r"\begingroup\footnotesize",
        f"\\begin{{longtable}}{{{' '.join(columns)}}}",
        f"\\caption{{{caption}}}\\label{{tab:{label}}}\\\\",
        *head,
        r"\endfirsthead",
        *head,
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *body,
        r"\end{longtable}",
        r"\endgroup",
    ]
    return "\n".join([*lines, ""])


def label_column(labels: list[str]) -> str:
    """A column as wide as its labels, or one in which they wrap."""
    return LABEL_WIDTH if max(map(len, labels), default=0) > LABEL_CHARACTERS else "l"


def wrap_heading(text: str) -> str:
    r"""A heading over several lines if it is long; braces keep it out of an ``S`` column."""
    lines = textwrap.wrap(text, HEADING_CHARACTERS, break_long_words=False) or [""]
    if len(lines) == 1:
        return f"{{{latex(text)}}}"
    return r"{\shortstack{" + r"\\".join(map(latex, lines)) + "}}"
