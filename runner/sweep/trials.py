"""Queries about the trials of a sweep by Optuna: the best ones, and savings by pruning."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


def metrics(study: Study) -> list[str]:
    """Names of the optimised metrics."""
    return study.user_attrs.get("objectives") or ["objective"]


def several(study: Study) -> bool:
    return len(study.directions) > 1


def completed_trials(study: Study) -> list[FrozenTrial]:
    """Completed trials, the best first; for several objectives, those on the Pareto front first."""
    from optuna.trial import TrialState

    trials = [t for t in study.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
    signs = [-1 if direction.name == "MAXIMIZE" else 1 for direction in study.directions]
    front = set(pareto_front(study))
    return sorted(
        trials,
        key=lambda t: (
            t.number not in front,
            [s * v for s, v in zip(signs, t.values, strict=True)],
        ),
    )


def pareto_front(study: Study) -> list[int]:
    """Numbers of the nondominated trials; for one objective, the best and its ties."""
    return [t.number for t in study.best_trials]


def describe_savings(study: Study) -> str:
    """Steps of all replicates that pruning saved, in words.

    Empty if no trial was pruned or the steps are unknown.
    """
    ended = [t for t in study.get_trials(deepcopy=False) if t.state.name in ("COMPLETE", "PRUNED")]
    if not any(t.state.name == "PRUNED" for t in ended) or not all(
        "steps" in t.user_attrs for t in ended
    ):
        return ""
    ends = ("pruned at" if t.state.name == "PRUNED" else "steps" for t in ended)
    n_taken = sum(int(t.user_attrs[end]) for t, end in zip(ended, ends, strict=True))
    n_total = sum(int(t.user_attrs["steps"]) for t in ended)
    return f"{n_taken:,} steps of {n_total:,}: pruning saved {1 - n_taken / n_total:.0%}"
