"""Output of a sweep by Optuna: a line per trial, a table of the best ones, ``best.yaml``,
``trials.csv`` and the figures of ``report.html``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf

from runner.disk.atomic import write_text
from runner.errors import display_path
from runner.sweep.optuna_report import write_report
from runner.sweep.search_link import BEST
from runner.sweep.search_space import params_to_overrides
from runner.sweep.trials import completed_trials, describe_savings, metrics, pareto_front, several
from runner.terminal.csv_cells import escape_table
from runner.terminal.printer import number, out
from runner.terminal.tables import print_named, print_table
from runner.terminal.typed_values import format_typed

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

ENDINGS = {"PRUNED": "pruned", "FAIL": "failed"}
SHOWN = 10  # largest number of trials in the table


def _format(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else format_typed(value)


def show_trial(study: Study, trial: int, params: dict[str, Any]) -> None:
    """Print a line when a trial has ended."""
    frozen = study.get_trials(deepcopy=False)[trial]
    if frozen.state.name == "COMPLETE":
        outcome = "  ".join(number(value) for value in frozen.values)
    else:
        facts = frozen.user_attrs
        why = (
            f"at step {facts['pruned at']}"
            if "pruned at" in facts
            else facts.get("failure", "")[:120]
        )
        outcome = f"{ENDINGS.get(frozen.state.name)} ({why})"
    settings = " ".join(f"{key}={_format(value)}" for key, value in params.items())
    out.print(f"trial {trial}  {outcome}  {settings}")


def show_best(study: Study, folder: Path) -> float | None:
    """Print the best trials and write the files of the sweep; return the best value of a single
    objective, if any."""
    folder.mkdir(parents=True, exist_ok=True)
    trials = study.get_trials(deepcopy=False)
    done = completed_trials(study)
    front = pareto_front(study)
    _write_trials(study, front, folder / "trials.csv")
    counts = {name: sum(t.state.name == state for t in trials) for state, name in ENDINGS.items()}
    others = "".join(f", {n} {name}" for name, n in counts.items() if n)
    if not done:
        out.print(f"study {study.study_name}: no trial was completed{others}")
        return None
    out.print(f"study {study.study_name}: {len(done)} trials completed{others}")
    if savings := describe_savings(study):
        print_named("steps", savings)
    best = done[0]
    names = metrics(study)
    stars = front if several(study) else []
    cells = [_to_cells(trial, stars) for trial in done[: max(SHOWN, len(stars))]]
    print_table("", ["trial", *names, *best.params], cells, has_header_in_pipe=True)
    goals = zip(names, study.directions, strict=True)
    facts = {
        "study": study.study_name,
        "fixed": study.user_attrs.get("fixed", []),
        "trials": {"completed": len(done), **counts},
        "objectives": [{"metric": name, "direction": to.name.lower()} for name, to in goals],
        "best": [
            {
                "trial": trial.number,
                "run": trial.user_attrs.get("run"),
                "overrides": params_to_overrides(trial.params),
                "values": dict(zip(names, trial.values, strict=True)),
            }
            for trial in done
            if trial.number in front
        ],
    }
    if several(study):
        print_named("front", f"{len(front)} of {len(done)} trials are Pareto optimal: ★")
    else:
        print_named(
            "best", f"{number(best.values[0])} with {' '.join(params_to_overrides(best.params))}"
        )
    write_text(folder / BEST, OmegaConf.to_yaml(OmegaConf.create(facts)))
    write_report(study, folder)
    print_named("written", f"{display_path(folder / BEST)}, trials.csv, report.html")
    return None if several(study) else best.values[0]


def _write_trials(study: Study, front: Sequence[int], file: Path) -> None:
    """Write all trials with their results; the best are marked."""
    names = metrics(study)
    value = "values" if several(study) else "value"
    columns = ("number", value, "params", "state", "user_attrs", "datetime_start", "duration")
    table = study.trials_dataframe(attrs=columns)
    table = table.rename(
        columns={f"values_{k}": name for k, name in enumerate(names)} if several(study) else {}
    )
    table["best"] = table["number"].isin(front) if "number" in table else []
    write_text(file, escape_table(table).to_csv(index=False))


def _to_cells(trial: FrozenTrial, front: Sequence[int]) -> list[str]:
    star = "★ " if trial.number in front else ""
    return [
        f"{star}{trial.number}",
        *map(number, trial.values),
        *map(_format, trial.params.values()),
    ]
