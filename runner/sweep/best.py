"""What a sweep shows and leaves behind: a line per trial, a table of the best, ``best.yaml`` and ``trials.csv``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf
from rich.table import Table

from runner.console import number, out
from runner.csv_cells import table_as_words
from runner.sweep.search_space import written

if TYPE_CHECKING:
    from optuna import Study

ENDINGS = {"PRUNED": "pruned", "FAIL": "failed"}
SHOWN = 10  # trials in the table


def _params(params: dict[str, Any]) -> str:
    return " ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in params.items())


def show_trial(study: Study, trial: int, params: dict[str, Any]) -> None:
    """One line as soon as a trial has ended."""
    frozen = study.get_trials(deepcopy=False)[trial]
    if frozen.state.name == "COMPLETE" and frozen.value is not None:
        outcome = number(frozen.value)
    else:
        facts = frozen.user_attrs
        why = f"at step {facts['pruned at']}" if "pruned at" in facts else facts.get("failure", "")[:120]
        outcome = f"{ENDINGS.get(frozen.state.name)} ({why})"
    out.print(f"trial {trial}  {outcome}  {_params(params)}", markup=False)


def show_best(study: Study, folder: Path, objective: str | None, fixed: list[str]) -> float | None:
    """Prints the best trials and writes ``best.yaml`` and ``trials.csv``; the best value, if any trial has one."""
    from optuna.trial import TrialState

    folder.mkdir(parents=True, exist_ok=True)
    trials = study.get_trials(deepcopy=False)
    columns = ("number", "value", "params", "state", "user_attrs", "datetime_start", "duration")
    table_as_words(study.trials_dataframe(attrs=columns)).to_csv(folder / "trials.csv", index=False)
    done = [t for t in trials if t.state == TrialState.COMPLETE]
    counts = {name: sum(t.state.name == state for t in trials) for state, name in ENDINGS.items()}
    others = "".join(f", {n} {name}" for name, n in counts.items() if n)
    if not done:
        out.print(f"study {study.study_name}: no trial was completed{others}", markup=False)
        return None
    upward = study.direction.name == "MAXIMIZE"
    done.sort(key=lambda t: t.value if t.value is not None else 0.0, reverse=upward)
    out.print(f"study {study.study_name}: {len(done)} trials completed{others}", markup=False)
    table = Table()
    table.add_column("trial", justify="right")
    table.add_column(objective or "objective", justify="right")
    for name in done[0].params:
        table.add_column(name, justify="right")
    for t in done[:SHOWN]:
        shown = (f"{v:.4g}" if isinstance(v, float) else str(v) for v in t.params.values())
        table.add_row(str(t.number), number(t.value or 0.0), *shown)
    out.print(table)
    best = done[0]
    overrides = [f"{k}={written(v)}" for k, v in best.params.items()]
    facts = {
        "study": study.study_name,
        "objective": objective,
        "direction": study.direction.name.lower(),
        "value": best.value,
        "trial": best.number,
        "run": best.user_attrs.get("run"),
        "trials": {"completed": len(done), **counts},
        "overrides": overrides,
        "fixed": fixed,
    }
    OmegaConf.save(OmegaConf.create(facts), folder / "best.yaml")
    out.print(f"best     {number(best.value or 0.0)} with {' '.join(overrides)}", markup=False)
    out.print(f"written  {folder / 'best.yaml'}, {folder / 'trials.csv'}", markup=False)
    return best.value
