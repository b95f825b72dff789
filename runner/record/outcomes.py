"""Recorded outcomes, i.e. correctly predicted test labels, and McNemar's test between two runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner.disk.atomic import make_folder, write_text
from runner.disk.plain_file import parse_json, read_plain
from runner.record.facts import skip_unreadable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class McNemar:
    """Numbers of labels that only one of two classifiers predicts correctly, and a p-value.

    The exact two-sided p belongs to the hypothesis that both numbers have the same expectation.
    """

    first: int  # correct only in the first
    second: int
    p: float

    def __str__(self) -> str:
        return f"McNemar p {self.p:.2g} (correct in only one: {self.first} against {self.second})"


def outcomes_file(folder: Path, replicate: int) -> Path:
    """File of a replicate's outcomes in a record."""
    return folder / "outcomes" / f"{replicate}.json"


def predictions_file(folder: Path, replicate: int) -> Path:
    """File of a replicate's predictions of the test rows."""
    return folder / "predictions" / f"{replicate}.csv"


def write_outcomes(folder: Path, replicate: int, outcomes: Mapping[str, Booleans]) -> None:
    """Write ``outcomes/<replicate>.json``: for each score a bit for each observed test label, as
    hexadecimal digits."""
    import numpy as np

    path = outcomes_file(folder, replicate)
    make_folder(path.parent)
    labels = len(next(iter(outcomes.values())))
    bits = {name: np.packbits(right).tobytes().hex() for name, right in outcomes.items()}
    write_text(path, json.dumps({"labels": labels, "right": bits}, indent=1) + "\n")


def read_outcomes(folder: Path, replicate: int) -> dict[str, Booleans]:
    """Outcomes stored by ``write_outcomes``; empty if the file is missing or damaged."""
    import numpy as np

    with (
        suppress(OSError, ValueError, KeyError, TypeError, AttributeError),
        skip_unreadable(folder),
    ):
        content = parse_json(read_plain(outcomes_file(folder, replicate)))
        labels = int(content["labels"])
        outcomes = {}
        for name, text in content["right"].items():
            bits = np.frombuffer(bytes.fromhex(text), np.uint8)
            outcomes[str(name)] = np.unpackbits(bits, count=labels).astype(bool)
        return outcomes
    return {}


def mcnemar(first: Booleans, second: Booleans) -> McNemar:
    """Exact test on the labels for which two classifiers differ: n₁ ~ Binomial(n₁ + n₂, ½); p = 1 if
    n₁ + n₂ = 0.

    Source: McNemar (1947); Dietterich (1998), section 3.1."""
    from scipy.stats import binomtest

    counts = int((first & ~second).sum()), int((second & ~first).sum())
    p = float(binomtest(counts[0], sum(counts)).pvalue) if any(counts) else 1.0
    return McNemar(*counts, p)


def compare_outcomes(first: Path, second: Path, metric: str) -> McNemar | None:
    """McNemar's test of a score between two records with one replicate each; None if one lacks it."""
    outcomes, other = (read_outcomes(folder, 0).get(metric) for folder in (first, second))
    return (
        mcnemar(outcomes, other)
        if outcomes is not None and other is not None and len(outcomes) == len(other)
        else None
    )
