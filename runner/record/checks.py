"""Checks of a run in its record: the key ``checks`` of ``run.json``, a list for each finished
replicate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from components.errors import list_names
from runner.record.facts import Facts

if TYPE_CHECKING:
    from components.contracts.checks import Check

# about ("run" or "attack"), check, passed (null: not checked), detail; short: passes with more steps
Kept = dict[str, Any]
Failures = dict[str, bool]  # name of a failed check -> True if it passes with more steps


def to_rows(about: str, checks: Iterable[Check]) -> list[Kept]:
    """Convert checks to their form in the record."""
    return [
        {"about": about, "check": c.name, "passed": c.passed, "detail": c.detail}
        | ({"short": True} if c.is_short and c.passed is False else {})
        for c in checks
    ]


def combine_checks(facts: Facts, about: str | None = None) -> list[Kept]:
    """Combine each check over replicates: the first failure, with the number of failures.

    ``about`` selects the checks of the run or of the attack.
    """
    replicates = list(facts.get("checks", {}).values())
    groups: dict[tuple[str, str], list[Kept]] = {}
    for check in chain.from_iterable(replicates):
        if about in (None, check["about"]):
            groups.setdefault((check["about"], check["check"]), []).append(check)
    out = []
    for same in groups.values():
        failed = [check for check in same if check["passed"] is False]
        summary = dict(failed[0] if failed else same[0])
        if any(not check.get("short") for check in failed):
            summary.pop("short", None)
        if failed and len(replicates) > 1:
            summary["detail"] += f", in {len(failed)} of {len(replicates)} replicates"
        out.append(summary)
    return out


def failed_checks(facts: Facts) -> Failures:
    """Checks that failed in at least one replicate."""
    return _failed_checks(combine_checks(facts))


def join_failures(*several: Failures) -> Failures:
    """Failed checks of several runs; a check that is biased in one run counts as biased."""
    joined: Failures = {}
    for name, is_short in (item for each in several for item in each.items()):
        joined[name] = is_short and joined.get(name, True)
    return joined


def _failed_checks(rows: Iterable[Mapping[str, Any]]) -> Failures:
    return {c["check"]: bool(c.get("short")) for c in rows if c["passed"] is False}


def tally(rows: Sequence[Mapping[str, Any]]) -> str:
    """Text with the numbers of checks that passed, failed or were not checked."""
    if n_failed := len(_failed_checks(rows)):
        return f"{n_failed} of {len(rows)} failed"
    unknown = sum(check["passed"] is None for check in rows)
    return (
        f"{len(rows) - unknown} passed, {unknown} not checked"
        if unknown
        else f"all {len(rows)} passed"
    )


def verdict(facts: Facts) -> str:
    """Summary of the checks in a few words; empty for a record without checks."""
    rows = combine_checks(facts)
    if not rows:
        return ""
    names = _failed_checks(rows)
    failed = list_names([*names], sign="; ")
    return tally(rows) + (f": {failed}" if failed else "")
