"""Names and directions of all scores that a run can have, from the table ``scores.yaml`` that
searches, studies and reports use.

The name of "nlpp/task 2" is "nlpp"; the part after the slash is a task, a parameter or a size of an
attack.  A score without a direction is a fact (a mean, a number of clusters) or has a target value
(a coverage): a search can use it only if the user gives a direction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import yaml

if TYPE_CHECKING:  # callers that only need a direction do not import torch
    from components.contracts.problems import Kind, Target

T = TypeVar("T")
ScoreDirection = Literal["higher", "lower"]

SCORES: dict[str, Any] = yaml.load(
    Path(__file__).with_name("scores.yaml").read_text("utf-8"),
    Loader=yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader,
)
# by name, the kinds of problems with the score
PROBLEMS: dict[str, list[str]] = SCORES["higher"] | SCORES["lower"] | SCORES["neither"]
# "one_ahead/mape" is the mape of other forecasts, "late/nelbo" the nelbo of late evaluations
PREFIXES = frozenset({"one_ahead", "late"})

# "cost/gradients" is a count of training, which every run records with its scores, and
# "cost/attack_gradients" a count of the attack in its last evaluation
COST_PREFIX = "cost/"


def score_names(kind: Kind, attacked: bool, target: Target | None = None) -> frozenset[str]:
    """Names of the scores for a kind of problem.

    Attacked inputs add the scores of a security evaluation.  Supervised problems with a known
    ``target`` have only the scores for this kind of labels.
    """
    problems: set[str] = {kind}
    if kind == "supervised":
        labels = "real" if target == "real" else "classes"
        problems |= {labels} if target else {"real", "classes"}
    if attacked:
        problems.add("spoofed" if kind == "sequence" else "attacked")
    return frozenset(name for name, kinds in PROBLEMS.items() if problems & set(kinds))


def score_range(score: str) -> tuple[float, float]:
    """Smallest and largest possible value of a score."""
    name = base_name(score)
    smallest = 0.0 if name in SCORES["not_negative"] else -math.inf
    return smallest, 1.0 if name in SCORES["at_most_one"] else math.inf


def without_costs(scores: Mapping[str, T]) -> dict[str, T]:
    """The scores of a run without costs, as in its tables and searches."""
    return {name: value for name, value in scores.items() if not name.startswith(COST_PREFIX)}


def base_name(score: str) -> str:
    """The name of a score without its task, parameter, member or size of an attack: "nlpp" for
    "nlpp/task 2"."""
    first, _, rest = score.partition("/")
    return base_name(rest) if first in PREFIXES and rest else first


def better(score: str) -> ScoreDirection | None:
    """``higher`` or ``lower``; None without a direction, or if the score is not in the table."""
    name = base_name(score)
    return "higher" if name in SCORES["higher"] else "lower" if name in SCORES["lower"] else None
