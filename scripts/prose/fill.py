"""Prose with its numbers filled in: the grammar of ``docs/results/**/*.md.in``.

    {K}                    mean ± SE (median ± SE where the table shows medians)
    {mean K} {median K} {sd K} {min K} {max K}    that statistic of the replicates
    {n K}                  number of replicates
    {printed K}            the published number; {verdict K} its verdict, {apart K} ours less it in SE
    {agree K}              how many verdicts are "agrees", of those that compare: 98 of 104
    {diff K; L}            K less L, paired by replicate, ± SE
    {ratio K; L}           K over L ± SE, paired by replicate
    {in_se K; L} {p K; L}  the difference in SE; p of its two-sided test
    {wins K; L}            replicates in which K is better than L: 17 of 20
    {range …}              least and largest of what follows, over all cells that K matches
    {table K}              rows by columns of all cells that K matches, as a Markdown table, printed
                           numbers below; {table diff K; L}, {table ratio K; L} likewise
    {table join K; L}      the columns of K and those of L in one table
    {best K}               the best cell that K matches; {best_row K} its row
    {… | 3} {… | %} {… | x1000}    three decimals; as a percentage; times 1,000
    [print: 0.89] [setting: 100 runs]    a number of print, a setting: shown as it is
    [missing: words | study]             shown nowhere; a line of missing.md
    {rank K} {ranks K} …                 mean ranks: scripts.prose.ranks
    {chosen K; L} {choices K}            a setting chosen by other scores: scripts.prose.chosen

K, L: ``study:row:column:table``, see scripts.prose.scores.  ``†``: a run behind the number failed one
of its checks; ``‡``: fewer than five replicates.  SE have one significant digit, or two that begin
with 1.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from runner.report.scores.cells import Cell
from runner.statistics.paired_tests import MIN_REPLICATES, compare
from scripts.prose import chosen, ranks
from scripts.prose.estimate import Estimate
from scripts.prose.scores import Found, Lookup, ProseError

FIELD = re.compile(r"\{([^{}\n]+(?:\n[^{}\n]+)*)\}")
MARKER = re.compile(r"\[(print|setting|missing): ([^\]]+)\]")
PAIRED = ("diff", "ratio", "in_se", "p", "wins")
JOIN = "join"
STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "sd": statistics.stdev,
    "min": min,
    "max": max,
}
WORDS = ("n", "printed", "verdict", "apart", "agree", "range", "table", "best", "best_row")


@dataclass(frozen=True)
class Options:
    """What follows ``|``."""

    decimals: int | None = None
    scale: float = 1.0
    unit: str = ""

    @classmethod
    def read(cls, text: str) -> Options:
        """Options of a field."""
        options = cls()
        for word in text.split():
            if word.isdigit():
                options = replace(options, decimals=int(word))
            elif word == "%":
                options = replace(options, scale=100.0, unit=" %")
            elif re.fullmatch(r"x\d+", word):
                options = replace(options, scale=float(word[1:]))
            else:
                raise ProseError(f"option {word!r}: a number of decimals, % or x1000")
        return options

    def apply(self, estimate: Estimate) -> Estimate:
        """The estimate in the unit asked for."""
        se = None if estimate.se is None else estimate.se * self.scale
        digits = max(0, estimate.digits - round(math.log10(self.scale)))
        return replace(estimate, value=estimate.value * self.scale, se=se, digits=digits)


def _finite(cell: Cell) -> list[float]:
    return [value for value in cell.values.values() if math.isfinite(value)]


def _estimate(found: Found) -> Estimate:
    """What a table shows of a cell, with the SE of its centre."""
    value, se = found.cell.estimate(found.spec)
    n = len(_finite(found.cell))
    return Estimate(value, se, found.spec.digits, found.cell.doubted, n < MIN_REPLICATES)


def _statistic(word: str, found: Found) -> Estimate:
    if word in ("mean", "median"):
        return _estimate(replace(found, spec=found.spec.model_copy(update={"centre": word})))
    return replace(_estimate(found), value=STATISTICS[word](_finite(found.cell)), se=None)


def _pair(word: str, first: Found, second: Found) -> Estimate:
    """Difference or ratio of two cells, replicate by replicate."""
    pair = compare(first.cell.values, second.cell.values, first.cell.overlap)
    if pair.n == 0:
        raise ProseError(
            f"{':'.join(first.parts)} and {':'.join(second.parts)}: no common replicate"
        )
    a, b = first.cell, second.cell
    doubted = a.doubted or b.doubted
    shape = Estimate(
        pair.difference, pair.se, first.spec.digits + 1, doubted, pair.n < MIN_REPLICATES
    )
    if word == "diff":
        return shape
    keys = [k for k in a.values if k in b.values]
    base = statistics.fmean(b.values[k] for k in keys)
    ratio = statistics.fmean(a.values[k] for k in keys) / base
    # delta method: SE of the mean of a − ratio · b, over the mean of b
    rest = compare(a.values, {k: ratio * b.values[k] for k in keys}, a.overlap)
    se = None if rest.se is None else abs(rest.se / base)
    return replace(shape, value=ratio, se=se, digits=2)


def _count_wins(first: Found, second: Found) -> str:
    direction = first.spec.column_direction(first.cell.column)
    if direction is None:
        raise ProseError(f"{':'.join(first.parts)}: neither side is better")
    sign = 1 if direction == "higher" else -1
    a, b = first.cell.values, second.cell.values
    keys = [k for k in a if k in b]
    wins = sum(sign * (a[k] - b[k]) > 0 for k in keys)
    return f"{wins} of {len(keys)}"


def _best(found: list[Found]) -> Found:
    direction = found[0].spec.column_direction(found[0].cell.column)
    if direction is None:
        raise ProseError(f"{':'.join(found[0].parts)}: neither side is better")
    return (min if direction == "lower" else max)(found, key=lambda each: _estimate(each).value)


def _range(estimates: list[Estimate], options: Options) -> str:
    """``0.88 to 0.92 (SE ≤ 0.01)``."""
    scaled = sorted(map(options.apply, estimates), key=lambda each: each.value)
    low, high = scaled[0], scaled[-1]
    errors = [each.se for each in scaled if each.se is not None and math.isfinite(each.se)]
    most = Estimate(max(errors, default=0.0), None, high.digits, False, False)
    n = options.decimals
    if n is None:
        n = min(low.decimals, high.decimals)
    marks = replace(
        high, doubted=any(e.doubted for e in scaled), few=any(e.few for e in scaled)
    ).marks
    ends = [f"{each.value:,.{n}f}".replace("-", "−") for each in (low, high)]
    span = ends[0] if ends[0] == ends[1] else " to ".join(ends)
    if not errors or most.value == 0.0:
        return f"{span}{options.unit}{marks}"
    bound = math.ceil(most.value * 10**n) / 10**n
    return f"{span}{options.unit}{marks} (SE ≤ {bound:,.{n}f})"


def _join(first: list[Found], second: list[Found]) -> list[Found]:
    """Cells of one table; columns of the second get its name if the first has one like them."""
    if not {each.cell.column for each in first} & {each.cell.column for each in second}:
        return first + second
    renamed = [
        replace(each, cell=replace(each.cell, column=f"{each.spec.name}, {each.cell.column}"))
        for each in second
    ]
    return first + renamed


def _in_order(columns: list[str]) -> list[str]:
    """Columns by size where all are numbers, or else in the study's order."""
    try:
        return sorted(columns, key=float)
    except ValueError:
        return columns


def _table(found: list[Found], estimates: list[Estimate], options: Options, signed: bool) -> str:
    """Rows by columns; an empty cell has no kept score."""
    columns = _in_order(list(dict.fromkeys(each.cell.column for each in found)))
    rows = list(dict.fromkeys(each.cell.row.name for each in found))
    keys = {(each.cell.row.name, each.cell.column) for each in found}
    if len(keys) < len(found):
        raise ProseError(f"{':'.join(found[0].parts)}: several cells in one place of a table")
    cells = {}
    for each, estimate in zip(found, estimates, strict=True):
        text = options.apply(estimate).format(options.decimals, signed, options.unit)
        if signed and estimate.value == 0.0 and estimate.se == 0.0:
            text = "–"  # a row less itself
        if each.cell.number is not None and not signed:
            text += f"<br><sub>{each.cell.number.text}</sub>"
        cells[each.cell.row.name, each.cell.column] = text
    lines = [
        f"| row | {' | '.join(columns)} |",
        f"|---|{'---:|' * len(columns)}",
        *(f"| {row} | {' | '.join(cells.get((row, c), '') for c in columns)} |" for row in rows),
    ]
    return "\n".join(lines)


def _describe_verdicts(found: list[Found]) -> str:
    words = [each.cell.verdict.word for each in found]
    judged = [word for word in words if not word.startswith("not ")]
    return f"{sum(word.startswith('agrees') for word in judged)} of {len(judged)}"


def _estimates(words: list[str], keys: list[str], lookup: Lookup, many: bool) -> list[Estimate]:
    """The numbers that a field names."""
    first = lookup.find(keys[0]) if many else [lookup.find_one(keys[0])]
    word = words[0] if words else ""
    if word in ("diff", "ratio"):
        return [_pair(word, each, lookup.find_partner(keys[1], each)) for each in first]
    if word in STATISTICS:
        return [_statistic(word, each) for each in first]
    return [_estimate(each) for each in first]


def _fill_words(word: str, keys: list[str], lookup: Lookup) -> str | None:
    """Fields that are not a number with its SE; None: another field."""
    if word == "agree":
        return _describe_verdicts(lookup.find(keys[0]))
    if word == "best_row":
        return _best(lookup.find(keys[0])).cell.row.label
    if word not in ("n", "printed", "verdict", "apart", "wins", "p", "in_se"):
        return None
    found = lookup.find_one(keys[0])
    if word == "n":
        return f"{len(_finite(found.cell))}"
    if word in ("wins", "p", "in_se"):
        return _fill_test(word, found, lookup.find_partner(keys[1], found))
    if word == "verdict":
        return found.cell.verdict.word
    if found.cell.number is None:
        raise ProseError(f"{':'.join(found.parts)}: nothing is printed")
    if word == "printed":
        return found.cell.number.text.replace("-", "−")
    return f"{found.cell.verdict.in_se or 0.0:+.1f} SE".replace("-", "−")


def _fill_test(word: str, first: Found, second: Found) -> str:
    doubt = "†" if first.cell.doubted or second.cell.doubted else ""
    if word == "wins":
        return f"{_count_wins(first, second)}{doubt}"
    pair = compare(first.cell.values, second.cell.values, first.cell.overlap)
    if word == "p":
        return f"{pair.p:.2g}{doubt}"
    return f"{pair.in_se:+.1f} SE{doubt}".replace("-", "−")


def _fill_own(word: str, keys: list[str], lookup: Lookup, options: Options) -> str:
    """Fields whose words have modules of their own."""
    if word in ranks.WORDS:
        return ranks.fill_ranks(word, keys[0], lookup)
    if word == "choices":
        return chosen.count_choices(keys[0], lookup)
    estimate = options.apply(chosen.estimate_chosen(keys, lookup))
    return estimate.format(options.decimals, len(keys) > 2, options.unit)


def fill_field(text: str, lookup: Lookup) -> str:
    """One field, without its braces."""
    body, _, rest = " ".join(text.split()).partition(" | ")
    options = Options.read(rest)
    first, _, others = body.partition(" ")
    if first in (*ranks.WORDS, *chosen.WORDS) and ":" in others:
        return _fill_own(first, others.split("; "), lookup, options)
    words: list[str] = []
    while (match := re.match(r"(\w+) (?=\S)", body)) and match[1] in {
        *PAIRED,
        *STATISTICS,
        *WORDS,
        JOIN,
    }:
        words.append(match[1])
        body = body[match.end() :]
    keys = body.split("; ")
    if len(keys) != 1 + any(word in (*PAIRED, JOIN) for word in words):
        raise ProseError(f"{{{text}}}: {len(keys)} keys")
    if words and (filled := _fill_words(words[0], keys, lookup)) is not None:
        return filled
    if words[:1] == ["best"]:
        return options.apply(_estimate(_best(lookup.find(keys[0])))).format(
            options.decimals, unit=options.unit
        )
    many = words[:1] in (["range"], ["table"])
    if many:
        last = list(lookup.last)
        found = lookup.find(keys[0])
        if words[1:] == [JOIN]:
            found = _join(found, lookup.find(keys[1]))
            estimates = [_estimate(each) for each in found]
        else:
            lookup.last = last
            estimates = _estimates(words[1:], keys, lookup, many)
        if words[0] == "table":
            return _table(found, estimates, options, "diff" in words)
        return _range(estimates, options)
    estimates = _estimates(words, keys, lookup, many)
    return options.apply(estimates[0]).format(options.decimals, words == ["diff"], options.unit)
