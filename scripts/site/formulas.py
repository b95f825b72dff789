"""Conversion of Unicode formulas in docstrings to TeX for MathJax.

A formula is a sequence of mathematical words with a relation (=, ~, ∝, ≤, …).  A sequence is not
converted if its brackets do not match or if TeX would interpret it differently.
"""

from __future__ import annotations

import html
import re
import unicodedata

FORMULA = '<span class="arithmatex">'
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ᵀⁿ", "0123456789-+Tn")
SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉₋₊", "0123456789-+")
ACCENTS = {"\u0302": "hat", "\u0304": "bar", "\u0303": "tilde", "\u030c": "check", "\u0307": "dot"}
SYMBOLS = {
    "−": "-",
    "·": r"\cdot ",
    "×": r"\times ",
    "‖": r"\|",
    "…": r"\ldots ",
    "½": r"\tfrac{1}{2}",
    "∏": r"\prod ",
    "∫": r"\int ",
    "∞": r"\infty ",
    "~": r"\sim ",
    "%": r"\%",
}
FUNCTIONS = ("log", "exp", "min", "max", "det", "arg", "sup", "inf", "lim", "tanh", "cos", "sin")
RELATIONS = set("=~∝≤≥<>≈∼←≡")
SIGNS = RELATIONS | set("+−-/|·×±∈∘→")
GREEK = "α-ωΑ-ΩϕϑεΓΔΘΛΞΠΣΦΨΩ"
STRONG = re.compile(rf"[{GREEK}∇∂∏∫√‖½∝⁰¹²³⁴-⁹⁻⁺ᵀⁿ₀-₉₋\u0300-\u036f]|\b\w[_^][\w{{]")
WEAK = re.compile(
    "|".join(
        (
            r"[A-Za-z]'?",  # a letter
            r"[A-Za-z0-9]{1,2}(?:/[A-Za-z0-9]{1,2})+",  # a quotient
            r"-?[\d.]*\d|\W+",  # a number, a sign
            r"[A-Za-z]{1,3}\(.*|\(.*|[\w.]+\)+",  # parts of f(x, y)
            r"(?:log|exp|min|max|det|tr|Var|Cov|diag|argmin|argmax|E)\b.*",
        )
    )
)
LONE_WORDS = {"a", "A", "I", "an"}
UNSAFE = re.compile(r"[\\$#&`\"⌈⌉⌊⌋⟨⟩]|\[.*=.*\]")


def _is_math(word: str) -> bool:
    bare = word.rstrip(",.;:")
    if not bare or UNSAFE.search(word) or word.startswith(("[", "'")):
        return False
    if bare in SIGNS or STRONG.search(unicodedata.normalize("NFD", bare)):
        return not re.search(r"[a-z]{5,}(?!\()", re.sub(r"[_^]\w+", "", bare))
    return bool(WEAK.fullmatch(bare))


def _is_balanced(text: str) -> bool:
    depth: list[str] = []
    pairs = {")": "(", "]": "[", "}": "{"}
    for char in text:
        if char in "([{":
            depth.append(char)
        elif char in pairs and (not depth or depth.pop() != pairs[char]):
            return False
    return not depth


def _script(match: re.Match[str]) -> str:
    mark = match[1]
    text = match[2]
    is_word = len(text) >= 3 and text.isascii() and text.isalpha()
    return f"{mark}{{\\mathrm{{{text}}}}}" if is_word else f"{mark}{{{text}}}"


def _with_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    for mark, name in ACCENTS.items():
        decomposed = re.sub(f"(.){mark}", rf"\\{name}{{\1}}", decomposed)
    return unicodedata.normalize("NFC", decomposed)


def _with_roots(text: str) -> str:
    """Convert ``√(…)`` and ``√x`` to roots."""
    while "√(" in text:
        start = text.index("√(")
        end = next(i for i in range(start + 2, len(text) + 1) if _is_balanced(text[start + 1 : i]))
        text = f"{text[:start]}\\sqrt{{{text[start + 2 : end - 1]}}}{text[end:]}"
    return re.sub(r"√(\w+)", r"\\sqrt{\1}", text)


def _with_set_braces(text: str) -> str:
    """Make braces visible, except in an index."""
    out = []
    stack: list[bool] = []
    for i, char in enumerate(text):
        if char == "{":
            stack.append(i > 0 and text[i - 1] in "_^")
            out.append("{" if stack[-1] else r"\{")
        elif char == "}":
            out.append("}" if stack.pop() else r"\}")
        else:
            out.append(char)
    return "".join(out)


def to_tex(formula: str) -> str | None:
    """TeX of a Unicode formula; None if it cannot be converted safely."""
    if not _is_balanced(formula) or UNSAFE.search(formula):
        return None
    text = _with_set_braces(formula)
    text = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ᵀⁿ]+", lambda m: f"^{{{m[0].translate(SUPERSCRIPTS)}}}", text)
    text = re.sub(r"[₀₁₂₃₄₅₆₇₈₉₋₊]+", lambda m: f"_{{{m[0].translate(SUBSCRIPTS)}}}", text)
    text = re.sub(rf"([_^])([-−±]?[A-Za-z0-9{GREEK}]+(?:\.\d+)?)", _script, text)
    text = re.sub(r"Σ(?=_|\^| *[a-z(])", r"\\sum ", text)
    text = _with_roots(_with_accents(text))
    for sign, tex in SYMBOLS.items():
        text = text.replace(sign, tex)
    names = "|".join(FUNCTIONS)
    text = re.sub(rf"(?<![\\A-Za-z{{])({names})(?![A-Za-z])", r"\\\1 ", text)
    text = re.sub(r"(?<![\\A-Za-z{])([A-Za-z]{3,})(?![A-Za-z}])", r"\\mathrm{\1}", text)
    # two superscripts or two subscripts of one letter are invalid in TeX
    script = r"\{(?:[^{}]|\{[^{}]*\})*\}"
    doubled = re.search(rf"\^{script}(?:_{script})?\^|_{script}(?:\^{script})?_", text)
    return None if doubled or re.search(r"[_^](?!\{)|[_^]$", text) else text


def _trim(words: list[str]) -> tuple[int, int]:
    """Bounds of a sequence without signs at its ends and without words of the prose."""
    start = 0
    end = len(words)
    while start < end and (
        words[start] in SIGNS
        or (words[start].rstrip(",.;:") in LONE_WORDS and words[start + 1 : start + 2] != ["="])
        or (words[start][-1] in ",;:" and _is_balanced(words[start]))
    ):
        start += 1
    while end > start and (words[end - 1] in SIGNS or words[end - 1] == "a"):
        end -= 1
    return start, end


def _continues(words: list[str], following: str) -> bool:
    """True if a formula continues after its sequence: a sign at the end, or a symbol after it."""
    ends = words[-1][-1] in ",.;:"
    return words[-1] in SIGNS or (not ends and bool(following) and not following[0].islower())


def _set_run(words: list[str], following: str) -> str:
    """Typeset a sequence of mathematical words if it is a formula."""
    start, end = _trim(words)
    formula = " ".join(words[start:end])
    bare = formula.rstrip(",.;:")
    has_relation = bool(RELATIONS & set(bare)) and end - start >= 3
    is_formula = has_relation and not _continues(words, following)
    tex = to_tex(bare) if is_formula else None
    if tex is None:
        return html.escape(" ".join(words), quote=False)
    span = f"{FORMULA}\\({html.escape(tex, quote=False)}\\)</span>"
    preceding, after = (
        html.escape(" ".join(part), quote=False) for part in (words[:start], words[end:])
    )
    return " ".join(part for part in (preceding, span + formula[len(bare) :], after) if part)


def set_formulas(text: str) -> str:
    """Convert a paragraph to HTML with formulas in TeX."""
    out: list[str] = []
    run: list[str] = []
    for word in text.split():
        if not _is_math(word):
            out += [_set_run(run, word)] if run else []
            out.append(html.escape(word, quote=False))
            run = []
            continue
        run.append(word)
        if word[-1] in ",.;:" and _is_balanced(" ".join(run)):
            out.append(_set_run(run, ""))
            run = []
    out += [_set_run(run, "")] if run else []
    return " ".join(out)
