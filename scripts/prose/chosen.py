"""Fields about a setting that each replicate chose by scores of its own.

    {chosen K; L}         L's score in the row that is best in K, replicate by replicate, ± SE
    {chosen K; L; M}      that less M, paired by replicate, ± SE
    {choices K}           how often each row of K is best: AADM (α = 0.5) 3, AADM (α = 1.0) 2

The rows of K, scores of held-out data, and of L, scores of test data, have the same names.
"""

from __future__ import annotations

from runner.report.scores.cells import Cell
from runner.statistics.paired_tests import MIN_REPLICATES, compare, inflate, summarise
from scripts.prose.estimate import Estimate
from scripts.prose.scores import Found, Lookup, ProseError

WORDS = ("chosen", "choices")
Key = tuple[int, int]  # seed, replicate


def choose_rows(found: list[Found]) -> dict[Key, str]:
    """Name of the best row by replicate, among those that all rows have."""
    if len({(each.cell.column, each.spec.name) for each in found}) > 1:
        raise ProseError(f"{':'.join(found[0].parts)}: rows of several columns or tables")
    direction = found[0].spec.column_direction(found[0].cell.column)
    if direction is None:
        raise ProseError(f"{':'.join(found[0].parts)}: neither side is better")
    pick = min if direction == "lower" else max
    shared = set.intersection(*(set(each.cell.values) for each in found))
    return {
        key: pick(found, key=lambda each: each.cell.values[key]).cell.row.name
        for key in sorted(shared)
    }


def collect_chosen(choices: dict[Key, str], tested: list[Found]) -> dict[Key, float]:
    """Test score of the chosen row by replicate."""
    cells = {each.cell.row.name: each.cell for each in tested}
    scores = {}
    for key, row in choices.items():
        if row not in cells or key not in cells[row].values:
            raise ProseError(f"{row}: no kept score of replicate {key[1]}")
        scores[key] = cells[row].values[key]
    return scores


def _is_doubted(choices: dict[Key, str], tested: list[Found], rival: Cell | None) -> bool:
    used = [each.cell for each in tested if each.cell.row.name in choices.values()]
    return any(cell.doubted for cell in [*used, *([rival] if rival else [])])


def estimate_chosen(keys: list[str], lookup: Lookup) -> Estimate:
    """The score of the chosen rows, or its difference from that of a rival."""
    choices = choose_rows(lookup.find(keys[0]))
    tested = lookup.find(keys[1])
    scores = collect_chosen(choices, tested)
    spec, overlap = tested[0].spec, tested[0].cell.overlap
    if len(keys) == 2:
        summary = summarise(scores.values())
        se = inflate(summary.se, summary.n, overlap)
        doubted = _is_doubted(choices, tested, None)
        return Estimate(summary.mean, se, spec.digits, doubted, summary.n < MIN_REPLICATES)
    rival = lookup.find_one(keys[2]).cell
    pair = compare(scores, rival.values, overlap)
    doubted = _is_doubted(choices, tested, rival)
    return Estimate(pair.difference, pair.se, spec.digits + 1, doubted, pair.n < MIN_REPLICATES)


def count_choices(key: str, lookup: Lookup) -> str:
    """How often each row is best, in the order of the study."""
    found = lookup.find(key)
    names = list(choose_rows(found).values())
    labels = {each.cell.row.name: each.cell.row.label for each in found}
    return ", ".join(
        f"{label} {names.count(name)}" for name, label in labels.items() if name in names
    )
